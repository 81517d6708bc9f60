"""Where the decomposition of a machine without targets starts: multipliers whose sums are fixed, at the likely points.

Any multipliers with the right sums are feasible. At the optimum those at their bounds belong to the points of the lowest
s·f(x). The mean of s k(x, ·) over a few points, a Parzen classifier or density, orders the points nearly as f does, and
starts from its lowest points leave fewer variables to move than starts from the first points of the table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.problem.certificates.kernel_machine import Dual, expansion_scores, fill
from hinge.problem.kernels import Kernel, evaluate

Array = NDArray[np.float64]

# From this many points on; the mean is taken over this share of them.
MANY_POINTS = 2000
SHARE = 0.06


def likely_start(kernel: Kernel, X: Any, dual: Dual, *, single: bool) -> Array:
    """Feasible multipliers near those of the optimum; those of the dual if there are targets, or few points."""
    n = evaluate.length(X)
    if dual.scale > 0 or len(dual.sign) != n or n < MANY_POINTS or kernel.program() is None:
        return dual.start
    some = np.unique(np.linspace(0, n - 1, int(SHARE * n)).astype(int))
    mean = np.zeros(n)
    for s in (1.0, -1.0):
        side = some[dual.sign[some] == s]
        mass = float(dual.upper[side].sum())
        if mass > 0:
            mean[side] = s * dual.upper[side] / mass
    margins = dual.sign * expansion_scores(kernel, X, mean, single=single)
    start = np.zeros(n)
    for s in (1.0, -1.0):
        group = np.flatnonzero(dual.sign == s)
        order = group[np.argsort(margins[group], kind="stable")]
        start[order] = fill(dual.upper[order], min(float(dual.start[group].sum()), float(dual.upper[order].sum())))
    return start
