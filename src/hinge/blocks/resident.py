"""States of blocks that stay where they are between passes: in memory, in files, or with the workers of a cluster.

A state is made from a block once and then visited by function after function, each of which may change it. Its ``version``
tells a function whether it has been there before: a task that a cluster computes again changes nothing twice.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hinge.blocks.block import Block
from hinge.blocks.executors import Cluster
from hinge.blocks.passes import Passes
from hinge.blocks.prefetch import prefetched
from hinge.blocks.spool import Folder
from hinge.blocks.totals import Pairwise, PartTotal, merge

Visit = Callable[..., Any]


@dataclass
class Stored:
    """A state in two files: what never changes, and what does (the result of the state's ``moving``)."""

    path: Path
    rows: int

    @classmethod
    def new(cls, path: Path, state: Any) -> Stored:
        """Files for a state that is new."""
        place = cls(path, len(state))
        place._write(path.with_suffix(".fixed"), state)
        place.save(state)
        return place

    def load(self) -> Any:
        """The state."""
        with self.path.with_suffix(".fixed").open("rb") as file:
            state = pickle.load(file)
        with self.path.open("rb") as file:
            vars(state).update(pickle.load(file))
        return state

    def save(self, state: Any) -> None:
        """Store what has changed."""
        self._write(self.path, state.moving())

    @property
    def size(self) -> int:
        """Bytes of both files."""
        return self.path.stat().st_size + self.path.with_suffix(".fixed").stat().st_size

    def __len__(self) -> int:
        return self.rows

    def remove(self) -> None:
        """Remove both files."""
        self.path.unlink()
        self.path.with_suffix(".fixed").unlink()

    @staticmethod
    def _write(path: Path, value: Any) -> None:
        partial = path.with_name(path.name + ".part")
        with partial.open("wb") as file:
            pickle.dump(value, file, protocol=5)
        partial.replace(path)


@dataclass
class Made:
    """States in order, and the sum of what their making found."""

    states: list[Any]
    found: Any

    def merge(self, other: Made) -> Made:
        """Those of both."""
        return Made(self.states + other.states, merge(self.found, other.found))


def make(block: Block, folder: Path | None, build: Visit, parameters: tuple[Any, ...]) -> Made | None:
    """The statistic of the pass that makes states: build(block, \\*parameters) gives a state, or None, and what it found."""
    state, found = build(block, *parameters)
    if state is None:
        return Made([], found)
    if folder is None:
        return Made([state], found)
    return Made([Stored.new(folder / f"{block.key[0]:08d}-{block.key[1]:08d}.state", state)], found)


def _visit(state: Any, visit: Visit, parameters: tuple[Any, ...]) -> Any:
    """The result of one visit; a stored state that has changed is saved."""
    if not isinstance(state, Stored):
        return visit(state, *parameters)
    return _visit_loaded(state, state.load(), visit, parameters)


def _visit_loaded(place: Stored, held: Any, visit: Visit, parameters: tuple[Any, ...]) -> Any:
    before = held.version
    result = visit(held, *parameters)
    if held.version != before:
        place.save(held)
    return result


def _visit_all(result: Any, visit: Visit, parameters: tuple[Any, ...]) -> tuple[Any, Any]:
    """The task of a cluster: visits the states of one part, and gives them back with the sum of the results."""
    made = getattr(result, "value", result)
    sums = Pairwise()
    for state in made.states if made is not None else ():
        sums.add(_visit(state, visit, parameters))
    return made, sums.result()


def _visit_sum(result: Any, visit: Visit, parameters: tuple[Any, ...]) -> Any:
    return _visit_all(result, visit, parameters)[1]


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def _second(pair: tuple[Any, Any]) -> Any:
    return pair[1]


def _found(result: Any) -> tuple[Any, int]:
    return (None if result.value is None else result.value.found), result.rows


class Resident:
    """The states of all blocks of a source.

    Parameters
    ----------
    stored : bool
        Keep them in files of a temporary folder, and read them one by one, instead of in memory. On a cluster they are
        with the workers, which make them again where they are lost.
    """

    def __init__(self, passes: Passes, build: Visit, *parameters: Any, stored: bool) -> None:
        self.executor = passes.source.executor
        self.folder = Folder() if stored and not isinstance(self.executor, Cluster) else None
        arguments = (None if self.folder is None else self.folder.path, build, parameters)
        self.passes = self.bytes = 0  # over the states, and read from their files
        if isinstance(self.executor, Cluster):
            source = passes.source
            work = PartTotal(make, arguments, source.roles, source.block_rows, False)
            self.states: list[Any] = self.executor.submit_all(work, source.parts)
            found = self.executor.gather([self.executor.then(_found, part) for part in self.states])
            sums = Pairwise()
            for value, _ in found:
                sums.add(value)
            passes.count(sum(rows for _, rows in found))
            self.found = sums.result()
            return
        made = passes.total(make, *arguments, keep=False)
        self.states, self.found = made.states, made.found

    def regroup(self, rows: int, join: Callable[[list[Any]], Any]) -> None:
        """Joins consecutive states until each has about ``rows`` rows; those of a cluster stay as they are."""
        if isinstance(self.executor, Cluster):
            return
        old, self.states, group = self.states, [], []
        for k, state in enumerate(old):
            group.append(state)
            if k + 1 < len(old) and sum(map(len, group)) + len(old[k + 1]) <= rows:
                continue
            self.states.append(self._joined(group, join) if len(group) > 1 else group[0])
            group = []

    def _joined(self, group: list[Any], join: Callable[[list[Any]], Any]) -> Any:
        if not isinstance(group[0], Stored):
            return join(group)
        whole = join([place.load() for place in group])
        for place in group:
            place.remove()
        return Stored.new(group[0].path, whole)

    def visit(self, function: Visit, *parameters: Any, changes: bool = False) -> Any:
        """Σ function(state, \\*parameters) over all states, in the order of the blocks; ``changes``: it changes them."""
        self.passes += 1
        sums = Pairwise()
        for result in self._results(function, parameters, changes):
            sums.add(result)
        return sums.result()

    def _results(self, function: Visit, parameters: tuple[Any, ...], changes: bool) -> Iterator[Any]:
        if isinstance(self.executor, Cluster):
            if not changes:
                tasks = [self.executor.then(_visit_sum, part, function, parameters) for part in self.states]
                yield from self.executor.gather(tasks)
                return
            pairs = [self.executor.then(_visit_all, part, function, parameters) for part in self.states]
            results = [self.executor.then(_second, pair) for pair in pairs]
            self.states = [self.executor.then(_first, pair) for pair in pairs]
            yield from self.executor.gather(results)
            return
        if self.executor.workers > 1:
            with ThreadPoolExecutor(self.executor.workers, thread_name_prefix="hinge-block") as pool:
                yield from pool.map(lambda state: _visit(state, function, parameters), self.states)
            return
        if self.folder is None:
            for state in self.states:
                yield function(state, *parameters)
            return
        for place, held in prefetched((place, place.load()) for place in self.states):
            self.bytes += place.size
            yield _visit_loaded(place, held, function, parameters)
