"""``python -m hostile.races [NAME …]``: every estimator, fitted and used by several Python threads at a time.

For the build with ThreadSanitizer (``make test-threads``), which reports data races of the core to standard error and
ends the process with status 66, and for free-threaded Pythons. Python threads share the data, one fitted model and the
pool; what the threads predict with that model must be the same.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import hinge as hg
from hostile.machine import estimators
from hostile.structured import MODELS, PARENTS, X, Y, trees
from kit.estimators import assert_same, fitted, make_data, outputs

THREADS, WORKERS = 3, 4
# Enough rows for several parts in the kernels of each family, few enough for a tenth of the usual speed.
ROWS = 1500


def together(task: Callable[[], Any]) -> list[Any]:
    """What the task returns in each of several threads that begin at a time."""
    results: list[Any] = [None] * THREADS
    begin = threading.Barrier(THREADS)

    def one(k: int) -> None:
        begin.wait()
        try:
            results[k] = task()
        except BaseException as error:
            results[k] = error

    threads = [threading.Thread(target=one, args=(k,)) for k in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def table_model(name: str) -> None:
    estimator = estimators()[name]
    X, y = make_data(estimator, n=ROWS, d=8)
    X = np.asfortranarray(X) if len(name) % 2 else X
    models = together(lambda: fitted(estimator, X, y))
    first, *others = together(lambda: outputs(models[0], X))
    for other in others:
        assert_same(first, other)


def sequence_model(name: str) -> None:
    more = {"parents": PARENTS * 40} if trees(name) else {}
    models = together(lambda: MODELS[name]().fit(X * 40, Y * 40, **more))
    first, *others = together(lambda: models[0].predict(X * 40, **more))
    assert all(other == first for other in others)


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore")
    tasks: dict[str, Callable[[str], None]] = dict.fromkeys(estimators(), table_model) | dict.fromkeys(
        MODELS, sequence_model
    )
    for name in names or tasks:
        hg.set_num_threads(WORKERS)
        print(name, flush=True)
        tasks[name](name)
        hg.set_num_threads(
            WORKERS - 1
        )  # another pool, while the workers of the last may still be on their way to sleep
    print(f"{len(names or tasks)} estimators, {THREADS} threads each")


if __name__ == "__main__":
    main(sys.argv[1:])
