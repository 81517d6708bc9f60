"""Hypothesis spaces: what kind of function is learned.

A space is a small immutable description. ``family`` names the module that knows how to minimise a loss and a penalty
over it (it registers itself with :func:`hinge.models.learner.minimise` when imported), so new spaces plug in without
a change to the learner.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Space:
    """Base class of hypothesis spaces."""

    family: ClassVar[str] = ""


@dataclass(frozen=True)
class Linear(Space):
    """f(x) = ⟨w, x⟩ + b.

    Parameters
    ----------
    fit_intercept : bool
        Whether there is a bias b. It is never penalised.
    """

    fit_intercept: bool = True

    family: ClassVar[str] = "hinge.models.linear_space"
