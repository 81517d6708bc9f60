"""Gradient boosting in its classic form: shallow trees, one row per leaf, thresholds between adjacent values."""

from __future__ import annotations

from typing import Any, ClassVar

from hinge._parameters import Constraints, count, with_defaults
from hinge.models.trees.boosting import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from hinge.models.trees.boosting_base import ROUNDS
from hinge.models.trees.members import Members

# What differs from the histogram form.
DEFAULTS: dict[str, Any] = {
    "n_estimators": ROUNDS, "max_iter": None, "max_depth": 3, "max_leaf_nodes": None, "min_samples_leaf": 1,
    "max_features": None, "tol": 1e-4, "criterion": "friedman_mse",
}  # fmt: skip
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
    loss, learning_rate, subsample, min_samples_split, min_samples_leaf, min_weight_fraction_leaf, max_depth,
    min_impurity_decrease, init, random_state, max_features, alpha, verbose, max_leaf_nodes, warm_start,
    validation_fraction, tol, ccp_alpha
        As for :class:`HistGradientBoostingRegressor`, with the defaults of scikit-learn's class of this name.
    n_estimators : int
        The number of rounds.
    n_iter_no_change : int, optional
        Stop early, when the loss of held-out rows has not fallen by ``tol`` for this many rounds.
    criterion
        Accepted for compatibility: splits are judged by the second-order gain of the loss.
    max_iter : int, optional
        Another name of ``n_estimators``.
    quantile, l2_regularization, max_bins, categorical_features, monotonic_cst, interaction_cst, early_stopping,
    scoring, min_gain, grow, quantize
        As for :class:`HistGradientBoostingRegressor`; scikit-learn's class has none of these.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.arange(12.0)[:, None]
    >>> model = hg.GradientBoostingRegressor().fit(X, X[:, 0] > 7)
    >>> model.predict([[7.0], [8.0]]).round(3)
    array([0., 1.])
    """

    _parameter_constraints: ClassVar[Constraints] = CLASSIC

    __init__ = with_defaults(HistGradientBoostingRegressor.__init__, **DEFAULTS)


class GradientBoostingClassifier(_Classic, HistGradientBoostingClassifier):
    """Gradient boosting of regression trees in its classic form, for two or more classes (Friedman 2001).

    Minimises  Σ wᵢ ℓ(yᵢ, f(xᵢ))  over sums of trees, f = f₀ + η Σ_t tree_t, where ℓ is the logistic loss (softmax for
    more than two classes: one tree per class and round), the exponential loss, or any margin loss for two classes.

    Parameters
    ----------
    loss : str or Loss
        "log_loss", "exponential", or a margin loss such as ``hg.Hinge()`` (two classes).
    learning_rate, n_estimators, subsample, criterion, min_samples_split, min_samples_leaf, min_weight_fraction_leaf,
    max_depth, min_impurity_decrease, init, random_state, max_features, verbose, max_leaf_nodes, warm_start,
    validation_fraction, n_iter_no_change, tol, ccp_alpha, max_iter, l2_regularization, max_bins, categorical_features,
    monotonic_cst, interaction_cst, early_stopping, scoring, min_gain, grow, quantize
        As for :class:`GradientBoostingRegressor`.
    class_weight : dict, "balanced" or None
        Factors on the weights of the rows by class; "balanced" makes all classes weigh the same.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.arange(8.0)[:, None]
    >>> hg.GradientBoostingClassifier().fit(X, list("aabbaabb")).predict([[1.0], [2.0], [6.0]])
    array(['a', 'b', 'b'], dtype='<U1')
    """

    _parameter_constraints: ClassVar[Constraints] = CLASSIC

    __init__ = with_defaults(HistGradientBoostingClassifier.__init__, **DEFAULTS)
