"""Automatic relevance determination: a separate prior precision for every weight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hinge._parameters import Constraints, at_least
from hinge.models.base import check_fit, require_no_overflow
from hinge.models.bayes.evidence import EPS, EvidenceRegressor, precision
from hinge.models.bayes.predictive import Array
from hinge.models.bayes.ridge import HARDLY_ANY
from hinge.models.callbacks import iterations, with_callbacks
from hinge.problem.numerics import weighted_sum
from hinge.solvers.closed_form import Centred


class ARDRegression(EvidenceRegressor):
    """Linear regression with a separate prior precision for every weight, which removes irrelevant features.

    Maximises log p(y | α, λ) + log p(α) + Σ log p(λ_j) for y ~ N(Xw + b, 1/α), w_j ~ N(0, 1/λ_j). Weights whose λ_j
    passes ``threshold_lambda`` are zero from then on.

    Parameters
    ----------
    max_iter, tol, alpha_1, alpha_2, lambda_1, lambda_2, compute_score, fit_intercept, copy_X, verbose
        As for :class:`BayesianRidge`.
    threshold_lambda : float
        The precision from which on a weight counts as zero.

    Attributes
    ----------
    coef_, intercept_, alpha_, lambda_, sigma_, scores_, n_iter_, X_offset_, X_scale_ : as in scikit-learn
        ``sigma_`` is the covariance of the weights that are left.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> model = hg.ARDRegression().fit(X, X[:, 0] + 0.1 * np.random.default_rng(1).normal(size=50))
    >>> np.flatnonzero(np.abs(model.coef_) > 0.1)
    array([0])
    """

    _parameter_constraints: ClassVar[Constraints] = {"threshold_lambda": [at_least(0)]}

    def __init__(
        self,
        *,
        max_iter: int = 300,
        tol: float = 1e-3,
        alpha_1: float = 1e-6,
        alpha_2: float = 1e-6,
        lambda_1: float = 1e-6,
        lambda_2: float = 1e-6,
        compute_score: bool = False,
        threshold_lambda: float = 1e4,
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
        self.compute_score = compute_score
        self.threshold_lambda = threshold_lambda
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ARDRegression:
        """Fit; a weight of 2 means the same as having the example twice."""
        X, y, weights = check_fit(self, X, y, sample_weight, y_numeric=True)
        problem, total = self._centred(X, y, weights)
        d = X.shape[1]
        moment = total * problem.moment(problem.Y)[:, 0]
        yy = total * float(weighted_sum(problem.c, problem.Y[:, 0] ** 2))
        posterior_of = _WidePosteriors(problem, total) if len(y) < d else _Posteriors(problem, total, moment)
        require_no_overflow(moment, yy)
        alpha0 = 1.0 / (yy / total + EPS)
        with iterations(self, X, y, self.max_iter) as report:
            found = self._maximise(posterior_of, moment, yy, total, alpha0, 1.0, report)
            # Far from the unit of y the priors of α and λ, not the data, may decide where the iteration ends.
            if found.used < HARDLY_ANY:
                natural = alpha0 * float(np.mean(posterior_of.column_squares())) / total  # weights of sd(y)/sd(x)
                again = self._maximise(posterior_of, moment, yy, total, alpha0, natural or 1.0, report)
                found = max(found, again, key=lambda run: run.score)
        posterior = posterior_of(found.kept, found.alpha, found.lam)
        self.sigma_ = posterior.covariance()
        w = np.zeros(d)
        w[found.kept] = posterior.mean
        self.alpha_, self.lambda_, self.n_iter_ = found.alpha, found.lam, found.iterations
        self.scores_ = np.array(found.scores)
        self._adopt(X, problem, w, total)
        return self

    def _maximise(
        self, posterior_of: Any, moment: Array, yy: float, total: float, alpha: float, precision_at_first: float,
        report: Any,
    ) -> _Run:  # fmt: skip
        """Fixed-point iterations for α and the precisions of the weights, which are equal at first."""
        d, done, used, score = len(moment), 0, 0.0, -np.inf
        lam, w, kept = np.full(d, precision_at_first), np.zeros(d), np.arange(d)
        scores: list[float] = []
        while done < self.max_iter:
            done += 1
            posterior = posterior_of(kept, alpha, lam)
            old, w = w, np.zeros(d)
            w[kept] = posterior.mean
            misfit = max(yy - 2.0 * float(w @ moment) + posterior_of.square(w), EPS * yy)
            with np.errstate(invalid="ignore"):  # infinite precisions have no density
                score = self._score(w, lam, alpha, misfit, posterior.logdet, total)
            scores.append(score)
            gamma = 1.0 - lam[kept] * posterior.variances
            used = float(gamma.sum())
            squares = w[kept] ** 2 + 2.0 * self.lambda_2
            # The precision of a weight of zero is infinite without a prior.
            lam[kept] = np.divide(
                gamma + 2.0 * self.lambda_1, squares, out=np.full(len(kept), np.inf), where=squares != 0
            )
            misfit += 2.0 * self.alpha_2
            alpha = float(precision(total - used + 2.0 * self.alpha_1, misfit, "y is constant", "alpha_2"))
            require_no_overflow(np.divide(1.0, alpha))
            kept = np.flatnonzero(lam < self.threshold_lambda)
            w[lam >= self.threshold_lambda] = 0.0
            stopped = report is not None and report(None)
            if stopped or not len(kept) or (done > 1 and float(np.abs(old - w).sum()) < self.tol):
                break
        score = score if np.isfinite(score) else -np.inf
        return _Run(alpha, lam, kept, used, score, scores if self.compute_score else [], done)

    @property
    def _used(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.lambda_ < self.threshold_lambda)

    def _score(self, w: Array, lam: Array, alpha: float, misfit: float, logdet: float, total: float) -> float:
        score = float(np.sum(self.lambda_1 * np.log(lam) - self.lambda_2 * lam))
        score += self.alpha_1 * float(np.log(alpha)) - self.alpha_2 * alpha
        kept = lam < self.threshold_lambda
        return score + 0.5 * (
            logdet + total * np.log(alpha) + float(np.log(lam[kept]).sum()) - alpha * misfit
            - float(np.sum(lam * w**2)) - total * np.log(2.0 * np.pi)
        )  # fmt: skip


@dataclass(frozen=True)
class _Run:
    """Where the iterations ended: precisions, the weights that are left, γ, and the log marginal likelihoods."""

    alpha: float
    lam: Array
    kept: NDArray[np.intp]
    used: float
    score: float
    scores: list[float]
    iterations: int


@dataclass(frozen=True)
class _Posterior:
    """N(mean, Σ) of the remaining weights."""

    mean: Array
    variances: Array  # the diagonal of Σ
    logdet: float  # of Σ
    covariance: Callable[[], Array]


class _Posteriors:
    """Σ = (αG + Λ)⁻¹ for one Gram matrix G and changing α and Λ, scaled by Λ^{−½} for numerical stability."""

    def __init__(self, problem: Centred, total: float, moment: Array) -> None:
        self.G, self.moment = total * problem.gram(), moment
        require_no_overflow(self.G)

    def square(self, w: Array) -> float:
        """‖X̃w‖²."""
        return float(w @ self.G @ w)

    def column_squares(self) -> Array:
        return np.diag(self.G)

    def __call__(self, kept: NDArray[np.intp], alpha: float, lam: Array) -> _Posterior:
        root = 1.0 / np.sqrt(lam[kept])
        inner = alpha * root[:, None] * self.G[np.ix_(kept, kept)] * root[None, :]
        inner[np.diag_indices_from(inner)] += 1.0
        require_no_overflow(inner)  # the product of total weight and precision may overflow though neither does
        e, Q = np.linalg.eigh(inner) if len(kept) else (np.ones(0), np.zeros((0, 0)))
        e = np.maximum(e, 1.0)  # exact eigenvalues are at least 1: I plus a positive semidefinite matrix
        half = root[:, None] * Q / np.sqrt(e)
        sigma = half @ half.T
        logdet = -float(np.log(e).sum()) + 2.0 * float(np.log(root).sum())
        return _Posterior(alpha * sigma @ self.moment[kept], np.diag(sigma), logdet, lambda: sigma)


class _WidePosteriors:
    """The same for fewer rows than columns, by the eigenvalues of an n × n matrix.

    With R = √α·X̃Λ^{−½} and RR' = QS²Q':  Σ = Λ^{−½}(I − R'(I + RR')⁻¹R)Λ^{−½},  mean = √α·Λ^{−½}R'(I + RR')⁻¹ỹ.
    """

    def __init__(self, problem: Centred, total: float) -> None:
        X = problem.design.source
        rows = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64) - problem.x_mean
        share = np.sqrt(total * problem.c)
        self.rows, self.targets = share[:, None] * rows, share * problem.Y[:, 0]
        require_no_overflow(np.einsum("ij,ij->j", self.rows, self.rows))

    def square(self, w: Array) -> float:
        """‖X̃w‖²."""
        scores = self.rows @ w
        return float(scores @ scores)

    def column_squares(self) -> Array:
        return np.einsum("ij,ij->j", self.rows, self.rows)

    def __call__(self, kept: NDArray[np.intp], alpha: float, lam: Array) -> _Posterior:
        root = 1.0 / np.sqrt(lam[kept])
        R = np.sqrt(alpha) * self.rows[:, kept] * root
        K = R @ R.T
        require_no_overflow(K)
        e, Q = np.linalg.eigh(K)
        e = np.maximum(e, 0.0)  # positive semidefinite
        half = (Q / np.sqrt(1.0 + e)).T @ R
        mean = np.sqrt(alpha) * root * (half.T @ (Q.T @ self.targets / np.sqrt(1.0 + e)))
        variances = root**2 * np.maximum(1.0 - np.einsum("ij,ij->j", half, half), 0.0)
        logdet = -float(np.log1p(e).sum()) + 2.0 * float(np.log(root).sum())

        def covariance() -> Array:
            return root[:, None] * (np.eye(len(root)) - half.T @ half) * root

        return _Posterior(mean, variances, logdet, covariance)
