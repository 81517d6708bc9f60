"""Support vector classifiers of several classes: one machine per pair of classes, or per class against the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from hinge.models.base import code_labels
from hinge.models.calibration.platt import couple, fit_sigmoid, sigmoid
from hinge.models.class_weights import balanced_factors
from hinge.models.kernel.expansion import (
    Expansion,
    PairExpansion,
    check_kernel_fit,
    check_kernel_predict,
    is_precomputed,
    take,
)
from hinge.models.kernel.machines import Machines
from hinge.models.kernel.svm_base import SupportVectorMachine, like, ones_or
from hinge.problem.certificates.kernel_machine import Dual
from hinge.problem.certificates.machine_stack import Stack
from hinge.problem.kernels import Definiteness, definiteness, full_gram
from hinge.problem.numerics import weighted_sum
from hinge.solvers.decomposition import DualSolution
from hinge.solvers.decomposition_many import Solutions, solve_duals

Array = NDArray[np.float64]

FOLDS = 5
# From this many machines on, of at most this many examples each, they are solved together.
MANY_MACHINES = 15
SMALL_MACHINE = 512


class SupportVectorClassifier(ClassifierMixin, SupportVectorMachine):
    """Base class: labels, machines, votes and probabilities; a subclass fits one machine."""

    def _dual(self, y: Array, weights: Array, factors: Array) -> Dual:
        """The problem of one machine for labels −1/+1, with weights and factors of C; several are stacked in rows."""
        raise NotImplementedError

    def _fit_machine(self, X: Any, y: Array, weights: Array, factors: Array) -> DualSolution:
        """Fit one machine."""
        solution = self._solve(X, self._dual(y, weights, factors))
        return self._finish(solution, X, y, weights, factors)

    def _finish(self, solution: DualSolution, X: Any, y: Array, weights: Array, factors: Array) -> DualSolution:
        """The solution to report, from that of the dual; a hook for subclasses that rescale it."""
        return solution

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Array:
        """Fit all machines; returns their ρ."""
        X, y, weights = check_kernel_fit(self, self._kernel(), X, y, sample_weight)
        codes = code_labels(self, y)
        self.kernel_ = self._kernel().resolve(X, weights)
        self._set_class_weights(y, codes, weights)
        rho = self._fit_machines(X, codes, weights)
        if self.probability:
            self._fit_sigmoids(X, codes, weights)
        return rho

    def _set_class_weights(self, y: Any, codes: NDArray[np.int64], weights: Array | None) -> None:
        """Factors of C per class; raises an error for classes without any weight."""
        if weights is not None:
            lost = [c for k, c in enumerate(self.classes_.tolist()) if not np.any(weights[codes == k] > 0)]
            if lost:
                raise ValueError(f"sample_weight is zero for every example of class {lost[0]!r}: drop the class.")
        if self.class_weight is None:
            self.class_weight_ = np.ones(len(self.classes_))
        elif isinstance(self.class_weight, str) and self.class_weight == "balanced" and weights is not None:
            self.class_weight_ = balanced_factors(np.bincount(codes, weights))
        else:
            self.class_weight_ = compute_class_weight(self.class_weight, classes=self.classes_, y=y)

    def _pairs(self) -> bool:
        """Whether there is a machine for every pair of several classes."""
        return len(self.classes_) > 2 and self.multi_class == "ovo"

    def _fit_machines(self, X: Any, codes: NDArray[np.int64], weights: Array | None) -> Array:
        machines, n = Machines.of(codes, len(self.classes_), self.multi_class), len(codes)
        each, factors = ones_or(weights, n), self.class_weight_[codes]
        found = self._solve_together(X, machines, each, factors)
        coefficients = np.zeros(machines.signs.shape) if found is None else found.coefficients
        bias, rho, square = np.zeros((3, len(machines)))
        steps, alone = np.zeros(len(machines), dtype=np.int64), np.arange(len(machines))
        solutions: list[DualSolution] = []
        if found is not None:
            bias, rho, steps, alone = found.bias, found.rho, found.iterations, np.flatnonzero(~found.solved)
            square = np.einsum("ij,ij->i", found.coefficients, found.scores)
            solutions = [found.together()] if len(alone) < len(machines) else []
        for m in alone.tolist():
            part, y = machines.part(m), machines.signs[m, : machines.lengths[m]]
            if not self._pairs():
                points = X
            else:
                points = X[np.ix_(part, part)] if is_precomputed(self.kernel_) else X[part]
            solution = self._fit_machine(points, y, each[part], factors[part])
            coefficients[m] = 0.0
            coefficients[m, : len(part)] = solution.coefficients
            bias[m], rho[m], steps[m] = solution.bias, solution.rho, solution.iterations
            square[m] = float(weighted_sum(solution.coefficients, solution.scores))
            solutions.append(solution)
            if len(machines) == 1:
                self.slack_ = np.maximum(1.0 - y * (solution.scores + solution.bias), 0.0)
        self._certify(solutions)
        self.n_iter_ = np.maximum(1, steps)
        square = np.where(
            square < 0, 0.0 if self.certificate_.kind == "gap" else np.nan, square
        )  # rounding, or f has no norm
        with np.errstate(divide="ignore"):
            self.margin_ = 1.0 / np.sqrt(square)
        used = np.zeros(n, dtype=bool)
        used[machines.rows[coefficients != 0]] = True
        support = np.flatnonzero(used)
        support = support[np.argsort(codes[support], kind="stable")]  # by class, as in scikit-learn
        self._adopt(X, codes, support, machines, coefficients, bias)
        return rho

    def _solve_together(self, X: Any, machines: Machines, weights: Array, factors: Array) -> Solutions | None:
        """Many small machines from one kernel matrix; None if they must be fitted one by one."""
        n = len(weights)
        fits = 8.0 * n * n <= 1e6 * self.cache_size
        plain = self.max_iter < 0 and not getattr(self, "_skl_callbacks", None) and np.isfinite(getattr(self, "C", 1.0))
        if len(machines) < MANY_MACHINES or machines.lengths.max() > SMALL_MACHINE or not fits or not plain:
            return None
        points = X
        if self._pairs():  # sorted by class: the values of a pair are four blocks of the matrix
            order = machines.order
            points = X[np.ix_(order, order)] if is_precomputed(self.kernel_) else X[order]
        gram = full_gram(self.kernel_, points, symmetric=False)
        if definiteness(self.kernel_, points, gram) is not Definiteness.PROVEN or not np.all(np.isfinite(gram)):
            return None
        rows, used = machines.rows, machines.used
        each, factors = weights[rows] * used, factors[rows]
        stack = Stack(np.ascontiguousarray(machines.at), machines.lengths, self._dual(machines.signs, each, factors))
        return self._rescale(solve_duals(gram, stack, self.tol), np.where(used, factors, factors[:, :1]))

    def _rescale(self, found: Solutions, factors: Array) -> Solutions:
        """``_finish`` for stacked solutions, if it needs nothing else; the others count as unsolved."""
        return found

    def _adopt(self, X: Any, codes: Any, support: Any, machines: Machines, coefficients: Array, bias: Array) -> None:
        self.n_train_ = len(codes)
        self.support_ = support.astype(np.int32)
        self.n_support_ = np.bincount(codes[support], minlength=len(self.classes_)).astype(np.int32)
        points = take(self.kernel_, X, support)
        self.support_vectors_ = np.zeros((0, 0)) if is_precomputed(self.kernel_) else points
        self.intercept_ = bias
        if self._pairs():
            kept = machines.by_other_class(coefficients, len(self.classes_))[:, support]
            self.function_: Expansion = PairExpansion(
                self.kernel_, points, kept.T, 0.0, self.n_support_.astype(np.int64)
            )
        else:
            kept = machines.by_machine(coefficients)[:, support]
            columns = np.ascontiguousarray(kept.T)
            self.function_ = Expansion(self.kernel_, points, columns[:, 0] if len(kept) == 1 else columns, 0.0)
        self.dual_coef_ = like(points, kept)

    def _machine_scores(self, X: Any) -> Array:
        check_is_fitted(self)
        scores = self.function_.scores(check_kernel_predict(self, self.kernel_, X))
        return scores + (self.intercept_[0] if scores.ndim == 1 else self.intercept_)

    def decision_function(self, X: Any) -> Array:
        """The score f(x) + b; for several classes a column per class (or per pair of classes).

        Class scores from pairs: the number of pairs won, plus the sum of scores mapped into (−1/3, 1/3) to break ties.
        """
        scores = self._machine_scores(X)
        if scores.ndim == 1 or self.multi_class == "ovr" or self.decision_function_shape == "ovo":
            return scores
        return self._votes(scores)

    def _votes(self, scores: Array, *, ties: bool = True) -> Array:
        """The number of pairs that every class wins; with ``ties``, plus a term below one half that breaks ties."""
        pairs = np.triu_indices(len(self.classes_), 1)
        count = np.arange(len(pairs[0]))
        shape = (len(self.classes_), len(count))
        positive, negative = (scipy.sparse.csr_array((np.ones(len(count)), (side, count)), shape) for side in pairs)
        won = np.ascontiguousarray((scores > 0).T, dtype=np.float64)
        votes = positive @ won + negative @ (1.0 - won)
        if not ties:
            return votes.T
        sums = (positive - negative) @ scores.T
        return (votes + sums / (3.0 * (np.abs(sums) + 1.0))).T

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels. Ties in the number of pairs go to the first class, or with ``break_ties`` to the highest score."""
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'.")
        scores = self._machine_scores(X)
        if scores.ndim == 1:
            return self.classes_[(scores > 0).astype(int)]
        if self.multi_class != "ovr":
            scores = self._votes(scores, ties=self.break_ties)
        return self.classes_[np.argmax(scores, axis=1)]

    def _fit_sigmoids(self, X: Any, codes: NDArray[np.int64], weights: Array | None) -> None:
        """Platt's sigmoids, fitted to scores of held-out examples."""
        smallest = int(np.bincount(codes).min())
        seed = 0 if self.random_state is None else self.random_state
        machines = Machines.of(codes, len(self.classes_), self.multi_class)
        held = np.zeros((len(codes), len(machines)))
        splits: Any = []
        if smallest > 1:
            folds = StratifiedKFold(min(FOLDS, smallest), shuffle=True, random_state=seed)
            splits = folds.split(np.zeros(len(codes)), codes)
        else:  # no machine can be fitted without the only example of a class: use the scores of the fit
            held[:] = (self.function_.scores(X) + self.intercept_).reshape(held.shape)
        for learn, test in splits:
            part = type(self)(**{**self.get_params(deep=False), "probability": False})
            for name in ("kernel_", "classes_", "class_weight_", "n_features_in_"):
                setattr(part, name, getattr(self, name))
            inner = X[np.ix_(learn, learn)] if is_precomputed(self.kernel_) else X[learn]
            part._fit_machines(inner, codes[learn], None if weights is None else weights[learn])
            outer = X[np.ix_(test, learn)] if is_precomputed(self.kernel_) else X[test]
            held[test] = (part.function_.scores(outer) + part.intercept_).reshape(len(test), -1)
        self.sigmoids_ = []
        for m, (positive, _) in enumerate(machines.classes):
            rows = np.sort(machines.part(m))
            weight = None
            if weights is not None or self.class_weight is not None:
                weight = ones_or(weights, len(codes))[rows] * self.class_weight_[codes[rows]]
            self.sigmoids_.append(fit_sigmoid(held[rows, m], codes[rows] == positive, weight))

    def _has_probability(self) -> bool:
        if not self.probability:
            raise AttributeError("predict_proba needs probability=True.")
        return True

    @available_if(_has_probability)
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, by Platt's sigmoid (coupled over pairs for several classes)."""
        check_is_fitted(self)
        if not hasattr(self, "sigmoids_"):
            raise NotFittedError("predict_proba is not available when fitted with probability=False")
        scores = self._machine_scores(X)
        scores = scores[:, None] if scores.ndim == 1 else scores
        p = np.column_stack([sigmoid(scores[:, m], *self.sigmoids_[m]) for m in range(scores.shape[1])])
        if len(self.classes_) == 2:
            return np.column_stack([1.0 - p[:, 0], p[:, 0]])
        if self.multi_class == "ovr":
            return p / p.sum(axis=1, keepdims=True)
        pairwise = np.zeros((len(p), len(self.classes_), len(self.classes_)))
        for m, (i, j) in enumerate(zip(*np.triu_indices(len(self.classes_), 1))):
            pairwise[:, i, j], pairwise[:, j, i] = p[:, m], 1.0 - p[:, m]
        return couple(pairwise)

    @available_if(_has_probability)
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the probabilities."""
        return np.log(self.predict_proba(X))
