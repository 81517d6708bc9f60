"""Ridge regression for every strength from one factorisation, with exact leave-one-out errors.

Problem     min_{W,b} Σ sᵢ ‖yᵢ − W'xᵢ − b‖² + α‖W‖²,   for many α
Primal      X̃'SX̃ = V diag(e) V', then W(α) = V (e + α)⁻¹ V'X̃'SỸ                          (d ≤ n)
Dual        S^½X̃X̃'S^½ = U diag(e) U', then W(α) = X̃'S^½ U (e + α)⁻¹ U'S^½Ỹ               (d > n)
Leave out   removing weight δ of example i changes its residual from rᵢ to rᵢ / (1 − δ hᵢ), where
            hᵢ = 1/Σs + x̃ᵢ'(X̃'SX̃ + αI)⁻¹x̃ᵢ is its leverage per unit of weight (1/Σs only if there is a bias).
            In the dual, with δ = sᵢ, both rᵢ and 1 − sᵢhᵢ have the factor α, which cancels: they may vanish together

A weight of 2 means the same as having the example twice, so one unit of weight is left out, or the example if it
weighs less. Reference: Allen (1974), PRESS; Golub, Heath & Wahba (1979).
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from hinge._native import Design
from hinge.problem.numerics import OVERFLOWED
from hinge.problem.objective import Array
from hinge.solvers.closed_form import Centred

BLOCK = 4096


class RidgePath:
    """One factorisation; weights, biases and leave-one-out residuals for any α ≥ 0.

    Parameters
    ----------
    design : Design
    y : array of n targets, or n × k
    weight : array of n weights > 0
    fit_intercept : bool
    """

    def __init__(self, design: Design, y: Array, weight: Array, fit_intercept: bool) -> None:
        self.total = float(weight.sum())
        self.problem = Centred(design, y, weight / self.total, fit_intercept)
        self.weight, self.design, self.fit_intercept = weight, self.problem.design, fit_intercept
        n, d = design.shape
        self.dual = d >= n - int(fit_intercept)  # the examples can be interpolated
        if self.dual:
            K = self.total * self.problem.dual_gram(np.ones(d))
            if fit_intercept:  # the bias fits S^½1, an eigenvector with eigenvalue 0: move it to the top, then drop it
                constant = np.sqrt(weight / self.total)
                K += (1.0 + np.trace(K)) * np.outer(constant, constant)
            values, self.vectors = _eigen(K)
            if fit_intercept:
                values, self.vectors = values[:-1], self.vectors[:, :-1]
            self.moment = self.vectors.T @ (np.sqrt(weight)[:, None] * self.problem.Y)
        else:
            values, self.vectors = _eigen(self.total * self.problem.gram())
            self.moment = self.vectors.T @ (self.total * self.problem.moment(self.problem.Y))
        self.values = np.maximum(values, 0.0)

    def _shrunk(self, alpha: float) -> Array:
        """1/(e + α), and zero for directions outside the range."""
        floor = np.finfo(float).eps * max(self.design.shape) * np.max(self.values, initial=0.0)
        total = self.values + alpha
        return np.where(total > floor, 1.0 / np.where(total > floor, total, 1.0), 0.0)

    def coef(self, alpha: float) -> tuple[Array, Array]:
        """Weights (d × k) and biases (k)."""
        W = self.vectors @ (self._shrunk(alpha)[:, None] * self.moment)
        if self.dual:
            root = np.sqrt(self.weight)[:, None] * W
            W = self.design.rmatmul(root) - np.outer(self.problem.x_mean, root.sum(axis=0))
        return W, self.problem.bias(W)

    def leverages(self, alphas: Array) -> Array:
        """hᵢ per unit of weight: n × (number of α)."""
        shrunk = np.column_stack([self._shrunk(a) for a in alphas])
        if self.dual:
            h = (self.vectors**2 @ (self.values[:, None] * shrunk)) / self.weight[:, None]
        else:
            h = np.empty((self.design.shape[0], len(alphas)))
            shift = self.problem.x_mean @ self.vectors
            X = self.design.source
            if self.design.sparse:
                X = X.tocsr()
            for begin in range(0, len(h), BLOCK):
                rows = X[begin : begin + BLOCK]
                h[begin : begin + BLOCK] = (np.asarray(rows @ self.vectors) - shift) ** 2 @ shrunk
        return h + (1.0 / self.total if self.fit_intercept else 0.0)

    def leave_one_out(self, alphas: Array) -> Array:
        """The residual of every example when it is left out: n × k × (number of α)."""
        left = np.minimum(self.weight, 1.0)[:, None]
        room = 1.0 - left * self.leverages(alphas)
        room = np.where(room > 1e-12, room, np.nan)
        single = np.flatnonzero(self.weight <= 1.0) if self.dual else np.empty(0, np.intp)
        U, root = self.vectors[single], np.sqrt(self.weight[single, None])
        residuals = np.empty((len(alphas), *self.problem.Y.shape))  # α first in memory: filled in order
        with np.errstate(divide="ignore", invalid="ignore"):
            for i, alpha in enumerate(alphas):
                np.divide(self.problem.residual(self.coef(alpha)[0]), room[:, i, None], out=residuals[i])
                inverse = self._shrunk(alpha)[:, None]
                residuals[i, single] = U @ (inverse * self.moment) / (root * (U**2 @ inverse))
        return np.moveaxis(residuals, 0, -1)


def _eigen(K: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of a symmetric matrix, which is overwritten."""
    if not np.all(np.isfinite(K)):
        raise ValueError(OVERFLOWED)
    return scipy.linalg.eigh(K, overwrite_a=True, check_finite=False)
