"""The limits and the criterion of a tree, from the parameters of its estimator to the options of the compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from hinge._parameters import Columns, Constraints, at_least, between, count, fraction, numbers, one_of
from hinge.models.trees.inputs import INT32, monotone_list
from hinge.models.trees.targets import Shape

# The order of the native enumeration.
CRITERIA = {
    "gini": 0, "entropy": 1, "log_loss": 1, "misclassification": 2,
    "squared_error": 3, "friedman_mse": 3, "absolute_error": 4, "poisson": 5,
}  # fmt: skip
CLASSIFICATION: tuple[str, ...] = ("gini", "entropy", "log_loss", "misclassification")
REGRESSION: tuple[str, ...] = (
    "squared_error",
    "absolute_error",
    "poisson",
    "friedman_mse",
)  # the last is a former name of the first

# The ranges of the parameters that bound trees, alone and in ensembles.
TREE_LIMITS: Constraints = {
    "max_depth": [count(), None],
    "min_samples_split": [count(2), fraction()],
    "min_samples_leaf": [count(), fraction()],
    "min_weight_fraction_leaf": [between(0, 0.5)],
    "max_features": [count(), fraction(), one_of("sqrt", "log2"), None],
    "max_leaf_nodes": [count(2), None],
    "min_impurity_decrease": [at_least(0)],
    "ccp_alpha": [at_least(0)],
    "monotonic_cst": [numbers(-1, flat=True), dict, None],
    "categorical_features": [Columns(), one_of("from_dtype"), None],
}


def feature_count(max_features: Any, d: int) -> int:
    """The number of features that a split may choose from."""
    if max_features is None:
        return d
    if max_features == "sqrt":
        return max(1, int(np.sqrt(d)))
    if max_features == "log2":
        return max(1, int(np.log2(d)))
    if isinstance(max_features, (int, np.integer)):
        return min(d, int(max_features))
    return max(1, int(max_features * d))


def limit_of_rows(value: float, total: float, least: int) -> float:
    """A limit given as a number of rows, or as a fraction of all of them."""
    if isinstance(value, (int, np.integer)):
        return float(value)
    return max(float(least), float(np.ceil(value * total)))


def cart_options(estimator: Any, d: int, count: float, weight: float, shape: Shape, *, random: bool) -> dict[str, Any]:
    """The native options of a tree or forest."""
    allowed = CLASSIFICATION if isinstance(estimator, ClassifierMixin) else REGRESSION
    if estimator.monotonic_cst is not None and (shape.classes > 2 or shape.outputs > 1):
        kind = "multiple output" if shape.outputs > 1 else "multiclass classification"
        raise ValueError(
            f"Monotonicity constraints are not supported with {kind}: monotonic_cst needs a single score, that of two "
            "classes or of one target."
        )
    names = getattr(estimator, "feature_names_in_", None)
    monotone = monotone_list(estimator.monotonic_cst, d, names, estimator._coder.columns)
    criterion = estimator.criterion
    classes = shape.classes
    if shape.outputs > 1:
        if criterion == "misclassification":
            others = ", ".join(map(repr, allowed[:-1]))
            raise ValueError(
                f"y has {shape.outputs} columns, for which criterion must be one of {others}; got {criterion!r}."
            )
        # The Gini impurity is the variance of the indicators of the classes; the entropy needs the number of targets.
        criterion = "squared_error" if criterion == "gini" else criterion
        classes = -shape.outputs if CRITERIA[criterion] == CRITERIA["entropy"] else classes
    features = feature_count(estimator.max_features, d)
    return {
        "criterion": CRITERIA[criterion],
        "classes": classes,
        "targets": shape.columns,
        "max_depth": min(estimator.max_depth or 0, INT32),
        "max_leaf_nodes": min(estimator.max_leaf_nodes or 0, INT32),
        "max_features": 0 if features == d else features,
        "min_samples_split": limit_of_rows(estimator.min_samples_split, count, 2),
        "min_samples_leaf": limit_of_rows(estimator.min_samples_leaf, count, 1),
        "min_weight_leaf": estimator.min_weight_fraction_leaf * weight,
        "min_decrease": estimator.min_impurity_decrease * shape.outputs,
        "balanced": [],
        "random_thresholds": random,
        "monotone": monotone,
    }
