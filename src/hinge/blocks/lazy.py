"""Polars lazy frames and Dask collections as parts of a source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from hinge.blocks.block import Piece, Roles
from hinge.blocks.parts import Part


def library_of(what: Any) -> str:
    """The package that an object's type comes from."""
    return type(what).__module__.split(".")[0]


def is_dask(what: Any) -> bool:
    """True for Dask arrays and data frames."""
    return library_of(what) == "dask" and hasattr(what, "__dask_graph__") and hasattr(what, "to_delayed")


def is_lazy_frame(what: Any) -> bool:
    """True for a LazyFrame of polars."""
    return library_of(what) == "polars" and hasattr(what, "collect_schema") and not hasattr(what, "to_arrow")


def is_dataset(what: Any) -> bool:
    """True for a dataset of pyarrow."""
    return library_of(what) == "pyarrow" and hasattr(what, "get_fragments")


@dataclass
class LazyFramePart(Part):
    """A LazyFrame, executed anew in every pass; the choice of columns is part of its query."""

    frame: Any
    chunk_rows: int

    def pieces(self, roles: Roles, *, only_targets: bool) -> Iterator[Piece]:
        query = self.frame.select(list(roles.columns(only_targets=only_targets)))
        for frame in query.collect_batches(chunk_size=self.chunk_rows, maintain_order=True):
            if frame.height:
                yield Piece(frame)


@dataclass
class DaskPart(Part):
    """One partition of Dask arrays (X, target, weight, offset) or of a Dask data frame."""

    collections: tuple[Any, ...]
    number: int

    in_cluster: ClassVar[bool] = True

    def delayed(self, roles: Roles, *, only_targets: bool) -> list[Any]:
        """The entries of a :class:`Piece` as Dask's delayed objects; None for those that are absent."""
        if roles.features is not None:
            frame = self.collections[0][list(roles.columns(only_targets=only_targets))]
            return [frame.partitions[self.number].to_delayed()[0], None, None, None]
        arrays = (None, *self.collections[1:]) if only_targets else self.collections
        return [None if a is None else a.blocks[self.number].to_delayed().ravel()[0] for a in arrays]

    def pieces(self, roles: Roles, *, only_targets: bool) -> Iterator[Piece]:
        import dask

        waiting = self.delayed(roles, only_targets=only_targets)
        known = dask.compute(*[part for part in waiting if part is not None], scheduler="synchronous")
        found = iter(known)
        yield Piece(*(None if part is None else next(found) for part in waiting))


def dask_arrays(X: Any, others: tuple[Any, ...]) -> tuple[list[Part], int]:
    """The parts and the number of columns of Dask arrays with the same chunks of rows."""
    X = X.rechunk({1: -1}) if len(X.chunks) > 1 and len(X.chunks[1]) > 1 else X
    rest = [None if a is None else _aligned(a, X, name) for a, name in zip(others, ("target", "weight", "offset"))]
    return [DaskPart(f"partition {k}", (X, *rest), k) for k in range(X.numblocks[0])], int(X.shape[1])


def _aligned(array: Any, X: Any, name: str) -> Any:
    if not is_dask(array) or not hasattr(array, "numblocks"):
        import dask.array

        array = dask.array.from_array(array)
    if array.ndim > 1 and len(array.chunks[1]) > 1:
        array = array.rechunk({1: -1})
    if array.chunks[0] != X.chunks[0]:
        if _unknown(array) or _unknown(X):
            if array.numblocks[0] != X.numblocks[0]:
                raise ValueError(f"{name} has {array.numblocks[0]} chunks of rows and X has {X.numblocks[0]}.")
            return array
        if array.shape[0] != X.shape[0]:
            raise ValueError(f"{name} has {array.shape[0]} rows and X has {X.shape[0]}.")
        array = array.rechunk({0: X.chunks[0]})
    return array


def _unknown(array: Any) -> bool:
    return any(size != size for size in array.chunks[0])


def dask_frame(frame: Any) -> list[Part]:
    """The parts of a Dask data frame."""
    return [DaskPart(f"partition {k}", (frame,), k) for k in range(frame.npartitions)]
