"""Functions in the space of a kernel, for the learner: any loss, by the representer theorem.

    min_f  Σ cᵢ ℓ(yᵢ, f(xᵢ) + b) + Ω(‖f‖)    has a solution    f = Σⱼ αⱼ k(xⱼ, ·),    ‖f‖² = α'Kα

With K = ΦΦ' (a Cholesky factor with pivots, r columns) this is the linear problem in w = Φ'α: scores Φw, ‖f‖ = ‖w‖.
Any linear solver minimises it, and its certificate is the certificate of f. Losses whose dual is that of a support
vector machine use the decomposition solver instead. With ``centres`` f is an expansion over that many examples only
(Nyström): see ``hinge.models.kernel.centres``.

A matrix with negative eigenvalues has no factor Φ. It is clipped: with K = VΛV', Φ = V₊Λ₊^½ over the positive
eigenvalues and α = V₊Λ₊^−½ w, so that Kα = Φw and α'Kα = ‖w‖². This is a different problem, so the certificate is its
stationarity residual, never a gap.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from hinge.models.kernel.centres import fit_centres
from hinge.models.kernel.expansion import Expansion, take
from hinge.models.learner import Fit, Task, minimise
from hinge.problem.certificates.kernel_machine import Dual, classification, regression
from hinge.problem.certificates.stationarity import without_gap
from hinge.problem.kernels import Definiteness, Kernel, as_kernel, definiteness, full_gram, warn_indefinite
from hinge.problem.losses import Absolute, EpsilonInsensitive, Hinge, Quantile, normalise_weights
from hinge.problem.objective import make_objective
from hinge.problem.penalties import L2, L2Ball, NoPenalty, Penalty
from hinge.problem.spaces import RKHS
from hinge.solvers.decomposition import make_certificate, solve_dual
from hinge.solvers.run import solve

Array = NDArray[np.float64]

# Pivots below this fraction of the largest diagonal entry are rounding errors.
RANK_TOLERANCE = 1e-13
# The smallest gap that is reported, relative to the objective.
ROUNDING = 1e-14
# Φ is not a factor of K if ΦΦ'v differs from Kv by more than this fraction of ‖Kv‖ for random v.
NO_FACTOR = 1e-6
# The cache of the decomposition solver within the learner.
CACHE_BYTES = 5e8


def pivoted_cholesky(K: Array, tolerance: float = RANK_TOLERANCE) -> tuple[Array, NDArray[np.int64]]:
    """Φ (n × r) with ΦΦ' = K, and the r pivots; Φ at the pivots is lower triangular."""
    scale = float(np.max(np.diagonal(K), initial=0.0))
    factor, pivots, rank, info = scipy.linalg.lapack.dpstrf(np.asfortranarray(K), tol=tolerance * scale, lower=1)
    if info < 0:
        raise ValueError("The kernel matrix has entries that are not finite.")
    order = pivots.astype(np.int64) - 1
    phi = np.zeros((len(K), rank))
    phi[order] = np.tril(factor)[:, :rank]
    return phi, order[:rank]


@dataclass(frozen=True)
class Factor:
    """Features Φ of the training examples, and α at the ``support`` with Kα = Φw for any w: α = ``back`` w."""

    phi: Array
    support: NDArray[np.int64]
    triangular: Array | None = None  # Φ at the support: α = Φ_support^{−T} w
    back: Array | None = None
    clipped: bool = False

    def coefficients(self, w: Array) -> Array:
        if self.back is not None:
            return self.back @ w
        return scipy.linalg.solve_triangular(self.triangular, w, lower=True, trans="T")


def factor_gram(kernel: Kernel, K: Array) -> Factor:
    """K = ΦΦ', or the part of K with positive eigenvalues if it has negative ones."""
    phi, pivots = pivoted_cholesky(K)
    if not kernel.psd and (definiteness(kernel, None, K) is Definiteness.INDEFINITE or not _is_factor(phi, K)):
        values, vectors = scipy.linalg.eigh(K)
        kept = values > RANK_TOLERANCE * len(K) * np.abs(values).max(initial=0.0)
        root = np.sqrt(values[kept])
        every = np.arange(len(K))
        return _nonempty(Factor(vectors[:, kept] * root, every, back=vectors[:, kept] / root, clipped=True), len(K))
    return _nonempty(Factor(phi, pivots, triangular=phi[pivots]), len(K))


def _nonempty(factor: Factor, n: int) -> Factor:
    """A matrix without positive eigenvalues has no features: a single zero feature represents it."""
    if factor.phi.shape[1]:
        return factor
    return replace(factor, phi=np.zeros((n, 1)), support=np.zeros(0, dtype=np.int64), back=np.zeros((0, 1)))


def _is_factor(phi: Array, K: Array) -> bool:
    """Whether ΦΦ'v = Kv for a few random v: if so, K is almost surely equal to ΦΦ' and positive semidefinite."""
    v = np.random.default_rng(0).normal(size=(len(K), 2))
    wanted = K @ v
    return bool(np.linalg.norm(phi @ (phi.T @ v) - wanted) <= NO_FACTOR * np.linalg.norm(wanted))


def check_norm_penalty(penalty: Penalty) -> None:
    """Only penalties of ‖f‖ are defined in a space of functions."""
    plain = isinstance(penalty, NoPenalty | L2Ball) or (
        isinstance(penalty, L2)
        and getattr(penalty, "weights", None) is None
        and not getattr(penalty, "positive", False)
    )
    if not plain:
        raise ValueError(f"penalty={penalty!r} is not a function of the norm of f; in an RKHS use hg.L2 or hg.L2Ball.")


@minimise.register
def _(space: RKHS, task: Task) -> Fit:
    check_norm_penalty(task.penalty)
    kernel = as_kernel(space.kernel).resolve(task.X, task.sample_weight)
    if space.centres is not None:
        return fit_centres(kernel, space, task)
    dual = _dual(space, task)
    if dual is not None:
        return _by_decomposition(kernel, task, dual)
    return _by_features(kernel, space, task)


def _dual(space: RKHS, task: Task) -> Dual | None:
    """The dual of a support vector machine, if the task is one: hinge or tube loss, ridge penalty, a bias."""
    if task.solver not in ("auto", "decomposition") or not space.fit_intercept:
        return None
    if not isinstance(task.penalty, L2) or not task.penalty.lam > 0:
        return None
    weights = None if task.sample_weight is None else np.asarray(task.sample_weight, dtype=np.float64)
    upper = normalise_weights(weights, len(task.y)) / task.penalty.lam
    if isinstance(task.loss, Hinge):
        return classification(task.y, upper)
    if isinstance(task.loss, EpsilonInsensitive):
        return regression(task.y, task.loss.epsilon, upper)
    if isinstance(task.loss, Absolute):
        return regression(task.y, 0.0, upper)
    if isinstance(task.loss, Quantile):
        both = regression(task.y, 0.0, upper)
        level = task.loss.quantile
        return replace(both, upper=np.concatenate([level * upper, (1.0 - level) * upper]))
    return None


def _by_decomposition(kernel: Kernel, task: Task, dual: Dual) -> Fit:
    solution = solve_dual(
        kernel, task.X, dual, tol=task.tol, cache_bytes=CACHE_BYTES,
        max_iter=-1 if task.max_iter is None else task.max_iter, callback=task.callback,
    )  # fmt: skip
    # ½‖f‖² + Σ U ξ is the learner's objective divided by λ.
    strength = task.penalty.lam  # type: ignore[attr-defined]
    certificate = make_certificate([solution], task.tol, strength)
    if solution.eigenvalues is Definiteness.INDEFINITE:
        warn_indefinite(kernel, "The fit is a stationary point of the dual.")
    support = np.flatnonzero(solution.coefficients)
    function = Expansion(kernel, take(kernel, task.X, support), solution.coefficients[support], solution.bias)
    attributes = {
        "dual_coef_": solution.coefficients[support], "support_": support, "intercept_": solution.bias,
        "n_iter_": max(solution.iterations, 1),
    }  # fmt: skip
    return Fit(function, certificate, attributes)


def _by_features(kernel: Kernel, space: RKHS, task: Task) -> Fit:
    factor = factor_gram(kernel, full_gram(kernel, task.X))
    if factor.clipped:
        warn_indefinite(kernel, "The negative eigenvalues of its matrix are left out.")
    objective = make_objective(
        factor.phi, task.y, task.loss, task.penalty,
        sample_weight=task.sample_weight, fit_intercept=space.fit_intercept, classes=task.classes,
    )  # fmt: skip
    # A gap of tol² corresponds to a gradient of about tol.
    tol = max(task.tol**2, ROUNDING) if factor.clipped else task.tol
    result = solve(
        objective, solver=task.solver, tol=tol, max_iter=task.max_iter, random_state=task.random_state,
        history=task.history, callback=task.callback, warn=not factor.clipped,
    )  # fmt: skip
    certificate = result.certificate
    if factor.clipped:
        certificate = without_gap(certificate, objective, result.w, result.b, task.tol)
    alpha = factor.coefficients(result.w)
    bias: Any = result.b if result.w.ndim == 2 else float(result.b[0])
    attributes = {
        "dual_coef_": alpha, "support_": factor.support, "intercept_": bias,
        "n_iter_": max(result.solution.iterations, 1),
    }  # fmt: skip
    if task.history:
        attributes["history_"] = result.solution.history
    function = Expansion(kernel, take(kernel, task.X, factor.support), alpha, bias)
    return Fit(function, certificate, attributes)
