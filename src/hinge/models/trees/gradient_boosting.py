"""Gradient boosting in its classic form: shallow trees, one row per leaf, thresholds between adjacent values."""

from __future__ import annotations

from typing import Any, ClassVar

from hinge._parameters import Constraints, count
from hinge.models.trees.boosting import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from hinge.models.trees.boosting_base import ROUNDS
from hinge.models.trees.members import Members

CLASSIC: Constraints = {"n_estimators": [count()], "max_iter": [count(), None]}


class _Classic(Members):
    """Differences from the histogram form besides the defaults: the number of rounds, stopping, unsupported options."""

    _one_class: ClassVar[bool] = False
    _takes_infinity: ClassVar[bool] = False

    @property
    def rounds(self: Any) -> int:
        """The number of rounds: n_estimators, or max_iter if given."""
        if self.max_iter is None:
            return int(self.n_estimators)
        if self.n_estimators not in (ROUNDS, self.max_iter):
            raise ValueError(
                f"n_estimators={self.n_estimators} and max_iter={self.max_iter} are two names of one thing; give one."
            )
        return int(self.max_iter)

    def _stops_by_default(self: Any, n: int) -> bool:
        return self.n_iter_no_change is not None


class GradientBoostingRegressor(_Classic, HistGradientBoostingRegressor):
    """Gradient boosting of regression trees in its classic form (Friedman 2001).

    Minimises  Σ wᵢ ℓ(yᵢ, f(xᵢ))  over sums of trees, f = f₀ + η Σ_t tree_t. Trees are shallow, and their leaves may have
    one row. A column with at most ``max_bins`` distinct values is split at the midpoints between them, other columns at
    the midpoints between that many bins. All ``n_estimators`` rounds are run unless ``n_iter_no_change`` is given.

    Parameters
    ----------
    loss, learning_rate, n_estimators, subsample, min_samples_split, min_samples_leaf, min_weight_fraction_leaf,
    max_depth, min_impurity_decrease, init, random_state, max_features, alpha, verbose, max_leaf_nodes, warm_start,
    validation_fraction, n_iter_no_change, tol, ccp_alpha
        As in scikit-learn, with its defaults; ``loss`` may be any loss of hinge.
    criterion
        Accepted for compatibility: splits are judged by the second-order gain of the loss.
    max_iter, quantile, l2_regularization, max_bins, categorical_features, monotonic_cst, interaction_cst,
    early_stopping, scoring, min_gain, grow, quantize
        Extras, as for :class:`HistGradientBoostingRegressor`; ``max_iter`` is another name of ``n_estimators``.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.arange(12.0)[:, None]
    >>> model = hg.GradientBoostingRegressor().fit(X, X[:, 0] > 7)
    >>> model.predict([[7.0], [8.0]]).round(3)
    array([0., 1.])
    """

    _parameter_constraints: ClassVar[Constraints] = CLASSIC

    def __init__(
        self,
        loss: Any = "squared_error",
        *,
        learning_rate: float = 0.1,
        n_estimators: int = ROUNDS,
        subsample: float = 1.0,
        criterion: str | None = "friedman_mse",
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_depth: int | None = 3,
        min_impurity_decrease: float = 0.0,
        init: Any = None,
        random_state: Any = 0,
        max_features: Any = None,
        alpha: float = 0.9,
        verbose: int = 0,
        max_leaf_nodes: int | None = None,
        warm_start: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int | None = None,
        tol: float = 1e-4,
        ccp_alpha: float = 0.0,
        max_iter: int | None = None,
        quantile: float | None = None,
        l2_regularization: float = 0.0,
        max_bins: int = 255,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        early_stopping: Any = "auto",
        scoring: Any = "loss",
        min_gain: float = 0.0,
        grow: str = "leaf",
        quantize: Any = "auto",
    ) -> None:
        super().__init__(
            loss, quantile=quantile, alpha=alpha, learning_rate=learning_rate, max_iter=max_iter,  # type: ignore[arg-type]
            max_leaf_nodes=max_leaf_nodes, max_depth=max_depth, min_samples_leaf=min_samples_leaf,
            l2_regularization=l2_regularization, max_features=max_features, max_bins=max_bins,
            categorical_features=categorical_features, monotonic_cst=monotonic_cst, interaction_cst=interaction_cst,
            warm_start=warm_start, early_stopping=early_stopping, scoring=scoring,
            validation_fraction=validation_fraction, n_iter_no_change=n_iter_no_change, tol=tol, verbose=verbose,
            random_state=random_state, subsample=subsample, min_gain=min_gain, grow=grow, quantize=quantize,
            n_estimators=n_estimators, criterion=criterion, min_samples_split=min_samples_split,
            min_weight_fraction_leaf=min_weight_fraction_leaf, min_impurity_decrease=min_impurity_decrease, init=init,
            ccp_alpha=ccp_alpha,
        )  # fmt: skip


class GradientBoostingClassifier(_Classic, HistGradientBoostingClassifier):
    """Gradient boosting of regression trees in its classic form, for two or more classes (Friedman 2001).

    Minimises  Σ wᵢ ℓ(yᵢ, f(xᵢ))  over sums of trees, f = f₀ + η Σ_t tree_t, where ℓ is the logistic loss (softmax for
    more than two classes: one tree per class and round), the exponential loss, or any margin loss for two classes.

    Parameters
    ----------
    loss, learning_rate, n_estimators, … :
        As for :class:`GradientBoostingRegressor`.
    class_weight : dict, "balanced" or None
        An extra.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.arange(8.0)[:, None]
    >>> hg.GradientBoostingClassifier().fit(X, list("aabbaabb")).predict([[1.0], [2.0], [6.0]])
    array(['a', 'b', 'b'], dtype='<U1')
    """

    _parameter_constraints: ClassVar[Constraints] = CLASSIC

    def __init__(
        self,
        loss: Any = "log_loss",
        *,
        learning_rate: float = 0.1,
        n_estimators: int = ROUNDS,
        subsample: float = 1.0,
        criterion: str | None = "friedman_mse",
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_depth: int | None = 3,
        min_impurity_decrease: float = 0.0,
        init: Any = None,
        random_state: Any = 0,
        max_features: Any = None,
        verbose: int = 0,
        max_leaf_nodes: int | None = None,
        warm_start: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int | None = None,
        tol: float = 1e-4,
        ccp_alpha: float = 0.0,
        max_iter: int | None = None,
        class_weight: Any = None,
        l2_regularization: float = 0.0,
        max_bins: int = 255,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        early_stopping: Any = "auto",
        scoring: Any = "loss",
        min_gain: float = 0.0,
        grow: str = "leaf",
        quantize: Any = "auto",
    ) -> None:
        super().__init__(
            loss, class_weight=class_weight, learning_rate=learning_rate, max_iter=max_iter,  # type: ignore[arg-type]
            max_leaf_nodes=max_leaf_nodes, max_depth=max_depth, min_samples_leaf=min_samples_leaf,
            l2_regularization=l2_regularization, max_features=max_features, max_bins=max_bins,
            categorical_features=categorical_features, monotonic_cst=monotonic_cst, interaction_cst=interaction_cst,
            warm_start=warm_start, early_stopping=early_stopping, scoring=scoring,
            validation_fraction=validation_fraction, n_iter_no_change=n_iter_no_change, tol=tol, verbose=verbose,
            random_state=random_state, subsample=subsample, min_gain=min_gain, grow=grow, quantize=quantize,
            n_estimators=n_estimators, criterion=criterion, min_samples_split=min_samples_split,
            min_weight_fraction_leaf=min_weight_fraction_leaf, min_impurity_decrease=min_impurity_decrease, init=init,
            ccp_alpha=ccp_alpha,
        )  # fmt: skip


__all__ = ["GradientBoostingClassifier", "GradientBoostingRegressor"]
