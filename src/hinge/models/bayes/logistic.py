"""Bayesian logistic regression by Laplace's approximation.

Model       P(y = +1 | x, w) = σ(⟨w, x⟩ + b), w ~ N(0, τ²I), flat prior on b
Mode        min_w Σ sᵢ log(1 + exp(−yᵢ f(xᵢ))) + ‖w‖²/2τ²: logistic regression with C = τ², certified
Laplace     posterior ≈ N(mode, H⁻¹), H = X'diag(s p(1 − p))X + I/τ² (the bias is one more column, without the prior)
Predictive  ∫ σ(a) N(a; m, v) da: by σ(m/√(1 + πv/8)), or by the trapezium rule
Evidence    log p(y) ≈ −objective(mode) − ½ log |H| − d log τ (+ ½ log 2π for the flat bias), maximised over τ² on demand
Reference   MacKay (1992), "The evidence framework applied to classification networks"; Bishop (2006), §4.5
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.linalg
import scipy.optimize
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from hinge._native import Design
from hinge._parameters import Constraints, Estimator, above, one_of, shared
from hinge.models.base import check_fit, check_predict, code_labels, keep_float32, require_no_overflow, signs
from hinge.models.bayes.predictive import held_bias
from hinge.models.callbacks import CallbackSupportMixin, iterations, with_callbacks
from hinge.problem.decisions import Bernoulli
from hinge.problem.kernels import evaluate
from hinge.problem.losses import Logistic
from hinge.problem.numerics import weighted_sum
from hinge.problem.objective import Objective, make_objective
from hinge.problem.penalties import L2
from hinge.solvers.run import Result, solve

Array = NDArray[np.float64]

# The search range of the τ² that maximises the evidence.
PRIOR_RANGE = (1e-4, 1e4)
# The quadrature covers this many standard deviations on either side of the mean: 2 Φ(−8.5) < 2e-17.
REACH = 8.5


def averaged_sigmoid(mean: Array, variance: Array, how: str) -> Array:
    """∫ σ(a) N(a; mean, variance) da."""
    if how == "probit":
        return Logistic().inverse_link(mean / np.sqrt(1.0 + np.pi * variance / 8.0))
    # The trapezoidal rule with step h has an error of about exp(−2π²/(h s)): the poles of σ are at distance π/s.
    widest = float(np.sqrt(np.max(variance, initial=0.0)))
    step = float(np.clip(2.0 * np.pi**2 / (25.0 * max(widest, 1.0)), 0.02, 0.4))
    half = int(np.ceil(REACH / step))
    points = step * np.arange(-half, half + 1)
    weights = np.exp(-0.5 * points**2)
    a = mean[:, None] + np.sqrt(variance)[:, None] * points
    return Logistic().inverse_link(a) @ (weights / weights.sum())


class BayesianLogisticRegression(CallbackSupportMixin, ClassifierMixin, Estimator):
    """Logistic regression for two classes with w ~ N(0, τ²I), and probabilities averaged over the posterior.

    ``coef_`` minimises Σ sᵢ log(1 + exp(−yᵢ(⟨w, xᵢ⟩ + b))) + ‖w‖²/2τ². Far from the data, where the weights are
    uncertain, the averaged probabilities are closer to ½ than those of one weight vector.

    Parameters
    ----------
    prior_variance : float or None
        τ²; None takes the one of greatest evidence.
    predictive : {"probit", "quadrature"}
        How to average: MacKay's approximation, or quadrature.
    fit_intercept : bool
        Whether there is a bias; its prior is flat.
    tol : float
        The relative duality gap to reach.
    max_iter : int
        A limit on Newton steps.

    Attributes
    ----------
    classes_, coef_, intercept_, n_iter_ : as in scikit-learn
    covariance_ : array of (d, d), or (d + 1, d + 1) with the bias last
        Of the Laplace approximation.
    prior_variance_ : float
        τ².
    log_evidence_ : float
        Laplace's approximation of log p(y | X, τ²).
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> model = hg.BayesianLogisticRegression(prior_variance=4.0).fit(X, [0, 0, 1, 1])
    >>> plain = hg.LogisticRegression(C=4.0).fit(X, [0, 0, 1, 1])
    >>> bool(0.5 < model.predict_proba([[3.0]])[0, 1] < plain.predict_proba([[3.0]])[0, 1])
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("fit_intercept", "tol", "max_iter"),
        "prior_variance": [above(0), None],
        "predictive": [one_of("probit", "quadrature")],
    }

    def __init__(
        self,
        prior_variance: float | None = 1.0,
        *,
        predictive: str = "probit",
        fit_intercept: bool = True,
        tol: float = 1e-8,
        max_iter: int = 100,
    ) -> None:
        self.prior_variance = prior_variance
        self.predictive = predictive
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BayesianLogisticRegression:
        """Fit; a weight of 2 is equivalent to repeating the example."""
        prior_variance = self.prior_variance
        X, y, weights = check_fit(self, X, y, sample_weight)
        codes = code_labels(self, y)
        if len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: wrap the model in "
                "hg.OneVsRestClassifier."
            )
        objective = make_objective(
            X, signs(codes), Logistic(), L2(1.0), sample_weight=weights, fit_intercept=self.fit_intercept
        )
        with iterations(self, X, y) as report:
            if prior_variance is None:
                low, high = np.log(PRIOR_RANGE)
                best = scipy.optimize.minimize_scalar(
                    lambda t: -self._laplace(objective, float(np.exp(t)))[2], bounds=(low, high), method="bounded"
                )
                prior_variance = float(np.exp(best.x))
            result, self.covariance_, self.log_evidence_ = self._laplace(objective, float(prior_variance), report)
        self.prior_variance_ = float(prior_variance)
        self._mean = np.append(result.w, result.b) if self.fit_intercept else result.w
        self.coef_ = keep_float32(result.w[None, :], X)
        self.intercept_ = keep_float32(np.atleast_1d(result.b), X)
        self.n_iter_ = max(result.solution.iterations, 1)
        self.certificate_ = result.certificate
        return self

    def _laplace(self, objective: Objective, variance: float, report: Any = None) -> tuple[Result, Array, float]:
        """Mode, covariance and log evidence for a prior variance."""
        total = objective.weight_sum
        problem = objective.with_penalty(L2(1.0 / (variance * total)))
        result = solve(problem, solver="newton", tol=self.tol, max_iter=self.max_iter, callback=report)
        s = total * objective.c
        scores = problem.design.matmul(result.w) + result.b[0]
        curvature = s * Logistic().hessian(objective.y, scores)
        d = objective.d
        H = problem.design.gram(curvature)
        H[np.diag_indices(d)] += 1.0 / variance
        if self.fit_intercept:
            column = problem.design.rmatmul(curvature)
            H = np.block([[H, column[:, None]], [column[None, :], max(float(curvature.sum()), 1e-300)]])
        try:
            factor = scipy.linalg.cho_factor(H, lower=True)
        except np.linalg.LinAlgError as error:
            raise ValueError(
                "X has columns of such different sizes that rounding hides the prior; scale them, with "
                "hg.StandardScaler for example."
            ) from error
        misfit = (
            float(weighted_sum(s, Logistic().value(objective.y, scores))) + 0.5 * float(result.w @ result.w) / variance
        )
        evidence = -misfit - float(np.log(np.diag(factor[0])).sum()) - 0.5 * d * np.log(variance)
        if self.fit_intercept:
            evidence += 0.5 * np.log(2.0 * np.pi)
        return result, scipy.linalg.cho_solve(factor, np.eye(len(H))), float(evidence)

    def _columns(self, X: Any) -> Array:
        """Rows in the posterior's coordinates: dense, with a one for the bias."""
        A = evaluate.spread(X).astype(np.float64)
        return np.hstack([A, np.ones((len(A), 1))]) if self.fit_intercept else A

    def _score_moments(self, X: Any) -> tuple[Array, Array]:
        """Mean and variance of ⟨w, x⟩ + b under the posterior."""
        check_is_fitted(self)
        A = self._columns(check_predict(self, X))
        with np.errstate(over="ignore", invalid="ignore"):
            mean, variance = A @ self._mean, np.einsum("ij,ij->i", A @ self.covariance_, A)
        require_no_overflow(mean, variance)
        return mean, variance

    def decision_function(self, X: Any) -> Array:
        """The log-odds of ``classes_[1]`` at the mode."""
        check_is_fitted(self)
        scores = Design(check_predict(self, X)).matmul(self.coef_[0].astype(np.float64)) + self.intercept_[0]
        return keep_float32(scores, self.coef_)

    def predictive_distribution(self, X: Any) -> Bernoulli:
        """The distribution of y = ``classes_[1]``, with the weights integrated out."""
        return Bernoulli(averaged_sigmoid(*self._score_moments(X), self.predictive))

    def prior_predictive(self, X: Any, *, intercept: float | None = None) -> Bernoulli:
        """The distribution of the second class under the prior: E σ(⟨w, x⟩ + b) over w ~ N(0, τ²I).

        The prior of the bias is flat: with ``fit_intercept`` the bias is fixed at ``intercept``. Needs ``prior_variance``.
        """
        A = evaluate.spread(evaluate.matrix(X)).astype(np.float64)
        mean = np.full(len(A), held_bias(self, intercept))
        return Bernoulli(averaged_sigmoid(mean, self._prior() * np.square(A).sum(axis=1), self.predictive))

    def _prior(self) -> float:
        if self.prior_variance is None:
            raise ValueError("Prior predictions need prior_variance: None takes it from the data.")
        return float(self.prior_variance)

    def sample_y(
        self, X: Any, n_samples: int = 1, random_state: Any = None, *, intercept: float | None = None
    ) -> NDArray[Any]:
        """Joint draws of labels for all inputs, an array of (inputs, draws): weights first, then y given the weights.

        Before fitting, weights are drawn from the prior and the classes are 0 and 1.
        """
        rng = np.random.default_rng(random_state)
        if hasattr(self, "_mean"):
            A, mean, root = self._columns(check_predict(self, X)), self._mean, np.linalg.cholesky(self.covariance_)
            shift, classes = 0.0, self.classes_
        else:
            A = evaluate.spread(evaluate.matrix(X)).astype(np.float64)
            mean, root = np.zeros(A.shape[1]), np.sqrt(self._prior()) * np.eye(A.shape[1])
            shift, classes = held_bias(self, intercept), np.arange(2)
        weights = mean[:, None] + root @ rng.standard_normal((len(mean), n_samples))
        p = Logistic().inverse_link(A @ weights + shift)
        return classes[(rng.random(p.shape) < p).astype(np.intp)]

    def predict_proba(self, X: Any) -> Array:
        """The probabilities of the classes, averaged over the posterior."""
        p = self.predictive_distribution(X).p
        return keep_float32(np.column_stack([1.0 - p, p]), self.coef_)

    def predict(self, X: Any) -> Any:
        """The more probable class: the Bayes action of the 0-1 loss."""
        second = self.decision_function(X) > 0
        return self.classes_[second.astype(np.intp)]
