"""Losses by name."""

from __future__ import annotations

import re

from hinge.problem.losses import likelihood, margin, multiclass, regression
from hinge.problem.losses.base import Loss

# scikit-learn's names of losses that have another name here.
ALIASES: dict[str, type[Loss]] = {
    "absolute_error": regression.Absolute,
    "log_loss": margin.Logistic,
    "multinomial": likelihood.Softmax,
    "perceptron": margin.PerceptronLoss,
    "pinball": regression.Quantile,
    "squared_error": regression.Squared,
}
CLASSES: tuple[type[Loss], ...] = (
    regression.Squared, regression.Absolute, regression.Huber, regression.LogCosh, regression.Quantile,
    regression.EpsilonInsensitive, regression.SquaredEpsilonInsensitive, regression.RelativeError,
    likelihood.Bernoulli, likelihood.Gamma, likelihood.NegativeBinomial, likelihood.Poisson, likelihood.Softmax,
    likelihood.Tweedie,
    margin.Exponential, margin.Hinge, margin.Logistic, margin.ModifiedHuber, margin.SquaredHinge, margin.SquaredMargin,
    margin.ZeroOne,
    multiclass.MulticlassHinge,
)  # fmt: skip


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


LOSSES: dict[str, type[Loss]] = dict(sorted(({_snake(cls.__name__): cls for cls in CLASSES} | ALIASES).items()))


def named_loss(name: str) -> Loss:
    """The loss of a name, such as "logistic" or "squared_error", with its default parameters."""
    if name not in LOSSES:
        raise ValueError(f"loss={name!r} is not the name of a loss; the names are {', '.join(LOSSES)}.")
    return LOSSES[name]()
