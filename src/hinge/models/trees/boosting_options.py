"""The limits of the trees of boosting, from the parameters of its estimator to the options of the compiled code."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from hinge.models.trees.boosting_loss import BoostedLoss, Leaves
from hinge.models.trees.inputs import is_frequency, monotone_list
from hinge.models.trees.limits import limit_of_rows

INTERACTIONS = {"pairwise": 2, "no_interactions": 1}  # the largest number of features in a branch
MODERATE = 2.0**-10, 2.0**20  # mean weights that are left as they are
LEAST_WEIGHT = 1e-30  # weights are not multiplied if one would become smaller
SUMS_OF_WEIGHTS = ("l2", "min_hessian", "min_gain", "prune")  # options in the unit of the weights


class WeightFacts(NamedTuple):
    """The weights as the limits of a tree use them: their sum, whether there are any, and whether they are counts."""

    total: float
    given: bool
    counts: bool

    @classmethod
    def of(cls, weight: np.ndarray | None, n: int) -> WeightFacts:
        """The totals of the weights of n rows."""
        return cls(float(n if weight is None else weight.sum()), weight is not None, is_frequency(weight))


def boosting_options(model: Any, d: int, n: int, loss: BoostedLoss, weights: WeightFacts) -> dict[str, Any]:
    """The native options of the trees for a table of n rows and d columns."""
    names = list(getattr(model, "feature_names_in_", ()))
    allowed = []
    groups = [] if model.interaction_cst is None else model.interaction_cst
    if isinstance(groups, str):
        groups = itertools.combinations(range(d), min(d, INTERACTIONS[groups]))
    for group in groups:
        allowed.append([names.index(f) if isinstance(f, str) else int(f) for f in group])
    if allowed:
        used = {f for group in allowed for f in group}
        if min(used) < 0 or max(used) >= d:
            raise ValueError(f"interaction_cst must hold features from 0 to {d - 1}; got {model.interaction_cst}.")
        allowed += [[f] for f in range(d) if f not in used]
    total = weights.total
    rows = total if weights.counts else n
    least = limit_of_rows(model.min_samples_leaf, rows, 1)
    # Relative to the mean weight, so that the unit of the weights does not matter.
    least_hessian, fraction = 1e-3 * total / rows, model.min_weight_fraction_leaf
    if loss.outputs > 1 or loss.leaves is Leaves.NEWTON or not weights.given or weights.counts:
        least = max(least, np.ceil(fraction * rows))
    else:  # the Hessian of a leaf is its weight times the curvature, up to rounding
        least_hessian = max(least_hessian, (1 - 1e-7) * fraction * total * loss.bound)
    leaves = model.max_leaf_nodes or max(2, min(2 ** (model.max_depth or 15), 2**15, int(rows) // max(1, int(least))))
    return {
        "max_leaves": int(leaves),
        "max_depth": model.max_depth or 0,
        "by_level": model.grow == "level",
        "l2": float(model.l2_regularization),
        "min_hessian": least_hessian,
        "min_count": int(least),
        "min_split": int(limit_of_rows(model.min_samples_split, rows, 2)),
        # The gain of the squared error is the decrease of the sum of squares: impurity times weight.
        "min_gain": max(float(model.min_gain), model.min_impurity_decrease * total),
        "prune": model.ccp_alpha * total,
        "category_smoothing": 10.0,
        "monotone": monotone_list(model.monotonic_cst, d, names, model._coder.columns),
        "allowed": allowed,
    }


def of_moderate_weights(options: dict[str, Any], weight: np.ndarray | None) -> tuple[dict[str, Any], np.ndarray | None]:
    """The same problem with weights near one: sums of very small or very large ones would be lost to the core's limits."""
    mean = 1.0 if weight is None else float(weight.mean())
    if weight is None or MODERATE[0] <= mean <= MODERATE[1]:
        return options, weight
    unit = 2.0 ** -round(np.log2(mean))
    if not unit * float(weight.min()) > LEAST_WEIGHT:  # beside one weight that outweighs all by far
        return options, weight
    return options | {name: unit * options[name] for name in SUMS_OF_WEIGHTS}, unit * weight
