"""Passes over a source: totals of statistics, and a record of the reading."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hinge.blocks.block import Block
from hinge.blocks.checkpoint import Checkpoint, digest
from hinge.blocks.executors import Cluster
from hinge.blocks.kept import SHARE, Kept
from hinge.blocks.prefetch import prefetched
from hinge.blocks.source import Source
from hinge.blocks.totals import Pairwise, PartTotal, Statistic, numbered_blocks
from hinge.errors import UserError


@dataclass
class Reading:
    """The passes of a fit, and the rows and bytes read.

    Attributes
    ----------
    passes : int
        Passes over the features.
    rows, bytes, seconds
        Rows and bytes of storage read in all passes together, and the time they took with what was computed meanwhile.
        Bytes are 0 where the source cannot tell.
    coded_passes, coded_bytes
        Passes over blocks that trees keep as codes, and bytes read back from the temporary files they are kept in (0 in
        memory).
    """

    passes: int = 0
    rows: int = 0
    bytes: int = 0
    seconds: float = 0.0
    coded_passes: int = 0
    coded_bytes: int = 0

    @property
    def rows_per_second(self) -> float:
        """Rows per second, over all passes."""
        return self.rows / self.seconds if self.seconds > 0 else 0.0

    def __str__(self) -> str:
        speed = f"{self.rows_per_second:,.0f} rows/s"
        if self.bytes:
            speed += f", {self.bytes / max(self.seconds, 1e-9) / 1e6:,.0f} MB/s"
        text = f"{self.passes} passes, {self.rows:,} rows, {self.bytes:,} bytes, {self.seconds:.2f} s ({speed})"
        if self.coded_passes:
            text += f"; {self.coded_passes} passes over codes, {self.coded_bytes:,} bytes from files"
        return text


class Passes:
    """The passes of one fit over one source.

    Parameters
    ----------
    keep : bool
        Whether blocks of files stay in memory between the passes, as far as they fit into an eighth of the memory allowed.
    """

    def __init__(self, source: Source, checkpoint: Checkpoint | None = None, *, keep: bool = False) -> None:
        self.source, self.checkpoint = source, checkpoint
        self.kept = Kept(source.memory_allowed // SHARE, source.memory and source.memory // SHARE) if keep else None
        self.reading = Reading()

    def close(self) -> None:
        """Drop the blocks that were kept between passes, also those of workers of a cluster."""
        if self.kept is not None:
            self.kept.clear()
            if isinstance(self.source.executor, Cluster):
                self.source.executor.release(self.kept)

    def total(self, statistic: Statistic, *parameters: Any, only_targets: bool = False, keep: bool = True) -> Any:
        """Σ statistic(block, \\*parameters) over all blocks; with ``only_targets`` the blocks have no features.

        A total that is in the checkpoint is taken from there. ``keep=False``, for totals as large as the data, bypasses it.
        """
        if self.checkpoint is None or not keep:
            return self._total(statistic, parameters, only_targets)
        key = digest(statistic.__module__, statistic.__qualname__, parameters)
        known, value = self.checkpoint.recall(key)
        if not known:
            value = self._total(statistic, parameters, only_targets)
            self.checkpoint.record(key, value)
        return value

    def _total(self, statistic: Statistic, parameters: tuple[Any, ...], only_targets: bool) -> Any:
        source, began = self.source, time.perf_counter()
        work = PartTotal(statistic, parameters, source.reader(only_targets=only_targets, kept=self.kept))
        sums = Pairwise()
        rows = read = 0
        for done, result in enumerate(source.executor.results(work, source.parts), start=1):
            sums.add(result.value)
            rows += result.rows
            read += result.bytes
            if source.progress:
                self._show(done, rows, began)
        self.count(rows, read, only_targets=only_targets)
        self.reading.seconds += time.perf_counter() - began
        if source.progress:
            print(file=sys.stderr)
        return sums.result()

    def count(self, rows: int, read: int, *, only_targets: bool = False) -> None:
        """Record a pass with its number of rows and the bytes read; raises if there were no rows."""
        if rows == 0:
            raise UserError("the source has no rows (or its filter keeps none).")
        self.reading.passes += not only_targets
        self.reading.rows += rows
        self.reading.bytes += read

    def each_block(self) -> Iterator[Block]:
        """One pass over the blocks in order, in this thread, for sequential methods."""
        source, began = self.source, time.perf_counter()
        part = -1
        for number, read, block in prefetched(numbered_blocks(source.parts, source.reader(kept=self.kept))):
            self.reading.bytes += read if number != part else 0
            self.reading.rows += block.rows
            part = number
            yield block
        self.reading.passes += 1
        self.reading.seconds += time.perf_counter() - began

    def _show(self, done: int, rows: int, began: float) -> None:
        speed = rows / max(time.perf_counter() - began, 1e-9)
        print(
            f"\rpass {self.reading.passes + 1}: {done} of {len(self.source.parts)} parts, {rows:,} rows, {speed:,.0f} rows/s",
            end="",
            file=sys.stderr,
        )
