"""Kernels of scikit-learn's Gaussian processes as kernels of this library.

    ConstantKernel(c)              Constant(c)
    WhiteKernel(v)                 White(v)
    RBF(ℓ), Matern(ℓ, ν)           RBF(ℓ), Matern(ℓ, ν), with one length or one per feature
    RationalQuadratic(ℓ, α)        RationalQuadratic(ℓ, α)
    ExpSineSquared(ℓ, p)           Periodic(ℓ, p)
    DotProduct(σ₀)                 Constant(σ₀²) + LinearKernel()
    k₁ + k₂, k₁ * k₂, k ** p       the same, p a positive whole number
    bounds, "fixed"                ``.within(…)``: bounds on σ₀ become bounds on σ₀²

Any other kernel, such as one of a user's class derived from scikit-learn's, is called unchanged (:class:`Foreign`) and
defines its values, derivatives and bounds.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hinge.problem.kernels import evaluate
from hinge.problem.kernels.algebra import Power
from hinge.problem.kernels.base import DEFAULT_BOUNDS, Array, Kernel
from hinge.problem.kernels.distances import RBF, Matern, Periodic, RationalQuadratic
from hinge.problem.kernels.inner_products import Constant, LinearKernel, White


def is_foreign(kernel: Any) -> bool:
    """Whether the kernel is an object of scikit-learn (or of a class derived from one)."""
    kernels = sys.modules.get("sklearn.gaussian_process.kernels")  # if it is not imported, there is no such object
    return kernels is not None and isinstance(kernel, kernels.Kernel)


def translate(kernel: Any) -> Kernel:
    """The same kernel, with the same bounds, in this library.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> from hinge.problem.kernels.translate import translate
    >>> translate(RBF(2.0, (0.1, 10.0)) + WhiteKernel(0.5, "fixed"))
    (RBF(length_scale=2.0, gamma=None)).within((0.1, 10.0)) + (White(noise=0.5)).fixed()
    """
    if isinstance(kernel, Kernel):
        return kernel
    from sklearn.gaussian_process import kernels as sklearn_kernels

    kind = type(kernel)
    if kind in (sklearn_kernels.Sum, sklearn_kernels.Product):
        left, right = translate(kernel.k1), translate(kernel.k2)
        if left.takes != right.takes:  # one of them takes any input
            return Foreign(kernel)
        return left + right if kind is sklearn_kernels.Sum else left * right
    if kind is sklearn_kernels.Exponentiation:
        if kernel.exponent < 1 or int(kernel.exponent) != kernel.exponent:
            raise ValueError(
                f"{kernel} cannot be used: the exponent of a kernel must be a positive whole number, for others the power "
                "need not be a kernel."
            )
        return Power(translate(kernel.kernel), int(kernel.exponent))
    if kind is sklearn_kernels.ConstantKernel:
        if isinstance(kernel.constant_value, Kernel):  # a sum or product of a kernel of scikit-learn and one of hinge
            return kernel.constant_value
        return _within(Constant(float(kernel.constant_value)), kernel, "constant_value")
    if kind is sklearn_kernels.WhiteKernel:
        return _within(White(float(kernel.noise_level)), kernel, "noise_level")
    if kind is sklearn_kernels.RBF:
        return _within(RBF(_length(kernel)), kernel, "length_scale")
    if kind is sklearn_kernels.Matern:
        return _within(Matern(_length(kernel), float(kernel.nu)), kernel, "length_scale")
    if kind is sklearn_kernels.RationalQuadratic:
        return _within(RationalQuadratic(_length(kernel), float(kernel.alpha)), kernel, "alpha", "length_scale")
    if kind is sklearn_kernels.ExpSineSquared:
        return _within(Periodic(_length(kernel), float(kernel.periodicity)), kernel, "length_scale", "periodicity")
    if kind is sklearn_kernels.DotProduct:
        bounds = kernel.hyperparameter_sigma_0
        pair = None if bounds.fixed else tuple(float(b) ** 2 for b in bounds.bounds[0])
        linear = LinearKernel()
        return linear if kernel.sigma_0 == 0 else Constant(float(kernel.sigma_0) ** 2).within(pair) + linear  # type: ignore[arg-type]
    if isinstance(kernel, sklearn_kernels.CompoundKernel):
        raise ValueError("kernel cannot be a CompoundKernel, which is several kernels; pass one of them, or their sum.")
    return Foreign(kernel.clone_with_theta(kernel.theta))


@dataclass(frozen=True, eq=False)
class Foreign(Kernel):
    """A kernel of a class derived from scikit-learn's ``Kernel``, evaluated by its own methods."""

    kernel: Any

    @property
    def takes(self) -> str:  # type: ignore[override]
        from sklearn.gaussian_process import kernels as sklearn_kernels

        # Constant and white kernels take any input, and are used with vectors.
        vectors = self.kernel.requires_vector_input or isinstance(
            self.kernel, sklearn_kernels.ConstantKernel | sklearn_kernels.WhiteKernel
        )
        return "vectors" if vectors else "objects"

    def block(self, A: Any, B: Any) -> Array:
        if self.takes == "vectors":
            A, B = evaluate.spread(A), A if B is A else evaluate.spread(B)
        K = np.ascontiguousarray(self.kernel(A) if B is A else self.kernel(A, B), dtype=np.float64)
        expected = (evaluate.length(A), evaluate.length(B))
        if K.shape != expected:
            raise ValueError(f"{self.kernel} returned shape {K.shape}; expected {expected}.")
        return K

    def diagonal(self, A: Any) -> Array:
        return np.array(self.kernel.diag(evaluate.spread(A)), dtype=np.float64)

    @property
    def tunable(self) -> tuple[str, ...]:
        free = [p for p in self.kernel.hyperparameters if not p.fixed]
        return tuple(f"{type(self.kernel).__name__}.{p.name}" for p in free for _ in range(p.n_elements))

    @property
    def theta(self) -> Array:
        return np.asarray(self.kernel.theta, dtype=np.float64)

    @property
    def limits(self) -> Array:
        return np.exp(np.reshape(self.kernel.bounds, (-1, 2)))

    def with_theta(self, theta: Array) -> Kernel:
        return replace(self, kernel=self.kernel.clone_with_theta(theta))

    def derivatives(self, A: Any) -> Iterator[Array]:
        if len(self.theta):
            yield from np.ascontiguousarray(np.moveaxis(self.kernel(evaluate.spread(A), eval_gradient=True)[1], 2, 0))

    def __repr__(self) -> str:
        return repr(self.kernel)


def _length(kernel: Any) -> Any:
    length = np.asarray(kernel.length_scale, dtype=np.float64)
    return tuple(length.tolist()) if length.ndim and length.size > 1 else float(length.ravel()[0])


def _within(translated: Kernel, original: Any, *names: str) -> Kernel:
    """The bounds of scikit-learn's kernel, in the order of hinge's parameters."""
    bounds: list[tuple[float, float] | None] = []
    for name in names:
        parameter = getattr(original, f"hyperparameter_{name}")
        if parameter.fixed:
            bounds += [None] * parameter.n_elements
        else:
            bounds += [(float(low), float(high)) for low, high in parameter.bounds]
    if all(pair is None for pair in bounds):
        return translated.fixed()
    return translated if all(pair == DEFAULT_BOUNDS for pair in bounds) else translated.within(*bounds)
