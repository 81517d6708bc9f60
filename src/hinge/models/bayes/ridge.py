"""Evidence maximisation with scikit-learn's interface: one strength for all weights, or one for each.

Model       y ~ N(Xw + b, 1/α), w_j ~ N(0, 1/λ_j), α ~ Gamma(α₁, α₂), λ_j ~ Gamma(λ₁, λ₂), flat prior on b
Iteration   with γ_j = 1 − λ_j Σ_jj:   λ ← (Σγ + 2λ₁)/(‖w‖² + 2λ₂),   α ← (n − Σγ + 2α₁)/(‖y − Xw‖² + 2α₂)
Cost        one pass for the Gram matrix, one eigendecomposition; then an iteration is O(d) with one λ for all
Reference   MacKay (1992); Tipping (2001), appendix A
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from hinge._native import Design
from hinge._parameters import Constraints, Estimator, at_least, shared
from hinge.models.base import check_fit, check_predict, keep_float32, require_no_overflow
from hinge.models.bayes.linear import predicted
from hinge.models.callbacks import CallbackSupportMixin, iterations, with_callbacks
from hinge.problem.decisions import Normal
from hinge.problem.numerics import weighted_sum
from hinge.solvers.closed_form import Centred

Array = NDArray[np.float64]

EPS = np.finfo(np.float64).eps


class _EvidenceRegressor(CallbackSupportMixin, RegressorMixin, Estimator):
    """What the two share: the centred problem, and predictions with their variance."""

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("max_iter", "tol", "fit_intercept", "copy_X", "verbose"),
        "alpha_1": [at_least(0)],
        "alpha_2": [at_least(0)],
        "lambda_1": [at_least(0)],
        "lambda_2": [at_least(0)],
        "compute_score": ["boolean"],
    }

    _constant_tags: ClassVar[dict[str, bool]] = {"input_tags.sparse": True}

    coef_: Array
    intercept_: float
    sigma_: Array
    alpha_: float
    X_offset_: Array
    X_scale_: Array
    scores_: Any

    def _centred(self, X: Any, y: Any, weights: Array | None) -> tuple[Centred, float]:
        s = np.ones(X.shape[0]) if weights is None else weights
        total = float(s.sum())
        problem = Centred(Design(X), np.asarray(y, dtype=np.float64), s / total, self.fit_intercept)
        return problem, total

    def _adopt(self, X: Any, problem: Centred, w: Array, total: float) -> None:
        self.coef_ = keep_float32(w, X)
        self.sigma_ = keep_float32(self.sigma_, X)
        self.X_offset_ = keep_float32(problem.x_mean, X)
        self.X_scale_ = np.ones_like(self.X_offset_)  # features are not scaled
        self.intercept_ = keep_float32(problem.bias(w[:, None]), X)[0] if self.fit_intercept else 0.0
        self._total = total

    def predictive(self, X: Any) -> Normal:
        """The distribution of y at every input, the uncertainty of the weights and of the bias included."""
        check_is_fitted(self)
        X = check_predict(self, X)
        mean = Design(X).matmul(self.coef_.astype(np.float64)) + self.intercept_
        A = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64) - self.X_offset_
        A = A[:, self._used] if len(self._used) < A.shape[1] else A
        variance = np.einsum("ij,ij->i", A @ self.sigma_, A) + 1.0 / self.alpha_
        if self.fit_intercept:
            variance += 1.0 / (self.alpha_ * self._total)
        return Normal(mean, np.sqrt(variance))

    @property
    def _used(self) -> NDArray[np.intp]:
        """The features that ``sigma_`` is about."""
        return np.arange(len(self.coef_))

    def predict(self, X: Any, return_std: bool = False, *, interval: float | None = None, action: Any = None) -> Any:
        """The mean of y; also its standard deviation, an interval, or the Bayes action of a loss instead."""
        if not return_std and interval is None and action is None:
            check_is_fitted(self)
            X = check_predict(self, X)
            return keep_float32(Design(X).matmul(self.coef_.astype(np.float64)) + self.intercept_, self.coef_)
        return predicted(self.predictive(X), return_std, interval, action, self.coef_.dtype)


class BayesianRidge(_EvidenceRegressor):
    """Ridge regression whose penalty and noise are those of greatest evidence.

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
        The first precision of the weights; 1 by default.
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
        lam = 1.0 if self.lambda_init is None else float(self.lambda_init)
        c = fit.weights(alpha, lam)
        self.scores_ = []
        with iterations(self, X, y, self.max_iter) as report:
            for iteration in range(1, self.max_iter + 1):
                self.n_iter_ = iteration
                if self.compute_score:
                    self.scores_.append(self._score(fit, c, alpha, lam))
                gamma = float(np.sum(alpha * e / (lam + alpha * e)))
                new_lam = (gamma + 2.0 * self.lambda_1) / (float(c @ c) + 2.0 * self.lambda_2)
                new_alpha = (total - gamma + 2.0 * self.alpha_1) / (fit.residual(c) + 2.0 * self.alpha_2)
                require_no_overflow(*(np.log([v]) if v > 0 else np.inf for v in (new_lam, new_alpha)))
                before, now = np.array([lam, alpha]), np.array([new_lam, new_alpha])
                still = bool(np.all(before > 0) and np.all(np.abs(np.log(now / before)) < self.tol))
                alpha, lam, old = new_alpha, new_lam, c
                c = fit.weights(alpha, lam)
                stopped = report is not None and report(None)
                if stopped or (still and float(np.abs(basis @ (c - old)).sum()) < self.tol):
                    break
        self.alpha_, self.lambda_ = alpha, lam
        if self.compute_score:
            self.scores_.append(self._score(fit, c, alpha, lam))
        self.scores_ = np.array(self.scores_)
        # Σ = (λI + αX̃'SX̃)⁻¹; directions the data do not have keep their prior variance.
        spread = 1.0 / (lam + alpha * e)
        self.sigma_ = (basis * (spread - 1.0 / lam)) @ basis.T
        self.sigma_[np.diag_indices(d)] += 1.0 / lam
        self._adopt(X, problem, basis @ c, total)
        return self

    def _score(self, fit: _Spectral, c: Array, alpha: float, lam: float) -> float:
        """The log marginal likelihood with the priors of α and λ."""
        score = self.lambda_1 * np.log(lam) - self.lambda_2 * lam + self.alpha_1 * np.log(alpha) - self.alpha_2 * alpha
        logdet = -float(np.sum(np.log(lam + alpha * fit.e))) - (fit.d - len(fit.e)) * np.log(lam)
        return float(score) + 0.5 * (
            fit.d * np.log(lam) + fit.total * np.log(alpha) - alpha * fit.residual(c) - lam * float(c @ c)
            + logdet - fit.total * np.log(2.0 * np.pi)
        )  # fmt: skip


class _Spectral:
    """The least-squares problem in the basis where the Gram matrix is diagonal.

    ‖y − Xw‖² is what no weights explain, ‖y‖² − Σ v²/e, plus Σ (v − ec)²/e. Written as ‖y‖² − 2⟨c, v⟩ + Σ ec² it
    would be lost in rounding where the fit is close to perfect, and α times its error with it: there α is large.
    """

    def __init__(self, e: Array, v: Array, yy: float, total: float, d: int) -> None:
        self.e, self.v, self.yy, self.total, self.d = e, v, yy, total, d
        self.inside = e > EPS * d * max(float(e.max(initial=0.0)), 0.0)
        self.outside = max(yy - float(np.sum(v[self.inside] ** 2 / e[self.inside])), 0.0)

    def weights(self, alpha: float, lam: float) -> Array:
        return alpha * self.v / (lam + alpha * self.e)

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


class ARDRegression(_EvidenceRegressor):
    """Linear regression with a prior precision of its own for every weight: irrelevant ones are found and removed.

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

    _parameter_constraints: ClassVar[Constraints] = {
        "threshold_lambda": [at_least(0)],
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
        alpha, lam, w = 1.0 / (yy / total + EPS), np.ones(d), np.zeros(d)
        kept = np.arange(d)
        self.scores_ = []
        with iterations(self, X, y, self.max_iter) as report:
            for iteration in range(1, self.max_iter + 1):
                self.n_iter_ = iteration
                posterior = posterior_of(kept, alpha, lam)
                old, w = w, np.zeros(d)
                w[kept] = posterior.mean
                misfit = max(yy - 2.0 * float(w @ moment) + posterior_of.square(w), EPS * yy)
                if self.compute_score:
                    self.scores_.append(self._score(w, lam, alpha, misfit, posterior.logdet, total))
                gamma = 1.0 - lam[kept] * posterior.variances
                lam[kept] = (gamma + 2.0 * self.lambda_1) / (w[kept] ** 2 + 2.0 * self.lambda_2)
                alpha = (total - gamma.sum() + 2.0 * self.alpha_1) / (misfit + 2.0 * self.alpha_2)
                kept = np.flatnonzero(lam < self.threshold_lambda)
                w[lam >= self.threshold_lambda] = 0.0
                stopped = report is not None and report(None)
                if stopped or not len(kept) or (self.n_iter_ > 1 and float(np.abs(old - w).sum()) < self.tol):
                    break
        posterior = posterior_of(kept, alpha, lam)
        self.sigma_ = posterior.covariance()
        w = np.zeros(d)
        w[kept] = posterior.mean
        self.alpha_, self.lambda_ = float(alpha), lam
        self.scores_ = np.array(self.scores_)
        self._adopt(X, problem, w, total)
        return self

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
class _Posterior:
    """N(mean, Σ) of the weights that are left."""

    mean: Array
    variances: Array  # the diagonal of Σ
    logdet: float  # of Σ
    covariance: Callable[[], Array]


class _Posteriors:
    """Σ = (αG + Λ)⁻¹ for one Gram matrix G after another choice of α and Λ, scaled by Λ^{−½} so that it is safe."""

    def __init__(self, problem: Centred, total: float, moment: Array) -> None:
        self.G, self.moment = total * problem.gram(), moment
        require_no_overflow(self.G)

    def square(self, w: Array) -> float:
        """‖X̃w‖²."""
        return float(w @ self.G @ w)

    def __call__(self, kept: NDArray[np.intp], alpha: float, lam: Array) -> _Posterior:
        root = 1.0 / np.sqrt(lam[kept])
        inner = alpha * root[:, None] * self.G[np.ix_(kept, kept)] * root[None, :]
        inner[np.diag_indices_from(inner)] += 1.0
        require_no_overflow(inner)  # total weight times precision may be too much where neither is
        e, Q = np.linalg.eigh(inner) if len(kept) else (np.ones(0), np.zeros((0, 0)))
        e = np.maximum(e, 1.0)  # I plus a positive semidefinite matrix
        half = root[:, None] * Q / np.sqrt(e)
        sigma = half @ half.T
        logdet = -float(np.log(e).sum()) + 2.0 * float(np.log(root).sum())
        return _Posterior(alpha * sigma @ self.moment[kept], np.diag(sigma), logdet, lambda: sigma)


class _WidePosteriors:
    """The same for fewer rows than columns, by eigenvalues of n × n numbers.

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
