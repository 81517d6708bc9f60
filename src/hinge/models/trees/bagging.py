"""Bagging: the mean (or vote) of one learner fitted to many bootstrap samples."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from hinge._native import check_indices, core
from hinge._parameters import Constraints, Estimator, above, count, fraction, has, shared
from hinge._validation import numeric_targets, validate_data
from hinge.models.base import codes_among, take_input_tags, unique_codes
from hinge.models.meta import require_classifier, set_seeds
from hinge.models.routing import Arguments, consumes, route, router, routing_enabled, take_arguments
from hinge.models.trees.forest_base import sample_size
from hinge.models.trees.inputs import INT32, check_targets, is_frequency, order_of_rows, weights_of
from hinge.models.trees.members import Members
from hinge.models.trees.out_of_bag import forget_out_of_bag, out_of_bag_score, warn_of_few
from hinge.models.trees.tree import DecisionTreeClassifier, DecisionTreeRegressor


class BaseBagging(Members, Estimator):
    """What the classifier and the regressor share."""

    bags_: list[np.ndarray]
    estimators_features_: list[np.ndarray]
    _draws: list[np.ndarray]

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("bootstrap", "warm_start", "n_jobs", "random_state", "verbose"),
        "estimator": [has("fit", "predict"), None],
        "n_estimators": [count()],
        "max_samples": [count(), above(0), None],
        "max_features": [count(), fraction()],
        "bootstrap_features": ["boolean"],
        "oob_score": ["boolean", callable],
    }

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        max_samples: Any = None,
        max_features: Any = 1.0,
        bootstrap: bool = True,
        bootstrap_features: bool = False,
        oob_score: Any = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.max_features = max_features
        self.bootstrap = bootstrap
        self.bootstrap_features = bootstrap_features
        self.oob_score = oob_score
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        take_input_tags(tags, self._base())
        return tags

    def get_metadata_routing(self) -> Any:
        """The learner gets the arguments that it has requested for the method that is called for one of these."""
        return router(self, estimator=(self._base(), self._methods()))

    def _methods(self) -> dict[str, str]:
        """The learner's methods by those that call them."""
        return {"fit": "fit", "predict": "predict"}

    def _arguments(self, caller: str, given: Arguments) -> Arguments:
        """What the members get of the arguments of a method."""
        return dict(route(self, caller, given).estimator[self._methods()[caller]])

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Any:
        """Fit a copy of the learner to each bootstrap sample.

        Learners that take ``sample_weight`` are given every drawn row once with its count; the others get repeated
        rows. Whole-number weights are counts of rows; other weights multiply the counts. ``fit_params`` go to the
        learners, with metadata routing enabled.
        """
        arguments = self._arguments("fit", fit_params)
        y = check_targets(self, X, y, several=not isinstance(self, ClassifierMixin))
        X = _checked(self, X)
        weight = weights_of(sample_weight, X)
        codes = self._code(y)
        base = self._base()
        require_classifier(self, base)
        first = self._begin()
        if not self.oob_score:
            forget_out_of_bag(self)
        if first == self.n_estimators:
            warnings.warn("warm_start without a larger n_estimators adds no members.", UserWarning, stacklevel=2)
            return self
        seed, frequency = self._seed, is_frequency(weight)
        order = order_of_rows(_numbers(X), np.ascontiguousarray(codes, dtype=np.float64))
        total = int(weight.sum()) if frequency and weight is not None else X.shape[0]
        draws = sample_size(self.max_samples, total, replace=self.bootstrap)
        if routing_enabled():
            takes_weights = consumes(base, "fit", "sample_weight")
        else:
            takes_weights = has_fit_parameter(base, "sample_weight")
        if weight is not None and not frequency and not takes_weights:
            raise ValueError(
                f"{type(base).__name__} takes no sample_weight, so weights must be whole numbers (counts)."
            )
        if self.oob_score and not self.bootstrap and draws == total:
            raise ValueError("oob_score needs bootstrap=True or max_samples below all: else no row is out of the bag.")
        for t in range(first, self.n_estimators):
            if self.bootstrap:
                drawn = core.bootstrap(order, weight if frequency else None, draws, seed, t + 1)
            else:
                drawn = _without_replacement(order, weight if frequency else None, draws, (seed, t))
            bag = drawn if weight is None or frequency else drawn * weight
            self.bags_.append(np.flatnonzero(drawn > 0))
            self._draws.append(drawn[drawn > 0].astype(np.uint32))
            columns = self._columns(X.shape[1], (seed, t))
            self.estimators_features_.append(columns)
            lone = self._constant(codes, bag)
            if lone is not None:
                self.estimators_.append(lone)
                continue
            member = clone(base)
            set_seeds(member, (seed + t) % INT32)
            rows = np.flatnonzero(bag > 0) if takes_weights else np.repeat(np.arange(X.shape[0]), bag.astype(int))
            weights = {"sample_weight": bag[rows]} if takes_weights else {}
            more = take_arguments(X, arguments, rows)
            member.fit(_cut(_safe_indexing(X, rows), columns), codes[rows], **weights, **more)
            self.estimators_.append(member)
        if self.oob_score:
            self._out_of_bag(X, codes, weight)
        return self

    def _begin(self) -> int:
        """How many members there are already; without ``warm_start`` none are kept."""
        if not self.warm_start or not hasattr(self, "estimators_"):
            self._seed = int(check_random_state(self.random_state).randint(INT32))
            self.estimators_, self.bags_, self._draws, self.estimators_features_ = [], [], [], []
        if self.n_estimators < len(self.estimators_):
            raise ValueError(
                f"n_estimators={self.n_estimators} must be at least the {len(self.estimators_)} members there are, or "
                "warm_start=False."
            )
        return len(self.estimators_)

    @property
    def estimator_(self) -> Any:
        """The learner of which copies are fitted."""
        return self._base()

    @property
    def estimators_samples_(self) -> list[np.ndarray]:
        """The rows drawn for each member, as often as they were drawn."""
        check_is_fitted(self)
        return [np.repeat(bag, draws) for bag, draws in zip(self.bags_, self._draws)]

    def _columns(self, d: int, seed: tuple[int, int]) -> np.ndarray:
        """The features a member sees."""
        if isinstance(self.max_features, (int, np.integer)):
            count = int(self.max_features)
        else:
            count = max(1, int(self.max_features * d))
        if not 1 <= count <= d or not self.max_features > 0:
            raise ValueError(f"max_features must be between 1 and {d}, or a fraction up to 1; got {self.max_features}.")
        if count == d and not self.bootstrap_features:
            return np.arange(d)
        return np.sort(np.random.default_rng([1, *seed]).choice(d, count, replace=self.bootstrap_features))

    def _constant(self, codes: np.ndarray, bag: np.ndarray) -> Any:
        """A member for bags no learner can be fitted to; only classifiers have them."""
        return None

    def _out_of_bag(self, X: Any, y: np.ndarray, weight: Any) -> None:
        n = X.shape[0]
        sums, count = np.zeros((n, self._outputs())), np.zeros(n)
        for member, bag, columns in zip(self.estimators_, self.bags_, self.estimators_features_):
            out = np.setdiff1d(np.arange(n), bag)
            if len(out):
                sums[out] += self._output(member, _cut(_safe_indexing(X, out), columns), {})
                count[out] += 1
        covered = count > 0
        with np.errstate(invalid="ignore"):
            mean = sums / count[:, None]
        warn_of_few(covered, "estimators")
        self._set_out_of_bag(mean, y, covered, None if weight is None else weight[covered])

    def _mean(self, X: Any, caller: str, given: Arguments) -> np.ndarray:
        arguments = self._arguments(caller, given)
        return sum(self._output(member, part, arguments) for member, part in self._parts(X)) / len(self.estimators_)

    def _parts(self, X: Any) -> Iterator[tuple[Any, Any]]:
        """The members, each with the columns of X that it sees."""
        check_is_fitted(self)
        X = _checked(self, X, reset=False)
        for member, columns in zip(self.estimators_, self.estimators_features_):
            yield member, _cut(X, columns)


@dataclass(frozen=True)
class OneClass:
    """Says the same class for every row: the member for a bag that holds one class only."""

    classes_: np.ndarray

    def predict_proba(self, X: Any, **arguments: Any) -> np.ndarray:
        return np.ones((X.shape[0], 1))

    def predict_log_proba(self, X: Any, **arguments: Any) -> np.ndarray:
        return np.zeros((X.shape[0], 1))


def _without_replacement(order: np.ndarray, counts: Any, draws: int, seed: tuple[int, int]) -> np.ndarray:
    """How often each row is drawn: equal rows in any order, and a row of count 2 like two rows, give the same draws."""
    counts = np.ones(len(order)) if counts is None else counts
    copies = np.repeat(order, counts[order].astype(int))
    picked = np.random.default_rng([0, *seed]).permutation(len(copies))[:draws]
    return np.bincount(copies[picked], minlength=len(order)).astype(np.float64)


def _cut(X: Any, columns: np.ndarray) -> Any:
    return X if np.array_equal(columns, np.arange(X.shape[1])) else X[:, columns]


def _numbers(X: Any) -> np.ndarray:
    """X as floats, to identify rows by their contents."""
    return np.ascontiguousarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


def _checked(estimator: Any, X: Any, reset: bool = True) -> Any:
    check_indices(X)
    # Whether X may hold infinite values is for the members to decide.
    return validate_data(estimator, X, reset=reset, accept_sparse=("csr", "csc"), ensure_all_finite=False)


class BaggingClassifier(ClassifierMixin, BaseBagging):
    """The vote of a classifier fitted to bootstrap samples: mean probabilities, or counted labels.

    Parameters
    ----------
    estimator : classifier, optional
        Any classifier; ``DecisionTreeClassifier()`` by default.
    n_estimators : int
        How many members.
    max_samples : int or float, optional
        Draws per sample; as many as there are rows by default.
    max_features : int or float
        Features per member: how many, or what share.
    bootstrap : bool
        Draw rows with replacement; otherwise without.
    bootstrap_features : bool
        Draw features with replacement; otherwise without.
    oob_score : bool or callable
        Judge each row by the members that did not see it: ``oob_decision_function_`` and ``oob_score_`` (accuracy, or
        the value of ``oob_score(y, predicted)``).
    random_state : int, RandomState or None
        The same seed gives the same fit, whatever the number of threads.
    warm_start : bool
        Fit again with a larger ``n_estimators``: the members there are stay, and the rest are added.
    n_jobs, verbose
        Accepted for compatibility; threads are set by ``hinge.set_num_threads``.

    Attributes
    ----------
    estimators_ : list of fitted learners
    estimators_samples_ : list of arrays
        The rows drawn for each, with repetitions.
    bags_ : list of arrays
        The rows each learner saw (about 63.2 % of all).
    estimators_features_ : list of arrays
        The features each learner saw.
    classes_ : array

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.arange(40.0)[:, None]
    >>> y = (X[:, 0] > 20).astype(int)
    >>> hg.BaggingClassifier(random_state=0).fit(X, y).predict([[3.0], [33.0]])
    array([0, 1])
    """

    classes_: np.ndarray

    def _base(self) -> Any:
        return DecisionTreeClassifier() if self.estimator is None else self.estimator

    def _code(self, y: np.ndarray) -> np.ndarray:
        if self.warm_start and hasattr(self, "estimators_"):
            return codes_among(self.classes_, y)
        self.classes_, codes = unique_codes(y)
        self.n_classes_ = len(self.classes_)
        return codes

    def _constant(self, codes: np.ndarray, bag: np.ndarray) -> OneClass | None:
        present = np.unique(codes[bag > 0])
        return OneClass(present[:1]) if len(present) == 1 else None

    def _outputs(self) -> int:
        return len(self.classes_)

    def _methods(self) -> dict[str, str]:
        shares = "predict_proba" if hasattr(self._base(), "predict_proba") else "predict"
        logs = "predict_log_proba" if hasattr(self._base(), "predict_log_proba") else shares
        by_shares = {"predict": shares, "predict_proba": shares, "predict_log_proba": logs}
        return {"fit": "fit", "decision_function": "decision_function", **by_shares}

    def _output(self, member: Any, X: Any, arguments: Arguments) -> np.ndarray:
        out = np.zeros((X.shape[0], len(self.classes_)))
        if callable(getattr(member, "predict_proba", None)):
            out[:, member.classes_] = member.predict_proba(X, **arguments)  # a bag may lack a class
        else:
            out[np.arange(len(out)), member.predict(X, **arguments)] = 1.0
        return out

    def _set_out_of_bag(self, mean: np.ndarray, y: np.ndarray, covered: np.ndarray, weight: Any) -> None:
        self.oob_decision_function_ = mean
        predicted, truth = self.classes_[np.argmax(mean[covered], axis=1)], self.classes_[y[covered]]
        self.oob_score_ = out_of_bag_score(self.oob_score, truth, predicted, weight, classes=True)

    def predict_proba(self, X: Any, **params: Any) -> np.ndarray:
        """Mean probabilities, or shares of votes; ``params`` go to the learners, with metadata routing enabled."""
        return self._mean(X, "predict_proba", params)

    def predict_log_proba(self, X: Any, **params: Any) -> np.ndarray:
        """The logarithms of the mean probabilities, from those of the learners where they have them."""
        if not hasattr(self._base(), "predict_log_proba"):
            with np.errstate(divide="ignore"):
                return np.log(self._mean(X, "predict_log_proba", params))
        arguments, total = self._arguments("predict_log_proba", params), np.array(-np.inf)
        for member, part in self._parts(X):
            logs = np.full((part.shape[0], len(self.classes_)), -np.inf)
            logs[:, member.classes_] = member.predict_log_proba(part, **arguments)
            total = np.logaddexp(total, logs)
        return total - np.log(len(self.estimators_))

    @available_if(lambda self: hasattr(self._base(), "decision_function"))
    def decision_function(self, X: Any, **params: Any) -> np.ndarray:
        """The mean of the members' scores, for learners that have them."""
        check_is_fitted(self)
        arguments = self._arguments("decision_function", params)
        lacking = [m for m in self.estimators_ if len(m.classes_) < len(self.classes_)]
        if lacking:
            raise ValueError(
                f"{len(lacking)} of the samples lack a class, so their scores cannot be averaged; use predict_proba."
            )
        scores = (member.decision_function(part, **arguments) for member, part in self._parts(X))
        return sum(scores) / len(self.estimators_)

    def predict(self, X: Any, **params: Any) -> np.ndarray:
        """The class with the largest share; ``params`` go to the learners, with metadata routing enabled."""
        shares = self._mean(X, "predict", params)
        return self.classes_[np.argmax(shares, axis=1)]


class BaggingRegressor(RegressorMixin, BaseBagging):
    """The mean of a regressor fitted to bootstrap samples.

    Parameters
    ----------
    estimator : regressor, optional
        Any regressor; ``DecisionTreeRegressor()`` by default.
    n_estimators, max_samples, max_features, bootstrap, bootstrap_features, oob_score, random_state, warm_start, n_jobs,
    verbose
        As for :class:`BaggingClassifier`; ``oob_prediction_`` and ``oob_score_`` (R²).

    Attributes
    ----------
    estimators_ : list of fitted learners
    bags_ : list of arrays
        The rows each learner saw.
    estimators_features_ : list of arrays
        The features each learner saw.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.arange(40.0)[:, None]
    >>> bool(hg.BaggingRegressor(random_state=0).fit(X, X[:, 0]).score(X, X[:, 0]) > 0.9)
    True
    """

    def _base(self) -> Any:
        return DecisionTreeRegressor() if self.estimator is None else self.estimator

    n_outputs_: int

    def _code(self, y: np.ndarray) -> np.ndarray:
        self.n_outputs_ = 1 if y.ndim == 1 else y.shape[1]
        return numeric_targets(y)

    def _outputs(self) -> int:
        return self.n_outputs_

    def _output(self, member: Any, X: Any, arguments: Arguments) -> np.ndarray:
        return np.asarray(member.predict(X, **arguments), dtype=np.float64).reshape(X.shape[0], -1)

    def _flat(self, means: np.ndarray) -> np.ndarray:
        return means[:, 0] if self.n_outputs_ == 1 else means

    def _set_out_of_bag(self, mean: np.ndarray, y: np.ndarray, covered: np.ndarray, weight: Any) -> None:
        self.oob_prediction_ = self._flat(mean)
        predicted = self.oob_prediction_[covered]
        self.oob_score_ = out_of_bag_score(self.oob_score, y[covered], predicted, weight, classes=False)

    def predict(self, X: Any, **params: Any) -> np.ndarray:
        """The mean of the members' predictions; ``params`` go to the learners, with metadata routing enabled."""
        return self._flat(self._mean(X, "predict", params))
