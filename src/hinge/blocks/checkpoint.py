"""Checkpoints, from which a killed fit resumes.

A fit over blocks is a function of the totals of its passes. Each total is written to a folder. A restarted fit takes the totals
from there, without reading the data, as long as there are any, and ends with the same bits.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from hinge.blocks.block import Roles
from hinge.blocks.parts import Rows, Stream
from hinge.blocks.source import Source
from hinge.errors import UserError
from hinge.files import pack, unpack, write_atomically

PROBLEM, SUFFIX = "problem.json", ".total"


def digest(*values: Any) -> str:
    """A hash that depends on values alone, not on whether equal values are the same object."""
    out = io.BytesIO()
    pickler = pickle.Pickler(out, protocol=5)
    pickler.fast = True  # no references to earlier objects
    pickler.dump(values)
    return hashlib.sha256(out.getvalue()).hexdigest()[:32]


def describe(estimator: Any, source: Source) -> dict[str, str]:
    """The identity of a problem: the estimator, its parameters, and the data."""
    import hinge

    roles, cut = source.roles, source.block_rows
    return {
        "hinge": hinge.__version__,
        "estimator": f"{type(estimator).__name__}({_parameters(estimator)})",
        "columns": f"{roles.features}, target {roles.target}, weight {roles.weight}, offset {roles.offset}",
        "blocks": f"{len(source.parts)} parts, {cut} rows each",
        "data": digest([_contents(part) for part in source.parts]),
    }


def _parameters(estimator: Any) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in sorted(estimator.get_params(deep=False).items()))


def _contents(part: Any) -> Any:
    """The identity of a part: its file as it was when it was scanned, or its rows."""
    if getattr(part, "signature", None) is not None:
        return part.where, part.signature
    if isinstance(part, Rows):
        return [_array_digest(array) for array in next(part.pieces(Roles(), only_targets=False))]
    if isinstance(part, Stream):
        raise ValueError(
            "checkpoint= needs data that can be recognised: files or arrays, not a function that makes blocks."
        )
    return part.where


def _array_digest(array: Any) -> str | None:
    if array is None:
        return None
    if isinstance(array, np.ndarray) and array.dtype != object:
        return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    return digest(array)


class Checkpoint:
    """The totals of a fit in a folder.

    Files are written atomically, so that a kill leaves no partial ones. Like model files they hold data and no code; but the
    totals are trusted, so the folder must be. A total that is damaged, or of a type that files cannot hold, is recomputed.
    """

    def __init__(self, folder: str | Path, problem: dict[str, str]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.next = 0
        place = self.folder / PROBLEM
        if not place.exists():
            write_atomically(place, json.dumps(problem, indent=1).encode())
            return
        try:
            found = dict(json.loads(place.read_bytes()))
        except (RecursionError, TypeError, ValueError):
            raise UserError(f"{place} is not of a checkpoint. Give another folder, or remove this one.") from None
        different = [name for name in problem if found.get(name) != problem[name]]
        if different:
            name = different[0]
            raise UserError(
                f"{self.folder} has the checkpoint of another problem: its {name} is {found.get(name)!r}, not "
                f"{problem[name]!r}. Give another folder, or remove this one."
            )

    def recall(self, key: str) -> tuple[bool, Any]:
        """Whether the next total is stored, and its value."""
        path = self.folder / f"{self.next:06d}{SUFFIX}"
        if not path.exists():
            return False, None
        try:
            value = unpack(path.read_bytes(), key)
        except ValueError:
            return False, None
        self.next += 1
        return True, value

    def record(self, key: str, value: Any) -> None:
        """Store the next total; removes later totals of an earlier run."""
        try:
            content = pack(value, key)
        except TypeError:  # labels that are dates, for example
            return
        for path in self._totals():
            if int(path.stem) > self.next:
                path.unlink()
        write_atomically(self.folder / f"{self.next:06d}{SUFFIX}", content)
        self.next += 1

    def remove(self) -> None:
        """Remove the files after a completed fit, and the folder if it is then empty."""
        unfinished = [
            path for name in (SUFFIX, PROBLEM) for path in self.folder.glob(f".*{name}.*")
        ]  # temporary files that a kill left
        for path in [*self._totals(), *unfinished, self.folder / PROBLEM]:
            path.unlink(missing_ok=True)
        if not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _totals(self) -> list[Path]:
        return sorted(path for path in self.folder.glob(f"*{SUFFIX}") if path.stem.isdecimal())
