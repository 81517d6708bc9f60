"""Data frames as the library sees them: pandas, polars and Arrow through one door."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np


def as_frame(X: Any) -> Any:
    """X as a narwhals frame; None if it is not a frame."""
    try:
        return nw.from_native(X, eager_only=True)
    except TypeError:
        return None


def holds_text(frame: Any, j: int) -> bool:
    """Whether a column holds categories or text rather than numbers."""
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
