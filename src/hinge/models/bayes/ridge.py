"""Ridge regression with penalty and noise chosen by maximal evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.linalg

from hinge._parameters import Constraints, at_least
from hinge.models.base import check_fit, require_no_overflow
from hinge.models.bayes.evidence import EPS, EvidenceRegressor, precision
from hinge.models.bayes.predictive import Array
from hinge.models.callbacks import iterations, with_callbacks
from hinge.problem.numerics import weighted_sum
from hinge.solvers.closed_form import Centred

HARDLY_ANY = 1e-3  # effective weights, below which another start is tried


class BayesianRidge(EvidenceRegressor):
    """Ridge regression with penalty and noise chosen by maximal evidence.

    Maximises log p(y | α, λ) + log p(α) + log p(λ) for y ~ N(Xw + b, 1/α), w ~ N(0, I/λ), with Gamma priors on α, λ;
    ``coef_`` is then the ridge solution for the penalty λ/α.

    Parameters
    ----------
    max_iter : int
        A limit on iterations.
    tol : float
        Iterations stop when the weights change by less than this in all, and α and λ by less than this fraction.
    alpha_1, alpha_2 : float
        Shape and rate of the Gamma prior of the precision of the noise.
    lambda_1, lambda_2 : float
        Shape and rate of the Gamma prior of the precision of the weights.
    alpha_init : float, optional
        The first precision of the noise; 1/Var(y) by default.
    lambda_init : float, optional
        The first precision of the weights; 1 by default, and if that ends with no weights to speak of, a second time from
        their number over the squared norm of the least-squares weights, whichever has the higher likelihood.
    compute_score : bool
        Keep the log marginal likelihood of every iteration in ``scores_``.
    fit_intercept : bool
        Whether there is a bias.
    copy_X, verbose
        Accepted for compatibility.

    Attributes
    ----------
    coef_, intercept_, alpha_, lambda_, sigma_, scores_, n_iter_, X_offset_, X_scale_ : as in scikit-learn
        ``predict(return_std=True)`` differs from scikit-learn in that inputs are centred and the uncertainty of the
        bias counts, as the model says.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.arange(20.0)[:, None]
    >>> model = hg.BayesianRidge().fit(X, 2.0 * X[:, 0] + np.tile([0.1, -0.1], 10))
    >>> model.coef_.round(2)
    array([2.])
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "alpha_init": [at_least(0), None],
        "lambda_init": [at_least(0), None],
    }

    def __init__(
        self,
        *,
        max_iter: int = 300,
        tol: float = 1e-3,
        alpha_1: float = 1e-6,
        alpha_2: float = 1e-6,
        lambda_1: float = 1e-6,
        lambda_2: float = 1e-6,
        alpha_init: float | None = None,
        lambda_init: float | None = None,
        compute_score: bool = False,
        fit_intercept: bool = True,
        copy_X: bool = True,
        verbose: bool = False,
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.alpha_1 = alpha_1
        self.alpha_2 = alpha_2
        self.lambda_1 = lambda_1
        self.lambda_2 = lambda_2
        self.alpha_init = alpha_init
        self.lambda_init = lambda_init
        self.compute_score = compute_score
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BayesianRidge:
        """Fit; a weight of 2 means the same as having the example twice."""
        X, y, weights = check_fit(self, X, y, sample_weight, y_numeric=True)
        problem, total = self._centred(X, y, weights)
        n, d = X.shape
        yy = total * float(weighted_sum(problem.c, problem.Y[:, 0] ** 2))
        e, basis, v = _eigenbasis(problem, total, n, d)
        fit = _Spectral(e, v, yy, total, d)
        alpha = 1.0 / (yy / total + EPS) if self.alpha_init is None else float(self.alpha_init)
        starts = [1.0, fit.natural_precision()] if self.lambda_init is None else [float(self.lambda_init)]
        with iterations(self, X, y, self.max_iter) as report:
            found = self._maximise(fit, basis, alpha, starts[0], report)
            # Far from the unit of y the priors of α and λ, not the data, may decide where the iteration ends.
            if len(starts) > 1 and fit.used(found.alpha, found.lam) < HARDLY_ANY:
                found = max(found, self._maximise(fit, basis, alpha, starts[1], report), key=lambda run: run.score)
        c, alpha, lam = found.c, found.alpha, found.lam
        self.alpha_, self.lambda_, self.n_iter_ = alpha, lam, found.iterations
        self.scores_ = np.array(found.scores)
        # Σ = (λI + αX̃'SX̃)⁻¹; directions outside the row space keep their prior variance.
        spread = 1.0 / (lam + alpha * e)
        self.sigma_ = (basis * (spread - 1.0 / lam)) @ basis.T
        self.sigma_[np.diag_indices(d)] += 1.0 / lam
        self._adopt(X, problem, basis @ c, total)
        return self

    def _maximise(self, fit: _Spectral, basis: Array, alpha: float, lam: float, report: Any) -> _Run:
        """Fixed-point iterations for α and λ from a start."""
        c, scores, done = fit.weights(alpha, lam), [], 0
        while done < self.max_iter:
            done += 1
            if self.compute_score:
                scores.append(self._score(fit, c, alpha, lam))
            gamma = fit.used(alpha, lam)
            squares, misfit = float(c @ c) + 2.0 * self.lambda_2, fit.residual(c) + 2.0 * self.alpha_2
            new_lam = precision(gamma + 2.0 * self.lambda_1, squares, "All weights are 0", "lambda_2")
            new_alpha = precision(fit.total - gamma + 2.0 * self.alpha_1, misfit, "y is constant", "alpha_2")
            require_no_overflow(*(np.log([v]) if v > 0 else np.inf for v in (new_lam, new_alpha)))
            before, now = np.array([lam, alpha]), np.array([new_lam, new_alpha])
            still = bool(np.all(before > 0) and np.all(np.abs(np.log(now / before)) < self.tol))
            alpha, lam, old = new_alpha, new_lam, c
            c = fit.weights(alpha, lam)
            stopped = report is not None and report(None)
            if stopped or (still and float(np.abs(basis @ (c - old)).sum()) < self.tol):
                break
        score = self._score(fit, c, alpha, lam)
        return _Run(c, alpha, lam, score, [*scores, score] if self.compute_score else [], done)

    def _score(self, fit: _Spectral, c: Array, alpha: float, lam: float) -> float:
        """The log marginal likelihood with the priors of α and λ."""
        score = self.lambda_1 * np.log(lam) - self.lambda_2 * lam + self.alpha_1 * np.log(alpha) - self.alpha_2 * alpha
        logdet = -float(np.sum(np.log(lam + alpha * fit.e))) - (fit.d - len(fit.e)) * np.log(lam)
        return float(score) + 0.5 * (
            fit.d * np.log(lam) + fit.total * np.log(alpha) - alpha * fit.residual(c) - lam * float(c @ c)
            + logdet - fit.total * np.log(2.0 * np.pi)
        )  # fmt: skip


@dataclass(frozen=True)
class _Run:
    """Where the iterations for α and λ ended: the weights in the eigenbasis, and the log marginal likelihoods."""

    c: Array
    alpha: float
    lam: float
    score: float
    scores: list[float]
    iterations: int


class _Spectral:
    """The least-squares problem in the basis where the Gram matrix is diagonal.

    ‖y − Xw‖² is the least residual, ‖y‖² − Σ v²/e, plus Σ (v − ec)²/e. The form ‖y‖² − 2⟨c, v⟩ + Σ ec² would cancel for nearly
    perfect fits, where α, which multiplies its error, is large.
    """

    def __init__(self, e: Array, v: Array, yy: float, total: float, d: int) -> None:
        self.e, self.v, self.yy, self.total, self.d = e, v, yy, total, d
        self.inside = e > EPS * d * max(float(e.max(initial=0.0)), 0.0)
        self.outside = max(yy - float(np.sum(v[self.inside] ** 2 / e[self.inside])), 0.0)

    def weights(self, alpha: float, lam: float) -> Array:
        return alpha * self.v / (lam + alpha * self.e)

    def used(self, alpha: float, lam: float) -> float:
        """γ = Σ αe/(λ + αe), the effective number of weights."""
        return float(np.sum(alpha * self.e / (lam + alpha * self.e)))

    def natural_precision(self) -> float:
        """The number of weights over the squared norm of the least-squares weights; 1 if these are zero."""
        squares = float(np.sum((self.v[self.inside] / self.e[self.inside]) ** 2))
        return max(float(np.count_nonzero(self.inside)) / squares, np.finfo(float).tiny) if squares > 0 else 1.0

    def residual(self, c: Array) -> float:
        """‖y − Xw‖²."""
        e, left = self.e[self.inside], (self.v - self.e * c)[self.inside]
        return max(self.outside + float(np.sum(left**2 / e)), EPS * self.yy)


def _eigenbasis(problem: Centred, total: float, n: int, d: int) -> tuple[Array, Array, Array]:
    """Eigenvalues of X̃'SX̃ (those that may differ from zero), its eigenvectors, and X̃'Sỹ in their basis."""
    moment = total * problem.moment(problem.Y)[:, 0]
    gram = total * (problem.gram() if d <= n else problem.dual_gram(np.ones(d)))
    require_no_overflow(gram, moment, total * weighted_sum(problem.c, problem.Y**2))
    if d <= n:
        e, basis = scipy.linalg.eigh(gram, overwrite_a=True)
        return np.maximum(e, 0.0), basis, basis.T @ moment
    e, U = scipy.linalg.eigh(gram, overwrite_a=True)
    kept = e > EPS * d * max(float(e[-1]), 0.0)
    e, U = e[kept], U[:, kept]
    R = np.sqrt(total * problem.c)[:, None] * U
    basis = (problem.design.rmatmul(R) - np.outer(problem.x_mean, R.sum(axis=0))) / np.sqrt(e)
    return e, basis, basis.T @ moment
