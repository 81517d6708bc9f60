"""The cost of fits and certificates, in floating-point operations estimated from shapes alone.

A certificate may cost a tenth of its fit, or ten milliseconds (``FREE`` operations). The counts are estimates; their
purpose is that the same data always lead to the same certificate, which a clock would not guarantee.
"""

from __future__ import annotations

from hinge._native import Design

SHARE = 0.1  # of the cost of the fit
FREE = 3e7  # about ten milliseconds of one core


def entries(design: Design) -> float:
    """The number of stored entries that a product with X reads."""
    source, (n, d) = design.source, design.shape
    if design.coded:
        return float(n) * (len(source.codes) + source.numbers.shape[1])
    return float(source.nnz) if design.sparse else float(n) * d


def pass_flops(design: Design, outputs: int = 1) -> float:
    """Operations of Xw and X'u together."""
    return 4.0 * entries(design) * outputs


def gram_flops(design: Design, columns: int) -> float:
    """Operations of X'diag(h)X over some columns, which are converted to dense unless they are all columns."""
    n, d = design.shape
    dense = not (design.sparse or design.coded) or columns < d
    return float(n) * columns**2 if dense else entries(design) ** 2 / max(n, 1)


def factor_flops(order: int) -> float:
    """Operations of a Cholesky factorisation and a few solves with it."""
    return order**3 / 3.0 + 16.0 * order**2


def budget(fit_flops: float) -> float:
    """Operations that a certificate may cost beyond a few passes over X."""
    return max(FREE, SHARE * fit_flops)
