"""AdaBoost for regression."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from hinge._parameters import Constraints, Estimator, above, count, has, one_of, shared
from hinge._validation import numeric_targets
from hinge.models.base import drop_absent, take_input_tags
from hinge.models.trees.adaboost import DrawnRounds, Rounds, TreeRounds, checked_table, mean_importances
from hinge.models.trees.inputs import INT32, check_targets, weights_of
from hinge.models.trees.members import Members
from hinge.models.trees.tree import DecisionTreeRegressor
from hinge.problem.numerics import weighted_sum

LOSSES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "linear": lambda e: e,
    "square": np.square,
    "exponential": lambda e: 1.0 - np.exp(-e),
}


class AdaBoostRegressor(Members, RegressorMixin, Estimator):
    """AdaBoost.R2 (Drucker 1997) over any regressor that takes weights: the weighted median of its members.

    Each round fits a member to the weights wᵢ. Its errors eᵢ = |yᵢ − h(xᵢ)| / maxⱼ |yⱼ − h(xⱼ)| give the losses Lᵢ = eᵢ,
    eᵢ² or 1 − exp(−eᵢ), with the mean L̄ = Σ wᵢ Lᵢ / Σ wᵢ; with β = L̄/(1 − L̄) its weight is η ln(1/β), and wᵢ is
    multiplied by β^(η(1 − Lᵢ)), so that rows with small errors count less. It ends when L̄ is 0, or ½ or more.
    Members are fitted with the weights; Drucker (and scikit-learn) draws samples in proportion to them, which adds noise.
    Learners that take no weights are fitted to such samples.

    Parameters
    ----------
    estimator : regressor, optional
        Any regressor; a tree of depth 3 by default.
    n_estimators : int
        The most rounds.
    learning_rate : float
        The shrinkage η.
    loss : {"linear", "square", "exponential"}
        Whether Lᵢ is eᵢ, eᵢ² or 1 − exp(−eᵢ).
    random_state : int, RandomState or None
        The seed of members that need one.

    Attributes
    ----------
    estimators_ : list of fitted regressors
    estimator_weights_, estimator_errors_ : arrays
        The weight η ln(1/β) and the mean loss L̄ of each.
    feature_importances_ : array
        The mean of the members' importances, weighted by ``estimator_weights_``.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> bool(hg.AdaBoostRegressor().fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("random_state"),
        "estimator": [has("fit", "predict"), None],
        "n_estimators": [count()],
        "learning_rate": [above(0)],
        "loss": [one_of(*LOSSES)],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 50,
        learning_rate: float = 1.0,
        loss: str = "linear",
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.loss = loss
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        take_input_tags(tags, self.estimator_)
        return tags

    @property
    def estimator_(self) -> Any:
        """The base learner, which is cloned for each round."""
        return DecisionTreeRegressor(max_depth=3) if self.estimator is None else self.estimator

    @property
    def feature_importances_(self) -> np.ndarray:
        return mean_importances(self)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> AdaBoostRegressor:
        """Add members until there are ``n_estimators``, or one is perfect or too poor."""
        y = numeric_targets(check_targets(self, X, y))
        X = checked_table(self, X)
        X, y, weight = drop_absent(X, y, weights_of(sample_weight, X))
        rounds: type[Rounds] = TreeRounds if isinstance(self.estimator_, DecisionTreeRegressor) else Rounds
        if not has_fit_parameter(self.estimator_, "sample_weight"):
            rounds = DrawnRounds
        self._boost(rounds(self.estimator_, X, y), y, np.ones(len(y)) if weight is None else weight)
        return self

    def _boost(self, rounds: Rounds, y: np.ndarray, weight: np.ndarray) -> None:
        random = check_random_state(self.random_state)
        log_w = np.log(weight / weight.sum())
        self.estimators_: list[Any] = []
        estimator_weights: list[float] = []
        means: list[float] = []
        for _ in range(self.n_estimators):
            w = np.exp(log_w - log_w.max())
            w /= w.sum()
            member, predicted = rounds.fit(w, int(random.randint(INT32)))
            errors = np.abs(predicted - y)
            losses = LOSSES[self.loss](errors / errors.max()) if errors.max() > 0 else errors
            mean = float(weighted_sum(w, losses))
            if mean >= 0.5 and self.estimators_:
                break
            self.estimators_.append(member)
            means.append(mean)
            if mean <= 0 or mean >= 0.5:  # perfect, or poor but the only member
                estimator_weights.append(1.0)
                break
            log_beta = np.log(mean / (1.0 - mean))
            estimator_weights.append(float(-self.learning_rate * log_beta))
            log_w = log_w + self.learning_rate * (1.0 - losses) * log_beta
        self.estimator_weights_, self.estimator_errors_ = np.array(estimator_weights), np.array(means)

    def _medians(self, predicted: np.ndarray) -> np.ndarray:
        """The weighted median of every row of predictions: the smallest with at least half of the weight at or below it."""
        order = np.argsort(predicted, axis=1, kind="stable")
        cumulative = np.cumsum(self.estimator_weights_[: predicted.shape[1]][order], axis=1)
        at = np.argmax(cumulative >= 0.5 * cumulative[:, -1:], axis=1)
        rows = np.arange(len(predicted))
        return predicted[rows, order[rows, at]]

    def _member_predictions(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = checked_table(self, X, reset=False)
        return np.column_stack([member.predict(X) for member in self.estimators_])

    def predict(self, X: Any) -> np.ndarray:
        """The median of the members' predictions, weighted by ``estimator_weights_``."""
        return self._medians(self._member_predictions(X))

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Predictions after each round."""
        predicted = self._member_predictions(X)
        for members in range(1, predicted.shape[1] + 1):
            yield self._medians(predicted[:, :members])

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
        """R² after each round."""
        from sklearn.metrics import r2_score

        for predicted in self.staged_predict(X):
            yield float(r2_score(y, predicted, sample_weight=sample_weight))
