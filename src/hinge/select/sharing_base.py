"""A fold of rows, and the base class of shared fits of the candidates of one learner on it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, clone

Values = list[dict[str, Any]]
GRAM_BYTES = 1e9


@dataclass
class Fold:
    """Training and test rows. ``full`` holds all rows, if folds are subsets of them; ``memory`` is shared by all folds."""

    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    X_test: Any
    full: Any = None
    train: np.ndarray | None = None
    test: np.ndarray | None = None
    memory: dict[Any, Any] = field(default_factory=dict)
    lock: Any = field(default_factory=threading.Lock)
    own: dict[Any, Any] = field(default_factory=dict)

    def options(self) -> dict[str, Any]:
        return {} if self.weight is None else {"sample_weight": self.weight}

    def remember(self, key: Any, make: Any, across: bool = True) -> Any:
        """The value of a key, computed once: for all folds, or (``across=False``) for this one.

        Arrays are cached up to a total of 1 GB.
        """
        store = self.memory if across else self.own
        with self.lock:
            if key in store:
                return store[key]
            value = make()
            held = sum(kept.nbytes for kept in store.values() if isinstance(kept, np.ndarray))
            if held + getattr(value, "nbytes", 0) <= GRAM_BYTES:
                store[key] = value
            return value


class Sharing:
    """Fits together candidates that differ only in ``varies``.

    ``serial`` marks fits that on few rows use one thread, inside the core: several folds then run in parallel.
    """

    varies: tuple[str, ...] = ()
    serial = False

    def suits(self, learner: BaseEstimator, values: Values) -> bool:
        return True

    def run(self, learner: BaseEstimator, values: Values, fold: Fold) -> Iterator[tuple[int, Any]]:
        raise NotImplementedError

    def leave_one_out(self, learner: BaseEstimator, values: Values, fold: Fold) -> np.ndarray | None:
        """Leave-one-out predictions, one row per candidate, by an exact shortcut; None if there is none."""
        return None


class Separately(Sharing):
    """Every candidate is fitted from scratch."""

    def run(self, learner: BaseEstimator, values: Values, fold: Fold) -> Iterator[tuple[int, Any]]:
        for k, value in enumerate(values):
            yield k, clone(learner).set_params(**value).fit(fold.X, fold.y, **fold.options())


def matmul(X: Any, W: np.ndarray) -> np.ndarray:
    return X @ W if scipy.sparse.issparse(X) else np.asarray(X) @ W
