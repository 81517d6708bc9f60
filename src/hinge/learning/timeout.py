"""Time limits of fits."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class OutOfTime(Exception):
    """Raised by :func:`limit` when its time has passed."""


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Raise :class:`OutOfTime` inside the block when the seconds have passed.

    The limit is a SIGALRM, which interrupts a fit like Ctrl-C. Without signals (Windows, threads other than the main one)
    the block runs to its end.
    """
    can_signal = threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")
    if not can_signal or not math.isfinite(seconds):
        yield
        return

    def on_alarm(_: int, frame: Any) -> None:
        if _imports(frame):  # an interrupted import would leave a half-initialised module: try again later
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            return
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, on_alarm)
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
