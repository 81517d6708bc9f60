"""Estimates: a measured number and its standard error."""

from __future__ import annotations

import dataclasses
import enum
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from hinge.problem.numerics import Z95
from hinge.tables.number_formats import format_number


@dataclass(frozen=True)
class Estimate:
    """A mean and its standard error; ``low`` and ``high`` bound it with 95 % confidence (normal approximation)."""

    value: float
    standard_error: float

    @property
    def low(self) -> float:
        return self.value - Z95 * self.standard_error

    @property
    def high(self) -> float:
        return self.value + Z95 * self.standard_error

    @property
    def clear(self) -> bool:
        """Whether it is above zero with 95 % confidence."""
        return bool(self.low > 0)

    def root(self) -> Estimate:
        """The square root, with its standard error by the delta method."""
        root = math.sqrt(self.value)
        return Estimate(root, self.standard_error / (2 * root) if root > 0 else 0.0)

    def brief(self) -> str:
        """The value ± one standard error."""
        return f"{format_number(self.value, 4)} ± {format_number(self.standard_error, 2)}"

    def __str__(self) -> str:
        return f"{self.value:.4g} ± {Z95 * self.standard_error:.2g}"


def mean_of(values: np.ndarray, groups: np.ndarray | None = None) -> Estimate:
    """The mean with its standard error.

    ``groups`` is the fold of every value. Losses from one fold share a fitted model and are dependent, so the result has
    the larger of two standard errors: over examples, and over means of folds.
    """
    n = len(values)
    error = float(np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else math.nan
    if groups is not None:
        means = np.array([values[groups == g].mean() for g in np.unique(groups)])
        if len(means) > 1:
            error = max(error, float(np.std(means, ddof=1) / np.sqrt(len(means))))
    return Estimate(float(np.mean(values)), error)


def plain(value: Any) -> Any:
    """Nested dataclasses, arrays and tuples as dictionaries, lists and numbers for JSON (NaN as null)."""
    if isinstance(value, Estimate):
        parts = {"value": value.value, "standard_error": value.standard_error, "low": value.low, "high": value.high}
        return {key: plain(number) for key, number in parts.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value) if f.repr}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (str, int, bool)) else str(value)
