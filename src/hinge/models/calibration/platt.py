"""Probabilities from scores: Platt's sigmoid on held-out scores, and pairwise coupling for several classes.

    P(+1 | s) = 1 / (1 + exp(−(a s + b))),    a, b by maximum likelihood with targets (n₊ + 1)/(n₊ + 2), 1/(n₋ + 2)

References: Platt (1999); Wu, Lin & Weng (2004), second method.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hinge.problem.losses import Logistic
from hinge.problem.objective import make_objective
from hinge.problem.penalties import NoPenalty
from hinge.solvers.run import minimise

Array = NDArray[np.float64]


def fit_sigmoid(scores: Array, positive: NDArray[np.bool_], weight: Array | None = None) -> tuple[float, float]:
    """Slope a and offset b. An example with a soft target contributes to both labels, in proportion."""
    weight = np.ones(len(scores)) if weight is None else weight
    plus, minus = float(weight[positive].sum()), float(weight[~positive].sum())
    soft = np.where(positive, (plus + 1.0) / (plus + 2.0), 1.0 / (minus + 2.0))
    scale = max(float(np.max(np.abs(scores), initial=0.0)), 1e-12)
    twice = np.tile(scores / scale, 2)[:, None]
    labels = np.repeat([1.0, -1.0], len(scores))
    parts = np.concatenate([weight * soft, weight * (1.0 - soft)])
    objective = make_objective(twice, labels, Logistic(), NoPenalty(), sample_weight=parts)
    found = minimise(objective, solver="newton", tol=1e-10)[1]
    return float(found.w[0]) / scale, float(found.b[0])


def sigmoid(scores: Array, slope: float, offset: float) -> Array:
    """P(+1) for scores."""
    t = slope * scores + offset
    e = np.exp(-np.abs(t))
    return np.where(t >= 0, 1.0, e) / (1.0 + e)


def couple(pairwise: Array) -> Array:
    """Class probabilities p from P(i | i or j) = r_ij: minimise Σ_{i<j} (r_ji p_i − r_ij p_j)² over the simplex.

    ``pairwise`` is n × k × k. The minimiser solves the linear system [Q 1; 1' 0] [p; b] = [0; 1].
    """
    n, k, _ = pairwise.shape
    r = np.clip(pairwise, 1e-7, 1.0 - 1e-7)
    Q = -np.swapaxes(r, 1, 2) * r
    index = np.arange(k)
    off = r.copy()
    off[:, index, index] = 0.0
    Q[:, index, index] = np.sum(off**2, axis=1)
    system = np.ones((n, k + 1, k + 1))
    system[:, :k, :k] = Q
    system[:, k, k] = 0.0
    right = np.zeros((n, k + 1, 1))
    right[:, k] = 1.0
    p = np.clip(np.linalg.solve(system, right)[:, :k, 0], 0.0, None)
    return p / p.sum(axis=1, keepdims=True)
