"""A pytest plugin of tools/mutants.py: the processor time of every test, and an end to tests that take too much of it.

Processor time, because a busy machine must change neither the tests that are chosen nor their fate.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Generator
from types import FrameType
from typing import Any

import pytest

MOST = 4.0  # seconds; quicker tests are chosen first, so that longer ones are hardly ever run


class TooLong(Exception):
    pass


def _stop(_: int, frame: FrameType | None) -> None:
    file = frame.f_code.co_filename if frame else ""
    if "/hinge/" not in file and "/tests/" not in file:
        signal.setitimer(signal.ITIMER_PROF, 0.01)  # others may hold a lock that an exception would leave locked
        return
    raise TooLong(f"the test took more than {MOST} s of processor time")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    before = signal.signal(signal.SIGPROF, _stop)
    started = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, MOST)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)
        item.user_properties.append(("seconds", round(time.process_time() - started, 4)))
