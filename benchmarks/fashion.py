"""Table 3 of the Fashion-MNIST paper (Xiao, Rasul, Vollgraf 2017) again: our estimators beside scikit-learn's.

    python -m benchmarks.fashion [--only NAME …] [--library NAME …] [--seeds 1] [--rows N] [--threads N]
                                 [--json FILE] [--limit SECONDS] [--budget SECONDS]

Every classifier of the table that the library has, with the parameters of the paper. Images are vectors of 784 pixels divided
by 255; the 60 000 training and 10 000 test images are the published ones. The paper gives the mean of five shuffles of the
training images; ``--seeds 5`` does so too. Accuracy is on the test images, seconds are those of ``fit``, all libraries with
the same number of threads, each fit in a process of its own. A fit that takes longer than ``--limit`` seconds, with its
predictions, is ended, and the table has "> limit" in its place. The table is printed as Markdown, with machine, versions and
date.

All of it takes hours, most of them scikit-learn's. With ``--json`` every fit is written down when it is done or ended, and a
run with the same file goes on where the last one ended; a fit that was ended is tried again if the limit is larger now. With
``--budget`` no fit begins after so many seconds.
"""

from __future__ import annotations

import argparse
import datetime
import gzip
import importlib
import importlib.metadata
import importlib.util
import json
import multiprocessing
import platform
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl

import hinge
from benchmarks.data import folder
from benchmarks.machine import cpu_name

START = "spawn"  # each fit begins in a fresh interpreter
LIBRARIES = ("hinge", "scikit-learn", "scikit-learn-intelex")
# Accuracy on the test images, seconds, and seconds of all processors; or, of a fit that was ended, "over" and the limit.
Fit = dict[str, float]


@dataclass(frozen=True)
class Row:
    """A classifier of the paper: where it is found, its parameters, and the accuracy that was published."""

    name: str
    module: str
    cls: str
    published: float
    options: dict[str, Any]
    ours: dict[str, Any] | None = None  # where a parameter is written otherwise here
    intelex: bool = False  # scikit-learn-intelex has a version of its own


TABLE = (
    Row("SVC rbf C=10", "sklearn.svm", "SVC", 0.897, {"C": 10.0, "kernel": "rbf"}, intelex=True),
    Row("SVC poly C=10", "sklearn.svm", "SVC", 0.891, {"C": 10.0, "kernel": "poly"}, intelex=True),
    Row("gradient boosting 100, depth 10", "sklearn.ensemble", "GradientBoostingClassifier", 0.880,
        {"n_estimators": 100, "max_depth": 10}),
    Row("random forest 100 entropy depth 100", "sklearn.ensemble", "RandomForestClassifier", 0.873,
        {"n_estimators": 100, "criterion": "entropy", "max_depth": 100, "n_jobs": -1}, intelex=True),
    Row("network relu 100", "sklearn.neural_network", "MLPClassifier", 0.871,
        {"hidden_layer_sizes": (100,), "activation": "relu"}),
    Row("logistic l1 C=1, one-vs-rest", "sklearn.linear_model", "LogisticRegression", 0.842,
        {"C": 1.0, "l1_ratio": 1.0, "solver": "liblinear"}, {"C": 1.0, "l1_ratio": 1.0}),
    Row("logistic l2 C=1, one-vs-rest", "sklearn.linear_model", "LogisticRegression", 0.841,
        {"C": 1.0, "solver": "lbfgs", "max_iter": 1000}, {"C": 1.0}, intelex=True),
    Row("linear SVM hinge C=1, one-vs-rest", "sklearn.svm", "LinearSVC", 0.836, {"C": 1.0, "loss": "hinge"}),
    Row("linear SVM Crammer–Singer C=1", "sklearn.svm", "LinearSVC", 0.835,
        {"C": 1.0, "loss": "hinge", "multi_class": "crammer_singer"}),
    Row("SGD hinge l2", "sklearn.linear_model", "SGDClassifier", 0.819, {"loss": "hinge", "penalty": "l2"}),
    Row("tree entropy depth 10", "sklearn.tree", "DecisionTreeClassifier", 0.798,
        {"criterion": "entropy", "max_depth": 10}),
    Row("perceptron l1", "sklearn.linear_model", "Perceptron", 0.782, {"penalty": "l1"}),
    Row("Gaussian naive Bayes", "sklearn.naive_bayes", "GaussianNB", 0.511, {}),
)  # fmt: skip


def images(part: str) -> tuple[np.ndarray, np.ndarray]:
    """Pixels between 0 and 1, one image a row, and labels, of "train" or "t10k"."""
    with gzip.open(folder() / f"fashion-{part}-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
    with gzip.open(folder() / f"fashion-{part}-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    return pixels.astype(np.float32) / np.float32(255), labels.astype(np.int64)


def one_vs_rest(row: Row, library: str, model: Any) -> Any:
    """The paper's logistic regressions are one classifier per class; both libraries are multinomial otherwise."""
    if "one-vs-rest" not in row.name or row.cls != "LogisticRegression":
        return model
    if library == "hinge":
        return hinge.OneVsRestClassifier(model)
    from sklearn.multiclass import OneVsRestClassifier

    return OneVsRestClassifier(model)


def make(row: Row, library: str, seed: int) -> Any:
    """The classifier of a row in one library."""
    options = dict(row.options)
    if library == "hinge":
        options = dict(row.options if row.ours is None else row.ours)
        cls = getattr(hinge, row.cls)
        if options.get("multi_class") == "crammer_singer":
            cls, options = hinge.MulticlassSVM, {"C": options["C"]}
    elif library == "scikit-learn":
        cls = getattr(importlib.import_module(row.module), row.cls)
    else:
        cls = getattr(importlib.import_module(row.module.replace("sklearn", "sklearnex")), row.cls)
    model = cls(**options)
    if "random_state" in model.get_params():
        model.set_params(random_state=seed)
    return one_vs_rest(row, library, model)


def measure(row: Row, library: str, seed: int, data: Any) -> Fit:
    """One fit to shuffled training images."""
    X, y, X_test, y_test = data
    order = np.random.default_rng(seed).permutation(len(y))
    X, y = X[order], y[order]
    model = make(row, library, seed)
    began, cpu_began = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu_began
    return {"accuracy": float(np.mean(model.predict(X_test) == y_test)), "seconds": seconds, "cpu": cpu}


def child(row: Row, library: str, seed: int, rows: int | None, threads: int, out: Any) -> None:
    """In a process of its own: report that the images are read, then the fit, or what went wrong."""
    X, y = images("train")
    data = (X[:rows], y[:rows], *images("t10k"))
    hinge.set_num_threads(threads)
    out.send("ready")
    try:
        with threadpoolctl.threadpool_limits(threads):
            out.send(measure(row, library, seed, data))
    except Exception as error:
        out.send(f"{type(error).__name__}: {error}")


def limited(row: Row, library: str, seed: int, rows: int | None, threads: int, limit: float) -> Fit | str:
    """`measure` in a process that is ended after ``limit`` seconds; a string if it failed."""
    context = multiprocessing.get_context(START)
    answers, out = context.Pipe(duplex=False)
    process = context.Process(target=child, args=(row, library, seed, rows, threads, out))
    process.start()
    out.close()
    try:
        answers.recv()
        if not answers.poll(None if np.isinf(limit) else limit):
            return {"over": limit}
        return answers.recv()
    except EOFError:
        process.join()
        return f"the process ended with code {process.exitcode}"
    finally:
        process.kill()
        process.join()


class Notebook:
    """The fits that are done, by classifier, library and seed, in a file if there is one."""

    def __init__(self, path: Path | None, settings: dict[str, Any]) -> None:
        self.path, self.settings = path, settings
        self.fits: dict[str, dict[str, dict[str, Fit]]] = {}
        if path is not None and path.exists():
            found = json.loads(path.read_text())
            if found["settings"] != settings:
                raise SystemExit(f"{path} was made with other settings, {found['settings']}; now they are {settings}.")
            self.fits = found["fits"]

    def has(self, row: Row, library: str, seed: int, limit: float) -> bool:
        """Whether the fit is done, or one of its row and library was ended after at least as long as ``limit``."""
        fits = self.fits.get(row.name, {}).get(library, {})
        return any(fit.get("over", 0) >= limit for fit in fits.values()) or "accuracy" in fits.get(str(seed), {})

    def add(self, row: Row, library: str, seed: int, fit: Fit) -> None:
        """Write a fit down; the file is whole at any time."""
        self.fits.setdefault(row.name, {}).setdefault(library, {})[str(seed)] = fit
        if self.path is not None:
            draft = self.path.with_suffix(".part")
            draft.write_text(json.dumps({"settings": self.settings, "fits": self.fits}, indent=1))
            draft.replace(self.path)


def installed(libraries: Iterable[str]) -> list[str]:
    """Those libraries that are there."""
    names = {"hinge": "hinge", "scikit-learn": "sklearn", "scikit-learn-intelex": "sklearnex"}
    return [name for name in libraries if importlib.util.find_spec(names[name]) is not None]


def describe(libraries: list[str], threads: int, rows: int) -> dict[str, Any]:
    """The machine, the versions and what else the figures depend on."""
    names = ["hinge-learn" if name == "hinge" else name for name in libraries]
    return {
        "machine": cpu_name(),
        "threads": threads,
        "training images": rows,
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in [*names, "numpy"]},
    }


def markdown(fits: dict[str, dict[str, dict[str, Fit]]], libraries: list[str]) -> Iterator[str]:
    """The rows of the table: mean accuracy and median seconds over the seeds."""
    head = ["classifier", "published", *(f"{name}: accuracy, s" for name in libraries)]
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in TABLE:
        if row.name in fits:
            cells = [cell(list(fits[row.name].get(name, {}).values())) for name in libraries]
            yield f"| {row.name} | {row.published:.3f} | " + " | ".join(cells) + " |"


def cell(fits: list[Fit]) -> str:
    """One row and library; fits that were ended have no accuracy, so that one of them decides."""
    over = [fit["over"] for fit in fits if "over" in fit]
    if over:
        return f"> {max(over):g} s"
    if not fits:
        return "–"
    return f"{np.mean([fit['accuracy'] for fit in fits]):.3f}, {np.median([fit['seconds'] for fit in fits]):.3g}"


@dataclass
class Outcome:
    """How a run ended: whether its time sufficed, and the fits that failed."""

    finished: bool = True
    failures: int = 0


def run(rows: Iterable[Row], libraries: list[str], seeds: int, fit: Any, notebook: Notebook, limit: float,
        budget: float) -> Outcome:  # fmt: skip
    """Do the fits that are not in the notebook, by ``fit(row, library, seed)``."""
    began, outcome = time.perf_counter(), Outcome()
    for row in rows:
        for library in libraries:
            if library == "scikit-learn-intelex" and not row.intelex:
                continue
            for seed in range(seeds):
                if notebook.has(row, library, seed, limit):
                    continue
                if time.perf_counter() - began >= budget:
                    outcome.finished = False
                    return outcome
                found = fit(row, library, seed)
                print(f"{row.name}, {library}, seed {seed}: {shown(found)}", file=sys.stderr, flush=True)
                if isinstance(found, str):
                    outcome.failures += 1
                    break
                notebook.add(row, library, seed, found)
                if "over" in found:
                    break
    return outcome


def shown(found: Fit | str) -> str:
    if isinstance(found, str):
        return f"failed: {found}"
    if "over" in found:
        return f"ended after {found['over']:g} s"
    return f"{found['accuracy']:.4f} in {found['seconds']:.2f} s ({found['cpu']:.2f} s of processors)"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fashion", description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="rows whose name holds this")
    parser.add_argument("--library", action="append", default=[], choices=LIBRARIES, help="only these libraries")
    parser.add_argument("--seeds", type=int, default=1, metavar="K", help="shuffles of the training images (paper: 5)")
    parser.add_argument(
        "--rows", type=int, default=None, metavar="N", help="the first N training images (default: all)"
    )
    parser.add_argument("--threads", type=int, default=2, metavar="N", help="threads of every library (default 2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the fits here, and go on from there")
    parser.add_argument("--limit", type=float, default=np.inf, metavar="SECONDS", help="end a fit after this time")
    parser.add_argument("--budget", type=float, default=np.inf, metavar="SECONDS", help="begin no fit after this time")
    options = parser.parse_args(arguments)
    present = installed(LIBRARIES)
    libraries = [name for name in present if name in (options.library or LIBRARIES)]
    used = len(images("train")[1][: options.rows])
    notebook = Notebook(options.json, describe(present, options.threads, used))
    rows = [row for row in TABLE if not options.only or any(text in row.name for text in options.only)]

    def fit(row: Row, library: str, seed: int) -> Fit | str:
        return limited(row, library, seed, options.rows, options.threads, options.limit)

    outcome = run(rows, libraries, options.seeds, fit, notebook, options.limit, options.budget)
    print("\n".join(markdown(notebook.fits, present)))
    print("\n" + ", ".join(f"{name} {value}" for name, value in notebook.settings.items()), datetime.date.today())
    if not outcome.finished:
        print("The time is over; the same command goes on from here.", file=sys.stderr)
    return 1 if outcome.failures else 0


if __name__ == "__main__":
    sys.exit(main())
