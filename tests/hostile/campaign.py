"""``python -m hostile.campaign --workers 16 --seconds 500``: the long part of many groups, in parallel processes.

Each task is a range of seeds of one group, or 10,002 fits of one estimator, in a process of its own. The table has what was
tried and how it ended; tasks that were not finished in time, or that lack a package, are listed. Failures are saved as seeds.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hostile.__main__ import save
from hostile.api import OPTIONAL

TESTS = Path(__file__).parents[1]
GRACE = 40  # seconds for a task to end after its time is up, and for the last case
FITS = 3334  # in each of three windows
VERDICTS = ("ok", "refused", "crash", "hang", "wrong", "unclear")
# Group: inputs, inputs of one task, packages without which there is nothing to try.
PLAN: dict[str, tuple[int, int, tuple[str, ...]]] = {
    "command": (10_000, 400, ("polars", "typer")),
    "proofs": (5_000, 125, ()),
    "model_files": (100_000, 5_000, ()),
    "api": (100_000, 5_000, ()),
    "allocation": (2_000, 200, ()),
    "sources": (10_000, 500, ("polars",)),
    "checkpoints": (5_000, 500, ()),
}


@dataclass
class Task:
    group: str
    words: list[str]
    inputs: int
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[dict[str, str]] = field(default_factory=list)
    note: str = ""
    seconds: float = 0.0


def families() -> list[str]:
    """The first estimator of tables of each family."""
    from hostile.machine import estimators
    from kit.estimators import first_of_each_family

    return [type(estimator).__name__ for estimator in first_of_each_family(list(estimators().values()))]


def ranges(group: str, inputs: int, size: int, first: int) -> Iterator[tuple[int, int]]:
    """First seeds and numbers of inputs. Calls with one change are all tried, and those with several from the first seed on."""
    parts = [(first, inputs)]
    if group == "api":
        from hostile.api import all_cases

        listed = min(len(all_cases()), inputs)
        parts = [(0, listed), (first, inputs - listed)]
    for begin, count in parts:
        yield from ((begin + k, min(size, count - k)) for k in range(0, count, size))


def tasks(groups: list[str], first: int) -> list[Task]:
    """The longest tasks first, then those of all groups in turn, so that none is left out when time runs out."""
    found = []
    if "leaks" in groups:
        found = [Task("leaks", ["machine", "--case", f"leaks|{name}|{FITS}"], 3 * FITS) for name in families()]
    lists = []
    if "api" in groups and (missing := [name for name in OPTIONAL if find_spec(name) is None]):
        print(f"api: without the inputs that need {', '.join(missing)}, which is not installed", flush=True)
    for group in groups:
        if group == "leaks":
            continue
        inputs, size, packages = PLAN[group]
        if missing := [name for name in packages if find_spec(name) is None]:
            print(f"{group}: left out, since {', '.join(missing)} is not installed", flush=True)
            continue
        spans = ranges(group, inputs, size, first)
        lists.append([Task(group, [group, "--first", str(at), "--inputs", str(n)], n) for at, n in spans])
    for turn in range(max(map(len, lists), default=0)):
        for listed in lists:
            # The longer list has more tasks in each turn.
            share = len(listed) / max(map(len, lists))
            found += listed[round(turn * share) : round((turn + 1) * share)]
    return found


def run(task: Task, deadline: float) -> None:
    """Run one task in a process with a temporary folder of its own."""
    left = deadline - time.monotonic()
    if left < 5:
        task.note = "not begun"
        return
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        words = [sys.executable, "-W", "ignore", "-m", "hostile", *task.words]
        if task.group != "leaks":
            words += ["--seconds", str(left), "--out", str(out)]
        threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "2", "POLARS_MAX_THREADS": "1", "TMPDIR": folder}
        try:
            done = subprocess.run(
                words, cwd=TESTS, env=os.environ | threads, timeout=left + GRACE, capture_output=True, text=True
            )
        except subprocess.TimeoutExpired:
            task.note = "not finished in time"
            return
        task.seconds = time.monotonic() - began
        if out.exists():
            found = json.loads(out.read_text())
            task.counts, task.failures = Counter(found["counts"]), found["failures"]
            task.note = "" if task.counts.total() == task.inputs else "not finished in time"
        elif task.group == "leaks" and done.returncode == 0:
            task.counts, task.note = Counter(ok=task.inputs), done.stdout.strip().splitlines()[-1]
        else:
            last = (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]
            broken = "wrong" if "AssertionError" in last else "crash"
            task.counts[broken] += 1
            task.failures.append({"group": task.group, "verdict": broken, "case": " ".join(task.words), "detail": last})


def table(done: list[Task]) -> str:
    """Counts by group, as rows of a Markdown table."""
    lines = [f"| inputs | tried | of | {' | '.join(VERDICTS)} | processor minutes |", "|---" * 10 + "|"]
    for group in dict.fromkeys(task.group for task in done):
        mine = [task for task in done if task.group == group]
        counts = sum((task.counts for task in mine), Counter[str]())
        cells: list[Any] = [group, counts.total(), sum(task.inputs for task in mine), *(counts[v] for v in VERDICTS)]
        lines.append(f"| {' | '.join(map(str, cells))} | {sum(task.seconds for task in mine) / 60:.1f} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="hostile.campaign", description=__doc__)
    parser.add_argument("groups", nargs="*", help="leaks, " + ", ".join(PLAN))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--seconds", type=float, default=500.0, help="no task begins, and no batch of inputs, after these"
    )
    parser.add_argument("--first", type=int, default=10_000_000, help="the first seed of every group")
    parser.add_argument("--out", type=Path, help="a copy of the summary and of all failures, as JSON")
    options = parser.parse_args()
    planned = tasks(options.groups or ["leaks", *PLAN], options.first)
    deadline = time.monotonic() + options.seconds
    with ThreadPoolExecutor(options.workers) as pool:
        list(pool.map(lambda task: run(task, deadline), planned))
    for task in planned:
        for failure in task.failures:
            print(f"{failure['verdict']}: {failure['group']}: {failure['case']}\n    {failure['detail']}")
            if task.group in PLAN and task.group != "proofs" and not re.match(r"\S+ --", failure["case"]):
                save(failure["group"], failure["case"])
    print(*(f"{task.words[-1]}: {task.note}" for task in planned if task.group == "leaks"), sep="\n")
    late = Counter(f"{task.group}: {task.note}" for task in planned if task.group != "leaks" and task.note)
    print(*(f"{note} ({count} tasks)" for note, count in late.items()), sep="\n")
    print(table(planned))
    failures = [failure for task in planned for failure in task.failures]
    if options.out is not None:
        notes = {task.words[-1]: task.note for task in planned if task.note}
        options.out.write_text(json.dumps({"table": table(planned), "failures": failures, "notes": notes}, indent=1))
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
