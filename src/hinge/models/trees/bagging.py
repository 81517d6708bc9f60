"""Bagging: the mean (or vote) of one learner fitted to many bootstrap samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from hinge._validation import numeric_targets
from hinge.models.base import codes_among, unique_codes
from hinge.models.routing import Arguments
from hinge.models.trees.bagging_base import BaseBagging, OneClass
from hinge.models.trees.out_of_bag import out_of_bag_score
from hinge.models.trees.tree import DecisionTreeClassifier, DecisionTreeRegressor


class BaggingClassifier(ClassifierMixin, BaseBagging):
    """The vote of a classifier fitted to bootstrap samples: mean probabilities, or counts of predicted labels.

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
            out[:, member.classes_] = member.predict_proba(X, **arguments)  # a class may be missing from a bag
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
