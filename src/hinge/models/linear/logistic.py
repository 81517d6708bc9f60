"""Logistic regression, binary and multinomial."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hinge._parameters import Constraints, above, between, count, one_of, shared
from hinge.models.base import signs
from hinge.models.linear.base import LinearClassifier, elastic_penalty
from hinge.models.linear.certify import Certifiable
from hinge.problem.losses import Logistic, Loss, Softmax
from hinge.problem.penalties import NoPenalty, Penalty


class LogisticClassifier(LinearClassifier):
    """Classifiers with probabilities computed from scores."""

    def score_loss(self) -> Loss:
        """The loss whose inverse link maps scores to probabilities."""
        check_is_fitted(self)
        return Logistic() if len(self.classes_) == 2 else Softmax()

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of every class, in the order of ``classes_``."""
        scores = self.decision_function(X).astype(np.float64)
        if scores.ndim == 1:
            positive = Logistic().inverse_link(scores)
            proba = np.column_stack([Logistic().inverse_link(-scores), positive])
        else:
            proba = Softmax().inverse_link(scores)
        return proba.astype(self.coef_.dtype, copy=False)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the probabilities, accurate where the probabilities themselves underflow."""
        scores = self.decision_function(X).astype(np.float64)
        if scores.ndim == 1:
            log_proba = -np.column_stack([np.logaddexp(0.0, scores), np.logaddexp(0.0, -scores)])
        else:
            top = scores.max(axis=1, keepdims=True)
            log_proba = scores - top - np.log(np.exp(scores - top).sum(axis=1, keepdims=True))
        return log_proba.astype(self.coef_.dtype, copy=False)


def logistic_penalty(C: Any, l1_ratio: float | None, total: float, old: Any = "deprecated") -> Penalty:
    """The penalty of  C Σ sᵢ ℓ + ρ‖w‖₁ + (1−ρ)/2·‖w‖²  after division by C Σ s. C = inf means no penalty.

    ``old`` is scikit-learn's former parameter ``penalty``, which overrides ``l1_ratio``.
    """
    ratios = {"l1": 1.0, "l2": 0.0, "elasticnet": l1_ratio, "deprecated": l1_ratio}
    if old == "elasticnet" and l1_ratio is None:
        raise ValueError("l1_ratio must be specified when penalty is elasticnet.")
    if old is None or old == "none":
        return NoPenalty()
    if isinstance(C, float) and np.isposinf(C):
        return NoPenalty()
    return elastic_penalty(1.0 / (C * total), ratios[old])


class LogisticRegression(Certifiable, LogisticClassifier):
    """Logistic regression: minimises C Σ sᵢ ℓ(yᵢ, f(xᵢ)) + ρ‖w‖₁ + (1−ρ)/2·‖w‖².

    ℓ = log(1 + e^{−m}) for two classes, −log softmax(f(x))_y for more. The bias is not penalised. Every penalty works
    with every solver that supports it; "auto" always finds one.

    Without a penalty (``C=inf``) separable classes have no optimal weights: longer weights are always better. This is
    detected and reported by a :class:`ConvergenceWarning` that names the direction, also in ``separation_``.

    Parameters
    ----------
    penalty : {"l1", "l2", "elasticnet", None}, optional
        The former way to choose the penalty; prefer ``l1_ratio`` and ``C``.
    C : float
        The weight of the data against the penalty; ``inf`` for no penalty.
    l1_ratio : float
        The share ρ of the L1 penalty: 0 is L2, 1 is L1.
    tol : float
        The relative duality gap to reach.
    fit_intercept : bool
        Whether there is a bias.
    class_weight : dict or "balanced", optional
        Factors on the weights of the classes.
    random_state : int, optional
        The seed of stochastic solvers.
    solver : str
        "auto" or the name of a solver, ours or scikit-learn's; ``solver_`` shows which one ran.
    max_iter : int, optional
        A limit on iterations; each solver has its own default.
    warm_start : bool
        Begin at the weights of the last fit.
    dual, intercept_scaling, verbose, n_jobs
        Accepted for compatibility.

    Attributes
    ----------
    classes_, coef_, intercept_, n_iter_ : as in scikit-learn
    solver_ : str
        The solver that ran, by its name here.
    certificate_ : Certificate
    separation_ : Separation or None
        The separating direction, if there was no penalty and one was found.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.array([[-2.0], [-1.0], [0.5], [-0.5], [1.0], [2.0]])
    >>> model = hg.LogisticRegression().fit(X, [0, 0, 0, 1, 1, 1])
    >>> model.predict_proba([[0.0]]).round(3)
    array([[0.5, 0.5]])
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("class_weight"),
        "penalty": [one_of("l1", "l2", "elasticnet", "deprecated"), None],
        "max_iter": [count(0), None],
        "C": [between(0, None, "right")],
        "l1_ratio": [between(0, 1), None],
        "dual": ["boolean"],
        "intercept_scaling": [above(0)],
    }

    def __init__(
        self,
        penalty: Any = "deprecated",
        *,
        C: float = 1.0,
        l1_ratio: float | None = 0.0,
        dual: bool = False,
        tol: float = 1e-6,
        fit_intercept: bool = True,
        intercept_scaling: float = 1,
        class_weight: Any = None,
        random_state: int | None = None,
        solver: Any = "auto",
        max_iter: int | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.penalty = penalty
        self.C = C
        self.l1_ratio = l1_ratio
        self.dual = dual
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.random_state = random_state
        self.solver = solver
        self.max_iter = max_iter
        self.verbose = verbose
        self.warm_start = warm_start
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LogisticRegression:
        """Fit; a weight of 2 means the same as having the example twice."""
        X, codes, weights = self._check(X, y, sample_weight)
        total = float(len(codes)) if weights is None else float(weights.sum())
        penalty = logistic_penalty(self.C, self.l1_ratio, total, self.penalty)
        k = len(self.classes_)
        if k == 2:
            result = self._minimise(X, signs(codes), Logistic(), penalty, weights)
        else:
            result = self._minimise(X, codes.astype(np.float64), Softmax(), penalty, weights, classes=k)
        self.n_iter_ = np.array([self.n_iter_])
        self.separation_ = result.separation
        return self
