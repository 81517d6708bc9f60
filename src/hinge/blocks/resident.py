"""States of blocks that persist between passes: in memory, in files, or with the workers of a cluster.

A state is a set of named arrays, some of which may be in files. It is computed from a block once; then functions visit it, each of
which may change it. A function compares the ``version`` of the state, so that a task which a cluster recomputes does not apply a
change twice.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hinge.blocks.block import Block
from hinge.blocks.executors import Cluster
from hinge.blocks.passes import Passes
from hinge.blocks.prefetch import prefetched
from hinge.blocks.spool import Folder
from hinge.blocks.totals import Pairwise, PartTotal, merge

Visit = Callable[..., Any]
AHEAD = 3  # sets of arrays in memory: one in use, one ready, one being read


class SpoolFile:
    """A temporary file to which arrays are appended; it is opened once."""

    def __init__(self, path: Path) -> None:
        self.path, self.size = path, 0
        self._file = path.open("w+b", buffering=0)
        self._lock = threading.Lock()  # threads share the position in the file
        weakref.finalize(self, self._file.close)

    def append(self, array: np.ndarray) -> int:
        """Append the bytes of an array; returns their offset."""
        with self._lock:
            at, self.size = self.size, self.size + array.nbytes
        self.write(at, array)
        return at

    def write(self, at: int, array: np.ndarray) -> None:
        """Write the bytes of an array."""
        view = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        with self._lock:
            self._file.seek(at)
            while len(view):
                view = view[self._file.write(view) :]

    def read(self, at: int, target: np.ndarray) -> None:
        """Fill an array of bytes."""
        view = target.data
        with self._lock:
            self._file.seek(at)
            while len(view):
                done = self._file.readinto(view)
                if not done:
                    raise OSError(f"{self.path} is shorter than it was written; was the temporary folder cleared?")
                view = view[done:]


@dataclass
class ArrayFile:
    """An array in a file."""

    file: SpoolFile
    at: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, file: SpoolFile, array: np.ndarray) -> ArrayFile:
        """An array, written to a file."""
        return cls(file, file.append(array), array.shape, array.dtype)

    def replaced(self, array: np.ndarray) -> ArrayFile:
        """Replace the array, in the same place if the size is the same."""
        if array.nbytes != self.nbytes:
            return ArrayFile.of(self.file, array)
        self.file.write(self.at, array)
        return ArrayFile(self.file, self.at, array.shape, array.dtype)

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def read(self, room: np.ndarray | None = None) -> np.ndarray:
        """The array, read into the buffer ``room`` if that is large enough."""
        size = self.nbytes
        target = np.empty(size, dtype=np.uint8) if room is None or len(room) < size else room[:size]
        self.file.read(self.at, target)
        return target.view(self.dtype).reshape(self.shape)


class SpoolFiles(Folder):
    """A temporary folder with a file for the arrays of every name."""

    def __init__(self) -> None:
        super().__init__()
        self._files: dict[str, SpoolFile] = {}
        self._lock = threading.Lock()

    def __getitem__(self, name: str) -> SpoolFile:
        with self._lock:
            if name not in self._files:
                self._files[name] = SpoolFile(self.path / name)
            return self._files[name]


@dataclass
class State:
    """Named arrays of one block; those named in ``filed`` are kept in ``files``."""

    key: tuple[int, int]
    arrays: dict[str, Any]
    files: SpoolFiles | None = None
    filed: frozenset[str] = frozenset()
    version: int = 0

    def get(self, name: str, room: np.ndarray | None = None) -> Any:
        """An array; None if there is none of that name."""
        held = self.arrays.get(name)
        return held.read(room) if isinstance(held, ArrayFile) else held

    def put(self, name: str, array: Any) -> None:
        """Store an array, replacing an earlier one."""
        if array is not None and self.files is not None and name in self.filed:
            held = self.arrays.get(name)
            array = held.replaced(array) if isinstance(held, ArrayFile) else ArrayFile.of(self.files[name], array)
        self.arrays[name] = array

    def put_all(self, files: SpoolFiles | None, filed: frozenset[str]) -> None:
        """Move the arrays that belong in files there."""
        self.files, self.filed = files, filed
        for name in filed & self.arrays.keys():
            self.put(name, self.arrays[name])


class Rooms:
    """Buffers for the arrays that are read ahead, used in turn, so that memory is allocated once."""

    def __init__(self) -> None:
        self._turn = 0
        self._rooms: dict[tuple[int, str], np.ndarray] = {}
        self.bytes = 0

    def load(self, state: State, names: Sequence[str]) -> dict[str, Any]:
        """Some arrays of a state; they stay valid during the next AHEAD − 1 calls."""
        self._turn = (self._turn + 1) % AHEAD
        found: dict[str, Any] = {}
        for name in names:
            held = state.arrays.get(name)
            if isinstance(held, ArrayFile):
                room = self._rooms.get((self._turn, name))
                if room is None or len(room) < held.nbytes:
                    room = self._rooms[self._turn, name] = np.empty(held.nbytes, dtype=np.uint8)
                found[name] = held.read(room)
                self.bytes += held.nbytes
            else:
                found[name] = held
        return found


@dataclass
class Made:
    """States in order, and the sum of the statistics of their construction."""

    states: list[State]
    found: Any

    def merge(self, other: Made) -> Made:
        """Those of both."""
        return Made(self.states + other.states, merge(self.found, other.found))


def make(
    block: Block, files: SpoolFiles | None, filed: frozenset[str], build: Visit, parameters: tuple[Any, ...]
) -> Made | None:
    """The statistic of the pass that makes states: build(block, \\*parameters) returns a state, or None, and a statistic."""
    state, found = build(block, *parameters)
    if state is None:
        return Made([], found)
    state.put_all(files, filed)
    return Made([state], found)


@dataclass(frozen=True, eq=False)
class Tour:
    """Sequential visits of some states by function(state, arrays, \\*parameters) or, if ``start`` makes an accumulator, by
    function(state, arrays, sums, \\*parameters)."""

    function: Visit
    needs: Sequence[str]
    parameters: tuple[Any, ...]
    start: Callable[[], Any] | None = None

    def over(self, loaded: Iterator[tuple[State, dict[str, Any]]]) -> Any:
        """The sum of the results, or the result of the accumulator."""
        if self.start is None:
            sums = Pairwise()
            for state, arrays in loaded:
                sums.add(self.function(state, arrays, *self.parameters))
                del state, arrays
            return sums.result()
        kept = self.start()
        for state, arrays in loaded:
            self.function(state, arrays, kept, *self.parameters)
            del state, arrays
        return kept.result()

    def of_states(self, states: Sequence[State] | Iterator[State]) -> Any:
        """As :meth:`over`, with arrays read when they are needed."""
        return self.over((state, {name: state.get(name) for name in self.needs}) for state in states)


def _visit_all(result: Any, tour: Tour) -> tuple[Any, Any]:
    """The task of a cluster: visits the states of one part, and returns them with the sum of the results."""
    made = getattr(result, "value", result)
    return made, tour.of_states(made.states if made is not None else [])


def _visit_sum(result: Any, tour: Tour) -> Any:
    return _visit_all(result, tour)[1]


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def _second(pair: tuple[Any, Any]) -> Any:
    return pair[1]


def _found(result: Any) -> tuple[Any, int, int]:
    return (None if result.value is None else result.value.found), result.rows, result.bytes


class Resident:
    """The states of all blocks of a source.

    Parameters
    ----------
    filed : names
        Which arrays are kept in files of a temporary folder, and read block by block. On a cluster all are with the workers,
        which make them again where they are lost.
    """

    def __init__(self, passes: Passes, build: Visit, *parameters: Any, filed: frozenset[str]) -> None:
        self.executor, self.progress = passes.source.executor, passes.source.progress
        on_cluster = isinstance(self.executor, Cluster)
        self.filed = frozenset() if on_cluster else filed
        self.files = SpoolFiles() if self.filed else None
        arguments = (self.files, self.filed, build, parameters)
        self.passes = self.bytes = 0  # passes over the states, and bytes read from their files
        self.rooms = Rooms()
        if isinstance(self.executor, Cluster):
            source = passes.source
            work = PartTotal(make, arguments, source.reader())
            self.states: list[Any] = self.executor.submit_all(work, source.parts)
            found = self.executor.gather([self.executor.then(_found, part) for part in self.states])
            sums = Pairwise()
            for value, _, _ in found:
                sums.add(value)
            passes.count(sum(rows for _, rows, _ in found), sum(read for _, _, read in found))
            self.found = sums.result()
            return
        made = passes.total(make, *arguments, keep=False)
        self.states, self.found = made.states, made.found

    def regroup(self, rows: int, join: Callable[[list[Any]], Any]) -> None:
        """Join consecutive states until each has about ``rows`` rows; states of a cluster are not joined."""
        if isinstance(self.executor, Cluster):
            return
        old, self.states, group = self.states, [], []
        files = (
            None if self.files is None else SpoolFiles()
        )  # the old files are removed with the last state that uses them
        for k, state in enumerate(old):
            group.append(state)
            if k + 1 < len(old) and sum(map(len, group)) + len(old[k + 1]) <= rows:
                continue
            if len(group) > 1:
                group = [join(group)]
                group[0].put_all(files, self.filed)
            self.states += group
            group = []

    def visit(
        self, function: Visit, needs: Sequence[str], *parameters: Any, start: Callable[[], Any] | None = None,
        changes: bool = False,
    ) -> Any:  # fmt: skip
        """Σ function(state, arrays, \\*parameters) over all states, in the order of the blocks.

        ``needs``: the names of the arrays. ``start`` makes an accumulator for integer sums, whose order does not matter:
        function(state, arrays, sums, \\*parameters) adds to it, and its result() can be summed. ``changes``: the function
        changes the states, so that workers of a cluster must store the new ones.
        """
        self.passes += 1
        tour = Tour(function, needs, parameters, start)
        if isinstance(self.executor, Cluster):
            return self._on_cluster(self.executor, tour, changes)
        if self.executor.workers > 1:
            return self._by_threads(self.executor.workers, tour)
        if self.files is None:
            return tour.of_states(self.states)
        before = self.rooms.bytes
        total = tour.over(prefetched((state, self.rooms.load(state, needs)) for state in self.states))
        self.bytes += self.rooms.bytes - before
        return total

    def _by_threads(self, workers: int, tour: Tour) -> Any:
        sums = Pairwise()
        with ThreadPoolExecutor(workers, thread_name_prefix="hinge-block") as pool:
            if tour.start is None:
                for result in pool.map(lambda state: tour.of_states([state]), self.states):
                    sums.add(result)
            else:
                waiting, lock = iter(self.states), threading.Lock()

                def shared() -> Iterator[State]:
                    while True:
                        with lock:
                            state = next(waiting, None)
                        if state is None:
                            return
                        yield state

                for job in [pool.submit(tour.of_states, shared()) for _ in range(workers)]:
                    sums.add(job.result())
        self.bytes += sum(
            held.nbytes
            for state in self.states
            for name in tour.needs
            if isinstance(held := state.arrays.get(name), ArrayFile)
        )
        return sums.result()

    def _on_cluster(self, cluster: Cluster, tour: Tour, changes: bool) -> Any:
        if changes:
            pairs = [cluster.then(_visit_all, part, tour) for part in self.states]
            tasks = [cluster.then(_second, pair) for pair in pairs]
            self.states = [cluster.then(_first, pair) for pair in pairs]
        else:
            tasks = [cluster.then(_visit_sum, part, tour) for part in self.states]
        sums = Pairwise()
        for result in cluster.gather(tasks):
            sums.add(result)
        return sums.result()
