"""Time: fits that end when theirs is up."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class OutOfTime(Exception):
    """The time for something is up."""


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Raise :class:`OutOfTime` inside the block when the seconds have passed.

    By an alarm of the system, which every fit notices as it notices Ctrl-C. Where there is none (Windows, threads other
    than the main one) the block runs to its end.
    """
    ours = threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")
    if not ours or not math.isfinite(seconds):
        yield
        return

    def ring(_: int, frame: Any) -> None:
        if _imports(frame):  # a module half imported would stay so
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            return
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _imports(frame: Any) -> bool:
    """Whether a module is being imported in this frame or those that called it."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
