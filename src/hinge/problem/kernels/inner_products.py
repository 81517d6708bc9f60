"""Kernels that are functions of inner products."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Any, ClassVar

import numpy as np

from hinge.problem.kernels import evaluate
from hinge.problem.kernels.base import Array, Kernel
from hinge.problem.kernels.evaluate import Program
from hinge.problem.kernels.scales import (
    check_positive,
    check_scale,
    number,
    resolve_gamma,
)


@dataclass(frozen=True, eq=False)
class LinearKernel(Kernel):
    """⟨x, x'⟩. ``hg.Linear()`` is accepted wherever a kernel is expected."""

    psd: ClassVar[bool] = True

    def program(self) -> Program:
        return [(evaluate.LINEAR, 0.0, 0.0, 0.0)]

    def features(self, X: Any) -> Any:
        return evaluate.matrix(X)


@dataclass(frozen=True, eq=False)
class Constant(Kernel):
    """The same value c ≥ 0 for all pairs.

    Parameters
    ----------
    value : float
        c ≥ 0.
    """

    psd: ClassVar[bool] = True

    value: float = 1.0

    positive: ClassVar[tuple[str, ...]] = ("value",)

    def __post_init__(self) -> None:
        check_positive(self.value, "value", zero=True)

    @property
    def stationary(self) -> bool:
        return True

    def program(self) -> Program:
        return [(evaluate.CONSTANT, self.value, 0.0, 0.0)]

    def diagonal(self, A: Any) -> Array:
        return np.full(evaluate.length(A), float(self.value))

    def features(self, X: Any) -> Array:
        return np.full((evaluate.length(X), 1), math.sqrt(self.value))

    def derivatives(self, A: Any) -> Iterator[Array]:
        yield np.full((evaluate.length(A), evaluate.length(A)), float(self.value))


@dataclass(frozen=True, eq=False)
class White(Kernel):
    """v for an input with itself, 0 for two different ones: noise of variance v, as part of a sum.

    Inputs count as the same only if they are the same rows of the same matrix: k(X, X) has v on its diagonal, the
    covariance of new inputs with old ones has none.

    Parameters
    ----------
    noise : float
        The variance v ≥ 0.
    """

    psd: ClassVar[bool] = True

    noise: float = 1.0

    positive: ClassVar[tuple[str, ...]] = ("noise",)

    def __post_init__(self) -> None:
        check_positive(self.noise, "noise")

    @property
    def stationary(self) -> bool:
        return True

    def block(self, A: Any, B: Any) -> Array:
        K = np.zeros((evaluate.length(A), evaluate.length(B)))
        self.add_block(A, B, K)
        return K

    def add_block(self, A: Any, B: Any, out: Array) -> None:
        if B is A:
            out[np.diag_indices_from(out)] += self.noise

    def diagonal(self, A: Any) -> Array:
        return np.full(evaluate.length(A), float(self.noise))

    def derivatives(self, A: Any) -> Iterator[Array]:
        yield self.block(A, A)


@dataclass(frozen=True, eq=False)
class Polynomial(Kernel):
    """(γ⟨x, x'⟩ + c)^p: all monomials up to degree p (of degree p exactly if c = 0).

    Parameters
    ----------
    degree : int
        p ≥ 1.
    gamma : float or {"scale", "auto"}
        γ > 0; "scale" is 1/(d·var X), "auto" is 1/d.
    coef0 : float
        c ≥ 0.
    """

    degree: int = 3
    gamma: Any = 1.0
    coef0: float = 1.0

    positive: ClassVar[tuple[str, ...]] = ("gamma",)

    def __post_init__(self) -> None:
        if int(self.degree) != self.degree or self.degree < 1:
            raise ValueError(f"degree must be a positive whole number, got {self.degree!r}.")
        check_scale(self.gamma, "gamma", ("scale", "auto"))
        if not np.isfinite(self.coef0):
            raise ValueError(f"coef0 must be finite, got {self.coef0!r}.")

    @property
    def psd(self) -> bool:
        return self.coef0 >= 0

    def program(self) -> Program:
        return [(evaluate.POLYNOMIAL, number(self.gamma, self), self.coef0, float(self.degree))]

    def derivatives(self, A: Any) -> Iterator[Array]:
        """pγ⟨x, x'⟩(γ⟨x, x'⟩ + c)^{p−1}."""
        program: Program = [(evaluate.LINEAR, 0.0, 0.0, 0.0), (evaluate.SCALE, self.degree * self.gamma, 0.0, 0.0)]
        if self.degree > 1:
            power = (evaluate.POLYNOMIAL, self.gamma, self.coef0, self.degree - 1.0)
            program += [power, (evaluate.PRODUCT, 0.0, 0.0, 0.0)]
        yield evaluate.gram(program, A, A)

    def features(self, X: Any) -> Array:
        """The monomials √(p!/Π mⱼ!)·Π xⱼ^mⱼ, C(d + p, p) of them, with √c as one more input."""
        if self.coef0 < 0:
            raise TypeError("A polynomial kernel with coef0 < 0 is no inner product of features.")
        X = evaluate.spread(evaluate.matrix(X))
        scaled = math.sqrt(number(self.gamma, self)) * X
        if self.coef0 > 0:
            scaled = np.hstack([scaled, np.full((len(X), 1), math.sqrt(self.coef0))])
        columns = []
        for chosen in combinations_with_replacement(range(scaled.shape[1]), int(self.degree)):
            counts = Counter(chosen).values()
            weight = math.factorial(int(self.degree)) / math.prod(math.factorial(m) for m in counts)
            columns.append(math.sqrt(weight) * np.prod(scaled[:, chosen], axis=1))
        return np.column_stack(columns)

    def resolve(self, X: Any, weight: Array | None = None) -> Kernel:
        return replace(self, gamma=resolve_gamma(self.gamma, X, weight))


def Quadratic() -> Kernel:
    """⟨x, x'⟩ + ⟨x, x'⟩²."""
    return LinearKernel() + LinearKernel() ** 2


@dataclass(frozen=True, eq=False)
class Sigmoid(Kernel):
    """tanh(γ⟨x, x'⟩ + c). Not positive semidefinite in general.

    Parameters
    ----------
    gamma : float, "scale" or "auto"
        The slope γ.
    coef0 : float
        The shift c.
    """

    gamma: Any = 1.0
    coef0: float = 0.0

    def __post_init__(self) -> None:
        check_scale(self.gamma, "gamma", ("scale", "auto"))

    def program(self) -> Program:
        return [(evaluate.SIGMOID, number(self.gamma, self), self.coef0, 0.0)]

    def resolve(self, X: Any, weight: Array | None = None) -> Kernel:
        return replace(self, gamma=resolve_gamma(self.gamma, X, weight))


@dataclass(frozen=True, eq=False)
class Cosine(Kernel):
    """⟨x, x'⟩ / (‖x‖‖x'‖)."""

    psd: ClassVar[bool] = True

    def program(self) -> Program:
        return [(evaluate.COSINE, 0.0, 0.0, 0.0)]

    def features(self, X: Any) -> Any:
        return LinearKernel().normalised().features(X)
