"""Time limits of fits."""

from __future__ import annotations

import _weakrefset
import math
import signal
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

MOMENT = 0.05  # seconds that a step gets even if it is late
WEAK_REFERENCES = {weakref.__file__, _weakrefset.__file__}


class OutOfTime(BaseException):
    """Raised by :func:`limit` when its time has passed.

    Like KeyboardInterrupt it is no Exception: it may come anywhere, and what is caught as an error of the code that it
    interrupts would be taken for one (scikit-learn's ``available_if`` says then that a method is missing).
    """


class Deadline:
    """What is left of a number of seconds."""

    def __init__(self, seconds: float) -> None:
        self.end = time.perf_counter() + seconds

    def left(self) -> float:
        return max(self.end - time.perf_counter(), 0.0)

    def share(self, part: float) -> float:
        """A part of what is left, at least a moment."""
        return max(part * self.left(), MOMENT)

    @contextmanager
    def during(self, part: float) -> Iterator[float]:
        """A block that ends when this part of what is left has passed, with what it did until then."""
        seconds = self.share(part)
        try:
            with limit(seconds):
                yield seconds
        except OutOfTime:
            pass


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
