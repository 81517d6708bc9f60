"""Speed-up with the number of threads: one row per family, beside the peers that are installed.

    python -m benchmarks.cores [--threads 1 2 4 8 16] [--only boosting] [--json results.json]

Every fit runs in a child process (the peers read their number of threads from the environment when they are loaded).
Seconds are the least of ``--repeats`` fits after a small one; memory is the peak of the child.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Fit = Callable[[int], Any]


def dense(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X @ rng.standard_normal(d) + rng.standard_normal(n)


def labels(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = dense(n, d)
    return X, (y > 0).astype(int)


def curved(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels that depend on products of columns, as of a physics table."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)).astype(np.float32)
    score = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + 0.5 * X[:, 3] + rng.standard_normal(n)
    return X, (score > 0).astype(int)


def pictures(n: int, d: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((k, d))
    y = rng.integers(0, k, n)
    return (centres[y] + 3 * rng.standard_normal((n, d))).astype(np.float64), y


def ours(make: Callable[[Any], Any], data: Callable[[], tuple[np.ndarray, np.ndarray]]) -> Fit:
    def fit(threads: int) -> Any:
        import hinge as hg

        hg.set_num_threads(threads)
        return make(hg), data()

    return fit


def light(quantised: bool) -> Fit:
    def fit(threads: int) -> Any:
        import lightgbm

        options = {"use_quantized_grad": True} if quantised else {}
        model = lightgbm.LGBMClassifier(n_estimators=100, num_leaves=31, n_jobs=threads, verbose=-1, **options)
        return model, curved(1_000_000, 28)

    return fit


BOOST: dict[str, Any] = {"max_iter": 100, "max_leaf_nodes": 31, "early_stopping": False}
ROWS: dict[str, Fit] = {
    "ridge 1M x 100": ours(lambda hg: hg.Ridge(), lambda: dense(1_000_000, 100)),
    "logistic 1M x 100": ours(lambda hg: hg.LogisticRegression(), lambda: labels(1_000_000, 100)),
    "Gaussian NB 1M x 100": ours(lambda hg: hg.GaussianNB(), lambda: labels(1_000_000, 100)),
    "linear SVM 200k x 100": ours(lambda hg: hg.LinearSVC(loss="hinge"), lambda: labels(200_000, 100)),
    "SVC 20k x 50": ours(lambda hg: hg.SVC(), lambda: labels(20_000, 50)),
    "boosting 1M x 28": ours(lambda hg: hg.HistGradientBoostingClassifier(**BOOST), lambda: curved(1_000_000, 28)),
    "LightGBM 1M x 28": light(False),
    "LightGBM quantised 1M x 28": light(True),
    "forest 100k x 50": ours(lambda hg: hg.RandomForestClassifier(100), lambda: curved(100_000, 50)),
    "GMM 200k x 20, k = 10": ours(
        lambda hg: hg.GaussianMixture(10, max_iter=20, tol=0.0), lambda: pictures(200_000, 20, 10)
    ),
    "MLP 60k x 784": ours(
        lambda hg: hg.MLPClassifier((128, 128), max_iter=2, tol=0.0), lambda: pictures(60_000, 784, 10)
    ),
    "multinomial 60k x 784 x 10": ours(lambda hg: hg.LogisticRegression(), lambda: pictures(60_000, 784, 10)),
    "kernel ridge 8k": ours(lambda hg: hg.KernelRidge(1.0, kernel="rbf"), lambda: dense(8_000, 20)),
}


def child(row: str, threads: int, repeats: int) -> dict[str, float]:
    """In a process of its own: the least seconds of a fit, of a prediction, and the peak of memory."""
    import warnings

    warnings.simplefilter("ignore")
    model, (X, y) = ROWS[row](threads)
    few = slice(None, 2000)
    model.fit(X[few], y[few])
    data = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        model.fit(X, y)
        seconds.append(time.perf_counter() - began)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    model.predict(X[:100_000])
    predict = time.perf_counter() - began
    return {"fit": min(seconds), "predict": predict, "extra MB": (peak - data) / 1024}


def run(row: str, threads: int, repeats: int, limit: float) -> dict[str, Any]:
    environment = os.environ | {"OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    command = [
        sys.executable,
        "-m",
        "benchmarks.cores",
        "--child",
        row,
        "--threads",
        str(threads),
        "--repeats",
        str(repeats),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"over {limit:.0f} s"}
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["killed"])[-1][:100]}
    return json.loads(done.stdout.splitlines()[-1])


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cores", description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--only", action="append", default=[], help="rows whose name holds this")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for a child")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.child:
        print(json.dumps(child(given.child, given.threads[0], given.repeats)))
        return
    found: dict[str, dict[str, Any]] = {}
    print(f"{'seconds to fit':30s}" + "".join(f"{t:>9d}" for t in given.threads) + "   speed-up   extra MB")
    for row in ROWS:
        if given.only and not any(part in row for part in given.only):
            continue
        cells = {t: run(row, t, given.repeats, given.limit) for t in given.threads}
        found[row] = {str(t): cell for t, cell in cells.items()}
        times = [cells[t].get("fit", float("nan")) for t in given.threads]
        line = f"{row:30s}" + "".join(f"{s:9.3f}" for s in times) + f"   {times[0] / times[-1]:8.1f}"
        line += (
            f"   {cells[given.threads[0]].get('extra MB', 0):.0f} -> {cells[given.threads[-1]].get('extra MB', 0):.0f}"
        )
        errors = {cell["error"] for cell in cells.values() if "error" in cell}
        print(line + ("   " + "; ".join(errors) if errors else ""), flush=True)
        if given.json:
            given.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
