"""Limits on time end a fit, wherever the alarm finds it."""

from __future__ import annotations

import gc
import time
import weakref

import pytest
from sklearn.utils.metaestimators import available_if

from hinge.learning import timeout
from hinge.learning.examine import SHARES
from hinge.learning.timeout import MOMENT, Deadline, OutOfTime, limit


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


def test_code_that_turns_errors_into_others_does_not_see_the_alarm():
    @available_if(lambda self: time.sleep(20.0) or True)
    def predict_proba(self):
        return 1.0

    slow = type("Slow", (), {"predict_proba": predict_proba})()
    with pytest.raises(OutOfTime), limit(0.02):
        slow.predict_proba()


class Clock:
    """A clock that moves only when a test moves it."""

    def __init__(self) -> None:
        self.now = 100.0

    def perf_counter(self) -> float:
        return self.now


def test_steps_share_what_is_left(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(timeout, "time", clock)
    deadline = Deadline(20.0)
    assert deadline.share(0.25) == pytest.approx(5.0)
    clock.now += 4.0  # the step took less than its part: the rest is for the others
    assert deadline.share(0.25) == pytest.approx(4.0)
    clock.now += 30.0
    assert deadline.left() == 0.0
    assert deadline.share(0.5) == MOMENT


def test_the_steps_of_an_examination_end_in_time_if_each_uses_its_part(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(timeout, "time", clock)
    deadline = Deadline(10.0)
    for part in SHARES.values():
        assert 0 < part < 1
        clock.now += deadline.share(part)
    assert clock.now < 110.0


def test_a_step_that_runs_out_keeps_what_it_has():
    done, end = [], time.monotonic() + 20.0
    deadline = Deadline(0.1)
    with deadline.during(0.5):
        while time.monotonic() < end:
            done.append(1)
            time.sleep(0.001)
    assert done
    assert time.monotonic() < end
