"""The choice among the trials of a search."""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge.errors import UserError
from hinge.learning.trials import Fold, Trial
from hinge.select.choice import choose_candidate
from hinge.select.estimate import mean_of

IN_REACH, MOST_FAMILIES, MORE_SETTINGS = (
    6.0,
    4,
    4,
)  # what goes on to more rows: standard errors behind, families, settings
READABLE = 4  # the highest rank of families whose fit can be read: linear and additive models, one tree
ABOUT_AS_GOOD = 0.002  # a simpler model may be worse by this share of the score


def least(trials: list[Trial], family: str | None = None) -> Trial | None:
    """The least mean loss, over all families or one."""
    done = [r for r in trials if r.state == "done" and family in (None, r.family.name)]
    return min(done, key=lambda r: float(np.mean(r.loss)), default=None)  # type: ignore[arg-type]


def promising(few: Any) -> list[Trial]:
    """The trials of a search on few rows that more rows are for: the best of each family that is close to the best, by their
    losses, then the next best of those that have variations."""
    best = least(few.results[1:])
    if best is None or best.loss is None:
        return []
    near = []
    for name in dict.fromkeys(r.family.name for r in few.results[1:]):
        own = least(few.results, name)
        if own is not None and own.loss is not None:
            behind = mean_of(own.loss - best.loss)
            if behind.value <= IN_REACH * behind.standard_error:
                near.append(own)
    near = _by_loss(near)[:MOST_FAMILIES]
    names = [r.family.name for r in near if r.family.vary is not None]
    more = [r for r in few.results[1:] if r.state == "done" and r.family.name in names and r not in near]
    return near + _by_loss(more)[:MORE_SETTINGS]


def _by_loss(trials: list[Trial]) -> list[Trial]:
    return sorted(trials, key=lambda r: float(np.mean(r.loss)))  # type: ignore[arg-type]


def optimism_of(trials: list[Trial], folds: list[Fold]) -> float:
    """The optimism of the least mean loss of single models, which comes from selecting the minimum of many.

    The unbiased loss is cross-validated: each fold is scored by the model that is best on the other folds.
    """
    losses = np.array([r.loss for r in trials if r.state == "done" and not r.members])
    crossed = np.empty(losses.shape[1])
    for fold in folds:
        crossed[fold.test] = losses[int(np.argmin(losses[:, fold.train].mean(axis=1)))][fold.test]
    return max(float(crossed.mean() - losses.mean(axis=1).min()), 0.0)


def choose(trials: list[Trial], folds: list[Fold], root: bool, simple: bool) -> Trial:
    """The simplest family whose mean loss is within one standard error (of the difference) of the best.

    Unless ``simple``, it must also be within a fifth of a per cent of the best (``root``: of the root of the loss). The ensemble is
    chosen where it is within one standard error of the best, unless a family whose fit can be read is as good: a mean of models
    varies less than the best of many.
    """
    if least(trials) is None:
        raise UserError(f"nothing could be fitted to these data: {trials[0].why}")
    names = dict.fromkeys(r.family.name for r in trials)
    choices = [r for name in names if (r := least(trials, name)) is not None]
    together = next((k for k, r in enumerate(choices) if r.members), None)
    losses, ranks = np.array([r.loss for r in choices]), np.array([r.family.rank for r in choices])
    if simple:
        return choices[choose_candidate(losses, ranks, paired=True).simplest]
    if together is not None:
        losses += np.array([[0.0 if r.members else optimism_of(trials, folds)] for r in choices])
    # Heavy-tailed losses have large standard errors, so the one-standard-error rule alone is too lenient.
    means = losses.mean(axis=1)
    near = means <= means.min() * (1 + ABOUT_AS_GOOD) ** (2.0 if root else 1.0)
    if together is not None:
        behind = mean_of(losses[together] - losses[int(np.argmin(means))])
        if behind.value <= behind.standard_error:
            near &= ranks <= READABLE
            near[together] = True
    kept = np.flatnonzero(near)
    return choices[kept[choose_candidate(losses[kept], ranks[kept], paired=True).simplest]]
