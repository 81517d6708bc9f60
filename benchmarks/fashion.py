"""Table 3 of the Fashion-MNIST paper (Xiao, Rasul, Vollgraf 2017) again: our estimators beside scikit-learn's.

    python -m benchmarks.fashion [--only NAME …] [--library NAME …] [--seeds 1] [--json FILE]

Every classifier of the table that the library has, with the parameters of the paper. Images are vectors of 784 pixels divided
by 255; the 60 000 training and 10 000 test images are the published ones. The paper gives the mean of five shuffles of the
training images; ``--seeds 5`` does so too. Accuracy is on the test images, seconds are those of ``fit``, all libraries in
one process with the same number of threads. The table is printed as Markdown, with machine, versions and date.
"""

from __future__ import annotations

import argparse
import datetime
import gzip
import importlib
import importlib.metadata
import json
import platform
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import folder
from benchmarks.machine import cpu_name, pin_threads

LIBRARIES = ("hinge", "scikit-learn", "scikit-learn-intelex")


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
        import hinge as hg

        return hg.OneVsRestClassifier(model)
    from sklearn.multiclass import OneVsRestClassifier

    return OneVsRestClassifier(model)


def make(row: Row, library: str, seed: int) -> Any:
    """The classifier of a row in one library; None if that has none of its own."""
    options = dict(row.options)
    if library == "hinge":
        import hinge

        options = dict(row.options if row.ours is None else row.ours)
        cls = getattr(hinge, row.cls)
        if options.get("multi_class") == "crammer_singer":
            cls, options = hinge.MulticlassSVM, {"C": options["C"]}
    elif library == "scikit-learn":
        cls = getattr(importlib.import_module(row.module), row.cls)
    elif row.intelex:
        cls = getattr(importlib.import_module(row.module.replace("sklearn", "sklearnex")), row.cls)
    else:
        return None
    model = cls(**options)
    if "random_state" in model.get_params():
        model.set_params(random_state=seed)
    return one_vs_rest(row, library, model)


def measure(row: Row, library: str, seeds: int, data: Any) -> dict[str, Any]:
    """Mean accuracy and median seconds over shuffles of the training images."""
    X, y, X_test, y_test = data
    accuracies, seconds = [], []
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(len(y))
        model = make(row, library, seed)
        if model is None:
            return {}
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X[order], y[order])
        seconds.append(time.perf_counter() - began)
        accuracies.append(float(np.mean(model.predict(X_test) == y_test)))
    return {"accuracy": float(np.mean(accuracies)), "seconds": float(np.median(seconds))}


def describe(libraries: list[str], threads: int) -> str:
    """The machine, the versions and the day."""
    names = ["hinge-learn" if name == "hinge" else name for name in libraries]
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in [*names, "numpy"])
    return f"{cpu_name()}, {threads} threads, Python {platform.python_version()}, {versions}, {datetime.date.today()}"


def markdown(results: dict[str, dict[str, Any]], libraries: list[str]) -> Iterator[str]:
    """The rows of the table."""
    head = ["classifier", "published", *(f"{name}: accuracy, s" for name in libraries)]
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in TABLE:
        if row.name in results:
            found = [results[row.name].get(name, {}) for name in libraries]
            cells = [f"{f['accuracy']:.3f}, {f['seconds']:.3g}" if f else "–" for f in found]
            yield f"| {row.name} | {row.published:.3f} | " + " | ".join(cells) + " |"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fashion", description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="rows whose name holds this")
    parser.add_argument("--library", action="append", default=[], choices=LIBRARIES, help="only these libraries")
    parser.add_argument("--seeds", type=int, default=1, metavar="K", help="shuffles of the training images (paper: 5)")
    parser.add_argument("--rows", type=int, default=None, metavar="N", help="training images (default: all)")
    parser.add_argument("--threads", type=int, default=2, metavar="N", help="threads of every library (default 2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here, after every row")
    options = parser.parse_args(arguments)
    pin_threads(options.threads)
    libraries = options.library or list(LIBRARIES)
    about = describe(libraries, options.threads)
    X, y = images("train")
    data = (X[: options.rows], y[: options.rows], *images("t10k"))
    results: dict[str, dict[str, Any]] = {}
    for row in TABLE:
        if options.only and not any(text in row.name for text in options.only):
            continue
        results[row.name] = {}
        for library in libraries:
            found = measure(row, library, options.seeds, data)
            results[row.name][library] = found
            if found:
                print(f"{row.name}, {library}: {found['accuracy']:.4f} in {found['seconds']:.2f} s", file=sys.stderr)
        if options.json:
            options.json.write_text(json.dumps({"machine": about, "results": results}, indent=1))
    print("\n".join(markdown(results, libraries)))
    print(f"\n{about}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
