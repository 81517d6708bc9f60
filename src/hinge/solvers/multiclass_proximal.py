"""The multiclass support vector machine with unpenalised biases.

Problem     min_{W,b} Σ cᵢ max_j [Δ(yᵢ, j) + s_ij − s_iy] + ½‖W‖²,   s_i = W'(xᵢ − x̄) + b
Method      proximal steps of the biases, b ← argmin_b min_W (…) + ‖b − a‖² / (2B²) with a the last b: each is the problem
            that native/multiclass/svm.hpp solves, with Δ(y, j) + a_j − a_y in place of Δ(y, j), from the last dual point.
            B² begins at the mean of ‖xᵢ − x̄‖² and grows; the inner gaps shrink with the outer one
Stops       when the gap of the original problem, computed by the certificate, is small enough
Reference   Rockafellar (1976), "Augmented Lagrangians and applications of the proximal point algorithm"
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse

from hinge._native import Design, core
from hinge.problem.certificates.certificate import Certificate
from hinge.problem.certificates.multiclass import kernel_multiclass_certificate, linear_multiclass_certificate
from hinge.problem.objective import Array

Report = Callable[[int, float, float], bool]

OUTER_STEPS = 100
FIRST_TOLERANCE = 1e-2
LARGEST = 1e6  # largest B², in units of its first value
# Newton's method tolerates a large B²; coordinate ascent slows down as B² grows.
NEWTON_UNKNOWNS = 4000  # as in native/multiclass/newton.cpp
FEATURE_ROWS = 2000  # up to this many rows the kernel matrix is factored for Newton's method
RANK = 1e-12  # eigenvalues below this share of the largest are zero
LAST_SHARE = 0.3  # accuracy of the last steps, as a share of the tolerance
NEAR = 1e-8  # relative gap below which B² stays fixed: few steps remain, and biases are rounded to ε B²


class Pace(NamedTuple):
    """The sequence of proximal steps."""

    first: float  # first B², in units of the spread of the inputs
    growth: float  # factor of B² from step to step
    share: float  # accuracy of a step, as a share of the outer gap


WITH_NEWTON, BY_ASCENT = Pace(1.0, 4.0, 0.01), Pace(0.1, 1.0, 0.1)


@dataclass(frozen=True)
class MulticlassProblem:
    """Labels 0 … k−1, weights cᵢ > 0 and costs Δ."""

    y: Any
    c: Array
    cost: Array


@dataclass(frozen=True)
class MulticlassSolution:
    """Weights (features × classes; None with a kernel), biases, dual coefficients, and the certificate."""

    W: Array | None
    b: Array
    dual: Array
    passes: int
    steps: int  # Newton steps, included in the passes
    stopped: bool  # whether the callback stopped the run
    certificate: Certificate


class LinearSpace:
    """The rows of X, dense or sparse."""

    def __init__(self, X: Any, share: Array | None, classes: int) -> None:
        """``share``: cᵢ / Σ c, or None without biases."""
        self._mean = None
        self.pace = WITH_NEWTON if (classes - 1) * (X.shape[1] + 1) <= NEWTON_UNKNOWNS else BY_ASCENT
        where: tuple[Any, Any] = None, None
        if scipy.sparse.issparse(X):
            rows = scipy.sparse.csr_array(X, dtype=np.float64)
            where = rows.indptr.astype(np.int64), rows.indices.astype(np.int32)
            values = np.ascontiguousarray(rows.data)
            squares = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
        else:
            rows = np.ascontiguousarray(X, dtype=np.float64)
            values = rows.ravel()
            squares = np.einsum("ij,ij->i", rows, rows)
        self._X = rows  # the certificate is in double precision too, whose rounding is far below any tolerance
        self.spread = 1.0
        if share is not None:
            self._mean = Design(rows).rmatmul(share)
            self.spread = float(share @ squares - self._mean @ self._mean)
        self._rows = core.MulticlassRows(values, *where, *X.shape, self._mean)

    def run(self, constant: float, *settings: Any, **options: Any) -> tuple:
        return core.multiclass_svm(self._rows, constant, *settings, **options)

    def at_mean(self, W: Array, bias: Array) -> Array:
        """Scores of the mean of the inputs."""
        return bias if self._mean is None else bias + self._mean @ W

    def certify(self, problem: MulticlassProblem, W: Array, b: Array | None, dual: Array, tol: float) -> Certificate:
        return linear_multiclass_certificate(self._X, W, b, problem.y, problem.c, problem.cost, dual, tol=tol)


class KernelSpace:
    """A kernel matrix, centred at the mean of the inputs if there are biases."""

    def __init__(self, K: Array, share: Array | None, classes: int) -> None:
        self._K = K
        self.spread = 1.0 if share is None else float(share @ np.diagonal(K))
        self.pace, self._features = BY_ASCENT, None
        phi = _features(K) if len(K) <= FEATURE_ROWS else None
        if phi is not None:
            features = LinearSpace(phi, share, classes)
            if features.pace is WITH_NEWTON:
                self.pace, self._features = WITH_NEWTON, features

    def run(self, constant: float, *settings: Any, **options: Any) -> tuple:
        if self._features is not None:
            W, bias, dual, *rest = self._features.run(constant, *settings, **options)
            return None, self._features.at_mean(W, bias), dual, *rest
        K = self._K + constant**2 if constant else self._K
        _, _, dual, *rest = core.multiclass_kernel_svm(K, *settings, **options)
        return None, constant**2 * dual.sum(axis=0), dual, *rest

    def at_mean(self, W: None, bias: Array) -> Array:
        """Scores of the mean of the inputs."""
        return bias

    def certify(self, problem: MulticlassProblem, W: None, b: Array | None, dual: Array, tol: float) -> Certificate:
        return kernel_multiclass_certificate(self._K, b, problem.y, problem.c, problem.cost, dual, tol=tol)


def _features(K: Array) -> Array | None:
    """Φ with ΦΦ' = K; None if K is not positive semidefinite."""
    if not np.all(np.isfinite(K)):
        return None
    values, vectors = scipy.linalg.eigh(K)
    largest = float(values[-1])
    if values[0] < -1e-9 * max(largest, 0.0) or largest <= 0:
        return None
    kept = values > RANK * largest
    return np.ascontiguousarray(vectors[:, kept] * np.sqrt(values[kept]))


def solve_multiclass(
    space: LinearSpace | KernelSpace,
    problem: MulticlassProblem,
    *,
    biases: bool,
    tol: float,
    max_iter: int,
    random_state: int,
    report: Report | None,
) -> MulticlassSolution:
    """Minimise to a relative gap of ``tol``, with at most ``max_iter`` passes and Newton steps in all."""
    k = len(problem.cost)
    dual: Any = None
    centre, passes, steps, stopped = np.zeros(k), 0, 0, False
    pace = space.pace
    first = pace.first * (space.spread if space.spread > 0 else 1.0)
    growth, accuracy = 1.0, max(FIRST_TOLERANCE, tol) if biases else tol

    def watched(*record: Any) -> bool:
        nonlocal stopped
        assert report is not None
        stopped = bool(report(passes + record[0], *record[1:]))
        return stopped

    for outer in range(OUTER_STEPS):
        constant = float(np.sqrt(first * growth)) if biases else 0.0
        shifted = np.ascontiguousarray(problem.cost + centre[None, :] - centre[:, None])
        W, bias, dual, more, newton, *_ = space.run(
            constant, problem.y, problem.c, shifted, accuracy, max_iter - passes, random_state + outer, start=dual,
            report=None if report is None else watched,
        )  # fmt: skip
        b, passes, steps = centre + bias, passes + more, steps + newton
        certified = space.certify(problem, W, b if biases else None, dual, tol)
        if certified.converged or stopped or passes >= max_iter or not biases:
            break
        accuracy = max(min(accuracy, pace.share * certified.relative_gap), LAST_SHARE * tol)
        growth = min(growth * pace.growth, LARGEST) if certified.relative_gap > NEAR else growth
        centre = space.at_mean(W, b)
    return MulticlassSolution(W, b, dual, passes, steps, stopped, certified)
