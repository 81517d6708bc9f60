"""Shared by the estimators: checks of inputs, codes of labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from hinge._native import check_indices, surely_finite
from hinge._validation import check_sample_weight, validate_data
from hinge.problem.numerics import OVERFLOWED

ACCEPT_SPARSE = ("csr", "csc")
FLOATS = [np.float64, np.float32]
# Options of ``check_fit`` that have no effect on plain numeric arrays.
PLAIN_OPTIONS = {"y_numeric", "multi_output", "ensure_all_finite"}


def check_fit(estimator: Any, X: Any, y: Any, sample_weight: Any = None, **options: Any) -> tuple[Any, np.ndarray, Any]:
    """X, y and weights as arrays. float32 and the memory order are preserved; sparse matrices stay sparse."""
    if options.keys() <= PLAIN_OPTIONS and _plain(X) and _plain_targets(y, X.shape[0]):
        check_indices(X)
        if not options.get("ensure_all_finite", True) or surely_finite(X):
            estimator.n_features_in_ = X.shape[1]
            vars(estimator).pop("feature_names_in_", None)
            return contiguous(X), np.ascontiguousarray(y), check_weights(sample_weight, X)
    settings: dict[str, Any] = {"accept_sparse": ACCEPT_SPARSE, "dtype": FLOATS} | options
    if "ensure_all_finite" not in options:
        settings |= finiteness(X)
    else:
        check_indices(X)
    checked, y = validate_data(estimator, X, y, **settings)
    _check_converted(X, checked)
    return contiguous(checked), y, check_weights(sample_weight, checked)


def _plain(X: Any) -> bool:
    """Whether scikit-learn's checks would return X unchanged if its numbers are finite.

    Those checks take longer than a small fit, so they run only for other inputs and for invalid ones.
    """
    if type(X) is not np.ndarray and not (issparse(X) and X.format in ACCEPT_SPARSE):
        return False
    return X.ndim == 2 and X.dtype in FLOATS and min(X.shape) > 0


def _plain_targets(y: Any, n: int) -> bool:
    """The same for n targets."""
    if type(y) is not np.ndarray or y.shape != (n,) or y.dtype.kind not in "biuf":
        return False
    return y.dtype.kind != "f" or bool(np.isfinite(y).all())


def _check_converted(before: Any, after: Any) -> None:
    """Checks sparse formats other than CSR and CSC, which is possible only after their conversion."""
    if hasattr(after, "format") and getattr(before, "format", "") not in ("csr", "csc"):
        check_indices(after)


def _sound(X: Any) -> bool:
    """Whether all numbers are finite, on all threads. Raises an error for sparse matrices with invalid indices."""
    check_indices(X)
    return surely_finite(X)


def finiteness(X: Any) -> dict[str, Any]:
    """Options that skip scikit-learn's search for NaN and infinity if there are none."""
    return {"ensure_all_finite": False} if _sound(X) else {}


def check_weights(sample_weight: Any, X: Any) -> np.ndarray | None:
    """Weights as float64, or None. Raises an error if any is negative or all are zero."""
    if sample_weight is None:
        return None
    weights = check_sample_weight(sample_weight, X)
    if not np.any(weights > 0):
        raise ValueError("sample_weight is zero for every example: there is nothing to learn from.")
    with np.errstate(over="ignore"):
        if not np.isfinite(weights.sum()):
            raise ValueError("The sum of sample_weight overflows; divide the weights by their maximum.")
    if weights.sum() < np.finfo(np.float64).tiny:
        raise ValueError(
            "sample_weight is too small: its sum, below 2.2e-308, has lost digits. Divide it by its maximum."
        )
    return weights


def check_objects(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, *, multi_output: bool = False
) -> tuple[Any, Any, np.ndarray | None]:
    """Strings or graphs, one per target, with targets and weights."""
    from hinge.problem.kernels.evaluate import objects  # imported late: kernels slow a first fit by a tenth

    X, y = objects(X), np.asarray(y) if multi_output else column_or_1d(y, warn=True)
    check_consistent_length(X, y)
    estimator.n_features_in_ = 1
    return X, y, check_weights(sample_weight, np.zeros((len(X), 1)))


def require_no_overflow(*sums: Any) -> None:
    """Raises an error if sums of products of finite inputs overflow: the inputs are too large."""
    if not all(np.all(np.isfinite(values)) for values in sums):
        raise ValueError(OVERFLOWED)


def is_column(y: Any) -> bool:
    """Whether targets are a matrix of one column, such as a data frame of one column."""
    shape = np.asarray(y).shape
    return len(shape) == 2 and shape[1] == 1


def drop_absent(X: Any, y: np.ndarray, weights: np.ndarray | None) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Without the examples of weight zero, which are equivalent to absent ones."""
    if weights is None or np.all(weights > 0):
        return X, y, weights
    kept = np.flatnonzero(weights)
    return contiguous(X[kept]), y[kept], weights[kept]


def check_predict(estimator: Any, X: Any) -> Any:
    """X as an array, checked against the training data's shape and names."""
    known = _plain(X) and getattr(estimator, "n_features_in_", 0) == X.shape[1]
    if known and not hasattr(estimator, "feature_names_in_") and _sound(X):
        return contiguous(X)
    settings: dict[str, Any] = {"accept_sparse": ACCEPT_SPARSE, "dtype": FLOATS, **finiteness(X)}
    checked = validate_data(estimator, X, reset=False, **settings)
    _check_converted(X, checked)
    return contiguous(checked)


def contiguous(X: Any) -> Any:
    """X itself if its rows or columns are contiguous; otherwise (strided views) a copy."""
    if hasattr(X, "format"):
        return X
    step = X.itemsize
    if (X.strides[1] == step and X.strides[0] >= step * X.shape[1]) or (X.strides[0] == step and X.strides[1] >= step):
        return X
    return np.ascontiguousarray(X)


def take_input_tags(tags: Any, estimator: Any) -> None:
    """The input tags of a meta-estimator are those of its estimator."""
    inner = get_tags(estimator).input_tags
    tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan


def keep_float32(values: np.ndarray, X: Any) -> np.ndarray:
    """Results computed in double, in the precision of the inputs: float32 in, float32 out."""
    return in_precision(values, X.dtype)


def in_precision(values: np.ndarray, dtype: Any) -> np.ndarray:
    """Numbers in float32 if that is the dtype; numbers above 3.4e38, which it cannot hold, stay in double."""
    if dtype != np.float32 or values.dtype == np.float32:
        return values
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32)
    return values if np.any(np.isinf(narrow) & np.isfinite(values)) else narrow


def code_labels(estimator: Any, y: np.ndarray) -> np.ndarray:
    """Sets ``classes_`` and returns the labels as 0 … k−1. Raises an error if there is only one class."""
    estimator.classes_, codes = unique_codes(y)
    if len(estimator.classes_) < 2:
        raise ValueError(
            f"{type(estimator).__name__} needs at least two classes to learn from; y has only one class: "
            f"{estimator.classes_.tolist()[0]!r}."
        )
    return codes


def codes_among(classes: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Labels of a partial fit as 0 … k−1, given all classes in order."""
    unknown = np.setdiff1d(y, classes)
    if unknown.size:
        raise ValueError(f"y has labels that are not in classes: {unknown.tolist()}.")
    return np.searchsorted(classes, y)


LARGEST_CODE = 2**24  # smaller integers are exact in any float


def unique_codes(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The classes in order and the labels as 0 … k−1, by counting instead of sorting if labels are small integers.

    Raises an error if y is not a vector of class labels.
    """
    if y.dtype.kind in "iuf" and y.ndim == 1 and y.size:
        low, high = y.min(), y.max()
        top = y == high
        are_integers = np.trunc(low) == low < high == np.trunc(high)
        if are_integers and np.count_nonzero(top) + np.count_nonzero(y == low) == y.size:
            return np.array([low, high]), top.astype(np.intp)
    if y.dtype.kind == "f" and y.ndim == 1 and y.size and np.max(np.abs(y)) < LARGEST_CODE:
        integers = y.astype(np.int64)
        if np.array_equal(integers, y):
            classes, codes = unique_codes(integers)
            return classes.astype(y.dtype), codes
    if y.dtype.kind in "iu" and y.size:
        low, high = int(y.min()), int(y.max())
        if high - low <= max(1000, y.size):
            lowest = y.dtype.type(low)
            # The difference may wrap around (127 − (−128) in int8); as an unsigned number it is right.
            offset = y - lowest
            offset = (
                offset.view(f"u{offset.itemsize}").astype(np.intp) if offset.itemsize < 8 else offset.view(np.int64)
            )
            present = np.bincount(offset, minlength=high - low + 1) > 0
            return np.flatnonzero(present).astype(y.dtype) + lowest, (np.cumsum(present) - 1)[offset]
    try:
        check_classification_targets(y)
        return np.unique(y, return_inverse=True)
    except TypeError:  # from sorting
        kinds = sorted({type(label).__name__ for label in y})
        raise ValueError(
            f"y has labels of kinds that cannot be put in order ({', '.join(kinds)}); make them all text or all numbers."
        ) from None


def signs(codes: np.ndarray) -> np.ndarray:
    """0/1 as −1/+1."""
    return 2.0 * codes - 1.0


class Multilabel:
    """Classifiers that take several labels per row; stands before scikit-learn's mixin."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.classifier_tags.multi_label = True
        return tags


class LogProba:
    """Logarithms of ``predict_proba``."""

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the probabilities; −∞ where one is zero."""
        proba = self.predict_proba(X)  # type: ignore[attr-defined]
        with np.errstate(divide="ignore"):
            return [np.log(p) for p in proba] if isinstance(proba, list) else np.log(proba)
