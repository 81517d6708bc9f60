"""Helpers for meta-estimators: the last step of a pipeline, rows of any table, fits of members to some rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import _num_samples, check_array, column_or_1d, has_fit_parameter

from hinge._native import check_indices
from hinge._validation import numeric_targets, refuse_masked, validate_data
from hinge.models.routing import Arguments, take_arguments


def final_step(model: Any) -> Any:
    """The estimator at the end of a pipeline; the model itself if it is not one."""
    while isinstance(model, Pipeline):
        model = model.steps[-1][1]
    return model


def take_rows(X: Any, rows: np.ndarray) -> Any:
    """Rows of an array, a sparse matrix or a data frame."""
    return _safe_indexing(X.tocsr() if hasattr(X, "tocsr") else X, rows)


def row_count(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def require_classifier(owner: Any, estimator: Any) -> None:
    """Raises an error if the base learner of a classifier that counts or weighs labels is a regressor."""
    if is_classifier(owner) and is_regressor(estimator):
        raise ValueError(
            f"estimator={type(estimator).__name__} is a regressor; {type(owner).__name__} needs a classifier."
        )


def set_seeds(estimator: Any, seed: int) -> None:
    """Set ``random_state`` to the seed, and that of every nested estimator to one derived from it."""
    names = sorted(estimator.get_params(deep=True))
    inner = [name for name in names if name.endswith("__random_state")]
    seeds = np.random.default_rng(seed).integers(2**31 - 1, size=len(inner)).tolist()
    own = {"random_state": seed} if "random_state" in names else {}
    estimator.set_params(**own, **dict(zip(inner, seeds)))


def label_columns(y: Any) -> int:
    """The number of columns of y: one for a vector."""
    shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    return int(shape[1]) if len(shape) == 2 else 1


def check_passed_on(owner: Any, X: Any, y: Any, *, several: bool = False) -> tuple[Any, np.ndarray]:
    """X as it is, for members that check it themselves, and one target or label per row. Sets ``n_features_in_``.

    With ``several`` y has one column per label.
    """
    if y is None:
        raise ValueError(f"{type(owner).__name__} requires y to be passed, but the target y is None.")
    check_indices(X)
    refuse_masked(y, "y")
    y = check_array(y, ensure_2d=False, dtype=None, input_name="y", ensure_min_samples=0)
    y = y if several else column_or_1d(y, warn=True)
    X, y = indexable(X, y)
    if not _num_samples(X):
        raise ValueError(f"Found array with 0 sample(s) (shape={np.shape(X)}) while a minimum of 1 is required.")
    validate_data(owner, X, skip_check_array=True)
    return X, numeric_targets(y) if is_regressor(owner) else y


def fit_part(
    member: Any, X: Any, y: np.ndarray, rows: NDArray[np.intp] | None = None, weight: np.ndarray | None = None,
    arguments: Arguments | None = None,
) -> Any:  # fmt: skip
    """A clone of a member, fitted to some rows (by default all); rows of weight zero are dropped.

    ``arguments`` are further arguments of its ``fit``; those with one entry per row are indexed by the rows.
    """
    fit_arguments = dict(arguments or {})
    if weight is not None:
        if not has_fit_parameter(member, "sample_weight"):
            raise TypeError(
                f"Underlying estimator {type(member).__name__} does not support sample weights: its fit takes no "
                "sample_weight. Leave sample_weight out, or this member."
            )
        fit_arguments["sample_weight"] = weight
    if fit_arguments.get("sample_weight") is not None:
        counted = np.asarray(fit_arguments["sample_weight"]) > 0  # classes of weight zero are left out
        if not counted.all():
            rows = np.flatnonzero(counted) if rows is None else rows[counted[rows]]
    if rows is None:
        return clone(member).fit(X, y, **fit_arguments)
    return clone(member).fit(_safe_indexing(X, rows), y[rows], **take_arguments(X, fit_arguments, rows))


def positive_class(classes: np.ndarray, pos_label: Any) -> int:
    """The number of the positive class: the second, unless another is named."""
    if pos_label is None:
        return 1
    found = np.flatnonzero(classes == pos_label)
    if not len(found):
        raise ValueError(f"pos_label={pos_label!r} is not a label of y, which has {classes.tolist()}.")
    return int(found[0])
