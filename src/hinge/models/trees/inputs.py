"""Inputs of trees: numbers with missing values, and categories as codes.

A categorical column is replaced by codes 0 … 254 of the training categories (the 254 most frequent ones have a code
each, the others share the last). A category that does not occur in training is treated as missing, and so is a negative
number in a categorical column of numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import check_consistent_length, column_or_1d

from hinge._cached import cached_property
from hinge._native import check_indices, core
from hinge._validation import naming, refuse_masked, validate_data
from hinge.models.base import FLOATS, check_weights, contiguous
from hinge.models.class_weights import class_factors
from hinge.tables.frames import as_frame, chosen_columns, holds_text

MAX_CATEGORIES = 255
INT32 = np.iinfo(np.int32).max


@dataclass
class Coder:
    """The categorical columns of a training table and their categories, in sorted order with their codes."""

    columns: list[int] = field(default_factory=list)
    categories: list[np.ndarray] = field(default_factory=list)
    codes: list[np.ndarray] = field(default_factory=list)

    def flags(self, d: int) -> np.ndarray:
        flags = np.zeros(d, dtype=np.uint8)
        flags[self.columns] = 1
        return flags

    def learn(self, column: int, values: np.ndarray) -> None:
        """Record the categories of a column; the most frequent ones get a code each."""
        self.learn_counts(column, *np.unique(values[present(values)], return_counts=True))

    def learn_counts(self, column: int, categories: np.ndarray, counts: np.ndarray) -> None:
        """The same for sorted categories and their counts."""
        codes = np.arange(len(categories))
        if len(categories) > MAX_CATEGORIES:
            order = np.lexsort((codes, -counts))
            codes[order] = np.minimum(np.arange(len(categories)), MAX_CATEGORIES - 1)
        self.columns.append(column)
        self.categories.append(categories)
        self.codes.append(codes)

    def grow(self, k: int, values: np.ndarray) -> None:
        """Add the categories of more values; known categories keep their codes."""
        known, old = self.categories[k], self.codes[k]
        new = np.setdiff1d(values[present(values)], known)
        codes = np.minimum(np.arange(len(new)) + int(old.max(initial=-1)) + 1, MAX_CATEGORIES - 1)
        categories = np.concatenate([known, new])
        order = np.argsort(categories, kind="stable")
        self.categories[k], self.codes[k] = categories[order], np.concatenate([old, codes])[order]

    def code(self, k: int, values: np.ndarray) -> np.ndarray:
        """The codes of a column of values; NaN for missing and unknown ones."""
        categories, out = self.categories[k], np.full(len(values), np.nan)
        there = present(values)
        if len(categories) and there.any():
            if categories.dtype.kind in "OUS" and values.dtype.kind not in "OUS":
                raise ValueError(
                    f"X has numbers in column {self.columns[k]}, which held text or categories when the model was "
                    "fitted. Pass a data frame with the columns of the training data."
                )
            known = values[there].astype(categories.dtype, copy=False)
            at = np.minimum(np.searchsorted(categories, known), len(categories) - 1)
            out[there] = np.where(categories[at] == known, self.codes[k][at], np.nan)
        return out


def present(values: np.ndarray) -> np.ndarray:
    """Whether each value is present, that is, not missing."""
    if values.dtype.kind in "OUS":
        return np.array([v is not None and v == v for v in values], dtype=bool)
    return values >= 0  # as in scikit-learn and LightGBM, negative codes and NaN are missing


def _floats(column: np.ndarray) -> np.ndarray:
    with naming("X"):
        return column.astype(np.float64)


def fit_table(estimator: Any, X: Any, categorical: Any, *, sparse: bool = False) -> tuple[Any, Coder]:
    """X as a float matrix (missing values are NaN) and the coder of its categorical columns.

    sparse: a sparse X without categorical columns stays sparse, in CSR.
    """
    coder = Coder()
    frame = as_frame(X)
    chosen = chosen_columns(X, frame, categorical)
    if frame is not None and any(holds_text(frame, j) for j in range(len(frame.columns))):
        validate_data(estimator, X, skip_check_array=True)
        return _from_frame(frame, coder, chosen), coder
    X = _numeric(estimator, X, sparse=sparse and not chosen)
    if not chosen:
        return X, coder
    X = np.array(X)
    for j in chosen:
        coder.learn(j, X[:, j])
        X[:, j] = coder.code(len(coder.columns) - 1, X[:, j])
    return X, coder


def predict_table(estimator: Any, X: Any, coder: Coder, *, sparse: bool = False) -> Any:
    """New data with the coding of the training table; a sparse X may stay sparse, as in :func:`fit_table`."""
    frame = as_frame(X)
    if frame is not None and any(holds_text(frame, j) for j in range(len(frame.columns))):
        validate_data(estimator, X, reset=False, skip_check_array=True)
        columns = [frame_values(frame, j) for j in range(len(frame.columns))]
        at = {j: k for k, j in enumerate(coder.columns)}
        return np.column_stack([
            coder.code(at[j], c) if j in at else _floats(c) for j, c in enumerate(columns)
        ])  # fmt: skip
    X = _numeric(estimator, X, reset=False, sparse=sparse and not coder.columns)
    if not coder.columns:
        return X
    X = np.array(X)
    for k, j in enumerate(coder.columns):
        X[:, j] = coder.code(k, X[:, j])
    return X


def grow_table(estimator: Any, X: Any, coder: Coder, *, sparse: bool = False) -> Any:
    """More training data; new categories are added to the coding."""
    frame = as_frame(X)
    if frame is not None and any(holds_text(frame, j) for j in range(len(frame.columns))):
        validate_data(estimator, X, reset=False, skip_check_array=True)
        for k, j in enumerate(coder.columns):
            coder.grow(k, frame_values(frame, j))
    elif coder.columns:
        table = _numeric(estimator, X, reset=False)
        for k, j in enumerate(coder.columns):
            coder.grow(k, table[:, j])
    return predict_table(estimator, X, coder, sparse=sparse)


def _numeric(estimator: Any, X: Any, reset: bool = True, sparse: bool = False) -> Any:
    check_indices(X)
    finite = False if getattr(estimator, "_takes_infinity", False) else "allow-nan"
    X = validate_data(
        estimator, X, reset=reset, dtype=FLOATS, ensure_all_finite=finite, accept_sparse=("csr", "csc", "coo")
    )
    if sparse and scipy.sparse.issparse(X):
        X = X.tocsr()
        stored = int(X.indptr[-1])
        if stored < len(X.data):  # the arrays have unused capacity at the end
            X = type(X)((X.data[:stored], X.indices[:stored], X.indptr), shape=X.shape)
        return X
    return contiguous(X.toarray() if scipy.sparse.issparse(X) else X)


def nonzeros(X: Any) -> tuple[Any, ...]:
    """A sparse matrix in the form of the native code: values, rows and starts of its columns, and the number of rows."""
    X = X.tocsc(copy=True)
    X.sum_duplicates()
    return X.data, X.indices.astype(np.int32), X.indptr.astype(np.int64), X.shape[0]


def frame_values(frame: Any, j: int) -> np.ndarray:
    """A column of a narwhals frame: numbers as float64, anything else as strings."""
    series = frame[:, j]
    if not holds_text(frame, j):
        try:
            return series.cast(nw.Float64).to_numpy()
        except Exception as error:  # each library of frames has errors of its own
            raise ValueError(
                f"X has values in column {frame.columns[j]!r} that are neither numbers nor text ({error}); convert or drop it."
            ) from None
    missing = series.is_null().to_list()
    return np.array([None if no or v != v else str(v) for v, no in zip(series.to_list(), missing)], dtype=object)


def _from_frame(frame: Any, coder: Coder, chosen: list[int]) -> np.ndarray:
    columns = []
    for j in range(len(frame.columns)):
        values = frame_values(frame, j)
        if j in chosen:
            coder.learn(j, values)
            values = coder.code(len(coder.columns) - 1, values)
        elif values.dtype == object:
            raise ValueError(
                f"Column {frame.columns[j]!r} of X holds text; name it in categorical_features, or use "
                'categorical_features="from_dtype".'
            )
        columns.append(values.astype(np.float64))
    return np.column_stack(columns)


def check_targets(estimator: Any, X: Any, y: Any, *, several: bool = False) -> np.ndarray:
    """y as a finite vector with one entry per row, or as a matrix if several targets are allowed."""
    if y is None:
        validate_data(estimator, X, y)  # raises: y is required
    refuse_masked(y, "y")
    matrix = np.asarray(y)
    y = matrix if several and matrix.ndim == 2 and matrix.shape[1] > 1 else column_or_1d(y, warn=True)
    assert_all_finite(y, input_name="y")
    if y.dtype == object and any(value is None for value in y.flat):
        raise ValueError("Input y contains None; leave out the examples that have no target.")
    check_consistent_length(X, y)
    return y


def is_frequency(weight: np.ndarray | None) -> bool:
    """Whether weights are integers, that is, counts of repetitions."""
    return weight is not None and bool(np.all(weight == np.floor(weight))) and float(weight.sum()) < 2**53


def monotone_list(constraints: Any, d: int, names: Any, categorical: list[int]) -> list[int]:
    """Monotone constraints (+1, 0, −1 per feature, or a dict of names) as a list; empty if there are none.

    ``categorical`` features have no order and cannot have constraints.
    """
    if constraints is None:
        return []
    if isinstance(constraints, dict):
        if names is None:
            raise ValueError("monotonic_cst is a dict of names, but X has no column names; give a list instead.")
        unknown = set(constraints) - set(names)
        if unknown:
            raise ValueError(f"monotonic_cst names columns that X does not have: {sorted(unknown)}.")
        constraints = [constraints.get(name, 0) for name in names]
    values = [int(v) for v in constraints]
    if len(values) != d:
        raise ValueError(f"monotonic_cst has {len(values)} entries; X has {d} features.")
    if any(v not in (-1, 0, 1) for v in values):
        raise ValueError(f"monotonic_cst must be −1, 0 or 1 for every feature; got {values}.")
    if any(values[j] for j in categorical):
        raise ValueError("Categorical features cannot have monotonic constraints: set monotonic_cst to 0 for them.")
    return values if any(values) else []


class Prepared:
    """A checked table in one of its native representations."""

    X: Any  # an array or a sparse matrix
    native: Any

    @cached_property
    def missing(self) -> np.ndarray:
        """Whether each feature has missing values."""
        if not scipy.sparse.issparse(self.X):
            return np.isnan(self.X).any(axis=0)
        found = np.zeros(self.X.shape[1], dtype=bool)
        found[self.X.indices[np.isnan(self.X.data)]] = True
        return found


class Binned(Prepared):
    """A quantised table and its native form."""

    def __init__(
        self, X: Any, coder: Coder, weight: np.ndarray | None = None, max_bins: int = 255, seed: int = 0,
        bundle: bool = True,
    ) -> None:  # fmt: skip
        self.X = X
        if scipy.sparse.issparse(X):
            self.native = core.tree_binned_nonzeros(*nonzeros(X), weight, max_bins, 200_000, seed)
        else:
            self.native = core.tree_bins(X, weight, coder.flags(X.shape[1]), max_bins, 200_000, seed, bundle)


class Presorted(Prepared):
    """A table with every column sorted once (for a sparse table, its nonzero entries), and its native form."""

    def __init__(self, X: Any, coder: Coder) -> None:
        self.X = X
        if scipy.sparse.issparse(X):
            self.native = core.tree_sorted_nonzeros(*nonzeros(X))
        else:
            self.native = core.tree_sorted(X, coder.flags(X.shape[1]))


class Unsorted(Prepared):
    """A dense table without preprocessing, on which trees with random thresholds are grown.

    With ``by_column`` they use a column-major copy, which is worth its cost if all columns are read in every node or many
    trees are grown.
    """

    def __init__(self, X: np.ndarray, coder: Coder, *, by_column: bool = False) -> None:
        self.X = X
        self.native = core.tree_cells(np.asfortranarray(X) if by_column else X, coder.flags(X.shape[1]))


def only_zeros_and_ones(X: Any) -> bool:
    """Whether X is a dense table of indicators."""
    if scipy.sparse.issparse(X):
        return False
    return all(bool(np.all((part == 0) | (part == 1))) for part in (X[:1], X))


def order_of_rows(X: Any, y: np.ndarray) -> np.ndarray:
    """The rows in an order that depends on their contents only; y has one or several numbers per row."""
    if y.ndim == 1:
        return core.order_by_content(*(nonzeros(X) if scipy.sparse.issparse(X) else (X,)), y)
    stack = scipy.sparse.hstack if scipy.sparse.issparse(X) else np.column_stack
    return order_of_rows(stack([X, y[:, 1:].astype(X.dtype, copy=False)]), np.ascontiguousarray(y[:, 0]))


def weights_of(sample_weight: Any, X: Any, class_weight: Any = None, y: Any = None) -> np.ndarray | None:
    """Sample weights times class weights, or None."""
    weight = check_weights(sample_weight, X)
    if class_weight is None:
        return weight
    extra = class_factors(class_weight, y, weight)
    return check_weights(extra if weight is None else weight * extra, X)


def check_sums(weight: np.ndarray | None, y: np.ndarray) -> None:
    """Raises an error if weighted sums of squared targets, over rows drawn up to n times, overflow."""
    if weight is None:
        return
    with np.errstate(over="ignore"):
        largest = weight.sum() * len(weight) * (1.0 + np.max(np.square(y), initial=0.0))
    if np.isinf(largest):
        raise ValueError(
            "sample_weight is so large that sums over the rows of a tree overflow; divide the weights by their maximum."
        )
