"""Sums of statistics over blocks, added pairwise in the order of the blocks.

The tree of additions depends on the numbers of blocks alone, so that the result does not depend on threads or machines, and the
rounding error grows with the logarithm of the number of blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from hinge.blocks.block import Block, make_block
from hinge.blocks.kept import Reader
from hinge.blocks.parts import Part

Statistic = Callable[..., Any]


def merge(one: Any, two: Any) -> Any:
    """The statistic of two sets of rows together: their sum, entry by entry, or the result of their ``merge``."""
    if one is None or two is None:
        return two if one is None else one
    if hasattr(one, "merge"):
        return one.merge(two)
    if isinstance(one, tuple):
        entries = [merge(a, b) for a, b in zip(one, two, strict=True)]
        return type(one)(*entries) if hasattr(one, "_fields") else tuple(entries)
    return one + two


class Pairwise:
    """A pairwise sum of a stream: two sums of equally many terms are added as soon as both are complete."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, Any]] = []

    def add(self, value: Any) -> None:
        """Add the next term; None is ignored."""
        if value is None:
            return
        level = 0
        while self._waiting and self._waiting[-1][0] == level:
            value = merge(self._waiting.pop()[1], value)
            level += 1
        self._waiting.append((level, value))

    def result(self) -> Any:
        """The total; None if there were no terms."""
        total = None
        for _, value in reversed(self._waiting):
            total = merge(value, total)
        return total


class PartResult(NamedTuple):
    """The total over one part, and the amounts read for it."""

    value: Any
    rows: int
    blocks: int
    bytes: int = 0  # read from storage


@dataclass(frozen=True)
class PartTotal:
    """The work of one task: the total of a statistic over the blocks of one part."""

    statistic: Statistic
    parameters: tuple[Any, ...]
    reader: Reader

    def __call__(self, part: Part) -> PartResult:
        read = self.reader.bytes_to_read(part)
        return self.over(self.reader.blocks(part))._replace(bytes=read)

    def over(self, blocks: Iterable[Block]) -> PartResult:
        """The total over some blocks."""
        sums, rows, count = Pairwise(), 0, 0
        for block in blocks:
            sums.add(self.statistic(block, *self.parameters))
            rows, count = rows + block.rows, count + 1
        return PartResult(sums.result(), rows, count)

    def of_piece(self, piece: Any, where: str, number: int) -> PartResult:
        """The total over a piece in memory, as a part with one block."""
        block = make_block(piece, self.reader.roles, where, only_targets=self.reader.only_targets)
        return self.over([replace(block, key=(number, 0))] if block.rows else [])


def numbered_blocks(parts: Iterable[Part], reader: Reader) -> Iterator[tuple[int, int, Block]]:
    """All blocks of all parts, each with the number of its part and the bytes read for the part."""
    for number, part in enumerate(parts):
        read = reader.bytes_to_read(part)
        for block in reader.blocks(part):
            yield number, read, block
