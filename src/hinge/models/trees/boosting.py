"""Gradient boosting of histogram trees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from hinge._parameters import Constraints, between, shared
from hinge._validation import numeric_targets
from hinge.models.base import LogProba, code_labels, signs, unique_codes
from hinge.models.trees.boosting_base import BaseBoosting
from hinge.models.trees.boosting_loss import BoostedLoss, named_loss
from hinge.problem.losses import Logistic, Softmax, as_loss


class HistGradientBoostingRegressor(RegressorMixin, BaseBoosting):
    """Gradient boosting of histogram trees, for any loss.

    Minimises  Σ wᵢ ℓ(yᵢ, f(xᵢ))  over sums of trees, f = f₀ + η Σ_t tree_t: each tree is a Newton step on the loss (or, for
    losses with kinks, has exact line searches in its leaves).

    Parameters
    ----------
    loss : str or Loss
        "squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", or a loss: ``hg.Huber(1.35)``,
        ``hg.Quantile(0.9)``, ``hg.Tweedie(1.5)``, … or any object with value, gradient and optionally hessian.
    quantile : float, optional
        The level of ``loss="quantile"``, between 0 and 1; ``alpha`` if None.
    alpha : float
        The same under another name, used where ``quantile`` is None.
    learning_rate : float
        The shrinkage η.
    max_iter, n_estimators : int
        The number of rounds, under either of scikit-learn's two names (giving both is an error if they differ).
        ``n_estimators`` trees are grown whatever the number of rows, and the loss after each is recorded.
    max_leaf_nodes : int, optional
        The most leaves of a tree; None for no limit.
    max_depth : int, optional
        The most splits between the root and a leaf; no limit by default.
    min_samples_leaf : int or float
        The fewest rows of a leaf; a float is a share of all rows.
    min_samples_split : int or float
        The fewest rows of a node that is split; a float is a share of all rows.
    l2_regularization : float
        λ ≥ 0 in the value −G/(H + λ) of a leaf with gradients G and curvature H.
    max_bins : int
        How many bins a feature is cut into at most, from 2 to 255; missing values have one more.
    max_features : float, int, "sqrt", "log2" or None
        The share (or number) of features each split may choose from.
    categorical_features : "from_dtype", mask, indices, names or None
        Which columns are categories; by default those of a data frame that say so, or hold text.
    monotonic_cst : list or dict, optional
        +1, 0 or −1 per feature.
    interaction_cst : list of lists of features, "pairwise" or "no_interactions", optional
        Features may occur together on a path only if one of these groups holds them all.
    early_stopping : bool or "auto"
        Stop when the loss of held-out rows has not fallen by ``tol`` for ``n_iter_no_change`` rounds (10 if None).
        "auto": with more than 10 000 rows.
    scoring : str, callable or None
        What early stopping watches: "loss" (which is to fall), or a score (which is to rise).
    validation_fraction : float, int or None
        The rows held out for early stopping: a share, or how many; None for a quarter.
    n_iter_no_change : int, optional
        How many rounds without an improvement to wait; see ``early_stopping``.
    tol : float
        The least improvement that counts.
    warm_start : bool
        Fit again with more rounds: the trees there are stay, and the rest are added.
    verbose : int
        Above 0, record the loss of the training rows after each round; with ``n_estimators`` it is printed too.
    random_state : int, RandomState or None
        Seed of the held-out rows, of subsamples and of rounding; the same seed gives the same fit, whatever the number
        of threads.
    subsample : float
        The share of rows each tree is grown on.
    min_gain : float
        The least gain of the objective that is worth a split.
    min_impurity_decrease : float
        The same, divided by the weight of all rows; for squared error that is the fall of the impurity.
    min_weight_fraction_leaf : float
        The least share of the weight of all rows in a leaf. Losses that leaves meet by Newton steps (log-likelihoods)
        know the weight only where weights are whole numbers, that is, counts of rows; else it is the share of the rows.
    init : None, "zero" or an estimator
        Start from the best constant, from zero, or from the predictions of an estimator that is fitted first;
        ``fit(init_score=...)`` starts from anything.
    ccp_alpha : float
        Every tree is cut back to the subtree that is best when each leaf costs this much (cost-complexity pruning); the
        unit is that of ``min_impurity_decrease``.
    criterion
        Accepted for compatibility: splits are judged by the second-order gain of the loss.
    grow : {"leaf", "level"}
        Best leaf first, or level by level.
    quantize : bool or "auto"
        Look for splits with gradients rounded to 10 bits (at random, unbiased): the default from 16384 rows on.

    Attributes
    ----------
    trees_ : Trees
    n_iter_, n_estimators_ : int
    estimators_ : array of DecisionTreeRegressor, (rounds × outputs)
        The same trees one by one, before shrinkage; made on first use.
    feature_importances_ : array
    train_score_ : array
        The mean loss of the training rows after each round, if ``n_estimators`` or ``verbose`` is given. With
        ``n_estimators`` it is the squared error and the binomial deviance, twice what is minimised, as in scikit-learn.
    oob_scores_, oob_improvement_ : array
        The same for the rows out of each round's sample, and how much the round lowered it, if also ``subsample`` < 1.
    validation_score_ : array
        The mean loss of the held-out rows after each round, or their score by ``scoring``.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.arange(200.0)[:, None]
    >>> model = hg.HistGradientBoostingRegressor(max_iter=200, min_samples_leaf=5).fit(X, np.sin(X[:, 0] / 20))
    >>> bool(model.score(X, np.sin(X[:, 0] / 20)) > 0.99)
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "quantile": [between(0, 1), None],
        "alpha": [between(0, 1, "neither")],
    }

    def __init__(
        self,
        loss: Any = "squared_error",
        *,
        quantile: float | None = None,
        alpha: float = 0.9,
        learning_rate: float = 0.1,
        max_iter: int = 100,
        max_leaf_nodes: int | None = 31,
        max_depth: int | None = None,
        min_samples_leaf: float = 20,
        l2_regularization: float = 0.0,
        max_features: Any = 1.0,
        max_bins: int = 255,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        warm_start: bool = False,
        early_stopping: Any = "auto",
        scoring: Any = "loss",
        validation_fraction: float = 0.1,
        n_iter_no_change: int | None = None,
        tol: float = 1e-7,
        verbose: int = 0,
        random_state: Any = 0,
        subsample: float = 1.0,
        min_gain: float = 0.0,
        grow: str = "leaf",
        quantize: Any = "auto",
        n_estimators: int | None = None,
        criterion: str | None = None,
        min_samples_split: float = 2,
        min_weight_fraction_leaf: float = 0.0,
        min_impurity_decrease: float = 0.0,
        init: Any = None,
        ccp_alpha: float = 0.0,
    ) -> None:
        super().__init__(
            loss=loss, learning_rate=learning_rate, max_iter=max_iter, max_leaf_nodes=max_leaf_nodes,
            max_depth=max_depth, min_samples_leaf=min_samples_leaf, l2_regularization=l2_regularization,
            max_features=max_features, max_bins=max_bins, categorical_features=categorical_features,
            monotonic_cst=monotonic_cst, interaction_cst=interaction_cst, warm_start=warm_start,
            early_stopping=early_stopping, scoring=scoring, validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change, tol=tol, verbose=verbose, random_state=random_state,
            subsample=subsample, min_gain=min_gain, grow=grow, quantize=quantize, n_estimators=n_estimators,
            criterion=criterion, min_samples_split=min_samples_split,
            min_weight_fraction_leaf=min_weight_fraction_leaf, min_impurity_decrease=min_impurity_decrease, init=init,
            ccp_alpha=ccp_alpha,
        )  # fmt: skip
        self.quantile = quantile
        self.alpha = alpha

    def _targets(self, y: np.ndarray) -> tuple[np.ndarray, BoostedLoss]:
        loss = BoostedLoss(named_loss(self.loss, self.alpha if self.quantile is None else self.quantile), 1)
        if loss.definition.target.is_classes:
            name = type(loss.definition).__name__
            raise ValueError(f"{name} is a loss for classes; use the classifier of that name.")
        targets = self._code_more(y, loss)
        return targets, BoostedLoss(as_loss(loss.definition, targets), 1)

    def _code_more(self, y: np.ndarray, loss: BoostedLoss | None = None) -> np.ndarray:
        y = numeric_targets(y)
        definition = (loss or self._loss).definition
        if not definition.target.admits(y):
            raise ValueError(f"{type(definition).__name__} needs y to be {definition.target.value}.")
        return np.ascontiguousarray(y)

    def _decode(self, targets: np.ndarray) -> np.ndarray:
        return targets

    def predict(self, X: Any) -> np.ndarray:
        """The prediction: the score, or the mean for likelihoods (Poisson, Gamma, Tweedie)."""
        return self.predictions_at(self._scores(X))

    def predictions_at(self, s: np.ndarray) -> np.ndarray:
        """Predictions of rows with these scores."""
        return self._loss.definition.inverse_link(s[:, 0])

    def apply(self, X: Any) -> np.ndarray:
        """The leaf of each row in each round's tree: (n × rounds)."""
        return self._leaves(X)[:, :, 0]


class HistGradientBoostingClassifier(LogProba, ClassifierMixin, BaseBoosting):
    """Gradient boosting of histogram trees for classification; if there is only one class, it is always predicted.

    Minimises  Σ wᵢ ℓ(yᵢ, f(xᵢ))  over sums of trees, f = f₀ + η Σ_t tree_t, where ℓ is the logistic loss (softmax for
    more than two classes: one tree per class and round), or any margin loss for two classes. Newton steps v of log-odds
    beyond 2 are shortened to 2 + log(|v| − 1), because a leaf of a class with small predicted probability would overshoot.

    Parameters
    ----------
    loss : str or Loss
        "log_loss", "exponential", or a margin loss such as ``hg.Hinge()`` (two classes).
    class_weight : dict, "balanced" or None
        Factors on the weights of the rows by class; "balanced" makes all classes weigh the same.
    learning_rate, max_iter, max_leaf_nodes, max_depth, min_samples_leaf, l2_regularization, max_features, max_bins,
    categorical_features, monotonic_cst, interaction_cst, warm_start, early_stopping, scoring, validation_fraction,
    n_iter_no_change, tol, verbose, random_state, subsample, min_gain, grow, quantize, n_estimators, criterion,
    min_samples_split, min_weight_fraction_leaf, min_impurity_decrease, init, ccp_alpha
        As for :class:`HistGradientBoostingRegressor`.

    Attributes
    ----------
    classes_ : array
    trees_ : Trees
    n_iter_ : int

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.arange(100.0)[:, None]
    >>> y = np.where((X[:, 0] // 25) % 2 == 0, "even", "odd")
    >>> hg.HistGradientBoostingClassifier(max_iter=30).fit(X, y).score(X, y)
    1.0
    """

    _one_class: ClassVar[bool] = True
    _parameter_constraints: ClassVar[Constraints] = shared("class_weight")

    def __init__(
        self,
        loss: Any = "log_loss",
        *,
        learning_rate: float = 0.1,
        max_iter: int = 100,
        max_leaf_nodes: int | None = 31,
        max_depth: int | None = None,
        min_samples_leaf: float = 20,
        l2_regularization: float = 0.0,
        max_features: Any = 1.0,
        max_bins: int = 255,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        warm_start: bool = False,
        early_stopping: Any = "auto",
        scoring: Any = "loss",
        validation_fraction: float = 0.1,
        n_iter_no_change: int | None = None,
        tol: float = 1e-7,
        verbose: int = 0,
        random_state: Any = 0,
        class_weight: Any = None,
        subsample: float = 1.0,
        min_gain: float = 0.0,
        grow: str = "leaf",
        quantize: Any = "auto",
        n_estimators: int | None = None,
        criterion: str | None = None,
        min_samples_split: float = 2,
        min_weight_fraction_leaf: float = 0.0,
        min_impurity_decrease: float = 0.0,
        init: Any = None,
        ccp_alpha: float = 0.0,
    ) -> None:
        super().__init__(
            loss=loss, learning_rate=learning_rate, max_iter=max_iter, max_leaf_nodes=max_leaf_nodes,
            max_depth=max_depth, min_samples_leaf=min_samples_leaf, l2_regularization=l2_regularization,
            max_features=max_features, max_bins=max_bins, categorical_features=categorical_features,
            monotonic_cst=monotonic_cst, interaction_cst=interaction_cst, warm_start=warm_start,
            early_stopping=early_stopping, scoring=scoring, validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change, tol=tol, verbose=verbose, random_state=random_state,
            subsample=subsample, min_gain=min_gain, grow=grow, quantize=quantize, n_estimators=n_estimators,
            criterion=criterion, min_samples_split=min_samples_split,
            min_weight_fraction_leaf=min_weight_fraction_leaf, min_impurity_decrease=min_impurity_decrease, init=init,
            ccp_alpha=ccp_alpha,
        )  # fmt: skip
        self.class_weight = class_weight

    def _targets(self, y: np.ndarray) -> tuple[np.ndarray, BoostedLoss]:
        if self._one_class:
            self.classes_, codes = unique_codes(y)
        else:
            codes = code_labels(self, y)
        k = self.n_classes_ = len(self.classes_)
        loss = named_loss(self.loss)
        if not loss.target.is_classes:
            raise ValueError(f"{type(loss).__name__} is a loss for numbers; use the regressor of that name.")
        if k == 1 or (k == 2 and not isinstance(loss, Softmax)):
            return signs(codes), BoostedLoss(loss, 1)
        if not isinstance(loss, (Logistic, Softmax)):
            raise ValueError(f"{type(loss).__name__} is for two classes; y has {k}. Use log_loss.")
        if self.monotonic_cst is not None:
            raise ValueError("monotonic_cst needs a single score: two classes, or regression.")
        return codes.astype(np.float64), BoostedLoss(Softmax(), k)

    def _code_more(self, y: np.ndarray) -> np.ndarray:
        codes = np.searchsorted(self.classes_, y)
        if np.any(codes >= len(self.classes_)) or np.any(self.classes_[codes] != y):
            raise ValueError("y_val has labels that y does not have.")
        return signs(codes) if self._loss.outputs == 1 else codes.astype(np.float64)

    def _decode(self, targets: np.ndarray) -> np.ndarray:
        return self.classes_[(targets > 0).astype(int) if self._loss.outputs == 1 else targets.astype(int)]

    def decision_function(self, X: Any) -> np.ndarray:
        """The scores: one per row for two classes, one per class otherwise."""
        s = self._scores(X)
        return s[:, 0] if self._loss.outputs == 1 else s

    @property
    def probabilistic(self) -> bool:
        """Whether scores have probabilities: with the logistic and the exponential loss, and losses of users."""
        return self._loss.probabilistic

    def probabilities_at(self, s: np.ndarray) -> np.ndarray:
        """Probabilities of rows with these scores."""
        if not self._loss.probabilistic:
            raise AttributeError(f"{type(self._loss.definition).__name__} gives scores, not probabilities.")
        if len(self.classes_) == 1:
            return np.ones((len(s), 1))
        p = self._loss.definition.inverse_link(s if self._loss.outputs > 1 else s[:, 0])
        return p if self._loss.outputs > 1 else np.column_stack([1.0 - p, p])

    def predictions_at(self, s: np.ndarray) -> np.ndarray:
        """Labels of rows with these scores."""
        return self.classes_[(s[:, 0] > 0).astype(int) if self._loss.outputs == 1 else np.argmax(s, axis=1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes (log_loss and exponential only)."""
        return self.probabilities_at(self._scores(X))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class."""
        return self.predictions_at(self._scores(X))

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Scores after each round."""
        for s in self.scores_by_round(X):
            yield s[:, 0] if self._loss.outputs == 1 else s

    def apply(self, X: Any) -> np.ndarray:
        """The leaf of each row in each round's trees: (n × rounds × k), with k = 1 for two classes."""
        return self._leaves(X)

    def staged_predict_proba(self, X: Any) -> Iterator[np.ndarray]:
        """Probabilities after each round (log_loss and exponential only)."""
        for s in self.scores_by_round(X):
            yield self.probabilities_at(s)
