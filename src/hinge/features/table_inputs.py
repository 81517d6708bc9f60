"""The table that TablePrep is given: its checks, the names of its columns, and their match with those of training."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from hinge._native import check_indices
from hinge._validation import validate_data
from hinge.tables.frames import as_frame, closest_name
from hinge.tables.kinds import KINDS


def check_table(prep: Any, X: Any, *, reset: bool) -> Any:
    """X as a data frame, a sparse matrix or an array, with as many columns, named as in training."""
    frame = as_frame(X)
    if frame is None:
        if isinstance(X, list | tuple):
            X = np.array(X, dtype=object) if np.asarray(X).dtype.kind in "US" else np.asarray(X)
        check_indices(X)
        return validate_data(
            prep, X, reset=reset, dtype=None, accept_sparse=("csc", "csr"), ensure_all_finite=False
        )  # fmt: skip
    if not frame.columns:
        check_array(np.empty((len(frame), 0)), estimator=prep)  # raises scikit-learn's error
    if len(frame) == 0:
        check_array(np.empty((0, len(frame.columns))), estimator=prep)
    try:
        return validate_data(prep, X, reset=reset, skip_check_array=True)
    except ValueError as error:
        names = getattr(prep, "feature_names_in_", None)
        if reset or names is None or set(names) == set(frame.columns):
            raise
        gone = [name for name in names if name not in frame.columns]
        extra = [name for name in frame.columns if name not in set(names)]
        hint = renamed(gone, extra) if gone else " TablePrep.align(X) leaves other columns out."
        raise ValueError(f"{error}{hint.lstrip()}") from None


def align_table(prep: Any, X: Any) -> Any:
    """The columns of training, by name and in their order."""
    frame = as_frame(X)
    if frame is None or not hasattr(prep, "feature_names_in_"):
        return X
    gone = [name for name in prep.feature_names_in_ if name not in frame.columns]
    if gone:
        extra = [c for c in frame.columns if c not in set(prep.feature_names_in_)]
        raise ValueError(f"X lacks columns that training had: {', '.join(map(repr, gone))}.{renamed(gone, extra)}")
    return frame.select(list(prep.feature_names_in_)).to_native()


def names_of(prep: Any) -> list[str]:
    """The names of the training columns; their positions if they had no names."""
    names = getattr(prep, "feature_names_in_", None)
    return [f"x{j}" for j in range(prep.n_features_in_)] if names is None else list(names)


def given_kinds(kinds: dict[Any, str] | None, names: list[str]) -> dict[str, str]:
    """The parameter ``kinds`` by name."""
    given = {}
    for key, kind in (kinds or {}).items():
        name = names[key] if isinstance(key, int | np.integer) and -len(names) <= key < len(names) else key
        if name not in names:
            raise ValueError(f"kinds names {key!r}, which X does not have.{renamed([str(key)], names)}")
        if kind not in KINDS:
            raise ValueError(f"kinds[{key!r}] must be one of {', '.join(map(repr, KINDS))}; got {kind!r}.")
        given[name] = kind
    return given


def renamed(gone: list[str], extra: list[str]) -> str:
    """Suggestions for the new names of lost columns."""
    guesses = [f"{name!r} may be {near!r} now" for name in gone if (near := closest_name(name, extra))]
    return f" {'; '.join(guesses)}." if guesses else ""
