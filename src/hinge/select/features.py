"""Feature selection: forward, backward and exhaustive search for the set S that minimises  error(S) + λ|S|.

For least squares the errors of all candidate sets come from sweeps of one Gram matrix, without refitting a model. For
any other learner each candidate is fitted and scored.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.feature_selection import SelectorMixin
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from hinge._native import Design, check_indices, core
from hinge._parameters import Constraints, Estimator, at_least, count, has, shared
from hinge._validation import CONVERSIONS, refuse_equal_names, validate_data
from hinge.models.base import ACCEPT_SPARSE, FLOATS, check_weights, contiguous, require_no_overflow
from hinge.solvers.closed_form import Centred

# Branch and bound is exact at any size, but may take long with more features.
MOST_FEATURES = 30
MOST_SUBSETS = 200_000
COLLINEAR = 1e-10
PERFECT = 1e-9  # a fraction of a variance that counts as zero


@dataclass(frozen=True)
class Subset:
    """A set of features, its error, and error + λ|S|."""

    features: tuple[int, ...]
    error: float
    objective: float


class LeastSquaresErrors:
    """Mean squared errors of least squares on sets of features, by sweeps of [X y]'S[X y] (centred if with a bias).

    Sweeping feature j moves it into or out of the model in O(d²); the last entry is then the residual sum of squares.
    """

    def __init__(self, X: Any, y: np.ndarray, weights: np.ndarray | None, fit_intercept: bool) -> None:
        s = np.ones(X.shape[0]) if weights is None else weights
        problem = Centred(Design(X), y, s / s.sum(), fit_intercept)
        moment = problem.moment(problem.Y)
        self.matrix = np.block([[problem.gram(), moment], [moment.T, np.array([[problem.c @ problem.Y[:, 0] ** 2]])]])
        require_no_overflow(self.matrix)
        scale = np.sqrt(np.maximum(np.diag(self.matrix), 0.0))
        self.scale = np.where(scale > 0, scale, 1.0)
        self.matrix /= self.scale[:, None] * self.scale[None, :]
        self.unit = self.scale[-1] ** 2  # errors are computed in units of the variance of y
        self.rank, self.left = self._reach()

    @staticmethod
    def sweep(A: np.ndarray, k: int) -> None:
        pivot = 1.0 / A[k, k]
        row, column = A[k].copy(), A[:, k].copy()
        A -= np.outer(column * pivot, row)
        A[k], A[:, k] = row * pivot, -column * pivot
        A[k, k] = pivot

    def forward(self, most: int) -> Iterable[tuple[tuple[int, ...], float]]:
        """Sets of 0, 1, 2 … features; each adds the feature that decreases the error most."""
        A = self._regular()
        chosen: list[int] = []
        yield (), self.unit * A[-1, -1]
        for _ in range(most):
            free = np.setdiff1d(np.arange(len(A) - 1), chosen)
            gains = A[free, -1] ** 2 / np.maximum(A[free, free], 1e-300)
            gains[A[free, free] <= 2 * COLLINEAR] = -1.0
            best = int(free[np.argmax(gains)])
            self.sweep(A, best)
            chosen.append(best)
            yield tuple(sorted(chosen)), self.error(sorted(chosen))

    def backward(self) -> Iterable[tuple[tuple[int, ...], float]]:
        """Sets of d, d−1, … 0 features; each drops the feature that increases the error least."""
        A, remaining = self._regular(), list(range(len(self.matrix) - 1))
        for j in remaining:
            self.sweep(A, j)
        yield tuple(remaining), self.error(remaining)
        while remaining:
            at = np.array(remaining)
            worst = int(at[np.argmin(A[at, -1] ** 2 / np.maximum(A[at, at], 1e-300))])
            self.sweep(A, worst)
            remaining.remove(worst)
            yield tuple(remaining), self.error(remaining)

    def best(self, most: int) -> tuple[list[tuple[tuple[int, ...], float]], int]:
        """The best set of every size up to ``most``, and the number of sets evaluated."""
        d = len(self.matrix) - 1
        perfect = self.rank < d and self.left <= PERFECT  # then dropping features excludes nothing
        largest = min(most, self.rank - 1) if perfect else most
        search, matrix = (core.grow_subsets, self.matrix) if perfect else (core.best_subsets, self._regular())
        _, members, nodes = search(np.ascontiguousarray(matrix).ravel(), d, max(largest, 0))
        sets = [tuple(j for j in range(d) if members[k] >> j & 1) for k in range(largest + 1)]
        found = [(chosen, self.error(chosen)) for chosen in sets]
        return found + self._complete(sets[-1] if sets else (), most, self.left), nodes

    def _regular(self) -> np.ndarray:
        """The matrix, with a small ridge if features are dependent, so that the full model is not singular."""
        A, d = self.matrix.copy(), len(self.matrix) - 1
        if self.rank < d:
            A[np.arange(d), np.arange(d)] += COLLINEAR
        return A

    def error(self, features: Sequence[int]) -> float:
        """The mean squared error of least squares on these features, without any ridge."""
        left = self._left_by(np.array(features, dtype=np.intp))[1]
        return self.unit * left if left > PERFECT else 0.0

    def _reach(self) -> tuple[int, float]:
        """The rank of the features, and the error of all of them in units of the variance of y."""
        return self._left_by(np.arange(len(self.matrix) - 1))

    def _left_by(self, at: np.ndarray) -> tuple[int, float]:
        """The rank of these features, and their error in units of the variance of y."""
        d = len(self.matrix) - 1
        size, axes = np.linalg.eigh(self.matrix[np.ix_(at, at)])
        inside = size > d * PERFECT
        parts = axes[:, inside].T @ self.matrix[at, d]
        return int(inside.sum()), max(float(self.matrix[d, d] - np.sum(parts**2 / size[inside])), 0.0)

    def _complete(self, chosen: tuple[int, ...], most: int, left: float) -> list[tuple[tuple[int, ...], float]]:
        """Larger sets with no more error than all features: independent features first, then any."""
        A, d = self._regular(), len(self.matrix) - 1
        for j in chosen:
            self.sweep(A, j)
        sets = []
        while len(chosen) < most:
            free = [j for j in range(d) if j not in chosen]
            new = next((j for j in free if A[j, j] > d * PERFECT), free[0])
            self.sweep(A, new)
            chosen = tuple(sorted((*chosen, new)))
            sets.append((chosen, self.unit * left))
        return sets


class FeatureSearch(SelectorMixin, Estimator):
    """Base class of the searches."""

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("cv", "fit_intercept"),
        "estimator": [has("fit", "predict"), None],
        "n_features_to_select": [count(), None],
        "lam": [at_least(0)],
        "scoring": [str, callable, None],
    }

    _constant_tags: ClassVar[dict[str, bool]] = {"target_tags.required": True, "input_tags.sparse": True}

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_features_to_select: int | None = None,
        lam: float = 0.0,
        scoring: Any = None,
        cv: Any = None,
        fit_intercept: bool = True,
    ) -> None:
        self.estimator = estimator
        self.n_features_to_select = n_features_to_select
        self.lam = lam
        self.scoring = scoring
        self.cv = cv
        self.fit_intercept = fit_intercept

    def transform(self, X: Any) -> Any:
        """The chosen columns of X; choosing none is valid and causes no warning."""
        check_indices(X)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="No features were selected")
            try:
                return super().transform(X)
            except CONVERSIONS as error:
                refuse_equal_names(error)
                raise

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Search. With weights, the learner's ``fit`` must take ``sample_weight``."""
        quick = self.estimator is None
        check_indices(X)
        X, y = validate_data(self, X, y, accept_sparse=ACCEPT_SPARSE, dtype=FLOATS, y_numeric=quick)
        X, weights = contiguous(X), check_weights(sample_weight, X)
        most = X.shape[1] if self.n_features_to_select is None else self.n_features_to_select
        if not 1 <= most <= X.shape[1]:
            raise ValueError(
                f"n_features_to_select must lie between 1 and the number of features, {X.shape[1]}; got {most!r}."
            )
        if quick:
            found = self._least_squares(
                LeastSquaresErrors(X, np.asarray(y, dtype=np.float64), weights, self.fit_intercept), most
            )
        else:
            found = self._generic(_Errors(self, X, y, weights), most)
        self.path_ = sorted((Subset(s, e, e + self.lam * len(s)) for s, e in found), key=lambda s: len(s.features))
        if self.n_features_to_select is None:
            chosen = min(self.path_, key=lambda s: s.objective)
        else:
            chosen = next(s for s in self.path_ if len(s.features) == most)
        self.support_ = np.zeros(X.shape[1], dtype=bool)
        self.support_[list(chosen.features)] = True
        self.n_features_, self.error_, self.objective_ = len(chosen.features), chosen.error, chosen.objective
        return self

    def _least_squares(self, errors: LeastSquaresErrors, most: int) -> Iterable[tuple[tuple[int, ...], float]]:
        raise NotImplementedError

    def _generic(self, errors: _Errors, most: int) -> Iterable[tuple[tuple[int, ...], float]]:
        raise NotImplementedError

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        return self.support_


class _Errors:
    """Errors of a learner on sets of features: its negative score on folds or on the training data."""

    def __init__(self, search: FeatureSearch, X: Any, y: np.ndarray, weights: np.ndarray | None) -> None:
        self.search, self.X, self.y, self.weights, self.d = search, X, y, weights, X.shape[1]
        self.scorer = check_scoring(search.estimator, scoring=search.scoring)
        if weights is not None and not has_fit_parameter(search.estimator, "sample_weight"):
            raise ValueError(f"sample_weight was given, but {type(search.estimator).__name__}.fit does not take it.")
        everything = np.arange(len(y))
        self.folds = [(everything, everything)]
        if search.cv is not None:
            self.folds = list(check_cv(search.cv, y, classifier=is_classifier(search.estimator)).split(X, y))

    def __call__(self, features: tuple[int, ...]) -> float:
        if not features:
            return self._without_features()
        part = self.X[:, list(features)]
        return -float(np.mean([self._score(part, train, test) for train, test in self.folds]))

    def _without_features(self) -> float:
        """The error of the best constant: the learner on a column of zeros, so that only its bias matters."""
        nothing = np.zeros((len(self.y), 1))
        return -float(np.mean([self._score(nothing, train, test) for train, test in self.folds]))

    def _score(self, part: Any, train: np.ndarray, test: np.ndarray) -> float:
        fitted, scored = ({} if self.weights is None else {"sample_weight": self.weights[at]} for at in (train, test))
        model = clone(self.search.estimator).fit(part[train], self.y[train], **fitted)
        return float(self.scorer(model, part[test], self.y[test], **scored))


_DOC = """

    Parameters
    ----------
    estimator : estimator, optional
        Any learner with ``fit`` and a score. Least squares if absent, with the mean squared error on the training data
        for every candidate from one Gram matrix.
    n_features_to_select : int, optional
        How many features to choose; if absent, as many as make error + λ·(number of features) least.
    lam : float
        λ, the price of a feature in units of the error.
    scoring : str or callable, optional
        A scikit-learn scorer (the error is minus the score); the estimator's own score if absent.
    cv : int, splitter or iterable, optional
        Folds to score on; the training data if absent.
    fit_intercept : bool
        Whether least squares has a bias.

    Attributes
    ----------
    support_ : array of bool
        The chosen features.
    path_ : list of Subset
        The sets that were considered best for their size, from small to large.
    n_features_, error_, objective_
        Of the chosen set.
"""


class ForwardSelector(FeatureSearch):
    __doc__ = f"""Forward selection: starts without features and adds the one that lowers the error most.
{_DOC}
    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.random.default_rng(0).normal(size=(50, 5))
    >>> hg.ForwardSelector(n_features_to_select=2).fit(X, X[:, 1] + X[:, 3]).support_
    array([False,  True, False,  True, False])
    """

    def _least_squares(self, errors: LeastSquaresErrors, most: int) -> Iterable[tuple[tuple[int, ...], float]]:
        return errors.forward(most)

    def _generic(self, errors: _Errors, most: int) -> Iterable[tuple[tuple[int, ...], float]]:
        chosen: tuple[int, ...] = ()
        yield chosen, errors(chosen)
        for _ in range(most):
            options = [tuple(sorted((*chosen, j))) for j in range(errors.d) if j not in chosen]
            scored = [(errors(option), option) for option in options]
            error, chosen = min(scored)
            yield chosen, error


class BackwardSelector(FeatureSearch):
    __doc__ = f"""Backward elimination: starts with all features and drops the one that raises the error least.
{_DOC}
    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.random.default_rng(0).normal(size=(50, 5))
    >>> hg.BackwardSelector(lam=0.01).fit(X, X[:, 1] + X[:, 3]).support_
    array([False,  True, False,  True, False])
    """

    def _least_squares(self, errors: LeastSquaresErrors, most: int) -> Iterable[tuple[tuple[int, ...], float]]:
        return errors.backward()

    def _generic(self, errors: _Errors, most: int) -> Iterable[tuple[tuple[int, ...], float]]:
        kept = tuple(range(errors.d))
        yield kept, errors(kept)
        least = 0 if self.n_features_to_select is None else most
        while len(kept) > least:
            error, kept = min(
                (errors(tuple(k for k in kept if k != j)), tuple(k for k in kept if k != j)) for j in kept
            )
            yield kept, error


class BestSubset(FeatureSearch):
    __doc__ = f"""The best set of features of every size: exactly, by branch and bound for least squares (up to
    {MOST_FEATURES} features), by trying all sets for other learners.
{_DOC}    nodes_ : int
        How many sets were looked at.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.random.default_rng(0).normal(size=(50, 5))
    >>> hg.BestSubset(n_features_to_select=2).fit(X, X[:, 1] + X[:, 3]).support_
    array([False,  True, False,  True, False])
    """

    def _least_squares(self, errors: LeastSquaresErrors, most: int) -> Iterable[tuple[tuple[int, ...], float]]:
        d = len(errors.matrix) - 1
        if d > MOST_FEATURES:
            raise ValueError(
                f"BestSubset searches up to {MOST_FEATURES} features, X has {d}; use ForwardSelector or Lasso."
            )
        found, self.nodes_ = errors.best(most)
        return found

    def _generic(self, errors: _Errors, most: int) -> Iterable[tuple[tuple[int, ...], float]]:
        self.nodes_ = sum(comb(errors.d, k) for k in range(most + 1))
        if self.nodes_ > MOST_SUBSETS:
            raise ValueError(
                f"BestSubset would have to fit {self.nodes_:,} models; lower n_features_to_select, or use ForwardSelector."
            )
        for k in range(most + 1):
            error, best = min((errors(s), s) for s in combinations(range(errors.d), k))
            yield best, error
