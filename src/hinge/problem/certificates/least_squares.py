"""Objective and lower bound of least squares from sums of products alone, without another pass over the examples.

With S = [X 1 y]'C[X 1 y] and v = (−w, −b, 1) the errors r = y − Xw − b have  r'Cr = v'Sv,  X'Cr = (Sv)_X  and
r'Cy = (Sv)_y. So, with the dual variables u = −r of balanced errors,

    P(w, b) = ½ v'Sv + Ω(w),        D(s·u) = s (Sv)_y − ½ s² v'Sv − Ω*(s (Sv)_X),   0 < s ≤ 1.

The rounding error of S: every entry is a sum of n products in blocks, so that |δ(v'Sv)| is about
√(blocks)·ε·(Σ_j |v_j| √S_jj)² (Higham and Mary, 2019); far less than the objective unless the fit is nearly perfect
or the columns nearly dependent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hinge.problem.numerics import weighted_sum
from hinge.problem.objective import Array, Objective

# Native sums use blocks of about this many rows: the longest chain of additions is that, or the number of blocks.
BLOCK = 128
LEAST_CHAIN = 64.0  # a generous least value; more with very many blocks


class SummedUp(NamedTuple):
    """Risk and gradient at weights and a bias, from sums of products."""

    risk: float  # ½ r'Cr
    errors: float  # r'Cr with the bias that balances the errors
    cross: float  # r'Cy, likewise
    gradient: Array  # X'Cu = −X'Cr, likewise
    rounding: float  # bound on the rounding error of risk, errors and cross


def summed_up(objective: Objective, sums: Array, w: Array, b: Array) -> SummedUp:
    """Risk and gradient from ``sums`` = [X 1 y]'C[X 1 y], with offsets subtracted from y."""
    d = objective.d
    v = np.concatenate([-w, -b if objective.fit_intercept else [0.0], [1.0]])
    size = float(np.abs(v) @ np.sqrt(np.maximum(np.diag(sums), 0.0)))
    Sv = weighted_sum(v, sums)
    risk = 0.5 * float(v @ Sv)
    if objective.fit_intercept:
        shift = Sv[d] / sums[d, d]
        v[d] -= shift
        Sv -= shift * sums[:, d]
    chain = max(LEAST_CHAIN, float(np.sqrt(objective.n / BLOCK)))
    return SummedUp(risk, float(v @ Sv), float(Sv[-1]), -Sv[:d], chain * np.finfo(float).eps * size * size)
