"""Wide problems in the coordinates of their row space.

Problem     min_{W,b} Σ cᵢ ℓ(yᵢ, W'xᵢ + b) + ½λ‖W‖², with many more features than examples
Reduction   the solution is a combination of the rows (representer theorem). With X' = QR, Q of d × n with orthonormal
            columns, W = QV has the scores R'V and the length of V: the same problem with the n × n matrix R' for X
Reference   Hastie & Tibshirani (2004), Efficient quadratic regularization for expression arrays
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from hinge._native import Design
from hinge.problem.objective import Array, Objective
from hinge.problem.penalties import L2

FEW = 200  # rows up to which the factorisation costs less than the passes over X that it saves
WIDE = 2  # features per row from which the reduction pays


@dataclass(frozen=True, eq=False)
class RowSpace:
    """Orthonormal coordinates of the space spanned by the rows of X."""

    basis: Array  # Q
    design: Design  # R'

    def reduced(self, objective: Objective, strength: float) -> Objective:
        """The objective in these coordinates."""
        return replace(objective, design=self.design, penalty=L2(strength))

    def lift(self, V: Array) -> Array:
        return self.basis @ V

    def project(self, W: Array) -> Array:
        return self.basis.T @ W


_KNOWN: weakref.WeakKeyDictionary[Design, RowSpace] = weakref.WeakKeyDictionary()


def uniform_ridge(objective: Objective) -> float:
    """λ if the penalty is ½λ‖w‖² and nothing else, zero otherwise."""
    parts = objective.penalty.coordinates(objective.d)
    if parts is None or np.any(parts.l1) or not (np.isinf(parts.lower).all() and np.isinf(parts.upper).all()):
        return 0.0
    return float(parts.l2[0]) if np.all(parts.l2 == parts.l2[0]) else 0.0


def pays(objective: Objective) -> bool:
    """Whether the factorisation costs less than it saves."""
    n, d = objective.design.shape
    few = n <= FEW or objective.loss.piecewise_linear
    return few and d > WIDE * n and isinstance(objective.design.source, np.ndarray) and uniform_ridge(objective) > 0


def row_space(design: Design) -> RowSpace:
    """The row space of a dense X; cached as long as the design lives, because folds and paths use it again."""
    found = _KNOWN.get(design)
    if found is None:
        Q, R = scipy.linalg.qr(np.asarray(design.source, dtype=np.float64).T, mode="economic", check_finite=False)
        found = _KNOWN[design] = RowSpace(Q, Design(np.ascontiguousarray(R.T)))
    return found
