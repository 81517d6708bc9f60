"""The law that results are the same bits for any number of threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

import hinge as hg


def assert_same_bits(arrays: Callable[[], Iterable[np.ndarray]], counts: Iterable[int] = (1, 2, 3, 7, 16)) -> None:
    """What `arrays` returns does not depend on the number of threads."""
    found = []
    try:
        for count in counts:
            hg.set_num_threads(count)
            found.append(tuple(arrays()))
    finally:
        hg.set_num_threads(None)
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)
