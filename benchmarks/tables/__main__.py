"""``python -m benchmarks.tables``: see the package."""

from __future__ import annotations

import argparse
import json
import os
import queue
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.tables import __doc__ as description
from benchmarks.tables.rivals import RIVALS
from benchmarks.tables.sources import SOURCES, pack
from benchmarks.tables.summary import (
    Key,
    losses_place,
    markdown,
    order_of,
    read_records,
    restore,
    store,
    summarise,
)

LIMIT = 3.0  # times the seconds: what takes longer is recorded as "no time"
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT")


class Runner:
    """Runs cells in processes of their own, several at a time, until a deadline."""

    def __init__(
        self, folder: Path, packed: Path | None, seconds: float, threads: int, jobs: int, minutes: float
    ) -> None:
        self.folder, self.packed, self.seconds, self.threads, self.jobs = folder, packed, seconds, threads, jobs
        self.deadline = time.monotonic() + 60 * minutes
        self.slots: queue.SimpleQueue[int] = queue.SimpleQueue()
        for slot in range(jobs):
            self.slots.put(slot)
        self.writing = threading.Lock()

    def run(self, keys: list[Key]) -> None:
        with ThreadPoolExecutor(self.jobs) as pool:
            for done in [pool.submit(self.one, key) for key in keys]:
                done.result()

    def one(self, key: Key) -> None:
        """Run a cell and append its record; a cell that meets the deadline leaves no record."""
        left = self.deadline - time.monotonic()
        if left <= (self.seconds if key[2] == "hinge" else 1.0):
            return
        slot = self.slots.get()
        try:
            record = self.record(key, slot, left)
        finally:
            self.slots.put(slot)
        if record is None:
            return
        with self.writing:
            with (self.folder / "records.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
            loss = f"{record['loss']:12.5g}   {record['seconds']:6.1f} s" if "loss" in record else record["state"]
            print(f"{key[0]:22s} {key[1]} {key[2]:22s} {loss}  {record.get('what', record.get('why', ''))}", flush=True)

    def record(self, key: Key, slot: int, left: float) -> dict[str, Any] | None:
        """The record of a cell, made by a process of its own; None if the deadline came first."""
        table, split, library = key
        command = [
            sys.executable, "-m", "benchmarks.tables.cell", table, str(split), library, str(self.seconds), str(self.threads),
            str(slot), str(losses_place(self.folder, key)), str(self.packed or ""),
        ]  # fmt: skip
        record: dict[str, Any] = {"table": table, "split": split, "library": library, "limit": self.seconds}
        own = max(LIMIT * self.seconds, 120.0)
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=min(own, left), check=False,
                env=os.environ | {name: str(self.threads) for name in THREADS},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return None if left < own else record | {"state": "no time"}
        if done.returncode:
            return record | {"state": "failed", "why": done.stderr.strip().splitlines()[-1:]}
        return record | json.loads(done.stdout.strip().splitlines()[-1])


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    libraries = ["hinge", *RIVALS]
    options.add_argument("--seconds", type=float, default=60.0, help="what hg.learn gets")
    options.add_argument("--splits", type=int, default=3)
    options.add_argument("--tables", nargs="*", default=list(SOURCES), choices=list(SOURCES), metavar="NAME")
    options.add_argument("--libraries", nargs="*", default=libraries, choices=libraries, metavar="NAME")
    options.add_argument("--jobs", type=int, default=1, help="cells at the same time")
    options.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="threads of a cell")
    options.add_argument("--minutes", type=float, default=float("inf"), help="when to stop")
    options.add_argument("--folder", type=Path, default=Path("tables-results"))
    options.add_argument(
        "--archive", type=Path, help="a file of all results: read at the start if it exists, written at the end"
    )
    options.add_argument("--from", dest="packed", type=Path, help="a folder of packed tables")
    options.add_argument("--pack", type=Path, metavar="FOLDER", help="only write the tables into this folder")
    options.add_argument("--summary", action="store_true", help="run nothing; print the Markdown table of the folder")
    return options


def main() -> None:
    """Splits × tables × libraries; cells of the folder that are there already are not run again."""
    given = parser().parse_args()
    if given.pack is not None:
        print(f"{pack(given.pack, given.tables) / 2**20:.2f} MiB")
        return
    given.folder.mkdir(parents=True, exist_ok=True)
    if given.archive is not None and given.archive.exists():
        restore(given.archive, given.folder)
    if not given.summary:
        there = read_records(given.folder)
        keys = order_of(given.tables, given.splits, given.libraries)
        keys = [key for key in keys if key not in there or there[key]["state"] == "failed"]
        Runner(given.folder, given.packed, given.seconds, given.threads, given.jobs, given.minutes).run(keys)
    print(markdown(summarise(given.folder)))
    if given.archive is not None:
        store(given.folder, given.archive)


if __name__ == "__main__":
    main()
