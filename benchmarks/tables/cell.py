"""One cell: a table, a split, a library. ``python -m benchmarks.tables.cell`` runs it and prints its record as JSON."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
import warnings
from pathlib import Path

import numpy as np


def use_cores(slot: int, threads: int) -> None:
    """Keep this process to the cores of its slot, if the machine has a slot's cores for every job."""
    cores = sorted(os.sched_getaffinity(0))
    own = cores[slot * threads : (slot + 1) * threads]
    if len(own) == threads:
        os.sched_setaffinity(0, own)


def run_cell(
    name: str, split: int, library: str, seconds: float, packed: Path | None
) -> tuple[dict[str, object], np.ndarray]:
    """The record of a cell and the losses of its test rows."""
    import polars as pl

    import hinge as hg
    from benchmarks.tables.problems import make_problem
    from benchmarks.tables.rivals import RIVALS
    from hinge.learning.scores import METRICS, TITLES, measure_for

    p = make_problem(name, packed)
    data, target = p.data, p.data.target
    train, test = p.split(split)
    record: dict[str, object] = {
        "table": name, "split": split, "library": library, "limit": seconds, "metric": TITLES[METRICS[data.task][0]],
        "rows": len(p.labels), "columns": len(data.columns),
    }  # fmt: skip
    if library != "hinge" and not (p.names("text") if library == "tf-idf" else p.flat):
        return record | {"state": "does not apply"}, np.empty(0)
    measure = measure_for(data.task, data.classes, float(np.mean(data.y[train])))
    targets = data.y[test].astype(np.int64) if p.classify else data.y[test]
    began, cpu = time.perf_counter(), time.process_time()
    if library == "hinge":
        frame = data.frame.with_columns(pl.Series(target, p.labels))
        kept = data.frame.columns
        found = hg.learn(frame[train], target, task=data.task, seconds=seconds, keep=kept, random_state=split)
        record["what"] = f"{found.chosen.name}; {len(found.search.results)} settings"
        model, X = found.model.pipeline, data.frame
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = RIVALS[library](p, train)
        X = p.table if library == "tf-idf" else p.table[p.flat]
    record |= {"seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu}
    rows = X[test] if library == "hinge" else getattr(model, "prepare", lambda table: table)(X.iloc[test])
    loss = measure.losses(model, rows, targets)
    record["megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return record | {"state": "done", "loss": float(np.mean(loss))}, loss


def main() -> None:
    name, split, library, seconds, threads, slot, place, packed = sys.argv[1:]
    use_cores(int(slot), int(threads))
    import hinge as hg

    hg.set_num_threads(int(threads))
    try:
        record, loss = run_cell(name, int(split), library, float(seconds), Path(packed) if packed else None)
    except ImportError as error:
        record, loss = {"state": "not installed", "why": str(error)}, np.empty(0)
    if len(loss):
        np.save(Path(place), loss.astype(np.float32))
    print(json.dumps(record))


if __name__ == "__main__":
    main()
