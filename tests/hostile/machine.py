"""A machine that refuses: no memory, no threads, signals, forks, and another thread that writes into X.

Whatever happens, the call returns or raises, and the library works afterwards: the same fit, without the trouble, gives
the same predictions as before.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import hashlib
import itertools
import multiprocessing
import os
import pickle
import resource
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import get_tags

import hinge as hg
from hostile.runner import Group
from kit.estimators import fitted, make_data, outputs, public_estimators

PATIENCE = 30  # seconds for a forked child


@cache
def estimators() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for estimator in public_estimators():
        if get_tags(estimator).input_tags.two_d_array:
            found.setdefault(type(estimator).__name__, estimator)
    return found


@cache
def data(name: str) -> tuple[np.ndarray, Any]:
    return make_data(estimators()[name], n=300, d=8)


def answer(name: str) -> np.ndarray:
    """What a fit says about its own data, as one flat array of numbers."""
    X, y = data(name)
    model = fitted(estimators()[name], X, y)
    for method in ("predict_proba", "predict", "transform"):
        if hasattr(model, method):
            value = getattr(model, method)(X[:50])
            return np.asarray(value.toarray() if hasattr(value, "toarray") else value)
    return np.zeros(1)


@cache
def expected(name: str) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return answer(name)


def prepare() -> None:
    """One fit of each: everything is imported, and the answers are known, before anything is refused."""
    for name in SAMPLE:
        expected(name)


def works(name: str) -> None:
    """The same bits as before."""
    found = answer(name)
    if estimators()[name].get_params().get("random_state", 0) is not None:
        np.testing.assert_array_equal(found, expected(name), err_msg="the fit after the trouble differs")


def address_space(name: str, extra: str) -> None:
    """Little more memory than is in use; eight threads wanted."""
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()  # noqa: SIM115
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + int(extra), before[1]))
    hg.set_num_threads(8)
    try:
        answer(name)
    except MemoryError:
        pass
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
        hg.set_num_threads(None)
    works(name)


def processes(name: str, _: str) -> None:
    """No thread can be made."""
    if os.getuid() == 0:
        os.setuid(54321)  # root may exceed the limit
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    hg.set_num_threads(8)
    works(name)


def interrupts(name: str, seed: str) -> None:
    """Ctrl-C at random times, again and again."""
    rng = np.random.default_rng(int(seed))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for _ in range(5):
        delay = float(rng.exponential(0.01)) + 1e-4
        try:
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            signal.setitimer(signal.ITIMER_REAL, delay)
            answer(name)
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            signal.setitimer(signal.ITIMER_REAL, 0)
    works(name)


def forks(name: str, seed: str) -> None:
    """Forks while another thread fits, each time on a new pool; every child fits too.

    All modules are there: CPython's locks of modules do not survive a fork during an import (see SECURITY.md). One thread
    computes the first answer, so the pool begins beside the forks.
    """
    hg.set_num_threads(1)
    expected(name)
    rng, stop = np.random.default_rng(int(seed)), threading.Event()

    def busy() -> None:
        for count in itertools.cycle((2, 4, 3)):
            if stop.is_set():
                return
            hg.set_num_threads(count)
            answer(name)

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        for _ in range(4):
            time.sleep(float(rng.exponential(0.003)))
            pid = os.fork()
            if pid == 0:
                signal.alarm(PATIENCE)
                try:
                    answer(name)
                    os._exit(0)
                finally:
                    os._exit(1)
            status = os.waitpid(pid, 0)[1]
            assert status == 0, f"the forked child ended with status {status}"
    finally:
        stop.set()
        thread.join()


def writes(name: str, seed: str) -> None:
    """Another thread writes NaN, infinity and noise into X and y during the fit. Any answer will do, a crash will not."""
    X, y = data(name)
    X, y = X.copy(), np.array(y)
    rng, stop = np.random.default_rng(int(seed)), threading.Event()

    def busy() -> None:
        while not stop.is_set():
            i, j = rng.integers(len(X)), rng.integers(X.shape[1])
            X[i, j] = rng.choice([np.nan, np.inf, -np.inf, 1e300, -1e-300, 0.0, rng.normal()])
            if y.dtype.kind == "f":
                y[i] = rng.normal()

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        for _ in range(3):
            with contextlib.suppress(ValueError, FloatingPointError, ZeroDivisionError, RuntimeError, IndexError):
                fitted(estimators()[name], X, y)
            X[:], y[:] = data(name)
    finally:
        stop.set()
        thread.join()
    works(name)


def at_a_time(name: str, _: str) -> None:
    """Four threads fit at a time."""
    found: list[Any] = [None] * 4

    def one(k: int) -> None:
        try:
            works(name)
            found[k] = True
        except BaseException as error:
            found[k] = error

    threads = [threading.Thread(target=one, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in found:
        if result is not True:
            raise result


def many_threads(name: str, count: str) -> None:
    hg.set_num_threads(int(count))
    works(name)
    hg.set_num_threads(None)


def hashes(name: str, rows: str) -> None:
    """The same bits with any number of threads, on enough rows that there is work for several."""
    estimator = estimators()[name]
    X, y = make_data(estimator, n=int(rows), d=8)
    found = {}
    for count in (1, 2, 3, 7, 16):
        hg.set_num_threads(count)
        values = outputs(fitted(estimator, X, y), X[:500])
        found[count] = hashlib.sha256(pickle.dumps([value.tolist() for value in values.values()])).hexdigest()
    hg.set_num_threads(None)
    assert len(set(found.values())) == 1, f"bits depend on the number of threads: {found}"


def started(name: str, method: str) -> None:
    """Processes that begin with a new interpreter or are forked from a server, while the pool of this one is in use."""
    works(name)
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
        for found in pool.map(answer, [name, name]):
            if estimators()[name].get_params().get("random_state", 0) is not None:
                np.testing.assert_array_equal(found, expected(name), err_msg=f"{method}: another answer")


def killed(name: str, seed: str) -> None:
    """SIGKILL while a model is written, again and again: the file is the old one or the new one, and whole."""
    X, y = data(name)
    models = [fitted(estimators()[name], X[:k], y[:k]) for k in (len(X), len(X) // 2)]
    rng = np.random.default_rng(int(seed))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.hinge"
        hg.save(models[0], path)
        for _ in range(8):
            pid = os.fork()
            if pid == 0:
                while True:
                    for model in models:
                        hg.save(model, path)
            time.sleep(float(rng.exponential(0.02)) + 0.002)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            try:
                found = hg.load(path)
            except ValueError as error:
                raise AssertionError(f"a file that was cut: {error}") from None
            assert any(np.array_equal(found.predict(X), model.predict(X)) for model in models)


class _Heap(ctypes.Structure):
    """struct mallinfo2 of glibc."""

    _fields_: ClassVar[Any] = [(f, ctypes.c_size_t) for f in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "used", "free", "keepcost")]  # fmt: skip


def in_use() -> int:
    """Bytes that C and C++ hold."""
    gc.collect()
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = _Heap
    heap = mallinfo2()
    return int(heap.used + heap.hblkhd)


def leaks(name: str, fits: str) -> None:
    """Memory is flat over fits: what the core holds does not grow with every fit, nor does the number of Python objects.

    Caches may fill in the first of three windows, and once more in one of the others.
    """
    X, y = (A[:60] for A in data(name))

    def window() -> tuple[float, float]:
        before, blocks = in_use(), sys.getallocatedblocks()
        for _ in range(int(fits)):
            fitted(estimators()[name], X, y)
        return (in_use() - before) / int(fits), (sys.getallocatedblocks() - blocks) / int(fits)

    hg.set_num_threads(1)
    window()
    first, second = window(), window()
    print(
        f"{first[0]:.2f} and {second[0]:.2f} bytes of the heap, {first[1]:.3f} and {second[1]:.3f} objects of Python a fit"
    )
    for what, grown in zip(("bytes of the heap", "objects of Python"), np.minimum(first, second)):
        assert grown < LEAK, f"{grown:.1f} {what} a fit"


LEAK = 8.0  # a fit; one pointer that is not freed is as many bytes
KINDS: dict[str, Callable[[str, str], None]] = {
    "memory": address_space, "processes": processes, "interrupts": interrupts, "forks": forks, "writes": writes,
    "at a time": at_a_time, "threads": many_threads, "hashes": hashes, "started": started, "killed": killed, "leaks": leaks,
}  # fmt: skip
SAMPLE = (
    "Ridge", "LogisticRegression", "SVC", "RandomForestClassifier", "GradientBoostingRegressor", "MLPRegressor",
    "GaussianMixture", "KernelRidge", "Lasso", "GaussianNB",
)  # fmt: skip

SLOW = ("MLPRegressor", "GaussianMixture")


def cases() -> Iterator[str]:
    for i, name in enumerate(SAMPLE):
        yield f"memory|{name}|{(1 << 16) << i}"
        yield f"processes|{name}|0"
        yield f"interrupts|{name}|{i}"
        yield f"forks|{name}|{i}"
        yield f"writes|{name}|{i}"
        yield f"at a time|{name}|0"
        yield f"leaks|{name}|{12 if name in SLOW else 40}"
    yield from (f"killed|{name}|{i}" for i, name in enumerate(("Ridge", "RandomForestClassifier", "SVC")))
    yield from (f"started|RandomForestClassifier|{method}" for method in ("spawn", "forkserver"))
    yield "threads|RandomForestClassifier|300"


def random(seed: int) -> str:
    rng = np.random.default_rng(seed)
    kind, name = str(rng.choice(list(KINDS))), rng.choice(sorted(estimators()))
    numbers: dict[str, Any] = {
        "memory": int(2 ** rng.uniform(12, 28)), "threads": rng.integers(2, 40), "hashes": rng.choice([300, 2500]), "started": rng.choice(["spawn", "forkserver"]), "leaks": 12,
    }  # fmt: skip
    number = numbers.get(kind, seed)
    return f"{kind}|{name}|{number}"


def run(case: str) -> None:
    kind, name, number = case.split("|")
    KINDS[kind](name, number)


GROUP = Group("machine", cases, run, random, seconds=120.0, alone=True, prepare=prepare)
