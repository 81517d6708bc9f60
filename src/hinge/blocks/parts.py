"""Parts of a source: each can be opened independently, any number of times, and yields its blocks in order."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from hinge._native import check_indices
from hinge.blocks.block import Block, Piece, Roles, make_block
from hinge.errors import UserError
from hinge.tables.frames import as_frame


@dataclass
class Part:
    """Base class of the parts of a source.

    Attributes
    ----------
    where : str
        What it is, for messages.
    """

    where: str

    in_cluster: ClassVar[bool] = False  # whether Dask workers store or compute it
    worth_keeping: ClassVar[bool] = False  # whether its blocks cost more than a copy in memory
    number = 0  # among the parts of the source

    def pieces(self, roles: Roles, *, only_targets: bool) -> Iterator[Piece]:
        """The rows in pieces; with ``only_targets``, features need not be read."""
        raise NotImplementedError

    @property
    def row_count(self) -> int | None:
        """The number of rows, if it is known without reading them."""
        return None

    def require_unchanged(self) -> None:
        """Raise if what is read now is not what was scanned, where that can be known."""

    def stored_bytes(self, roles: Roles, *, only_targets: bool) -> int:
        """Bytes that one pass reads from storage; 0 if that is unknown."""
        return 0

    def blocks(self, roles: Roles, block_rows: int | None, *, only_targets: bool = False) -> Iterator[Block]:
        """Blocks of ``block_rows`` rows, the last one shorter; the blocks of the reader if None. Empty ones are left out."""
        pieces = self.pieces(roles, only_targets=only_targets)
        for number, piece in enumerate(pieces if block_rows is None else recut(pieces, block_rows)):
            where = self.where if block_rows is None else f"{self.where}, block {number}"
            block = make_block(piece, roles, where, only_targets=only_targets)
            if block.rows:
                yield replace(block, key=(self.number, number))


@dataclass
class Rows(Part):
    """Consecutive rows of arrays or of a data frame in memory."""

    piece: Piece
    start: int
    stop: int

    def __getstate__(self) -> dict[str, Any]:
        """Only the rows of this part are sent to other processes."""
        rows = slice(self.start, self.stop)
        piece = Piece(*(None if part is None else take(part, rows) for part in self.piece))
        return {"where": self.where, "piece": piece, "start": 0, "stop": self.stop - self.start, "number": self.number}

    @property
    def row_count(self) -> int | None:
        return self.stop - self.start

    def pieces(self, roles: Roles, *, only_targets: bool) -> Iterator[Piece]:
        rows = slice(self.start, self.stop)
        data = None if only_targets and roles.features is None else self.piece.data
        yield Piece(*(None if part is None else take(part, rows) for part in (data, *self.piece[1:])))


@dataclass
class Stream(Part):
    """Blocks from a function: every call returns a new iterator over the same blocks.

    The numbers of rows of the first pass are stored, and a later pass with other numbers is an error.
    """

    make: Callable[[], Iterable[Any]]
    rows: list[int] | None = None

    def pieces(self, roles: Roles, *, only_targets: bool) -> Iterator[Piece]:
        rows, first = [], None
        for number, given in enumerate(self.make()):
            piece = as_piece(given)
            first = piece if first is None else first
            check_form(piece, first, f"{self.where}, block {number}")
            rows.append(length(piece.data))
            if self.rows is not None and self.rows[number : number + 1] != rows[-1:]:
                raise UserError(
                    f"{self.where} changed between two passes: block {number} has {rows[-1]} rows now. It must give the "
                    "same blocks every time it is called."
                )
            yield piece
        if self.rows is not None and len(rows) != len(self.rows):
            raise UserError(
                f"{self.where} changed between two passes: it gave {len(self.rows)} blocks first and {len(rows)} now."
            )
        self.rows = rows


def check_form(piece: Piece, first: Piece, where: str) -> None:
    """Raise if one of a block and the first block has a target, weights or offsets and the other has none."""
    for name, own, expected in zip(("target", "weight", "offset"), piece[1:], first[1:]):
        if (own is None) != (expected is None) or np.shape(own)[1:] != np.shape(expected)[1:]:
            found, wanted = ("none" if part is None else f"one of shape {np.shape(part)}" for part in (own, expected))
            raise UserError(f"{where}: of {name} it has {found}, the first block has {wanted}.")


def as_piece(given: Any) -> Piece:
    """A block from a user: a data frame, an array, or a tuple (X, target[, weight[, offset]])."""
    if isinstance(given, Piece):
        return given
    if isinstance(given, tuple):
        if not 1 <= len(given) <= 4:
            raise TypeError(f"A block must be a data frame or (X, target, weight, offset); got {len(given)} entries.")
        X, *rest = given
        return Piece(_data(X), *(None if part is None else np.asarray(part) for part in rest))
    return Piece(_data(given))


def _data(given: Any) -> Any:
    return given if as_frame(given) is not None else as_matrix(given)


def as_matrix(given: Any) -> Any:
    """An array, or a CSR matrix with checked indices, since slices of SciPy do not check them."""
    if scipy.sparse.issparse(given):
        check_indices(given)
        return given.tocsr()
    with contextlib.suppress(ValueError):  # lists of different lengths
        if (array := np.asarray(given)).ndim:
            return array
    raise ValueError(f"X must be an array, a data frame or a sparse matrix; got {type(given).__name__}.")


def length(data: Any) -> int:
    """The number of rows of a table, an array or a sparse matrix."""
    return int(data.shape[0]) if hasattr(data, "shape") else len(data)


def take(data: Any, rows: slice) -> Any:
    """Consecutive rows of a table, an array or a sparse matrix, without a copy if possible."""
    frame = None if isinstance(data, np.ndarray) or scipy.sparse.issparse(data) else as_frame(data)
    return data[rows] if frame is None else frame[rows].to_native()


def join(parts: list[Any]) -> Any:
    """Concatenate the rows of several tables, arrays or sparse matrices."""
    if len(parts) == 1:
        return parts[0]
    if scipy.sparse.issparse(parts[0]):
        return scipy.sparse.vstack(parts, format="csr")
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    import narwhals as nw

    return nw.concat([as_frame(part) for part in parts]).to_native()


def recut(pieces: Iterable[Piece], rows: int) -> Iterator[Piece]:
    """The same rows in pieces of ``rows`` rows, the last one shorter, however the input is divided."""
    waiting: list[Piece] = []
    held = 0
    for piece in pieces:
        count = _rows(piece)
        start = 0
        while held + count - start >= rows:
            stop = start + rows - held
            waiting.append(_slice(piece, start, stop, count))
            yield _join(waiting)
            waiting, held, start = [], 0, stop
        if start < count:
            waiting.append(_slice(piece, start, count, count))
            held += count - start
    if waiting:
        yield _join(waiting)


def _rows(piece: Piece) -> int:
    return next((length(part) for part in piece if part is not None), 0)


def _slice(piece: Piece, start: int, stop: int, count: int) -> Piece:
    if start == 0 and stop == count:
        return piece
    return Piece(*(None if part is None else take(part, slice(start, stop)) for part in piece))


def _join(pieces: list[Piece]) -> Piece:
    if len(pieces) == 1:
        return pieces[0]
    return Piece(*(None if parts[0] is None else join(list(parts)) for parts in zip(*pieces)))
