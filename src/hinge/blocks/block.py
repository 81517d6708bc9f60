"""A block of rows, made from a piece of a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import scipy.sparse

from hinge._cached import cached_property
from hinge._validation import REMEDIES
from hinge.errors import UserError
from hinge.tables.frames import as_frame, closest_name

Array = np.ndarray


class Piece(NamedTuple):
    """The output of a reader: a table, or arrays (also sparse) with their targets, weights and offsets."""

    data: Any  # a data frame of all columns, or the matrix X; None if only targets were read
    target: Any = None
    weight: Any = None
    offset: Any = None


@dataclass(frozen=True)
class Roles:
    """Which columns of a table are the features, the target, the weights and the offsets.

    ``features`` is None for arrays, whose columns have no names.
    """

    features: tuple[str, ...] | None = None
    target: str | tuple[str, ...] | None = None
    weight: str | None = None
    offset: str | None = None

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of the target columns."""
        return () if self.target is None else (self.target,) if isinstance(self.target, str) else self.target

    @property
    def others(self) -> tuple[str, ...]:
        """The named columns that are not features."""
        return tuple(dict.fromkeys([*self.targets, *(name for name in (self.weight, self.offset) if name is not None)]))

    def columns(self, *, only_targets: bool) -> tuple[str, ...]:
        """The columns to read."""
        return self.others if only_targets else (*(self.features or ()), *self.others)


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows: features X and, if the source has them, targets, weights and offsets.

    Attributes
    ----------
    y, weight, offset : arrays or None
    where : str
        The file and the rows, for messages.
    frame : narwhals frame or None
        The columns of the features, if some of them are not numbers.
    key : (int, int)
        The number of the part, and of the block in it: the same in every pass.
    """

    rows: int
    where: str
    y: Array | None = None
    weight: Array | None = None
    offset: Array | None = None
    frame: Any = None
    names: tuple[str, ...] | None = None
    matrix: Any = field(default=None, repr=False)
    key: tuple[int, int] = (0, 0)

    @cached_property
    def X(self) -> Any:
        """The features as numbers: an array of float64 or float32, or a CSR matrix."""
        if self.matrix is not None:
            return _numbers(self.matrix, self.where)
        return to_matrix(self.frame, self.names or (), self.where)


def make_block(piece: Piece, roles: Roles, where: str, *, only_targets: bool = False) -> Block:
    """A block from the output of a reader; without its features if ``only_targets``."""
    if roles.features is None:
        known = _shapes(piece, where)
        rows = {shape[0] for shape in known}
        if len(rows) > 1:
            raise UserError(f"{where}: X, target, weight and offset have different numbers of rows, {sorted(rows)}.")
        return Block(
            rows.pop() if rows else 0, where, _vector(piece.target), _floats(piece.weight, "weight", where),
            _floats(piece.offset, "offset", where), matrix=None if only_targets else piece.data,
        )  # fmt: skip
    frame = as_frame(piece.data)
    if frame is None:
        raise TypeError(f"{where}: expected a data frame, as in the first block; got {type(piece.data).__name__}.")
    require_columns(frame.columns, roles.others, where)
    y = None
    if isinstance(roles.target, str):
        y = to_vector(frame[roles.target])
    elif roles.target:
        y = np.column_stack([to_vector(frame[name]) for name in roles.target])
    weight = None if roles.weight is None else _floats(to_vector(frame[roles.weight]), "weight", where)
    offset = None if roles.offset is None else _floats(to_vector(frame[roles.offset]), "offset", where)
    if only_targets:
        return Block(len(frame), where, y, weight, offset, names=roles.features)
    require_columns(frame.columns, roles.features, where)
    if all(_is_number(frame[name].dtype) for name in roles.features):
        X = to_matrix(frame, roles.features, where)
        return Block(len(frame), where, y, weight, offset, names=roles.features, matrix=X)
    return Block(len(frame), where, y, weight, offset, frame.select(list(roles.features)), roles.features)


def _shapes(piece: Piece, where: str) -> list[tuple[int, ...]]:
    """The shapes of the arrays of a piece, after a check of their numbers of dimensions."""
    shapes = []
    for name, part in zip(("X", "target", "weight", "offset"), piece):
        if part is None:
            continue
        shape = tuple(int(size) for size in np.shape(part))
        flat = name in ("weight", "offset") and shape[1:] in ((), (1,))
        if (
            not shape
            or len(shape) > 2
            or (name == "X" and len(shape) < 2)
            or (name in ("weight", "offset") and not flat)
        ):
            wanted = {"X": "two dimensions", "target": "one or two dimensions"}.get(name, "one dimension")
            raise ValueError(f"{name} must have {wanted}; {where} has the shape {shape}.")
        shapes.append(shape)
    return shapes


def require_columns(present: Iterable[str], wanted: Iterable[str], where: str) -> None:
    """Raise for a table that lacks a column, naming the table, the column and the most similar name."""
    present = list(present)
    missing = [name for name in wanted if name not in present]
    if missing:
        near = closest_name(missing[0], present)
        hint = f" Did you mean {near!r}?" if near else ""
        columns = ", ".join(map(repr, present[:20])) + (", …" if len(present) > 20 else "")
        raise UserError(f"{where} has no column {missing[0]!r}.{hint} Its columns are {columns}.")


def to_matrix(frame: Any, names: Sequence[str], where: str) -> Array:
    """The named columns of a narwhals frame as an array, float32 if all of them are, stored by columns."""
    columns = [frame[name] for name in names]
    dtype = np.float32 if columns and all(c.dtype == nw.Float32 for c in columns) else np.float64
    X = np.empty((len(frame), len(columns)), dtype=dtype, order="F")
    for j, column in enumerate(columns):
        if not _is_number(column.dtype):
            raise ValueError(
                f"X must hold numbers: column {names[j]!r} of {where} holds {_kind(column.dtype)}. {REMEDIES['X']}"
            )
        X[:, j] = _float_column(column)
    return X


def _is_number(dtype: Any) -> bool:
    return bool(dtype.is_numeric() or dtype == nw.Boolean)


def _float_column(column: Any) -> Array:
    values = column.to_numpy()
    if values.dtype == object:  # integers or Booleans with missing values
        values = column.cast(nw.Float64).to_numpy()
    return values


def _kind(dtype: Any) -> str:
    return "text or categories" if dtype in (nw.String, nw.Categorical, nw.Enum, nw.Object) else f"{dtype} values"


def to_vector(column: Any) -> Array:
    """A narwhals column as an array: numbers as they are, texts as objects."""
    if column.dtype in (nw.Categorical, nw.Enum):
        column = column.cast(nw.String)
    values = np.asarray(column.to_numpy())
    if values.dtype == object and column.dtype.is_numeric():
        values = np.asarray(column.cast(nw.Float64).to_numpy())
    return values


def _vector(values: Any) -> Array | None:
    if values is None:
        return None
    values = np.asarray(values)
    return values.ravel() if values.ndim == 2 and values.shape[1] == 1 else values


def _floats(values: Any, name: str, where: str) -> Array | None:
    if values is None:
        return None
    try:
        values = np.asarray(values, dtype=np.float64).ravel()
    except (OverflowError, TypeError, ValueError):
        raise ValueError(f"{name} must hold numbers: {where} holds something else.") from None
    if not np.isfinite(values).all():
        raise ValueError(f"{name} has missing or infinite values in {where}; drop those rows, or replace the values.")
    if name == "weight" and (values < 0).any():
        raise ValueError(f"weight has negative values in {where}; weights are of zero or more.")
    return values


def _numbers(matrix: Any, where: str) -> Any:
    """A matrix of float64 or float32: CSR if it is sparse, otherwise with contiguous rows or columns."""
    if scipy.sparse.issparse(matrix):
        matrix = matrix.tocsr()
        return matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)
    matrix = np.asarray(matrix)
    if matrix.ndim != 2:
        raise ValueError(f"X must have two dimensions; {where} has the shape {matrix.shape}.")
    if matrix.dtype not in (np.float32, np.float64):
        try:
            matrix = matrix.astype(np.float64)
        except (OverflowError, TypeError, ValueError) as error:
            raise ValueError(f"X must hold numbers: {where} holds something else ({error}). {REMEDIES['X']}") from None
    return matrix if matrix.flags.forc else np.ascontiguousarray(matrix)
