"""Sources: tables of any size, as lists of parts that can be read repeatedly. ``hg.scan`` makes one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from hinge.blocks.block import Block, Piece, Roles, require_columns
from hinge.blocks.executors import Executor, as_executor
from hinge.blocks.files import file_parts, open_files
from hinge.blocks.kept import Kept, Reader
from hinge.blocks.lazy import LazyFramePart, dask_arrays, dask_frame, is_dask, is_dataset, is_lazy_frame
from hinge.blocks.mapped import mapped_parts
from hinge.blocks.memory import default_rows, memory_bytes, total_memory
from hinge.blocks.parts import Part, Rows, Stream, as_matrix, as_piece, length
from hinge.blocks.prefetch import prefetched
from hinge.blocks.spool import Spool
from hinge.errors import UserError
from hinge.tables.frames import as_frame


@dataclass(frozen=True, eq=False)
class Source:
    """A table in parts. Build one with :func:`scan`, and pass it to ``fit`` or ``predict`` in place of arrays.

    Attributes
    ----------
    parts : list of Part
        What can be opened on its own: files, row groups, partitions, slices of arrays.
    roles : Roles
        Which columns are features, target, weights and offsets.
    n_features : int
    block_rows : int or None
        Rows per block; None: blocks are what the source gives.
    executor : Serial, Threads or Cluster
    memory : int or None
        Bytes that a fit may take up.
    """

    parts: list[Part]
    roles: Roles
    n_features: int
    block_rows: int | None
    executor: Executor
    labelled: bool
    progress: bool = False
    memory: int | None = None

    is_source = True

    @property
    def memory_allowed(self) -> int:
        """Bytes that a fit may use; a quarter of this machine's memory if ``memory`` is None."""
        return total_memory() // 4 if self.memory is None else self.memory

    @property
    def row_count(self) -> int | None:
        """The number of rows, if it is known without reading them."""
        counts = [part.row_count for part in self.parts]
        return None if None in counts else sum(count for count in counts if count is not None)

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the features; None for arrays."""
        return self.roles.features

    def blocks(self, *, only_targets: bool = False) -> Iterator[Block]:
        """The blocks in order; the next one is read ahead."""
        reader = self.reader(only_targets=only_targets)
        return prefetched(block for part in self.parts for block in reader.blocks(part))

    def reader(self, *, only_targets: bool = False, kept: Kept | None = None) -> Reader:
        """How the parts are read in a pass."""
        return Reader(self.roles, self.block_rows, only_targets, kept)

    def map(self, transformer: Any, *, column: str | None = None) -> Source:
        """The source with its features transformed block by block by a fitted transformer; targets and weights are unchanged.

        Parameters
        ----------
        transformer : fitted transformer
            Such as ``hg.Nystroem().fit(sample)`` for kernel machines over blocks, or ``hg.StandardScaler().fit(source)``.
        column : str, optional
            The one column of text that it gets, for ``hg.HashingVectorizer()`` and its like.

        Examples
        --------
        >>> import numpy as np, hinge as hg
        >>> X = np.linspace(0, 6, 400)[:, None]
        >>> features = hg.Nystroem(gamma=1.0, n_components=20).fit(X[::10])
        >>> source = hg.scan(X, target=np.sin(X[:, 0]), block_rows=100).map(features)
        >>> bool(hg.Ridge(1e-6).fit(source).score(source) > 0.999)
        True
        """
        parts = mapped_parts(self.parts, transformer, self.roles, column)
        mapped = replace(self, parts=parts, roles=Roles(), n_features=0)
        head = next(mapped.blocks(), None)
        if head is None:
            raise UserError("the source has no rows.")
        return replace(mapped, n_features=int(head.matrix.shape[1]))

    def __repr__(self) -> str:
        what = self.parts[0].where if len(self.parts) == 1 else f"{len(self.parts)} parts"
        return f"<hinge source: {what}, {self.n_features} features, target {self.roles.target or 'given as array'!r}>"


def scan(
    what: Any,
    *,
    target: Any = None,
    weight: Any = None,
    offset: Any = None,
    columns: Sequence[str] | None = None,
    filter: Any = None,
    block_rows: int | None = None,
    executor: Any = None,
    spool: str | Path | None = None,
    progress: bool = False,
    memory: int | str | None = None,
) -> Source:
    """A table of any size as a source of blocks, for ``fit``, ``predict`` and ``score``.

    Parameters
    ----------
    what : path, pattern, folder or list of paths; data frame; array; dataset; function
        Parquet, Arrow and CSV files; pandas, polars and Arrow frames; NumPy arrays and SciPy sparse matrices; a
        ``pyarrow.dataset``; a polars LazyFrame; a Dask array or data frame; or a function without arguments that returns a
        fresh iterator over blocks, each a data frame or a tuple (X, target, weight, offset). An iterator, which can be read
        only once, is written to disk first.
    target : str, list of str or array
        The target: a column of the table, or an array of as many rows.
    weight : str or array, optional
        Sample weights: a column of the table, or one number per row.
    offset : str or array, optional
        Known parts of the scores of generalised linear models, in the same forms.
    columns : list of str, optional
        The features; all other columns if absent. No other column is read.
    filter : expression or list of (column, operator, value), optional
        The rows to keep, of files and datasets: an expression of ``pyarrow.dataset``, or conditions that must all hold. It is
        passed to the reader, which skips what it can.
    block_rows : int, optional
        Rows per block; about 32 MB of numbers if absent. Peak memory is a few blocks per worker.
    executor : int or Dask client, optional
        Where blocks are computed: a number of threads, or the workers of a cluster. The result is the same. Dask collections
        use the client that is active.
    spool : folder, optional
        Where a stream that can be read only once is written; a temporary folder if absent.
    progress : bool
        Print the number of the pass, parts, rows and rows per second to the standard error.
    memory : int or str, optional
        What a fit may take up: bytes, or text such as "4GB"; a quarter of this machine's memory if absent. Blocks are made
        small enough, an eighth of it keeps blocks between passes, and what trees keep of every row goes to temporary files
        where it does not fit.

    Returns
    -------
    Source

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.arange(12.0).reshape(6, 2) % 5
    >>> source = hg.scan(X, target=X @ [1.0, 2.0] + 3.0, block_rows=2)
    >>> hg.LinearRegression().fit(source).coef_.round(6)
    array([1., 2.])
    """
    if isinstance(what, Source):
        raise TypeError("what is a source already.")
    if block_rows is not None and (isinstance(block_rows, bool) or not isinstance(block_rows, int) or block_rows < 1):
        raise ValueError(f"block_rows must be a whole number of at least 1, got {block_rows!r}.")
    allowed = None if memory is None else memory_bytes(memory)
    request = _Request(target, weight, offset, columns, filter, block_rows, spool, allowed)
    parts, roles, width = request.open(what)
    cut = block_rows
    if cut is None and not any(part.in_cluster or isinstance(part, Stream) for part in parts):
        cut = request.rows or default_rows(width, allowed)
    if executor is None and any(part.in_cluster for part in parts):
        executor = _active_client()
    if not parts:
        raise UserError("the source has no rows.")
    if width == 0:
        raise UserError("the source has no features: X has no columns, or all columns of the table have other roles.")
    for number, part in enumerate(parts):
        part.number = number
    labelled = bool(roles.target) if roles.features is not None else target is not None or request.labels_in_blocks
    return Source(parts, roles, width, cut, as_executor(executor), labelled, progress, allowed)


class _Request:
    """The arguments of :func:`scan`, with a method to open each kind of data."""

    def __init__(
        self, target: Any, weight: Any, offset: Any, columns: Any, filter: Any, block_rows: int | None, spool: Any,
        memory: int | None,
    ) -> None:  # fmt: skip
        self.target, self.weight, self.offset, self.columns = target, weight, offset, columns
        self.filter, self.block_rows, self.spool, self.memory = filter, block_rows, spool, memory
        self.labels_in_blocks = False
        self.rows: int | None = None  # rows of a block, if the files decide

    def open(self, what: Any) -> tuple[list[Part], Roles, int]:
        """Parts, roles and the number of features."""
        if isinstance(what, str | Path) or (_is_list_of_paths(what)):
            return self._files(open_files(what))
        if is_dataset(what):
            return self._files(what)
        self._refuse_filter(what)
        if is_dask(what):
            return self._dask(what)
        if is_lazy_frame(what):
            roles = self._roles(what.collect_schema().names())
            rows = self.block_rows or default_rows(len(roles.features or ()))
            return [LazyFramePart("the lazy frame", what, rows)], roles, len(roles.features or ())
        if callable(what):
            return self._stream([Stream("the stream of blocks", what)], as_piece(_first(what())))
        if isinstance(what, Iterator):
            spool = Spool(what, self.spool)
            return self._stream(spool.parts, spool.first)
        return self._memory(what)

    def _files(self, data: Any) -> tuple[list[Part], Roles, int]:
        roles, parts, self.rows = file_parts(data, self.filter, self._roles, self.block_rows, self.memory)
        return parts, roles, len(roles.features or ())

    def _dask(self, what: Any) -> tuple[list[Part], Roles, int]:
        if hasattr(what, "columns"):
            roles = self._roles([str(name) for name in what.columns])
            return dask_frame(what), roles, len(roles.features or ())
        parts, width = dask_arrays(what, (self.target, self.weight, self.offset))
        return parts, Roles(), width

    def _stream(self, parts: list[Part], first: Piece | None) -> tuple[list[Part], Roles, int]:
        if first is None:
            raise UserError("the stream has no blocks.")
        frame = (
            None if isinstance(first.data, np.ndarray) or scipy.sparse.issparse(first.data) else as_frame(first.data)
        )
        if frame is not None:
            roles = self._roles(list(frame.columns))
            return parts, roles, len(roles.features or ())
        self._refuse_names()
        if any(part is not None for part in (self.target, self.weight, self.offset)):
            raise TypeError("Blocks of arrays carry their own targets: give tuples (X, target, weight, offset).")
        self.labels_in_blocks = first.target is not None
        return parts, Roles(), int(first.data.shape[1])

    def _memory(self, what: Any) -> tuple[list[Part], Roles, int]:
        frame = None if isinstance(what, np.ndarray) or scipy.sparse.issparse(what) else as_frame(what)
        if frame is not None and not any(_is_array(part) for part in (self.target, self.weight, self.offset)):
            roles, piece = self._roles(list(frame.columns)), Piece(what)
            width = len(roles.features or ())
        else:
            self._refuse_names()
            data = as_matrix(what)
            rest = [None if part is None else np.asarray(part) for part in (self.target, self.weight, self.offset)]
            for name, part in zip(("target", "weight", "offset"), rest):
                if part is not None and (part.ndim == 0 or len(part) != data.shape[0]):
                    raise ValueError(
                        f"{name} must have {data.shape[0]} entries, as X has rows; its shape is {part.shape}."
                    )
            roles, piece = Roles(), Piece(data, *rest)
            if data.ndim != 2:
                raise ValueError(f"X must have two dimensions, got the shape {data.shape}.")
            width = int(data.shape[1])
        rows, step = length(what if frame is None else piece.data), self.block_rows or default_rows(width)
        return [
            Rows(f"rows {start}–{min(start + step, rows) - 1}", piece, start, min(start + step, rows))
            for start in range(0, rows, step)
        ], roles, width  # fmt: skip

    def _roles(self, names: list[str]) -> Roles:
        """The roles of the columns of a table."""
        for argument in ("target", "weight", "offset"):
            value = getattr(self, argument)
            if value is not None and _is_array(value):
                raise TypeError(f"{argument} must be the name of a column of the table, got {type(value).__name__}.")
        target = self.target if self.target is None or isinstance(self.target, str) else tuple(self.target)
        roles = Roles((), target, self.weight, self.offset)
        require_columns(names, roles.others, "the table")
        chosen = [name for name in names if name not in roles.others] if self.columns is None else list(self.columns)
        require_columns(names, chosen, "the table")
        return Roles(tuple(chosen), target, self.weight, self.offset)

    def _refuse_names(self) -> None:
        for argument in ("target", "weight", "offset", "columns"):
            value = getattr(self, argument)
            if isinstance(value, str) or (argument == "columns" and value is not None):
                raise TypeError(f"{argument}={value!r} names a column, but the data have no column names.")

    def _refuse_filter(self, what: Any) -> None:
        if self.filter is not None:
            raise TypeError(f"filter is for files and datasets; filter the {type(what).__name__} itself instead.")


def _is_list_of_paths(what: Any) -> bool:
    return isinstance(what, list | tuple) and bool(what) and all(isinstance(path, str | Path) for path in what)


def _is_array(value: Any) -> bool:
    """Whether an argument holds values rather than names of columns."""
    if value is None or isinstance(value, str):
        return False
    if not isinstance(value, Collection):
        return True
    return hasattr(value, "shape") or not all(isinstance(name, str) for name in value) or len(value) > NAMES


NAMES = 64  # a longer list of texts holds labels rather than names of columns


def _first(blocks: Iterable[Any]) -> Any:
    for block in blocks:
        return block
    raise UserError("the stream has no blocks.")


def _active_client() -> Any:
    try:
        from distributed import get_client

        return get_client()
    except (ImportError, ValueError):
        return None


def as_source(X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None) -> Source:
    """A source itself, or Dask collections, lazy frames and datasets as arguments of ``fit``."""
    if isinstance(X, Source):
        if y is not None or sample_weight is not None or offset is not None:
            raise TypeError(
                "A source carries its own targets and weights: pass hg.scan(…, target=…, weight=…, offset=…) alone."
            )
        return X
    return scan(X, target=y, weight=sample_weight, offset=offset)
