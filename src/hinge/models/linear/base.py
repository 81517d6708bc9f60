"""The base classes of linear estimators: objectives from parameters, and fitted attributes from solutions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from hinge._native import Design
from hinge._parameters import Constraints, Estimator, count, shared
from hinge._validation import naming
from hinge.models.base import (
    check_fit,
    check_predict,
    code_labels,
    codes_among,
    drop_absent,
    in_precision,
    keep_float32,
    require_no_overflow,
    signs,
)
from hinge.models.callbacks import CallbackSupportMixin, iterations, with_callbacks
from hinge.problem.certificates.certificate import Certificate, with_run
from hinge.problem.certificates.linear import certificate
from hinge.problem.losses import Loss
from hinge.problem.objective import Objective, make_objective
from hinge.problem.penalties import L1, L2, Elastic, NoPenalty, Penalty
from hinge.solvers.base import Solution, Solver, Status
from hinge.solvers.run import Result, minimise, solve
from hinge.solvers.scikit_learn_names import counterpart


def elastic_penalty(strength: float, l1_ratio: float | None = 0.0, *, positive: bool = False) -> Penalty:
    """λ(ρ‖w‖₁ + (1−ρ)/2·‖w‖²) as the simplest penalty equal to it."""
    ratio = 0.0 if l1_ratio is None else l1_ratio
    if strength == 0 and not positive:
        return NoPenalty()
    if ratio == 0:
        return L2(strength, positive=positive)
    if ratio == 1:
        return L1(strength, positive=positive)
    return Elastic(strength, ratio, positive=positive)


def check_strength(name: str, value: Any, *, zero: bool = True) -> float:
    """A finite number ≥ 0 (> 0 if ``zero`` is False)."""
    ok = isinstance(value, int | float | np.number) and np.isfinite(value) and (value > 0 or (zero and value == 0))
    if not ok:
        raise ValueError(
            f"{name} must be a finite number {'of zero or more' if zero else 'above zero'}, got {value!r}."
        )
    return float(value)


def named_penalty(name: Any, alpha: Any, l1_ratio: Any) -> Penalty:
    """A penalty of the learners that process one example at a time, by its scikit-learn name."""
    ratios = {"l2": 0.0, "l1": 1.0, "elasticnet": l1_ratio}
    if name is None:
        return NoPenalty()
    if ratios[name] is None:
        raise ValueError("l1_ratio must be set when penalty is 'elasticnet'.")
    return elastic_penalty(float(alpha), ratios[name])


def weights_of_rows(weights: list[np.ndarray | None], rows: np.ndarray) -> list[np.ndarray | None]:
    """The weights of some rows."""
    return [None if s is None else s[rows] for s in weights]


def dense(coef: Any) -> np.ndarray:
    """Weights as an array, also after ``sparsify``."""
    return coef.toarray() if scipy.sparse.issparse(coef) else coef


class SparseWeights:
    """Weights that can be stored as a sparse matrix, which pays off when an L1 penalty has made most of them zero."""

    coef_: Any

    def sparsify(self) -> Any:
        """Store ``coef_`` as a CSR matrix: less memory if more than half of the weights are zero."""
        check_is_fitted(self)
        self.coef_ = scipy.sparse.csr_matrix(self.coef_)
        return self

    def densify(self) -> Any:
        """Undo :meth:`sparsify`."""
        check_is_fitted(self)
        self.coef_ = dense(self.coef_)
        return self


def seed_of(random_state: Any) -> int:
    """A seed for native code: the number itself, one drawn from a generator, or 0 for None.

    Unlike in scikit-learn, a fit without ``random_state`` is reproducible.
    """
    if random_state is None or isinstance(random_state, int | np.integer):
        return int(random_state or 0)
    return int(check_random_state(random_state).randint(2**31 - 1))


def times(weights: np.ndarray | None, factor: np.ndarray | None) -> np.ndarray | None:
    """Weights times factors, where None stands for ones."""
    if weights is None or factor is None:
        return factor if weights is None else weights
    return weights * factor


class LinearModel(CallbackSupportMixin, Estimator):
    """Base class: minimising, storing a solution, scores.

    Subclasses have ``tol``, ``max_iter`` and ``fit_intercept`` among their parameters, and may have ``solver``,
    ``warm_start`` and ``random_state``.
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("fit_intercept", "tol", "warm_start", "verbose", "copy_X", "random_state", "n_jobs"),
        "solver": [str, Solver],
        "max_iter": [count(), None],
    }

    _constant_tags: ClassVar[dict[str, bool]] = {"input_tags.sparse": True}

    coef_: Any
    n_iter_: Any

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "fit" in vars(cls):
            cls.fit = with_callbacks(cls.fit)

    def _minimise(
        self,
        X: Any,
        y: np.ndarray,
        loss: Loss,
        penalty: Penalty,
        weights: np.ndarray | None,
        *,
        classes: int | None = None,
        start: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> Result:
        """Solve  Σ sᵢ ℓ(yᵢ, f(xᵢ)) / Σ sᵢ + Ω(w)  and set ``coef_``, ``intercept_``, ``n_iter_``, ``certificate_``."""
        design = Design(X, checked=True)
        objective = make_objective(
            design, y, loss, penalty, sample_weight=weights, fit_intercept=self.fit_intercept, classes=classes
        )
        result = self._solve(objective, self._warm_start(objective) if start is None else start)
        self._adopt(result, X.dtype)
        return result

    def _solve(
        self,
        objective: Objective,
        start: tuple[np.ndarray, np.ndarray] | None = None,
        *,
        tol: float | None = None,
        max_iter: int | None = None,
    ) -> Result:
        """``solve`` with this estimator's parameters; within ``certify``, the certificate of the given weights only."""
        given = getattr(self, "_given", None)
        if given is not None:
            return given.certified(objective, getattr(self, "tol", 1e-6) if tol is None else tol)
        if getattr(self, "warm_start", False) and start is not None and hasattr(self, "solver_"):
            unchanged = self._still_optimal(objective, start, getattr(self, "tol", 1e-6) if tol is None else tol)
            if unchanged is not None:
                return unchanged
        with self._settings(objective, start, tol, max_iter) as settings:
            return solve(objective, **settings)

    def _still_optimal(self, objective: Objective, start: tuple[np.ndarray, np.ndarray], tol: float) -> Result | None:
        """The weights of the last fit, if a certificate proves that they meet the tolerance for this problem too."""
        w, b = np.array(start[0], dtype=np.float64), np.atleast_1d(start[1]).astype(np.float64)
        with np.errstate(all="ignore"):
            certified = certificate(objective, w, b, tol=tol, fit_flops=0.0)
        if not certified.converged:
            return None
        status = Status.CONVERGED
        certified = with_run(certified, solver=self.solver_, iterations=0, seconds=0.0, status=status.value)
        return Result(Solution(w, b, status, 0), certified)

    def _solve_uncertified(
        self,
        objective: Objective,
        start: tuple[np.ndarray, np.ndarray] | None,
        *,
        tol: float,
        max_iter: int | None = None,
        proved: bool = True,
    ) -> Solution:
        """A solution without a certificate, for the folds of a cross-validation."""
        with self._settings(objective, start, tol, max_iter) as settings:
            return minimise(objective, **settings, proved=proved)[1]

    @contextmanager
    def _settings(
        self,
        objective: Objective,
        start: tuple[np.ndarray, np.ndarray] | None,
        tol: float | None,
        max_iter: int | None = None,
    ) -> Iterator[dict[str, Any]]:
        """The parameters of a solver, with this estimator's callbacks; ``tol`` and ``max_iter`` override its own."""
        with iterations(self, objective.design.source, objective.y, attributes=self._attributes_at) as report:
            yield {
                "solver": counterpart(getattr(self, "solver", "auto"), objective),
                "tol": getattr(self, "tol", 1e-6) if tol is None else tol,
                "max_iter": getattr(self, "max_iter", None) if max_iter is None else max_iter,
                "start": start,
                "random_state": seed_of(getattr(self, "random_state", None)),
                "callback": report,
            }

    def _warm_start(self, objective: Objective) -> tuple[np.ndarray, np.ndarray] | None:
        """The weights of the last fit, if ``warm_start`` is on and they fit this problem."""
        if not getattr(self, "warm_start", False) or not hasattr(self, "coef_"):
            return None
        w, b = objective.zero()
        coef = dense(self.coef_).astype(np.float64).T
        if coef.size != w.size:
            return None
        return coef.reshape(w.shape), np.broadcast_to(np.asarray(self.intercept_, dtype=np.float64), b.shape)

    def _attributes_at(self, record: Any) -> dict[str, Any] | None:
        """The weights at an iteration, as ``coef_`` and ``intercept_``."""
        w, b = getattr(record, "w", None), getattr(record, "b", None)
        if w is None or b is None:
            return None
        return dict(zip(("coef_", "intercept_"), self._as_shown(np.array(w), np.array(b))))

    def _as_shown(self, w: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, Any]:
        """Weights and biases in the shapes of ``coef_`` and ``intercept_``."""
        return (w.T, b) if w.ndim == 2 else (w, b[0])

    def _adopt(self, result: Result, dtype: Any) -> None:
        w, b = in_precision(result.w, dtype), in_precision(result.b, dtype)
        self.coef_, self.intercept_ = self._as_shown(w, b)
        none = getattr(self, "max_iter", None) == 0 or getattr(self, "warm_start", False)
        self.n_iter_ = max(result.solution.iterations, 0 if none else 1)
        self._certify(result.certificate)

    def _certify(self, certified: Certificate) -> None:
        """Set ``certificate_``, and ``solver_`` to the solver that ran."""
        self.certificate_, self.solver_ = certified, certified.solver

    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = check_predict(self, X)
        z = Design(X, checked=True).matmul(dense(self.coef_).T.astype(np.float64)) + self.intercept_
        require_no_overflow(z)
        return keep_float32(z, self.coef_)


class LinearRegressor(RegressorMixin, LinearModel):
    """Base class of linear models for real targets."""

    ridge_form = False  # whether the fit is least squares with or without a ridge, in closed form
    columns_stay = False  # whether a target given as one column makes weights and predictions a matrix too

    def _show_as_column(self, column: bool) -> None:
        """Reshape the attributes of a fit to y of shape (n, 1) as scikit-learn does."""
        if column:
            self.intercept_ = np.atleast_1d(self.intercept_)
            if self.columns_stay:
                self.coef_ = np.atleast_2d(self.coef_)

    def predict(self, X: Any) -> np.ndarray:
        """The predicted targets f(x)."""
        return self._scores(X)

    def _check(
        self, X: Any, y: Any, sample_weight: Any, *, several: bool = False, **options: Any
    ) -> tuple[Any, np.ndarray, Any]:
        """X, y and weights; y is a matrix only if there are several targets."""
        X, y, weights = check_fit(self, X, y, sample_weight, y_numeric=True, multi_output=several, **options)
        with naming("y"):
            y = np.asarray(y, dtype=np.float64)
        return X, y.ravel() if y.ndim == 2 and y.shape[1] == 1 else y, weights


class LinearClassifier(SparseWeights, ClassifierMixin, LinearModel):
    """Base class of linear models for classes."""

    def decision_function(self, X: Any) -> np.ndarray:
        """The scores: one per example for two classes (positive means ``classes_[1]``), one per class otherwise."""
        scores = self._scores(X)
        return scores.ravel() if scores.ndim == 2 and scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The label with the highest score."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else np.argmax(scores, axis=1)]

    def _check(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """X, labels encoded as 0 … k−1 and weights, multiplied by the class weights."""
        X, y, weights = check_fit(self, X, y, sample_weight)
        codes = code_labels(self, y)
        factor = self._class_factors(y, weights)
        return X, codes, times(weights, None if factor is None else factor[codes])

    def _check_stream(
        self, X: Any, y: Any, sample_weight: Any, *, classes: Any = None, piece: bool = False, first: bool = True
    ) -> tuple[Any, list[np.ndarray], list[np.ndarray | None]]:
        """X without examples of weight zero, and −1/+1 targets and weights for every binary problem.

        With several classes, the problem of class j multiplies its own examples by the weight of that class and the
        others by one, as scikit-learn's stochastic learners do. The ``first`` ``piece`` of a stream must pass classes.
        """
        X, y, weights = check_fit(self, X, y, sample_weight, reset=first)
        if piece:
            codes = self._code_piece(y, classes, first=first)
            factor = self._class_factors(self.classes_, None)
        else:
            codes = code_labels(self, y)
            factor = self._class_factors(y, weights)
        if len(self.classes_) == 2:
            X, codes, weights = drop_absent(X, codes, times(weights, None if factor is None else factor[codes]))
            return X, [signs(codes)], [weights]
        X, codes, weights = drop_absent(X, codes, weights)
        own = [codes == j for j in range(len(self.classes_))]
        factors = [None if factor is None else np.where(mine, factor[j], 1.0) for j, mine in enumerate(own)]
        return X, [signs(mine) for mine in own], [times(weights, f) for f in factors]

    def _code_piece(self, y: np.ndarray, classes: Any, *, first: bool) -> np.ndarray:
        check_classification_targets(y)
        if first:
            if classes is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            code_labels(self, np.asarray(classes))
        if self.class_weight == "balanced":
            raise ValueError("class_weight='balanced' needs all the data; pass a dict of weights to partial_fit.")
        return codes_among(self.classes_, y)

    def _class_factors(self, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray | None:
        """The weights of the classes, or None."""
        if getattr(self, "class_weight", None) is None:
            return None
        return compute_class_weight(self.class_weight, classes=self.classes_, y=y, sample_weight=weights)

    def _as_shown(self, w: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, Any]:
        if w.ndim == 2:  # a common shift of all biases has no effect: return the biases that sum to zero
            b = b - b.mean()
        return np.atleast_2d(w.T), np.atleast_1d(b)

    def _one_vs_rest(
        self, X: Any, codes: np.ndarray, loss: Loss, penalty: Penalty, weights: np.ndarray | None
    ) -> list[Result]:
        """One problem for two classes; one per class against the others for more."""
        k = len(self.classes_)
        if k == 2:
            return [self._minimise(X, signs(codes), loss, penalty, weights)]
        objective = make_objective(
            X, signs(codes), loss, penalty, sample_weight=weights, fit_intercept=self.fit_intercept
        )
        results = [self._solve(replace(objective, y=np.where(codes == j, 1.0, -1.0))) for j in range(k)]
        self.coef_ = keep_float32(np.array([r.w for r in results]), X)
        self.intercept_ = keep_float32(np.array([r.b[0] for r in results]), X)
        self.n_iter_ = max(max(r.solution.iterations for r in results), 1)
        self._certify(worst(results))
        self.certificates_ = [r.certificate for r in results]
        return results


def worst(results: list[Result]) -> Certificate:
    """The certificate with the largest error, which bounds all of them."""
    return max((r.certificate for r in results), key=lambda c: c.error)
