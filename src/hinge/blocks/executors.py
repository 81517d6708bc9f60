"""Executors of the statistics of blocks: this thread, a pool of threads, or the workers of a Dask client.

An executor yields the results of the parts in their order. The results have the same bits with every executor.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from hinge.blocks.kept import Kept, choose_homes, forget
from hinge.blocks.parts import Part, Stream
from hinge.blocks.prefetch import prefetched
from hinge.blocks.totals import Pairwise, PartResult, PartTotal, numbered_blocks

ALONE = 20.0  # seconds without a worker before a fit on a cluster gives up


class Serial:
    """This thread, while another one reads the next block."""

    workers = 1

    def results(self, work: PartTotal, parts: Sequence[Part]) -> Iterator[PartResult]:
        """The result of every part that has rows, in order."""
        current, read, sums, rows, blocks = -1, 0, Pairwise(), 0, 0
        for number, to_read, block in prefetched(numbered_blocks(parts, work.reader)):
            if number != current and blocks:
                yield PartResult(sums.result(), rows, blocks, read)
                sums, rows, blocks = Pairwise(), 0, 0
            current, read = number, to_read
            sums.add(work.statistic(block, *work.parameters))
            rows, blocks = rows + block.rows, blocks + 1
            del block
        if blocks:
            yield PartResult(sums.result(), rows, blocks, read)


class Threads:
    """A pool of threads, each of which works on one part at a time."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def results(self, work: PartTotal, parts: Sequence[Part]) -> Iterator[PartResult]:
        """The result of every part, in order; at most two parts per thread are in progress."""
        pool = ThreadPoolExecutor(self.workers, thread_name_prefix="hinge-block")
        waiting: deque[Future[PartResult]] = deque()
        try:
            for part in parts:
                waiting.append(pool.submit(work, part))
                if len(waiting) >= 2 * self.workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
            pool.shutdown(wait=True, cancel_futures=True)


class Cluster:
    """The workers of a Dask client. A task that is lost with its worker is recomputed, at most three times."""

    retries = 3

    def __init__(self, client: Any) -> None:
        self.client = client

    @property
    def workers(self) -> int:
        """The current number of workers."""
        return len(self.client.scheduler_info(n_workers=-1)["workers"])

    def results(self, work: PartTotal, parts: Sequence[Part]) -> Iterator[PartResult]:
        """The result of every part, in order."""
        window = max(8, 4 * self.workers)
        if work.reader.kept is not None:
            choose_homes(work.reader.kept.homes, parts, self._slots())
        waiting: deque[tuple[str, Any]] = deque()
        try:
            for part in parts:
                waiting.append((part.where, self._submit(work, part)))
                if len(waiting) >= window:
                    yield from self._next_results(waiting)
            while waiting:
                yield from self._next_results(waiting)
        finally:
            for _, future in waiting:
                if hasattr(future, "cancel"):
                    future.cancel()

    def _next_results(self, waiting: deque[tuple[str, Any]]) -> list[PartResult]:
        """The result of the first task, and those of the finished tasks behind it, in one message from the cluster."""
        tasks = [waiting.popleft()]
        self._wait(*tasks[0])
        while waiting and getattr(waiting[0][1], "status", "") == "finished":
            tasks.append(waiting.popleft())
        if len(tasks) > 1:
            found = self.client.gather([future for _, future in tasks], errors="skip")
            if len(found) == len(tasks):
                return found
        return [self._result(where, future) for where, future in tasks]

    def release(self, kept: Kept) -> None:
        """Have the workers drop the blocks of a fit; not waited for."""
        if self.client.status == "running":
            self.client.run(forget, kept.token, wait=False, on_error="ignore")

    def submit_all(self, work: PartTotal, parts: Sequence[Part]) -> list[Any]:
        """Tasks for all parts, whose results stay with the workers."""
        return [self._submit(work, part) for part in parts]

    def then(self, function: Any, task: Any, *arguments: Any) -> Any:
        """A task on the result of another one; lost results are recomputed from the start."""
        return self.client.submit(function, task, *arguments, pure=False, retries=self.retries)

    def gather(self, tasks: Sequence[Any]) -> list[Any]:
        """The results of tasks, in order."""
        return [self._result("the blocks", task) for task in tasks]

    def _submit(self, work: PartTotal, part: Part) -> Any:
        if isinstance(part, Stream):  # a user's function, whose blocks are counted in this process
            return work(part)
        if part.in_cluster:
            import dask

            piece = part.delayed(work.reader.roles, only_targets=work.reader.only_targets)  # type: ignore[attr-defined]
            task = dask.delayed(_of_piece, pure=False)(work, part.where, part.number, *piece)
            return self.client.compute(task, retries=self.retries)
        home = None if work.reader.kept is None else work.reader.kept.homes.get(part.number)
        place = {} if home is None else {"workers": [home], "allow_other_workers": True}
        return self.client.submit(work, part, pure=False, retries=self.retries, **place)

    def _slots(self) -> list[str]:
        """The address of each worker, once for each of its threads."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"]
        most = max((worker["nthreads"] for worker in workers.values()), default=0)
        return [address for k in range(most) for address, worker in workers.items() if worker["nthreads"] > k]

    def _wait(self, where: str, future: Any) -> None:
        """Wait until a task ends; raises if there is no worker to compute it."""
        if isinstance(future, PartResult):
            return
        from distributed import wait

        alone_since: float | None = None
        while future.status == "pending":
            try:
                wait(future, timeout=1.0)
            except TimeoutError:
                now = time.monotonic()
                if self.client.status == "running" and self.workers:
                    alone_since = None
                    continue
                alone_since = now if alone_since is None else alone_since
                if now - alone_since > ALONE:
                    raise RuntimeError(
                        f"The Dask cluster has had no worker for {ALONE:g} s, so {where} cannot be computed. Start "
                        "workers and fit again."
                    ) from None

    def _result(self, where: str, future: Any) -> Any:
        """The result of a task; raises if it fails, or if there is no worker to compute it."""
        self._wait(where, future)
        if isinstance(future, PartResult):
            return future
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        try:
            return future.result()
        except KilledWorker as error:
            raise RuntimeError(
                f"Dask workers died {self.retries} times and more while they computed {where}; they may have too little "
                "memory: pass fewer rows per block to hg.scan(…, block_rows=)."
            ) from error
        except FutureCancelledError as error:
            raise RuntimeError(f"The Dask cluster dropped the computation of {where}: {error}") from error


def _of_piece(work: PartTotal, where: str, number: int, *piece: Any) -> PartResult:
    from hinge.blocks.block import Piece

    return work.of_piece(Piece(*piece), where, number)


Executor = Serial | Threads | Cluster


def as_executor(executor: Any) -> Executor:
    """None for this thread, a number of threads, or a Dask client."""
    if executor is None:
        return Serial()
    if isinstance(executor, Serial | Threads | Cluster):
        return executor
    if isinstance(executor, int) and not isinstance(executor, bool) and executor >= 1:
        return Serial() if executor == 1 else Threads(executor)
    if hasattr(executor, "scheduler_info") and hasattr(executor, "submit"):
        return Cluster(executor)
    raise TypeError(f"executor must be None, a number of threads, or a Dask client; got {executor!r}.")
