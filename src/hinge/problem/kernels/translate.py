"""Kernels of scikit-learn's Gaussian processes, as kernels of this library.

    ConstantKernel(c)              Constant(c)
    WhiteKernel(v)                 White(v)
    RBF(ℓ), Matern(ℓ, ν)           RBF(ℓ), Matern(ℓ, ν), with one length or one per feature
    RationalQuadratic(ℓ, α)        RationalQuadratic(ℓ, α)
    ExpSineSquared(ℓ, p)           Periodic(ℓ, p)
    DotProduct(σ₀)                 Constant(σ₀²) + LinearKernel()
    k₁ + k₂, k₁ * k₂, k ** p       the same, p a positive whole number
    bounds, "fixed"                ``.within(…)``: bounds on σ₀ become bounds on σ₀²

A kernel that is none of these is refused by name: called as a function it would have no parameters to fit.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from hinge.problem.kernels.algebra import Power
from hinge.problem.kernels.base import Kernel
from hinge.problem.kernels.distances import RBF, Matern, Periodic, RationalQuadratic
from hinge.problem.kernels.inner_products import Constant, LinearKernel, White

# Bounds that both libraries have by default.
DEFAULT_BOUNDS = (1e-5, 1e5)


def is_foreign(kernel: Any) -> bool:
    """Whether it is a kernel object of scikit-learn (or of a class derived from one)."""
    theirs = sys.modules.get("sklearn.gaussian_process.kernels")  # not imported: there can be no such object
    return theirs is not None and isinstance(kernel, theirs.Kernel)


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
    from sklearn.gaussian_process import kernels as theirs

    kind = type(kernel)
    if kind is theirs.Sum:
        return translate(kernel.k1) + translate(kernel.k2)
    if kind is theirs.Product:
        return translate(kernel.k1) * translate(kernel.k2)
    if kind is theirs.Exponentiation:
        if kernel.exponent < 1 or int(kernel.exponent) != kernel.exponent:
            raise ValueError(
                f"{kernel} cannot be used: the exponent of a kernel must be a positive whole number, for others the power "
                "need not be a kernel."
            )
        return Power(translate(kernel.kernel), int(kernel.exponent))
    if kind is theirs.ConstantKernel:
        if isinstance(kernel.constant_value, Kernel):  # scikit-learn's kernel + or * one of ours
            return kernel.constant_value
        return _within(Constant(float(kernel.constant_value)), kernel, "constant_value")
    if kind is theirs.WhiteKernel:
        return _within(White(float(kernel.noise_level)), kernel, "noise_level")
    if kind is theirs.RBF:
        return _within(RBF(_length(kernel)), kernel, "length_scale")
    if kind is theirs.Matern:
        return _within(Matern(_length(kernel), float(kernel.nu)), kernel, "length_scale")
    if kind is theirs.RationalQuadratic:
        return _within(RationalQuadratic(_length(kernel), float(kernel.alpha)), kernel, "alpha", "length_scale")
    if kind is theirs.ExpSineSquared:
        return _within(Periodic(_length(kernel), float(kernel.periodicity)), kernel, "length_scale", "periodicity")
    if kind is theirs.DotProduct:
        bounds = kernel.hyperparameter_sigma_0
        pair = None if bounds.fixed else tuple(float(b) ** 2 for b in bounds.bounds[0])
        linear = LinearKernel()
        return linear if kernel.sigma_0 == 0 else Constant(float(kernel.sigma_0) ** 2).within(pair) + linear  # type: ignore[arg-type]
    raise TypeError(
        f"{type(kernel).__name__} has no counterpart here. Use a kernel expression such as "
        "1.0 * hg.kernels.RBF(1.0) + hg.kernels.White(0.1), or pass the function itself, lambda A, B: kernel(A, B), whose parameters are "
        "not fitted."
    )


def _length(kernel: Any) -> Any:
    length = np.asarray(kernel.length_scale, dtype=np.float64)
    return tuple(length.tolist()) if length.ndim and length.size > 1 else float(length.ravel()[0])


def _within(mine: Kernel, theirs: Any, *names: str) -> Kernel:
    """Their bounds, in the order of our parameters."""
    bounds: list[tuple[float, float] | None] = []
    for name in names:
        parameter = getattr(theirs, f"hyperparameter_{name}")
        if parameter.fixed:
            bounds += [None] * parameter.n_elements
        else:
            bounds += [(float(low), float(high)) for low, high in parameter.bounds]
    if all(pair is None for pair in bounds):
        return mine.fixed()
    return mine if all(pair == DEFAULT_BOUNDS for pair in bounds) else mine.within(*bounds)
