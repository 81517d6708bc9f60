"""Single extremely randomised trees; forests of them are ``ExtraTrees…``."""

from __future__ import annotations

from hinge._parameters import with_defaults
from hinge.models.trees.tree import DecisionTreeClassifier, DecisionTreeRegressor


class ExtraTreeClassifier(DecisionTreeClassifier):
    """A classification tree with random thresholds (Geurts et al. 2006).

    :class:`DecisionTreeClassifier` with ``splitter="random"`` and ``max_features="sqrt"``: each split is the best of one
    random threshold for each of √d features.

    Parameters
    ----------
    criterion, splitter, max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf, max_features,
    random_state, max_leaf_nodes, min_impurity_decrease, class_weight, ccp_alpha, monotonic_cst, categorical_features
        As for :class:`DecisionTreeClassifier`.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.arange(60.0)[:, None]
    >>> hg.ExtraTreeClassifier(random_state=0).fit(X, X[:, 0] > 30).predict([[5.0], [55.0]])
    array([False,  True])
    """

    __init__ = with_defaults(DecisionTreeClassifier.__init__, splitter="random", max_features="sqrt")


class ExtraTreeRegressor(DecisionTreeRegressor):
    """A regression tree with random thresholds (Geurts et al. 2006).

    :class:`DecisionTreeRegressor` with ``splitter="random"`` and ``max_features=1.0``.

    Parameters
    ----------
    criterion, splitter, max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf, max_features,
    random_state, max_leaf_nodes, min_impurity_decrease, ccp_alpha, monotonic_cst, categorical_features
        As for :class:`DecisionTreeRegressor`.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.arange(60.0)[:, None]
    >>> hg.ExtraTreeRegressor(random_state=0).fit(X, X[:, 0] ** 2).predict([[5.0], [55.0]])
    array([  25., 3025.])
    """

    __init__ = with_defaults(DecisionTreeRegressor.__init__, splitter="random", max_features=1.0)
