"""Hypothesis spaces: what kind of function is learned.

A space is a small immutable description. ``family`` names the module that knows how to minimise a loss and a penalty
over it (it registers itself with :func:`hinge.models.learner.minimise` when imported), so new spaces plug in without
a change to the learner.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar


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


@dataclass(frozen=True)
class RKHS(Space):
    """f = Σⱼ αⱼ k(xⱼ, ·) + b: functions in the space of a kernel, penalised by their norm.

    Parameters
    ----------
    kernel : Kernel or function
        Such as ``hg.RBF(1.0) + hg.Linear()``.
    fit_intercept : bool
        Whether there is a bias b. It is never penalised.
    centres : int, optional
        Expand over this many examples chosen at random instead of all of them, for data whose n × n kernel matrix
        is too large. Needs a loss with two derivatives.
    cache_size : float
        With ``centres``: megabytes for kernel values that are kept instead of computed again.
    """

    kernel: Any = None
    fit_intercept: bool = True
    centres: int | None = None
    cache_size: float = 2000.0

    family: ClassVar[str] = "hinge.models.kernel.space"
