"""Class weights as factors on the weights of the rows.

Classes are balanced by the sums of their weights: a weight of 2 means two examples, and one of 0 none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge.blocks.exact import ExactSum


def class_factors(class_weight: Any, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """One factor per row; for several targets the product over the columns of y."""
    from sklearn.utils.class_weight import compute_sample_weight

    if isinstance(class_weight, list) and np.ndim(y) == 1:
        raise ValueError("class_weight is a list, which is for several targets; pass a dict from classes to weights.")
    if weight is None or not isinstance(class_weight, str):
        try:
            return compute_sample_weight(class_weight, y)
        except (TypeError, LookupError) as error:  # labels that cannot be compared, or entries that are no dicts
            raise ValueError(f"class_weight cannot be applied to the classes in y: {error}") from error
    return np.prod([_balanced(column, weight) for column in np.reshape(y, (len(weight), -1)).T], axis=0)


def _balanced(labels: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Factors of the rows with which all classes weigh the same and the mean weight does not change."""
    values, codes = np.unique(labels, return_inverse=True)
    totals = np.array([float(ExactSum.of(weight[codes == k])) for k in range(len(values))])
    return balanced_factors(totals)[codes]


def balanced_factors(totals: np.ndarray) -> np.ndarray:
    """The factors Σ_c W_c / (k W_c) of classes with weights W_c, of which k are above zero; zero for the others."""
    present = totals > 0
    return np.divide(totals.sum(), np.count_nonzero(present) * totals, out=np.zeros_like(totals), where=present)
