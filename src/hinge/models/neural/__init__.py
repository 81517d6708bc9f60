"""Networks: multilayer perceptrons of any depth, by backpropagation."""

from hinge.models.neural.estimators import MLPClassifier, MLPRegressor
from hinge.models.neural.trace import BackpropTrace

__all__ = ["BackpropTrace", "MLPClassifier", "MLPRegressor"]
