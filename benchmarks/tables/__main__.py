"""``python -m benchmarks.tables``: see the package."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.tables import __doc__ as description
from benchmarks.tables.problems import TABLES
from benchmarks.tables.rivals import RIVALS
from benchmarks.tables.summary import Key, losses_place, markdown, read_records, summarise

LIMIT = 10.0  # times the seconds: what takes longer is recorded as "no time"
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT")


def run(key: Key, folder: Path, seconds: float, threads: int) -> dict[str, Any]:
    """The record of a cell, made by a process of its own."""
    table, split, library = key
    place = losses_place(folder, key)
    command = [
        sys.executable, "-m", "benchmarks.tables.cell", table, str(split), library, str(seconds), str(threads), str(place)
    ]  # fmt: skip
    record: dict[str, Any] = {"table": table, "split": split, "library": library, "limit": seconds}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=max(LIMIT * seconds, 120.0), check=False,
            env=os.environ | {name: str(threads) for name in THREADS},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return record | {"state": "no time"}
    if done.returncode:
        return record | {"state": "failed", "why": done.stderr.strip().splitlines()[-1:]}
    return record | json.loads(done.stdout.strip().splitlines()[-1])


def main() -> None:
    """Splits × tables × libraries; cells of the folder that are there already are not run again."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="what hg.learn gets")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--tables", nargs="*", default=list(TABLES), choices=list(TABLES), metavar="NAME")
    libraries = ["hinge", *RIVALS]
    parser.add_argument("--libraries", nargs="*", default=libraries, choices=libraries, metavar="NAME")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--folder", type=Path, default=Path("tables-results"))
    parser.add_argument("--summary", action="store_true", help="run nothing; print the Markdown table of the folder")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if not given.summary:
        there = read_records(given.folder)
        for split in range(given.splits):
            for table in given.tables:
                for library in given.libraries:
                    key = (table, split, library)
                    if key in there and there[key]["state"] != "failed":
                        continue
                    record = run(key, given.folder, given.seconds, given.threads)
                    with (given.folder / "records.jsonl").open("a", encoding="utf-8") as file:
                        file.write(json.dumps(record) + "\n")
                    loss = (
                        f"{record['loss']:12.5g}   {record['seconds']:6.1f} s" if "loss" in record else record["state"]
                    )
                    print(f"{table:22s} {split} {library:22s} {loss}  {record.get('what', '')}", flush=True)
    print(markdown(summarise(given.folder)))


if __name__ == "__main__":
    main()
