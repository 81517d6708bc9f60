"""The cost of a parallel loop, and the smallest one worth sharing.

    python -m benchmarks.pool [--threads 1 2 4 8 16]

For every number of threads: microseconds of a ``parallel_for`` with one empty part per thread, the same after a pause
that lets the workers fall asleep, and the smallest work (microseconds on one thread) that two or more threads finish in
less time.
"""

from __future__ import annotations

import argparse
import time

import hinge as hg
from hinge._native import core


def call_cost(threads: int) -> float:
    """Seconds of a loop without work."""
    hg.set_num_threads(threads)
    return min(core.time_parallel_for(threads, 0, 2000) for _ in range(5))


def cold_cost(threads: int) -> float:
    """Seconds of a loop without work whose workers sleep."""
    hg.set_num_threads(threads)
    core.time_parallel_for(threads, 0, 10)
    found = []
    for _ in range(20):
        time.sleep(0.005)
        began = time.perf_counter()
        core.time_parallel_for(threads, 0, 0)  # fifty calls, the first of which wakes the workers
        found.append(time.perf_counter() - began)
    return sorted(found)[len(found) // 2] - 50 * call_cost(threads)


def worth_sharing(threads: int) -> float:
    """The least seconds of work, on one thread, that the pool finishes sooner; nan if none up to 1 ms."""
    for work in (2**k for k in range(2, 18)):
        hg.set_num_threads(1)
        alone = min(core.time_parallel_for(threads, work, 200) for _ in range(3))
        hg.set_num_threads(threads)
        if min(core.time_parallel_for(threads, work, 200) for _ in range(3)) < 0.9 * alone:
            return alone
    return float("nan")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pool", description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=sorted({1, 2, 4, 8, 16, hg.num_threads()}))
    most = hg.num_threads()
    counts = [t for t in parser.parse_args(arguments).threads if t <= most]
    print("threads   call µs   asleep µs   worth sharing µs")
    for threads in counts:
        shared = 1e6 * worth_sharing(threads) if threads > 1 else float("nan")
        asleep = 1e6 * cold_cost(threads) if threads > 1 else 0.0
        print(f"{threads:7d} {1e6 * call_cost(threads):9.2f} {asleep:11.1f} {shared:18.1f}")


if __name__ == "__main__":
    main()
