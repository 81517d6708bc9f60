"""The components of a Gaussian mixture: four covariance shapes, their prior, and the M-step in closed form.

The penalised log-likelihood is

    Σ sᵢ log Σ_c π_c N(xᵢ; μ_c, Σ_c)  −  ½ Σ_c [ν log|Σ_c| + tr(Ψ Σ_c⁻¹)],

as if every component had, besides its examples, ν observations with scatter Ψ about its mean (an inverse-Wishart prior).
With responsibilities r, N_c = Σ sᵢ rᵢ_c and S_c = Σ sᵢ rᵢ_c (xᵢ − μ_c)(xᵢ − μ_c)', its maximum is at

    π_c = N_c / Σ N_c,   μ_c = Σ sᵢ rᵢ_c xᵢ / N_c,   Σ_c = (S_c + Ψ) / (N_c + ν),

so EM never decreases it, and every covariance is at least Ψ / (N_c + ν).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from hinge._cached import cached_property
from hinge._native import core

SHAPES: tuple[str, ...] = ("full", "tied", "diag", "spherical")
SMALL = 32  # largest order for which one batched call is faster than triangular solves


class Prior(NamedTuple):
    """ν observations of scatter diag(Ψ)."""

    observations: float
    scatter: np.ndarray


class Moments(NamedTuple):
    """The results of one pass over the data: the log-likelihood, and N, Σ r (x − μ) and Σ r (x − μ)(x − μ)'."""

    likelihood: float
    weight: np.ndarray
    shift: np.ndarray
    square: np.ndarray


@dataclass(frozen=True)
class Components:
    """Weights, means and covariances; covariances have scikit-learn's shape for each ``covariance_type``."""

    kind: str
    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray

    @cached_property
    def factors(self) -> np.ndarray:
        """P with Σ⁻¹ = PP': upper triangles for full and tied, 1/σ for the others."""
        match self.kind:
            case "full":
                return _factors(self.covariances)
            case "tied":
                return _factors(self.covariances[None])[0]
        if np.any(self.covariances <= 0):
            raise ValueError(_collapsed(int(np.argmin(self.covariances.reshape(len(self.weights), -1).min(axis=1)))))
        return 1.0 / np.sqrt(self.covariances)

    @cached_property
    def native(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Biases, means and factors in the form of the core: log densities are b − ½‖(x − μ)P‖²."""
        k, d = self.means.shape
        P = self.factors
        match self.kind:
            case "full":
                P = P.reshape(k, d * d)
            case "tied":
                P = np.tile(P.ravel(), (k, 1))
            case "spherical":
                P = np.tile(P[:, None], (1, d))
        with np.errstate(divide="ignore"):
            b = np.log(self.weights) - 0.5 * self.log_determinants - 0.5 * d * np.log(2 * np.pi)
        return b, np.ascontiguousarray(self.means), np.ascontiguousarray(P)

    @cached_property
    def log_determinants(self) -> np.ndarray:
        """log|Σ_c| of every component."""
        k, d = self.means.shape
        match self.kind:
            case "full":
                return -2.0 * np.log(np.diagonal(self.factors, axis1=1, axis2=2)).sum(axis=1)
            case "tied":
                return np.full(k, -2.0 * np.log(np.diag(self.factors)).sum())
            case "diag":
                return np.log(self.covariances).sum(axis=1)
        return d * np.log(self.covariances)

    @property
    def precisions(self) -> np.ndarray:
        match self.kind:
            case "full":
                return _products(self.factors)
            case "tied":
                return _products(self.factors[None])[0]
        return self.factors**2

    def log_prior(self, prior: Prior) -> float:
        """−½ Σ_c [ν log|Σ_c| + tr(Ψ Σ_c⁻¹)]; a tied covariance counts once."""
        match self.kind:
            case "full":
                traces = np.einsum("kij,kij,i->k", self.factors, self.factors, prior.scatter)
            case "tied":
                trace = np.einsum("ij,ij,i->", self.factors, self.factors, prior.scatter)
                return float(-0.5 * (prior.observations * self.log_determinants[0] + trace))
            case "diag":
                traces = np.sum(prior.scatter / self.covariances, axis=1)
            case _:
                traces = prior.scatter.sum() / self.covariances
        return float(-0.5 * np.sum(prior.observations * self.log_determinants + traces))

    def moments(self, design: Any, weights: np.ndarray | None, *, hard: bool = False) -> Moments:
        """The E-step, and the sums over it for the M-step."""
        b, means, P = self.native
        likelihood, weight, shift, square = core.mixture_moments(design.native, weights, b, means, P, hard)
        k, d = means.shape
        return Moments(likelihood, weight, shift, square.reshape(k, d, d) if square.shape[1] != d else square)

    @property
    def n_parameters(self) -> int:
        k, d = self.means.shape
        covariance = {"full": k * d * (d + 1) // 2, "tied": d * (d + 1) // 2, "diag": k * d, "spherical": k}
        return covariance[self.kind] + k * d + k - 1


def m_step(old: Components, moments: Moments, prior: Prior) -> Components:
    """The components that maximise the penalised expected log-likelihood."""
    N = moments.weight
    alive = np.where(N > 0, N, 1.0)[:, None]  # a component without weight keeps its parameters
    move = moments.shift / alive
    S = central(moments, move)
    d = old.means.shape[1]
    nu, psi = prior
    total = np.maximum(N + nu, np.finfo(np.float64).tiny)
    match old.kind:
        case "full":
            covariances = S if S.ndim == 3 else S[:, :, None]  # with one column the core returns diagonals
            covariances[:, np.arange(d), np.arange(d)] += psi
            covariances /= total[:, None, None]
        case "tied":
            S = S.sum(axis=0)
            covariances = S if S.ndim == 2 else S[:, None]
            covariances[np.arange(d), np.arange(d)] += psi
            covariances /= N.sum() + nu
        case "diag":
            covariances = (S + psi) / total[:, None]
        case _:
            covariances = (S.sum(axis=1) + psi.sum()) / (d * total)
    return Components(old.kind, N / N.sum(), old.means + move, covariances)


def central(moments: Moments, move: np.ndarray) -> np.ndarray:
    """Second moments about the new means, from those about the old ones, as a new array."""
    N = moments.weight
    if moments.square.ndim == 2:
        return np.maximum(moments.square - N[:, None] * move**2, 0.0)
    S = (-N[:, None] * move)[:, :, None] * move[:, None, :]
    S += moments.square
    return S


def _factors(covariances: np.ndarray) -> np.ndarray:
    """L⁻ᵀ for each covariance LL' in one batched call, because call overhead dominates EM on small data."""
    try:
        L = np.linalg.cholesky(covariances)
    except np.linalg.LinAlgError:
        L = np.full_like(covariances, np.nan)
    if not np.all(np.isfinite(L)):
        least = [np.linalg.eigvalsh(S)[0] if np.all(np.isfinite(S)) else -np.inf for S in covariances]
        raise ValueError(_collapsed(int(np.argmin(least)) if len(least) > 1 else None))
    if L.shape[1] <= SMALL:
        return np.triu(np.linalg.inv(L).transpose(0, 2, 1))
    return np.stack([scipy.linalg.lapack.dtrtri(lower.T, lower=0, overwrite_c=1)[0] for lower in L])


def _products(factors: np.ndarray) -> np.ndarray:
    """PP' for each upper triangle P; for large ones only half is computed, in a third of the operations."""
    if factors.shape[1] <= SMALL:
        return factors @ factors.transpose(0, 2, 1)
    out = np.empty(factors.shape)
    for P, product in zip(factors, out):
        upper = np.triu(scipy.linalg.lapack.dlauum(P, lower=0)[0], 1)
        np.add(upper, upper.T, out=product)
        np.fill_diagonal(product, np.einsum("ij,ij->i", P, P))
    return out


def _collapsed(component: int | None) -> str:
    which = "The covariance" if component is None else f"The covariance of component {component}"
    return (
        f"{which} is singular: without a prior the likelihood has no maximum there. Set prior_observations (1.0, say) "
        "or reg_covar above zero, or use fewer components."
    )
