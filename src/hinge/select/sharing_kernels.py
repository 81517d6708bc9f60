"""Computations that fits of kernel machines on one fold share: kernel values, factorisations, multipliers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import clone

from hinge._native import Design
from hinge.models.base import code_labels
from hinge.models.kernel.expansion import check_kernel_fit, is_precomputed, named_kernel, takes_objects
from hinge.models.kernel.machines import Machines
from hinge.models.kernel.ridge import ridge_path
from hinge.models.kernel.svm import SVC, SVR
from hinge.models.kernel.svm_base import ones_or
from hinge.problem.certificates.kernel_machine import Dual, classification, regression
from hinge.problem.kernels import RBF, Kernel, full_gram
from hinge.select.precomputed import PrecomputedClassifier, PrecomputedRegressor
from hinge.select.sharing_base import GRAM_BYTES, Fold, Separately, Sharing, Values
from hinge.solvers.decomposition import solve_dual


class KernelSharing(Sharing):
    """One matrix of kernel values for all folds."""

    def suits(self, learner: Any, values: Values) -> bool:
        if is_precomputed(learner.kernel) or takes_objects(learner.kernel):
            return False
        # With an indefinite kernel there are several stationary points, and the one found depends on the start.
        return named_kernel(learner.kernel, learner.gamma, learner.degree, learner.coef0).psd

    def gram(self, kernel: Kernel, X: Any, fold: Fold) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Kernel values, and the indices of training and test points among their rows; at most 1 GB."""
        resolved = kernel.resolve(X, fold.weight)
        if fold.full is None:
            both = _stack(X, _points(fold.X_test))
            n = X.shape[0]
            values = fold.remember(repr(resolved), lambda: _values(resolved, both, fold, across=False), across=False)
            return values, np.arange(n), np.arange(n, both.shape[0])
        full = fold.remember("points", lambda: _points(fold.full))
        values = fold.remember(repr(resolved), lambda: _values(resolved, full, fold, across=True))
        return values, fold.train, fold.test  # type: ignore[return-value]


def _fits(fold: Fold, copies: int = 1) -> bool:
    rows = fold.full.shape[0] if fold.full is not None else fold.X.shape[0] + fold.X_test.shape[0]
    return 8.0 * copies * rows**2 <= GRAM_BYTES


def _values(kernel: Kernel, points: Any, fold: Fold, across: bool) -> np.ndarray:
    if not isinstance(kernel, RBF) or scipy.sparse.issparse(points):
        return np.ascontiguousarray(full_gram(kernel, points))
    store = fold.memory if across else fold.own  # the caller holds the lock
    if "distances" not in store:
        store["distances"] = _square_distances(points)
    return np.exp(-kernel.rate * store["distances"])


def _square_distances(X: np.ndarray) -> np.ndarray:
    X = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
    squares = np.einsum("ij,ij->i", X, X)
    D = Design(X).matmul(np.ascontiguousarray(X.T))
    D *= -2.0
    D += squares[:, None]
    D += squares
    np.maximum(D, 0.0, out=D)
    np.fill_diagonal(D, 0.0)
    return D


class KernelRidgeFactor(KernelSharing):
    """Kernel ridge: one eigendecomposition per fold for all α."""

    varies = ("alpha",)

    def suits(self, learner: Any, values: Values) -> bool:
        numbers = all(np.ndim(v.get("alpha", learner.alpha)) == 0 for v in values)
        return numbers and learner.alphas is None and super().suits(learner, values)

    def run(self, learner: Any, values: Values, fold: Fold) -> Iterator[tuple[int, Any]]:
        if not _fits(fold):
            yield from Separately().run(learner, values, fold)
            return
        kernel = named_kernel(learner.kernel, learner.gamma, learner.degree, learner.coef0)
        X, y, weights = check_kernel_fit(
            clone(learner), kernel, fold.X, fold.y, fold.weight, multi_output=True, y_numeric=True
        )
        K, train, test = self.gram(kernel, X, fold)
        alphas = np.array([float(v.get("alpha", learner.alpha)) for v in values])
        path = ridge_path(K[np.ix_(train, train)], np.asarray(y, dtype=np.float64), alphas, weights)
        across = K[np.ix_(test, train)]
        for k in range(len(values)):
            yield k, PrecomputedRegressor(across @ path.dual_coef[k])

    def leave_one_out(self, learner: Any, values: Values, fold: Fold) -> np.ndarray | None:
        if fold.weight is not None or np.ndim(fold.y) != 1:
            return None
        kernel = named_kernel(learner.kernel, learner.gamma, learner.degree, learner.coef0)
        if kernel.resolve(fold.X[:-1]).program() != kernel.resolve(fold.X).program():
            return None  # a width that is estimated from the inputs changes if one is left out
        model = clone(learner).set_params(loo=True)
        return np.stack([model.set_params(**v).fit(fold.X, fold.y).loo_predictions_ for v in values])


class SupportVectors(KernelSharing):
    """SVC and SVR: kernel values for all folds and C; the multipliers of every C start at those of the next smaller C."""

    varies = ("C",)
    serial = True

    def suits(self, learner: Any, values: Values) -> bool:
        finite = all(np.isfinite(v.get("C", learner.C)) and v.get("C", learner.C) > 0 for v in values)
        return super().suits(learner, values) and finite and not getattr(learner, "probability", False)

    def run(self, learner: Any, values: Values, fold: Fold) -> Iterator[tuple[int, Any]]:
        if not _fits(fold, copies=3):  # one-vs-one machines together have twice as many pairs
            yield from Separately().run(learner, values, fold)
            return
        model = clone(learner)
        kernel = model._kernel()
        regresses = isinstance(learner, SVR)
        X, y, weights = check_kernel_fit(model, kernel, fold.X, fold.y, fold.weight, y_numeric=regresses)
        if regresses:
            machines: list[tuple[np.ndarray, np.ndarray]] = [(np.arange(len(y)), np.asarray(y, dtype=np.float64))]
        else:
            codes = code_labels(model, y)
            model._set_class_weights(y, codes, weights)
            weights = ones_or(weights, len(y)) * model.class_weight_[codes]
            machines = _machines(model, codes)
        K, train, test = self.gram(kernel, X, fold)
        ones = ones_or(weights, len(y))
        Cs = np.array([float(v.get("C", learner.C)) for v in values])
        starts: list[np.ndarray | None] = [None] * len(machines)
        last = None
        grams = [_part(K, train[rows], train[rows]) for rows, _ in machines]
        across = _part(K, test, train)
        for k in np.argsort(Cs, kind="stable"):
            model.set_params(**values[k])
            model._validate_params()
            scores = np.empty((len(test), len(machines)))
            for m, (rows, target) in enumerate(machines):
                upper = Cs[k] * ones[rows]
                dual = regression(target, float(model.epsilon), upper) if regresses else classification(target, upper)
                start = starts[m]
                if start is not None:
                    dual = replace(dual, start=_stretched(start, dual, Cs[k] / last))
                solution = solve_dual(
                    kernel, None, dual, tol=model.tol, cache_bytes=1e6 * model.cache_size, max_iter=model.max_iter,
                    shrinking=model.shrinking, gram=grams[m], polish=False,
                )  # fmt: skip
                starts[m] = np.stack(
                    [solution.alpha, dual.sign * np.tile(solution.scores, len(dual.sign) // len(rows))]
                )
                spread = np.zeros(len(train))
                spread[rows] = solution.coefficients
                # einsum rather than BLAS, whose threads would keep spinning beside the solver.
                scores[:, m] = np.einsum("ij,j->i", across, spread) + solution.bias
            last = Cs[k]
            yield int(k), _from_scores(model, scores, regresses)


def _part(K: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    return K[rows].take(columns, axis=1)  # faster than np.ix_: rows are copied as blocks, and only columns are gathered


def _stretched(start: np.ndarray, dual: Dual, ratio: float) -> np.ndarray:
    """α·r with the best r in [1, ratio]: along this line the dual is r·Σ s t α − r²/2·αQα."""
    alpha, signed_scores = start
    square = float(alpha @ signed_scores)
    gain = float((dual.sign * dual.target) @ alpha)
    r = float(np.clip(gain / square, 1.0, ratio)) if square > 0 else 1.0
    return np.minimum(alpha * r, dual.upper)


def _machines(model: SVC, codes: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The rows and signs of every machine."""
    machines = Machines.of(codes, len(model.classes_), model.multi_class)
    return [(machines.part(m), machines.signs[m, : machines.lengths[m]]) for m in range(len(machines))]


def _from_scores(model: Any, scores: np.ndarray, regresses: bool) -> Any:
    if regresses:
        return PrecomputedRegressor(scores[:, 0])
    if len(model.classes_) == 2:
        return PrecomputedClassifier(model.classes_, model.classes_[(scores[:, 0] > 0).astype(int)], scores[:, 0])
    votes = scores if model.multi_class == "ovr" else model._votes(scores)
    shown = scores if model.decision_function_shape == "ovo" else votes
    return PrecomputedClassifier(model.classes_, model.classes_[np.argmax(votes, axis=1)], shown)


def _points(X: Any) -> Any:
    from hinge.problem.kernels import evaluate

    return evaluate.matrix(X if scipy.sparse.issparse(X) else np.asarray(X))


def _stack(a: Any, b: Any) -> Any:
    return scipy.sparse.vstack([a, b], format="csr") if scipy.sparse.issparse(a) else np.vstack([a, b])
