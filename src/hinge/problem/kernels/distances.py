"""Kernels that are functions of distances."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
import scipy.special

from hinge.problem.kernels import evaluate
from hinge.problem.kernels.base import Array, Kernel
from hinge.problem.kernels.evaluate import Program
from hinge.problem.kernels.inner_products import LinearKernel
from hinge.problem.kernels.scales import (
    check_lengths,
    check_positive,
    check_scale,
    number,
    resolve_gamma,
    resolve_length,
    row_squares,
)


@dataclass(frozen=True, eq=False)
class RBF(Kernel):
    """exp(−‖x − x'‖² / 2σ²), or exp(−γ‖x − x'‖²) if γ is given.

    Parameters
    ----------
    length_scale : float, array or "median"
        σ; "median" takes the median distance between examples. An array has one σ per feature.
    gamma : float or {"scale", "auto"}, optional
        γ instead of σ; "scale" is 1/(d·var X), "auto" is 1/d.
    """

    psd: ClassVar[bool] = True

    length_scale: Any = 1.0
    gamma: Any = None

    def __post_init__(self) -> None:
        check_lengths(self)
        if self.gamma is not None:
            check_scale(self.gamma, "gamma", ("scale", "auto"))

    @property
    def positive(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("length_scale",) if self.gamma is None else ("gamma",)

    @property
    def stationary(self) -> bool:
        return True

    @property
    def rate(self) -> float:
        """γ as a number."""
        if self.gamma is not None:
            return number(self.gamma, self)
        return 0.5 / number(self.length_scale, self) ** 2

    def program(self) -> Program | None:
        if self.gamma is None and isinstance(self.length_scale, tuple):
            return None
        return [(evaluate.RBF, self.rate, 0.0, 0.0)]

    def block(self, A: Any, B: Any) -> Array:
        if self.program() is not None:
            return super().block(A, B)
        return RBF().block(*_stretched(A, B, self.length_scale))

    def derivatives(self, A: Any) -> Iterator[Array]:
        """k·‖x − x'‖²/σ² for log σ, −γ‖x − x'‖²·k for log γ."""
        if self.program() is None:
            K = self.block(A, A)
            yield from (D * K for D in _squared_differences(A, self.length_scale))
        else:
            factor = 2.0 * self.rate if self.gamma is None else -self.rate
            yield _distance_times((evaluate.RBF, self.rate, 0.0, 0.0), factor, A)

    def diagonal(self, A: Any) -> Array:
        return np.ones(evaluate.length(A))

    def resolve(self, X: Any, weight: Array | None = None) -> Kernel:
        if self.gamma is not None:
            return replace(self, gamma=resolve_gamma(self.gamma, X, weight))
        return replace(self, length_scale=resolve_length(self.length_scale, X, weight))


@dataclass(frozen=True, eq=False)
class Laplacian(Kernel):
    """exp(−γ‖x − x'‖₁).

    Parameters
    ----------
    gamma : float, "scale" or "auto"
        γ > 0; how fast the similarity falls with distance.
    """

    psd: ClassVar[bool] = True

    gamma: Any = 1.0

    positive: ClassVar[tuple[str, ...]] = ("gamma",)

    def __post_init__(self) -> None:
        check_scale(self.gamma, "gamma", ("scale", "auto"))

    def derivatives(self, A: Any) -> Iterator[Array]:
        yield -scipy.special.entr(self.block(A, A))  # k log k

    @property
    def stationary(self) -> bool:
        return True

    def program(self) -> Program:
        return [(evaluate.LAPLACIAN, number(self.gamma, self), 0.0, 0.0)]

    def diagonal(self, A: Any) -> Array:
        return np.ones(evaluate.length(A))

    def resolve(self, X: Any, weight: Array | None = None) -> Kernel:
        return replace(self, gamma=resolve_gamma(self.gamma, X, weight))


@dataclass(frozen=True, eq=False)
class Matern(Kernel):
    """2^{1−ν}/Γ(ν) · t^ν K_ν(t) with t = √(2ν)·‖x − x'‖/ℓ: functions that are ⌈ν⌉ − 1 times differentiable.

    ν = 1/2, 3/2 and 5/2 have closed forms; ν = ∞ is the RBF kernel of length scale ℓ. An array ℓ has one length scale
    per feature.

    Parameters
    ----------
    length_scale : float or array of d
        ℓ > 0, the distance at which function values are no longer much alike.
    nu : float
        ν > 0, the smoothness.
    """

    psd: ClassVar[bool] = True

    length_scale: Any = 1.0
    nu: float = 1.5

    positive: ClassVar[tuple[str, ...]] = ("length_scale",)

    def __post_init__(self) -> None:
        check_lengths(self)
        if not self.nu > 0:
            raise ValueError(f"nu must be greater than 0, got {self.nu!r}.")

    @property
    def stationary(self) -> bool:
        return True

    def program(self) -> Program | None:
        if isinstance(self.length_scale, tuple):
            return None
        length = number(self.length_scale, self)
        if np.isinf(self.nu):
            return RBF(length).program()
        if self.nu in (0.5, 1.5, 2.5):
            return [(evaluate.MATERN, 2.0 * self.nu, 1.0 / length, 0.0)]
        return None

    def block(self, A: Any, B: Any) -> Array:
        if self.program() is not None:
            return super().block(A, B)
        if isinstance(self.length_scale, tuple):
            return replace(self, length_scale=1.0).block(*_stretched(A, B, self.length_scale))
        t = math.sqrt(2.0 * self.nu) / number(self.length_scale, self) * _distances(A, B)
        small = t < 1e-10
        t = np.where(small, 1.0, t)
        value = 2.0 ** (1.0 - self.nu) / scipy.special.gamma(self.nu) * t**self.nu * scipy.special.kv(self.nu, t)
        return np.where(small, 1.0, value)

    def derivatives(self, A: Any) -> Iterator[Array]:
        """∂k/∂log ℓ = ρ(‖x − x'‖²/ℓ²)·‖x − x'‖²/ℓ², where ρ is a Matérn kernel of smoothness ν − 1, for ν > 1.

        With one length scale per feature, each feature's part of the squared distance is its part of the derivative.
        """
        if isinstance(self.length_scale, tuple):
            stretched = _stretched(A, A, self.length_scale)[0]
            unit = replace(self, length_scale=1.0)
            (total,) = unit.derivatives(stretched)
            square = evaluate.gram([(evaluate.DISTANCE, 1.0, 0.0, 0.0)], stretched, stretched)
            ratio = np.where(square > 0, total / np.where(square > 0, square, 1.0), 0.0)
            yield from (D * ratio for D in _squared_differences(A, self.length_scale))
            return
        length = number(self.length_scale, self)
        if np.isinf(self.nu):
            yield from RBF(length).derivatives(A)
        elif self.nu == 0.5:
            yield scipy.special.entr(self.block(A, A))  # t e^{−t}
        elif self.nu == 1.5:  # t² e^{−t}
            yield _distance_times((evaluate.MATERN, 1.0, math.sqrt(3.0) / length, 0.0), 3.0 / length**2, A)
        elif self.nu == 2.5:  # t²(1 + t) e^{−t} / 3
            inner = (evaluate.MATERN, 3.0, math.sqrt(5.0 / 3.0) / length, 0.0)
            yield _distance_times(inner, 5.0 / (3.0 * length**2), A)
        else:  # d/dt [t^ν K_ν(t)] = −t^ν K_{ν−1}(t)
            t = math.sqrt(2.0 * self.nu) / length * _distances(A, A)
            small = t < 1e-10
            t = np.where(small, 1.0, t)
            factor = 2.0 ** (1.0 - self.nu) / scipy.special.gamma(self.nu)
            yield np.where(small, 0.0, factor * t ** (self.nu + 1.0) * scipy.special.kv(self.nu - 1.0, t))

    def diagonal(self, A: Any) -> Array:
        return np.ones(evaluate.length(A))

    def resolve(self, X: Any, weight: Array | None = None) -> Kernel:
        return replace(self, length_scale=resolve_length(self.length_scale, X, weight))


@dataclass(frozen=True, eq=False)
class RationalQuadratic(Kernel):
    """(1 + ‖x − x'‖²/(2αℓ²))^{−α}: a mixture of RBF kernels of many length scales.

    Parameters
    ----------
    length_scale : float or array of d
        ℓ > 0, the distance at which function values are no longer much alike.
    alpha : float
        α > 0; the larger, the fewer length scales are mixed.
    """

    psd: ClassVar[bool] = True

    length_scale: Any = 1.0
    alpha: float = 1.0

    positive: ClassVar[tuple[str, ...]] = ("alpha", "length_scale")

    def __post_init__(self) -> None:
        check_scale(self.length_scale, "length_scale", ("median",))
        check_positive(self.alpha, "alpha")

    def derivatives(self, A: Any) -> Iterator[Array]:
        length = number(self.length_scale, self)
        factor = 0.5 / (self.alpha * length**2)
        t = evaluate.gram([(evaluate.DISTANCE, factor, 0.0, 0.0)], A, A)
        yield self.alpha * self.block(A, A) * (t / (1.0 + t) - np.log1p(t))
        yield _distance_times((evaluate.RATIONAL, factor, self.alpha + 1.0, 0.0), 1.0 / length**2, A)

    @property
    def stationary(self) -> bool:
        return True

    def program(self) -> Program:
        factor = 0.5 / (self.alpha * number(self.length_scale, self) ** 2)
        return [(evaluate.RATIONAL, factor, self.alpha, 0.0)]

    def diagonal(self, A: Any) -> Array:
        return np.ones(evaluate.length(A))

    def resolve(self, X: Any, weight: Array | None = None) -> Kernel:
        return replace(self, length_scale=resolve_length(self.length_scale, X, weight))


@dataclass(frozen=True, eq=False)
class Periodic(Kernel):
    """exp(−2 sin²(π‖x − x'‖/p) / ℓ²): functions with period p (scikit-learn's ``ExpSineSquared``).

    Positive semidefinite for inputs with one feature; with more features it is checked on the data.

    Parameters
    ----------
    length_scale : float
        ℓ: how smooth the functions are within a period.
    period : float
        p.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> hg.kernels.Periodic(1.0, 2.0)(np.array([[0.0], [2.0], [1.0]])).round(3)
    array([[1.   , 1.   , 0.135],
           [1.   , 1.   , 0.135],
           [0.135, 0.135, 1.   ]])
    """

    length_scale: float = 1.0
    period: float = 1.0

    positive: ClassVar[tuple[str, ...]] = ("length_scale", "period")

    def __post_init__(self) -> None:
        check_positive(self.length_scale, "length_scale")
        check_positive(self.period, "period")

    @property
    def stationary(self) -> bool:
        return True

    def block(self, A: Any, B: Any) -> Array:
        return np.exp(-2.0 * (np.sin(np.pi / self.period * _distances(A, B)) / self.length_scale) ** 2)

    def derivatives(self, A: Any) -> Iterator[Array]:
        angle = np.pi / self.period * _distances(A, A)
        K, sine = self.block(A, A), np.sin(angle)
        yield 4.0 * (sine / self.length_scale) ** 2 * K
        yield 4.0 / self.length_scale**2 * sine * np.cos(angle) * angle * K

    def diagonal(self, A: Any) -> Array:
        return np.ones(evaluate.length(A))


@dataclass(frozen=True, eq=False)
class ChiSquared(Kernel):
    """exp(−γ Σⱼ (xⱼ − x'ⱼ)² / (xⱼ + x'ⱼ)) for histograms, x ≥ 0.

    Parameters
    ----------
    gamma : float
        γ > 0; how fast the similarity falls with distance.
    """

    psd: ClassVar[bool] = True

    gamma: float = 1.0

    positive: ClassVar[tuple[str, ...]] = ("gamma",)

    def __post_init__(self) -> None:
        check_positive(self.gamma, "gamma")

    def derivatives(self, A: Any) -> Iterator[Array]:
        yield -scipy.special.entr(self.block(A, A))  # k log k

    def program(self) -> Program:
        return [(evaluate.CHI2, self.gamma, 0.0, 0.0)]

    def block(self, A: Any, B: Any) -> Array:
        for X in (A, B):
            if X.shape[0] and X.min() < 0:
                raise ValueError("The chi-squared kernel compares histograms: X must not have negative entries.")
        return super().block(A, B)

    def diagonal(self, A: Any) -> Array:
        return np.ones(evaluate.length(A))


def _stretched(A: Any, B: Any, lengths: tuple[float, ...]) -> tuple[Any, Any]:
    """Both sets with every feature divided by its length scale."""
    if A.shape[1] != len(lengths):
        raise ValueError(f"length_scale has {len(lengths)} entries; the inputs have {A.shape[1]} features.")
    inverse = 1.0 / np.asarray(lengths)
    left = A.multiply(inverse).tocsr() if scipy.sparse.issparse(A) else A * inverse
    if B is A:
        return left, left
    return left, B.multiply(inverse).tocsr() if scipy.sparse.issparse(B) else B * inverse


def _squared_differences(A: Any, lengths: tuple[float, ...]) -> Iterator[Array]:
    """(xⱼ − x'ⱼ)²/ℓⱼ² for every feature j."""
    A = evaluate.spread(A)
    for j, length in enumerate(lengths):
        x = A[:, j] / length
        yield (x[:, None] - x[None, :]) ** 2


def _distances(A: Any, B: Any) -> Array:
    """‖x − x'‖."""
    if A.shape[1] == 1:  # exact
        return np.abs(evaluate.spread(A) - evaluate.spread(B).T)
    sizes = row_squares(A)[:, None] + row_squares(B)[None, :]
    square = sizes - 2.0 * evaluate.gram(LinearKernel().program(), A, B)
    # For x = x' the difference is a rounding error, which would be visible in t^(2ν) if ν is small.
    return np.sqrt(np.where(square > 1e-14 * sizes, square, 0.0))


def _distance_times(leaf: tuple[int, float, float, float], factor: float, A: Any) -> Array:
    """factor·‖x − x'‖² times a kernel, in one pass."""
    return evaluate.gram([leaf, (evaluate.DISTANCE, factor, 0.0, 0.0), (evaluate.PRODUCT, 0.0, 0.0, 0.0)], A, A)
