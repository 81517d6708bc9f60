"""Naive Bayes for categories."""

from __future__ import annotations

import itertools
from typing import Any, ClassVar

import numpy as np

from hinge._native import Design, core
from hinge._parameters import Constraints, at_least, count, numbers
from hinge.models.generative.base import log_prior
from hinge.models.generative.naive_bayes.base import LOG_ZERO, NaiveBayes
from hinge.models.generative.naive_bayes.discrete import check_alpha


def count_categories(X: np.ndarray, codes: np.ndarray, weights: Any, k: int, sizes: np.ndarray) -> list[np.ndarray]:
    """The weight of every category of every column in every class, as one (k, categories) table per column."""
    start = starts(sizes)
    table = core.class_categories(Design(X).native, codes, weights, k, start)
    return [np.ascontiguousarray(table[a:b].T) for a, b in itertools.pairwise(start)]


def smoothed_logs(counts: list[np.ndarray], alpha: Any) -> list[np.ndarray]:
    """log (N_cv + α) / (N_c + α · categories) for every table."""
    logs = []
    with np.errstate(divide="ignore", invalid="ignore"):
        for table in counts:
            smoothed = table + alpha
            logs.append(np.log(smoothed) - np.log(smoothed.sum(axis=1, keepdims=True)))
    return logs


def score_categories(X: Any, logs: list[np.ndarray], b: np.ndarray, output: Any) -> tuple[np.ndarray, bool]:
    """b_c + Σ_j log p(x_j | c); False if there are categories without a table entry, which the sum skips."""
    start = starts(np.array([table.shape[1] for table in logs]))
    table = np.nan_to_num(np.concatenate([t.T for t in logs]), nan=0.0, neginf=LOG_ZERO).clip(LOG_ZERO)
    return core.category_scores(Design(X).native, np.ascontiguousarray(table), b, start, output)


def starts(sizes: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


class CategoricalNB(NaiveBayes):
    """Naive Bayes for columns of categories 0, 1, 2, …

    Maximises  Σ sᵢ [log π_{yᵢ} + Σ_j log p_j(xᵢⱼ | yᵢ)]:  p_j(v | c) = (N_cjv + α) / (N_c + α n_j), where N_cjv is the
    weight of category v of column j in class c and n_j the number of categories.

    Parameters
    ----------
    alpha : float
        Smoothing: examples of every category in every class that are added to those seen. 0 is plain counting.
    force_alpha : bool
        If False, an alpha below 1e-10 is raised to it.
    fit_prior, class_prior
        As for :class:`MultinomialNB`.
    min_categories : int or array of shape (d,), optional
        The least number of categories of every column, if new data may have some that training does not.

    Attributes
    ----------
    classes_, class_count_, class_log_prior_ : arrays of shape (k,)
    category_count_, feature_log_prob_ : lists of d arrays of shape (k, n_categories_[j])
    n_categories_ : array of shape (d,)

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.array([[0, 2], [0, 1], [1, 0], [1, 0]])
    >>> hg.CategoricalNB().fit(X, ["no", "no", "yes", "yes"]).predict_proba([[1, 1]]).round(2)
    array([[0.4, 0.6]])
    """

    accepts_sparse = False
    category_count_: list[np.ndarray]

    _parameter_constraints: ClassVar[Constraints] = {
        "alpha": [at_least(0)],
        "min_categories": [count(), numbers(1), None],
    }

    _constant_tags: ClassVar[dict[str, bool]] = {"input_tags.categorical": True, "input_tags.positive_only": True}

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Any = None,
        min_categories: Any = None,
    ) -> None:
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.min_categories = min_categories

    def _count(self, X: Any, codes: np.ndarray, weights: np.ndarray | None, first: bool) -> None:
        low, high = X.min(axis=0), X.max(axis=0)
        self._require_finite(X, low + high)
        if np.any(low < 0):
            raise ValueError(
                f"Negative values in data passed to {type(self).__name__} (input X): categories are numbered from 0."
            )
        if np.any(high >= 2**31):
            raise ValueError("X has category numbers of 2³¹ or more; number the categories of a column from 0 on.")
        k = len(self.classes_)
        sizes = np.maximum(high.astype(np.int64) + 1, self._least(X.shape[1]))
        before = [] if first else self.category_count_
        sizes = np.maximum(sizes, [table.shape[1] for table in before]) if before else sizes
        counts = count_categories(X, codes, weights, k, sizes)
        for table, old in zip(counts, before):
            table[:, : old.shape[1]] += old
        added = np.bincount(codes, weights, minlength=k).astype(np.float64)
        self.class_count_ = added if first else self.class_count_ + added
        self.category_count_, self.n_categories_ = counts, sizes

    def _least(self, d: int) -> np.ndarray:
        least = np.asarray(0 if self.min_categories is None else self.min_categories)
        if least.dtype.kind not in "iu" or least.shape not in ((), (d,)):
            raise ValueError(
                f"min_categories must be an integer or one integer per feature ({d}), got {self.min_categories!r}."
            )
        return np.broadcast_to(least, (d,)).astype(np.int64)

    def _estimate(self) -> None:
        self.feature_log_prob_ = smoothed_logs(self.category_count_, check_alpha(self.alpha, self.force_alpha))
        self.class_log_prior_ = log_prior(self.class_prior, self.class_count_, fit=self.fit_prior)

    def _scores(self, X: Any, output: Any) -> tuple[np.ndarray, bool]:
        values, all_known = score_categories(X, self.feature_log_prob_, self.class_log_prior_, output)
        if not all_known:
            self._require_finite(X, X)
            strange = np.flatnonzero(np.any((X < 0) | (self.n_categories_ <= X), axis=0))
            raise ValueError(
                f"X has categories that training did not have, in columns {strange.tolist()}; fit with min_categories "
                "at least the number of categories there may be."
            )
        return values, True
