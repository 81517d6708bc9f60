"""Counts, means and scatter of groups of rows over blocks, and small sets of rows with the same moments.

Least squares, discriminants and mixtures depend on the data through these moments only: a fit to the few rows of
:func:`equivalent_rows` equals a fit to all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse

from hinge._native import Design, core
from hinge.blocks.block import Block
from hinge.blocks.survey import check_features, check_target

# Eigenvalues of correlations below this multiple of the rounding error of the largest are zero.
NEGLIGIBLE = 10.0


@dataclass(frozen=True, eq=False)
class Moments:
    """Weights (k), means (k × p) and scatter about them (k × p × p) of k groups of rows."""

    count: np.ndarray
    mean: np.ndarray
    scatter: np.ndarray

    def merge(self, other: Moments) -> Moments:
        """The moments of both sets of rows together (Chan, Golub & LeVeque 1983)."""
        total = self.count + other.count
        share = np.divide(other.count, total, out=np.zeros_like(total), where=total > 0)
        delta = other.mean - self.mean
        between = (self.count * share)[:, None, None] * delta[:, :, None] * delta[:, None, :]
        return Moments(total, self.mean + share[:, None] * delta, self.scatter + other.scatter + between)


def moments(X: Any, codes: np.ndarray, weight: np.ndarray | None, groups: int) -> Moments:
    """The moments of rows in memory."""
    if scipy.sparse.issparse(X):
        X = X.toarray()
    design, codes = Design(X), np.ascontiguousarray(codes, dtype=np.int32)
    count, mean, _ = core.class_moments(design.native, codes, weight, groups)
    scatter = core.class_scatter(design.native, codes, weight, mean, False)
    p = X.shape[1]
    return Moments(count, mean, scatter.reshape(groups, p, p))


def joint_moments(block: Block, n_features: int) -> Moments:
    """The moments of features and targets together, of all rows as one group."""
    X, y = block.X, check_target(block, classify=False)
    check_features(X, n_features, block)
    X = X.toarray() if scipy.sparse.issparse(X) else X
    joint = np.concatenate([X, y.reshape(block.rows, -1)], axis=1, dtype=np.float64)
    return moments(joint, np.zeros(block.rows), block.weight, 1)


def grouped_moments(block: Block, n_features: int, labels: np.ndarray | None) -> Moments:
    """The moments of the features of every class; of all rows as one group without labels."""
    X = block.X
    check_features(X, n_features, block)
    codes = np.zeros(block.rows) if labels is None else np.searchsorted(labels, check_target(block, classify=True))
    return moments(X, codes, block.weight, 1 if labels is None else len(labels))


def equivalent_rows(found: Moments) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """2p rows per group, with their groups and weights, that have the given moments.

    They are mean ± √(p λ_j) v_j for the eigenvalues λ and eigenvectors v of the covariance, each of weight n/(2p).
    """
    k, p = found.mean.shape
    rows = np.empty((k, 2 * p, p))
    for c in range(k):
        covariance = found.scatter[c] / (found.count[c] if found.count[c] > 0 else 1.0)
        axes = principal_axes(covariance) * np.sqrt(p)
        rows[c, :p], rows[c, p:] = found.mean[c] + axes, found.mean[c] - axes
    codes = np.repeat(np.arange(k), 2 * p)
    return rows.reshape(-1, p), codes, np.repeat(found.count / (2 * p), 2 * p)


def principal_axes(covariance: np.ndarray) -> np.ndarray:
    """Rows r_j with Σ r_j r_j' = the covariance, from the eigenvectors of the correlations."""
    scale = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    safe = np.where(scale > 0, scale, 1.0)
    values, vectors = scipy.linalg.eigh(covariance / np.outer(safe, safe))
    zero = NEGLIGIBLE * len(values) * np.finfo(float).eps * max(float(values[-1]), 0.0)
    return (vectors * np.sqrt(np.where(values > zero, values, 0.0))).T * scale
