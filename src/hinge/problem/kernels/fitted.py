"""Declarations of the kernel parameters that are fitted, and of their bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hinge.problem.kernels.algebra import Wrapper
from hinge.problem.kernels.base import Array, Kernel
from hinge.problem.kernels.evaluate import Program


@dataclass(frozen=True, eq=False)
class _Same(Wrapper):
    """A kernel with the same values and another declaration of its fitted parameters."""

    kernel: Kernel

    def program(self) -> Program | None:
        return self.kernel.program()

    def block(self, A: Any, B: Any) -> Array:
        return self.kernel.block(A, B)

    def diagonal(self, A: Any) -> Array:
        return self.kernel.diagonal(A)

    def features(self, X: Any) -> Any:
        return self.kernel.features(X)

    def resolve(self, X: Any, weight: Array | None = None) -> Kernel:
        return replace(self, kernel=self.kernel.resolve(X, weight))


@dataclass(frozen=True, eq=False)
class Fixed(_Same):
    """A kernel whose parameters are not fitted."""

    tunable: ClassVar[tuple[str, ...]] = ()

    @property
    def theta(self) -> Array:
        return np.zeros(0)

    @property
    def limits(self) -> Array:
        return np.zeros((0, 2))

    def with_theta(self, theta: Array) -> Kernel:
        return self

    def derivatives(self, A: Any) -> Iterator[Array]:
        yield from ()

    def __repr__(self) -> str:
        return f"({self.kernel!r}).fixed()"


@dataclass(frozen=True, eq=False)
class Within(_Same):
    """A kernel whose parameters are fitted between bounds, or not at all, one by one."""

    pairs: tuple[tuple[float, float] | None, ...] = ()

    def __post_init__(self) -> None:
        names = self.kernel.tunable
        if len(self.pairs) != len(names):
            raise ValueError(
                f"{self.kernel!r} has {len(names)} parameters to fit {names}, got {len(self.pairs)} bounds."
            )
        for pair in self.pairs:
            if pair is not None and not (len(pair) == 2 and 0 < pair[0] <= pair[1]):
                raise ValueError(f"bounds must be None or 0 < low ≤ high, got {pair!r}.")

    @property
    def _free(self) -> NDArray[np.intp]:
        return np.array([i for i, pair in enumerate(self.pairs) if pair is not None], dtype=np.intp)

    @property
    def tunable(self) -> tuple[str, ...]:
        return tuple(self.kernel.tunable[i] for i in self._free)

    @property
    def theta(self) -> Array:
        return self.kernel.theta[self._free]

    @property
    def limits(self) -> Array:
        return np.array([pair for pair in self.pairs if pair is not None], dtype=np.float64).reshape(-1, 2)

    def with_theta(self, theta: Array) -> Kernel:
        every = self.kernel.theta
        every[self._free] = theta
        return replace(self, kernel=self.kernel.with_theta(every))

    def derivatives(self, A: Any) -> Iterator[Array]:
        if len(self._free):
            yield from (G for G, pair in zip(self.kernel.derivatives(A), self.pairs) if pair is not None)

    def __repr__(self) -> str:
        return f"({self.kernel!r}).within({', '.join(map(repr, self.pairs))})"
