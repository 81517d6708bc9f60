"""Checks of a network estimator's parameters: every message names the argument and its allowed values."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

from hinge.models.neural.engine import Rule

SOLVERS = ("adam", "sgd", "lbfgs")


def hidden_sizes(hidden_layer_sizes: Any) -> list[int]:
    """The widths of the hidden layers as a list; a single number is one layer."""
    sizes: Sequence[Any] = (
        [hidden_layer_sizes] if isinstance(hidden_layer_sizes, Integral) else list(hidden_layer_sizes)
    )
    if not all(isinstance(size, Integral) and int(size) > 0 for size in sizes):
        raise ValueError(
            f"hidden_layer_sizes must be a positive integer or a sequence of them, got {hidden_layer_sizes!r}."
        )
    return [int(size) for size in sizes]


def check_settings(estimator: Any) -> None:
    """Raises an error for inconsistent parameters, before anything is computed."""
    e = estimator
    hidden_sizes(e.hidden_layer_sizes)
    if e.solver == "lbfgs":
        refused = [name for name in ("dropout", "weight_decay", "clip_norm", "early_stopping") if getattr(e, name)]
        if refused:
            raise ValueError(f"solver='lbfgs' is deterministic and full-batch: {', '.join(refused)} needs adam or sgd.")


def rule(estimator: Any, l2: float) -> Rule:
    """The optimiser's parameters."""
    e = estimator
    return Rule(
        solver=e.solver,
        momentum=e.momentum,
        nesterov=bool(e.nesterovs_momentum),
        beta_1=e.beta_1,
        beta_2=e.beta_2,
        epsilon=e.epsilon,
        l2=l2,
        weight_decay=e.weight_decay,
        clip_norm=e.clip_norm,
        dropout=e.dropout,
    )
