"""What the machine can do at best: the ceilings that the physical floors of the tasks are computed from."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np


def pin_threads(threads: int) -> None:
    """Set the number of threads of every library still to be imported. Call before NumPy is."""
    for name in ("OMP", "OPENBLAS", "MKL", "NUMBA", "NUMEXPR", "VECLIB"):
        os.environ[f"{name}_NUM_THREADS"] = str(threads)


def cpu_name() -> str:
    """The processor as the operating system names it."""
    try:
        with open("/proc/cpuinfo") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


@dataclass(frozen=True)
class Ceilings:
    """Measured peaks: bytes read per second through gemv, float operations per second through gemm."""

    bandwidth: float
    dgemm: float
    sgemm: float

    def as_dict(self) -> dict[str, float]:
        return asdict(self)


def best_of(run: Callable[[], object], repeats: int = 10) -> float:
    """Shortest time of a few runs, after one that warms up: the ceiling, not the typical case."""
    run()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def measure_ceilings(megabytes: int = 160, order: int = 2000) -> Ceilings:
    """Read a matrix much larger than the caches through gemv, and multiply square matrices."""
    rows = megabytes * 1_000_000 // (8 * 100)
    tall = np.ones((rows, 100))
    vector = np.ones(100)
    seconds = best_of(lambda: tall @ vector)
    bandwidth = tall.nbytes / seconds
    peaks = []
    for dtype in (np.float64, np.float32):
        square = np.ones((order, order), dtype=dtype)
        peaks.append(2.0 * order**3 / best_of(lambda square=square: square @ square, repeats=5))
    return Ceilings(bandwidth, *peaks)


@dataclass(frozen=True)
class Work:
    """Work no algorithm for the task avoids (or, where the note says so, the least any known one does).

    Parameters
    ----------
    bytes : data that must come from memory.
    flops : float operations at gemm's rate, in ``precision``.
    note : what the two numbers stand for, in a few words.
    """

    bytes: float
    flops: float = 0.0
    note: str = "read X once"
    precision: str = "float64"

    def seconds(self, ceilings: Ceilings) -> float:
        peak = ceilings.dgemm if self.precision == "float64" else ceilings.sgemm
        return self.bytes / ceilings.bandwidth + self.flops / peak
