"""Sums over examples.

``c @ v`` of long vectors is given to NumPy's BLAS, which wakes its threads for it; when the sum is done they go on
waiting for work, at full speed, for some tens of milliseconds, and native code that starts meanwhile gets half of the
machine. A sum over examples takes no time worth sharing out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

OVERFLOWED = (
    "The fit overflowed: X, y or sample_weight has values too large, or too different in size, for floating point. "
    "Rescale them; StandardScaler does it for X."
)


def weighted_sum(c: np.ndarray, v: np.ndarray) -> Any:
    """Σ cᵢ vᵢ: a number, or one for each column of v."""
    return np.einsum("i,i...->...", c, v)


# Two-sided 95 % of the normal distribution.
Z95 = 1.959963984540054
