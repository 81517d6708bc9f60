"""Every estimator against scikit-learn's of the same name, with defaults, on awkward shapes.

    python -m benchmarks shapes [--only PATTERN …] [--shape PATTERN …] [--limit 20] [--json FILE]

Each fit runs in a child process of its own, with one thread and a time limit, and is measured in CPU seconds (best of
three if short), so that a busy machine does not matter. The goal is a geometric mean of 2× or more, and no cell in
which hinge takes 20 ms longer than scikit-learn.
"""

from __future__ import annotations

import argparse
import fnmatch
import inspect
import math
import multiprocessing
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.machine import pin_threads

SHORT = 1.0  # seconds; fits that take less are timed three times
ALLOWANCE = 0.02  # seconds by which hinge may be slower than scikit-learn
GOAL = 2.0
ROWS_OF_GRAMS = 6000  # kernel machines and Gaussian processes hold n × n numbers: no shapes with more rows
OF_GRAMS = (
    "SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM", "KernelRidge", "GaussianProcessClassifier", "GaussianProcessRegressor",
)  # fmt: skip
NEEDS_AN_ESTIMATOR = ("OneVsOneClassifier", "OneVsRestClassifier", "OutputCodeClassifier")


@dataclass(frozen=True)
class Shape:
    """A kind of data: ``make(rng)`` gives X and one signal per target."""

    make: Callable[[Any], tuple[Any, Any]]
    classes: int = 2
    rare: float = 0.5  # the share of the first class, of two
    targets: int = 1


@dataclass(frozen=True)
class Cell:
    """Seconds of both libraries on one shape; infinite beyond the limit, nan where the fit failed."""

    estimator: str
    shape: str
    theirs: float
    ours: float
    note: str = ""

    @property
    def ratio(self) -> float:
        return self.theirs / self.ours

    @property
    def slow(self) -> bool:
        return self.ours > self.theirs + ALLOWANCE


def _signal(X: Any, rng: Any, targets: int = 1) -> Any:
    """Linear in ten of the columns, with noise of a third of its size."""
    used = X[:, :: max(1, X.shape[1] // 10)]
    scores = used @ rng.normal(size=(used.shape[1], targets))
    scores = (scores - scores.mean(axis=0)) / (scores.std(axis=0) + 1e-300)
    return scores + 0.3 * rng.normal(size=scores.shape)


def _dense(n: int, d: int, targets: int = 1) -> Callable[[Any], tuple[Any, Any]]:
    def make(rng: Any) -> tuple[Any, Any]:
        X = rng.normal(size=(n, d))
        return X, _signal(X, rng, targets)

    return make


def _sparse(n: int, d: int, row: int) -> Callable[[Any], tuple[Any, Any]]:
    def make(rng: Any) -> tuple[Any, Any]:
        import numpy as np
        import scipy.sparse

        cells = (np.repeat(np.arange(n), row), rng.integers(0, d, n * row))
        X = scipy.sparse.csr_matrix((np.abs(rng.normal(size=n * row)), cells), shape=(n, d))
        return X, _signal(X, rng)

    return make


def _duplicates(rng: Any) -> tuple[Any, Any]:
    X = rng.normal(size=(100, 20)).repeat(20, axis=0)
    return X, _signal(X, rng)


def _badly_scaled(rng: Any) -> tuple[Any, Any]:
    import numpy as np

    X = rng.normal(size=(1000, 20))
    y = _signal(X, rng)
    return X * np.logspace(-4, 4, 20) + 10.0, y


def _integers(rng: Any) -> tuple[Any, Any]:
    X = rng.integers(0, 20, size=(5000, 10))
    return X, _signal(X.astype(float), rng)


def _one_hot(rng: Any) -> tuple[Any, Any]:
    import numpy as np

    X = np.concatenate([np.eye(30)[rng.integers(0, 30, 3000)] for _ in range(3)], axis=1)
    return X, _signal(X @ rng.normal(size=(90, 10)), rng)


SHAPES = {
    "tiny": Shape(_dense(30, 3)),
    "narrow": Shape(_dense(10_000, 5)),
    "wide": Shape(_dense(60, 3000)),
    "square": Shape(_dense(600, 600)),
    "many classes": Shape(_dense(2000, 20), classes=20),
    "hundred classes": Shape(_dense(3000, 30), classes=100),
    "many targets": Shape(_dense(500, 30, 50), targets=50),
    "sparse wide": Shape(_sparse(500, 2000, 20)),
    "sparse wide, many classes": Shape(_sparse(500, 2000, 20), classes=20),
    "sparse tall": Shape(_sparse(20_000, 5000, 20)),
    "duplicates": Shape(_duplicates),
    "badly scaled": Shape(_badly_scaled),
    "integers": Shape(_integers),
    "imbalanced": Shape(_dense(3000, 20), rare=0.02),
    "one hot": Shape(_one_hot),
}


def pairs() -> dict[str, tuple[type, type]]:
    """Ours and theirs by name: the public estimators that predict and whose name scikit-learn has too."""
    import sklearn.utils

    import hinge as hg

    theirs = dict(sklearn.utils.all_estimators())
    ours = {name: getattr(hg, name) for name in hg.__all__ if name in theirs}
    return {name: (cls, theirs[name]) for name, cls in sorted(ours.items()) if hasattr(cls, "predict")}


def _arguments(cls: type) -> dict[str, Any]:
    if cls.__name__ not in NEEDS_AN_ESTIMATOR:
        return {}
    if cls.__module__.startswith("sklearn"):
        from sklearn.linear_model import LogisticRegression
    else:
        from hinge import LogisticRegression
    return {"estimator": LogisticRegression()}


def data_for(cls: type, name: str) -> tuple[Any, Any] | None:
    """X and y of a shape for an estimator; None where it does not take such data."""
    import numpy as np
    import scipy.sparse
    from sklearn.utils import get_tags

    shape, tags = SHAPES[name], get_tags(cls(**_arguments(cls)))
    X, s = shape.make(np.random.default_rng(0))
    classifies = tags.estimator_type == "classifier"
    if scipy.sparse.issparse(X) and not tags.input_tags.sparse:
        return None
    if tags.input_tags.one_d_array:
        X = X[:, :1]
    if cls.__name__ in OF_GRAMS and X.shape[0] > ROWS_OF_GRAMS:
        return None
    if shape.targets > 1 and (classifies or not tags.target_tags.multi_output):
        return None
    if shape.classes > 2 and not classifies:
        return None
    if tags.input_tags.positive_only or tags.input_tags.categorical:
        X = abs(X)
    if cls.__name__ == "CategoricalNB":
        if scipy.sparse.issparse(X):
            return None
        X = np.floor(np.minimum(X, 10.0)).astype(int)
    if classifies:
        shares = [shape.rare, 1 - shape.rare] if shape.classes == 2 else np.full(shape.classes, 1 / shape.classes)
        return X, np.searchsorted(np.quantile(s[:, 0], np.cumsum(shares)[:-1]), s[:, 0])
    y = (
        np.exp(0.5 * s)
        if tags.target_tags.positive_only or cls.__name__ in ("PoissonRegressor", "TweedieRegressor")
        else s
    )
    if shape.targets == 1 and not tags.target_tags.single_output:
        return X, np.column_stack([y, y + 0.1 * s**2])
    return X, y if shape.targets > 1 else y[:, 0]


def _measure(cls: type, name: str, sender: Any) -> None:
    """In the child: CPU seconds of a fit, or why there are none."""
    import threadpoolctl

    import hinge as hg

    warnings.simplefilter("ignore")
    hg.set_num_threads(1)
    X, y = data_for(cls, name)  # type: ignore[misc]
    with threadpoolctl.threadpool_limits(1):
        took: list[float] = []
        while not took or (took[0] < SHORT and len(took) < 3):
            model = cls(**_arguments(cls))
            began = time.process_time()
            try:
                model.fit(X, y)
            except Exception as error:  # the table shows what failed and goes on
                sender.send((math.nan, f"{type(error).__name__}: {error}"))
                return
            took.append(time.process_time() - began)
    sender.send((min(took), ""))


def seconds(cls: type, name: str, limit: float) -> tuple[float, str]:
    """CPU seconds of a fit in a child process; infinite if it took longer than the limit."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_measure, args=(cls, name, sender), daemon=True)
    child.start()
    sender.close()
    try:
        if not receiver.poll(3 * limit):  # a busy machine gives the child a share of its time
            return math.inf, ""
        took, note = receiver.recv()
        return (took, note) if not took > limit else (math.inf, "")
    except EOFError:
        child.join()
        return math.nan, f"the process died (exit code {child.exitcode})"
    finally:
        child.kill()
        child.join()


def cells(only: list[str], shapes: list[str], limit: float) -> Iterator[Cell]:
    """One cell per estimator and shape that fit each other."""

    def wanted(name: str, patterns: list[str]) -> bool:
        return not patterns or any(fnmatch.fnmatch(name, p) for p in patterns)

    for name, (ours, theirs) in pairs().items():
        for shape in SHAPES:
            fits = wanted(name, only) and wanted(shape, shapes)
            if fits and data_for(ours, shape) is not None and data_for(theirs, shape) is not None:
                (a, why_a), (b, why_b) = seconds(theirs, shape, limit), seconds(ours, shape, limit)
                note = "; ".join(f"{who}: {why}" for who, why in (("scikit-learn", why_a), ("hinge", why_b)) if why)
                yield Cell(name, shape, a, b, " ".join(note.split())[:200])


def line(cell: Cell) -> str:
    mark = " slow" if cell.slow else ""
    ratio = f"{cell.ratio:8.2f}×" if math.isfinite(cell.ratio) and cell.ratio > 0 else f"{'–':>9}"
    return f"{cell.estimator:30} {cell.shape:26} {cell.theirs:9.4f} {cell.ours:9.4f} {ratio}{mark} {cell.note}".rstrip()


def summary(table: list[Cell]) -> str:
    """The geometric mean of the ratios and the cells that miss the goal."""
    ratios = [c.ratio for c in table if math.isfinite(c.ratio) and c.ratio > 0]
    slow = [c for c in table if c.slow]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan
    return (
        f"{len(table)} cells, {len(ratios)} with both times: geometric mean {mean:.2f}× (goal {GOAL:g}×); "
        f"{len(slow)} slower than scikit-learn by more than {1000 * ALLOWANCE:.0f} ms"
        + "".join("\n  " + line(c) for c in slow)
    )


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks shapes", description=inspect.getdoc(sys.modules[__name__]),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--only", action="append", default=[], metavar="E", help="only these estimators (a pattern)")
    parser.add_argument("--shape", action="append", default=[], metavar="S", help="only these shapes (a pattern)")
    parser.add_argument("--limit", type=float, default=20.0, metavar="S", help="seconds a fit may take (default 20)")
    parser.add_argument("--json", type=Path, metavar="F", help="write all cells to this file")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    pin_threads(1)
    print(f"{'estimator':30} {'shape':26} {'sklearn s':>9} {'hinge s':>9} {'ratio':>9}")
    table = []
    for cell in cells(options.only, options.shape, options.limit):
        table.append(cell)
        print(line(cell), flush=True)
    print("\n" + summary(table))
    if options.json:
        from benchmarks.report import write_json

        write_json(options.json, {"cells": [asdict(c) for c in table]})
    return 0


if __name__ == "__main__":
    sys.exit(main())
