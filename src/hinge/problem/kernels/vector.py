"""Kernels on vectors: functions of inner products or of distances."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
import scipy.special
from numpy.typing import NDArray

from hinge.problem.kernels import evaluate
from hinge.problem.kernels.base import Kernel
from hinge.problem.kernels.evaluate import Program
from hinge.problem.losses.base import normalise_weights, weighted_quantile

Array = NDArray[np.float64]

# Distances between this many rows at most are looked at for the median.
MEDIAN_ROWS = 1000


@dataclass(frozen=True, eq=False)
class LinearKernel(Kernel):
    """⟨x, x'⟩. ``hg.Linear()`` means the same wherever a kernel is expected."""

    psd: ClassVar[bool] = True

    def program(self) -> Program:
        return [(evaluate.LINEAR, 0.0, 0.0, 0.0)]

    def features(self, X: Any) -> Any:
        return evaluate.matrix(X)


@dataclass(frozen=True, eq=False)
class Constant(Kernel):
    """The same value c ≥ 0 for all pairs."""

    psd: ClassVar[bool] = True

    value: float = 1.0

    positive: ClassVar[tuple[str, ...]] = ("value",)

    def __post_init__(self) -> None:
        _check(self.value, "value", zero=True)

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
    """v for an input and itself, 0 for two different ones: noise of variance v, as part of a sum.

    Inputs count as the same only if they are the same rows of the same matrix: k(X, X) has v on its diagonal, the
    covariance of new inputs with old ones has none.
    """

    psd: ClassVar[bool] = True

    noise: float = 1.0

    positive: ClassVar[tuple[str, ...]] = ("noise",)

    def __post_init__(self) -> None:
        _check(self.noise, "noise")

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
        _check_scale(self.gamma, "gamma", ("scale", "auto"))
        if not np.isfinite(self.coef0):
            raise ValueError(f"coef0 must be finite, got {self.coef0!r}.")

    @property
    def psd(self) -> bool:
        return self.coef0 >= 0

    def program(self) -> Program:
        return [(evaluate.POLYNOMIAL, _number(self.gamma, self), self.coef0, float(self.degree))]

    def derivatives(self, A: Any) -> Iterator[Array]:
        """pγ⟨x, x'⟩(γ⟨x, x'⟩ + c)^{p−1}."""
        program: Program = [(evaluate.LINEAR, 0.0, 0.0, 0.0), (evaluate.SCALE, self.degree * self.gamma, 0.0, 0.0)]
        if self.degree > 1:
            rest = (evaluate.POLYNOMIAL, self.gamma, self.coef0, self.degree - 1.0)
            program += [rest, (evaluate.PRODUCT, 0.0, 0.0, 0.0)]
        yield evaluate.gram(program, A, A)

    def features(self, X: Any) -> Array:
        """The monomials √(p!/Π mⱼ!)·Π xⱼ^mⱼ, C(d + p, p) of them, with √c as one more input."""
        if self.coef0 < 0:
            raise TypeError("A polynomial kernel with coef0 < 0 is no inner product of features.")
        X = evaluate.spread(evaluate.matrix(X))
        scaled = math.sqrt(_number(self.gamma, self)) * X
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
class RBF(Kernel):
    """exp(−‖x − x'‖² / 2σ²), or exp(−γ‖x − x'‖²) if γ is given; γ = 1/σ² is the form without the 2.

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
        _check_lengths(self)
        if self.gamma is not None:
            _check_scale(self.gamma, "gamma", ("scale", "auto"))

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
            return _number(self.gamma, self)
        return 0.5 / _number(self.length_scale, self) ** 2

    def program(self) -> Program | None:
        if self.gamma is None and isinstance(self.length_scale, tuple):
            return None
        return [(evaluate.RBF, self.rate, 0.0, 0.0)]

    def block(self, A: Any, B: Any) -> Array:
        if self.program() is not None:
            return super().block(A, B)
        return RBF().block(*_stretched(A, B, self.length_scale))

    def derivatives(self, A: Any) -> Iterator[Array]:
        """k·‖x − x'‖²/σ² by log σ, −γ‖x − x'‖²·k by log γ."""
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
    """exp(−γ‖x − x'‖₁)."""

    psd: ClassVar[bool] = True

    gamma: Any = 1.0

    positive: ClassVar[tuple[str, ...]] = ("gamma",)

    def __post_init__(self) -> None:
        _check_scale(self.gamma, "gamma", ("scale", "auto"))

    def derivatives(self, A: Any) -> Iterator[Array]:
        yield -scipy.special.entr(self.block(A, A))  # k log k

    @property
    def stationary(self) -> bool:
        return True

    def program(self) -> Program:
        return [(evaluate.LAPLACIAN, _number(self.gamma, self), 0.0, 0.0)]

    def diagonal(self, A: Any) -> Array:
        return np.ones(evaluate.length(A))

    def resolve(self, X: Any, weight: Array | None = None) -> Kernel:
        return replace(self, gamma=resolve_gamma(self.gamma, X, weight))


@dataclass(frozen=True, eq=False)
class Matern(Kernel):
    """2^{1−ν}/Γ(ν) · t^ν K_ν(t) with t = √(2ν)·‖x − x'‖/ℓ: functions that are ⌈ν⌉ − 1 times differentiable.

    ν = 1/2, 3/2 and 5/2 have closed forms; ν = ∞ is the RBF kernel of length scale ℓ. An array ℓ has one length scale
    per feature.
    """

    psd: ClassVar[bool] = True

    length_scale: Any = 1.0
    nu: float = 1.5

    positive: ClassVar[tuple[str, ...]] = ("length_scale",)

    def __post_init__(self) -> None:
        _check_lengths(self)
        if not self.nu > 0:
            raise ValueError(f"nu must be greater than 0, got {self.nu!r}.")

    @property
    def stationary(self) -> bool:
        return True

    def program(self) -> Program | None:
        if isinstance(self.length_scale, tuple):
            return None
        length = _number(self.length_scale, self)
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
        t = math.sqrt(2.0 * self.nu) / _number(self.length_scale, self) * _distances(A, B)
        small = t < 1e-10
        t = np.where(small, 1.0, t)
        value = 2.0 ** (1.0 - self.nu) / scipy.special.gamma(self.nu) * t**self.nu * scipy.special.kv(self.nu, t)
        return np.where(small, 1.0, value)

    def derivatives(self, A: Any) -> Iterator[Array]:
        """∂k/∂log ℓ = ρ(‖x − x'‖²/ℓ²)·‖x − x'‖²/ℓ², where ρ is a Matérn kernel of smoothness ν − 1, for ν > 1.

        By features, the share of one in the squared distance is its share in the derivative.
        """
        if isinstance(self.length_scale, tuple):
            stretched = _stretched(A, A, self.length_scale)[0]
            unit = replace(self, length_scale=1.0)
            (total,) = unit.derivatives(stretched)
            square = evaluate.gram([(evaluate.DISTANCE, 1.0, 0.0, 0.0)], stretched, stretched)
            ratio = np.where(square > 0, total / np.where(square > 0, square, 1.0), 0.0)
            yield from (D * ratio for D in _squared_differences(A, self.length_scale))
            return
        length = _number(self.length_scale, self)
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
    """(1 + ‖x − x'‖²/(2αℓ²))^{−α}: a mixture of RBF kernels of many length scales."""

    psd: ClassVar[bool] = True

    length_scale: Any = 1.0
    alpha: float = 1.0

    positive: ClassVar[tuple[str, ...]] = ("alpha", "length_scale")

    def __post_init__(self) -> None:
        _check_scale(self.length_scale, "length_scale", ("median",))
        _check(self.alpha, "alpha")

    def derivatives(self, A: Any) -> Iterator[Array]:
        length = _number(self.length_scale, self)
        factor = 0.5 / (self.alpha * length**2)
        t = evaluate.gram([(evaluate.DISTANCE, factor, 0.0, 0.0)], A, A)
        yield self.alpha * self.block(A, A) * (t / (1.0 + t) - np.log1p(t))
        yield _distance_times((evaluate.RATIONAL, factor, self.alpha + 1.0, 0.0), 1.0 / length**2, A)

    @property
    def stationary(self) -> bool:
        return True

    def program(self) -> Program:
        factor = 0.5 / (self.alpha * _number(self.length_scale, self) ** 2)
        return [(evaluate.RATIONAL, factor, self.alpha, 0.0)]

    def diagonal(self, A: Any) -> Array:
        return np.ones(evaluate.length(A))

    def resolve(self, X: Any, weight: Array | None = None) -> Kernel:
        return replace(self, length_scale=resolve_length(self.length_scale, X, weight))


@dataclass(frozen=True, eq=False)
class Periodic(Kernel):
    """exp(−2 sin²(π‖x − x'‖/p) / ℓ²): functions that repeat themselves after p (scikit-learn's ``ExpSineSquared``).

    Positive semidefinite for inputs of one feature; for more of them that is checked on the data.

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
        _check(self.length_scale, "length_scale")
        _check(self.period, "period")

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
class Sigmoid(Kernel):
    """tanh(γ⟨x, x'⟩ + c). Not positive semidefinite in general."""

    gamma: Any = 1.0
    coef0: float = 0.0

    def __post_init__(self) -> None:
        _check_scale(self.gamma, "gamma", ("scale", "auto"))

    def program(self) -> Program:
        return [(evaluate.SIGMOID, _number(self.gamma, self), self.coef0, 0.0)]

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


@dataclass(frozen=True, eq=False)
class ChiSquared(Kernel):
    """exp(−γ Σⱼ (xⱼ − x'ⱼ)² / (xⱼ + x'ⱼ)) for histograms, x ≥ 0."""

    psd: ClassVar[bool] = True

    gamma: float = 1.0

    positive: ClassVar[tuple[str, ...]] = ("gamma",)

    def __post_init__(self) -> None:
        _check(self.gamma, "gamma")

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


def resolve_gamma(gamma: Any, X: Any, weight: Array | None = None) -> float:
    """γ as a number: "scale" is 1/(d·var X), "auto" is 1/d (scikit-learn's meaning)."""
    if not isinstance(gamma, str):
        return float(gamma)
    X = evaluate.matrix(X)
    d = X.shape[1]
    if gamma == "auto":
        return 1.0 / d
    c = normalise_weights(weight, X.shape[0])
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.sum(c @ X, dtype=np.float64) / d
        variance = float(c @ _squares(X) / d - mean**2)
    if not np.isfinite(variance):
        raise ValueError("X has values so large that their squares overflow; rescale its columns.")
    return 1.0 / (d * variance) if variance > 0 else 1.0


def resolve_length(length: Any, X: Any, weight: Array | None = None) -> Any:
    """σ as a number: "median" is the median distance between (at most a thousand, evenly spread) examples."""
    if isinstance(length, tuple):
        if len(length) != X.shape[1]:
            raise ValueError(f"length_scale has {len(length)} entries; X has {X.shape[1]} features.")
        return length
    if not isinstance(length, str):
        return float(length)
    X = evaluate.matrix(X)
    used = np.arange(X.shape[0]) if weight is None else np.flatnonzero(weight)
    used = used[:: max(1, len(used) // MEDIAN_ROWS)]
    c = np.ones(len(used)) if weight is None else weight[used]
    X = evaluate.spread(X[used]).astype(np.float64)
    square = _squares(X)[:, None] + _squares(X)[None, :] - 2.0 * X @ X.T
    pairs = np.triu_indices(len(X), 1)
    distances = np.sqrt(np.maximum(square[pairs], 0.0))
    apart = distances > 0
    if not np.any(apart):
        return 1.0
    return weighted_quantile(distances[apart], np.outer(c, c)[pairs][apart], 0.5)


def _stretched(A: Any, B: Any, lengths: tuple[float, ...]) -> tuple[Any, Any]:
    """Both sets with every feature in units of its length scale."""
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
    sizes = _squares(A)[:, None] + _squares(B)[None, :]
    square = sizes - 2.0 * evaluate.gram(LinearKernel().program(), A, B)
    # Where x = x' the difference is rounding, which t^(2ν) of a Matérn kernel would show where ν is small.
    return np.sqrt(np.where(square > 1e-14 * sizes, square, 0.0))


def _distance_times(leaf: tuple[int, float, float, float], factor: float, A: Any) -> Array:
    """factor·‖x − x'‖² times a kernel, in one pass."""
    return evaluate.gram([leaf, (evaluate.DISTANCE, factor, 0.0, 0.0), (evaluate.PRODUCT, 0.0, 0.0, 0.0)], A, A)


def _squares(X: Any) -> Array:
    if scipy.sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def _check(value: Any, name: str, zero: bool = False) -> None:
    if not (np.isreal(value) and np.isfinite(value) and (value >= 0 if zero else value > 0)):
        raise ValueError(f"{name} must be a number {'≥' if zero else '>'} 0, got {value!r}.")


def _check_scale(value: Any, name: str, words: tuple[str, ...]) -> None:
    if isinstance(value, str):
        if value not in words:
            raise ValueError(f"{name} must be a number > 0 or one of {words}, got {value!r}.")
    else:
        _check(value, name)


def _check_lengths(kernel: Any) -> None:
    """``length_scale`` is a number, a word, or one number per feature, kept as a tuple."""
    value = kernel.length_scale
    if np.ndim(value) == 1:
        lengths = tuple(float(length) for length in value)
        for length in lengths:
            _check(length, "length_scale")
        object.__setattr__(kernel, "length_scale", lengths)
    else:
        _check_scale(value, "length_scale", ("median",))


def _number(value: Any, kernel: Kernel) -> float:
    if isinstance(value, str):
        raise ValueError(f"{value!r} in {kernel!r} depends on the data; call kernel.resolve(X) first.")
    return float(value)
