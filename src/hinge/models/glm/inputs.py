"""Inputs of the generalised linear models: numbers, and categories as codes.

A category of k levels stands for k one-hot columns, which are never formed; without a penalty that chooses among
equivalent weights, the first level is the reference and has no column. A level that does not occur in training is coded
as zeros, that is, as the reference (or, with a penalty, as an average level).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import check_consistent_length, column_or_1d

from hinge._native import CodedTable, check_indices
from hinge._validation import validate_data
from hinge.models.base import ACCEPT_SPARSE, FLOATS, contiguous
from hinge.tables.frames import as_frame, chosen_columns, holds_text


@dataclass(frozen=True)
class Coding:
    """The categorical columns of a table, and their levels in order.

    Attributes
    ----------
    columns : tuple of int
        Positions in the table, ascending.
    levels : tuple of arrays
        The levels of each; text for data frames with categories, else numbers.
    reference : bool
        Whether the first level of each has no column of its own.
    """

    columns: tuple[int, ...] = ()
    levels: tuple[np.ndarray, ...] = ()
    reference: bool = False

    def widths(self) -> list[int]:
        """The number of columns of X for each category."""
        return [len(known) - int(self.reference) for known in self.levels]

    def names(self, table: list[str]) -> list[str]:
        """The names of the columns of X: numeric columns first, then ``category=level``."""
        numbers = [name for j, name in enumerate(table) if j not in self.columns]
        return numbers + [
            f"{table[j]}={level}"
            for j, known in zip(self.columns, self.levels)
            for level in known[int(self.reference) :]
        ]


def fit_table(estimator: Any, X: Any, y: Any, categorical: Any, reference: bool) -> tuple[Any, np.ndarray, Coding]:
    """X as a matrix or a :class:`CodedTable`, y, and the coding of the categories."""
    check_indices(X)
    frame = as_frame(X)
    chosen = chosen_columns(X, frame, categorical)
    if not chosen:
        X, y = validate_data(estimator, X, y, accept_sparse=ACCEPT_SPARSE, dtype=FLOATS, y_numeric=True)
        return contiguous(X), np.asarray(y, dtype=np.float64), Coding()
    validate_data(estimator, X, skip_check_array=True)
    y = column_or_1d(y, dtype=np.float64, warn=True)
    assert_all_finite(y, input_name="y")
    check_consistent_length(X, y)
    columns = [category_column(X, frame, j) for j in chosen]
    coding = Coding(tuple(chosen), tuple(known for _, known in columns), reference)
    return _coded(X, frame, coding, columns), y, coding


def predict_table(estimator: Any, X: Any, coding: Coding) -> Any:
    """New data with the coding of the training table."""
    check_indices(X)
    if not coding.columns:
        return contiguous(validate_data(estimator, X, accept_sparse=ACCEPT_SPARSE, dtype=FLOATS, reset=False))
    validate_data(estimator, X, skip_check_array=True, reset=False)
    frame = as_frame(X)
    return _coded(X, frame, coding, [category_column(X, frame, j) for j in coding.columns])


def _coded(X: Any, frame: Any, coding: Coding, columns: list[tuple[np.ndarray, np.ndarray]]) -> CodedTable:
    """The table from the codes and levels of the new data's categories."""
    shift = int(coding.reference)
    codes = []
    for (code, levels), known in zip(columns, coding.levels):
        place = np.append(_places(levels, known), -1)  # the code −1 of a missing value stays −1
        codes.append(np.ascontiguousarray(np.maximum(place[code] - shift, -1), dtype=np.int32))
    return CodedTable(_numbers(X, frame, coding.columns), codes, coding.widths())


def _places(levels: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The index of each level among the known ones; −1 if it is not known."""
    if len(levels) == len(known) and np.array_equal(levels, known):
        return np.arange(len(levels))
    index = {level: place for place, level in enumerate(known.tolist())}
    return np.array([index.get(level, -1) for level in levels.tolist()], dtype=np.int64)


def _numbers(X: Any, frame: Any, categories: tuple[int, ...]) -> Any:
    """The numeric columns as a finite float matrix."""
    kept = [j for j in range(X.shape[1]) if j not in categories]
    if frame is None:
        numbers = X[:, kept] if scipy.sparse.issparse(X) else np.asarray(X)[:, kept]
        numbers = numbers if numbers.dtype in FLOATS else numbers.astype(np.float64)
    else:
        text = [frame.columns[j] for j in kept if holds_text(frame, j)]
        if text:
            raise ValueError(
                f"Columns {text} of X hold text; name them in categorical_features, or use "
                'categorical_features="from_dtype".'
            )
        numbers = np.empty((len(frame), len(kept)))
        for place, j in enumerate(kept):
            numbers[:, place] = frame[:, j].cast(nw.Float64).to_numpy()
    assert_all_finite(numbers.data if scipy.sparse.issparse(numbers) else numbers, input_name="X")
    return contiguous(numbers)


def category_column(X: Any, frame: Any, j: int) -> tuple[np.ndarray, np.ndarray]:
    """The codes (−1 for missing) and the levels of one category."""
    if frame is None:
        values = X[:, [j]].toarray().ravel() if scipy.sparse.issparse(X) else np.asarray(X)[:, j]
        return _unique(values)
    series = frame[:, j]
    if series.dtype not in (nw.Categorical, nw.Enum):
        return _unique(series.to_numpy())
    native = series.to_native()
    if hasattr(native, "cat") and hasattr(native.cat, "codes"):  # pandas stores the codes already
        levels = np.asarray(native.cat.categories)
        return native.cat.codes.to_numpy(), levels.astype(str) if levels.dtype.kind not in "biuf" else levels
    return _unique(series.cast(nw.String).to_numpy())


def _unique(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if values.dtype.kind == "O":
        missing = np.array([value is None or value != value for value in values], dtype=bool)
        values = np.where(missing, "", values).astype(str)
    else:
        missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)
    levels, inside = np.unique(values[~missing], return_inverse=True)
    codes = np.full(len(values), -1, dtype=np.int64)
    codes[~missing] = inside
    return codes, levels
