"""Base of the two network estimators: fitting, continued fitting, inspection."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.base import is_regressor
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hinge._native import check_indices
from hinge._parameters import INFINITY, Constraints, Estimator, above, at_least, between, count, one_of, shared
from hinge._validation import validate_data
from hinge.models.base import FLOATS, check_predict, check_weights, drop_absent, finiteness, require_no_overflow
from hinge.models.callbacks import CallbackSupportMixin, iterations, with_callbacks
from hinge.models.neural import display
from hinge.models.neural.engine import ACTIVATIONS, Engine, initial_weights, scores
from hinge.models.neural.learning_rate import NAMES
from hinge.models.neural.settings import SOLVERS, check_settings, hidden_sizes, rule
from hinge.models.neural.trace import BackpropTrace, backprop_trace
from hinge.models.neural.training import (
    Data,
    History,
    Plan,
    make_data,
    make_schedule,
    run_epoch,
    train,
    train_lbfgs,
    warn_if_far,
    warn_if_worse_than_constant,
)
from hinge.problem.losses import Loss

DEFAULT_BATCH = 200


def is_stochastic(estimator: Any) -> bool:
    """Whether the solver supports partial_fit."""
    if estimator.solver == "lbfgs":
        raise AttributeError("partial_fit needs a stochastic solver: set solver='adam' or 'sgd'.")
    return True


class BaseNetwork(CallbackSupportMixin, Estimator):
    """A feed-forward network fitted by backpropagation. Subclasses define the targets and the loss."""

    _parameter_constraints: ClassVar[Constraints] = {
        **shared(
            "max_iter",
            "shuffle",
            "random_state",
            "tol",
            "verbose",
            "warm_start",
            "early_stopping",
            "validation_fraction",
        ),
        "hidden_layer_sizes": ["array-like", count()],
        "activation": [one_of(*ACTIVATIONS)],
        "solver": [one_of(*SOLVERS)],
        "alpha": [at_least(0)],
        "batch_size": [one_of("auto"), count()],
        "learning_rate": [one_of(*NAMES), callable],
        "learning_rate_init": [above(0)],
        "power_t": [at_least(0)],
        "momentum": [between(0, 1, "left")],
        "nesterovs_momentum": ["boolean"],
        "beta_1": [between(0, 1, "left")],
        "beta_2": [between(0, 1, "left")],
        "epsilon": [above(0)],
        "n_iter_no_change": [count(), INFINITY],
        "max_fun": [count()],
        "dropout": [between(0, 1, "left")],
        "weight_decay": [at_least(0)],
        "clip_norm": [above(0), None],
        "precision": [one_of("auto", "float32", "float64")],
    }

    _constant_tags: ClassVar[dict[str, bool]] = {"input_tags.sparse": True, "target_tags.required": True}

    hidden_layer_sizes: Any
    activation: str
    solver: str
    alpha: float
    batch_size: int | str
    learning_rate: str | Callable[[float], float]
    learning_rate_init: float
    power_t: float
    max_iter: int
    shuffle: bool
    random_state: Any
    tol: float
    verbose: bool
    warm_start: bool
    momentum: float
    nesterovs_momentum: bool
    early_stopping: bool
    validation_fraction: float
    beta_1: float
    beta_2: float
    epsilon: float
    n_iter_no_change: int
    max_fun: int
    loss: Any
    dropout: float
    weight_decay: float
    clip_norm: float | None
    precision: str

    coefs_: list[np.ndarray]
    intercepts_: list[np.ndarray]

    # Defined by subclasses -------------------------------------------------------------------------------------

    def score_loss(self) -> Loss:
        """The loss that is minimised: its inverse link maps scores to means or probabilities."""
        raise NotImplementedError

    def _encode(self, y: np.ndarray, *, reset: bool) -> tuple[np.ndarray, int]:
        """Targets in the form of the loss, and the number of outputs."""
        raise NotImplementedError

    def _decode(self, raw: np.ndarray) -> np.ndarray:
        """Predictions from scores."""
        raise NotImplementedError

    def _score_of(self, y: np.ndarray, raw: np.ndarray, weight: np.ndarray) -> float:
        """Score of held-out predictions against coded targets, for early stopping."""
        raise NotImplementedError

    def _out_activation(self) -> str:
        raise NotImplementedError

    def _stratify(self, y: np.ndarray) -> np.ndarray | None:
        return None

    def _example_weights(self, y: np.ndarray, sample_weight: np.ndarray | None) -> np.ndarray | None:
        return sample_weight

    # Fitting ---------------------------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the network.

        Parameters
        ----------
        X : array, dataframe or sparse matrix of shape (n, d)
        y : array of n targets, or (n, k)
        sample_weight : array of n weights, optional
            The objective is the weighted mean of the losses. When a batch holds all the data a weight of 2 is exactly
            the example twice; with smaller batches the steps have the same mean.
        """
        check_settings(self)
        going_on = bool(self.warm_start) and hasattr(self, "coefs_")
        X, y, weight = self._check(X, y, sample_weight, reset=not going_on)
        if going_on:
            self._check_same_classes(y)
        targets, outputs = self._encode(y, reset=not going_on)
        data, mean_weight = make_data(X, targets, self._example_weights(y, weight))
        warn_if_far(data.X)
        rng = check_random_state(self.random_state)
        training, held_out = self._split(data, rng)
        batch = self._batch(training.n)
        l2 = self.alpha / (batch * mean_weight)
        stochastic = batch < training.n and self.solver != "lbfgs"
        self._start(X.shape[1], outputs, rng, l2, stochastic, keep=going_on)
        self._adopt()
        plan = self._plan(batch)
        with iterations(self, X, y, plan.max_iter) as plan.report:
            if self.solver == "lbfgs":
                self._fit_lbfgs(training, plan)
            else:
                self._fit_epochs(training, held_out, plan)
        if self.n_iter_ < plan.max_iter and training.y.ndim == 1 and is_regressor(self):
            warn_if_worse_than_constant(self.score_loss(), training, self.loss_)
        return self

    def _check_same_classes(self, y: np.ndarray) -> None:
        """Raises an error if the labels differ from those of the fit that is continued."""

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        check_settings(self)
        if self.early_stopping:
            raise ValueError("partial_fit does not support early_stopping=True.")
        first = not hasattr(self, "coefs_")
        X, y, weight = self._check(X, y, sample_weight, reset=first)
        targets, outputs = self._encode(y, reset=first and not hasattr(self, "classes_"))
        data, mean_weight = make_data(X, targets, self._example_weights(y, weight))
        batch = self._batch(data.n)
        if first:
            l2 = self.alpha / (batch * mean_weight)
            self._start(X.shape[1], outputs, check_random_state(self.random_state), l2, True, keep=False)
        history = self.history_ if hasattr(self, "history_") else History()
        plan = self._plan(batch)
        x, bound = data.native(self.score_loss(), self._engine.biases[-1].size, self._engine.dtype)
        schedule = make_schedule(self._engine, plan, data.n)
        value = run_epoch(self._engine, x, bound, data.n, plan, schedule, history)
        history.note(value, self.tol)
        self.n_iter_ = getattr(self, "n_iter_", 0) + 1
        self.t_ = getattr(self, "t_", 0) + data.n
        self._adopt()
        self._remember(history)
        return self

    def _check(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """Valid arrays without the examples of weight zero, which are equivalent to absent ones, labels included."""
        check_indices(X)
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=FLOATS, multi_output=True, order="C", reset=reset,
            y_numeric=is_regressor(self), **finiteness(X),
        )  # fmt: skip
        return drop_absent(X, y, check_weights(sample_weight, X))

    def _split(self, data: Data, rng: np.random.RandomState) -> tuple[Data, Data | None]:
        """Training and, for early stopping, held-out examples."""
        if not self.early_stopping:
            return data, None
        train_rows, test_rows = train_test_split(
            np.arange(data.n),
            test_size=float(self.validation_fraction),
            random_state=rng,
            stratify=self._stratify(data.y),
        )
        if len(test_rows) < 2 and is_regressor(self):
            raise ValueError(
                f"The validation set is too small: validation_fraction={self.validation_fraction} of {data.n} examples. "
                "Increase 'validation_fraction' or the size of your dataset."
            )
        parts = [Data(data.X[rows], data.y[rows], data.weight[rows]) for rows in (train_rows, test_rows)]
        for part in parts:
            part.weight = part.weight / part.weight.mean()
        return parts[0], parts[1]

    def _batch(self, n: int) -> int:
        if self.solver == "lbfgs":
            return n
        return min(DEFAULT_BATCH if self.batch_size == "auto" else int(self.batch_size), n)

    def _start(
        self, d: int, outputs: int, rng: np.random.RandomState, l2: float, stochastic: bool, *, keep: bool
    ) -> None:
        """A new engine; with ``keep`` it starts from the fitted weights."""
        auto = "float32" if stochastic else "float64"
        dtype = np.dtype(auto if self.precision == "auto" or self.solver == "lbfgs" else self.precision)
        sizes = [d, *hidden_sizes(self.hidden_layer_sizes), outputs]
        if keep:
            shapes, expected = [W.shape for W in self.coefs_], list(itertools.pairwise(sizes))
            if shapes != expected:
                raise ValueError(
                    f"warm_start=True but the network has layers {shapes} and the data or hidden_layer_sizes ask for "
                    f"{expected}. Set warm_start=False to start again."
                )
            weights = [np.array(W, dtype=dtype, order="C") for W in self.coefs_]
            biases = [np.array(b, dtype=dtype, order="C") for b in self.intercepts_]
        else:
            weights, biases = initial_weights(sizes, self.activation, rng, dtype)
        seed = int(rng.randint(np.iinfo(np.int32).max))
        self._engine = Engine(self.activation, weights, biases, rule(self, l2), seed)

    def _plan(self, batch: int) -> Plan:
        return Plan(
            learning_rate=self.learning_rate,
            rate=float(self.learning_rate_init),
            power_t=self.power_t,
            batch=batch,
            max_iter=int(self.max_iter),
            tol=self.tol,
            n_iter_no_change=int(min(self.n_iter_no_change, sys.maxsize)),
            shuffle=bool(self.shuffle),
            verbose=bool(self.verbose),
        )

    def _fit_epochs(self, training: Data, held_out: Data | None, plan: Plan) -> None:
        loss, history = self.score_loss(), History()
        if held_out is not None:
            plan.validate = lambda: self._validate(loss, held_out)
        self.n_iter_ = train(self._engine, training, loss, plan, history)
        self.t_ = self.n_iter_ * training.n
        self._remember(history)

    def _validate(self, loss: Loss, held_out: Data) -> tuple[float, float]:
        raw = self._raw(held_out.X)
        one = raw[:, 0] if raw.shape[1] == 1 else raw
        values = loss.value(held_out.y, one)
        per_example = values if values.ndim == 1 else values.sum(axis=1)
        return self._score_of(held_out.y, raw, held_out.weight), float(np.average(per_example, weights=held_out.weight))

    def _fit_lbfgs(self, data: Data, plan: Plan) -> None:
        self.n_iter_, value, curve = train_lbfgs(self._engine, data, self.score_loss(), plan, max_fun=int(self.max_fun))
        self.t_ = self.n_iter_ * data.n
        history = History(loss=[*curve, value] if not curve or curve[-1] != value else curve)
        history.best = min(history.loss)
        self._remember(history)

    def _adopt(self) -> None:
        self.coefs_, self.intercepts_ = self._engine.weights, self._engine.biases
        self.n_layers_ = len(self.coefs_) + 1
        self.n_outputs_ = self.intercepts_[-1].size
        self.out_activation_ = self._out_activation()

    def _remember(self, history: History) -> None:
        self.history_ = history
        self.loss_curve_, self.loss_ = history.loss, history.loss[-1]
        scored = bool(history.validation_score)
        self.validation_scores_ = history.validation_score if scored else None
        self.best_validation_score_ = max(history.validation_score) if scored else None
        self.best_loss_ = None if scored else history.best

    # Prediction and inspection ---------------------------------------------------------------------------------

    def _raw(self, X: Any) -> np.ndarray:
        return scores(self.activation, self.coefs_, self.intercepts_, X)

    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        raw = self._raw(check_predict(self, X))
        require_no_overflow(raw)
        return raw

    def predict(self, X: Any) -> np.ndarray:
        """Predictions for the rows of X."""
        return self._decode(self._scores(X))

    def backprop_trace(self, X: Any, y: Any, sample_weight: Any = None) -> BackpropTrace:
        """Activations, the backpropagated error δ of every unit and the gradient of every weight, for these examples.

        The gradients are those of the mean loss, without penalty and dropout.
        """
        check_is_fitted(self)
        X, y, weight = self._check(X, y, sample_weight, reset=False)
        data, _ = make_data(X, self._encode(y, reset=False)[0], weight)
        return backprop_trace(
            self.activation, self.coefs_, self.intercepts_, data.X, data.y, data.weight, self.score_loss()
        )

    def plot_history(self, ax: Any = None) -> Any:
        """Loss (and validation loss and score, with early stopping) against epochs. Returns the axes."""
        check_is_fitted(self)
        return display.plot_curves(self.history_, ax)

    def summary(self) -> str:
        """The layers with their activations and numbers of parameters."""
        check_is_fitted(self)
        return display.summary(self.coefs_, self.activation, self.out_activation_, self.dropout)
