"""The k-th allocation of the core fails: MemoryError, and a library that works afterwards.

``operator new`` is replaced by one that throws (failing_new.cpp, compiled here and preloaded; see __main__). Only C++
code calls it, so Python's own memory never fails.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from hinge.models.neural.engine import Rule
from hostile import machine
from hostile.runner import Group

SOURCE = Path(__file__).with_name("failing_new.cpp")
PRELOADED = "HOSTILE_FAILING_NEW"
STEPS = 24  # places at which a fit is made to fail, spread over its allocations


def library() -> Path | None:
    """The compiled library; None without a compiler."""
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None or sys.platform != "linux":
        return None
    out = Path(tempfile.gettempdir()) / f"hostile_failing_new_{os.getuid()}_{SOURCE.stat().st_mtime_ns}.so"
    if not out.exists():
        part = out.with_suffix(f".{os.getpid()}")
        subprocess.run([compiler, "-O1", "-std=c++17", "-shared", "-fPIC", str(SOURCE), "-o", str(part)], check=True)
        os.replace(part, out)
    return out


def environment() -> dict[str, str]:
    """What must be in the environment for the library to be preloaded."""
    found = library()
    return {} if found is None else {PRELOADED: str(found), "LD_PRELOAD": str(found)}


@cache
def hook() -> Any:
    return ctypes.CDLL(os.environ[PRELOADED])


def prepare() -> None:
    for name in machine.estimators():
        machine.expected(name)


def instances() -> None:
    """Thousands of native objects at a time: the map of them grows now and then, and fails to."""
    kept, failed = [], 0
    for _ in range(5000):
        hook().hostile_arm(ctypes.c_long(0), 0)
        try:
            kept.append(Rule().native())
        except MemoryError:
            failed += 1
        finally:
            hook().hostile_arm(ctypes.c_long(-1), 0)
        kept.append(Rule().native())
    assert failed, "no allocation failed"


def cases() -> Iterator[str]:
    yield "instances|0|0"
    for i, name in enumerate(machine.estimators()):
        yield f"{name}|{i % STEPS}|0"
        yield f"{name}|{(i + STEPS // 2) % STEPS}|1"


def random(seed: int) -> str:
    rng = np.random.default_rng(seed)
    return f"{rng.choice(sorted(machine.estimators()))}|{rng.uniform(0, STEPS):.3f}|{rng.integers(2)}"


def run(case: str) -> None:
    if PRELOADED not in os.environ:
        return
    name, place, again = case.split("|")
    if name == "instances":
        instances()
        return
    before = hook().hostile_made()
    machine.answer(name)
    total = hook().hostile_made() - before
    calls = min(int(total * (float(place) + 0.5) / STEPS), total - 1)
    if total <= 0:
        return
    hook().hostile_arm(ctypes.c_long(calls), int(again))
    try:
        machine.answer(name)
    except MemoryError:
        pass
    finally:
        hook().hostile_arm(ctypes.c_long(-1), 0)
    machine.works(name)


GROUP = Group("allocation", cases, run, random, seconds=60.0, prepare=prepare)
