"""What a kernel is, and how kernels combine.

A kernel k(x, x') = ⟨φ(x), φ(x')⟩ is a small immutable expression. Sums, products, positive multiples, powers,
``.of(map)`` and ``.normalised()`` of kernels are kernels again. Where φ has finitely many coordinates, ``features``
gives them, and their inner products equal the kernel.

Two ways of evaluation: expressions over vectors that the compiled core knows become a short postfix program
(``program``) and are evaluated in blocks there; anything else is evaluated here, part by part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from hinge.problem.kernels import evaluate
from hinge.problem.kernels.evaluate import Program
from hinge.problem.spaces import Linear

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Kernel:
    """Base class of kernels.

    A kernel of its own gives ``block`` and ``diagonal`` (or a ``program`` for the core), and ``features`` where the
    feature space has finite dimension. It declares ``psd = True`` if all its Gram matrices are positive semidefinite;
    otherwise they are checked, as far as that is cheap, and no fit has a duality gap without (``kernels.check``).
    """

    takes: ClassVar[str] = "vectors"  # or "objects": strings, graphs
    positive: ClassVar[tuple[str, ...]] = ()  # fields > 0 that may be fitted to data, by their logarithm

    # -- evaluation

    def __call__(self, A: Any, B: Any = None) -> Array:
        """The Gram matrix k(aᵢ, bⱼ); symmetric, k(aᵢ, aⱼ), if B is not given."""
        left, right = evaluate.inputs(A, A if B is None else B, self.takes)
        K = self.block(left, right)
        if B is not None:
            return K
        K = evaluate.symmetrise(K)
        if type(self).diagonal is not Kernel.diagonal:
            np.fill_diagonal(K, self.diagonal(left))  # distances of zero come out of a product as rounding errors
        return K

    def block(self, A: Any, B: Any) -> Array:
        """k(aᵢ, bⱼ) for checked inputs."""
        program = self.program()
        if program is None:
            raise NotImplementedError(f"{type(self).__name__} has no way to be evaluated.")
        return evaluate.gram(program, A, B)

    def diagonal(self, A: Any) -> Array:
        """k(aᵢ, aᵢ)."""
        A = evaluate.inputs(A, A, self.takes)[0]
        step = 256
        parts = [np.diagonal(self.block(A[i : i + step], A[i : i + step])) for i in range(0, evaluate.length(A), step)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def program(self) -> Program | None:
        """The kernel in the core's language, or None if it does not know it."""
        return None

    @property
    def psd(self) -> bool:
        """Whether all Gram matrices are positive semidefinite for certain."""
        return False

    @property
    def stationary(self) -> bool:
        """Whether k depends on x − x' only, so that the data may be shifted."""
        return False

    @property
    def dense_only(self) -> bool:
        """Whether sparse inputs have to be spread out before the core can take them."""
        program = self.program()
        return program is not None and evaluate.looks_at_coordinates(program)

    # -- explicit features

    def features(self, X: Any) -> Any:
        """φ(x) for every row, with ⟨φ(x), φ(x')⟩ = k(x, x')."""
        raise TypeError(
            f"{type(self).__name__} has no feature map of finite dimension; "
            "hg.Nystroem or hg.RandomFourierFeatures approximate one."
        )

    # -- parameters that depend on the data

    def resolve(self, X: Any, weight: Array | None = None) -> Kernel:
        """The same kernel with "scale", "median" and the like replaced by numbers; a weight counts as repetition."""
        return self

    # -- parameters that may be fitted

    @property
    def tunable(self) -> tuple[str, ...]:
        """The names of the parameters in ``theta``, one per entry."""
        return tuple(f"{type(self).__name__}.{name}" for name in self.positive for _ in np.ravel(getattr(self, name)))

    @property
    def theta(self) -> Array:
        """The logarithms of the parameters that may be fitted, in the order they stand in the expression."""
        parts = [np.log(np.asarray(getattr(self, name), dtype=np.float64)).ravel() for name in self.positive]
        return np.concatenate(parts) if parts else np.zeros(0)

    @property
    def limits(self) -> Array:
        """Lower and upper bound of every entry of ``theta``; nan where whoever fits it decides."""
        return np.full((len(self.tunable), 2), np.nan)

    def with_theta(self, theta: Array) -> Kernel:
        """The same kernel with other parameters."""
        values: dict[str, Any] = {}
        used = 0
        for name in self.positive:
            old = np.asarray(getattr(self, name))
            new = np.exp(theta[used : used + old.size])
            values[name] = new.reshape(old.shape) if old.ndim else float(new[0])
            used += old.size
        return replace(self, **values)

    def derivatives(self, A: Any) -> Iterator[Array]:
        """∂k(aᵢ, aⱼ)/∂theta, one matrix after the other: only one has to be held at a time."""
        if self.positive:
            raise NotImplementedError(f"{type(self).__name__} has no derivatives.")
        yield from ()

    def fixed(self) -> Kernel:
        """The same kernel with nothing to fit."""
        return Fixed(self)

    def within(self, *limits: tuple[float, float] | None) -> Kernel:
        """The same kernel with bounds on what is fitted: (low, high) for each entry of ``tunable``, None to keep it.

        Examples
        --------
        >>> import hinge as hg
        >>> kernel = hg.kernels.RationalQuadratic(1.0, 0.5).within(None, (0.1, 10.0))  # alpha stays, the length is fitted
        >>> kernel.tunable
        ('RationalQuadratic.length_scale',)
        """
        return Within(self, limits)

    def add_block(self, A: Any, B: Any, out: Array) -> None:
        """out += k(aᵢ, bⱼ)."""
        out += self.block(A, B)

    # -- algebra

    def __add__(self, other: Any) -> Kernel:
        return Sum(self, as_kernel(other))

    def __radd__(self, other: Any) -> Kernel:
        return Sum(as_kernel(other), self)

    def __mul__(self, other: Any) -> Kernel:
        if np.isscalar(other):
            return Scaled(float(other), self)  # type: ignore[arg-type]
        return Product(self, as_kernel(other))

    def __rmul__(self, other: Any) -> Kernel:
        if np.isscalar(other):
            return Scaled(float(other), self)  # type: ignore[arg-type]
        return Product(as_kernel(other), self)

    def __pow__(self, degree: int) -> Kernel:
        return Power(self, degree)

    def of(self, function: Callable[[Any], Any]) -> Kernel:
        """k(ψ(x), ψ(x')), where ψ maps a whole array of inputs."""
        return Of(self, function)

    def normalised(self) -> Kernel:
        """k(x, x') / √(k(x, x) k(x', x')): every φ(x) is brought to length one."""
        return Normalised(self)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), repr(self)))


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
    """k₁ + k₂: the features of both, side by side."""

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
class _Wrapper(Kernel):
    """A kernel made of one other, named ``kernel`` in every subclass."""

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
class _Same(_Wrapper):
    """The values of a kernel, and another idea of what is to be fitted."""

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
    """A kernel whose parameters are not to be fitted."""

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

    bounds: tuple[tuple[float, float] | None, ...] = ()

    def __post_init__(self) -> None:
        names = self.kernel.tunable
        if len(self.bounds) != len(names):
            raise ValueError(
                f"{self.kernel!r} has {len(names)} parameters to fit {names}, got {len(self.bounds)} bounds."
            )
        for pair in self.bounds:
            if pair is not None and not (len(pair) == 2 and 0 < pair[0] <= pair[1]):
                raise ValueError(f"bounds must be None or 0 < low ≤ high, got {pair!r}.")

    @property
    def _free(self) -> NDArray[np.intp]:
        return np.array([i for i, pair in enumerate(self.bounds) if pair is not None], dtype=np.intp)

    @property
    def tunable(self) -> tuple[str, ...]:
        return tuple(self.kernel.tunable[i] for i in self._free)

    @property
    def theta(self) -> Array:
        return self.kernel.theta[self._free]

    @property
    def limits(self) -> Array:
        return np.array([pair for pair in self.bounds if pair is not None], dtype=np.float64).reshape(-1, 2)

    def with_theta(self, theta: Array) -> Kernel:
        every = self.kernel.theta
        every[self._free] = theta
        return replace(self, kernel=self.kernel.with_theta(every))

    def derivatives(self, A: Any) -> Iterator[Array]:
        if len(self._free):
            yield from (G for G, pair in zip(self.kernel.derivatives(A), self.bounds) if pair is not None)

    def __repr__(self) -> str:
        return f"({self.kernel!r}).within({', '.join(map(repr, self.bounds))})"


@dataclass(frozen=True, eq=False)
class Scaled(_Wrapper):
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
class Power(_Wrapper):
    """k to a whole power."""

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
            slope = self.degree * self.kernel.block(A, A) ** (int(self.degree) - 1)
            yield from (slope * G for G in self.kernel.derivatives(A))

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
class Of(_Wrapper):
    """k(ψ(x), ψ(x')) for a map ψ of whole arrays."""

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
        return f"({self.kernel!r}).of({_name(self.function)})"


@dataclass(frozen=True, eq=False)
class Normalised(_Wrapper):
    """k(x, x') / √(k(x, x) k(x', x')); zero where k(x, x) is."""

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


@dataclass(frozen=True, eq=False)
class Function(Kernel):
    """Any function of two arrays that returns a matrix, as a kernel.

    Parameters
    ----------
    function : callable
        k(A, B), the matrix of all pairs of a row of A and a row of B.
    accepts : {"vectors", "objects"}
        What the rows are.
    psd : bool
        Whether all its Gram matrices are known to be positive semidefinite. They are not checked then, and fits are
        certified by a duality gap however many examples there are; :func:`check_psd` decides on given data.

    Examples
    --------
    >>> import numpy as np
    >>> from hinge.problem.kernels import Function
    >>> smallest = Function(lambda A, B: np.minimum(A, B.T), psd=True)  # the covariance of Brownian motion
    >>> smallest(np.array([[1.0], [3.0]]))
    array([[1., 1.],
           [1., 3.]])
    """

    function: Callable[[Any, Any], Any]
    accepts: str = "vectors"
    psd: bool = False

    @property
    def takes(self) -> str:  # type: ignore[override]
        return self.accepts

    def block(self, A: Any, B: Any) -> Array:
        K = self.function(A, B)
        K = np.asarray(K.toarray() if scipy.sparse.issparse(K) else K, dtype=np.float64)
        expected = (evaluate.length(A), evaluate.length(B))
        if K.shape != expected:
            raise ValueError(f"The kernel function returned shape {K.shape}; expected {expected}.")
        return np.ascontiguousarray(K)

    def __repr__(self) -> str:
        return f"Function({_name(self.function)})"


@dataclass(frozen=True, eq=False)
class Rank1(Kernel):
    """f(x) f(x') for a real function f of whole arrays: one feature."""

    function: Callable[[Any], Any]

    psd: ClassVar[bool] = True

    def block(self, A: Any, B: Any) -> Array:
        return np.outer(self.features(A), self.features(B))

    def diagonal(self, A: Any) -> Array:
        return self.features(A)[:, 0] ** 2

    def features(self, X: Any) -> Array:
        values = np.asarray(self.function(X), dtype=np.float64)
        if values.size != evaluate.length(X):
            raise ValueError(f"f must return one number per row; got shape {values.shape}.")
        return values.reshape(-1, 1)

    def __repr__(self) -> str:
        return f"Rank1({_name(self.function)})"


@dataclass(frozen=True, eq=False)
class Precomputed(Kernel):
    """The inputs are kernel values: rows of k(x, x₁), …, k(x, xₙ) for the n training examples."""

    def block(self, A: Any, B: Any) -> Array:
        if A.shape[1] < evaluate.length(B):
            raise ValueError(
                f"With precomputed kernels a row holds one value per training example: expected {evaluate.length(B)} "
                f"columns, got {A.shape[1]}."
            )
        return np.ascontiguousarray(A, dtype=np.float64)


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _inverse_root(diagonal: Array) -> Array:
    return np.where(diagonal > 0, 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 0.0)


def as_kernel(kernel: Any) -> Kernel:
    """A kernel from a kernel, scikit-learn's or ours, a function of two arrays, a number or ``hg.Linear()``."""
    from hinge.problem.kernels.translate import is_foreign, translate
    from hinge.problem.kernels.vector import Constant, LinearKernel

    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, Linear) or kernel is Linear:
        return LinearKernel()
    if np.isscalar(kernel) and not isinstance(kernel, str):
        return Constant(float(kernel))  # type: ignore[arg-type]
    if is_foreign(kernel):
        return translate(kernel)
    if callable(kernel):
        return Function(kernel)
    raise TypeError(f"kernel must be a kernel such as hg.kernels.RBF(1.0) or a function of two arrays, got {kernel!r}.")


def full_gram(kernel: Kernel, X: Any, *, symmetric: bool = True) -> Array:
    """The n × n matrix in double precision; without ``symmetric`` its two sides may differ by rounding errors."""
    if isinstance(kernel, Precomputed):
        return np.array(X, dtype=np.float64)
    if kernel.takes != "objects" and X.dtype != np.float64:
        X = X.astype(np.float64)
    if symmetric:
        return kernel(X)
    K = np.ascontiguousarray(kernel.block(X, X), dtype=np.float64)
    np.fill_diagonal(K, kernel.diagonal(X))
    return K
