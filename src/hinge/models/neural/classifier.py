"""A multilayer perceptron for classification, with scikit-learn's names and parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target, unique_labels
from sklearn.utils.validation import column_or_1d

from hinge._parameters import Constraints, has, shared
from hinge.models.base import Multilabel, code_labels, signs
from hinge.models.class_weights import class_factors
from hinge.models.neural.base import BaseNetwork, is_stochastic
from hinge.problem.losses import Logistic, Loss, Softmax, as_loss


def _has_probabilities(estimator: Any) -> bool:
    loss = estimator.score_loss()
    if isinstance(loss, (Softmax, Logistic)):
        return True
    raise AttributeError(
        f"predict_proba needs a likelihood; {type(loss).__name__} has none. Use loss=None (the default) for "
        "probabilities, or decision_function for scores."
    )


class MLPClassifier(Multilabel, ClassifierMixin, BaseNetwork):
    """A feed-forward network for classification, trained by backpropagation.

    Minimises  Σ sᵢ ℓ(yᵢ, f(xᵢ)) / Σ sᵢ + α/(2B s̄) Σ_l ‖W_l‖²  over the weights of
    f(x) = h(… h(xW₁ + b₁) …)W_L + b_L, where B is the batch size and s̄ the mean weight (scikit-learn's scaling of
    ``alpha``). ℓ is the logistic loss for two classes (and for each label of a multilabel problem), the softmax loss
    for more. The objective is not convex: the result depends on ``random_state``, but not on the number of threads.

    Parameters
    ----------
    hidden_layer_sizes : int or sequence of int
        The widths of the hidden layers. ``()`` is a linear model, which starts at zero.
    activation : {"identity", "logistic", "tanh", "relu", "gelu"}
        What hidden units do. GELU is x·Φ(x).
    solver : {"adam", "sgd", "lbfgs"}
        The optimiser. "lbfgs" uses all the data at every step, in float64.
    alpha : float
        The strength of the L2 penalty; biases are free.
    batch_size : int or "auto"
        Examples per step; "auto" is min(200, n).
    learning_rate : {"constant", "invscaling", "adaptive", "plateau", "step", "cosine", "one_cycle"} or callable
        How the rate changes during training. "invscaling" and "adaptive" act on "sgd" only, as in scikit-learn. A
        callable maps progress in [0, 1] to a factor.
    learning_rate_init : float
        The rate, or the largest rate of a schedule.
    power_t : float
        The exponent of "invscaling".
    max_iter : int
        Epochs at most (iterations, for "lbfgs").
    shuffle : bool
        Whether to go through the examples in a new order each epoch.
    random_state : int, RandomState or None
        Decides initial weights, order, dropout and the split for early stopping.
    tol : float
        Training ends when the loss (or validation score) has not improved by this much for ``n_iter_no_change`` epochs.
    verbose : bool
        Show progress.
    warm_start : bool
        Whether ``fit`` goes on from the weights there are.
    momentum : float
        The share of the last step that "sgd" takes again, from 0 to 1.
    nesterovs_momentum : bool
        Whether "sgd" takes the gradient after the repeated step (Nesterov) and not before it.
    early_stopping : bool
        Hold out ``validation_fraction`` of the examples, stop when their score stops rising, and keep the best weights.
    validation_fraction : float
        The share of examples held out for early stopping.
    beta_1, beta_2 : float
        How slowly the means of gradients and of their squares are forgotten by "adam".
    epsilon : float
        Added to the root of the mean square by "adam", against division by zero.
    n_iter_no_change : int
        How many epochs without an improvement by ``tol`` to wait.
    max_fun : int
        Evaluations of the objective at most, for "lbfgs".
    loss : Loss, optional
        Another loss for classes: a margin loss such as ``hg.Hinge()`` (one output per class against the rest), or
        ``hg.Softmax()``.
    class_weight : dict, "balanced" or None
        Weights of the classes.
    dropout : float
        The probability that a hidden unit is silent in a training step; the others are scaled up to keep the mean.
    weight_decay : float
        Decoupled decay, W ← W − rate·weight_decay·W (AdamW); unlike ``alpha`` it is not rescaled by Adam.
    clip_norm : float, optional
        Gradients longer than this are shortened to it.
    precision : {"auto", "float32", "float64"}
        "auto" is float32 when steps are stochastic, whose noise is far larger than rounding, and float64 when every
        step uses all the data.

    Attributes
    ----------
    classes_ : array of labels
    coefs_, intercepts_ : lists of arrays
        Weights (inputs × units) and biases of each layer.
    loss_, loss_curve_, best_loss_ : the last objective, that of every epoch, the least
    validation_scores_, best_validation_score_ : scores of every epoch with early stopping, else None
    history_ : History
        Loss, learning rate, validation loss and score of every epoch.
    n_iter_, t_ : epochs run and examples used
    n_layers_, n_outputs_, out_activation_ : the shape of the network

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> y = [0, 1, 1, 0]
    >>> net = hg.MLPClassifier(hidden_layer_sizes=8, activation="tanh", solver="lbfgs", random_state=1).fit(X, y)
    >>> net.predict(X).tolist()
    [0, 1, 1, 0]
    """

    _parameter_constraints: ClassVar[Constraints] = {**shared("class_weight"), "loss": [has("value", "gradient"), None]}

    def __init__(
        self,
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
        loss: Any = None,
        class_weight: Any = None,
        dropout: float = 0.0,
        weight_decay: float = 0.0,
        clip_norm: float | None = None,
        precision: str = "auto",
    ) -> None:
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
        self.loss = loss
        self.class_weight = class_weight
        self.dropout = dropout
        self.weight_decay = weight_decay
        self.clip_norm = clip_norm
        self.precision = precision

    def score_loss(self) -> Loss:
        """The training loss."""
        if self.loss is None:
            several = not getattr(self, "_multilabel", False) and len(getattr(self, "classes_", ())) > 2
            return Softmax() if several else Logistic()
        loss = as_loss(self.loss)
        if not loss.target.is_classes:
            raise ValueError(f"loss={self.loss!r} is for {loss.target.value}; MLPClassifier needs a loss for classes.")
        return loss

    def _encode(self, y: np.ndarray, *, reset: bool) -> tuple[np.ndarray, int]:
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        if reset:
            self._multilabel = y.ndim == 2 and type_of_target(y).startswith("multilabel")
            if self._multilabel:
                self.classes_ = unique_labels(y)
            else:
                code_labels(self, column_or_1d(y))
        if self._multilabel:
            return signs(np.asarray(y)), y.shape[1]
        codes = self._codes(y)
        k = len(self.classes_)
        if self.score_loss().outputs == "classes":
            return codes.astype(np.float64), k
        if k == 2:
            return signs(codes), 1
        return signs(codes[:, None] == np.arange(k)), k

    def _codes(self, y: np.ndarray) -> np.ndarray:
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise ValueError(
                f"y has labels {unknown.tolist()} that are not among the classes {self.classes_.tolist()} this network "
                "was made for."
            )
        return np.searchsorted(self.classes_, y)

    def _check_same_classes(self, y: np.ndarray) -> None:
        found = self.classes_ if self._multilabel else np.unique(y)
        if not np.array_equal(found, self.classes_):
            raise ValueError(
                "warm_start can only be used where `y` has the same classes as in the previous call to fit."
                f" Previously got {self.classes_}, `y` has {found}"
            )

    def _example_weights(self, y: np.ndarray, sample_weight: np.ndarray | None) -> np.ndarray | None:
        if self.class_weight is None:
            return sample_weight
        by_class = class_factors(self.class_weight, y, sample_weight)
        return by_class if sample_weight is None else by_class * sample_weight

    def _stratify(self, y: np.ndarray) -> np.ndarray | None:
        if self._multilabel:
            return None
        return y if y.ndim == 1 else y.argmax(axis=1)

    def _indices(self, raw: np.ndarray) -> np.ndarray:
        if raw.shape[1] == 1 and not self._multilabel:
            return (raw[:, 0] > 0).astype(int)
        return (raw > 0).astype(int) if self._multilabel else raw.argmax(axis=1)

    def _decode(self, raw: np.ndarray) -> np.ndarray:
        indices = self._indices(raw)
        return indices if self._multilabel else self.classes_[indices]

    def _score_of(self, y: np.ndarray, raw: np.ndarray, weight: np.ndarray) -> float:
        guess = self._indices(raw)
        if self._multilabel:
            truth = (y > 0).astype(int)
        elif y.ndim == 2:
            truth = y.argmax(axis=1)
        else:
            truth = (y > 0).astype(int) if raw.shape[1] == 1 else y.astype(int)
        return float(accuracy_score(truth, guess, sample_weight=weight))

    def _out_activation(self) -> str:
        loss = self.score_loss()
        return {Softmax: "softmax", Logistic: "logistic"}.get(type(loss), "identity")

    @available_if(is_stochastic)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> MLPClassifier:
        """One pass over these examples, starting at the current weights.

        Parameters
        ----------
        X : array, dataframe or sparse matrix of shape (n, d)
        y : array of n labels
        classes : array of all labels
            Needed in the first call, when later batches may bring labels that this one lacks.
        sample_weight : array of n weights, optional
        """
        if not hasattr(self, "coefs_"):
            if classes is None:
                raise ValueError("classes must be given in the first call of partial_fit.")
            self.classes_ = unique_labels(classes)
            self._multilabel = type_of_target(y).startswith("multilabel")
        elif classes is not None and not np.array_equal(self.classes_, unique_labels(classes)):
            raise ValueError(f"classes={classes!r} is not what the first call of partial_fit was given.")
        return self._partial_fit(X, y, sample_weight)

    def decision_function(self, X: Any) -> np.ndarray:
        """The scores f(x): one number for two classes (positive for the second), else one per class or label."""
        raw = self._scores(X)
        if raw.shape[1] == 2 and not self._multilabel:  # softmax over two classes
            return raw[:, 1] - raw[:, 0]
        return raw[:, 0] if raw.shape[1] == 1 else raw

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class (of each label, for multilabel problems)."""
        raw, loss = self._scores(X), self.score_loss()
        p = loss.inverse_link(raw)
        if isinstance(loss, Softmax) or self._multilabel:
            return p
        if p.shape[1] == 1:
            return np.hstack([1.0 - p, p])
        return p / p.sum(axis=1, keepdims=True)

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithm of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))
