"""Any table as named columns of numbers, for questions that are asked column by column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from hinge._native import check_indices

Array = np.ndarray
# A sparse matrix with more entries than this, zeros included, is not spread out for the checks of columns.
MAX_CELLS = 20_000_000


@dataclass(frozen=True, eq=False)
class Column:
    """One column.

    Attributes
    ----------
    name : str
    values : array of floats
        Numbers, nan where missing; categories as codes of their texts.
    categorical : bool
    levels : array of str, or None
        The text of every code.
    """

    name: str
    values: Array
    categorical: bool = False
    levels: Array | None = None


def columns_of(X: Any) -> list[Column]:
    """The columns of an array, a sparse matrix or a data frame; none if a sparse matrix is too large to spread out."""
    if scipy.sparse.issparse(X):
        check_indices(X)
        if X.shape[0] * X.shape[1] > MAX_CELLS:
            return []
        X = X.toarray()
    if hasattr(X, "columns"):
        import narwhals.stable.v1 as nw

        frame = nw.from_native(X, eager_only=True)
        return [_column(str(name), frame[:, j].to_numpy()) for j, name in enumerate(frame.columns)]
    values = np.asarray(X)
    return [_column(f"x{j}", values[:, j]) for j in range(values.shape[1])]


def _column(name: str, raw: Array) -> Column:
    raw = np.asarray(raw)
    if raw.dtype.kind in "bifu":
        return Column(name, raw.astype(np.float64))
    if raw.dtype.kind == "M":
        stamps = raw.astype("datetime64[s]").astype(np.int64).astype(np.float64)
        return Column(name, np.where(np.isnat(raw), np.nan, stamps))
    try:
        return Column(name, np.array([np.nan if v is None else v for v in raw], dtype=np.float64))
    except (TypeError, ValueError):
        missing = np.array([v is None or v != v for v in raw], dtype=bool)
        levels, codes = np.unique(np.array([str(v) for v in raw]), return_inverse=True)
        return Column(name, np.where(missing, np.nan, codes.astype(np.float64)), True, levels)


def column_values(X: Any, j: int) -> Array:
    """Column j of any table, as it is."""
    if scipy.sparse.issparse(X):
        return X.tocsc()[:, [j]].toarray()[:, 0]
    if hasattr(X, "columns"):
        import narwhals.stable.v1 as nw

        frame = nw.from_native(X, eager_only=True)
        return frame[:, j].to_numpy()
    return np.asarray(X)[:, j]


def with_column(X: Any, j: int, values: Array) -> Any:
    """A copy of a table with other values in column j."""
    if scipy.sparse.issparse(X):
        copy = X.tolil(copy=True)
        copy[:, [j]] = values[:, None]
        return copy.tocsr()
    if hasattr(X, "columns"):
        import narwhals.stable.v1 as nw

        frame = nw.from_native(X, eager_only=True)
        old = frame[:, j]
        kind = nw.Float64 if values.dtype.kind == "f" else old.dtype
        new = nw.new_series(old.name, values.tolist(), kind, backend=frame.implementation)
        index = nw.maybe_get_index(frame)
        return frame.with_columns(new if index is None else nw.maybe_set_index(new, index=index)).to_native()
    copy = np.array(X)
    copy[:, j] = values
    return copy


def matrix_of(columns: list[Column]) -> Array:
    """The columns side by side."""
    return np.column_stack([c.values for c in columns])


def aligned(one: Column, two: Column) -> tuple[Array, Array]:
    """The values of the same column in two tables, with one code for one text."""
    if not (one.categorical or two.categorical):
        return one.values, two.values
    texts = [_texts(one), _texts(two)]
    codes = np.unique(np.concatenate(texts), return_inverse=True)[1].astype(np.float64)
    return codes[: len(texts[0])], codes[len(texts[0]) :]


def _texts(column: Column) -> Array:
    known = ~np.isnan(column.values)
    if column.levels is None:
        return column.values.astype(str)
    return np.where(known, column.levels[np.where(known, column.values, 0).astype(int)], "missing")


def row_keys(*parts: Array) -> Array:
    """One number per row, equal exactly for equal rows (of all parts together)."""
    table = np.column_stack([np.asarray(p, dtype=np.float64) for p in parts]) + 0.0  # −0 becomes 0
    table[np.isnan(table)] = np.inf  # one missing value equals another
    rows = np.ascontiguousarray(table).view(np.dtype((np.void, table.dtype.itemsize * table.shape[1]))).ravel()
    return np.unique(rows, return_inverse=True)[1]
