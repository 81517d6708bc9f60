"""Bayesian linear regression with a Gaussian prior: posterior, predictive distribution, evidence, sequential learning.

Model       w ~ N(0, Σ₀), y | x, w ~ N(⟨w, x⟩ + b, σ²), b with a flat prior if there is a bias
Posterior   μ = V X'Sy,  V = (X'SX + R)⁻¹,  R = σ²Σ₀⁻¹,  Σ = σ²V;  the bias is one more column, with R = 0
Conjugate   w | σ² ~ N(0, σ²Σ₀), σ² ~ InverseGamma(a₀, b₀): R = Σ₀⁻¹, Student's t for everything
Evidence    log p(y | σ², τ²) for Σ₀ = τ²P, from the eigenvalues of P^½X̃'SX̃P^½: one Gram matrix, then O(d) each
Sequential  V ← V − VX'(S⁻¹ + XVX')⁻¹XV for the rows of a new batch (Sherman, Morrison & Woodbury)
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.linalg
import scipy.optimize
from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from hinge._native import Design
from hinge._parameters import Constraints, Estimator, above, at_least, between, numbers, one_of, shared
from hinge.models.base import check_fit, check_predict, in_precision, keep_float32, require_no_overflow
from hinge.models.bayes.predictive import Array, held_bias, inverse_precision, log_determinant, precision_of, predicted
from hinge.problem.decisions import Normal, StudentT
from hinge.problem.kernels import evaluate
from hinge.problem.numerics import weighted_sum
from hinge.solvers.closed_form import Centred

# Evidence is maximised over log σ²/τ² within this distance of its scale.
# If the weights can fit every example exactly, the evidence grows without bound as σ² → 0, and the bound is the result.
SPAN = 15.0
INTERPOLATED = 1e-10


def _has_prior(model: BayesianLinearRegression) -> bool:
    """Whether the prior does not depend on the data."""
    return model.prior_covariance is not None and model.noise_variance is not None


def _learns_in_steps(model: Any) -> bool:
    if not _has_prior(model):
        raise AttributeError(
            "partial_fit needs prior_covariance and noise_variance (a number or 'conjugate'): the evidence is "
            "maximised over all examples together."
        )
    return True


class BayesianLinearRegression(RegressorMixin, Estimator):
    """Linear regression with w ~ N(0, Σ₀) and Gaussian noise: the full posterior, not only its mode.

    μ = (X'X + σ²Σ₀⁻¹)⁻¹X'y and Σ = (X'X/σ² + Σ₀⁻¹)⁻¹. The mode is the minimiser of
    Σ sᵢ (yᵢ − ⟨w, xᵢ⟩ − b)² + σ² w'Σ₀⁻¹w: ridge regression with α = λ if Σ₀ = (σ²/λ)I.

    Parameters
    ----------
    prior_covariance : float, array of d, matrix of d × d, or None
        Σ₀, as τ²I, a diagonal or in full. None takes τ²I with the τ² of greatest evidence.
    noise_variance : float, "conjugate" or None
        σ² if it is known. None takes the one of greatest evidence p(y | X). "conjugate" gives it an inverse gamma
        prior and integrates it out; Σ₀ is then in units of σ², and predictions have Student's distribution.
    fit_intercept : bool
        Whether there is a bias, with a flat prior.
    noise_shape, noise_rate : float
        a₀ and b₀ of the inverse gamma prior.

    Attributes
    ----------
    coef_, intercept_ : array, float
        Posterior mean (and mode).
    covariance_ : array of (d, d), or (d + 1, d + 1) with the bias last
        Posterior covariance; with "conjugate", its scale matrix.
    noise_variance_ : float
        σ²: as given, of greatest evidence, or the posterior mean of it (mode where there is no mean).
    prior_variance_ : float
        τ², the factor in front of the given Σ₀: 1 unless it was chosen.
    log_evidence_ : float
        log p(y | X); where there is a bias, up to a constant (its prior is flat).

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X, y = np.array([[-1.0], [0.0], [1.0]]), np.array([-1.0, 0.0, 1.0])
    >>> model = hg.BayesianLinearRegression(1.0, noise_variance=0.5, fit_intercept=False).fit(X, y)
    >>> float(model.coef_[0]), float(model.covariance_[0, 0])  # 2/(2 + 0.5), 0.5/(2 + 0.5)
    (0.8, 0.2)
    >>> mean, (low, high) = model.predict([[1.0]], interval=0.95)
    >>> bool(low[0] < 0.8 < high[0])
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("fit_intercept"),
        "prior_covariance": [between(0, 1e150, "right"), numbers(), None],
        "noise_variance": [above(0), one_of("conjugate"), None],
        "noise_shape": [at_least(0)],
        "noise_rate": [at_least(0)],
    }

    _constant_tags: ClassVar[dict[str, bool]] = {"input_tags.sparse": True}

    def __init__(
        self,
        prior_covariance: Any = None,
        noise_variance: Any = None,
        *,
        fit_intercept: bool = True,
        noise_shape: float = 1.0,
        noise_rate: float = 1.0,
    ) -> None:
        self.prior_covariance = prior_covariance
        self.noise_variance = noise_variance
        self.fit_intercept = fit_intercept
        self.noise_shape = noise_shape
        self.noise_rate = noise_rate

    # -- learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BayesianLinearRegression:
        """Learn from examples; a weight of 2 means the same as having an example twice."""
        X, y, weights = check_fit(self, X, y, sample_weight, y_numeric=True)
        return self._learn(X, np.asarray(y, dtype=np.float64), weights)

    def _learn(self, X: Any, y: Array, weights: Array | None) -> BayesianLinearRegression:
        n, d = X.shape
        s = np.ones(n) if weights is None else weights
        root = self._prior_root(d)
        self._total_weight = float(s.sum())
        design = Design(X) if n else None
        if design is not None:
            with np.errstate(over="ignore", invalid="ignore"):
                G, moment = design.gram(s), design.rmatmul(s * y)
                require_no_overflow(G, moment, weighted_sum(s, y**2))
        self.prior_variance_, noise = 1.0, self.noise_variance
        if noise is None or self.prior_covariance is None:
            self.prior_variance_, noise = self._maximise_evidence(X, y, s, root)
        known = 1.0 if self.noise_variance == "conjugate" else float(noise)
        R = precision_of(root) * (known / self.prior_variance_)
        if design is None:  # no examples: the posterior is the prior
            self._V, self._mean, self._misfit = inverse_precision(R), np.zeros(d), 0.0
            self._known, self._prior_logdet = known, log_determinant(root)
            return self._adopt(X.dtype)
        if self.fit_intercept:
            column = design.rmatmul(s)
            G = np.block([[G, column[:, None]], [column[None, :], self._total_weight]])
            moment = np.append(moment, float(weighted_sum(s, y)))
            R = scipy.linalg.block_diag(R, 0.0)
        total = G + R
        self._V = inverse_precision(total)
        self._mean = self._V @ moment
        for _ in range(2):  # iterative refinement: residuals are more accurate than the normal equations
            residual = y - design.matmul(self._mean[:d]) - (self._mean[d] if self.fit_intercept else 0.0)
            left = design.rmatmul(s * residual)
            left = np.append(left, float(weighted_sum(s, residual))) if self.fit_intercept else left
            self._mean = self._mean + self._V @ (left - R @ self._mean)
        residual = y - design.matmul(self._mean[:d]) - (self._mean[d] if self.fit_intercept else 0.0)
        self._misfit = float(weighted_sum(s, residual**2)) + float(self._mean @ R @ self._mean)
        require_no_overflow(self._mean, self._V, self._misfit)
        self._prior_logdet = log_determinant(root) + d * np.log(self.prior_variance_)
        self._known = known
        return self._adopt(X.dtype)

    @available_if(_learns_in_steps)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> BayesianLinearRegression:
        """Learn from further examples; the same as learning from all of them at once.

        Needs a prior that does not depend on the data: ``prior_covariance`` given, and ``noise_variance`` given or
        "conjugate". Called first without examples, on arrays of no rows, the model is its prior.
        """
        first = not hasattr(self, "_V")
        X, y, weights = check_fit(self, X, y, sample_weight, y_numeric=True, reset=first, ensure_min_samples=0)
        y = np.asarray(y, dtype=np.float64)
        if first:
            if not len(y) and self.fit_intercept:
                raise ValueError("With a bias, whose prior is flat, there is no prior to start from: give examples.")
            return self._learn(X, y, weights)
        rows = np.flatnonzero(weights > 0) if weights is not None else np.arange(len(y))
        if not len(rows):
            return self
        s = np.ones(len(rows)) if weights is None else weights[rows]
        A = self._columns(X[rows])
        U = A @ self._V
        inner = scipy.linalg.cho_factor(np.diag(1.0 / s) + U @ A.T)
        error = y[rows] - A @ self._mean
        self._mean = self._mean + U.T @ scipy.linalg.cho_solve(inner, error)
        self._misfit += float(error @ scipy.linalg.cho_solve(inner, error))
        V = self._V - U.T @ scipy.linalg.cho_solve(inner, U)
        self._V = 0.5 * (V + V.T)
        self._total_weight += float(s.sum())
        return self._adopt(self.coef_.dtype)

    def _adopt(self, dtype: Any) -> BayesianLinearRegression:
        d = len(self._mean) - int(self.fit_intercept)
        n = self._total_weight - int(self.fit_intercept)  # the flat prior of the bias uses up one observation
        logdet = float(np.linalg.slogdet(self._V)[1]) - self._prior_logdet + d * np.log(self._known)
        if self.noise_variance == "conjugate":
            self._shape = self.noise_shape + 0.5 * n
            self._rate = self.noise_rate + 0.5 * self._misfit
            self.noise_variance_ = self._rate / (self._shape - 1.0 if self._shape > 1.0 else self._shape + 1.0)
            scale = self._rate / self._shape
            self.log_evidence_ = float(
                scipy.special.gammaln(self._shape) - scipy.special.gammaln(self.noise_shape)
                + self.noise_shape * np.log(self.noise_rate) - self._shape * np.log(self._rate)
                - 0.5 * n * np.log(2.0 * np.pi) + 0.5 * logdet
            )  # fmt: skip
        else:
            self.noise_variance_ = scale = self._known
            self.log_evidence_ = -0.5 * (n * np.log(2.0 * np.pi * scale) + self._misfit / scale) + 0.5 * logdet
        self.covariance_ = scale * self._V
        single = np.dtype(np.float32) == dtype
        self.coef_ = in_precision(self._mean[:d], np.float32 if single else np.float64)
        self.intercept_ = float(self._mean[d]) if self.fit_intercept else 0.0
        return self

    def _prior_root(self, d: int) -> Array:
        """L with Σ₀ = LL'."""
        given = np.asarray(1.0 if self.prior_covariance is None else self.prior_covariance, dtype=np.float64)
        noise = self.noise_variance
        if self.prior_covariance is None and isinstance(noise, str):
            raise ValueError("noise_variance='conjugate' needs a prior_covariance, in units of the noise variance.")
        if given.ndim == 2 and given.shape == (d, d) and np.allclose(given, given.T):
            try:
                return scipy.linalg.cholesky(given, lower=True)
            except np.linalg.LinAlgError:
                raise ValueError("prior_covariance is not positive definite.") from None
        if given.ndim > 1 or (given.ndim == 1 and given.shape != (d,)):
            raise ValueError(
                f"prior_covariance must be a number, {d} variances or a symmetric {d} × {d} matrix, got {given.shape}."
            )
        if not (np.all(np.isfinite(given)) and np.all(given > 0)):
            raise ValueError(f"prior_covariance must be greater than 0, got {self.prior_covariance!r}.")
        return np.diag(np.sqrt(np.broadcast_to(given, (d,))))

    def _maximise_evidence(self, X: Any, y: Array, s: Array, root: Array) -> tuple[float, float]:
        """The values of τ² and σ², of those not given, that maximise the evidence."""
        n = float(s.sum()) - int(self.fit_intercept)
        if n <= 0:
            raise ValueError(
                f"n_samples={len(y)} is too few to estimate variances; give prior_covariance and noise_variance."
            )
        problem = Centred(Design(X), y, s / s.sum(), self.fit_intercept)
        G = float(s.sum()) * root.T @ problem.gram() @ root
        e, Q = scipy.linalg.eigh(G)
        e = np.maximum(e, 0.0)
        v2 = (Q.T @ root.T @ (float(s.sum()) * problem.moment(problem.Y)[:, 0])) ** 2
        yy = max(float(weighted_sum(s, problem.Y[:, 0] ** 2)), 1e-300)
        real = e > 1e-13 * e.max(initial=0.0)
        explained = np.where(real, v2 / np.where(real, e, 1.0), 0.0)
        beyond = yy - float(explained.sum())  # ‖y‖² outside the range of X; rounding error if the fit is exact
        beyond = beyond if beyond > INTERPOLATED * yy else 0.0
        known_noise = None if self.noise_variance is None else float(self.noise_variance)

        def parts(log_ratio: float) -> tuple[float, float, float]:
            """y'(I + XX'/ρ)⁻¹y, its derivative by log ρ, and tr(XX'(ρI + XX')⁻¹), for ρ = σ²/τ²."""
            ratio = np.exp(log_ratio)
            share = ratio / (e + ratio)
            fit = beyond + float(explained @ share)
            return fit, float(np.sum(explained * share * (1.0 - share))), float(np.sum(1.0 - share))

        def noise_at(log_ratio: float) -> float:
            if known_noise is not None:
                return known_noise
            # With τ free too, the best σ² for a ratio is y'(I + XX'/ρ)⁻¹y/n.
            noise = parts(log_ratio)[0] / n if self.prior_covariance is None else float(np.exp(log_ratio))
            return max(noise, np.finfo(float).tiny)

        def cost(log_ratio: float) -> float:
            noise = noise_at(log_ratio)
            determinant = float(np.sum(np.log1p(e * np.exp(-log_ratio))))
            return parts(log_ratio)[0] / noise + n * np.log(noise) + determinant

        def derivative(log_ratio: float) -> float:
            fit, change, freedom = parts(log_ratio)
            moving = n - fit / noise_at(log_ratio) if known_noise is None and self.prior_covariance is not None else 0.0
            return change / noise_at(log_ratio) - freedom + moving

        centre = np.log(max(float(e.mean()), 1e-300) if self.prior_covariance is None else yy / n)
        grid = centre + np.linspace(-SPAN, SPAN, 61)
        best = int(np.argmin([cost(t) for t in grid]))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
        bracketed = derivative(low) < 0 < derivative(high)
        found = scipy.optimize.brentq(derivative, low, high, xtol=1e-14) if bracketed else float(grid[best])
        noise = noise_at(found)
        if self.prior_covariance is not None:
            return 1.0, noise
        return max(noise / float(np.exp(found)), np.finfo(float).tiny), noise

    # -- prediction

    def _columns(self, X: Any) -> Array:
        """Dense rows, with a one for the bias."""
        A = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
        return np.hstack([A, np.ones((len(A), 1))]) if self.fit_intercept else A

    def predictive(self, X: Any, *, noise: bool = True) -> Any:
        """The distribution of y (of ⟨w, x⟩ + b with ``noise=False``) at every input: normal, or Student's t."""
        check_is_fitted(self)
        A = self._columns(check_predict(self, X))
        spread = np.einsum("ij,ij->i", A @ self._V, A) + (1.0 if noise else 0.0)
        mean = A @ self._mean
        require_no_overflow(mean, spread)
        if self.noise_variance == "conjugate":
            return StudentT(2.0 * self._shape, mean, np.sqrt(spread * self._rate / self._shape))
        return Normal(mean, np.sqrt(spread * self._known))

    def prior_predictive(self, X: Any, *, noise: bool = True, intercept: float | None = None) -> Any:
        """The prior predictive distribution of y (of the scores with ``noise=False``).

        Normal with mean b and variance x'Σ₀x + σ², or Student's t. The prior of the bias is flat: with ``fit_intercept``
        it is held at ``intercept``. Needs ``prior_covariance``, and ``noise_variance`` given or "conjugate".

        Examples
        --------
        >>> import hinge as hg
        >>> model = hg.BayesianLinearRegression(4.0, noise_variance=1.0, fit_intercept=False)
        >>> float(model.prior_predictive([[2.0]]).variance[0])  # 4·2² + 1
        17.0
        """
        if not _has_prior(self):
            raise ValueError("prior_predictive needs prior_covariance, and noise_variance (a number or 'conjugate').")
        A = evaluate.spread(evaluate.matrix(X)).astype(np.float64)
        spread = np.square(A @ self._prior_root(A.shape[1])).sum(axis=1) + (1.0 if noise else 0.0) * self._unit_noise()
        mean = np.full(len(A), held_bias(self, intercept))
        if self.noise_variance == "conjugate":
            return StudentT(2.0 * self.noise_shape, mean, np.sqrt(spread * self.noise_rate / self.noise_shape))
        return Normal(mean, np.sqrt(spread))

    def _unit_noise(self) -> float:
        """σ² in the units of Σ₀."""
        return 1.0 if self.noise_variance == "conjugate" else float(self.noise_variance)

    def sample_y(
        self,
        X: Any,
        n_samples: int = 1,
        random_state: Any = None,
        *,
        noise: bool = True,
        intercept: float | None = None,
    ) -> Array:
        """Joint draws of y for all inputs, an array of (inputs, draws): weights are drawn first, then y given the weights.

        Before fitting, weights are drawn from the prior, as in :meth:`prior_predictive`.
        """
        rng = np.random.default_rng(random_state)
        fitted = hasattr(self, "_V")
        if not fitted and not _has_prior(self):
            raise ValueError("Draws before fit need prior_covariance, and noise_variance (a number or 'conjugate').")
        conjugate = self.noise_variance == "conjugate"
        if fitted:
            A, V, mean = self._columns(check_predict(self, X)), self._V, self._mean
            shape, rate, variance = getattr(self, "_shape", 0.0), getattr(self, "_rate", 0.0), self._known
            root, shift = np.linalg.cholesky(V), 0.0
        else:
            A = evaluate.spread(evaluate.matrix(X)).astype(np.float64)
            shape, rate, variance = self.noise_shape, self.noise_rate, self._unit_noise()
            root = self._prior_root(A.shape[1]) / np.sqrt(variance)  # V is in units of the noise
            mean, shift = np.zeros(A.shape[1]), held_bias(self, intercept)
        scale = np.sqrt(rate / rng.gamma(shape, size=n_samples) if conjugate else np.full(n_samples, variance))
        weights = mean[:, None] + scale * (root @ rng.standard_normal((len(mean), n_samples)))
        errors = scale * rng.standard_normal((len(A), n_samples)) if noise else 0.0
        return A @ weights + shift + errors

    def predict(self, X: Any, return_std: bool = False, *, interval: float | None = None, action: Any = None) -> Any:
        """The posterior mean of y, or the Bayes action of any loss.

        Parameters
        ----------
        X : inputs
        return_std : bool
            Also the standard deviation of y.
        interval : float, optional
            Also the central intervals (low, high) that hold y with this probability.
        action : "median", "mode" or a loss, optional
            The action of least expected loss instead of the mean.
        """
        if action is None and not return_std and interval is None:
            check_is_fitted(self)
            X = check_predict(self, X)
            mean = Design(X).matmul(self.coef_.astype(np.float64)) + self.intercept_
            return keep_float32(mean, self.coef_)
        return predicted(self.predictive(X), return_std, interval, action, self.coef_.dtype)

    def sample_functions(self, X: Any, n_samples: int = 1, random_state: Any = None) -> Array:
        """Values at X of functions x ↦ ⟨w, x⟩ + b drawn from the posterior: an array of (inputs, draws)."""
        return self._columns(check_predict(self, X)) @ self.sample_weights(n_samples, random_state).T

    def sample_weights(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Weights drawn from the posterior, one draw per row, the bias last."""
        check_is_fitted(self)
        rng = np.random.default_rng(random_state)
        z = rng.standard_normal((n_samples, len(self._mean))) @ np.linalg.cholesky(self.covariance_).T
        if self.noise_variance == "conjugate":
            z /= np.sqrt(rng.chisquare(2.0 * self._shape, size=(n_samples, 1)) / (2.0 * self._shape))
        return self._mean + z
