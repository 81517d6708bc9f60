"""pandas, polars and Arrow frames through narwhals; one column of any table, and a table with one column replaced."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse

from hinge._validation import refuse_equal_names


def as_frame(X: Any) -> Any:
    """X as a narwhals frame; None if it is not a data frame."""
    try:
        return nw.from_native(X, eager_only=True)
    except TypeError:
        return None
    except ValueError as error:
        refuse_equal_names(error)
        raise


def polars_errors() -> tuple[type[BaseException], ...]:
    """What polars raises; a panic of its own, for example on a damaged file, is a BaseException but no Exception."""
    from polars.exceptions import PanicException, PolarsError

    return PolarsError, PanicException


def closest_name(name: str, names: Iterable[str]) -> str | None:
    """The name most similar to a misspelt one, ignoring case; None if none is similar."""
    folded = {n.casefold(): n for n in names}
    near = difflib.get_close_matches(name.casefold(), list(folded), n=1, cutoff=0.5)
    return folded[near[0]] if near else None


def holds_text(frame: Any, j: int) -> bool:
    """True if column j holds categories or text rather than numbers."""
    return frame[:, j].dtype in (nw.Categorical, nw.Enum, nw.String, nw.Object)


def chosen_columns(X: Any, frame: Any, categorical: Any) -> list[int]:
    """The positions of the columns that ``categorical_features`` names: by type, a mask, indices or names."""
    if categorical is None:
        return []
    if isinstance(categorical, str):
        if categorical != "from_dtype":
            raise ValueError(
                f'categorical_features must be "from_dtype", None, a mask, indices or names; got {categorical!r}.'
            )
        return [] if frame is None else [j for j in range(len(frame.columns)) if holds_text(frame, j)]
    chosen = np.asarray(categorical)
    if frame is None and np.ndim(X) != 2:
        raise ValueError(f"X must be a table of rows and columns, got {type(X).__name__}.")
    d = np.shape(X)[1] if frame is None else len(frame.columns)
    if chosen.dtype == bool:
        if chosen.shape != (d,):
            raise ValueError(f"categorical_features is a mask of length {chosen.size}; X has {d} features.")
        return [int(j) for j in np.flatnonzero(chosen)]
    if chosen.dtype.kind in "OU":
        if frame is None:
            raise ValueError("categorical_features has names, but X has no column names; give indices instead.")
        unknown = [c for c in chosen if c not in frame.columns]
        if unknown:
            raise ValueError(f"categorical_features names columns that X does not have: {unknown}.")
        return sorted(frame.columns.index(c) for c in chosen)
    if chosen.size and (chosen.min() < 0 or chosen.max() >= d):
        raise ValueError(f"categorical_features must be indices from 0 to {d - 1}; got {chosen.tolist()}.")
    return sorted(int(j) for j in chosen)


def column_values(X: Any, j: int) -> np.ndarray:
    """Column j of any table, in the type it has there."""
    if scipy.sparse.issparse(X):
        return X.tocsc()[:, [j]].toarray()[:, 0]
    frame = as_frame(X)
    return np.asarray(X)[:, j] if frame is None else frame[:, j].to_numpy()


def with_column(X: Any, j: int, values: np.ndarray) -> Any:
    """A copy of a table with other values in column j."""
    if scipy.sparse.issparse(X):
        copy = X.tolil(copy=True)
        copy[:, [j]] = values[:, None]
        return copy.tocsr()
    frame = as_frame(X)
    if frame is None:
        copy = np.array(X)
        copy[:, j] = values
        return copy
    old = frame[:, j]
    kind = nw.Float64 if values.dtype.kind == "f" else old.dtype
    new = nw.new_series(old.name, values.tolist(), kind, backend=frame.implementation)
    index = nw.maybe_get_index(frame)
    return frame.with_columns(new if index is None else nw.maybe_set_index(new, index=index)).to_native()
