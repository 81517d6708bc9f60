"""Estimates with a known sampling distribution: standard errors, tests and intervals of single weights."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray


class Sampled:
    """(estimate − true value) / standard error follows ``_reference()``, a distribution symmetric about zero."""

    estimate: Array

    def _reference(self) -> Any:
        raise NotImplementedError

    def _covariance(self) -> Array:
        """The covariance of the estimates; raises an error that explains why if there is none."""
        raise NotImplementedError

    @property
    def standard_error(self) -> Array:
        """Square roots of the variances."""
        return np.sqrt(np.maximum(np.diag(self._covariance()), 0.0))

    def _ratio(self) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.estimate / self.standard_error

    @property
    def p(self) -> Array:
        """Two-sided p-values of the hypotheses that single weights are zero."""
        return 2.0 * self._reference().sf(np.abs(self._ratio()))

    def interval(self, level: float = 0.95) -> Array:
        """Confidence intervals, one row (low, high) per name."""
        half = self.quantile(level) * self.standard_error
        return np.column_stack([self.estimate - half, self.estimate + half])

    def quantile(self, level: float) -> float:
        """The half-width of a two-sided interval of this level, in standard errors."""
        if not 0 < level < 1:
            raise ValueError(f"the level of an interval must lie strictly between 0 and 1, got {level!r}.")
        return float(self._reference().ppf(0.5 + 0.5 * level))
