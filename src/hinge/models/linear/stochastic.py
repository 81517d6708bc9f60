"""Linear models fitted by stochastic gradient descent, one example at a time, also on data that arrive in pieces."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from hinge._native import core
from hinge.models.base import ACCEPT_SPARSE, FLOATS, check_weights, code_labels, contiguous
from hinge.models.linear.base import LinearClassifier, LinearModel, LinearRegressor, check_strength, elastic_penalty
from hinge.models.linear.perceptron import rows_of
from hinge.problem.certificate import certificate, with_run
from hinge.problem.losses import (
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Loss,
    PerceptronLoss,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
    SquaredMargin,
)
from hinge.problem.objective import Objective, make_objective
from hinge.problem.penalties import NoPenalty, Penalty
from hinge.solve.base import Status
from hinge.solve.native import native_problem

MARGIN_LOSSES = {
    "hinge": Hinge, "log_loss": Logistic, "squared_hinge": SquaredHinge, "perceptron": PerceptronLoss,
    "squared_error": SquaredMargin,
}  # fmt: skip
REAL_LOSSES = {
    "squared_error": Squared, "huber": Huber, "epsilon_insensitive": EpsilonInsensitive,
    "squared_epsilon_insensitive": SquaredEpsilonInsensitive,
}  # fmt: skip
RATES = ("optimal", "invscaling", "constant", "adaptive")
SHORTER = 0.1  # steps that make the weights overflow are tried again at a tenth of their length
TRIES = 12


@dataclass
class Stream:
    """The weights of one score, as they change from epoch to epoch."""

    w: np.ndarray
    b: float
    mean: np.ndarray
    mean_b: float = 0.0
    steps: int = 0
    scale: float = 1.0
    epochs: int = 0

    @classmethod
    def begin(cls, w: np.ndarray, b: float) -> Stream:
        """A stream that starts from these weights."""
        start = np.array(w, dtype=np.float64)
        return cls(start, float(b), np.zeros_like(start))

    def epoch(self, objective: Objective, rate: tuple[float, float, float], options: dict[str, Any]) -> float:
        """One pass; the mean loss of the examples as they were met. Steps that are too long are shortened."""
        problem = native_problem(objective)
        eta, decay, power = rate
        saved = (self.w.copy(), self.mean.copy())
        for _ in range(TRIES):
            b, mean_b, steps, loss = core.sgd_epoch(
                problem, self.w, self.mean, self.b, self.mean_b, self.steps, eta0=eta * self.scale, decay=decay,
                power=power, epoch=self.epochs, batch=1, **options,
            )  # fmt: skip
            if np.isfinite(loss) and np.all(np.isfinite(self.w)) and np.abs(self.w).max(initial=0.0) < 1e100:
                self.b, self.mean_b, self.steps = b, mean_b, steps
                self.epochs += 1
                return loss
            self.w[:], self.mean[:] = saved
            self.scale *= SHORTER
        raise ValueError("The steps overflow at any length: scale the features to similar size.")


class StochasticModel(LinearModel):
    """What the two estimators below share; parameters are described there."""

    losses: dict[str, Any]
    _state: list[Stream]

    def _loss(self) -> Loss:
        if isinstance(self.loss, Loss):
            return self.loss
        if self.loss not in self.losses:
            raise ValueError(
                f"loss must be a hinge loss or one of {', '.join(map(repr, self.losses))}, got {self.loss!r}."
            )
        cls = self.losses[self.loss]
        if cls in (Huber, EpsilonInsensitive, SquaredEpsilonInsensitive):
            return cls(self.epsilon)
        return cls()

    def _penalty(self) -> Penalty:
        ratios = {"l2": 0.0, "l1": 1.0, "elasticnet": self.l1_ratio}
        if self.penalty is None:
            return NoPenalty()
        if self.penalty not in ratios:
            raise ValueError(f"penalty must be 'l2', 'l1', 'elasticnet' or None, got {self.penalty!r}.")
        return elastic_penalty(check_strength("alpha", self.alpha), ratios[self.penalty])

    def _rate(self, loss: Loss) -> tuple[float, float, float]:
        """η₀, decay and power of η_t = η₀/(1 + decay·t)^power."""
        if self.learning_rate not in RATES:
            raise ValueError(f"learning_rate must be one of {', '.join(map(repr, RATES))}, got {self.learning_rate!r}.")
        if self.learning_rate == "optimal":
            alpha = check_strength("alpha", self.alpha, zero=False)
            # Bottou's rule: the first step is as long as typical weights are large.
            typical = np.sqrt(1.0 / np.sqrt(alpha))
            slope = float(np.abs(loss.gradient(np.ones(1), np.array([-typical])))[0])
            first = typical / max(1.0, slope)
            return first, first * alpha, 1.0
        first = check_strength("eta0", self.eta0, zero=False)
        return (first, 1.0, float(self.power_t)) if self.learning_rate == "invscaling" else (first, 0.0, 0.0)

    def _options(self, penalty: Penalty, d: int) -> dict[str, Any]:
        coordinates = penalty.coordinates(d)
        assert coordinates is not None
        return {
            "l2": float(coordinates.l2[0]) if d else 0.0,
            "bias_rate": 1.0,
            "average": bool(self.average),
            "shuffle": bool(self.shuffle),
            "seed": self.random_state if isinstance(self.random_state, int) else 0,
        }

    def _streams(self, count: int, d: int, coef: Any, intercept: Any) -> list[Stream]:
        coef = np.zeros((count, d)) if coef is None else np.asarray(coef, dtype=np.float64).reshape(count, d)
        intercept = np.zeros(count) if intercept is None else np.asarray(intercept, dtype=np.float64).reshape(count)
        return [Stream.begin(w, b) for w, b in zip(coef, intercept)]

    def _objectives(self, X: Any, targets: list[np.ndarray], weights: np.ndarray | None) -> list[Objective]:
        rows = rows_of(X)
        first = make_objective(
            rows, targets[0], self._loss(), self._penalty(), sample_weight=weights, fit_intercept=self.fit_intercept
        )
        return [first] + [
            make_objective(
                first.design, y, first.loss, first.penalty, sample_weight=weights, fit_intercept=self.fit_intercept
            )
            for y in targets[1:]
        ]

    def _train(self, X: Any, targets: list[np.ndarray], weights: np.ndarray | None, coef: Any, intercept: Any) -> None:
        """Epochs until the loss stops falling."""
        if self.warm_start and coef is None and hasattr(self, "_state"):
            coef, intercept = [s.w for s in self._state], [s.b for s in self._state]
        self._state = self._streams(len(targets), X.shape[1], coef, intercept)
        held, train = None, np.arange(X.shape[0])
        if self.early_stopping:
            seed = self.random_state if isinstance(self.random_state, int) else 0
            train, held = train_test_split(train, test_size=self.validation_fraction, random_state=seed)
        part = X if held is None else X[train]
        some = None if weights is None else weights[train]
        objectives = self._objectives(part, [y[train] for y in targets], some)
        rate, options = (
            self._rate(objectives[0].loss),
            self._options(objectives[0].penalty, X.shape[1]),
        )
        held_sets = None if held is None else self._objectives(X[held], [y[held] for y in targets], None)
        ended = [
            self._run(s, o, rate, options, None if held_sets is None else held_sets[j])
            for j, (s, o) in enumerate(zip(self._state, objectives))
        ]
        self.n_iter_ = max(s.epochs for s in self._state)
        self._show(X.dtype)
        judged = [certificate(o, *self._shown(s)) for s, o in zip(self._state, objectives)]
        status = Status.RULE if all(ended) else Status.MAX_ITER
        self.certificate_ = with_run(
            max(judged, key=lambda c: c.error),
            solver="sgd",
            iterations=self.n_iter_,
            seconds=np.nan,
            status=status.value,
        )
        if not all(ended) and self.tol is not None:
            warnings.warn(
                f"The loss was still falling after max_iter={self.max_iter} epochs; raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _run(
        self, stream: Stream, objective: Objective, rate: tuple[float, float, float], options: dict[str, Any],
        held: Objective | None,
    ) -> bool:  # fmt: skip
        """Whether the stopping rule was met before ``max_iter``."""
        best, idle = np.inf, 0
        for _ in range(self.max_iter):
            loss = stream.epoch(objective, rate, options)
            if held is not None:
                loss = held.risk(*self._shown(stream))
            if self.tol is None:
                continue
            idle = idle + 1 if loss > best - self.tol else 0
            best = min(best, loss)
            if idle >= self.n_iter_no_change:
                if self.learning_rate != "adaptive" or stream.scale < 1e-6:
                    return True
                stream.scale, idle = stream.scale / 5.0, 0
        return self.tol is None

    def _shown(self, stream: Stream) -> tuple[np.ndarray, np.ndarray]:
        averaged = bool(self.average) and stream.steps > 0
        return (stream.mean, np.array([stream.mean_b])) if averaged else (stream.w, np.array([stream.b]))

    def _show(self, dtype: Any) -> None:
        shown = [self._shown(s) for s in self._state]
        self.coef_ = np.array([w for w, _ in shown], dtype=dtype)
        self.intercept_ = np.array([b[0] for _, b in shown], dtype=dtype)
        self.t_ = float(max(s.steps for s in self._state) + 1)

    def _learn_piece(self, X: Any, targets: list[np.ndarray], weights: np.ndarray | None) -> None:
        """One epoch over a piece of data, going on from where the last piece ended."""
        if not hasattr(self, "_state"):
            self._state = self._streams(len(targets), X.shape[1], None, None)
            self.n_iter_ = 0
        objectives = self._objectives(X, targets, weights)
        rate, options = (
            self._rate(objectives[0].loss),
            self._options(objectives[0].penalty, X.shape[1]),
        )
        for stream, objective in zip(self._state, objectives):
            stream.epoch(objective, rate, options)
        self.n_iter_ += 1
        self._show(X.dtype)


class SGDClassifier(StochasticModel, LinearClassifier):
    """Stochastic gradient descent on  Σ ℓ(yᵢ, ⟨w, xᵢ⟩ + b)/n + α(ρ‖w‖₁ + (1−ρ)/2·‖w‖²)  for classes.

    Several classes are taken one against the others. For a solution with a proof use :class:`LogisticRegression` or
    :class:`LinearSVC`; this one is for streams and for very many examples.

    Parameters
    ----------
    loss : str or Loss
        "hinge", "log_loss", "squared_hinge", "perceptron", "squared_error", or a margin loss object.
    penalty : {"l2", "l1", "elasticnet", None}
    alpha : float
        The strength α.
    l1_ratio : float
        ρ, for ``penalty="elasticnet"``.
    fit_intercept : bool
        Whether there is a bias; it is not penalised.
    max_iter : int
        The largest number of epochs.
    tol : float or None
        Stop when the loss of an epoch is not below the best by this much, ``n_iter_no_change`` times in a row.
    shuffle : bool
        Go through the examples in a new order in every epoch.
    epsilon : float
        ε or δ of the losses that have one.
    random_state : int, optional
        The seed of the orders.
    learning_rate : {"optimal", "invscaling", "constant", "adaptive"}
        η_t = 1/(α(t₀ + t)), η₀/t^power_t, η₀, or η₀ divided by 5 when the loss stops falling. Steps that make the
        weights overflow are shortened.
    eta0, power_t : float
        See ``learning_rate``.
    early_stopping, validation_fraction
        Judge the loss on a held-out share of the examples.
    n_iter_no_change : int
        See ``tol``.
    class_weight : dict or "balanced", optional
        Factors on the weights of the classes.
    warm_start : bool
        Begin at the weights of the last fit.
    average : bool
        Use the average of the weights over all steps.
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

    losses = MARGIN_LOSSES

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
        epsilon: float = 0.1,
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

    def fit(self, X: Any, y: Any, coef_init: Any = None, intercept_init: Any = None) -> SGDClassifier:
        """Learn from examples, epoch by epoch."""
        X, codes, weights = self._check(X, y, None)
        self._train(X, self._targets(codes), weights, coef_init, intercept_init)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> SGDClassifier:
        """One epoch over a piece of data; ``classes`` lists all labels and is needed in the first call only."""
        first = not hasattr(self, "_state")
        X, y = validate_data(self, X, y, accept_sparse=ACCEPT_SPARSE, dtype=FLOATS, reset=first)
        check_classification_targets(y)
        if first:
            if classes is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            code_labels(self, np.asarray(classes))
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"y has labels that are not in classes: {unknown.tolist()}.")
        codes, weights = np.searchsorted(self.classes_, y), check_weights(sample_weight, X)
        if self.class_weight == "balanced":
            raise ValueError("class_weight='balanced' needs all the data; pass a dict of weights to partial_fit.")
        if self.class_weight is not None:
            factor = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_)[codes]
            weights = factor if weights is None else factor * weights
        self._learn_piece(contiguous(X), self._targets(codes), weights)
        return self

    def _targets(self, codes: np.ndarray) -> list[np.ndarray]:
        which = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        return [np.where(codes == j, 1.0, -1.0) for j in which]

    def _gives_probabilities(self) -> bool:
        return isinstance(self._loss(), Logistic)

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities, for the logistic loss; normalised over classes if there are more than two."""
        p = Logistic().inverse_link(self.decision_function(X).astype(np.float64))
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


class SGDRegressor(StochasticModel, LinearRegressor):
    """Stochastic gradient descent on  Σ ℓ(yᵢ, ⟨w, xᵢ⟩ + b)/n + α(ρ‖w‖₁ + (1−ρ)/2·‖w‖²)  for real targets.

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
    >>> model = hg.SGDRegressor(alpha=0.0, random_state=0).fit(X, 3 * X[:, 0])
    >>> bool(abs(model.coef_[0] - 3) < 0.2)
    True
    """

    losses = REAL_LOSSES

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
        epsilon: float = 0.1,
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

    def fit(self, X: Any, y: Any, coef_init: Any = None, intercept_init: Any = None) -> SGDRegressor:
        """Learn from examples, epoch by epoch."""
        X, y = validate_data(self, X, y, accept_sparse=ACCEPT_SPARSE, dtype=FLOATS, y_numeric=True)
        self._train(contiguous(X), [np.asarray(y, dtype=np.float64)], None, coef_init, intercept_init)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> SGDRegressor:
        """One epoch over a piece of data."""
        first = not hasattr(self, "_state")
        X, y = validate_data(self, X, y, accept_sparse=ACCEPT_SPARSE, dtype=FLOATS, y_numeric=True, reset=first)
        self._learn_piece(contiguous(X), [np.asarray(y, dtype=np.float64)], check_weights(sample_weight, X))
        return self

    def _show(self, dtype: Any) -> None:
        super()._show(dtype)
        self.coef_ = self.coef_[0]

    def predict(self, X: Any) -> np.ndarray:
        """The predicted targets (the mean, for likelihoods)."""
        return self._loss().inverse_link(self._scores(X))
