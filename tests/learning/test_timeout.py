"""Limits on time end a fit, wherever the alarm finds it."""

from __future__ import annotations

import gc
import time
import weakref

import pytest

from hinge.learning.timeout import OutOfTime, limit


class Slow:
    """Takes its time where exceptions are dropped."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __del__(self) -> None:
        end = time.monotonic() + self.seconds
        while time.monotonic() < end:
            pass


def _drop_in_del() -> None:
    thing = Slow(0.1)
    del thing


def _drop_in_a_callback() -> None:
    class Key:
        pass

    slow, keys = Slow(0.1), weakref.WeakKeyDictionary()
    key = Key()
    keys[key] = slow
    del slow, key  # the dictionary's callback removes the entry, and with it the slow object
    gc.collect()


def _drop_and_wait(drop) -> None:
    drop()
    end = time.monotonic() + 20.0
    while time.monotonic() < end:
        time.sleep(0.001)


@pytest.mark.parametrize("drop", [_drop_in_del, _drop_in_a_callback])
def test_a_lost_alarm_is_raised_again(drop):
    with pytest.raises(OutOfTime), limit(0.02):
        _drop_and_wait(drop)
