"""Single extremely randomised trees; forests of them are ``ExtraTrees…``."""

from __future__ import annotations

from typing import Any

from hinge.models.trees.tree import DecisionTreeClassifier, DecisionTreeRegressor


class ExtraTreeClassifier(DecisionTreeClassifier):
    """A classification tree with random thresholds (Geurts et al. 2006).

    :class:`DecisionTreeClassifier` with ``splitter="random"`` and ``max_features="sqrt"``: each split is the best of one
    random threshold for each of √d features.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.arange(60.0)[:, None]
    >>> hg.ExtraTreeClassifier(random_state=0).fit(X, X[:, 0] > 30).predict([[5.0], [55.0]])
    array([False,  True])
    """

    def __init__(
        self,
        *,
        criterion: str = "gini",
        splitter: str = "random",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = "sqrt",
        random_state: Any = 0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        class_weight: Any = None,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
    ) -> None:
        super().__init__(
            criterion=criterion, splitter=splitter, max_depth=max_depth, min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf, min_weight_fraction_leaf=min_weight_fraction_leaf,
            max_features=max_features, random_state=random_state, max_leaf_nodes=max_leaf_nodes,
            min_impurity_decrease=min_impurity_decrease, class_weight=class_weight, ccp_alpha=ccp_alpha,
            monotonic_cst=monotonic_cst, categorical_features=categorical_features,
        )  # fmt: skip


class ExtraTreeRegressor(DecisionTreeRegressor):
    """A regression tree with random thresholds (Geurts et al. 2006).

    :class:`DecisionTreeRegressor` with ``splitter="random"`` and ``max_features=1.0``.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.arange(60.0)[:, None]
    >>> hg.ExtraTreeRegressor(random_state=0).fit(X, X[:, 0] ** 2).predict([[5.0], [55.0]])
    array([  25., 3025.])
    """

    def __init__(
        self,
        *,
        criterion: str = "squared_error",
        splitter: str = "random",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = 1.0,
        random_state: Any = 0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
    ) -> None:
        super().__init__(
            criterion=criterion, splitter=splitter, max_depth=max_depth, min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf, min_weight_fraction_leaf=min_weight_fraction_leaf,
            max_features=max_features, random_state=random_state, max_leaf_nodes=max_leaf_nodes,
            min_impurity_decrease=min_impurity_decrease, ccp_alpha=ccp_alpha, monotonic_cst=monotonic_cst,
            categorical_features=categorical_features,
        )  # fmt: skip


__all__ = ["ExtraTreeClassifier", "ExtraTreeRegressor"]
