"""Forests of classification and of regression trees: what their means become."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from hinge._parameters import Constraints, one_of
from hinge.models.base import LogProba
from hinge.models.trees.extra_tree import ExtraTreeClassifier, ExtraTreeRegressor
from hinge.models.trees.forest_base import SUBSAMPLE, BaseForest
from hinge.models.trees.forest_quantiles import leaf_quantiles
from hinge.models.trees.limits import CLASSIFICATION, REGRESSION
from hinge.models.trees.out_of_bag import out_of_bag_score
from hinge.models.trees.targets import ClassTargets, RealTargets
from hinge.models.trees.tree import DecisionTreeClassifier, DecisionTreeRegressor


class ForestClassifier(ClassTargets, LogProba, ClassifierMixin, BaseForest):
    """A forest of classification trees: the mean of their class shares."""

    _tree_classes = (DecisionTreeClassifier, ExtraTreeClassifier)

    _parameter_constraints: ClassVar[Constraints] = {
        "criterion": [one_of(*CLASSIFICATION)],
        "class_weight": [dict, list, one_of("balanced", "balanced_subsample"), None],
    }

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
        bootstrap: bool = True,
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
            n_estimators=n_estimators, criterion=criterion, max_depth=max_depth, min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf, min_weight_fraction_leaf=min_weight_fraction_leaf,
            max_features=max_features, max_leaf_nodes=max_leaf_nodes, min_impurity_decrease=min_impurity_decrease,
            bootstrap=bootstrap, oob_score=oob_score, n_jobs=n_jobs, random_state=random_state, verbose=verbose,
            warm_start=warm_start, ccp_alpha=ccp_alpha, max_samples=max_samples, monotonic_cst=monotonic_cst,
            categorical_features=categorical_features, max_bins=max_bins, keep_leaves=keep_leaves,
        )  # fmt: skip
        self.class_weight = class_weight

    def _class_weight(self) -> Any:
        if self.class_weight == SUBSAMPLE:  # in every bag by itself; without bags that is all rows
            return None if self.bootstrap else "balanced"
        return self.class_weight

    def _check(self, y: np.ndarray) -> None:
        super()._check(y)
        if self.oob_score and type_of_target(y) == "multiclass-multioutput":
            raise ValueError(
                "The type of target cannot be used to compute OOB estimates: oob_score needs one column of labels, or a "
                f"0/1 matrix of several labels per row; y has {y.shape[1]} columns of classes."
            )

    def _check_same_targets(self, y: np.ndarray) -> None:
        super()._check_same_targets(y)
        known = self.classes_ if self.n_outputs_ > 1 else [self.classes_]
        for before, column in zip(known, y.reshape(len(y), -1).T):
            if not np.array_equal(before, now := np.unique(column)):
                raise ValueError(f"warm_start needs the classes of the first fit, {before}; y has {now}.")

    def _set_out_of_bag(self, mean: np.ndarray, y: np.ndarray, covered: np.ndarray, weight: Any) -> None:
        if self.n_outputs_ == 1:
            self.oob_decision_function_ = mean
        else:  # rows × classes × targets, as in scikit-learn
            self.oob_decision_function_ = np.zeros((len(mean), int(np.max(self.n_classes_)), self.n_outputs_))
            for k, shares in enumerate(self._shares(mean)):
                self.oob_decision_function_[:, : shares.shape[1], k] = shares
        self.oob_score_ = out_of_bag_score(
            self.oob_score, y[covered], self._labels(mean[covered]), weight, classes=True
        )

    def predict_proba(self, X: Any) -> Any:
        """The mean of the trees' class shares; a list of them if there are several targets."""
        return self._shares(self._means(X))

    def predict(self, X: Any) -> np.ndarray:
        """The class with the largest mean share."""
        return self._labels(self._means(X))


class ForestRegressor(RealTargets, RegressorMixin, BaseForest):
    """A forest of regression trees: the mean of their values."""

    _tree_classes = (DecisionTreeRegressor, ExtraTreeRegressor)

    _parameter_constraints: ClassVar[Constraints] = {"criterion": [one_of(*REGRESSION)]}

    def _set_out_of_bag(self, mean: np.ndarray, y: np.ndarray, covered: np.ndarray, weight: Any) -> None:
        self.oob_prediction_ = self._numbers(mean)
        predicted = self.oob_prediction_[covered]
        self.oob_score_ = out_of_bag_score(self.oob_score, y[covered], predicted, weight, classes=False)

    def predict(self, X: Any) -> np.ndarray:
        """The mean of the trees' values."""
        return self._numbers(self._means(X))

    def predict_quantiles(self, X: Any, levels: Any = (0.05, 0.5, 0.95)) -> np.ndarray:
        """Quantiles of y given x (Meinshausen 2006): training targets weighted by how often they share a leaf with x.

        Needs ``keep_leaves=True``. Returns an array (n × levels).
        """
        check_is_fitted(self)
        if not self.keep_leaves:
            raise ValueError("predict_quantiles needs a forest that was fitted with keep_leaves=True.")
        if self.n_outputs_ > 1:
            raise ValueError(f"predict_quantiles needs one target; y had {self.n_outputs_} columns.")
        levels = np.atleast_1d(np.asarray(levels, dtype=np.float64))
        if np.any((levels < 0) | (levels > 1)):
            raise ValueError(f"levels must lie between 0 and 1; got {levels.tolist()}.")
        return leaf_quantiles(self, self.apply(X), levels)
