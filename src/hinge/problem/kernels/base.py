"""The base class of kernels, and their combinations.

A kernel k(x, x') = ⟨φ(x), φ(x')⟩ is a small immutable expression. Sums, products, positive multiples, powers,
``.of(map)`` and ``.normalised()`` of kernels are kernels. If φ has finitely many coordinates, ``features`` returns them,
and their inner products equal the kernel.

There are two ways of evaluation: expressions over vectors that the compiled core supports become a short postfix program
(``program``), which the core evaluates in blocks; other expressions are evaluated here, part by part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hinge.problem.kernels import evaluate
from hinge.problem.kernels.evaluate import Program
from hinge.problem.parameters import Parametrised

Array = NDArray[np.float64]

# The default bounds of fitted parameters, as in scikit-learn.
DEFAULT_BOUNDS = (1e-5, 1e5)


@dataclass(frozen=True, eq=False)
class Kernel(Parametrised):
    """Base class of kernels.

    A user-defined kernel defines ``block`` and ``diagonal`` (or a ``program`` for the core), and ``features`` if the feature
    space has finite dimension. It declares ``psd = True`` if all its Gram matrices are positive semidefinite; otherwise
    they are checked, as far as that is cheap, and without the property no fit has a duality gap (``kernels.check``).
    """

    takes: ClassVar[str] = "vectors"  # or "objects": strings, graphs
    positive: ClassVar[tuple[str, ...]] = ()  # fields > 0 that may be fitted to data, in logarithms

    # -- evaluation

    def __call__(self, A: Any, B: Any = None) -> Array:
        """The Gram matrix k(aᵢ, bⱼ); the symmetric matrix k(aᵢ, aⱼ) if B is None."""
        left, right = evaluate.inputs(A, A if B is None else B, self.takes)
        K = self.block(left, right)
        if B is not None:
            return K
        K = evaluate.symmetrise(K, in_place=type(self).block is Kernel.block)  # the core has just allocated it
        if type(self).diagonal is not Kernel.diagonal:
            np.fill_diagonal(K, self.diagonal(left))  # a matrix product gives zero distances rounding errors
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
        """The kernel as a program of the core, or None if the core does not support it."""
        return None

    @property
    def psd(self) -> bool:
        """Whether all Gram matrices are known to be positive semidefinite."""
        return False

    @property
    def stationary(self) -> bool:
        """Whether k depends only on x − x', so that the data may be shifted."""
        return False

    @property
    def dense_only(self) -> bool:
        """Whether sparse inputs have to be converted to dense for the core."""
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
        """The same kernel with "scale", "median" and the like replaced by numbers; a weight is equivalent to repetition."""
        return self

    # -- parameters that may be fitted

    @property
    def tunable(self) -> tuple[str, ...]:
        """The names of the parameters in ``theta``, one per entry."""
        return tuple(f"{type(self).__name__}.{name}" for name in self.positive for _ in np.ravel(getattr(self, name)))

    @property
    def theta(self) -> Array:
        """The logarithms of the parameters that may be fitted, in their order in the expression."""
        parts = [np.log(np.asarray(getattr(self, name), dtype=np.float64)).ravel() for name in self.positive]
        return np.concatenate(parts) if parts else np.zeros(0)

    @property
    def limits(self) -> Array:
        """Lower and upper bound of every entry of ``theta``; NaN where the estimator decides."""
        return np.full((len(self.tunable), 2), np.nan)

    @property
    def bounds(self) -> Array:
        """Logarithms of the bounds of every entry of ``theta``, as in scikit-learn's kernels; by default 1e-5, 1e5."""
        return np.log(np.where(np.isnan(self.limits), DEFAULT_BOUNDS, self.limits))

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
        """∂k(aᵢ, aⱼ)/∂theta as an iterator, so that one matrix is in memory at a time."""
        if self.positive:
            raise NotImplementedError(f"{type(self).__name__} has no derivatives.")
        yield from ()

    def fixed(self) -> Kernel:
        """The same kernel with nothing to fit."""
        from hinge.problem.kernels.fitted import Fixed

        return Fixed(self)

    def within(self, *limits: tuple[float, float] | None) -> Kernel:
        """The same kernel with bounds on fitted parameters: (low, high) for each entry of ``tunable``, None to fix it.

        Examples
        --------
        >>> import hinge as hg
        >>> kernel = hg.kernels.RationalQuadratic(1.0, 0.5).within(None, (0.1, 10.0))  # alpha stays, the length is fitted
        >>> kernel.tunable
        ('RationalQuadratic.length_scale',)
        """
        from hinge.problem.kernels.fitted import Within

        return Within(self, limits)

    def add_block(self, A: Any, B: Any, out: Array) -> None:
        """out += k(aᵢ, bⱼ)."""
        out += self.block(A, B)

    # -- algebra

    def __add__(self, other: Any) -> Kernel:
        return _algebra().Sum(self, _kernel_of(other))

    def __radd__(self, other: Any) -> Kernel:
        return _algebra().Sum(_kernel_of(other), self)

    def __mul__(self, other: Any) -> Kernel:
        if np.isscalar(other):
            return _algebra().Scaled(float(other), self)  # type: ignore[arg-type]
        return _algebra().Product(self, _kernel_of(other))

    def __rmul__(self, other: Any) -> Kernel:
        if np.isscalar(other):
            return _algebra().Scaled(float(other), self)  # type: ignore[arg-type]
        return _algebra().Product(_kernel_of(other), self)

    def __pow__(self, degree: int) -> Kernel:
        return _algebra().Power(self, degree)

    def of(self, function: Callable[[Any], Any]) -> Kernel:
        """k(ψ(x), ψ(x')), where ψ maps an array of inputs."""
        return _algebra().Of(self, function)

    def normalised(self) -> Kernel:
        """k(x, x') / √(k(x, x) k(x', x')): every φ(x) has norm one."""
        return _algebra().Normalised(self)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), repr(self)))


def _kernel_of(other: Any) -> Kernel:
    from hinge.problem.kernels.custom import as_kernel

    return as_kernel(other)


def _algebra() -> Any:
    """The module of sums, products and other combinations, which imports this one."""
    from hinge.problem.kernels import algebra

    return algebra


def name_of(function: Any) -> str:
    """A function's name, for representations."""
    return str(getattr(function, "__name__", type(function).__name__))
