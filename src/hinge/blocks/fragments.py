"""Files of a dataset as parts of a source, read through ``pyarrow.dataset`` by plain reads, never mapped into memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from hinge.blocks.block import Piece, Roles
from hinge.blocks.parts import Part
from hinge.errors import UserError

READ_ROWS = 1 << 16  # rows per batch of the reader, at most


def import_pyarrow() -> Any:
    """The module pyarrow.dataset, which comes with ``hinge-learn[dask]`` or by itself."""
    try:
        import pyarrow.dataset
    except ImportError:
        raise ImportError("hg.scan of files needs pyarrow; install it with pip install pyarrow.") from None
    return pyarrow.dataset


@contextmanager
def naming(where: str) -> Iterator[None]:
    """Add the name of the file to errors of the reader."""
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OSError) as error:
        raise UserError(
            f"{where} cannot be read; it may be truncated, damaged or of another format: {error}"
        ) from error


@dataclass(frozen=True)
class Signature:
    """The state of a file when it was scanned."""

    path: str
    size: int
    changed: int

    @classmethod
    def of(cls, path: str) -> Signature | None:
        """None for files that are not on this machine's file system."""
        try:
            found = os.stat(path)
        except OSError:
            return None
        return cls(path, found.st_size, found.st_mtime_ns)

    def require_unchanged(self) -> None:
        """Raise if the file has changed since it was scanned."""
        now = Signature.of(self.path)
        if now is None:
            raise UserError(f"{self.path} was removed after it was scanned.")
        if now != self:
            raise UserError(
                f"{self.path} changed after it was scanned: a fit reads its data several times, and every time they must be "
                "the same. Write new data to another file, and scan again."
            )


@dataclass
class FilePart(Part):
    """A file, or a part of one."""

    fragment: Any
    schema: Any
    filter: Any
    signature: Signature | None
    size: int  # bytes in storage, all columns
    column_bytes: dict[str, int] | None = None

    worth_keeping: ClassVar[bool] = True

    def pieces(self, roles: Roles, *, only_targets: bool) -> Iterator[Piece]:
        columns = list(roles.columns(only_targets=only_targets))
        self.require_unchanged()
        with naming(self.where):
            batches = self.batches(columns)
        while True:
            with naming(self.where):
                batch = next(batches, None)
            if batch is None:
                break
            if batch.num_rows:
                yield Piece(batch)
        self.require_unchanged()

    def batches(self, columns: list[str]) -> Iterator[Any]:
        """Some columns of the rows that the filter keeps, as tables; blocks are prefetched elsewhere, so without read-ahead."""
        import pyarrow

        batches = self.fragment.to_batches(
            schema=self.schema, columns=columns, filter=self.filter, batch_size=READ_ROWS, batch_readahead=0,
            fragment_readahead=1,
        )  # fmt: skip
        return (pyarrow.Table.from_batches([batch]) for batch in batches)

    def require_unchanged(self) -> None:
        if self.signature is not None:
            self.signature.require_unchanged()

    def stored_bytes(self, roles: Roles, *, only_targets: bool) -> int:
        if self.column_bytes is None:
            return self.size
        return sum(self.column_bytes.get(name, 0) for name in roles.columns(only_targets=only_targets))


def name_of(fragment: Any) -> str:
    """The path of a fragment, for messages."""
    return str(getattr(fragment, "path", None) or "the dataset")
