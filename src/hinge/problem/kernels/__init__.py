"""Kernels: inner products of features without the features."""

from hinge.problem.kernels.base import Kernel
from hinge.problem.kernels.check import Definiteness, check_psd, definiteness, refuse_indefinite, warn_indefinite
from hinge.problem.kernels.custom import Function, Precomputed, Rank1, as_kernel, full_gram
from hinge.problem.kernels.distances import RBF, ChiSquared, Laplacian, Matern, Periodic, RationalQuadratic
from hinge.problem.kernels.graphs import Graph, WeisfeilerLehman
from hinge.problem.kernels.inner_products import Constant, Cosine, LinearKernel, Polynomial, Quadratic, Sigmoid, White
from hinge.problem.kernels.strings import Mismatch, Spectrum, Subsequence

__all__ = [
    "RBF",
    "ChiSquared",
    "Constant",
    "Cosine",
    "Definiteness",
    "Function",
    "Graph",
    "Kernel",
    "Laplacian",
    "LinearKernel",
    "Matern",
    "Mismatch",
    "Periodic",
    "Polynomial",
    "Precomputed",
    "Quadratic",
    "Rank1",
    "RationalQuadratic",
    "Sigmoid",
    "Spectrum",
    "Subsequence",
    "WeisfeilerLehman",
    "White",
    "as_kernel",
    "check_psd",
    "definiteness",
    "full_gram",
    "refuse_indefinite",
    "warn_indefinite",
]
