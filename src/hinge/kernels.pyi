# Written by tools/stubs.py.

from hinge.problem.kernels import (
    ChiSquared as ChiSquared,
    Constant as Constant,
    Cosine as Cosine,
    Graph as Graph,
    Kernel as Kernel,
    Laplacian as Laplacian,
    LinearKernel as LinearKernel,
    Matern as Matern,
    Mismatch as Mismatch,
    Periodic as Periodic,
    Polynomial as Polynomial,
    Precomputed as Precomputed,
    Quadratic as Quadratic,
    RBF as RBF,
    Rank1 as Rank1,
    RationalQuadratic as RationalQuadratic,
    Sigmoid as Sigmoid,
    Spectrum as Spectrum,
    Subsequence as Subsequence,
    WeisfeilerLehman as WeisfeilerLehman,
    White as White,
    check_psd as check_psd,
)

__all__: list[str]
_PUBLIC: dict[str, tuple[str, ...]]
