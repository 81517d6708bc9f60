"""Maximisation of an expensive function of few parameters: the marginal likelihood of a Gaussian process.

Problem     max_θ L(θ; data) over a box, with gradients; one evaluation costs O(n³)
Method      from coarse to fine: the maximum for half of the rows (1/8 of the cost) is found first, and gives the start
            and the curvature with which quasi-Newton steps on all rows begin. Few rows say little about some
            parameters (the noise, often): there a weak prior around the user's start keeps them from running away
Stops       when the quadratic model promises less than ``tol`` (in nats)
Reference   Nocedal & Wright (2006), §6.1 (BFGS); Rasmussen & Williams (2006), §5.4.1
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from hinge.problem.kernels import Kernel

Array = NDArray[np.float64]
Evaluate = Callable[[Array, Any], tuple[float, Array]]
Evidence = Callable[[Kernel, Any], tuple[float, Array]]

# Each level has half the rows of the next finer one, but at least this many.
COARSE_ROWS = 350
# The tolerance on coarse levels.
COARSE_TOL = 0.02
# The standard deviation of the weak prior, in logarithms.
LEASH = 2.0
# The longest step of a parameter, in logarithms.
LONGEST = 1.0
# The step of finite differences of the gradient.
DIFFERENCE = 1e-3
MOST_STEPS = 100


def fit_kernel(kernel: Kernel, evidence: Evidence, model: Any, n: int, rng: Any) -> Kernel:
    """The kernel whose parameters maximise the evidence, from the given and from random starting points.

    ``evidence(kernel, rows)`` gives value and gradient. Of ``model`` the parameters ``optimizer``, ``bounds``,
    ``n_restarts_optimizer`` and ``tol`` are used: optimizer is None, "fmin_l_bfgs_b" or a function
    ``(objective, theta, bounds) → (theta, value)``, as in scikit-learn.
    """
    optimizer, start = model.optimizer, kernel.theta
    if optimizer is None or not len(start):
        return kernel
    low, high = model.bounds
    if not 0 < low < high:
        raise ValueError(f"bounds must be 0 < low < high, got {model.bounds!r}.")
    box = np.log(np.where(np.isnan(kernel.limits), [low, high], kernel.limits))

    def evaluate(theta: Array, rows: Any) -> tuple[float, Array]:
        return evidence(kernel.with_theta(np.asarray(theta)), rows)

    def objective(theta: Array, eval_gradient: bool = True) -> Any:
        value, gradient = evaluate(theta, None)
        return (-value, -gradient) if eval_gradient else -value

    starts = [start, *(rng.uniform(box[:, 0], box[:, 1]) for _ in range(model.n_restarts_optimizer))]
    if callable(optimizer):
        found = [np.asarray(optimizer(objective, theta, box)[0]) for theta in starts]
    else:
        found = [maximise(evaluate, theta, box, n, model.tol) for theta in starts]
    if len(found) > 1:
        found.sort(key=lambda theta: -evaluate(theta, None)[0])
    if model.kernel is not None:  # the user did not choose the bounds of the default kernel
        _warn_at_bounds(kernel.tunable, found[0], box)
    return kernel.with_theta(found[0])


def _warn_at_bounds(names: tuple[str, ...], theta: Array, box: Array) -> None:
    """One warning for every parameter that ended at a bound."""
    for i, j in zip(*np.nonzero(np.isclose(box, theta[:, None]))):
        dimension = names[:i].count(names[i])
        side, remedy = [("lower", "Decreasing"), ("upper", "Increasing")][j]
        warnings.warn(
            f"The optimal value found for dimension {dimension} of parameter {names[i]} is close to the specified {side} "
            f"bound {float(np.exp(box[i, j])):g}. {remedy} the bound and calling fit again may find a better value.",
            ConvergenceWarning,
            stacklevel=4,
        )


def maximise(evaluate: Evaluate, theta: Array, box: Array, n: int, tol: float) -> Array:
    """The maximiser near ``theta``; ``evaluate(theta, rows)`` gives value and gradient on some rows, or all (None).

    ``box`` has the bounds of each entry as rows.
    """
    low, high = box[:, 0], box[:, 1]
    theta = np.clip(theta, low, high)
    if not len(theta):
        return theta
    sizes = [n]
    while sizes[0] // 2 >= COARSE_ROWS:
        sizes.insert(0, sizes[0] // 2)
    start, curvature = theta, None
    for size, finer in zip(sizes, [*sizes[1:], None]):
        rows = None if size == n else np.linspace(0, n - 1, size).astype(np.intp)

        def objective(t: Array, rows: Any = rows) -> tuple[float, Array]:
            value, gradient = evaluate(t, rows)
            away = np.zeros_like(t) if rows is None else (t - start) / LEASH
            return 0.5 * float(away @ away) - value, away / LEASH - gradient

        if curvature is None:
            theta = _coarse_start(objective, theta, low, high)
        else:
            enough = tol if rows is None else max(tol, COARSE_TOL)
            theta, curvature = _newton(objective, theta, curvature, low, high, enough)
        if finer is not None:
            curvature = (_curvature(objective, theta, high) if curvature is None else curvature) * (finer / size)
    return theta


def _coarse_start(objective: Callable[[Array], tuple[float, Array]], theta: Array, low: Array, high: Array) -> Array:
    found = scipy.optimize.minimize(
        objective, theta, jac=True, method="L-BFGS-B", bounds=list(zip(low, high)), options={"maxiter": MOST_STEPS}
    )
    return np.clip(found.x, low, high)


def _curvature(objective: Callable[[Array], tuple[float, Array]], theta: Array, high: Array) -> Array:
    """The second derivatives by differences of gradients, made positive definite."""
    here = objective(theta)[1]
    H = np.empty((len(theta), len(theta)))
    for j in range(len(theta)):
        step = np.zeros(len(theta))
        step[j] = DIFFERENCE if theta[j] + DIFFERENCE <= high[j] else -DIFFERENCE
        H[j] = (objective(theta + step)[1] - here) / step[j]
    return _definite(0.5 * (H + H.T))


def _definite(H: Array) -> Array:
    values, vectors = np.linalg.eigh(H)
    floor = max(1e-3 * np.abs(values).max(), 1e-6)
    return (vectors * np.maximum(np.abs(values), floor)) @ vectors.T


def _newton(
    objective: Callable[[Array], tuple[float, Array]], theta: Array, B: Array, low: Array, high: Array, tol: float
) -> tuple[Array, Array]:
    """Quasi-Newton steps inside the box, starting with curvature B."""
    value, gradient = objective(theta)
    radius = LONGEST
    for _ in range(MOST_STEPS):
        inside = ~(((theta <= low) & (gradient > 0)) | ((theta >= high) & (gradient < 0)))
        step = np.zeros_like(theta)
        step[inside] = -np.linalg.solve(B[np.ix_(inside, inside)], gradient[inside])
        if -0.5 * float(step @ gradient) <= tol:
            break
        step *= min(1.0, radius / np.abs(step).max())
        while True:
            new = np.clip(theta + step, low, high)
            new_value, new_gradient = objective(new)
            s, u = new - theta, new_gradient - gradient
            # A failed step has still measured the curvature.
            if np.isfinite(new_value) and float(s @ u) > 1e-10 * float(np.linalg.norm(s) * np.linalg.norm(u)):
                Bs = B @ s
                B = B - np.outer(Bs, Bs) / float(s @ Bs) + np.outer(u, u) / float(s @ u)
            if new_value <= value or np.abs(s).max() < 1e-8:
                break
            step = s * _cubic(value, float(gradient @ s), new_value, float(new_gradient @ s))
        if not new_value <= value:
            break
        theta, value, gradient = new, new_value, new_gradient
        radius = min(LONGEST, 3.0 * np.abs(s).max())
    return theta, B


def _cubic(f0: float, d0: float, f1: float, d1: float) -> float:
    """The minimiser in (0, 1) of the cubic with these values and derivatives at 0 and 1."""
    if not np.isfinite(f1):
        return 0.25
    a = d0 + d1 - 3.0 * (f1 - f0)
    root = np.sqrt(max(a * a - d0 * d1, 0.0))
    bottom = d1 - d0 + 2.0 * root
    return float(np.clip(1.0 - (d1 + root - a) / bottom, 0.1, 0.7)) if bottom else 0.5
