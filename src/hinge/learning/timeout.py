"""Time limits of fits."""

from __future__ import annotations

import _weakrefset
import math
import signal
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

WEAK_REFERENCES = {weakref.__file__, _weakrefset.__file__}


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
        if _must_not_raise(frame):  # try again later
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


def _must_not_raise(frame: Any) -> bool:
    """Whether an exception in this frame would leave a module half imported, or be lost.

    Python prints and drops what is raised in ``__del__`` and in callbacks of weak references.
    """
    while frame is not None:
        code = frame.f_code
        if code.co_name == "__del__" or code.co_filename.startswith("<frozen importlib"):
            return True
        if code.co_filename in WEAK_REFERENCES:
            return True
        frame = frame.f_back
    return False
