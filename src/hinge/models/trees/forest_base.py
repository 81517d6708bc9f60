"""Base class of forests: trees on samples, means over them, out-of-bag predictions, quantiles."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hinge._native import core
from hinge._parameters import Constraints, Estimator, above, count, shared
from hinge.models.base import drop_absent
from hinge.models.trees.arrays import DETAILS, Trees, add_gains, as_shares
from hinge.models.trees.inputs import (
    INT32,
    Binned,
    Coder,
    Prepared,
    Unsorted,
    check_sums,
    check_targets,
    fit_table,
    grow_table,
    is_frequency,
    order_of_rows,
    predict_table,
    weights_of,
)
from hinge.models.trees.limits import TREE_LIMITS, cart_options
from hinge.models.trees.members import Members, forest_trees
from hinge.models.trees.out_of_bag import forget_out_of_bag, warn_of_few
from hinge.models.trees.pruning import prune_trees
from hinge.models.trees.targets import ClassTargets, per_target

SUBSAMPLE = "balanced_subsample"
MOST_DRAWS = 2**31 - 1


def sample_size(max_samples: Any, total: int, *, replace: bool = True) -> int:
    """The number of rows of a sample; with ``replace`` it may exceed the number of rows of the table."""
    if max_samples is None:
        return total
    is_count = isinstance(max_samples, (int, np.integer))
    if max_samples > MOST_DRAWS or (not is_count and max_samples * total > MOST_DRAWS):
        raise ValueError(f"max_samples={max_samples} stands for more than {MOST_DRAWS} rows drawn for every tree.")
    size = int(max_samples) if is_count else max(1, round(max_samples * total))
    if size > total and not replace:
        raise ValueError(
            f"max_samples must be at most {total}, the number of rows, without bootstrap=True; got {max_samples}."
        )
    return size


class BaseForest(Members, Estimator):
    """Base class of forests; the defaults are those of regression."""

    _random_thresholds = False
    criterion: str
    trees_: Trees
    n_outputs_: int
    _coder: Coder
    _gains: Any  # (trees × features): each tree's importances

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("bootstrap", "n_jobs", "random_state", "verbose", "warm_start"),
        **TREE_LIMITS,
        "n_estimators": [count()],
        "oob_score": ["boolean", callable],
        "max_samples": [count(), above(0), None],
        "max_bins": [count(2, 255)],
        "keep_leaves": ["boolean"],
    }

    _constant_tags: ClassVar[dict[str, bool]] = {"input_tags.allow_nan": True, "input_tags.sparse": True}

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
        bootstrap: bool = True,
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
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.ccp_alpha = ccp_alpha
        self.max_samples = max_samples
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.max_bins = max_bins
        self.keep_leaves = keep_leaves

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Grow the trees.

        Parameters
        ----------
        X, y
            As for the trees: see :meth:`DecisionTreeClassifier.fit`.
        sample_weight : array of n weights, optional
            Whole numbers are counts: a row of weight 2 is drawn as often as two rows would be.
        """
        if scipy.sparse.issparse(y):
            raise ValueError("sparse multilabel-indicator for y is not supported. Use y.toarray().")
        y = check_targets(self, X, y, several=True)
        self._check(y)
        if not self.oob_score:
            forget_out_of_bag(self)
        before = self.trees_ if self.warm_start and hasattr(self, "trees_") else None
        if before is not None:
            if self.n_estimators < len(before):
                raise ValueError(
                    f"n_estimators={self.n_estimators} must be at least the {len(before)} trees already grown, or "
                    "warm_start=False."
                )
            if self.n_estimators == len(before):
                warnings.warn("warm_start without a larger n_estimators adds no trees.", UserWarning, stacklevel=2)
                if not self.oob_score or hasattr(self, "oob_score_"):
                    return self
            X = grow_table(self, X, self._coder, sparse=True)
        else:
            X, self._coder = fit_table(self, X, self.categorical_features, sparse=True)
        weight = weights_of(sample_weight, X, self._class_weight(), y)
        X, y, weight = drop_absent(X, y, weight)
        if before is not None:
            self._check_same_targets(y)
        codes = np.ascontiguousarray(self._code(y), dtype=np.float64)
        check_sums(weight, codes)
        bags = self._grow(X, codes, weight, before)
        if self.oob_score:
            self._out_of_bag(X, y, weight, bags)
        if self.keep_leaves:
            self.leaves_, self.targets_ = self.trees_.leaves(X), codes
            self.target_weights_ = np.ones(X.shape[0]) if weight is None else weight
        return self

    def _class_weight(self) -> Any:
        return None

    def _check_same_targets(self, y: np.ndarray) -> None:
        if y.shape[1:] != ((self.n_outputs_,) if self.n_outputs_ > 1 else ()):
            raise ValueError(f"warm_start needs as many targets as the first fit, {self.n_outputs_}; y is {y.shape}.")

    def _check(self, y: np.ndarray) -> None:
        if self.oob_score and not self.bootstrap:
            raise ValueError("oob_score needs bootstrap=True: without it no row is out of the bag.")
        if self.max_samples is not None and not self.bootstrap:
            raise ValueError(
                "`max_samples` cannot be set if `bootstrap=False`. Either switch to `bootstrap=True` or set "
                "`max_samples=None`."
            )

    def _grow(
        self, X: Any, y: np.ndarray, weight: np.ndarray | None, before: Trees | None, table: Prepared | None = None,
        order: np.ndarray | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Grow the trees; ``table`` and ``order`` are computed from X by default. If they are given, only the shape of X is used."""
        n, d = X.shape
        frequency = is_frequency(weight)
        total = float(n if weight is None else weight.sum())
        rows = int(total) if frequency else n
        options = cart_options(self, d, rows, total, self._shape(), random=self._random_thresholds)
        if self.bootstrap and isinstance(self, ClassTargets) and getattr(self, "class_weight", None) == SUBSAMPLE:
            options["balanced"] = np.atleast_1d(self.n_classes_).tolist()
        if before is None:
            self._draw_seed()
        first = 0 if before is None else len(before)
        draws = 0
        if self.bootstrap:
            draws, order = sample_size(self.max_samples, rows), order_of_rows(X, y) if order is None else order
        if table is None and self._random_thresholds and not scipy.sparse.issparse(X):
            table = Unsorted(X, self._coder, by_column=True)
        elif table is None:
            table = Binned(X, self._coder, weight, self.max_bins, self._seed, bundle=False)
        bags = np.zeros((0, n), dtype=np.uint8)
        if self.n_estimators > first:
            grown, bags = core.grow_trees(
                table.native, y.ravel(), weight, frequency, options, trees=self.n_estimators - first, first=first,
                seed=self._seed, draws=draws, order=order, want_bags=bool(self.oob_score),
            )  # fmt: skip
            self.trees_ = self._keep(grown, before)
        if not (self.oob_score and first):
            return bags
        # Bags are not stored but redrawn, with the same result for the same rows.
        drawn = (core.bootstrap(order, weight if frequency else None, draws, self._seed, t + 1) for t in range(first))
        return np.concatenate([np.array([b > 0 for b in drawn], dtype=np.uint8), bags])

    def _draw_seed(self) -> None:
        self._seed, self._gains = int(check_random_state(self.random_state).randint(INT32)), None

    def _keep(self, grown: list[dict[str, np.ndarray]], before: Trees | None) -> Trees:
        """Append the pruned trees to those of an earlier fit; of their gains only the importances are stored."""
        outputs = grown[0]["value"].shape[1]
        if self.ccp_alpha > 0:
            grown = [per_target(t, self.n_outputs_) for t in grown]
            trees = prune_trees(Trees.stack(grown, outputs, additive=False), self.ccp_alpha)
            self._keep_gains(map(trees.gains, range(len(trees))))
            trees = trees.without_details()
        else:
            self._keep_gains((t["feature"], t["gain"]) for t in grown)
            for tree in grown:  # free the gains, which are as large as the nodes
                for name in DETAILS:
                    tree.pop(name, None)
            trees = Trees.stack(grown, outputs, additive=False, details=False)
        return trees if before is None else before.followed_by(trees)

    def _keep_gains(self, trees: Iterable[tuple[np.ndarray, np.ndarray]]) -> None:
        d = self.n_features_in_
        rows = [scipy.sparse.csr_array(add_gains(np.zeros(d), [tree])[None, :]) for tree in trees]
        self._gains = scipy.sparse.vstack([*([] if self._gains is None else [self._gains]), *rows], format="csr")

    @property
    def feature_importances_(self) -> np.ndarray:
        """Decrease of impurity by feature: the mean over trees, each normalised to sum one."""
        check_is_fitted(self)
        return as_shares(self._gains.sum(axis=0))

    @property
    def estimator_(self) -> Any:
        """An unfitted tree with the settings of the forest."""
        cls = self._tree_classes[self._random_thresholds]
        names = cls._get_param_names()
        given = {name: value for name, value in self.get_params(deep=False).items() if name in names}
        if given.get("class_weight") == SUBSAMPLE:
            given["class_weight"] = "balanced"
        return cls(**given, splitter="random" if self._random_thresholds else "hist")

    @property
    def estimator(self) -> Any:
        """The same, under the name that unfitted forests of scikit-learn use."""
        return self.estimator_

    @property
    def estimators_(self) -> list[Any]:
        """The single trees, created on first use."""
        check_is_fitted(self)
        return forest_trees(self)

    def __len__(self) -> int:
        return len(self.trees_)

    def _out_of_bag(self, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None, bags: np.ndarray) -> None:
        sums, count = self.trees_.out_of_bag(X, bags)
        with np.errstate(invalid="ignore"):
            mean = sums / count[:, None]  # NaN for rows that were in every bag
        covered = count > 0
        warn_of_few(covered, "trees")
        self._set_out_of_bag(mean, y, covered, None if weight is None else weight[covered])

    def _means(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return self.trees_.sums(predict_table(self, X, self._coder, sparse=True)) / len(self.trees_)

    def apply(self, X: Any) -> np.ndarray:
        """The leaf of each row in each tree."""
        check_is_fitted(self)
        return self.trees_.leaves(predict_table(self, X, self._coder, sparse=True))

    def decision_path(self, X: Any) -> tuple[Any, np.ndarray]:
        """A sparse matrix of (row, node), one for every node a row passes, and where the nodes of each tree begin."""
        check_is_fitted(self)
        return self.trees_.paths(predict_table(self, X, self._coder, sparse=True)), self.trees_.start
