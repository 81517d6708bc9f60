"""Support vector classifiers of several classes: one machine per pair of classes, or per class against the rest."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from hinge.models.base import code_labels, signs
from hinge.models.calibration.platt import couple, fit_sigmoid, sigmoid
from hinge.models.kernel.expansion import Expansion, check_kernel_fit, check_kernel_predict, is_precomputed, take
from hinge.models.kernel.svm_base import SupportVectorMachine, like, ones_or
from hinge.problem.certificates.kernel_machine import Dual
from hinge.problem.kernels import Definiteness, definiteness, evaluate, full_gram
from hinge.problem.numerics import weighted_sum
from hinge.solvers.decomposition import DualSolution
from hinge.solvers.decomposition_many import solve_duals

Array = NDArray[np.float64]

FOLDS = 5
# From this many machines on, of at most so many examples each, they are solved together.
MANY_MACHINES = 15
SMALL_MACHINE = 512


class SupportVectorClassifier(ClassifierMixin, SupportVectorMachine):
    """Labels, machines, votes and probabilities; a subclass says how one machine is fitted."""

    def _dual(self, y: Array, weights: Array, factors: Array) -> Dual:
        """The problem of one machine for labels −1/+1, with weights of examples and factors on C."""
        raise NotImplementedError

    def _fit_machine(self, X: Any, y: Array, weights: Array, factors: Array) -> DualSolution:
        """Fit one machine."""
        solution = self._solve(X, self._dual(y, weights, factors))
        return self._finish(solution, X, y, weights, factors)

    def _finish(self, solution: DualSolution, X: Any, y: Array, weights: Array, factors: Array) -> DualSolution:
        """What is shown, from the solution of the dual."""
        return solution

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> list[DualSolution]:
        X, y, weights = check_kernel_fit(self, self._kernel(), X, y, sample_weight)
        codes = code_labels(self, y)
        self.kernel_ = self._kernel().resolve(X, weights)
        self._set_class_weights(y, codes, weights)
        solutions = self._fit_machines(X, codes, weights)
        if self.probability:
            self._fit_sigmoids(X, codes, weights)
        return solutions

    def _set_class_weights(self, y: Any, codes: NDArray[np.int64], weights: Array | None) -> None:
        """Factors on C per class; classes without any weight are refused."""
        if weights is not None:
            lost = [c for k, c in enumerate(self.classes_) if not np.any(weights[codes == k] > 0)]
            if lost:
                raise ValueError(f"sample_weight is zero for every example of class {lost[0]!r}: drop the class.")
        if self.class_weight is None:
            self.class_weight_ = np.ones(len(self.classes_))
        elif isinstance(self.class_weight, str) and self.class_weight == "balanced" and weights is not None:
            totals = np.bincount(codes, weights)
            self.class_weight_ = totals.sum() / (len(totals) * totals)
        else:
            self.class_weight_ = compute_class_weight(self.class_weight, classes=self.classes_, y=y)

    def _machines(self) -> list[tuple[int, int | None]]:
        """Which classes meet: (positive, negative), the first of a pair being positive; None for all the others."""
        k = len(self.classes_)
        if k == 2:
            return [(1, 0)]
        return list(combinations(range(k), 2)) if self.multi_class == "ovo" else [(c, None) for c in range(k)]

    def _fit_machines(self, X: Any, codes: NDArray[np.int64], weights: Array | None) -> list[DualSolution]:
        machines, n = self._machines(), len(codes)
        each, factors = ones_or(weights, n), self.class_weight_[codes]
        coefficients, bias, solutions = np.zeros((len(machines), n)), np.zeros(len(machines)), []
        members = [np.flatnonzero(codes == c) for c in range(len(self.classes_))]
        rows = [
            np.arange(n) if negative is None else np.sort(np.concatenate([members[positive], members[negative]]))
            for positive, negative in machines
        ]
        labels = [signs(codes[part] == positive) for part, (positive, _) in zip(rows, machines)]
        known = self._solve_together(X, rows, labels, each, factors)
        for m, (part, y) in enumerate(zip(rows, labels)):
            solution = known[m]
            if solution is None:
                points = X if len(part) == n else (X[np.ix_(part, part)] if is_precomputed(self.kernel_) else X[part])
                solution = self._fit_machine(points, y, each[part], factors[part])
            coefficients[m, part], bias[m] = solution.coefficients, solution.bias
            solutions.append(solution)
            if len(machines) == 1:
                self.slack_ = np.maximum(1.0 - y * (solution.scores + solution.bias), 0.0)
        self._certify(solutions)
        square = np.array([float(weighted_sum(s.coefficients, s.scores)) for s in solutions])
        square = np.where(
            square < 0, 0.0 if self.certificate_.kind == "gap" else np.nan, square
        )  # rounding, or no norm
        with np.errstate(divide="ignore"):
            self.margin_ = 1.0 / np.sqrt(square)
        used = np.zeros(n, dtype=bool)
        for part, found in zip(rows, solutions):
            used[part] |= found.coefficients != 0
        support = np.flatnonzero(used)
        support = support[np.argsort(codes[support], kind="stable")]  # by class, as scikit-learn has it
        self._adopt(X, codes, support, np.ascontiguousarray(coefficients[:, support].T), bias)
        return solutions

    def _solve_together(
        self, X: Any, rows: list[NDArray[np.intp]], labels: list[Array], weights: Array, factors: Array
    ) -> list[DualSolution | None]:
        """Many small machines from one matrix of kernel values; None for those that have to be fitted one by one."""
        n, nothing = len(weights), [None] * len(rows)
        largest = max(len(part) for part in rows)
        fits = 8.0 * n * n <= 1e6 * self.cache_size
        plain = self.max_iter < 0 and not getattr(self, "_skl_callbacks", None) and np.isfinite(getattr(self, "C", 1.0))
        if len(rows) < MANY_MACHINES or largest > SMALL_MACHINE or not fits or not plain:
            return list(nothing)
        gram = full_gram(self.kernel_, X, symmetric=False)
        if definiteness(self.kernel_, X, gram) is not Definiteness.PROVEN or not np.all(np.isfinite(gram)):
            return list(nothing)
        duals = [self._dual(y, weights[part], factors[part]) for part, y in zip(rows, labels)]
        found = solve_duals(gram, rows, duals, self.tol)
        return [
            None
            if s is None or not self._is_plain(s, factors[part])
            else self._finish(s, None, y, weights[part], factors[part])
            for s, part, y in zip(found, rows, labels)
        ]

    def _is_plain(self, solution: DualSolution, factors: Array) -> bool:
        """Whether ``_finish`` needs nothing but the solution."""
        return True

    def _adopt(self, X: Any, codes: Any, support: Any, coefficients: Array, bias: Array) -> None:
        self.n_train_ = len(codes)
        self.support_ = support.astype(np.int32)
        self.n_support_ = np.bincount(codes[support], minlength=len(self.classes_)).astype(np.int32)
        points = take(self.kernel_, X, support)
        self.support_vectors_ = np.zeros((0, 0)) if is_precomputed(self.kernel_) else points
        two = len(self.classes_) == 2
        self.function_ = Expansion(self.kernel_, points, coefficients[:, 0] if two else coefficients, 0.0)
        self.intercept_ = bias
        shown = coefficients.T if two or self.multi_class == "ovr" else self._paired(coefficients, codes)
        self.dual_coef_ = like(points, shown)

    def _paired(self, coefficients: Array, codes: NDArray[np.int64]) -> Array:
        """scikit-learn's layout: one row per other class, in order, for the class the support vector is of."""
        k = len(self.classes_)
        own = codes[self.support_]
        first, second = np.array(self._machines()).T
        table = np.zeros((k - 1, len(own)))
        for c in range(k):
            mine = np.flatnonzero((first == c) | (second == c))  # by the other class, in order
            table[:, own == c] = coefficients[np.ix_(own == c, mine)].T
        return table

    def _machine_scores(self, X: Any) -> Array:
        check_is_fitted(self)
        X = check_kernel_predict(self, self.kernel_, X)
        if len(self.classes_) > 2 and self.multi_class == "ovo":
            return self._pair_scores(X) + self.intercept_
        scores = self.function_.scores(X)
        return scores + (self.intercept_[0] if scores.ndim == 1 else self.intercept_)

    def _pair_scores(self, X: Any) -> Array:
        """Scores of all pairs: a support vector has a part in the k − 1 machines of its class only."""
        whole, first, second = self.function_, *np.array(self._machines()).T
        ends = np.cumsum(self.n_support_)
        scores = np.zeros((evaluate.length(X), len(first)))
        for c, (begin, end) in enumerate(zip(ends - self.n_support_, ends)):
            mine = np.flatnonzero((first == c) | (second == c))
            part = Expansion(whole.kernel, whole.points[begin:end], whole.coefficients[begin:end, mine], 0.0)
            scores[:, mine] += part.scores(X)
        return scores

    def decision_function(self, X: Any) -> Array:
        """The score f(x) + b; for several classes a column per class (or per pair of classes).

        From pairs to classes: the number of pairs won, plus the sum of scores squeezed into (−1/3, 1/3) for ties.
        """
        scores = self._machine_scores(X)
        if scores.ndim == 1 or self.multi_class == "ovr" or self.decision_function_shape == "ovo":
            return scores
        return self._votes(scores)

    def _votes(self, scores: Array) -> Array:
        machines = np.array(self._machines())
        count = np.arange(len(machines))
        shape = (len(self.classes_), len(machines))
        positive, negative = (
            scipy.sparse.csr_array((np.ones(len(count)), (machines[:, j], count)), shape) for j in (0, 1)
        )
        won = np.ascontiguousarray((scores > 0).T, dtype=np.float64)
        votes, sums = positive @ won + negative @ (1.0 - won), (positive - negative) @ scores.T
        return (votes + sums / (3.0 * (np.abs(sums) + 1.0))).T

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels."""
        scores = self._machine_scores(X)
        if scores.ndim == 1:
            return self.classes_[(scores > 0).astype(int)]
        return self.classes_[np.argmax(scores if self.multi_class == "ovr" else self._votes(scores), axis=1)]

    def _fit_sigmoids(self, X: Any, codes: NDArray[np.int64], weights: Array | None) -> None:
        """Platt's sigmoids, from scores of examples that were held out."""
        smallest = int(np.bincount(codes).min())
        seed = 0 if self.random_state is None else self.random_state
        held = np.zeros((len(codes), len(self._machines())))
        splits: Any = []
        if smallest > 1:
            folds = StratifiedKFold(min(FOLDS, smallest), shuffle=True, random_state=seed)
            splits = folds.split(np.zeros(len(codes)), codes)
        else:  # no machine can be fitted without the only example of a class: the scores are those of the fit
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
        for m, (positive, negative) in enumerate(self._machines()):
            rows = np.arange(len(codes)) if negative is None else (codes == positive) | (codes == negative)
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
        scores = self._machine_scores(X).reshape(-1, len(self._machines()))
        p = np.column_stack([sigmoid(scores[:, m], *self.sigmoids_[m]) for m in range(scores.shape[1])])
        if len(self.classes_) == 2:
            return np.column_stack([1.0 - p[:, 0], p[:, 0]])
        if self.multi_class == "ovr":
            return p / p.sum(axis=1, keepdims=True)
        pairwise = np.zeros((len(p), len(self.classes_), len(self.classes_)))
        for m, (i, j) in enumerate(self._machines()):
            pairwise[:, i, j], pairwise[:, j, i] = p[:, m], 1.0 - p[:, m]
        return couple(pairwise)

    @available_if(_has_probability)
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the probabilities."""
        return np.log(self.predict_proba(X))
