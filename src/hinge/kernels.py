"""Kernels: similarities that are inner products of feature maps."""

from __future__ import annotations

from hinge._lazy import lazy_names

_PUBLIC: dict[str, tuple[str, ...]] = {
    "hinge.problem.kernels": (
        "check_psd", "ChiSquared", "Constant", "Cosine", "Graph", "Kernel", "Laplacian", "LinearKernel", "Matern",
        "Mismatch", "Periodic", "Polynomial", "Precomputed", "Quadratic", "Rank1", "RationalQuadratic", "RBF",
        "Sigmoid", "Spectrum", "Subsequence", "WeisfeilerLehman", "White",
    ),
}  # fmt: skip

__getattr__, __dir__, __all__ = lazy_names(__name__, _PUBLIC)
