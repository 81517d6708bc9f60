"""AdaBoost: a weighted vote of classifiers, each fitted to the mistakes of the previous ones."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.base import ClassifierMixin, clone
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import check_is_fitted, column_or_1d, has_fit_parameter

from hinge._native import check_indices, core
from hinge._parameters import Constraints, Estimator, above, count, has, shared
from hinge._validation import validate_data
from hinge.models.base import LogProba, take_input_tags, unique_codes
from hinge.models.meta import require_classifier, set_seeds
from hinge.models.trees.arrays import Trees
from hinge.models.trees.inputs import INT32, check_targets, weights_of
from hinge.models.trees.limits import feature_count
from hinge.models.trees.members import Members
from hinge.models.trees.tree import DecisionTreeClassifier
from hinge.problem.numerics import weighted_sum


class AdaBoostClassifier(Members, LogProba, ClassifierMixin, Estimator):
    """AdaBoost (SAMME for more than two classes) over any classifier that takes weights.

    Minimises  Σ wᵢ exp(−yᵢ F(xᵢ))  stage by stage, F = Σ_t v_t h_t with h_t(x) = ±1: each round fits h_t to the weights
    wᵢ exp(−yᵢ F(xᵢ)), with weighted error ε, and takes v = α/2, α = η (ln((1 − ε)/ε) + ln(k − 1)) for k classes.

    Parameters
    ----------
    estimator : classifier, optional
        Any classifier whose ``fit`` takes ``sample_weight``; a tree of depth 1 by default.
    n_estimators : int
        The most rounds; fewer if a member is perfect or no better than chance.
    learning_rate : float
        The shrinkage η.
    random_state : int, RandomState or None
        The same seed gives the same fit, whatever the number of threads.

    Attributes
    ----------
    estimators_ : list of fitted classifiers
    estimator_weights_ : array
        The α of each.
    estimator_errors_ : array
        The weighted error ε of each.
    feature_importances_ : array
        The mean of the members' importances, weighted by their α.
    exponential_loss_ : array
        Σ wᵢ exp(−yᵢ F(xᵢ)) / Σ wᵢ after each round (two classes): it never rises.
    classes_ : array

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.arange(12.0)[:, None]
    >>> y = np.array([0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1])
    >>> hg.AdaBoostClassifier(n_estimators=20).fit(X, y).score(X, y)
    1.0
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("random_state"),
        "estimator": [has("fit", "predict"), None],
        "n_estimators": [count()],
        "learning_rate": [above(0)],
    }

    def __init__(
        self, estimator: Any = None, *, n_estimators: int = 50, learning_rate: float = 1.0, random_state: Any = 0
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        take_input_tags(tags, self._base())
        return tags

    def _base(self) -> Any:
        return DecisionTreeClassifier(max_depth=1) if self.estimator is None else self.estimator

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Add members until there are ``n_estimators`` or one is perfect or useless."""
        y = check_targets(self, X, y)
        base = self._base()
        require_classifier(self, base)
        if not has_fit_parameter(base, "sample_weight"):
            raise ValueError(
                f"{type(base).__name__} doesn't support sample_weight, which the estimator of AdaBoostClassifier must take."
            )
        X = checked_table(self, X)
        weight = weights_of(sample_weight, X)
        if weight is not None:
            keep = np.flatnonzero(weight > 0)
            X, y, weight = X[keep], y[keep], weight[keep]
        self.classes_, codes = unique_codes(y)
        self.n_classes_ = len(self.classes_)
        of_trees = isinstance(base, DecisionTreeClassifier)
        rounds = (_ClassTreeRounds if of_trees and base.class_weight is None else Rounds)(base, X, codes)
        self._boost(rounds, codes, np.ones(len(codes)) if weight is None else weight)
        self._trees = self._merge() if of_trees else None
        return self

    @property
    def estimator_(self) -> Any:
        """The base learner, which is cloned for each round."""
        return self._base()

    @property
    def feature_importances_(self) -> np.ndarray:
        return mean_importances(self)

    def _boost(self, rounds: Any, y: np.ndarray, weight: np.ndarray) -> None:
        k, start = len(self.classes_), weight / weight.sum()
        random = check_random_state(self.random_state)
        w = start.copy()
        log_w = np.log(start)  # logarithms, because products over many rounds would underflow or overflow
        self.estimators_: list[Any] = []
        alphas: list[float] = []
        errors: list[float] = []
        losses: list[float] = []
        for _ in range(self.n_estimators):
            member, predicted = rounds.fit(w, int(random.randint(INT32)))
            miss = predicted != y
            error = float(weighted_sum(w, miss))
            if error <= 0 and self.estimators_:
                # With a perfect member nothing is left to learn, and it alone makes the predictions.
                self.estimators_, alphas, errors, losses = [member], [1.0], [0.0], losses
                break
            if k > 1 and error >= 1.0 - 1.0 / k - 1e-12:
                if not self.estimators_:
                    raise ValueError(
                        f"The first member of AdaBoostClassifier is worse than random: it is wrong on {error:.3g} of the "
                        f"weight, with {k} classes. Use an estimator that can tell them apart."
                    )
                break
            floor = np.finfo(float).eps
            alpha = self.learning_rate * (
                np.log(max(1.0 - error, floor) / max(error, floor)) + np.log(max(k - 1.0, 1.0))
            )
            self.estimators_.append(member)
            alphas.append(float(alpha))
            errors.append(error)
            if error <= 0:
                break
            log_w += alpha * miss
            largest = log_w.max()
            w = np.exp(log_w - largest)
            total = w.sum()
            if k == 2:
                # Σ w₀ exp(−y F) with F = ½ Σ α h: the log-weights are log w₀ + Σ α·[miss] = log w₀ − yF + ½ Σ α.
                losses.append(float(total * np.exp(largest - 0.5 * np.sum(alphas))))
            w /= total
        self.estimator_weights_, self.estimator_errors_ = np.array(alphas), np.array(errors)
        self.exponential_loss_ = np.array(losses)

    def _merge(self) -> Trees:
        """All members as one ensemble whose leaves have the value α for their class."""
        grown = []
        for member, alpha in zip(self.estimators_, self.estimator_weights_):
            tree = member.trees_
            predicted = np.argmax(tree.value, axis=1)
            names = ("feature", "threshold", "left", "missing_left", "set", "sets")
            if len(self.classes_) == 2:
                value = np.where(predicted == 1, 0.5, -0.5)[:, None] * alpha
            else:
                value = np.eye(len(self.classes_))[predicted] * alpha
            grown.append({n: getattr(tree, n) for n in names} | {"value": value})
        two = len(self.classes_) == 2
        return Trees.stack(grown, 1 if two else len(self.classes_), additive=two, details=False)

    def _votes(self, X: Any, members: int | None = None) -> np.ndarray:
        """Σ α over the members that predict each class (for trees and two classes only the score F)."""
        if self._trees is not None:
            return self._trees.sums(self.estimators_[0]._table(X), 0, members)
        votes = np.zeros((X.shape[0], len(self.classes_)))
        for member, alpha in zip(self.estimators_[:members], self.estimator_weights_):
            votes[np.arange(len(votes)), member.predict(X)] += alpha
        return votes

    def _scores(self, X: Any, members: int | None = None) -> np.ndarray:
        votes = self._votes(X, members)
        if len(self.classes_) == 2:
            if votes.shape[1] == 1:
                return votes[:, 0]
            return 0.5 * (votes[:, 1] - votes[:, 0])
        return votes - votes.mean(axis=1, keepdims=True)

    def decision_function(self, X: Any) -> np.ndarray:
        """F(x) = ½ Σ α_t h_t(x) for two classes; Σ α_t over the members that predict each class (centred) otherwise."""
        check_is_fitted(self)
        return self._scores(checked_table(self, X, reset=False))

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probabilities for which these scores minimise the exponential loss: sigmoid(2F), softmax."""
        return _probabilities(self.decision_function(X))

    def _labels(self, s: np.ndarray) -> np.ndarray:
        return self.classes_[(s > 0).astype(int) if s.ndim == 1 else np.argmax(s, axis=1)]

    def predict(self, X: Any) -> np.ndarray:
        """The class with the largest weighted vote."""
        return self._labels(self.decision_function(X))

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Scores after each round."""
        check_is_fitted(self)
        X = checked_table(self, X, reset=False)
        for members in range(1, len(self.estimators_) + 1):
            yield self._scores(X, members)

    def staged_predict_proba(self, X: Any) -> Iterator[np.ndarray]:
        """Probabilities after each round."""
        return map(_probabilities, self.staged_decision_function(X))

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Predictions after each round."""
        return map(self._labels, self.staged_decision_function(X))

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
        """Accuracy after each round."""
        for predicted in self.staged_predict(X):
            yield float(np.average(predicted == np.asarray(y), weights=sample_weight))

    def margins(self, X: Any, y: Any) -> np.ndarray:
        """γ(x) = (vote for the true class − best other vote) / Σ α, between −1 and 1: positive if the prediction is right."""
        check_is_fitted(self)
        X = checked_table(self, X, reset=False)
        codes = np.searchsorted(self.classes_, column_or_1d(y))
        s, total = self._scores(X), np.sum(np.abs(self.estimator_weights_))
        if s.ndim == 1:
            return np.where(codes == 1, 2.0 * s, -2.0 * s) / total
        rows = np.arange(len(s))
        right = s[rows, codes]
        s = s.copy()
        s[rows, codes] = -np.inf
        return (right - s.max(axis=1)) / total

    def plot_margins(self, X: Any, y: Any, ax: Any = None) -> Any:
        """The distribution function of the margins: the fraction of rows with a margin of at most γ."""
        import matplotlib.pyplot as plt

        ax = plt.subplots()[1] if ax is None else ax
        margins = np.sort(self.margins(X, y))
        ax.step(margins, np.arange(1, len(margins) + 1) / len(margins), where="post")
        ax.axvline(0.0, color="0.6", linewidth=0.8)
        ax.set(xlabel="margin", ylabel="share of examples", title=f"{len(self.estimators_)} members")
        return ax


def _probabilities(s: np.ndarray) -> np.ndarray:
    from hinge.problem.losses import Exponential, Softmax

    if s.ndim == 2:
        return Softmax().inverse_link(s)
    p = Exponential().inverse_link(s)
    return np.column_stack([1.0 - p, p])


def mean_importances(model: Any) -> np.ndarray:
    """The mean of the members' importances, weighted by ``estimator_weights_``."""
    check_is_fitted(model)
    if not hasattr(model.estimators_[0], "feature_importances_"):
        raise AttributeError(f"{type(model.estimators_[0]).__name__} has no feature_importances_ to take the mean of.")
    return np.average([m.feature_importances_ for m in model.estimators_], axis=0, weights=model.estimator_weights_)


def checked_table(estimator: Any, X: Any, reset: bool = True) -> Any:
    check_indices(X)
    return validate_data(
        estimator, X, reset=reset, accept_sparse=("csr", "csc"), ensure_all_finite="allow-nan",
        dtype=[np.float64, np.float32], allow_nd=True,
    )  # fmt: skip


class Rounds:
    """Fits clones of any learner to changing weights."""

    def __init__(self, base: Any, X: Any, y: np.ndarray) -> None:
        self.base, self.X, self.y = base, X, y

    def _new(self, seed: int) -> Any:
        member = clone(self.base)
        set_seeds(member, seed)
        return member

    def fit(self, weight: np.ndarray, seed: int) -> tuple[Any, np.ndarray]:
        member = self._new(seed)
        member.fit(self.X, self.y, sample_weight=weight)
        return member, member.predict(self.X)


class DrawnRounds(Rounds):
    """The same for learners without weights: rows are resampled in proportion to them (Drucker 1997)."""

    def fit(self, weight: np.ndarray, seed: int) -> tuple[Any, np.ndarray]:
        member = self._new(seed)
        rows = np.random.default_rng(seed).choice(len(self.y), len(self.y), p=weight)
        member.fit(_safe_indexing(self.X, rows), self.y[rows])
        return member, member.predict(self.X)


class TreeRounds(Rounds):
    """The same for trees, whose columns are sorted once for all rounds."""

    def __init__(self, base: Any, X: Any, y: np.ndarray) -> None:
        super().__init__(base, X, y)
        self.template = clone(base)
        self.template._validate_params()
        self.table = self.template.prepare(X)
        self.template.n_outputs_ = 1

    def _grow(self, member: Any, weight: np.ndarray) -> np.ndarray:
        """Grow the tree; returns its outputs for all rows."""
        member.fit_prepared(self.table, self.y, weight)
        return member.trees_.sums(self.table.X)

    def fit(self, weight: np.ndarray, seed: int) -> tuple[Any, np.ndarray]:
        member = copy.copy(self.template)  # unfitted, but with the coding of its table
        member.random_state = seed
        return member, self._grow(member, weight)[:, 0]


class _ClassTreeRounds(TreeRounds):
    """The same for classes."""

    def __init__(self, base: DecisionTreeClassifier, X: Any, codes: np.ndarray) -> None:
        super().__init__(base, X, codes)
        self.template.classes_ = np.unique(codes)
        self.template.n_classes_ = len(self.template.classes_)
        self.stumps = self._make_stumps()

    def _make_stumps(self) -> Any:
        """The fast search for a stump for two classes, or None for other members."""
        base, d = self.template, self.table.X.shape[1]
        plain = base.max_depth == 1 and base.splitter == "best" and base.monotonic_cst is None
        if not plain or base.n_classes_ != 2 or feature_count(base.max_features, d) < d:
            return None
        if self.table.missing.any() or base._coder.columns or scipy.sparse.issparse(self.table.X):
            return None
        return core.TreeStumps(self.table.native, np.ascontiguousarray(self.y, dtype=np.float64))

    def fit(self, weight: np.ndarray, seed: int) -> tuple[Any, np.ndarray]:
        member = copy.copy(self.template)
        member.random_state = seed
        if self.stumps is not None and np.all(weight > 0):  # rows of weight zero must not affect cuts
            grown, predicted = self.stumps.grow(weight, member.options_for(self.table, weight))
            return member.keep(grown, self.table), predicted
        return member, np.argmax(self._grow(member, weight), axis=1)
