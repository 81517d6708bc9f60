"""Paths: the solutions for many strengths of one penalty, each warm-started from the previous one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from hinge.models.base import ACCEPT_SPARSE, FLOATS, check_weights, contiguous, finiteness
from hinge.models.linear.base import elastic_penalty
from hinge.models.linear.multitask import row_penalty
from hinge.problem.certificates.certificate import with_run
from hinge.problem.certificates.linear import path_certificates
from hinge.problem.losses import Squared
from hinge.problem.objective import Objective, make_objective
from hinge.solvers.base import Solution, Status
from hinge.solvers.block_descent import BlockCoordinateDescent, block_path
from hinge.solvers.proximal_newton import ProximalNewton, penalty_path
from hinge.solvers.run import Result, solve
from hinge.solvers.scikit_learn_names import counterpart
from hinge.solvers.shifted import shift_of


def largest_strength(objective: Objective) -> float:
    """The smallest strength λ at which all weights are zero; only for penalties with an L1 part."""
    w, b = objective.zero()
    if objective.fit_intercept and objective.outputs == 1:
        b = np.array([objective.loss.baseline(objective.y, objective.c)])
    elif objective.fit_intercept:
        b = objective.c @ objective.y
    _, g, _ = objective.risk_gradient(w, b)
    return objective.penalty.lambda_max(g)


def strength_grid(objective: Objective, eps: float, count: int) -> np.ndarray:
    """``count`` strengths, geometric from the smallest that makes all weights zero down to ``eps`` times that."""
    top = largest_strength(objective)
    if not np.isfinite(top):
        raise ValueError(
            "A grid of strengths needs a penalty with an L1 part (l1_ratio above zero); give alphas as an array instead."
        )
    if top <= np.finfo(float).resolution:
        return np.full(count, np.finfo(float).resolution)
    return np.geomspace(top, top * eps, count)


def path_weights(
    objective: Objective,
    strengths: Sequence[float] | np.ndarray,
    *,
    tol: float = 1e-6,
    max_iter: int | None = None,
    solver: Any = "auto",
) -> tuple[np.ndarray, np.ndarray]:
    """Weights (d × targets, if several, × number of λ) and biases for every strength, without certificates: for folds."""
    if solver == "auto" and not ProximalNewton().missing(objective):
        W, B, _ = _native_path(objective, strengths, tol, max_iter)
        return W.T, B
    if solver == "auto" and not BlockCoordinateDescent().missing(objective):
        limit = max_iter or BlockCoordinateDescent.default_max_iter
        W, B = _block_path(objective, np.asarray(strengths, dtype=np.float64), tol, limit)
        return np.moveaxis(W, 0, -1), B.T
    results = solve_path(objective, strengths, tol=tol, max_iter=max_iter, solver=solver)
    W, B = np.stack([r.w for r in results], axis=-1), np.stack([r.b for r in results], axis=-1)
    return W, B if W.ndim == 3 else B[0]


def _native_path(objective: Objective, strengths: Any, tol: float, max_iter: int | None) -> tuple[Any, Any, Any]:
    unit, row = _unit_problem(objective)
    limit = max_iter or ProximalNewton.default_max_iter
    W, B, iterations = penalty_path(unit, np.asarray(strengths, dtype=np.float64), tol=tol, max_iter=limit)
    return W, B if row is None else B - W @ row, iterations


def _block_path(objective: Objective, strengths: np.ndarray, tol: float, limit: int) -> tuple[Any, Any]:
    unit, row = _unit_problem(objective)
    W, B = block_path(unit, strengths, tol=tol, max_iter=limit)
    return W, B if row is None else B - np.einsum("kjt,j->kt", W, row)


def _unit_problem(objective: Objective) -> tuple[Objective, np.ndarray | None]:
    """The problem with a penalty of strength one, on shifted columns if some are far from zero, and the row subtracted."""
    unit = objective.with_penalty(objective.penalty.with_strength(1.0))
    shift = shift_of(objective.design) if objective.fit_intercept else None
    return (unit, None) if shift is None else (shift.reduced(unit), shift.row)


def solve_path(
    objective: Objective,
    strengths: Sequence[float] | np.ndarray,
    *,
    tol: float = 1e-6,
    max_iter: int | None = None,
    solver: Any = "auto",
    start: tuple[np.ndarray, np.ndarray] | None = None,
) -> list[Result]:
    """Solutions for every strength, in the given order (descending is fastest), each with its certificate."""
    results: list[Result] = []
    if solver == "auto" and start is None and not ProximalNewton().missing(objective):
        began = time.perf_counter()
        W, B, iterations = _native_path(objective, strengths, tol, max_iter)
        share = (time.perf_counter() - began) / max(len(strengths), 1)  # one call finds all points
        certificates = path_certificates(objective, strengths, W, B, tol)
        limit = max_iter or ProximalNewton.default_max_iter
        for w, b, k, c in zip(W, B, iterations, certificates):
            status = Status.CONVERGED if c.converged else Status.MAX_ITER if k >= limit else Status.SHORT
            certified = with_run(c, solver="proximal-newton", iterations=int(k), seconds=share, status=status.value)
            results.append(Result(Solution(w, np.array([b]), status, int(k)), certified))
        return results
    for lam in strengths:
        at = objective.with_penalty(objective.penalty.with_strength(float(lam)))
        result = solve(at, solver=counterpart(solver, at), tol=tol, max_iter=max_iter, start=start)
        start = (result.w, result.b)
        results.append(result)
    return results


def enet_path(
    X: Any,
    y: Any,
    *,
    l1_ratio: float = 0.5,
    eps: float = 1e-3,
    alphas: Any = 100,
    precompute: Any = "auto",
    Xy: Any = None,
    copy_X: bool = True,
    coef_init: Any = None,
    verbose: bool = False,
    return_n_iter: bool = False,
    positive: bool = False,
    check_input: bool = True,
    tol: float = 1e-6,
    max_iter: int | None = None,
    sample_weight: Any = None,
    fit_intercept: bool = False,
    **params: Any,
) -> Any:
    """Elastic-net weights for many strengths: minimises ‖y − Xw‖²/(2n) + α(ρ‖w‖₁ + (1−ρ)/2·‖w‖²) for every α.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        The inputs.
    y : array of n targets, or n × k
        For k targets the weights of a feature are penalised together, as in :class:`MultiTaskElasticNet`.
    l1_ratio : float
        ρ, above zero unless ``alphas`` is an array.
    eps : float
        The smallest α as a fraction of the largest, where all weights are zero.
    alphas : int or array
        How many strengths, or the strengths.
    coef_init : array, optional
        Where to begin.
    return_n_iter : bool
        Return the iterations of every fit as well.
    positive : bool
        Only weights ≥ 0 are allowed.
    max_iter : int, optional
        A limit on iterations.
    tol : float
        The relative duality gap to reach.
    sample_weight : array of n weights, optional
        How much each example counts; all the same by default.
    fit_intercept : bool
        Whether there is a bias (not returned); the data are not centred otherwise, as in scikit-learn.
    precompute, Xy, copy_X, verbose, check_input
        Accepted for compatibility.
    **params
        ``selection`` and ``random_state``, accepted for compatibility.

    Returns
    -------
    alphas : array, from large to small
    coefs : array of shape (d, number of α), or (k, d, number of α)
    dual_gaps : array of shape (number of α,)
        Each is a proof: the objective is at most this much above the optimum.
    n_iters : list of int, if ``return_n_iter``

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> alphas, coefs, gaps = hg.lasso_path(X, X[:, 0], alphas=[0.5, 0.1])
    >>> coefs.shape, bool(gaps.max() < 1e-6)
    ((3, 2), True)
    """
    from sklearn.utils import check_X_y

    unknown = sorted(set(params) - {"selection", "random_state"})
    if unknown:
        raise ValueError(f"Unexpected parameters in params: {', '.join(unknown)}.")
    settings: dict[str, Any] = {"accept_sparse": ACCEPT_SPARSE, "dtype": FLOATS, **finiteness(X)}
    X, y = check_X_y(X, y, multi_output=True, y_numeric=True, **settings)
    X, y, weights = contiguous(X), np.asarray(y, dtype=np.float64), check_weights(sample_weight, X)
    several = y.ndim == 2
    if several and positive:
        raise ValueError(f"positive=True needs one target; y has {y.shape[1]} columns.")
    penalty = row_penalty(1.0, l1_ratio) if several else elastic_penalty(1.0, l1_ratio, positive=positive)
    objective = make_objective(X, y, Squared(), penalty, sample_weight=weights, fit_intercept=fit_intercept)
    if np.ndim(alphas) == 0:
        strengths = strength_grid(objective, eps, int(alphas))
    else:
        strengths = np.sort(np.asarray(alphas, dtype=np.float64))[::-1]
    start = None
    if coef_init is not None:
        start = np.asarray(coef_init, dtype=np.float64).T, np.zeros(objective.outputs)
    path = solve_path(objective, strengths, tol=tol, max_iter=max_iter, start=start)
    coefs = np.stack([result.w.T for result in path], axis=-1).astype(X.dtype)
    gaps = np.array([result.certificate.gap for result in path])
    found = (strengths, coefs, gaps)
    return (*found, [result.solution.iterations for result in path]) if return_n_iter else found


def lasso_path(X: Any, y: Any, **options: Any) -> Any:
    """Lasso weights for many strengths: :func:`enet_path` with ``l1_ratio=1``.

    Parameters
    ----------
    X, y
        As for :func:`enet_path`.
    **options
        Every other parameter of :func:`enet_path` but ``l1_ratio``.
    """
    if "l1_ratio" in options:
        raise TypeError("lasso_path has no l1_ratio; use enet_path.")
    return enet_path(X, y, l1_ratio=1.0, **options)
