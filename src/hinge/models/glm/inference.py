"""Inference for generalised linear models: standard errors, tests, intervals, measures of fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.stats

from hinge.models.inference import Sampled
from hinge.problem.distributions import Distribution
from hinge.problem.links import Link
from hinge.problem.losses.linked import Linked
from hinge.problem.numerics import weighted_sum
from hinge.problem.objective import Objective
from hinge.problem.root import best_bias

Array = np.ndarray


@dataclass(frozen=True)
class Significance:
    """A test: its statistic, degrees of freedom, p-value and reference distribution."""

    statistic: float
    dof: tuple[float, ...]
    p: float
    reference: str

    def __str__(self) -> str:
        dof = ", ".join(f"{d:g}" for d in self.dof)
        return f"{self.reference}({dof}) = {self.statistic:.4g}, p = {self.p:.3g}"


def _significance(statistic: float, dof: float, residual_dof: float | None) -> Significance:
    """P(χ²(dof) > statistic), or P(F(dof, residual_dof) > statistic/dof) if the dispersion was estimated."""
    if residual_dof is None:
        return Significance(statistic, (dof,), float(scipy.stats.chi2.sf(statistic, dof)), "χ²")
    p = float(scipy.stats.f.sf(statistic / dof, dof, residual_dof))
    return Significance(statistic / dof, (dof, residual_dof), p, "F")


@dataclass(frozen=True)
class GLMInference(Sampled):
    """The fit of a GLM and the large-sample distribution of its weights.

    θ̂ ≈ N(θ, φ(A'WA)⁻¹) with A = [1 X] and W = diag(sᵢ μ'ᵢ²/V(μᵢ)), the Fisher information. If the dispersion φ was
    estimated, tests use Student's t and F with the residual degrees of freedom instead of the normal and χ².

    Attributes
    ----------
    names, estimate : tuple of str, array
        "intercept" first if there is a bias, then the columns of X.
    covariance : array or None
        φ(A'WA)⁺. None for penalised fits: their weights are biased, and no standard error describes that.
    distribution, link : str
        The names of the distribution and of the link.
    total, rank : float, int
        Σ sᵢ, the number of examples (a weight of 2 is an example twice), and the rank of A.
    dispersion : float
        φ: 1 where the distribution has none (unless requested), else Pearson's χ²/(Σs − rank).
    dispersion_estimated : bool
        Whether φ was estimated from the data: tests then use t and F.
    deviance, null_deviance : float
        Σ sᵢ d(yᵢ, μᵢ), of the fit and of the best constant (of the offset alone if there is no bias).
    pearson : float
        Pearson's χ² = Σ sᵢ (yᵢ − μᵢ)²/V(μᵢ).
    log_likelihood : float
        At the φ of maximum likelihood; nan where the density has no closed form (Tweedie).
    parameters : int
        The number of fitted parameters, a fitted dispersion included.
    notes : tuple of str
        What a reader should know, such as overdispersion.
    """

    names: tuple[str, ...]
    estimate: Array
    covariance: Array | None
    distribution: str
    link: str
    total: float
    rank: int
    dispersion: float
    dispersion_estimated: bool
    deviance: float
    null_deviance: float
    pearson: float
    log_likelihood: float
    parameters: int
    notes: tuple[str, ...] = ()

    @property
    def dof(self) -> float:
        """Residual degrees of freedom, Σs − rank."""
        return self.total - self.rank

    @property
    def aic(self) -> float:
        """−2 log-likelihood + 2 · parameters."""
        return 2.0 * self.parameters - 2.0 * self.log_likelihood

    @property
    def bic(self) -> float:
        """−2 log-likelihood + log Σs · parameters."""
        return float(np.log(self.total)) * self.parameters - 2.0 * self.log_likelihood

    @property
    def explained(self) -> float:
        """The fraction of the null deviance that the fit explains, D²."""
        return 1.0 - self.deviance / self.null_deviance if self.null_deviance > 0 else 0.0

    @property
    def z(self) -> Array:
        """Wald's statistic: estimate / standard error."""
        return self._ratio()

    def wald(self, names: Any) -> Significance:
        """Wald's test that all of the named weights are zero; a category's name stands for all its levels."""
        requested = [names] if isinstance(names, str) else list(names)
        chosen = [k for k, name in enumerate(self.names) if name in requested or name.split("=")[0] in requested]
        if not chosen:
            raise ValueError(f"none of {requested} is among the weights {list(self.names)}.")
        part = self._covariance()[np.ix_(chosen, chosen)]
        inverse, rank = scipy.linalg.pinvh(part, return_rank=True)
        statistic = float(self.estimate[chosen] @ inverse @ self.estimate[chosen])
        return _significance(statistic, rank, self.dof if self.dispersion_estimated else None)

    def likelihood_ratio(self, smaller: GLMInference) -> Significance:
        """The likelihood-ratio test of a nested model, fitted to the same data with some of the columns, against this one.

        The statistic is the difference of the deviances over φ or, if φ is one and the log-likelihoods are known, twice
        their difference (these are equal unless a shape such as θ was fitted).
        """
        dof = self.rank - smaller.rank
        if dof <= 0 or smaller.total != self.total or smaller.distribution != self.distribution:
            raise ValueError(
                "smaller must be the inference_ of a model of the same distribution with fewer columns, fitted to the "
                f"same examples; it has rank {smaller.rank} (this one {self.rank}) and Σ weights {smaller.total:g} "
                f"(this one {self.total:g})."
            )
        if self.dispersion_estimated:
            return _significance(max(smaller.deviance - self.deviance, 0.0) / self.dispersion, dof, self.dof)
        return _significance(max(2.0 * (self.log_likelihood - smaller.log_likelihood), 0.0), dof, None)

    def _covariance(self) -> Array:
        if self.covariance is None:
            raise AttributeError(
                "there are no standard errors for a penalised fit: its weights are biased towards zero. "
                "Fit with alpha=0, or resample (bootstrap)."
            )
        return self.covariance

    def _reference(self) -> Any:
        return scipy.stats.t(self.dof) if self.dispersion_estimated else scipy.stats.norm()

    def __str__(self) -> str:
        width = max(max(len(name) for name in self.names), 12)
        facts = [
            ("distribution", self.distribution, "examples", f"{self.total:g}"),
            ("link", self.link, "residual dof", f"{self.dof:g}"),
            ("deviance", f"{self.deviance:.6g}", "null deviance", f"{self.null_deviance:.6g}"),
            ("Pearson χ²", f"{self.pearson:.6g}", "explained", f"{100 * self.explained:.2f} %"),
            ("log-likelihood", f"{self.log_likelihood:.6g}", "dispersion", self._dispersion()),
            ("AIC", f"{self.aic:.6g}", "BIC", f"{self.bic:.6g}"),
        ]
        rule = "─" * (width + 68)
        head = [f"{a:<15} {b:>{width + 14}}    {c:<14} {d:>{18}}" for a, b, c, d in facts]
        return "\n".join([rule, *head, rule, *self._table(width), rule, *self.notes])

    def _dispersion(self) -> str:
        return f"{self.dispersion:.5g} ({'estimated' if self.dispersion_estimated else 'fixed'})"

    def _table(self, width: int) -> list[str]:
        if self.covariance is None:
            rows = [f"{name:{width}}  {e:11.5g}" for name, e in zip(self.names, self.estimate)]
            return [f"{'':{width}}  {'estimate':>11}", *rows, "penalised: estimates are shrunk, no standard errors"]
        low, high = self.interval().T
        letter = "t" if self.dispersion_estimated else "z"
        head = f"{'':{width}}  {'estimate':>11} {'std. error':>11} {letter:>9} {'p':>9} {'95 % from':>11} {'to':>11}"
        return [
            head,
            *(
                f"{name:{width}}  {e:11.5g} {s:11.4g} {z:9.3f} {p:9.3g} {l:11.5g} {h:11.5g}"
                for name, e, s, z, p, l, h in zip(
                    self.names, self.estimate, self.standard_error, self.z, self.p, low, high
                )
            ),
        ]


def covariance_of(information: Array) -> tuple[Array, int]:
    """The (pseudo-)inverse of an information matrix and its rank."""
    scale = np.sqrt(np.maximum(np.diag(information), 1e-300))
    scaled = information / np.outer(scale, scale)  # so that the rank does not depend on the units of the columns
    try:
        factor = scipy.linalg.cho_factor(scaled, lower=True)
        if np.min(np.abs(np.diag(factor[0]))) > 1e-6:
            return scipy.linalg.cho_solve(factor, np.eye(len(scaled))) / np.outer(scale, scale), len(scaled)
    except np.linalg.LinAlgError:
        pass
    inverse, rank = scipy.linalg.pinvh(scaled, rtol=1e-12, return_rank=True)
    return inverse / np.outer(scale, scale), rank


class FitSums(NamedTuple):
    """What inference needs of all rows, as sums: the information A'WA, Σ s (y − μ)²/V(μ), Σ s d/2, Σ s [(y − μ)² − y], Σ s μ²."""

    information: Array
    pearson: float
    half_deviance: float
    excess: float
    squares: float


def fit_sums(objective: Objective, distribution: Distribution, link: Link, w: Array, b: Array) -> FitSums:
    """The sums over the rows of an objective."""
    y, z, linked = objective.y, objective.scores(w, b), linked_loss(objective, distribution, link)
    weight, mean = objective.c * objective.weight_sum, np.asarray(linked._means(z)[2])
    return FitSums(
        information_matrix(objective, weight * linked.information(z)),
        float(weight @ ((y - mean) ** 2 / distribution.variance(mean))),
        float(weight @ distribution.half_deviance(y, mean)),
        float(weighted_sum(weight, (y - mean) ** 2 - y)),
        float(weighted_sum(weight, mean**2)),
    )


def log_likelihood(
    objective: Objective, distribution: Distribution, link: Link, w: Array, b: Array, dispersion: float
) -> float:
    """Σ s log p(y | μ, φ) over the rows of an objective."""
    mean = np.asarray(linked_loss(objective, distribution, link)._means(objective.scores(w, b))[2])
    weight = objective.c * objective.weight_sum
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(weight @ distribution.log_likelihood(objective.y, mean, max(dispersion, 1e-300)))


def linked_loss(objective: Objective, distribution: Distribution, link: Link) -> Linked:
    """The loss as a function of a distribution and a link."""
    return objective.loss if isinstance(objective.loss, Linked) else Linked(distribution, link)


def information_matrix(objective: Objective, weight: Array) -> Array:
    """A' diag(weight) A with A = [1 X] (without the ones if there is no bias)."""
    gram = objective.design.gram(weight)
    if not objective.fit_intercept:
        return gram
    edge = objective.design.rmatmul(weight)
    return np.block([[np.array([[weight.sum()]]), edge[None, :]], [edge[:, None], gram]])


def best_null_bias(objective: Objective) -> float:
    """The best constant beside the offset."""
    if objective.offset is None:
        return float(np.clip(objective.loss.baseline(objective.y, objective.c), -745.0, 1e300))
    loss, shift = objective.loss, objective.offset

    def derivatives(b: float) -> tuple[float, float]:
        z = shift + b
        if isinstance(loss, Linked) and not np.all(inside := loss.inside(z)):  # the root has means that are allowed
            return (-np.inf if np.min(z[~inside]) < loss._safe() else np.inf), 0.0
        return objective.native.derivative_sums(objective.y, z, objective.c)

    return best_bias(derivatives, 1e3)


class FitRows:
    """The rows that a model was fitted to, in memory: what inference asks of them."""

    def __init__(self, objective: Objective, distribution: Distribution, link: Link, w: Array, b: Array) -> None:
        self.objective, self.at = objective, (distribution, link, w, b)

    def sums(self) -> FitSums:
        """The sums at the fit."""
        return fit_sums(self.objective, *self.at)

    def log_likelihood(self, sums: FitSums) -> float:
        """At the φ of maximum likelihood."""
        distribution, link, w, b = self.at
        phi = 1.0
        if not distribution.unit_dispersion:
            mean = np.asarray(linked_loss(self.objective, distribution, link)._means(self.objective.scores(w, b))[2])
            phi = distribution.best_dispersion(self.objective.y, mean, self.objective.c)
        return log_likelihood(self.objective, *self.at, phi)

    def null_risk(self) -> float:
        """The risk of the best constant, or of the offset alone if there is no bias."""
        o = self.objective
        shift = np.zeros(o.n) if o.offset is None else o.offset
        return o.risk_of_scores(shift + best_null_bias(o) if o.fit_intercept else shift)


def overdispersion(name: str, sums: FitSums, dof: float) -> str | None:
    """A sentence if counts vary more than a Poisson model allows.

    Dean & Lawless's score test against variance μ + αμ²: z = Σ s[(y − μ)² − y] / √(2 Σ s μ²) is standard normal under
    the Poisson model.
    """
    if name != "poisson" or dof <= 0:
        return None
    z = sums.excess / max(float(np.sqrt(2.0 * sums.squares)), 1e-300)
    if z < 3.0:
        return None
    return (
        f"Overdispersion: the counts vary more than a Poisson model allows (Pearson χ²/dof = {sums.pearson / dof:.3g}, score "
        f"test z = {z:.3g}), so these standard errors are too small. Use NegativeBinomialRegressor, or "
        "dispersion='pearson' (quasi-Poisson)."
    )
