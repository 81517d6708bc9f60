"""One-shot streams: written to disk in their first pass, so that they can be read again."""

from __future__ import annotations

import shutil
import tempfile
import warnings
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from hinge.blocks.block import Piece, Roles
from hinge.blocks.parts import Part, as_piece, check_form, length
from hinge.tables.frames import as_frame

OTHERS = ("target", "weight", "offset")


class SpoolWarning(UserWarning):
    """Issued when a stream that can be read only once is written to disk."""


class Folder:
    """A temporary folder, removed with the last part that uses it."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="hinge-spool-"))
        self._remove = weakref.finalize(self, shutil.rmtree, str(self.path), ignore_errors=True)


class Spool:
    """A folder of blocks."""

    def __init__(self, blocks: Iterable[Any], folder: str | Path | None = None) -> None:
        temporary = Folder() if folder is None else None
        if temporary is not None:
            self.folder = temporary.path
            warnings.warn(
                f"The stream can be read only once; its blocks are written to {self.folder} and removed afterwards. Choose "
                "another place with hg.scan(…, spool=folder), or pass a function that returns a fresh iterator.",
                SpoolWarning,
                stacklevel=3,
            )
        elif folder is not None:
            self.folder = Path(folder)
            self.folder.mkdir(parents=True, exist_ok=True)
        self.parts: list[Part] = []
        self.first: Piece | None = None
        for number, given in enumerate(blocks):
            piece = as_piece(given)
            if self.first is None:
                self.first = piece
            check_form(piece, self.first, f"block {number}")
            if length(piece.data):
                self.parts.append(SpooledPart(f"block {number}", self._write(number, piece), temporary))

    def _write(self, number: int, piece: Piece) -> Path:
        frame = (
            None if isinstance(piece.data, np.ndarray) or scipy.sparse.issparse(piece.data) else as_frame(piece.data)
        )
        if frame is not None:
            import pyarrow.feather

            path = self.folder / f"{number:08d}.arrow"
            pyarrow.feather.write_feather(frame.to_arrow(), path, compression="uncompressed")
            return path
        path = self.folder / f"{number:08d}.npz"
        arrays = {name: np.asarray(part) for name, part in zip(OTHERS, piece[1:]) if part is not None}
        arrays = {name: part.astype(str) if part.dtype == object else part for name, part in arrays.items()}
        if scipy.sparse.issparse(piece.data):
            X = piece.data.tocsr()
            arrays |= {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}
        else:
            arrays["X"] = np.asarray(piece.data)
        np.savez(path, **arrays)  # type: ignore[arg-type]
        return path


@dataclass
class SpooledPart(Part):
    """A block in a folder."""

    path: Path
    folder: Folder | None  # a reference, so that the folder exists as long as the part

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "folder": None}

    def pieces(self, roles: Roles, *, only_targets: bool) -> Iterator[Piece]:
        if self.path.suffix == ".arrow":
            import pyarrow.feather

            columns = list(roles.columns(only_targets=only_targets))
            yield Piece(pyarrow.feather.read_table(self.path, columns=columns, memory_map=False))
            return
        with np.load(self.path) as stored:
            rest = [stored.get(name) for name in OTHERS]
            yield Piece(None if only_targets else _matrix(stored), *rest)

    def stored_bytes(self, roles: Roles, *, only_targets: bool) -> int:
        return self.path.stat().st_size


def _matrix(stored: Any) -> Any:
    if "X" in stored:
        return stored["X"]
    return scipy.sparse.csr_array((stored["data"], stored["indices"], stored["indptr"]), shape=tuple(stored["shape"]))
