"""Nested cross-validation: the held-out score of tuning and fitting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import check_scoring
from sklearn.utils import _safe_indexing

from hinge._native import check_indices
from hinge.select.search import folds_of
from hinge.select.tune import tune


@dataclass(frozen=True)
class NestedResult:
    """Scores of a tuned learner on outer folds that were held out from tuning.

    Attributes
    ----------
    scores : array
        One per outer fold.
    params : list of dict
        What was chosen in each.
    """

    scores: np.ndarray
    params: list[dict[str, Any]]

    @property
    def mean(self) -> float:
        return float(self.scores.mean())

    @property
    def standard_error(self) -> float:
        return float(self.scores.std(ddof=1) / np.sqrt(len(self.scores)))

    def __str__(self) -> str:
        return f"{self.mean:.6g} ± {self.standard_error:.2g} over {len(self.scores)} outer folds"


def nested_cv(
    learner: BaseEstimator, X: Any, y: Any, grid: Any = 30, *, outer: Any = 5, scoring: Any = None,
    sample_weight: Any = None, groups: Any = None, **options: Any,
) -> NestedResult:  # fmt: skip
    """The score of *tuning and fitting* on new data: every outer fold scores a learner that was tuned on the others.

    The best score of :func:`tune` itself is optimistic, because the same folds select and score.

    Parameters
    ----------
    learner, X, y, grid, scoring, sample_weight
        As for :func:`tune`.
    outer : int, splitter or iterable
        The outer folds.
    groups : array, optional
        For outer splitters that keep groups together.
    **options
        Further arguments of :func:`tune`, such as ``cv`` for the inner folds and ``rule``.

    Returns
    -------
    NestedResult

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 5))
    >>> result = hg.nested_cv(hg.Ridge(), X, X[:, 0], {"alpha": [1e-3, 1e3]}, outer=3)
    >>> bool(result.mean > 0.99), result.params[0]
    (True, {'alpha': 0.001})
    """
    check_indices(X)
    y = np.asarray(y)
    scorer = check_scoring(learner, scoring=scoring)
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    scores, params = [], []
    for train, test in folds_of(outer, X, y, groups, learner):
        inner = None if weights is None else weights[train]
        found = tune(learner, _safe_indexing(X, train), y[train], grid, scoring=scoring, sample_weight=inner, **options)
        score_options = {} if weights is None else {"sample_weight": weights[test]}
        scores.append(float(scorer(found.model, _safe_indexing(X, test), y[test], **score_options)))
        params.append(found.params)
    return NestedResult(np.array(scores), params)
