"""Mixtures of linear regressions by EM."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.linalg
from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hinge._native import Design
from hinge._parameters import Constraints, Estimator, above, count, shared
from hinge.models.base import check_fit, check_predict, keep_float32, require_no_overflow
from hinge.models.callbacks import CallbackSupportMixin, iterations, with_callbacks
from hinge.models.generative.base import OUTPUT, finish
from hinge.models.generative.mixture.em import draw, draw_order
from hinge.problem.numerics import OVERFLOWED

# A component with less than this share of the examples is empty and keeps its parameters.
NO_WEIGHT = 1e-12


class Lines(NamedTuple):
    """π (k), weights with the bias last (k, d + 1), σ² (k)."""

    share: np.ndarray
    beta: np.ndarray
    variance: np.ndarray


class MixtureOfRegressions(CallbackSupportMixin, RegressorMixin, Estimator):
    """A mixture of linear regressions: each example belongs to one of them, and which one is latent.

    Maximises  Σ sᵢ log Σ_c π_c N(yᵢ; ⟨w_c, xᵢ⟩ + b_c, σ_c²) − ½ Σ_c [ν log σ_c² + (ν σ₀² + α‖w_c‖²)/σ_c²]  by EM: every
    M-step is a weighted ridge regression per component, then σ_c² = (Σ s r (y − f_c)² + α‖w_c‖² + ν σ₀²) / (N_c + ν).
    σ₀² is the residual variance of one regression, divided by k²; w_c is in units of the columns' standard deviations.
    The prior keeps a regression from passing through its examples exactly.

    Parameters
    ----------
    n_components : int
        How many regressions.
    tol : float
        Stop when the objective per example rises by less.
    max_iter : int
        A limit on EM steps.
    n_init : int
        Starts, each from lines through a few examples drawn at random; the best result is kept.
    alpha : float
        α, which makes the weights of a component with few examples unique.
    prior_observations : float
        ν, imagined observations with variance σ₀² per component.
    random_state : int or RandomState
        Seed of the starts.

    Attributes
    ----------
    weights_ : array of shape (k,)
        How common each regression is.
    coef_, intercept_, variances_ : arrays of shape (k, d), (k,), (k,)
    lower_bound_, lower_bounds_, n_iter_, converged_
        As for :class:`GaussianMixture`.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> x = np.linspace(-1, 1, 40)
    >>> y = np.where(np.arange(40) % 2, 2 * x, -2 * x)
    >>> model = hg.MixtureOfRegressions(2).fit(x[:, None], y)
    >>> np.sort(model.coef_[:, 0]).round(2)
    array([-2.,  2.])
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("tol", "max_iter", "random_state"),
        "n_components": [count()],
        "n_init": [count()],
        "alpha": [above(0)],
        "prior_observations": [above(0)],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        tol: float = 1e-6,
        max_iter: int = 1000,
        n_init: int = 10,
        alpha: float = 1e-3,
        prior_observations: float = 1.0,
        random_state: Any = 0,
    ) -> None:
        self.n_components = n_components
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.alpha = alpha
        self.prior_observations = prior_observations
        self.random_state = random_state

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MixtureOfRegressions:
        """Fit; a weight of 2 is equivalent to repeating the example."""
        X, y, weights = check_fit(self, X, y, sample_weight, y_numeric=True, accept_sparse=False)
        if len(X) < self.n_components:
            raise ValueError(
                f"n_components is {self.n_components}, but there are {len(X)} examples; it must not be larger."
            )
        y = np.asarray(y, dtype=np.float64)
        require_no_overflow(np.sum(y**2))
        problem = _Problem(X, y, weights, int(self.n_components), self.alpha, self.prior_observations)
        random = check_random_state(self.random_state)
        best: tuple[Lines, list[float], bool] | None = None
        with iterations(self, X, y, self.max_iter) as report:
            for _ in range(self.n_init if self.n_components > 1 else 1):
                run = problem.run(problem.start(random), self.tol, self.max_iter, report)
                if best is None or run[1][-1] > best[1][-1]:
                    best = run
        assert best is not None
        lines, bounds, self.converged_ = best
        beta = problem.unscaled(lines.beta)
        self.weights_, self.variances_ = lines.share, lines.variance
        self.coef_, self.intercept_ = keep_float32(beta[:, :-1], X), keep_float32(beta[:, -1], X)
        self.lower_bounds_ = bounds[1:] or bounds
        self.lower_bound_ = bounds[-1]
        self.n_iter_ = max(len(bounds) - 1, 1)
        if not self.converged_ and not getattr(getattr(self, "_callback_fit_ctx", None), "stopped", False):
            warnings.warn(
                f"EM did not converge in max_iter={self.max_iter} steps. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def predict_components(self, X: Any) -> np.ndarray:
        """The predictions of each regression, a column per component."""
        check_is_fitted(self)
        X = check_predict(self, X)
        z = Design(X).matmul(self.coef_.T.astype(np.float64)) + self.intercept_
        require_no_overflow(z)
        return keep_float32(z, self.coef_)

    def predict(self, X: Any) -> np.ndarray:
        """E[y | x] = Σ_c π_c (⟨w_c, x⟩ + b_c)."""
        f = self.predict_components(X)
        return keep_float32(f.astype(np.float64) @ self.weights_, self.coef_)

    def _joint(self, X: Any, y: Any) -> np.ndarray:
        f = self.predict_components(X).astype(np.float64)
        y = np.asarray(y, dtype=np.float64)
        return _log_densities(y[:, None] - f, Lines(self.weights_, f, self.variances_))

    def responsibilities(self, X: Any, y: Any) -> np.ndarray:
        """p(component | x, y): which regression each example belongs to."""
        return finish(self._joint(X, y), OUTPUT.probability)[0]

    def log_likelihood(self, X: Any, y: Any) -> np.ndarray:
        """log p(y | x) for each example."""
        return finish(self._joint(X, y), OUTPUT.total)[0]


def _log_densities(residuals: np.ndarray, lines: Lines) -> np.ndarray:
    """log π_c N(residual; 0, σ_c²), a column per component."""
    with np.errstate(divide="ignore"):
        level = np.log(lines.share) - 0.5 * np.log(2 * np.pi * lines.variance)
    return level - 0.5 * residuals**2 / lines.variance


class _Problem:
    """The data, standardised and with a column of ones, and the two steps of EM on them."""

    def __init__(
        self, X: np.ndarray, y: np.ndarray, weights: np.ndarray | None, k: int, alpha: float, nu: float
    ) -> None:
        if (
            weights is not None
        ):  # examples without weight may be so far from the others that their densities are all zero
            present = weights > 0
            X, y, weights = X[present], y[present], weights[present]
        n = len(X)
        self.s = np.ones(n) if weights is None else weights
        self.total = float(self.s.sum())
        self.centre = self.s @ X.astype(np.float64) / self.total
        spread = np.sqrt(self.s @ (X - self.centre) ** 2 / self.total)
        self.scale = np.where(spread > 0, spread, 1.0)
        self.A = np.column_stack([(X - self.centre) / self.scale, np.ones(n)])
        self.design, self.y, self.k, self.nu = Design(self.A), y, k, float(nu)
        self.order = draw_order(Design(np.column_stack([self.A, y])))
        self.ridge = np.append(np.full(X.shape[1], float(alpha)), 0.0)
        one = self.least_squares(self.s)
        residual = self.s @ (y - self.A @ one) ** 2 / self.total
        mean = self.s @ y / self.total
        level = self.s @ (y - mean) ** 2 / self.total
        tiny = np.finfo(np.float64).tiny
        # Data exactly on one line have no residuals that set a scale, and constant targets have no variance.
        self.prior_variance = float(max(residual, 1e-12 * level, 1e-24 * np.max(y**2), tiny)) / k**2
        self.one = one

    def least_squares(self, h: np.ndarray) -> np.ndarray:
        """Weighted least squares with the ridge."""
        G = self.design.gram(h) + np.diag(self.ridge)
        require_no_overflow(G)
        try:
            return scipy.linalg.solve(G, self.design.rmatmul(h * self.y), assume_a="pos")
        except np.linalg.LinAlgError:  # the ridge is lost to rounding at weights of this size
            raise ValueError(OVERFLOWED) from None

    def start(self, random: np.random.RandomState) -> Lines:
        """Lines through randomly drawn examples."""
        k, p = self.k, self.A.shape[1]
        beta = np.tile(self.one, (k, 1))
        if k > 1:
            for c in range(k):
                at = draw(self.s, self.order, random, p)
                beta[c] = np.linalg.lstsq(self.A[at], self.y[at], rcond=1e-6)[0]
        variance = np.full(k, self.prior_variance * k**2)
        return Lines(np.full(k, 1.0 / k), beta, variance)

    def run(self, lines: Lines, tol: float, max_iter: int, report: Any) -> tuple[Lines, list[float], bool]:
        bounds: list[float] = []
        stopped = False
        while True:
            joint = _log_densities(self.y[:, None] - self.A @ lines.beta.T, lines)
            likelihood = float(self.s @ finish(joint, OUTPUT.total)[0])
            scatter = self.nu * self.prior_variance + lines.beta**2 @ self.ridge
            prior = -0.5 * np.sum(self.nu * np.log(lines.variance) + scatter / lines.variance)
            bounds.append((likelihood + float(prior)) / self.total)
            converged = len(bounds) > 1 and abs(bounds[-1] - bounds[-2]) < tol
            if converged or stopped or len(bounds) > max_iter:
                return lines, bounds, converged
            lines = self.m_step(self.s[:, None] * finish(joint, OUTPUT.probability)[0], lines)
            stopped = report is not None and report(bounds[-1])

    def m_step(self, r: np.ndarray, old: Lines) -> Lines:
        N = r.sum(axis=0)
        beta = np.array([
            self.least_squares(r[:, c]) if N[c] > NO_WEIGHT * self.total else old.beta[c] for c in range(self.k)
        ])  # fmt: skip
        squares = np.sum(r * (self.y[:, None] - self.A @ beta.T) ** 2, axis=0)
        scatter = self.nu * self.prior_variance + beta**2 @ self.ridge
        return Lines(N / N.sum(), beta, (squares + scatter) / (N + self.nu))

    def unscaled(self, beta: np.ndarray) -> np.ndarray:
        """Weights and biases for the original X."""
        w = beta[:, :-1] / self.scale
        return np.column_stack([w, beta[:, -1] - w @ self.centre])
