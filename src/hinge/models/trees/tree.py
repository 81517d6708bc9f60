"""Decision trees: CART for classification and regression."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hinge._native import core
from hinge._parameters import Constraints, Estimator, one_of, shared
from hinge.models.base import LogProba, drop_absent
from hinge.models.trees.arrays import Trees, add_gains, as_shares
from hinge.models.trees.inputs import (
    INT32,
    Binned,
    Coder,
    Prepared,
    Presorted,
    Unsorted,
    check_sums,
    check_targets,
    fit_table,
    is_frequency,
    only_zeros_and_ones,
    predict_table,
    weights_of,
)
from hinge.models.trees.limits import CLASSIFICATION, REGRESSION, TREE_LIMITS, cart_options, feature_count
from hinge.models.trees.pruning import PruningPath, choose_alpha, prune_trees, pruning_path
from hinge.models.trees.targets import ClassTargets, RealTargets, per_target
from hinge.models.trees.view import TreeView


class BaseTree(Estimator):
    """Base class of the classifier and the regressor."""

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("random_state"),
        **TREE_LIMITS,
        "criterion": [one_of(*CLASSIFICATION)],
        "splitter": [one_of("best", "random", "hist")],
        "class_weight": [dict, list, one_of("balanced"), None],
    }

    _constant_tags: ClassVar[dict[str, bool]] = {"input_tags.allow_nan": True, "input_tags.sparse": True}

    trees_: Trees
    n_outputs_: int
    _shares_of_gain: np.ndarray

    def prepare(self, X: Any) -> Prepared:
        """X checked and sorted (or binned) once, for many fits on the same rows with :meth:`fit_prepared`."""
        X, self._coder = fit_table(self, X, self.categorical_features, sparse=True)
        return self._arrange(X, None)

    def _arrange(self, X: Any, weight: np.ndarray | None) -> Prepared:
        # Bins of 0/1 features lose no threshold; stumps are fastest on sorted columns.
        exact = self.splitter == "best" and self.max_depth != 1 and only_zeros_and_ones(X)
        if self.splitter == "hist" or exact:
            return Binned(X, self._coder, weight, bundle=False)
        unsorted = self.splitter == "random" and not scipy.sparse.issparse(X)
        return Unsorted(X, self._coder) if unsorted else Presorted(X, self._coder)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Grow the tree (and prune it, if ``ccp_alpha`` > 0).

        Parameters
        ----------
        X : array or dataframe of shape (n, d)
            Missing values are allowed; categories are read from the columns' types.
        y : array of n labels or targets, or of shape (n, targets)
            Several targets share the splits, which then lower the mean of their impurities.
        sample_weight : array of n weights, optional
            A weight of 2 means the same as having the row twice.
        """
        y = check_targets(self, X, y, several=True)
        X, self._coder = fit_table(self, X, self.categorical_features, sparse=True)
        weight = weights_of(sample_weight, X, getattr(self, "class_weight", None), y)
        X, y, weight = drop_absent(X, y, weight)
        return self.fit_prepared(self._arrange(X, weight), self._code(y), weight)

    def fit_prepared(self, table: Prepared, y: np.ndarray, weight: np.ndarray | None) -> Any:
        """Grow the tree on a prepared table; y is the output of ``_code``."""
        y = np.ascontiguousarray(y, dtype=np.float64).ravel()
        check_sums(weight, y)
        options = self.options_for(table, weight)
        seed = int(check_random_state(self.random_state).randint(INT32))
        grown, _ = core.grow_trees(
            table.native, y, weight, is_frequency(weight), options, trees=1, first=0, seed=seed, draws=0, order=None,
            want_bags=False,
        )  # fmt: skip
        return self.keep(grown[0], table)

    def options_for(self, table: Prepared, weight: np.ndarray | None) -> dict[str, Any]:
        """The options of the native code."""
        n, d = table.X.shape
        total = float(n if weight is None else weight.sum())
        count = total if is_frequency(weight) else n
        return cart_options(self, d, count, total, self._shape(), random=self.splitter == "random")

    def keep(self, grown: dict[str, np.ndarray], table: Prepared) -> Any:
        """Set the fitted attributes from a tree of the native code."""
        per_target(grown, self.n_outputs_)
        self.trees_ = Trees.stack([grown], grown["value"].shape[1], additive=False)
        self.n_features_in_ = table.X.shape[1]
        self.max_features_ = feature_count(self.max_features, self.n_features_in_)
        self.missing_features_ = table.missing
        if self.ccp_alpha > 0:
            self.trees_ = prune_trees(self.trees_, self.ccp_alpha)
        return self

    def keep_member(
        self, trees: Trees, ensemble: Any, coder: Coder, *, outputs: int, shares_of_gain: np.ndarray | None = None
    ) -> Any:
        """Set the fitted attributes from a tree of an ensemble and the properties of its table."""
        self.trees_, self._coder, self.n_outputs_ = trees, coder, outputs
        self.n_features_in_ = ensemble.n_features_in_
        self.max_features_ = feature_count(ensemble.max_features, self.n_features_in_)
        self.missing_features_ = np.ones(
            self.n_features_in_, dtype=bool
        )  # so that rules show the side of missing values
        if hasattr(ensemble, "feature_names_in_"):
            self.feature_names_in_ = ensemble.feature_names_in_
        if shares_of_gain is not None:
            self._shares_of_gain = shares_of_gain
        return self

    def _table(self, X: Any) -> Any:
        check_is_fitted(self)
        return predict_table(self, X, self._coder, sparse=True)

    def _values(self, X: Any) -> np.ndarray:
        table = self._table(X)
        return self.trees_.sums(table)

    def apply(self, X: Any) -> np.ndarray:
        """The number of the leaf in which each row ends."""
        table = self._table(X)
        return self.trees_.leaves(table)[:, 0]

    def decision_path(self, X: Any) -> Any:
        """A sparse indicator matrix of (row, node): the nodes on the path of a row from the root to its leaf."""
        return self.trees_.paths(self._table(X))

    @property
    def tree_(self) -> TreeView:
        """The nodes under scikit-learn's names."""
        check_is_fitted(self)
        return TreeView(self.trees_, self.n_features_in_, getattr(self, "n_classes_", [1] * self.n_outputs_))

    def get_depth(self) -> int:
        """The depth of the tree."""
        check_is_fitted(self)
        return int(self.trees_.depths().max())

    def get_n_leaves(self) -> int:
        """The number of leaves."""
        check_is_fitted(self)
        return int(np.sum(self.trees_.feature < 0))

    @property
    def feature_importances_(self) -> np.ndarray:
        """Decrease of impurity by feature, normalised to sum one."""
        check_is_fitted(self)
        if self.trees_.gain is None:  # a tree of a forest, which stores normalised importances only
            return self._shares_of_gain
        return as_shares(add_gains(np.zeros(self.n_features_in_), [self.trees_.gains(0)]))

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: Any = None) -> PruningPath:
        """The values of α at which the full tree is pruned, and the subtrees: see :func:`pruning_path`."""
        from sklearn.base import clone

        full = clone(self).set_params(ccp_alpha=0.0).fit(X, y, sample_weight)
        return pruning_path(full.trees_)

    def prune(self, ccp_alpha: float | None = None, *, X: Any = None, y: Any = None, cv: Any = 5) -> Any:
        """The subtree with the least Σ_m N_m Q_m / N + α |leaves|; α given, or chosen by cross-validation on X, y.

        Returns a pruned copy; the tree itself is not changed.
        """
        import copy

        check_is_fitted(self)
        if ccp_alpha is None:
            if X is None or y is None:
                raise ValueError("prune needs ccp_alpha, or X and y to choose it by cross-validation.")
            ccp_alpha = choose_alpha(self, X, y, cv)
        pruned = copy.copy(self)
        pruned.trees_ = prune_trees(self.trees_, ccp_alpha)
        pruned.pruned_alpha_ = float(ccp_alpha)
        return pruned

    def rules(self, feature_names: Any = None, decimals: int = 3) -> str:
        """The tree as indented text."""
        from hinge.models.trees.show import rules

        check_is_fitted(self)
        return rules(self, feature_names, decimals)

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the tree with matplotlib; returns the axes."""
        from hinge.models.trees.show import draw

        check_is_fitted(self)
        return draw(self, ax, **options)


class DecisionTreeClassifier(ClassTargets, LogProba, ClassifierMixin, BaseTree):
    """A classification tree.

    Grows greedily the tree that minimises  Σ_m N_m Q_m + α |leaves|, where Q_m is the impurity of leaf m. Splits are
    the midpoints between neighbouring values, two-set splits of categories, and a learned side for missing values.

    Parameters
    ----------
    criterion : {"gini", "entropy", "log_loss", "misclassification"}
        The impurity Q: 1 − Σp², −Σ p log₂ p (twice), or 1 − max p.
    splitter : {"best", "random", "hist"}
        Every midpoint, one random threshold per feature, or the midpoints between at most 255 bins.
    max_depth : int, optional
        The most splits between the root and a leaf; no limit by default.
    min_samples_split : int or float
        A node with fewer rows is not split; a float is a share of all rows. With whole-number weights a row counts as
        many times as its weight says, here and below.
    min_samples_leaf : int or float
        A split that leaves fewer rows on one side is not made; a float is a share of all rows.
    min_weight_fraction_leaf : float
        The same as a share of the weight of all rows, from 0 to 0.5.
    max_features : int, float, "sqrt", "log2" or None
        How many features, drawn at random, a split may choose from: a number, a share, √d, log₂ d, or all.
    max_leaf_nodes : int, optional
        Grow the best leaf first until there are this many; no limit by default.
    min_impurity_decrease : float
        The least fall of impurity (as a share of the whole) that is worth a split.
    class_weight : dict, "balanced" or None
        Factors on the weights of the rows by class; "balanced" makes all classes weigh the same.
    ccp_alpha : float
        The α of cost-complexity pruning.
    monotonic_cst : list or dict, optional
        +1, 0 or −1 per feature: the probability of the second class rises, is free, or falls with it.
    random_state : int, RandomState or None
        The same seed gives the same fit, whatever the number of threads.
    categorical_features : "from_dtype", mask, indices, names or None
        Which columns are categories.

    Attributes
    ----------
    classes_ : array of labels
    trees_ : Trees
        The nodes as arrays.
    tree_ : TreeView
        The same under scikit-learn's names.
    feature_importances_ : array

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> tree = hg.DecisionTreeClassifier().fit(X, ["a", "a", "b", "b"])
    >>> print(tree.rules())
    x0 <= 1.5
      a  (2 rows)
    x0 > 1.5
      b  (2 rows)
    """

    def __init__(
        self,
        *,
        criterion: str = "gini",
        splitter: str = "best",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = None,
        random_state: Any = 0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        class_weight: Any = None,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
    ) -> None:
        self.criterion = criterion
        self.splitter = splitter
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.random_state = random_state
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.class_weight = class_weight
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features

    def predict_proba(self, X: Any) -> Any:
        """Shares of the classes in the leaf of each row; a list of them if there are several targets."""
        return self._shares(self._values(X))

    def predict(self, X: Any) -> np.ndarray:
        """The most frequent class in the leaf of each row."""
        return self._labels(self._values(X))


class DecisionTreeRegressor(RealTargets, RegressorMixin, BaseTree):
    """A regression tree.

    Grows greedily the tree that minimises  Σ_m N_m Q_m + α |leaves|, where Q_m is the impurity of leaf m.

    Parameters
    ----------
    criterion : {"squared_error", "absolute_error", "poisson", "friedman_mse"}
        The impurity Q and with it the value of a leaf: mean squared distance from the mean, mean absolute distance
        from the median, or mean half Poisson deviance from the mean.
    splitter, max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf, max_features, random_state,
    max_leaf_nodes, min_impurity_decrease, ccp_alpha, monotonic_cst, categorical_features
        As for :class:`DecisionTreeClassifier`.

    Attributes
    ----------
    trees_, tree_, feature_importances_
        As for :class:`DecisionTreeClassifier`.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> hg.DecisionTreeRegressor(max_depth=1).fit(X, [0.0, 2.0, 10.0, 12.0]).predict([[0.5], [9.0]])
    array([ 1., 11.])
    """

    _parameter_constraints: ClassVar[Constraints] = {"criterion": [one_of(*REGRESSION)]}

    def __init__(
        self,
        *,
        criterion: str = "squared_error",
        splitter: str = "best",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = None,
        random_state: Any = 0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
    ) -> None:
        self.criterion = criterion
        self.splitter = splitter
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.random_state = random_state
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features

    def predict(self, X: Any) -> np.ndarray:
        """The value of the leaf of each row."""
        return self._numbers(self._values(X))
