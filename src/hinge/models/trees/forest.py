"""Random forests and extremely randomised trees."""

from __future__ import annotations

from typing import Any

from hinge.models.trees.forest_base import ForestClassifier, ForestRegressor


class RandomForestClassifier(ForestClassifier):
    """Bagged classification trees that consider a random subset of features at every split.

    Each tree is grown on a bootstrap sample (n draws with replacement, about 63.2 % of the rows), and each split chooses
    among ``max_features`` features; the forest predicts the mean of the trees' class proportions. Features are quantised
    once for all trees to at most 255 bins (a feature with fewer distinct values loses no information).

    Parameters
    ----------
    n_estimators : int
    criterion, max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf, max_leaf_nodes,
    min_impurity_decrease, ccp_alpha, monotonic_cst, categorical_features
        As for :class:`DecisionTreeClassifier`; every tree is pruned by itself.
    class_weight : dict, "balanced", "balanced_subsample" or None
        The last balances the classes within each bootstrap sample.
    max_features : "sqrt", "log2", int, float or None
        Features per split; None is bagging.
    bootstrap : bool
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
    n_estimators, criterion, max_depth, … :
        As for :class:`RandomForestClassifier` and :class:`DecisionTreeRegressor`.
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

    Parameters
    ----------
    n_estimators, criterion, max_depth, … :
        As for :class:`RandomForestClassifier`, with ``bootstrap=False``.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.arange(60.0)[:, None]
    >>> y = (X[:, 0] > 30).astype(int)
    >>> hg.ExtraTreesClassifier(20, random_state=0).fit(X, y).predict([[5.0], [55.0]])
    array([0, 1])
    """

    _random_thresholds = True

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = "sqrt",
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = False,
        oob_score: Any = False,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
        warm_start: bool = False,
        class_weight: Any = None,
        ccp_alpha: float = 0.0,
        max_samples: Any = None,
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        max_bins: int = 255,
        keep_leaves: bool = False,
    ) -> None:
        super().__init__(
            n_estimators, criterion=criterion, max_depth=max_depth, min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf, min_weight_fraction_leaf=min_weight_fraction_leaf,
            max_features=max_features, max_leaf_nodes=max_leaf_nodes, min_impurity_decrease=min_impurity_decrease,
            bootstrap=bootstrap, oob_score=oob_score, n_jobs=n_jobs, random_state=random_state, verbose=verbose,
            warm_start=warm_start, class_weight=class_weight, ccp_alpha=ccp_alpha, max_samples=max_samples,
            monotonic_cst=monotonic_cst, categorical_features=categorical_features, max_bins=max_bins, keep_leaves=keep_leaves,
        )  # fmt: skip


class ExtraTreesRegressor(ForestRegressor):
    """Regression trees with random thresholds (Geurts et al. 2006), grown on all rows.

    Parameters
    ----------
    n_estimators, criterion, max_depth, … :
        As for :class:`RandomForestRegressor`, with ``bootstrap=False``.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.arange(60.0)[:, None]
    >>> forest = hg.ExtraTreesRegressor(20, random_state=0).fit(X, X[:, 0] ** 2)
    >>> bool(forest.score(X, X[:, 0] ** 2) > 0.99)
    True
    """

    _random_thresholds = True

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = 1.0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = False,
        oob_score: Any = False,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
        warm_start: bool = False,
        ccp_alpha: float = 0.0,
        max_samples: Any = None,
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        max_bins: int = 255,
        keep_leaves: bool = False,
    ) -> None:
        super().__init__(
            n_estimators, criterion=criterion, max_depth=max_depth, min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf, min_weight_fraction_leaf=min_weight_fraction_leaf,
            max_features=max_features, max_leaf_nodes=max_leaf_nodes, min_impurity_decrease=min_impurity_decrease,
            bootstrap=bootstrap, oob_score=oob_score, n_jobs=n_jobs, random_state=random_state, verbose=verbose,
            warm_start=warm_start, ccp_alpha=ccp_alpha, max_samples=max_samples, monotonic_cst=monotonic_cst,
            categorical_features=categorical_features, max_bins=max_bins,
            keep_leaves=keep_leaves,
        )  # fmt: skip


__all__ = ["ExtraTreesClassifier", "ExtraTreesRegressor", "RandomForestClassifier", "RandomForestRegressor"]
