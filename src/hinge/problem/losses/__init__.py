"""Losses: functions of a target and a score."""

from hinge.problem.losses.base import Loss, Target, normalise_weights
from hinge.problem.losses.custom import CustomLoss, LossFacts, as_loss, probe_loss
from hinge.problem.losses.likelihood import Bernoulli, Gamma, NegativeBinomial, Poisson, Softmax, Tweedie
from hinge.problem.losses.margin import (
    Exponential,
    Hinge,
    Logistic,
    MarginLoss,
    ModifiedHuber,
    PerceptronLoss,
    SquaredHinge,
    SquaredMargin,
    ZeroOne,
)
from hinge.problem.losses.multiclass import (
    MulticlassHinge,
    StructuredHinge,
    StructuredLogistic,
    StructuredLoss,
    StructuredPerceptronLoss,
    cost_matrix,
)
from hinge.problem.losses.nonconvex import SigmoidLoss
from hinge.problem.losses.regression import (
    Absolute,
    EpsilonInsensitive,
    Huber,
    LogCosh,
    Quantile,
    RelativeError,
    Squared,
    SquaredEpsilonInsensitive,
)

__all__ = [
    "Absolute",
    "Bernoulli",
    "CustomLoss",
    "EpsilonInsensitive",
    "Exponential",
    "Gamma",
    "Hinge",
    "Huber",
    "LogCosh",
    "Logistic",
    "Loss",
    "LossFacts",
    "MarginLoss",
    "ModifiedHuber",
    "MulticlassHinge",
    "NegativeBinomial",
    "PerceptronLoss",
    "Poisson",
    "Quantile",
    "RelativeError",
    "SigmoidLoss",
    "Softmax",
    "Squared",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
    "SquaredMargin",
    "StructuredHinge",
    "StructuredLogistic",
    "StructuredLoss",
    "StructuredPerceptronLoss",
    "Target",
    "Tweedie",
    "ZeroOne",
    "as_loss",
    "cost_matrix",
    "normalise_weights",
    "probe_loss",
]
