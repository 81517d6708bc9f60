"""Least squares and ridge in closed form.

Problem     min_{W,b} ½ Σ cᵢ ‖yᵢ − W'xᵢ − b‖² + ½ Σ_j λ_j ‖w_j‖²,   one or several outputs
Primal      (X̃'CX̃ + Λ) W = X̃'CỸ with X̃, Ỹ centred by c if there is a bias; d × d, by Cholesky
Dual        W = Λ⁻¹X̃'C^½ (C^½X̃Λ⁻¹X̃'C^½ + I)⁻¹ C^½Ỹ, n × n, where d > n and every λ_j > 0; likewise without a penalty
Deficient   without a penalty, the solution of least norm, by singular values
Sparse      by LSQR, unless X is small or so badly conditioned that LSQR does not converge
Optimality  X̃'C(Ỹ − X̃W) = ΛW: the errors are orthogonal to every linear function of the inputs
Reference   Björck (1996), §2.9 (iterative refinement of the normal equations); Saunders et al. (1998) for the dual
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
import scipy.sparse
from sklearn.utils import assert_all_finite

from hinge._cached import cached_property
from hinge._native import Design, core
from hinge.problem.numerics import OVERFLOWED, weighted_sum
from hinge.problem.objective import Array, Objective
from hinge.solvers.base import Need, Solution, Solver, Status, Stop
from hinge.solvers.lsqr import lsqr
from hinge.solvers.shifted import shift_of

REFINEMENTS = 2
# Iterative refinement is skipped if the error of the weights, estimated from the condition number, is below this.
GOOD_AT_ONCE = 1e-11
# Up to this many columns [X 1 y]'C[X 1 y] is computed in one pass over X.
ONE_PASS = 510
# Matrices up to this order are factored on one thread.
SMALL = 1000
# Gram matrices with a reciprocal condition number below this are replaced by a singular value decomposition.
SAFE_RCOND = 1e-10
# Sparse problems of higher rank are solved by LSQR to this accuracy, if it converges within this many iterations.
ITERATED_FROM = 200
ITERATED_TO = 1e-13
ITERATIONS = 500
# Sparse matrices with more entries than this, zeros included, are not made dense.
DENSE_LIMIT = 50_000_000


class ClosedForm(Solver):
    """Normal equations, primal or dual, whichever is smaller; a singular value decomposition if they are singular."""

    name: ClassVar[str] = "closed-form"
    factors: ClassVar[bool] = True
    iterative: ClassVar[bool] = False
    needs: ClassVar[tuple[Need, ...]] = (Need.SQUARED, Need.RIDGE)

    def run(self, objective: Objective, w: Array, b: Array, stop: Stop) -> Solution:
        coordinates = objective.penalty.coordinates(objective.d)
        assert coordinates is not None
        if stop.watched and stop.report(0, objective.value(w, b), w=w, b=b):
            return Solution(w, b, Status.STOPPED, 0)
        problem = Centred(
            objective.design, objective.y, objective.c, objective.fit_intercept, objective.offset,
            moments=lambda: objective.moments,
        )  # fmt: skip
        W = problem.solve(coordinates.l2)
        w, b = W[:, 0] if objective.outputs == 1 else W, problem.bias(W)
        if stop.watched:
            stop.report(1, objective.value(w, b), w=w, b=b)
        return Solution(w, b, Status.CONVERGED, 1)


class Centred:
    """A weighted least-squares problem with the bias eliminated. Targets become an n × k matrix.

    X̃ = X − 1μ' is never formed unless singular values are needed: products with X are corrected by μ. That would cancel in
    columns far from zero, so that a row ν near their means is subtracted from X first.

    Attributes
    ----------
    design : Design
        X − 1ν'.
    x_mean : array
        μ − ν.
    centre : array
        μ.
    """

    def __init__(
        self,
        design: Design,
        y: Array,
        c: Array,
        fit_intercept: bool,
        offset: Array | None = None,
        *,
        moments: Callable[[], Array] | None = None,
    ) -> None:
        shift = shift_of(design) if fit_intercept else None
        self._row: Array | float = 0.0
        if shift is not None:
            self._row, design, moments = shift.row, shift.design, None
        self.design, self.c = design, c
        Y = y.reshape(len(y), -1)
        if offset is not None:
            Y = Y - offset.reshape(len(y), -1)
        self.fit_intercept, self._raw = fit_intercept, Y
        self._moments = moments or (lambda: design.moments(c, Y[:, 0]))

    @cached_property
    def _matrix(self) -> Any:
        """X; categories are columns of a sparse matrix."""
        X = self.design.source
        return X.tocsr() if self.design.coded else X

    @cached_property
    def y_mean(self) -> Array:
        if not self.fit_intercept:
            return np.zeros(self._raw.shape[1])
        return weighted_sum(self.c, self._raw) if self.sums is None else self.sums[-2, -1:]

    @cached_property
    def Y(self) -> Array:
        """The targets minus their mean."""
        return self._raw - self.y_mean

    @cached_property
    def sums(self) -> Array | None:
        """[X 1 y]'C[X 1 y] if one pass over X can compute it: one target, doubles, and more rows than columns."""
        (n, d), X = self.design.shape, self.design.source
        one_pass = isinstance(X, np.ndarray) and X.dtype == np.float64 and d <= min(n, ONE_PASS)
        if not one_pass or self._raw.shape[1] > 1:
            return None
        sums = self._moments()
        if not np.isfinite(sums.diagonal()).all():
            assert_all_finite(X, input_name="X")
            raise ValueError(OVERFLOWED)
        return sums

    @cached_property
    def x_mean(self) -> Array:
        d = self.design.shape[1]
        if not self.fit_intercept:
            return np.zeros(d)
        return self.design.rmatmul(self.c) if self.sums is None else self.sums[:d, d].copy()

    @cached_property
    def centre(self) -> Array:
        return self._row + self.x_mean

    def bias(self, W: Array) -> Array:
        return self.y_mean - self.centre @ W

    def residual(self, W: Array) -> Array:
        """Ỹ − X̃W."""
        residual = self.design.matmul(W)
        np.subtract(self.Y, residual, out=residual)
        residual += self.x_mean @ W
        return residual

    def moment(self, R: Array) -> Array:
        """X̃'CR."""
        CR = self.c[:, None] * R
        return self.design.rmatmul(CR) - np.outer(self.x_mean, CR.sum(axis=0))

    def gram(self) -> Array:
        """X̃'CX̃."""
        d = self.design.shape[1]
        raw, total = (
            (self.design.gram(self.c), self.c.sum()) if self.sums is None else (self.sums[:d, :d], self.sums[d, d])
        )
        return raw - total * self.x_mean[:, None] * self.x_mean

    def first_moment(self) -> Array:
        """X̃'CỸ."""
        if self.sums is None:
            return self.moment(self.Y)
        d = self.design.shape[1]
        return (self.sums[:d, -1] - self.x_mean * self.y_mean[0])[:, None]

    def lost_digits(self) -> float:
        """The factor by which centring enlarged the rounding error of ``gram`` and ``first_moment``; ∞ if unknown."""
        if self.sums is None or not self.fit_intercept:
            return np.inf if self.sums is None else 1.0
        raw, d = self.sums.diagonal(), len(self.x_mean)
        left = raw - self.sums[d] ** 2
        left[d] = raw[d]  # the column of ones is not centred
        with np.errstate(divide="ignore", invalid="ignore"):
            worst = np.max(np.where(raw > 0, raw / np.maximum(left, 0.0), 1.0))
        return float(worst)

    def dual_gram(self, inverse: Array) -> Array:
        """C^½ X̃ diag(inverse) X̃' C^½."""
        X, root = self._matrix, np.sqrt(self.c)
        if scipy.sparse.issparse(X):
            left = (X * inverse).tocsr() if not hasattr(X, "multiply") else X.multiply(inverse).tocsr()
            K = np.asarray((left @ X.T.tocsr()).todense(), dtype=np.float64)
        else:
            K = (X * inverse).astype(np.float64) @ X.T.astype(np.float64)
        cross = self.design.matmul(inverse * self.x_mean)
        K -= cross[:, None] + cross[None, :] - float(inverse @ self.x_mean**2)
        return root[:, None] * K * root[None, :]

    def solve(self, l2: Array) -> Array:
        n, d = self.design.shape
        if scipy.sparse.issparse(self._matrix) and min(n, d) > ITERATED_FROM:
            iterated, met = self._iterate(l2)
            if met:
                return iterated
        W: Array | None = None
        if (d > n and np.all(l2 > 0)) or (not np.any(l2) and d > n - int(self.fit_intercept)):
            solved = self.solve_dual(l2)
            W = None if solved is None else solved[0]
        elif d <= n or np.all(l2 > 0):
            W = self._solve_primal(l2)
        return self._least_norm(l2) if W is None else W

    def _solve_primal(self, l2: Array) -> Array | None:
        if len(l2) > SMALL:
            return self._solve_normal_equations(l2)
        with core.SerialBlas():  # see hinge.problem.numerics for the cost of BLAS threads that wait after their work
            return self._solve_normal_equations(l2)

    def _solve_normal_equations(self, l2: Array) -> Array | None:
        gram = self.gram()
        gram.flat[:: len(l2) + 1] += l2
        scale = np.sqrt(np.diag(gram))
        if not (scale.min() > 0 and np.isfinite(scale).all()):
            return None
        gram /= scale[:, None] * scale
        norm = np.linalg.norm(gram, 1)
        factor, info = scipy.linalg.lapack.dpotrf(gram, lower=1, overwrite_a=1)
        rcond = scipy.linalg.lapack.dpocon(factor, norm, uplo="L")[0] if info == 0 else 0.0
        if rcond < SAFE_RCOND:
            return None

        def solved(rhs: Array) -> Array:
            return scipy.linalg.lapack.dpotrs(factor, rhs / scale[:, None], lower=1)[0] / scale[:, None]

        W = solved(self.first_moment())
        if np.finfo(float).eps * self.lost_digits() / rcond <= GOOD_AT_ONCE:
            return W
        for _ in range(REFINEMENTS):
            step = solved(self.moment(self.residual(W)) - l2[:, None] * W)
            W += step
            if np.max(np.abs(step)) <= 1e-14 * np.max(np.abs(W), initial=1e-300):
                break
        return W

    def solve_dual(self, l2: Array) -> tuple[Array, Array] | None:
        """W and A: W = TX̃'C^½A with (C^½X̃TX̃'C^½ + μI)A = C^½Ỹ, μ = max λ_j and T = μΛ⁻¹ (the identity without a penalty).

        None where that matrix is too close to singular.
        """
        root, mu = np.sqrt(self.c), float(np.max(l2))
        if not root.min() > 0:
            return None
        stretch = _relative_inverse(l2)
        K = self.dual_gram(stretch)
        if self.fit_intercept:  # X̃ is orthogonal to the direction C^½1, and so is C^½Ỹ
            K += np.trace(K) / len(K) * root[:, None] * root
        K.flat[:: len(K) + 1] += mu
        norm = np.linalg.norm(K, 1)
        factor, info = scipy.linalg.lapack.dpotrf(K, lower=1, overwrite_a=1)
        if info != 0 or not scipy.linalg.lapack.dpocon(factor, norm, uplo="L")[0] > SAFE_RCOND:
            return None
        A, W = np.zeros_like(self.Y), np.zeros((len(l2), self.Y.shape[1]))
        for _ in range(1 + REFINEMENTS):
            left = root[:, None] * self.residual(W) - mu * A
            A += scipy.linalg.lapack.dpotrs(factor, left, lower=1)[0]
            W = stretch[:, None] * self._adjoint(root[:, None] * A)
        return W, A

    def _adjoint(self, U: Array) -> Array:
        """X̃'U."""
        return self.design.rmatmul(U) - np.outer(self.x_mean, U.sum(axis=0))

    def _least_norm(self, l2: Array) -> Array:
        """The solution of least norm, by a singular value decomposition."""
        n, d = self.design.shape
        root = np.sqrt(self.c)
        if scipy.sparse.issparse(self._matrix) and n * d > DENSE_LIMIT:
            return self._iterate(l2)[0]
        rows = np.flatnonzero(self.c > 0)
        A = root[rows, None] * (_dense(self._matrix)[rows] - self.x_mean)
        B = (root[:, None] * self.Y)[rows]
        cutoff = np.finfo(float).eps * max(A.shape)
        if np.all(l2 > 0):
            stretch = np.sqrt(_relative_inverse(l2))
            U, s, V = scipy.linalg.svd(A * stretch, full_matrices=False)
            kept = s > cutoff * np.max(s, initial=0.0)
            shrunk = np.where(kept, s / np.where(kept, s**2 + np.max(l2), 1.0), 0.0)
            return stretch[:, None] * (V.T @ (shrunk[:, None] * (U.T @ B)))
        if np.any(l2 > 0):
            A = np.vstack([A, np.diag(np.sqrt(l2))])
            B = np.vstack([B, np.zeros((d, B.shape[1]))])
        return scipy.linalg.lstsq(A, B, cond=cutoff, lapack_driver="gelsd")[0]

    def _iterate(self, l2: Array) -> tuple[Array, bool]:
        """The solution by LSQR, and whether it met its tolerance."""
        (n, d), root, damp = self.design.shape, np.sqrt(self.c)[:, None], np.sqrt(l2)[:, None]
        damped = bool(np.any(l2 > 0))

        def forward(V: Array) -> Array:
            top = root * (self.design.matmul(V) - self.x_mean @ V)
            return np.vstack([top, damp * V]) if damped else top

        def backward(U: Array) -> Array:
            V = self._adjoint(root * U[:n])
            return V + damp * U[n:] if damped else V

        B = root * self.Y
        B = np.vstack([B, np.zeros((d, B.shape[1]))]) if damped else B
        W, met, _ = lsqr(forward, backward, B, tol=ITERATED_TO, max_iter=ITERATIONS)
        return W, met


def _relative_inverse(l2: Array) -> Array:
    """max λ / λ_j; ones without a penalty."""
    return np.max(l2) / l2 if np.any(l2) else np.ones(len(l2))


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if scipy.sparse.issparse(X) else X, dtype=np.float64)
