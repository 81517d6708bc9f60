"""The assignment of examples to the machines of a support vector classifier of several classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Machines:
    """One machine per pair of classes, or per class against the rest: row m of every table is machine m."""

    classes: NDArray[np.int64]  # (machines, 2): the positive class and the negative one, −1 for all the others
    order: NDArray[np.int64]  # the examples, sorted by class if there is a machine per pair
    at: NDArray[np.int64]  # (machines, examples): positions in that order, padded with zeros
    lengths: NDArray[np.int64]
    signs: Array  # +1 for examples of the positive class, and for padding; −1 for the others

    @classmethod
    def of(cls, codes: NDArray[np.int64], k: int, multi_class: str) -> Machines:
        n = len(codes)
        if k == 2 or multi_class == "ovr":
            positive = np.array([1]) if k == 2 else np.arange(k)
            classes = np.column_stack([positive, np.where(k == 2, 0, np.full(len(positive), -1))])
            every = np.arange(n, dtype=np.int64)
            at = np.broadcast_to(every, (len(positive), n))
            signs = np.where(codes == positive[:, None], 1.0, -1.0)
            return cls(classes, every, at, np.full(len(positive), n), signs)
        sizes = np.bincount(codes, minlength=k)
        begin = np.cumsum(sizes) - sizes
        first, second = np.triu_indices(k, 1)
        lengths = sizes[first] + sizes[second]
        place = np.arange(lengths.max())
        positive = place < sizes[first][:, None]
        at = np.where(positive, begin[first][:, None] + place, (begin[second] - sizes[first])[:, None] + place)
        used = place < lengths[:, None]
        signs = np.where(positive | ~used, 1.0, -1.0)
        order = np.argsort(codes, kind="stable")
        return cls(np.column_stack([first, second]), order, np.where(used, at, 0), lengths, signs)

    def __len__(self) -> int:
        return len(self.classes)

    @property
    def rows(self) -> NDArray[np.int64]:
        """The indices of the examples in every machine."""
        return self.order[self.at]

    @property
    def used(self) -> NDArray[np.bool_]:
        """Which entries are not padding."""
        return np.arange(self.at.shape[1]) < self.lengths[:, None]

    def part(self, m: int) -> NDArray[np.int64]:
        """The examples of one machine."""
        return self.order[self.at[m, : self.lengths[m]]]

    def by_machine(self, coefficients: Array) -> Array:
        """(machines, examples): the coefficient of every example in every machine."""
        out = np.zeros((len(self), len(self.order)))
        used = self.used
        out[np.nonzero(used)[0], self.rows[used]] = coefficients[used]
        return out

    def by_other_class(self, coefficients: Array, k: int) -> Array:
        """(k − 1, examples): for each example of a class, its coefficients against the other classes, in order."""
        out, used = np.zeros((k - 1, len(self.order))), self.used
        first, second = self.classes[:, :1], self.classes[:, 1:]
        other = np.where(self.signs > 0, second - 1, first)
        out[other[used], self.rows[used]] = coefficients[used]
        return out


def dense_columns(coefficients: Any, sizes: Any) -> Array:
    """(points, pairs of classes) from (points, other classes): ``Machines.by_other_class``, transposed."""
    k, own = len(sizes), np.repeat(np.arange(len(sizes)), sizes)
    first, second = np.triu_indices(k, 1)
    out = np.zeros((len(own), len(first)))
    for c in range(k):
        out[np.ix_(own == c, (first == c) | (second == c))] = coefficients[own == c]
    return out
