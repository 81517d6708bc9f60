"""Linear models fitted by stochastic gradient descent, one example at a time, also on data that arrive in pieces."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.metaestimators import available_if

from hinge._native import check_indices
from hinge._parameters import Constraints, one_of, shared
from hinge._validation import validate_data
from hinge.models.base import ACCEPT_SPARSE, FLOATS, check_weights, contiguous, drop_absent
from hinge.models.linear.base import LinearClassifier, LinearRegressor, SparseWeights
from hinge.models.linear.stochastic_base import StochasticModel
from hinge.problem.losses import (
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Loss,
    ModifiedHuber,
    PerceptronLoss,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)

EPSILON = 0.1
MARGIN_LOSSES: dict[str, tuple[Any, ...]] = {
    "hinge": (Hinge,), "log_loss": (Logistic,), "squared_hinge": (SquaredHinge,), "perceptron": (PerceptronLoss,),
    "modified_huber": (ModifiedHuber,), "squared_error": (Squared,), "huber": (Huber, EPSILON),
    "epsilon_insensitive": (EpsilonInsensitive, EPSILON),
    "squared_epsilon_insensitive": (SquaredEpsilonInsensitive, EPSILON),
}  # fmt: skip
"""Losses by name, and the default of their width where they have one."""
REAL_LOSSES: dict[str, tuple[Any, ...]] = {
    "squared_error": (Squared,),
    **{name: MARGIN_LOSSES[name] for name in ("huber", "epsilon_insensitive", "squared_epsilon_insensitive")},
}


class SGDClassifier(StochasticModel, LinearClassifier):
    """Stochastic gradient descent on  Σ sᵢ ℓ(yᵢ, ⟨w, xᵢ⟩ + b)/Σ sᵢ + α(ρ‖w‖₁ + (1−ρ)/2·‖w‖²)  for classes.

    Several classes are trained one against the others. For a certified optimum use :class:`LogisticRegression` or
    :class:`LinearSVC`; this estimator is for streams and for very many examples.

    A weight sᵢ (``sample_weight``, times that of the class) scales the gradient step of its example: in ``fit`` by
    sᵢ over the mean weight, in ``partial_fit`` by sᵢ itself. Weight zero means absent. An example of weight two has the
    same effect on the objective as two copies of it, but one step of double length is not two steps: both converge to
    the same optimum, with different iterates.

    Parameters
    ----------
    loss : str or Loss
        "hinge", "log_loss", "squared_hinge", "modified_huber", "perceptron", or a margin loss object; or a loss of
        regression on −1 and +1: "squared_error", "huber", "epsilon_insensitive", "squared_epsilon_insensitive".
    penalty : {"l2", "l1", "elasticnet", None}
        ρ = 0, ρ = 1, ρ = ``l1_ratio``, or no penalty.
    alpha : float
        The strength α.
    l1_ratio : float
        ρ, for ``penalty="elasticnet"``.
    fit_intercept : bool
        Whether there is a bias; it is not penalised. Its steps are as much shorter as X is sparse: by the share of
        entries that are not zero, at most a hundred times.
    max_iter : int
        The largest number of epochs.
    tol : float or None
        Stop when the objective of an epoch, with the losses of the examples as they are met, is not below the best by
        this much, ``n_iter_no_change`` times in a row.
    shuffle : bool
        Go through the examples in a new order in every epoch.
    epsilon : float
        ε or δ of the losses that have one.
    random_state : int, optional
        The seed of the orders.
    learning_rate : {"optimal", "invscaling", "constant", "adaptive", "pa1", "pa2"}
        η_t = 1/(α(t₀ + t)), η₀/t^power_t, η₀, or η₀ divided by 5 when the loss stops falling. Steps that make the
        weights overflow are shortened. The last two are the passive-aggressive steps τx of the loss ℓ = "hinge",
        τ = min(η₀, ℓ/‖x‖²) and τ = ℓ/(‖x‖² + 1/(2η₀)).
    eta0 : float
        The first step η₀, or the bound on passive-aggressive ones; see ``learning_rate``.
    power_t : float
        The exponent of ``learning_rate="invscaling"``.
    early_stopping : bool
        Stop by what ``score`` measures on held-out examples.
    validation_fraction : float
        The share of examples held out for that, the same of each class.
    n_iter_no_change : int
        See ``tol``.
    class_weight : dict or "balanced", optional
        Factors on the weights of the classes. With more than two, each class against the others has the factor of
        that class on its own examples, and one on the others.
    warm_start : bool
        Begin at the weights of the last fit.
    average : bool or int
        Use the average of the weights over all steps, or over those from this one on.
    verbose, n_jobs
        Accepted for compatibility.

    Attributes
    ----------
    classes_, coef_, intercept_, n_iter_, t_ : as in scikit-learn
    certificate_ : Certificate
        How far the result is from the optimum (after ``fit``).

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.array([[-1.0], [-2.0], [1.0], [2.0]])
    >>> hg.SGDClassifier(random_state=0).fit(X, [0, 0, 1, 1]).predict([[-3.0], [3.0]])
    array([0, 1])
    """

    loss_functions = MARGIN_LOSSES

    _parameter_constraints: ClassVar[Constraints] = {**shared("class_weight"), "loss": [one_of(*MARGIN_LOSSES), Loss]}

    def __init__(
        self,
        loss: Any = "hinge",
        *,
        penalty: Any = "l2",
        alpha: float = 0.0001,
        l1_ratio: float = 0.15,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        shuffle: bool = True,
        verbose: int = 0,
        epsilon: float = EPSILON,
        n_jobs: int | None = None,
        random_state: int | None = None,
        learning_rate: str = "optimal",
        eta0: float = 0.01,
        power_t: float = 0.5,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        class_weight: Any = None,
        warm_start: bool = False,
        average: Any = False,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.verbose = verbose
        self.epsilon = epsilon
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.power_t = power_t
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.average = average

    def fit(
        self, X: Any, y: Any, coef_init: Any = None, intercept_init: Any = None, sample_weight: Any = None
    ) -> SGDClassifier:
        """Train for several epochs; weights scale the steps (see the class)."""
        X, targets, weights = self._check_stream(X, y, sample_weight)
        self._train(X, targets, weights, coef_init, intercept_init)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> SGDClassifier:
        """One epoch over a piece of data; ``classes`` lists all labels and is needed in the first call only."""
        self._refuse_held_out()
        first = not hasattr(self, "_state")
        X, targets, weights = self._check_stream(X, y, sample_weight, classes=classes, piece=True, first=first)
        self._learn_piece(X, targets, weights)
        return self

    def _held_score(self, held: Any, z: np.ndarray) -> float:
        return float(held.c @ ((z > 0) == (held.y > 0)))

    def _gives_probabilities(self) -> bool:
        if not isinstance(self.score_loss(), Logistic | ModifiedHuber):
            raise AttributeError(f"probability estimates are not available for loss={self.loss!r}")
        return True

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities, for the logistic loss and "modified_huber"; normalised over classes if there are more than two."""
        p = self.score_loss().inverse_link(self.decision_function(X).astype(np.float64))
        if p.ndim == 1:
            proba = np.column_stack([1.0 - p, p])
        else:
            total = p.sum(axis=1, keepdims=True)
            proba = np.where(total > 0, p / np.where(total > 0, total, 1.0), 1.0 / p.shape[1])
        return proba.astype(self.coef_.dtype)

    @available_if(_gives_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


class SGDRegressor(SparseWeights, StochasticModel, LinearRegressor):
    """Stochastic gradient descent on  Σ sᵢ ℓ(yᵢ, ⟨w, xᵢ⟩ + b)/Σ sᵢ + α(ρ‖w‖₁ + (1−ρ)/2·‖w‖²)  for real targets.

    Parameters
    ----------
    loss : str or Loss
        "squared_error", "huber", "epsilon_insensitive", "squared_epsilon_insensitive", or a loss object such as
        ``hinge.Quantile(0.9)``.
    penalty, alpha, l1_ratio, fit_intercept, max_iter, tol, shuffle, epsilon, random_state, learning_rate, eta0, \
power_t, early_stopping, validation_fraction, n_iter_no_change, warm_start, average, verbose
        As in :class:`SGDClassifier`.

    Attributes
    ----------
    coef_, intercept_, n_iter_, t_ : as in scikit-learn
    certificate_ : Certificate
        How far the result is from the optimum (after ``fit``).

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.linspace(-1, 1, 100)[:, None]
    >>> model = hg.SGDRegressor(alpha=0.0, eta0=0.1, random_state=0).fit(X, 3 * X[:, 0])
    >>> bool(abs(model.coef_[0] - 3) < 0.2)
    True
    """

    loss_functions = REAL_LOSSES

    _parameter_constraints: ClassVar[Constraints] = {"loss": [one_of(*REAL_LOSSES), Loss]}

    def __init__(
        self,
        loss: Any = "squared_error",
        *,
        penalty: Any = "l2",
        alpha: float = 0.0001,
        l1_ratio: float = 0.15,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        shuffle: bool = True,
        verbose: int = 0,
        epsilon: float = EPSILON,
        random_state: int | None = None,
        learning_rate: str = "invscaling",
        eta0: float = 0.01,
        power_t: float = 0.25,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        warm_start: bool = False,
        average: Any = False,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.verbose = verbose
        self.epsilon = epsilon
        self.random_state = random_state
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.power_t = power_t
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.average = average

    def fit(
        self, X: Any, y: Any, coef_init: Any = None, intercept_init: Any = None, sample_weight: Any = None
    ) -> SGDRegressor:
        """Train for several epochs; weights scale the steps (see :class:`SGDClassifier`)."""
        X, y, weights = drop_absent(*self._check(X, y, sample_weight))
        self._train(X, [y], [weights], coef_init, intercept_init)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> SGDRegressor:
        """One epoch over a piece of data."""
        self._refuse_held_out()
        first = not hasattr(self, "_state")
        check_indices(X)
        X, y = validate_data(self, X, y, accept_sparse=ACCEPT_SPARSE, dtype=FLOATS, y_numeric=True, reset=first)
        X, y, weights = drop_absent(contiguous(X), np.asarray(y, dtype=np.float64), check_weights(sample_weight, X))
        self._learn_piece(X, [y], [weights])
        return self

    def _held_score(self, held: Any, z: np.ndarray) -> float:
        spread = held.y - held.c @ held.y
        error = held.y - self.score_loss().inverse_link(z)
        return 1.0 - float(held.c @ error**2) / max(float(held.c @ spread**2), np.finfo(float).tiny)

    def _show(self, dtype: Any) -> None:
        super()._show(dtype)
        self.coef_ = self.coef_[0]

    def densify(self) -> SGDRegressor:
        """Undo :meth:`sparsify`."""
        super().densify()
        self.coef_ = self.coef_.ravel()
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The predicted targets (the mean, for likelihoods)."""
        return self.score_loss().inverse_link(self._scores(X).ravel())
