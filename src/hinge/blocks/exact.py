"""Exact sums of float64 numbers: the same bits for every order and every division into blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

UNIT = 1200  # sums are multiples of 2^−1200, which is less than the smallest float64


@dataclass(frozen=True)
class ExactSum:
    """Σ x, as an integer multiple of 2^−UNIT."""

    units: int = 0

    @classmethod
    def of(cls, x: np.ndarray) -> ExactSum:
        """The sum of an array of finite numbers."""
        fractions, exponents = np.frexp(np.asarray(x, dtype=np.float64).ravel())
        if len(fractions) == 0:
            return cls()
        significands = np.ldexp(fractions, 53).astype(np.int64)  # x = significands · 2^(exponent − 53)
        shift = exponents.astype(np.int64) - 53 + UNIT
        low = int(shift.min())
        # Split the significands into 27 and 26 bits: float64 adds up to 2^26 of either exactly.
        total = 0
        for start in range(0, len(significands), 1 << 26):
            part, at = significands[start : start + (1 << 26)], shift[start : start + (1 << 26)] - low
            high = np.bincount(at, (part >> 26).astype(np.float64))
            rest = np.bincount(at, (part & ((1 << 26) - 1)).astype(np.float64))
            for k in np.flatnonzero((high != 0) | (rest != 0)):
                total += ((int(high[k]) << 26) + int(rest[k])) << (int(k) + low)
        return cls(total)

    def merge(self, other: ExactSum) -> ExactSum:
        """The sum of both."""
        return ExactSum(self.units + other.units)

    def __float__(self) -> float:
        """The sum, rounded once; infinite if it is too large."""
        try:
            return self.units / (1 << UNIT)
        except OverflowError:
            return float("inf") if self.units > 0 else float("-inf")
