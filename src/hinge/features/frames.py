"""Data frames as the library sees them: pandas, polars and Arrow through one door."""

from __future__ import annotations

from typing import Any

import narwhals as nw


def as_frame(X: Any) -> Any:
    """X as a narwhals frame; None if it is not a frame."""
    try:
        return nw.from_native(X, eager_only=True)
    except TypeError:
        return None


def holds_text(frame: Any, j: int) -> bool:
    """Whether a column holds categories or text rather than numbers."""
    return frame[:, j].dtype in (nw.Categorical, nw.Enum, nw.String, nw.Object)
