"""Sums, products, powers, multiples and other combinations of kernels, which are again kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from hinge.problem.kernels import evaluate
from hinge.problem.kernels.base import Array, Kernel, name_of
from hinge.problem.kernels.evaluate import Program


@dataclass(frozen=True, eq=False)
class _Pair(Kernel):
    left: Kernel
    right: Kernel

    def __post_init__(self) -> None:
        if self.left.takes != self.right.takes:
            raise TypeError(
                f"{self.left!r} takes {self.left.takes} and {self.right!r} takes {self.right.takes}; "
                "bring them to the same inputs with .of(map)."
            )

    @property
    def takes(self) -> str:  # type: ignore[override]
        return self.left.takes

    @property
    def psd(self) -> bool:
        return self.left.psd and self.right.psd

    @property
    def stationary(self) -> bool:
        return self.left.stationary and self.right.stationary

    def resolve(self, X: Any, weight: Array | None = None) -> Kernel:
        return type(self)(self.left.resolve(X, weight), self.right.resolve(X, weight))

    @property
    def tunable(self) -> tuple[str, ...]:
        return self.left.tunable + self.right.tunable

    @property
    def theta(self) -> Array:
        return np.concatenate([self.left.theta, self.right.theta])

    @property
    def limits(self) -> Array:
        return np.concatenate([self.left.limits, self.right.limits])

    def with_theta(self, theta: Array) -> Kernel:
        cut = len(self.left.theta)
        return type(self)(self.left.with_theta(theta[:cut]), self.right.with_theta(theta[cut:]))

    def _joined(self, operation: int) -> Program | None:
        left, right = self.left.program(), self.right.program()
        return None if left is None or right is None else [*left, *right, (operation, 0.0, 0.0, 0.0)]


@dataclass(frozen=True, eq=False)
class Sum(_Pair):
    """k₁ + k₂: the features of both, concatenated."""

    def program(self) -> Program | None:
        return self._joined(evaluate.SUM)

    def block(self, A: Any, B: Any) -> Array:
        if self.program() is not None:
            return super().block(A, B)
        K = self.left.block(A, B)
        self.right.add_block(A, B, K)
        return K

    def derivatives(self, A: Any) -> Iterator[Array]:
        yield from self.left.derivatives(A)
        yield from self.right.derivatives(A)

    def diagonal(self, A: Any) -> Array:
        return self.left.diagonal(A) + self.right.diagonal(A)

    def features(self, X: Any) -> Any:
        return evaluate.side_by_side(self.left.features(X), self.right.features(X))

    def __repr__(self) -> str:
        return f"{self.left!r} + {self.right!r}"


@dataclass(frozen=True, eq=False)
class Product(_Pair):
    """k₁ · k₂: all products of a feature of one and a feature of the other (Schur)."""

    def program(self) -> Program | None:
        return self._joined(evaluate.PRODUCT)

    def block(self, A: Any, B: Any) -> Array:
        if self.program() is not None:
            return super().block(A, B)
        return self.left.block(A, B) * self.right.block(A, B)

    def derivatives(self, A: Any) -> Iterator[Array]:
        for one, other in ((self.left, self.right), (self.right, self.left)):
            if len(one.theta):
                K = other.block(A, A)
                yield from (G * K for G in one.derivatives(A))

    def diagonal(self, A: Any) -> Array:
        return self.left.diagonal(A) * self.right.diagonal(A)

    def features(self, X: Any) -> Array:
        return evaluate.all_products(self.left.features(X), self.right.features(X))

    def __repr__(self) -> str:
        return " * ".join(f"({k!r})" if isinstance(k, Sum) else repr(k) for k in (self.left, self.right))


@dataclass(frozen=True, eq=False)
class Wrapper(Kernel):
    """A kernel derived from another one, named ``kernel`` in every subclass."""

    @property
    def _inner(self) -> Kernel:
        return self.kernel  # type: ignore[attr-defined]

    @property
    def takes(self) -> str:  # type: ignore[override]
        return self._inner.takes

    @property
    def psd(self) -> bool:
        return self._inner.psd

    @property
    def stationary(self) -> bool:
        return self._inner.stationary

    @property
    def tunable(self) -> tuple[str, ...]:
        return super().tunable + self._inner.tunable

    @property
    def theta(self) -> Array:
        return np.concatenate([super().theta, self._inner.theta])

    @property
    def limits(self) -> Array:
        own = len(super().tunable)
        return np.concatenate([np.full((own, 2), np.nan), self._inner.limits])

    def with_theta(self, theta: Array) -> Kernel:
        inner = self._inner.with_theta(theta[len(super().theta) :])
        return replace(super().with_theta(theta), kernel=inner)  # type: ignore[call-arg]


@dataclass(frozen=True, eq=False)
class Scaled(Wrapper):
    """α·k with α ≥ 0."""

    factor: float
    kernel: Kernel

    positive: ClassVar[tuple[str, ...]] = ("factor",)

    def __post_init__(self) -> None:
        if not (np.isfinite(self.factor) and self.factor >= 0):
            raise ValueError(f"A kernel may be multiplied by a number ≥ 0 only, got {self.factor!r}.")

    def program(self) -> Program | None:
        inner = self.kernel.program()
        return None if inner is None else [*inner, (evaluate.SCALE, self.factor, 0.0, 0.0)]

    def block(self, A: Any, B: Any) -> Array:
        if self.program() is not None:
            return super().block(A, B)
        return self.factor * self.kernel.block(A, B)

    def derivatives(self, A: Any) -> Iterator[Array]:
        yield self.block(A, A)
        yield from (self.factor * G for G in self.kernel.derivatives(A))

    def diagonal(self, A: Any) -> Array:
        return self.factor * self.kernel.diagonal(A)

    def features(self, X: Any) -> Any:
        return np.sqrt(self.factor) * self.kernel.features(X)

    def resolve(self, X: Any, weight: Array | None = None) -> Kernel:
        return Scaled(self.factor, self.kernel.resolve(X, weight))

    def __repr__(self) -> str:
        return f"{self.factor:g} * ({self.kernel!r})"


@dataclass(frozen=True, eq=False)
class Power(Wrapper):
    """k to a positive integer power."""

    kernel: Kernel
    degree: int

    def __post_init__(self) -> None:
        if int(self.degree) != self.degree or self.degree < 1:
            raise ValueError(f"A kernel may be raised to a positive whole power only, got {self.degree!r}.")

    def program(self) -> Program | None:
        inner = self.kernel.program()
        return None if inner is None else [*inner, (evaluate.POWER, float(self.degree), 0.0, 0.0)]

    def block(self, A: Any, B: Any) -> Array:
        if self.program() is not None:
            return super().block(A, B)
        return self.kernel.block(A, B) ** int(self.degree)

    def derivatives(self, A: Any) -> Iterator[Array]:
        if len(self.kernel.theta):
            factor = self.degree * self.kernel.block(A, A) ** (int(self.degree) - 1)
            yield from (factor * G for G in self.kernel.derivatives(A))

    def diagonal(self, A: Any) -> Array:
        return self.kernel.diagonal(A) ** int(self.degree)

    def features(self, X: Any) -> Array:
        base = result = self.kernel.features(X)
        for _ in range(int(self.degree) - 1):
            result = evaluate.all_products(result, base)
        return result

    def resolve(self, X: Any, weight: Array | None = None) -> Kernel:
        return Power(self.kernel.resolve(X, weight), self.degree)

    def __repr__(self) -> str:
        return f"({self.kernel!r}) ** {self.degree}"


@dataclass(frozen=True, eq=False)
class Of(Wrapper):
    """k(ψ(x), ψ(x')) for a map ψ that takes arrays of inputs."""

    kernel: Kernel
    function: Callable[[Any], Any]
    accepts: str = "vectors"

    @property
    def takes(self) -> str:  # type: ignore[override]
        return self.accepts

    @property
    def stationary(self) -> bool:
        return False

    def block(self, A: Any, B: Any) -> Array:
        left = self.function(A)
        return self.kernel.block(*evaluate.inputs(left, left if B is A else self.function(B), self.kernel.takes))

    def derivatives(self, A: Any) -> Iterator[Array]:
        left = self.function(A)
        yield from self.kernel.derivatives(evaluate.inputs(left, left, self.kernel.takes)[0])

    def diagonal(self, A: Any) -> Array:
        return self.kernel.diagonal(self.function(A))

    def features(self, X: Any) -> Any:
        return self.kernel.features(self.function(X))

    def resolve(self, X: Any, weight: Array | None = None) -> Kernel:
        return Of(self.kernel.resolve(self.function(X), weight), self.function, self.accepts)

    def __repr__(self) -> str:
        return f"({self.kernel!r}).of({name_of(self.function)})"


@dataclass(frozen=True, eq=False)
class Normalised(Wrapper):
    """k(x, x') / √(k(x, x) k(x', x')); zero where k(x, x) or k(x', x') is zero."""

    kernel: Kernel

    def block(self, A: Any, B: Any) -> Array:
        left = _inverse_root(self.kernel.diagonal(A))
        right = left if B is A else _inverse_root(self.kernel.diagonal(B))
        return self.kernel.block(A, B) * left[:, None] * right[None, :]

    def derivatives(self, A: Any) -> Iterator[Array]:
        if not len(self.kernel.theta):
            return
        root = _inverse_root(self.kernel.diagonal(A))
        K = self.block(A, A)
        for G in self.kernel.derivatives(A):
            half = 0.5 * np.diagonal(G) * root**2
            yield G * root[:, None] * root[None, :] - K * (half[:, None] + half[None, :])

    def diagonal(self, A: Any) -> Array:
        return (self.kernel.diagonal(A) > 0).astype(np.float64)

    def features(self, X: Any) -> Any:
        phi = self.kernel.features(X)
        if scipy.sparse.issparse(phi):
            size = np.sqrt(np.asarray(phi.multiply(phi).sum(axis=1)).ravel())
            return scipy.sparse.diags_array(_inverse_root(size**2)) @ phi
        return phi * _inverse_root(np.einsum("ij,ij->i", phi, phi))[:, None]

    def resolve(self, X: Any, weight: Array | None = None) -> Kernel:
        return Normalised(self.kernel.resolve(X, weight))

    def __repr__(self) -> str:
        return f"({self.kernel!r}).normalised()"


def _inverse_root(diagonal: Array) -> Array:
    return np.where(diagonal > 0, 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 0.0)
