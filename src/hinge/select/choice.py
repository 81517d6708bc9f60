"""Choosing among candidates from their scores on folds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hinge.problem.numerics import OVERFLOWED


@dataclass(frozen=True)
class Choice:
    """Errors of candidates on folds and the chosen one.

    Attributes
    ----------
    best : int
        The candidate of the smallest mean error.
    simplest : int
        The simplest candidate whose mean error is within one standard error of the smallest.
    mean, standard_error : arrays
        Over folds, one entry per candidate.
    """

    mean: np.ndarray
    standard_error: np.ndarray
    best: int
    simplest: int

    def pick(self, rule: str) -> int:
        """The index of the candidate chosen by a rule, "best" or "one-standard-error"."""
        return self.best if rule == "best" else self.simplest


def choose_candidate(
    errors: np.ndarray, complexity: Any, weight: np.ndarray | None = None, *, paired: bool = False
) -> Choice:
    """Choose by the mean over folds.

    Parameters
    ----------
    errors : array of shape (candidates, folds)
        Smaller is better.
    complexity : array with one number per candidate
        For the one-standard-error rule: smaller is simpler.
    weight : array with one number per fold, optional
        How many examples a fold stands for.
    paired : bool
        Whether a candidate is as good as the best when the mean *difference* of their errors is within one standard error
        of that difference (sharper, where both err on the same examples), instead of the mean error within one standard
        error of the best candidate's (Breiman et al. 1984).
    """
    weight = np.ones(errors.shape[1]) if weight is None else weight
    c = weight / weight.sum()
    with np.errstate(over="ignore", invalid="ignore"):
        mean = errors @ c
        spread = _standard_error(errors, mean, c)
    if not np.any(np.isfinite(mean)):
        raise ValueError(OVERFLOWED)
    best = int(np.nanargmin(mean))
    if paired:
        difference = errors - errors[best]
        near = mean - mean[best] <= _standard_error(difference, mean - mean[best], c)
    else:
        near = mean <= mean[best] + spread[best]
    within = np.flatnonzero(near)
    simplest = int(within[np.argmin(np.asarray(complexity)[within])])
    return Choice(mean, spread, best, simplest)


def _standard_error(errors: np.ndarray, mean: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The standard error of every candidate's mean over folds of weights c."""
    return np.sqrt(((errors - mean[:, None]) ** 2) @ c / max(errors.shape[1] - 1, 1))
