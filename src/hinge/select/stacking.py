"""Stacking: a final estimator is fitted to the members' out-of-fold predictions."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier, is_regressor
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import MethodMapping
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from hinge._parameters import Constraints, Folds, has, one_of, shared
from hinge.models.base import code_labels, codes_among
from hinge.models.committee.named import NamedMembers
from hinge.models.linear.logistic import LogisticRegression
from hinge.models.meta import check_passed_on, fit_part, label_columns, take_rows
from hinge.models.routing import Arguments, consumes, route, routing_enabled
from hinge.select.ridge import RidgeCV

Array = NDArray[np.float64]

RESPONSES = ("predict_proba", "decision_function", "predict")


def _final_has(method: str) -> Any:
    """Whether the final estimator, fitted or unfitted, has a method."""

    def has_method(self: BaseStacking) -> bool:
        getattr(getattr(self, "final_estimator_", self._last()), method)  # raises if there is none
        return True

    return available_if(has_method)


class BaseStacking(NamedMembers):
    """Base of the classifier and the regressor."""

    final_estimator: Any
    stack_method_: list[str]

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("n_jobs", "verbose"),
        "estimators": [list],
        "final_estimator": [has("fit"), None],
        "cv": [Folds(), one_of("prefit")],
        "passthrough": ["boolean"],
    }

    def __init__(
        self,
        estimators: list[tuple[str, Any]],
        final_estimator: Any = None,
        *,
        cv: Any = None,
        n_jobs: int | None = None,
        passthrough: bool = False,
        verbose: int = 0,
    ) -> None:
        self.estimators = estimators
        self.final_estimator = final_estimator
        self.cv = cv
        self.n_jobs = n_jobs
        self.passthrough = passthrough
        self.verbose = verbose

    def get_metadata_routing(self) -> Any:
        """Members get what they have requested of ``fit``; the last estimator what it has requested of ``predict``."""
        routes = super().get_metadata_routing()
        return routes.add(
            final_estimator=self._last(), method_mapping=MethodMapping().add(caller="predict", callee="predict")
        )

    def _last(self) -> Any:
        """The unfitted final estimator."""
        raise NotImplementedError

    def _response(self, name: str, member: Any) -> str:
        """The method of a member whose results are the inputs of the final estimator."""
        return "predict"

    def _stack(
        self, X: Any, y: np.ndarray, weight: Array | None, arguments: dict[str, Arguments], last: Arguments
    ) -> None:
        """Fit the members to everything, and the last estimator to their out-of-fold predictions.

        ``arguments`` are those of the members' ``fit`` by name, ``last`` those of the last estimator's.
        """
        members = self._members()
        if self.cv == "prefit":
            for _, member in members:
                check_is_fitted(member)
            self.estimators_ = [member for _, member in members]
        else:
            self.estimators_ = Parallel(n_jobs=self.n_jobs, prefer="threads")(
                delayed(fit_part)(member, X, y, None, weight, arguments[name]) for name, member in members
            )
        self.stack_method_ = [self._response(*member) for member in members]
        if self.cv == "prefit":
            columns = self._columns(X)
        else:
            folds = _partition(self.cv, X, y, is_classifier(self))
            columns = Parallel(n_jobs=self.n_jobs, prefer="threads")(
                delayed(self._out_of_fold)(member, method, X, y, weight, arguments[name], folds)
                for (name, member), method in zip(members, self.stack_method_)
            )
        self._widths = [column.shape[1] for column in columns]
        self.final_estimator_ = fit_part(self._last(), self._joined(X, columns), y, None, weight, last)

    def _last_arguments(self, sample_weight: Any) -> Arguments:
        """With routing, the weights of ``fit`` if the last estimator has requested them."""
        if routing_enabled() and sample_weight is not None and consumes(self._last(), "fit", "sample_weight"):
            return {"sample_weight": sample_weight}
        return {}

    def _predict_arguments(self, options: Arguments) -> Arguments:
        """The arguments of the last estimator's ``predict``."""
        return dict(route(self, "predict", options).final_estimator.predict) if routing_enabled() else options

    def _out_of_fold(
        self, member: Any, method: str, X: Any, y: np.ndarray, weight: Any, arguments: Arguments, folds: Any
    ) -> Array:
        """What copies of a member predict for the rows that they were not fitted to."""
        out: Array | None = None
        for learn, test in folds:
            part = self._table(fit_part(member, X, y, learn, weight, arguments), method, take_rows(X, test))
            if out is None:
                out = np.empty((len(y), part.shape[1]))
            out[test] = part
        assert out is not None
        return out

    def _table(self, member: Any, method: str, X: Any) -> Array:
        """What a fitted member predicts, as columns."""
        return _columns_of(getattr(member, method)(X))

    def _columns(self, X: Any) -> list[Array]:
        return [self._table(member, method, X) for member, method in zip(self.estimators_, self.stack_method_)]

    def _joined(self, X: Any, columns: list[Array]) -> Any:
        """The inputs of the final estimator: the members' columns, and those of X with ``passthrough``."""
        if not self.passthrough:
            return np.hstack(columns)
        if scipy.sparse.issparse(X):
            return scipy.sparse.hstack([*columns, X], format="csr")
        return np.hstack([*columns, np.asarray(X)])

    def transform(self, X: Any) -> Any:
        """The inputs of the final estimator: the members' predictions, and X with ``passthrough``."""
        check_is_fitted(self)
        return self._joined(X, self._columns(X))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns of ``transform``."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features, generate_names=self.passthrough)
        members = self._own_feature_names(type(self).__name__.lower(), self._widths)
        return np.concatenate([members, names]) if self.passthrough else members


class StackingClassifier(ClassifierMixin, BaseStacking):
    """A final classifier on the predictions of several classifiers.

    F(x) = G(f₁(x), …, f_M(x)), where G is fitted to (f₁⁽⁻ⁱ⁾(xᵢ), …, f_M⁽⁻ⁱ⁾(xᵢ)) and yᵢ, and f_m⁽⁻ⁱ⁾ is fitted to the folds
    that do not contain example i; the f_m of predictions are fitted to all examples.

    Parameters
    ----------
    estimators : list of (str, classifier)
        The members; any classifier of hinge or scikit-learn, or a regressor of the class numbers. "drop" leaves one out.
    final_estimator : classifier, optional
        G; ``hg.LogisticRegression()`` by default.
    cv : int, splitter, iterable or "prefit", optional
        The folds, five stratified ones by default. "prefit": the members are fitted already and G is fitted to their
        predictions for X, which should not be the examples that they were fitted to.
    stack_method : {"auto", "predict_proba", "decision_function", "predict"}
        What G learns from; "auto" is the first of the three that a member has. Of two probabilities only the second is
        used.
    n_jobs : int, optional
        How many members are fitted at once (threads).
    passthrough : bool
        Whether G gets the columns of X too.
    verbose : int
        Accepted for compatibility.

    Attributes
    ----------
    estimators_ : list of fitted classifiers
        They are fitted to the labels coded as 0 … k−1.
    named_estimators_ : Bunch
        The same by name.
    final_estimator_ : fitted classifier
    stack_method_ : list of str
        What was used of each member.
    classes_ : array of labels
        A list of arrays if y has one column of zeros and ones per label; members and ``final_estimator`` must then be
        classifiers of several labels.

    Notes
    -----
    Reference: Wolpert (1992).

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> members = [("tree", hg.DecisionTreeClassifier(max_depth=1)), ("bayes", hg.GaussianNB())]
    >>> model = hg.StackingClassifier(members).fit(X, X[:, 0] > 0.2)
    >>> model.predict([[-0.9], [0.9]])
    array([False,  True])
    """

    _parameter_constraints: ClassVar[Constraints] = {"stack_method": [one_of("auto", *RESPONSES)]}

    def __init__(
        self,
        estimators: list[tuple[str, Any]],
        final_estimator: Any = None,
        *,
        cv: Any = None,
        stack_method: str = "auto",
        n_jobs: int | None = None,
        passthrough: bool = False,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            estimators, final_estimator, cv=cv, n_jobs=n_jobs, passthrough=passthrough, verbose=verbose
        )  # fmt: skip
        self.stack_method = stack_method

    def _last(self) -> Any:
        return LogisticRegression() if self.final_estimator is None else self.final_estimator

    def _response(self, name: str, member: Any) -> str:
        methods = RESPONSES if self.stack_method == "auto" else (self.stack_method,)
        for method in methods:
            if hasattr(member, method):
                return method
        raise ValueError(
            f"Underlying estimator {name} does not implement the method {self.stack_method}; use stack_method='auto'."
        )

    def _expected(self, member: Any) -> str | None:
        return None if is_regressor(member) else super()._expected(member)

    def _table(self, member: Any, method: str, X: Any) -> Array:
        if isinstance(self.classes_, list):
            return _label_columns(getattr(member, method)(X))
        values = super()._table(member, method, X)
        if method == "predict":
            # Classifiers that were fitted beforehand know labels, the others their numbers.
            labels = self.cv == "prefit" and is_classifier(member)
            return codes_among(self.classes_, values) if labels else values
        k = len(self.classes_)
        present = np.asarray(member.classes_)
        if len(present) < k:  # a fold without some class
            if method != "predict_proba":
                raise ValueError("A fold lacks one of the classes; use stratified folds, or fewer of them.")
            full = np.zeros((len(values), k))
            full[:, present] = values
            values = full
        return values[:, 1:] if method == "predict_proba" and k == 2 else values

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> StackingClassifier:
        """Fit the members and the last classifier; a weight of 2 means the same as having the example twice.

        With metadata routing enabled the members get those of ``fit_params`` that they have requested.
        """
        weight, arguments = self._fit_arguments(X, sample_weight, fit_params)
        if self.final_estimator is not None and not is_classifier(self.final_estimator):
            raise ValueError(f"'final_estimator' parameter should be a classifier. Got {self.final_estimator}")
        several = label_columns(y) > 1 and type_of_target(y) == "multilabel-indicator"
        X, y = check_passed_on(self, X, y, several=several)
        if several:
            self.classes_ = [np.unique(column) for column in y.T]
            codes = np.column_stack([np.searchsorted(*pair) for pair in zip(self.classes_, y.T)])
        else:
            codes = code_labels(self, y)
        self._stack(X, codes, weight, arguments, self._last_arguments(sample_weight))
        return self

    @_final_has("predict")
    def predict(self, X: Any, **options: Any) -> np.ndarray:
        """The labels predicted by the final classifier; options are passed to its ``predict``."""
        inputs = self.transform(X)
        codes = np.asarray(self.final_estimator_.predict(inputs, **self._predict_arguments(options))).astype(np.intp)
        if isinstance(self.classes_, list):
            return np.column_stack([classes[column] for classes, column in zip(self.classes_, codes.T)])
        return self.classes_[codes]

    @_final_has("predict_proba")
    def predict_proba(self, X: Any) -> Array:
        """The probabilities predicted by the final classifier."""
        check_is_fitted(self)
        return self.final_estimator_.predict_proba(self.transform(X))

    @_final_has("decision_function")
    def decision_function(self, X: Any) -> Array:
        """The scores of the final classifier."""
        check_is_fitted(self)
        return self.final_estimator_.decision_function(self.transform(X))


class StackingRegressor(RegressorMixin, BaseStacking):
    """A final regressor on the predictions of several regressors.

    F(x) = G(f₁(x), …, f_M(x)), where G is fitted to (f₁⁽⁻ⁱ⁾(xᵢ), …, f_M⁽⁻ⁱ⁾(xᵢ)) and yᵢ, and f_m⁽⁻ⁱ⁾ is fitted to the folds
    that do not contain example i; the f_m of predictions are fitted to all examples.

    Parameters
    ----------
    estimators : list of (str, regressor)
        The members; any regressor of hinge or scikit-learn. "drop" leaves one out.
    final_estimator : regressor, optional
        G; ``hg.RidgeCV()`` by default.
    cv : int, splitter, iterable or "prefit", optional
        The folds, five by default. "prefit": the members are fitted already and G is fitted to their predictions for X,
        which should not be the examples that they were fitted to.
    n_jobs, passthrough, verbose
        As for :class:`StackingClassifier`.

    Attributes
    ----------
    estimators_ : list of fitted regressors
    named_estimators_ : Bunch
        The same by name.
    final_estimator_ : fitted regressor
    stack_method_ : list of str

    Notes
    -----
    Reference: Wolpert (1992); Breiman (1996).

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> members = [("line", hg.LinearRegression()), ("tree", hg.DecisionTreeRegressor(max_depth=2))]
    >>> model = hg.StackingRegressor(members).fit(X, 3 * X[:, 0])
    >>> model.predict([[0.5]]).round(2)
    array([1.5])
    """

    def _last(self) -> Any:
        return RidgeCV() if self.final_estimator is None else self.final_estimator

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> StackingRegressor:
        """Fit the members and the last regressor; a weight of 2 means the same as having the example twice.

        With metadata routing enabled the members get those of ``fit_params`` that they have requested.
        """
        weight, arguments = self._fit_arguments(X, sample_weight, fit_params)
        if self.final_estimator is not None and not is_regressor(self.final_estimator):
            raise ValueError(f"'final_estimator' parameter should be a regressor. Got {self.final_estimator}")
        X, y = check_passed_on(self, X, y)
        self._stack(X, y, weight, arguments, self._last_arguments(sample_weight))
        return self

    @_final_has("predict")
    def predict(self, X: Any, **options: Any) -> Array:
        """The predictions of the final regressor; options are passed to its ``predict``."""
        inputs = self.transform(X)
        return self.final_estimator_.predict(inputs, **self._predict_arguments(options))


def _columns_of(values: Any) -> Array:
    """Predictions as a table of two dimensions."""
    values = np.asarray(values)
    return values.reshape(len(values), -1)


def _label_columns(values: Any) -> Array:
    """Predictions of several labels as one column per label: a table, or per label a table whose last column counts."""
    if isinstance(values, list):
        return np.column_stack([np.asarray(table)[:, -1] for table in values])
    return _columns_of(values)


def _partition(cv: Any, X: Any, y: np.ndarray, classify: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    """Folds that contain every row once."""
    folds = [(np.asarray(a), np.asarray(b)) for a, b in check_cv(cv, y, classifier=classify).split(X, y)]
    times = np.bincount(np.concatenate([test for _, test in folds]), minlength=len(y))
    if len(times) != len(y) or np.any(times != 1):
        raise ValueError("cv must hold out every example exactly once: stacking only works for partitions, as KFold's.")
    return folds
