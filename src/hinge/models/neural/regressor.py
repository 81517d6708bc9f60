"""A multilayer perceptron for regression, with scikit-learn's names and parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import column_or_1d

from hinge._parameters import Constraints, has, one_of
from hinge._validation import naming
from hinge.models.neural.base import BaseNetwork, is_stochastic
from hinge.problem.losses import Absolute, Huber, Loss, Poisson, Squared, as_loss

REGRESSION_LOSSES: dict[str, Callable[[], Loss]] = {
    "squared_error": Squared,
    "poisson": Poisson,
    "absolute_error": Absolute,
    "huber": Huber,
}


class MLPRegressor(RegressorMixin, BaseNetwork):
    """A feed-forward network for regression, trained by backpropagation.

    Minimises  Σ sᵢ ℓ(yᵢ, f(xᵢ)) / Σ sᵢ + α/(2B s̄) Σ_l ‖W_l‖²  over the weights of
    f(x) = h(… h(xW₁ + b₁) …)W_L + b_L, where B is the batch size and s̄ the mean weight (scikit-learn's scaling of
    ``alpha``). With several targets the losses are added up. Predictions are f(x), or its mean for a likelihood
    (e^f for Poisson).

    Parameters
    ----------
    loss : {"squared_error", "poisson", "absolute_error", "huber"} or Loss
        Any loss of one real score, such as ``hg.Quantile(0.9)``; the squared loss is (f − y)²/2.
    hidden_layer_sizes, activation, solver, alpha, batch_size, learning_rate, learning_rate_init, power_t, max_iter, \
shuffle, random_state, tol, verbose, warm_start, momentum, nesterovs_momentum, early_stopping, validation_fraction, \
beta_1, beta_2, epsilon, n_iter_no_change, max_fun, dropout, weight_decay, clip_norm, precision
        As in :class:`MLPClassifier`. Early stopping watches R².

    Attributes
    ----------
    coefs_, intercepts_ : lists of arrays
        Weights (inputs × units) and biases of each layer.
    loss_, loss_curve_, best_loss_, validation_scores_, best_validation_score_, history_, n_iter_, t_, n_layers_, \
n_outputs_, out_activation_
        As in :class:`MLPClassifier`.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.linspace(-1.0, 1.0, 50)[:, None]
    >>> y = X[:, 0] ** 2
    >>> net = hg.MLPRegressor(hidden_layer_sizes=8, activation="tanh", solver="lbfgs", random_state=0).fit(X, y)
    >>> bool(net.score(X, y) > 0.99)
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {"loss": [one_of(*REGRESSION_LOSSES), has("value", "gradient")]}

    def __init__(
        self,
        loss: Any = "squared_error",
        hidden_layer_sizes: Any = (100,),
        activation: str = "relu",
        *,
        solver: str = "adam",
        alpha: float = 0.0001,
        batch_size: int | str = "auto",
        learning_rate: str | Callable[[float], float] = "constant",
        learning_rate_init: float = 0.001,
        power_t: float = 0.5,
        max_iter: int = 200,
        shuffle: bool = True,
        random_state: Any = None,
        tol: float = 1e-4,
        verbose: bool = False,
        warm_start: bool = False,
        momentum: float = 0.9,
        nesterovs_momentum: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        n_iter_no_change: int = 10,
        max_fun: int = 15000,
        dropout: float = 0.0,
        weight_decay: float = 0.0,
        clip_norm: float | None = None,
        precision: str = "auto",
    ) -> None:
        self.loss = loss
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.solver = solver
        self.alpha = alpha
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.learning_rate_init = learning_rate_init
        self.power_t = power_t
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.tol = tol
        self.verbose = verbose
        self.warm_start = warm_start
        self.momentum = momentum
        self.nesterovs_momentum = nesterovs_momentum
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.n_iter_no_change = n_iter_no_change
        self.max_fun = max_fun
        self.dropout = dropout
        self.weight_decay = weight_decay
        self.clip_norm = clip_norm
        self.precision = precision

    def score_loss(self) -> Loss:
        """The training loss."""
        if isinstance(self.loss, str):
            return REGRESSION_LOSSES[self.loss]()
        loss = as_loss(self.loss)
        if loss.target.is_classes:
            raise ValueError(f"loss={self.loss!r} is for {loss.target.value}; use MLPClassifier.")
        return loss

    def _encode(self, y: np.ndarray, *, reset: bool) -> tuple[np.ndarray, int]:
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        with naming("y"):
            y = np.asarray(y, dtype=np.float64)
        loss = self.score_loss()
        if not loss.target.admits(y):
            raise ValueError(f"Some values of y are out of range for loss={self.loss!r}: it needs {loss.target.value}.")
        return y, 1 if y.ndim == 1 else y.shape[1]

    @available_if(is_stochastic)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> MLPRegressor:
        """One pass over these examples, starting at the current weights.

        Parameters
        ----------
        X : array, dataframe or sparse matrix of shape (n, d)
        y : array of n targets, or (n, k)
        sample_weight : array of n weights, optional
        """
        return self._partial_fit(X, y, sample_weight)

    def _decode(self, raw: np.ndarray) -> np.ndarray:
        mean = self.score_loss().inverse_link(raw)
        return mean[:, 0] if mean.shape[1] == 1 else mean

    def _score_of(self, y: np.ndarray, raw: np.ndarray, weight: np.ndarray) -> float:
        return float(r2_score(y, self._decode(raw), sample_weight=weight))

    def _out_activation(self) -> str:
        return "exp" if isinstance(self.score_loss(), Poisson) else "identity"
