"""Voting: a combined prediction of different estimators fitted to the same examples."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils._user_interface import _print_elapsed_time
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from hinge._parameters import Constraints, numbers, one_of, shared
from hinge.models.base import code_labels
from hinge.models.committee.named import NamedMembers
from hinge.models.meta import check_passed_on, fit_part, label_columns
from hinge.models.routing import Arguments

Array = NDArray[np.float64]


class BaseVoting(NamedMembers):
    """Base of the classifier and the regressor."""

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("n_jobs", "verbose"),
        "estimators": [list],
        "weights": [numbers(0.0, flat=True), None],
    }

    def __init__(
        self,
        estimators: list[tuple[str, Any]],
        *,
        weights: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.estimators = estimators
        self.weights = weights
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fit_members(self, X: Any, y: np.ndarray, weight: Array | None, arguments: dict[str, Arguments]) -> None:
        members = self._members()
        if self.weights is not None:
            if len(self.weights) != len(self.estimators):
                raise ValueError(
                    "Number of `estimators` and weights must be equal; got "
                    f"{len(self.weights)} weights, {len(self.estimators)} estimators"
                )
            if not np.any(self._shares() > 0):
                raise ValueError("weights are zero for all members; one must be greater than zero.")
        self.estimators_ = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(_fit_member)(
                member, X, y, weight, arguments[name],
                f"({i} of {len(members)}) Processing {name}" if self.verbose else None,
            )
            for i, (name, member) in enumerate(members, 1)
        )  # fmt: skip

    def _shares(self) -> Array:
        """The weights of the members that are not dropped."""
        if self.weights is None:
            return np.ones(len(self._members()))
        names = {name for name, _ in self._members()}
        return np.array([w for w, (name, _) in zip(self.weights, self.estimators) if name in names], dtype=np.float64)


class VotingClassifier(ClassifierMixin, BaseVoting):
    """A majority or probability vote of several classifiers.

    Hard:  argmax_c Σ_m w_m 1[f_m(x) = c].  Soft:  argmax_c Σ_m w_m P_m(y = c | x) / Σ_m w_m.

    Parameters
    ----------
    estimators : list of (str, classifier)
        The members; any classifier of hinge or scikit-learn. "drop" leaves one out.
    voting : {"hard", "soft"}
        Count labels, or average probabilities.
    weights : array of one number ≥ 0 per member, optional
        The weights w_m, equal by default.
    n_jobs : int, optional
        How many members are fitted at once (threads).
    flatten_transform : bool
        With soft voting, whether ``transform`` returns one table of shape (n, members · classes) or an array of shape
        (members, n, classes).
    verbose : bool
        Whether to print the time that each member takes.

    Attributes
    ----------
    estimators_ : list of fitted classifiers
        They are fitted to the labels coded as 0 … k−1.
    named_estimators_ : Bunch
        The same by name.
    classes_ : array of labels

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> members = [("linear", hg.LogisticRegression()), ("bayes", hg.GaussianNB())]
    >>> model = hg.VotingClassifier(members, voting="soft").fit(X, ["a", "a", "b", "b"])
    >>> model.predict([[0.2], [2.9]])
    array(['a', 'b'], dtype='<U1')
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "voting": [one_of("hard", "soft")],
        "flatten_transform": ["boolean"],
    }

    def __init__(
        self,
        estimators: list[tuple[str, Any]],
        *,
        voting: str = "hard",
        weights: Any = None,
        n_jobs: int | None = None,
        flatten_transform: bool = True,
        verbose: bool = False,
    ) -> None:
        super().__init__(estimators, weights=weights, n_jobs=n_jobs, verbose=verbose)
        self.voting = voting
        self.flatten_transform = flatten_transform

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> VotingClassifier:
        """Fit every member to all examples; a weight of 2 means the same as having the example twice.

        With metadata routing enabled the members get those of ``fit_params`` that they have requested.
        """
        weight, arguments = self._fit_arguments(X, sample_weight, fit_params)
        if label_columns(y) > 1:
            raise NotImplementedError(
                "Multilabel and multi-output classification is not supported: y has two dimensions."
            )
        X, y = check_passed_on(self, X, y)
        self._fit_members(X, code_labels(self, y), weight, arguments)
        return self

    @property
    def _soft(self) -> bool:
        if self.voting != "soft":
            raise AttributeError(f"predict_proba is not available when voting={self.voting!r}; use voting='soft'.")
        return True

    def _votes(self, X: Any) -> NDArray[np.intp]:
        """The code of the class that each member predicts, one column per member."""
        check_is_fitted(self)
        return np.column_stack([member.predict(X) for member in self.estimators_]).astype(np.intp)

    def _probabilities(self, X: Any) -> Array:
        check_is_fitted(self)
        return np.stack([member.predict_proba(X) for member in self.estimators_])

    @available_if(lambda self: self._soft)
    def predict_proba(self, X: Any) -> Array:
        """The weighted mean of the members' probabilities; only with soft voting."""
        return np.average(self._probabilities(X), axis=0, weights=self._shares())

    def predict(self, X: Any) -> np.ndarray:
        """The class with most of the votes, or of the highest mean probability; the first of several."""
        check_is_fitted(self)
        if self.voting == "soft":
            return self.classes_[np.argmax(self.predict_proba(X), axis=1)]
        votes, k = self._votes(X), len(self.classes_)
        cells = np.arange(len(votes))[:, None] * k + votes
        shares = np.broadcast_to(self._shares(), votes.shape)
        counts = np.bincount(cells.ravel(), shares.ravel(), len(votes) * k).reshape(len(votes), k)
        return self.classes_[np.argmax(counts, axis=1)]

    def transform(self, X: Any) -> np.ndarray:
        """The predictions of every member: class codes (n × members), or probabilities with soft voting."""
        if self.voting == "hard":
            return self._votes(X)
        each = self._probabilities(X)
        return np.hstack(list(each)) if self.flatten_transform else each

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns of ``transform``."""
        check_is_fitted(self)
        if self.voting == "soft" and not self.flatten_transform:
            raise ValueError(
                "get_feature_names_out is not supported when `voting='soft'` and `flatten_transform=False`: transform "
                "returns an array of three dimensions."
            )
        width = len(self.classes_) if self.voting == "soft" else 1
        return self._own_feature_names("votingclassifier", [width] * len(self.estimators_))


class VotingRegressor(RegressorMixin, BaseVoting):
    """The weighted mean of several regressors, f(x) = Σ_m w_m f_m(x) / Σ_m w_m.

    Its squared error is the mean of the members' squared errors minus their spread, Σ_m w_m (f_m − f)² / Σ_m w_m.

    Parameters
    ----------
    estimators : list of (str, regressor)
        The members; any regressor of hinge or scikit-learn. "drop" leaves one out.
    weights, n_jobs, verbose
        As for :class:`VotingClassifier`.

    Attributes
    ----------
    estimators_ : list of fitted regressors
    named_estimators_ : Bunch
        The same by name.

    Examples
    --------
    >>> import hinge as hg
    >>> members = [("line", hg.LinearRegression()), ("mean", hg.DecisionTreeRegressor(max_leaf_nodes=2))]
    >>> model = hg.VotingRegressor(members).fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 3.0])
    >>> model.predict([[0.0]])
    array([0.25])
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> VotingRegressor:
        """Fit every member to all examples; a weight of 2 means the same as having the example twice.

        With metadata routing enabled the members get those of ``fit_params`` that they have requested.
        """
        weight, arguments = self._fit_arguments(X, sample_weight, fit_params)
        X, y = check_passed_on(self, X, y)
        self._fit_members(X, y, weight, arguments)
        return self

    def predict(self, X: Any) -> Array:
        """The weighted mean of the members' predictions."""
        check_is_fitted(self)
        return np.average(self.transform(X), axis=1, weights=self._shares())

    def transform(self, X: Any) -> Array:
        """The predictions of every member (n × members)."""
        check_is_fitted(self)
        return np.column_stack([member.predict(X) for member in self.estimators_])

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns of ``transform``."""
        check_is_fitted(self)
        return self._own_feature_names("votingregressor", [1] * len(self.estimators_))


def _fit_member(
    member: Any, X: Any, y: np.ndarray, weight: Array | None, arguments: Arguments, message: str | None
) -> Any:
    """A fitted copy of a member; a message is printed with the time that it took."""
    with _print_elapsed_time("Voting", message):
        return fit_part(member, X, y, None, weight, arguments)
