"""Random forests and extremely randomised trees."""

from __future__ import annotations

from hinge._parameters import with_defaults
from hinge.models.trees.forest_estimators import ForestClassifier, ForestRegressor


class RandomForestClassifier(ForestClassifier):
    """Bagged classification trees that consider a random subset of features at every split.

    Each tree is grown on a bootstrap sample (n draws with replacement, about 63.2 % of the rows), and each split chooses
    among ``max_features`` features; the forest predicts the mean of the trees' class proportions. Features are quantised
    once for all trees to at most 255 bins (a feature with fewer distinct values loses no information).

    Parameters
    ----------
    n_estimators : int
        How many trees.
    criterion, max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf, max_leaf_nodes,
    min_impurity_decrease, ccp_alpha, monotonic_cst, categorical_features
        As for :class:`DecisionTreeClassifier`; every tree is pruned by itself.
    class_weight : dict, "balanced", "balanced_subsample" or None
        The last balances the classes within each bootstrap sample.
    max_features : "sqrt", "log2", int, float or None
        Features per split; None is bagging.
    bootstrap : bool
        Grow every tree on a bootstrap sample; otherwise on all rows.
    max_samples : int or float, optional
        Draws per bootstrap sample.
    oob_score : bool or callable
        Compute out-of-bag predictions and their accuracy, or the value of ``oob_score(y, predicted)``: each row is judged
        by the trees that did not see it.
    random_state : int, RandomState or None
        The same seed gives the same fit, whatever the number of threads.
    warm_start : bool
        Fit again with a larger ``n_estimators``: the trees there are stay, and the rest are added. On the same data the
        forest is the one that a single fit would give.
    n_jobs, verbose
        Accepted for compatibility; threads are set by ``hinge.set_num_threads``.
    max_bins : int
        How many bins a feature is cut into at most, from 2 to 255.
    keep_leaves : bool
        Keep the leaves of the training rows.

    Attributes
    ----------
    classes_, feature_importances_, trees_
    estimators_ : list of DecisionTreeClassifier
        The trees one by one; made on first use.
    oob_score_, oob_decision_function_ : with ``oob_score=True``

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.arange(60.0)[:, None]
    >>> y = (X[:, 0] > 30).astype(int)
    >>> hg.RandomForestClassifier(20, random_state=0).fit(X, y).predict([[5.0], [55.0]])
    array([0, 1])
    """


class RandomForestRegressor(ForestRegressor):
    """Bagged regression trees that consider a random subset of features at every split.

    See :class:`RandomForestClassifier`; the forest predicts the mean of the trees' values. With ``keep_leaves=True`` it
    also predicts quantiles of y given x.

    Parameters
    ----------
    criterion, max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf, max_leaf_nodes,
    min_impurity_decrease, ccp_alpha, monotonic_cst, categorical_features
        As for :class:`DecisionTreeRegressor`.
    n_estimators, bootstrap, oob_score, n_jobs, random_state, verbose, warm_start, max_samples, max_bins, keep_leaves
        As for :class:`RandomForestClassifier`; the out-of-bag score is R².
    max_features : float
        All features by default, as in scikit-learn; one third is the textbook's choice.

    Attributes
    ----------
    feature_importances_, trees_
    oob_score_, oob_prediction_ : with ``oob_score=True``

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.arange(60.0)[:, None]
    >>> forest = hg.RandomForestRegressor(20, random_state=0).fit(X, X[:, 0] ** 2)
    >>> bool(forest.score(X, X[:, 0] ** 2) > 0.99)
    True
    """


class ExtraTreesClassifier(ForestClassifier):
    """Classification trees with random thresholds (Geurts et al. 2006), grown on all rows.

    At every split one random threshold is drawn for each of ``max_features`` features, and the best of them is used.
    Thresholds lie between the smallest and the largest value in the node; only a sparse table is quantised to ``max_bins``.
    Of a categorical feature a random subset of the categories in the node goes left.

    Parameters
    ----------
    n_estimators, criterion, max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf, max_features,
    max_leaf_nodes, min_impurity_decrease, bootstrap, oob_score, n_jobs, random_state, verbose, warm_start,
    class_weight, ccp_alpha, max_samples, monotonic_cst, categorical_features, max_bins, keep_leaves
        As for :class:`RandomForestClassifier`, but for ``bootstrap=False``.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.arange(60.0)[:, None]
    >>> y = (X[:, 0] > 30).astype(int)
    >>> hg.ExtraTreesClassifier(20, random_state=0).fit(X, y).predict([[5.0], [55.0]])
    array([0, 1])
    """

    _random_thresholds = True

    __init__ = with_defaults(ForestClassifier.__init__, bootstrap=False)


class ExtraTreesRegressor(ForestRegressor):
    """Regression trees with random thresholds (Geurts et al. 2006), grown on all rows.

    Parameters
    ----------
    n_estimators, criterion, max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf, max_features,
    max_leaf_nodes, min_impurity_decrease, bootstrap, oob_score, n_jobs, random_state, verbose, warm_start, ccp_alpha,
    max_samples, monotonic_cst, categorical_features, max_bins, keep_leaves
        As for :class:`RandomForestRegressor`, but for ``bootstrap=False``.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.arange(60.0)[:, None]
    >>> forest = hg.ExtraTreesRegressor(20, random_state=0).fit(X, X[:, 0] ** 2)
    >>> bool(forest.score(X, X[:, 0] ** 2) > 0.99)
    True
    """

    _random_thresholds = True

    __init__ = with_defaults(ForestRegressor.__init__, bootstrap=False)
