"""Tables in every form that ``hg.scan`` takes."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def table(rng):
    """Numbers x0 … x3, a target, weights and offsets, as a dict of columns."""
    n = 211
    X = rng.normal(size=(n, 4))
    return {f"x{j}": X[:, j] for j in range(4)} | {
        "y": X @ [1.0, -2.0, 0.5, 0.0] + rng.normal(size=n),
        "s": rng.integers(0, 3, n).astype(float),
        "o": 0.1 * rng.normal(size=n),
    }


@pytest.fixture
def features(table):
    return np.column_stack([table[f"x{j}"] for j in range(4)])
