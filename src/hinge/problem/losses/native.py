"""The compiled twins of losses."""

from __future__ import annotations

from typing import Any

from hinge._native import core
from hinge.problem.losses.base import Loss
from hinge.problem.losses.custom import CustomLoss


def native_loss(loss: Loss) -> Any:
    """The compiled twin of a loss, or a wrapper that calls the Python one once per array."""
    if not isinstance(loss, CustomLoss):
        twin = core.loss(type(loss).__name__, list(loss.params()))
        if twin is not None:
            return twin
    return core.python_loss(loss)
