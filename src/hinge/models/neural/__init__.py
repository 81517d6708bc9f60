"""Networks: multilayer perceptrons of any depth, by backpropagation."""

from hinge.models.neural.classifier import MLPClassifier
from hinge.models.neural.regressor import MLPRegressor
from hinge.models.neural.trace import BackpropTrace

__all__ = ["BackpropTrace", "MLPClassifier", "MLPRegressor"]
