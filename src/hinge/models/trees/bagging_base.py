"""Base class of bagging: samples of rows and features, with one learner on each."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from hinge._native import check_indices, core
from hinge._parameters import Constraints, Estimator, above, count, fraction, has, shared
from hinge._validation import validate_data
from hinge.models.base import take_input_tags
from hinge.models.meta import require_classifier, set_seeds
from hinge.models.routing import Arguments, consumes, route, router, routing_enabled, take_arguments
from hinge.models.trees.forest_base import sample_size
from hinge.models.trees.inputs import INT32, check_targets, is_frequency, order_of_rows, weights_of
from hinge.models.trees.members import Members
from hinge.models.trees.out_of_bag import forget_out_of_bag, warn_of_few


class BaseBagging(Members, Estimator):
    """Base class of the classifier and the regressor."""

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
        """Route to the learner the arguments that it has requested for the methods that these call."""
        return router(self, estimator=(self._base(), self._methods()))

    def _methods(self) -> dict[str, str]:
        """The methods of the learner by the methods that call them."""
        return {"fit": "fit", "predict": "predict"}

    def _arguments(self, caller: str, given: Arguments) -> Arguments:
        """The arguments of a method that are passed to the members."""
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
        """The number of members of an earlier fit; zero without ``warm_start``."""
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
        """The learner that is cloned and fitted."""
        return self._base()

    @property
    def estimators_samples_(self) -> list[np.ndarray]:
        """The rows drawn for each member, with repetitions."""
        check_is_fitted(self)
        return [np.repeat(bag, draws) for bag, draws in zip(self.bags_, self._draws)]

    def _columns(self, d: int, seed: tuple[int, int]) -> np.ndarray:
        """The features of a member."""
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
        """A member for bags that no learner can be fitted to; only classifiers need one."""
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
        """The members, each with its columns of X."""
        check_is_fitted(self)
        X = _checked(self, X, reset=False)
        for member, columns in zip(self.estimators_, self.estimators_features_):
            yield member, _cut(X, columns)


@dataclass(frozen=True)
class OneClass:
    """Predicts the same class for every row: the member of a bag with a single class."""

    classes_: np.ndarray

    def predict_proba(self, X: Any, **arguments: Any) -> np.ndarray:
        return np.ones((X.shape[0], 1))

    def predict_log_proba(self, X: Any, **arguments: Any) -> np.ndarray:
        return np.zeros((X.shape[0], 1))


def _without_replacement(order: np.ndarray, counts: Any, draws: int, seed: tuple[int, int]) -> np.ndarray:
    """The counts of a bootstrap sample. They do not depend on the order of rows, and a row of count 2 equals two rows."""
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
    # Infinite values are allowed here: the members check them.
    return validate_data(estimator, X, reset=reset, accept_sparse=("csr", "csc"), ensure_all_finite=False)
