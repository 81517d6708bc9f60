"""Time and memory of one call."""

from __future__ import annotations

import ctypes
import gc
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Spread:
    """Median and range of repeated timings, in seconds."""

    times: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    def as_dict(self) -> dict[str, Any]:
        return {"median": self.median, "min": min(self.times), "max": max(self.times), "times": list(self.times)}


def seconds_of(call: Callable[[], Any]) -> tuple[float, Any]:
    """Wall time of a call, and what it returned; garbage is collected before, not during."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        start = time.perf_counter()
        value = call()
        return time.perf_counter() - start, value
    finally:
        if enabled:
            gc.enable()


def _status(field: str) -> int:
    with open("/proc/self/status") as lines:
        for line in lines:
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    raise OSError(f"no {field} in /proc/self/status")


def _reset_peak() -> bool:
    """Make the kernel's record of the peak resident size start afresh (Linux only)."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
        with open("/proc/self/clear_refs", "w") as refs:
            refs.write("5")
    except (OSError, AttributeError):
        return False
    return True


def peak_extra_memory(call: Callable[[], Any]) -> tuple[int, Any]:
    """Bytes by which the resident size rose above its value before the call, at the worst moment of it.

    The kernel keeps the record, so memory held for an instant inside native code that never lets go of the
    interpreter is seen too. Where the record cannot be reset, the growth of the process's all-time peak is a lower
    bound and is what is returned.
    """
    gc.collect()
    if _reset_peak():
        before = _status("VmRSS")
        value = call()
        return max(0, _status("VmHWM") - before), value
    unit = 1024
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    value = call()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit, value


def repeats_for(seconds: float, repeats: int, long: float = 10.0, short: float = 0.1) -> int:
    """How often to time something that took ``seconds``: once when long, more often than ``repeats`` when very short."""
    if seconds > long:
        return 1
    return max(repeats, 7) if seconds < short else repeats
