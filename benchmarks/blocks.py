"""Fits over blocks of a table that is larger than the memory allowed, against the time it takes to read it.

    python -m benchmarks.blocks [--rows 6000000] [--memory 128MB] [--rounds 50] [--only ridge boosting xgboost] [--json FILE]

The table has the shape of HIGGS (28 columns of float64) and is written once, block by block, from seeds. Every task runs in
a child process. Columns: seconds on the clock and of the processors; passes over the features and over codes; MB of storage
read per second; the floor, what it takes to read the same bytes as often (passes × seconds of a pass that only reads, and the
bytes of codes over the rate at which a file of them is read); seconds over floor; the peak of resident memory above that of
the imports; a score on rows of its own. XGBoost reads the same file as external memory, in the same batches (pip install
xgboost); dask-ml fits the same logistic regression on a LocalCluster of two workers, as ours does (pip install dask-ml), with
the arrays read in every evaluation and with the arrays in memory. Both have fitted a small table before, so that the workers
have imported what they need. With flights-3m.parquet in the folder (npm pack vega-datasets, data/flights-3m.parquet) delays
are fitted to distances and airports.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROUNDS = "HINGE_BENCHMARK_ROUNDS"  # how children learn the number of trees
COLUMNS, GROUP, HELD = 28, 100_000, 200_000
NAMES = [f"x{j}" for j in range(COLUMNS)]
LEAVES = 31
FLIGHTS = "flights-3m.parquet"
FLIGHTS_MEMORY = "8MB"  # its columns in use are 72 MB as numbers
OURS = "ridge", "logistic", "naive_bayes", "mixture", "boosting"


def make_rows(seed: int, rows: int) -> dict[str, np.ndarray]:
    """Columns whose label depends on products and thresholds, as the masses of HIGGS do."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, COLUMNS))
    score = X[:, 0] * X[:, 1] + np.abs(X[:, 2]) - (X[:, 3] > 0.5) + 0.5 * X[:, 4] - 0.3
    return dict(zip(NAMES, X.T)) | {
        "y": (score + rng.logistic(size=rows) > 0).astype(np.int8),
        "z": score + rng.normal(size=rows),
    }


def write_table(path: Path, rows: int, first_seed: int) -> None:
    """A Parquet file, written in groups of rows; one that is there already is kept."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.exists():
        return
    partial, writer = path.with_suffix(".part"), None
    for k, start in enumerate(range(0, rows, GROUP)):
        table = pa.table(make_rows(first_seed + k, min(GROUP, rows - start)))
        writer = writer or pq.ParquetWriter(partial, table.schema, use_dictionary=False)
        writer.write_table(table)
    assert writer is not None
    writer.close()
    partial.replace(path)


def scanned(folder: Path, target: str | None, memory: str | None, **options: Any) -> Any:
    """The source of a task."""
    import hinge as hg

    return hg.scan(str(folder / "train.parquet"), target=target, columns=NAMES, memory=memory, **options)


# --------------------------------------------------------------------------------------------------------------------- tasks


def run_read(folder: Path, memory: str) -> dict[str, Any]:
    """A pass that only reads and makes arrays."""
    from hinge.blocks.resident import ArrayFile, SpoolFiles

    source = scanned(folder, "y", memory)
    began = time.perf_counter()
    rows = sum(len(block.X) for block in source.blocks())
    seconds = time.perf_counter() - began
    files, times = SpoolFiles(), []  # as blocks of codes are kept in
    stored = [ArrayFile.of(files["codes"], np.full(4 * 2**20, k, dtype=np.uint8)) for k in range(64)]
    codes = np.zeros(4 * 2**20, dtype=np.uint8)
    for array in stored:
        at = time.perf_counter()
        array.read(codes)
        times.append(time.perf_counter() - at)
    return {"seconds": seconds, "passes": 1, "rows": rows, "code_rate": len(codes) / float(np.median(times))}


def fitted(model: Any, target: str | None, folder: Path, memory: str | None, **options: Any) -> dict[str, Any]:
    """A fit of ours, and its score on other rows."""
    import hinge as hg

    return timed(
        model,
        scanned(folder, target, memory, **options),
        hg.scan(str(folder / "held.parquet"), target=target, columns=NAMES),
    )


def timed(model: Any, source: Any, held: Any) -> dict[str, Any]:
    """A fit to one source, and its score on another."""
    began = time.perf_counter()
    model.fit(source)
    seconds, reading = time.perf_counter() - began, model.reading_
    return {
        "seconds": seconds, "passes": reading.passes, "bytes": reading.bytes, "coded_passes": reading.coded_passes,
        "coded_bytes": reading.coded_bytes, "score": model.score(held),
    }  # fmt: skip


def run_ridge(folder: Path, memory: str) -> dict[str, Any]:
    """Ridge regression."""
    import hinge as hg

    return fitted(hg.Ridge(), "z", folder, memory)


def run_logistic(folder: Path, memory: str) -> dict[str, Any]:
    """Logistic regression."""
    import hinge as hg

    return fitted(hg.LogisticRegression(), "y", folder, memory)


def run_naive_bayes(folder: Path, memory: str) -> dict[str, Any]:
    """Gaussian naive Bayes."""
    import hinge as hg

    return fitted(hg.GaussianNB(), "y", folder, memory)


def run_mixture(folder: Path, memory: str) -> dict[str, Any]:
    """Ten steps of EM for four Gaussians."""
    import warnings

    import hinge as hg

    warnings.simplefilter("ignore")
    return fitted(hg.GaussianMixture(4, max_iter=10, tol=0.0, random_state=0), None, folder, memory)


def run_boosting(folder: Path, memory: str) -> dict[str, Any]:
    """Boosting, without held-out rows."""
    import hinge as hg

    model = hg.HistGradientBoostingClassifier(max_iter=rounds(), max_leaf_nodes=LEAVES, early_stopping=False)
    return fitted(model, "y", folder, memory)


def rounds() -> int:
    """Trees of boosting."""
    return int(os.environ.get(ROUNDS, "50"))


def flights(model: Any, folder: Path) -> dict[str, Any]:
    """A fit to the delays of three million flights."""
    import hinge as hg

    options = {"target": "delay", "columns": ["distance", "origin", "destination"]}
    whole = str(folder.parent / FLIGHTS)
    return timed(model, hg.scan(whole, memory=FLIGHTS_MEMORY, **options), hg.scan(whole, **options))


def run_flights_linear(folder: Path, memory: str) -> dict[str, Any]:
    """A Gaussian linear model with categories and standard errors."""
    import hinge as hg

    return flights(hg.GLM("gaussian", categorical_features="from_dtype"), folder)


def run_flights_boosting(folder: Path, memory: str) -> dict[str, Any]:
    """Boosting with categories."""
    import hinge as hg

    model = hg.HistGradientBoostingRegressor(max_iter=rounds(), max_leaf_nodes=LEAVES, early_stopping=False)
    return flights(model, folder)


def batches(path: Path) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The row groups of the table as float32, which is what XGBoost keeps."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    for k in range(file.num_row_groups):
        table = file.read_row_group(k, columns=[*NAMES, "y"])
        X = np.column_stack([table[name].to_numpy().astype(np.float32) for name in NAMES])
        yield X, table["y"].to_numpy()


def run_xgboost(folder: Path, memory: str) -> dict[str, Any]:
    """XGBoost's external memory, with as many leaves and rounds."""
    import xgboost as xgb

    class Batches(xgb.DataIter):
        def __init__(self, cache: str) -> None:
            self.blocks = batches(folder / "train.parquet")
            self.passes = 0
            super().__init__(cache_prefix=cache)

        def next(self, input_data: Any) -> bool:
            found = next(self.blocks, None)
            if found is None:
                return False
            input_data(data=found[0], label=found[1])
            return True

        def reset(self) -> None:
            self.blocks = batches(folder / "train.parquet")
            self.passes += 1

    with tempfile.TemporaryDirectory(dir=folder) as cache:
        iterator = Batches(str(Path(cache) / "cache"))
        began = time.perf_counter()
        data = xgb.ExtMemQuantileDMatrix(iterator, max_bin=255)
        options = {
            "objective": "binary:logistic", "tree_method": "hist", "grow_policy": "lossguide", "max_leaves": LEAVES,
            "max_depth": 0, "eta": 0.1, "max_bin": 255,
        }  # fmt: skip
        model = xgb.train(options, data, rounds())
        seconds = time.perf_counter() - began
    right = rows = 0
    for X, y in batches(folder / "held.parquet"):
        right += int(((model.inplace_predict(X) > 0.5) == y).sum())
        rows += len(y)
    return {"seconds": seconds, "passes": iterator.passes, "score": right / rows}


def on_cluster(run: Any) -> dict[str, Any]:
    """run(client) on two workers of one thread each."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
        Client(cluster) as client,
    ):
        return run(client)


def run_dask_logistic(folder: Path, memory: str) -> dict[str, Any]:
    """Our logistic regression on a cluster, within the memory of its workers."""
    import hinge as hg

    def run(client: Any) -> dict[str, Any]:
        # Imports of both workers: with fewer rows per block each row group is a part, as it is for dask-ml.
        held = hg.scan(str(folder / "held.parquet"), target="y", columns=NAMES, block_rows=GROUP, executor=client)
        hg.LogisticRegression().fit(held)
        return fitted(hg.LogisticRegression(), "y", folder, None, executor=client)

    return on_cluster(run)


def columns(path: Path, group: int, names: list[str]) -> np.ndarray:
    """Some columns of a group of rows."""
    import pyarrow.parquet as pq

    table = pq.ParquetFile(path).read_row_group(group, columns=names)
    return np.column_stack([table[name].to_numpy() for name in names]).astype(np.float64)


def run_dask_ml(folder: Path, memory: str) -> dict[str, Any]:
    """The logistic regression of dask-ml on the same cluster, which reads the file in every evaluation."""
    return dask_ml(folder, persist=False)


def run_dask_ml_persisted(folder: Path, memory: str) -> dict[str, Any]:
    """The same, with the arrays in the memory of the workers."""
    return dask_ml(folder, persist=True)


def dask_ml(folder: Path, *, persist: bool) -> dict[str, Any]:
    """The logistic regression of dask-ml."""

    def fit(path: Path) -> Any:
        import dask
        import dask.array as da
        import pyarrow.parquet as pq
        from dask_ml.linear_model import LogisticRegression  # type: ignore[import-untyped,import-not-found,unused-ignore]

        groups = [pq.read_metadata(path).row_group(k).num_rows for k in range(pq.read_metadata(path).num_row_groups)]
        X = da.concatenate(
            [da.from_delayed(dask.delayed(columns)(path, k, NAMES), (n, COLUMNS), float) for k, n in enumerate(groups)]
        )
        y = da.concatenate(
            [da.from_delayed(dask.delayed(columns)(path, k, ["y"])[:, 0], (n,), float) for k, n in enumerate(groups)]
        )
        if persist:
            X, y = dask.persist(X, y)
        return LogisticRegression(C=1.0, solver="lbfgs").fit(X, y)

    def run(_: Any) -> dict[str, Any]:
        fit(folder / "held.parquet")  # imports of the workers
        began = time.perf_counter()
        model = fit(folder / "train.parquet")
        seconds = time.perf_counter() - began
        found = [(model.predict(X) == y, len(y)) for X, y in batches(folder / "held.parquet")]
        return {"seconds": seconds, "score": sum(float(np.sum(r)) for r, _ in found) / sum(n for _, n in found)}

    return on_cluster(run)


TASKS = {
    "read": run_read, "ridge": run_ridge, "logistic": run_logistic, "naive_bayes": run_naive_bayes, "mixture": run_mixture,
    "boosting": run_boosting, "xgboost": run_xgboost, "dask_logistic": run_dask_logistic, "dask_ml": run_dask_ml,
    "dask_ml_persisted": run_dask_ml_persisted, "flights_linear": run_flights_linear,
    "flights_boosting": run_flights_boosting,
}  # fmt: skip


# -------------------------------------------------------------------------------------------------------------------- harness


def child(task: str, folder: Path, memory: str) -> None:
    """One task in this process; prints one JSON object."""
    import hinge  # noqa: F401  # counts as imports, not as the task's memory

    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, os.times()
    found = TASKS[task](folder, memory)
    found["peak_mb"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    found["cpu"] = sum(os.times()[:4]) - sum(began[:4])  # with that of workers that have ended
    print(json.dumps(found))


def measure(task: str, folder: Path, memory: str, limit: float) -> dict[str, Any]:
    """A task in a child process; what it printed, or why it failed."""
    command = [sys.executable, "-m", "benchmarks.blocks", "--child", task, "--folder", str(folder), "--memory", memory]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {limit:g} s"}
    if done.returncode != 0:
        return {"failed": (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def line(task: str, found: dict[str, Any], read: dict[str, Any], size: float) -> str:
    """A row of the table."""
    if "failed" in found:
        return f"{task:16s} failed: {found['failed']}"
    passes, seconds = found.get("passes", 0), found["seconds"]
    floor = 0.0
    if task in OURS:
        floor = passes * read.get("seconds", 0.0) + found.get("coded_bytes", 0) / read.get("code_rate", np.inf)
    moved = found.get("bytes", passes * size) + found.get("coded_bytes", 0)
    ratio = f"{floor:8.2f} {seconds / floor:6.2f}" if floor > 0 else f"{'-':>8s} {'-':>6s}"
    return (
        f"{task:16s} {seconds:9.2f} {found['cpu']:8.2f} {passes:6d} {found.get('coded_passes', 0):6d} "
        f"{moved / seconds / 1e6:8.0f} {ratio} {found['peak_mb']:8.0f} {found.get('score', float('nan')):9.4f}"
    )


def main(arguments: list[str] | None = None) -> None:
    """Write the table, run the tasks, print the rows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.blocks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=6_000_000)
    parser.add_argument("--memory", default="128MB")
    parser.add_argument("--rounds", type=int, default=50, help="trees of boosting")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "hinge-blocks")
    parser.add_argument("--only", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds for one task")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", choices=list(TASKS), help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.child:
        child(given.child, given.folder, given.memory)
        return
    os.environ[ROUNDS] = str(given.rounds)
    folder = given.folder / str(given.rows)
    folder.mkdir(parents=True, exist_ok=True)
    write_table(folder / "train.parquet", given.rows, 1000)
    write_table(folder / "held.parquet", min(HELD, given.rows), 1)
    size = (folder / "train.parquet").stat().st_size
    numbers = given.rows * COLUMNS * 8
    print(
        f"{given.rows:,} × {COLUMNS}, {numbers / 1e6:,.0f} MB of numbers, {size / 1e6:,.0f} MB of Parquet, {given.memory} "
        f"allowed; {given.rounds} rounds of {LEAVES} leaves; {os.cpu_count()} processors"
    )
    print(
        f"{'task':16s} {'seconds':>9s} {'cpu s':>8s} {'passes':>6s} {'coded':>6s} {'MB/s':>8s} {'floor':>8s} {'ratio':>6s} "
        f"{'peak MB':>8s}     score"
    )
    results: dict[str, Any] = {}
    for task in ["read", *(task for task in given.only if task != "read")]:
        if task.startswith("flights") and not (given.folder / FLIGHTS).exists():
            print(f"{task:16s} left out: {given.folder / FLIGHTS} is not there")
            continue
        results[task] = found = measure(task, folder, given.memory, given.limit)
        print(line(task, found, results["read"], size), flush=True)
    if given.json:
        given.json.write_text(
            json.dumps(
                {"rows": given.rows, "bytes": size, "memory": given.memory, "rounds": given.rounds, "results": results}
            )
        )


if __name__ == "__main__":
    main()
