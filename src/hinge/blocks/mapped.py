"""Sources whose features are the output of a fitted transformer, block by block."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from sklearn.utils import get_tags

from hinge.blocks.block import Block, Roles, require_columns
from hinge.blocks.parts import Part
from hinge.errors import UserError


def reads_text(transformer: Any) -> bool:
    """Whether a transformer takes texts rather than a table."""
    tags = get_tags(transformer).input_tags
    return bool(tags.string and not tags.two_d_array)


@dataclass
class MappedPart(Part):
    """A part with transformed features."""

    part: Part
    transformer: Any
    plain: Any  # the same transformer for arrays, whose columns are known to be in order
    given: Roles
    column: str | None

    worth_keeping: ClassVar[bool] = True

    def blocks(self, roles: Roles, block_rows: int | None, *, only_targets: bool = False) -> Iterator[Block]:
        for block in self.part.blocks(self.given, block_rows, only_targets=only_targets):
            if only_targets:
                yield replace(block, names=None)
                continue
            X = self._transformed(block)
            yield Block(block.rows, block.where, block.y, block.weight, block.offset, matrix=X, key=block.key)

    def _transformed(self, block: Block) -> Any:
        if self.column is not None:
            if block.frame is None:
                raise UserError(f"{block.where}: column {self.column!r} holds numbers; its transformer needs text.")
            return self.transformer.transform(block.frame[self.column].to_list())
        if block.frame is not None:
            return self.transformer.transform(block.frame.to_native())
        return self.plain.transform(block.X)

    @property
    def row_count(self) -> int | None:
        return self.part.row_count

    def require_unchanged(self) -> None:
        self.part.require_unchanged()

    def stored_bytes(self, roles: Roles, *, only_targets: bool) -> int:
        return self.part.stored_bytes(self.given, only_targets=only_targets)


def mapped_parts(parts: list[Part], transformer: Any, roles: Roles, column: str | None) -> list[Part]:
    """The parts of a mapped source; the transformer gets the columns it was fitted to, in their order."""
    if any(part.in_cluster for part in parts):
        raise TypeError("Dask collections are mapped by Dask: use their map_partitions or map_blocks.")
    plain, names = copy.copy(transformer), getattr(transformer, "feature_names_in_", None)
    vars(plain).pop("feature_names_in_", None)
    if column is None and reads_text(transformer):
        if names is None:
            raise UserError(f"{type(transformer).__name__} reads one column of texts: name it, map(…, column=…).")
        column = str(names[0])
    wanted = [column] if column is not None else roles.features if names is None else [str(name) for name in names]
    if roles.features is not None and wanted is not None:
        require_columns(roles.features, wanted, "the source")
        roles = replace(roles, features=tuple(wanted))
    out: list[Part] = []
    for number, part in enumerate(parts):
        mapped = MappedPart(part.where, part, transformer, plain, roles, column)
        mapped.number = number
        out.append(mapped)
    return out
