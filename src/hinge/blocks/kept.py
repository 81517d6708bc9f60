"""Blocks that stay in memory between the passes of a fit, so that their files are read and decoded once."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from hinge._native import CodedTable
from hinge.blocks.block import Block, Roles
from hinge.blocks.memory import total_memory
from hinge.blocks.parts import Part

SHARE = 8  # an eighth of the memory of a fit
WORKER_SHARE = 4  # a quarter of the limit of a worker of a cluster
UNUSED = 600.0  # seconds after which a worker drops the blocks of a fit whose client is gone


class Kept:
    """The blocks of one fit in one process: those of the parts that come first, as far as they fit into ``allowed`` bytes.

    A pickled copy is the one of the process where it arrives. There ``allowed`` is a quarter of the worker's memory, and at
    most ``limit``.

    Attributes
    ----------
    homes : dict
        On a cluster, the worker that reads a part, by the number of the part.
    """

    def __init__(self, allowed: int | None, limit: int | None = None, token: str | None = None) -> None:
        self.allowed, self.limit = allowed, limit
        self.token = token or uuid.uuid4().hex
        self.homes: dict[int, str] = {}
        self.used_at = time.monotonic()
        self._parts: dict[int, list[Block]] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _in_this_process, (self.token, self.limit)

    def __contains__(self, part: Part) -> bool:
        return part.number in self._parts

    def blocks(self, part: Part, reader: Reader) -> Iterator[Block]:
        """The blocks of a part: from memory, or from its file, and then they are kept if all of them fit."""
        self.used_at = time.monotonic()
        known = self._parts.get(part.number)
        if known is not None:
            part.require_unchanged()
            yield from known
            return
        blocks = part.blocks(reader.roles, reader.block_rows, only_targets=reader.only_targets)
        if reader.only_targets or not part.worth_keeping:
            yield from blocks
            return
        fresh: list[Block] | None = []
        held = 0
        try:
            for block in blocks:
                if fresh is not None:
                    size = block_bytes(block)
                    if self._take(size):
                        held += size
                        fresh.append(block)
                    else:
                        fresh = None
                        self._give_back(held)
                        held = 0
                yield block
            if fresh is not None:
                self._parts[part.number] = fresh
                held = 0
        finally:
            self._give_back(held)

    def clear(self) -> None:
        """Drop all blocks; later ones are not kept."""
        with self._lock:
            self.allowed = 0
            self._parts = {}

    def _take(self, size: int) -> bool:
        with self._lock:
            if self.allowed is None:  # a worker of a cluster, known to this thread once it computes a task
                share = _worker_memory() // WORKER_SHARE
                self.allowed = share if self.limit is None else min(share, self.limit)
            if self._bytes + size > self.allowed:
                return False
            self._bytes += size
            return True

    def _give_back(self, size: int) -> None:
        with self._lock:
            self._bytes -= size


@dataclass(frozen=True)
class Reader:
    """How a pass reads the parts of a source."""

    roles: Roles
    block_rows: int | None
    only_targets: bool = False
    kept: Kept | None = None

    def blocks(self, part: Part) -> Iterator[Block]:
        """The blocks of a part, from memory if they are kept."""
        if self.kept is None:
            return part.blocks(self.roles, self.block_rows, only_targets=self.only_targets)
        return self.kept.blocks(part, self)

    def bytes_to_read(self, part: Part) -> int:
        """The bytes of storage that the next pass over a part reads."""
        if self.kept is not None and part in self.kept:
            return 0
        return part.stored_bytes(self.roles, only_targets=self.only_targets)


def block_bytes(block: Block) -> int:
    """Bytes that a block takes up, with the array that is made of a frame."""
    arrays = [part for part in (block.y, block.weight, block.offset) if part is not None]
    size = sum(array.nbytes if array.dtype != object else 64 * array.size for array in arrays)
    if block.frame is not None:
        return int(size + block.frame.estimated_size() + 8 * np.prod(block.frame.shape))
    return int(size + (0 if block.matrix is None else _matrix_bytes(block.matrix)))


def _matrix_bytes(X: Any) -> int:
    if isinstance(X, CodedTable):
        return _matrix_bytes(X.numbers) + sum(codes.nbytes for codes in X.codes)
    if scipy.sparse.issparse(X):
        return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    return np.asarray(X).nbytes


# ------------------------------------------------------------------------------------------------------ workers of a cluster

_FITS: dict[str, Kept] = {}  # by token
_FITS_LOCK = threading.Lock()


def _in_this_process(token: str, limit: int | None) -> Kept:
    """The blocks that this process keeps for a fit."""
    now = time.monotonic()
    with _FITS_LOCK:
        for old in [t for t, kept in _FITS.items() if now - kept.used_at > UNUSED]:
            del _FITS[old]
        if token not in _FITS:
            _FITS[token] = Kept(None, limit, token)
        return _FITS[token]


def _worker_memory() -> int:
    """The limit of this worker; without one, its share of the machine's memory."""
    from distributed import get_worker

    limit = getattr(get_worker().memory_manager, "memory_limit", None)
    return int(limit or total_memory() // (os.cpu_count() or 1))


async def forget(token: str) -> None:
    """Drop what this process keeps for a fit; a coroutine, so that the client need not wait for it."""
    with _FITS_LOCK:
        kept = _FITS.pop(token, None)
    if kept is not None:
        kept.clear()


def choose_homes(homes: dict[int, str], parts: Sequence[Part], slots: Sequence[str]) -> None:
    """Assign the parts without a living worker to workers in turn; ``slots`` has a worker once for each of its threads."""
    if not slots:
        return
    living = set(slots)
    for part in parts:
        if homes.get(part.number) not in living:
            homes[part.number] = slots[part.number % len(slots)]
