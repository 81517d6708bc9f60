"""Kernels: similarities that are inner products of features."""

from __future__ import annotations

from hinge._lazy import lazy_names

_PUBLIC: dict[str, tuple[str, ...]] = {
    "hinge.problem.kernels": (
        "RBF", "ChiSquared", "Constant", "Cosine", "Graph", "Kernel", "Laplacian", "LinearKernel", "Matern",
        "Mismatch", "Polynomial", "Precomputed", "Quadratic", "Rank1", "RationalQuadratic", "Sigmoid", "Spectrum",
        "Subsequence", "WeisfeilerLehman", "White", "check_psd",
    ),
}  # fmt: skip

__getattr__, __dir__, __all__ = lazy_names(__name__, _PUBLIC)
