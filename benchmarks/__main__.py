"""``python -m benchmarks <family>``: run a family's tasks and print its tables. ``shapes`` has options of its own,
``plot`` draws the results that ``--json`` wrote."""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import os
import pkgutil
import platform
import sys
import warnings
from pathlib import Path
from typing import Any

from benchmarks import __path__ as folder

FAMILIES = ("linear", "kernel", "probabilistic", "structured", "trees", "networks", "select")


def families() -> list[str]:
    """The families that are written."""
    present = {module.name for module in pkgutil.iter_modules(folder)}
    return [name for name in FAMILIES if name in present]


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Time hinge beside its peers.")
    parser.add_argument("family", choices=families(), help="which tasks")
    parser.add_argument("--task", action="append", default=[], metavar="T", help="only these (a name or a pattern)")
    parser.add_argument("--library", action="append", default=[], metavar="L", help="only these libraries")
    parser.add_argument("--json", type=Path, metavar="F", help="write all figures to this file, after every task")
    parser.add_argument("--repeats", type=int, default=3, metavar="K", help="timings per contender (default 3)")
    parser.add_argument("--budget", type=float, default=60.0, metavar="S", help="no tighter tolerance after S seconds")
    parser.add_argument("--threads", type=int, default=2, metavar="N", help="threads of every library (default 2)")
    parser.add_argument("--list", action="store_true", help="print the tasks and stop")
    return parser.parse_args(arguments)


def select(tasks: list[Any], patterns: list[str]) -> list[Any]:
    """Tasks matching any of the patterns; all of them without any."""
    return [task for task in tasks if not patterns or any(fnmatch.fnmatch(task.name, p) for p in patterns)]


def main(arguments: list[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["shapes"]:
        from benchmarks import shapes

        return shapes.main(given[1:])
    if given[:1] == ["plot"]:
        from benchmarks import plots

        return plots.main(given[1:])
    options = parse(given)
    from benchmarks.machine import pin_threads

    pin_threads(options.threads)
    family = importlib.import_module(f"benchmarks.{options.family}")
    tasks = select(family.TASKS, options.task)
    if options.list:
        for task in tasks:
            print(f"{task.name:40} {task.setting}")
        return 0
    if not tasks:
        print(f"no task of {options.family} matches {', '.join(options.task)}", file=sys.stderr)
        return 2
    run(tasks, options)
    return 0


def run(tasks: list[Any], options: argparse.Namespace) -> None:
    """Run tasks one after another, printing each table as it comes."""
    import threadpoolctl

    from benchmarks import libraries, report
    from benchmarks.draws import run_draws
    from benchmarks.harness import Settings
    from benchmarks.machine import cpu_name, measure_ceilings
    from benchmarks.race import run_task

    warnings.simplefilter("ignore")  # peers warn at loose tolerances, which is where their ladders start
    settings = Settings(options.repeats, budget=options.budget, libraries=tuple(options.library))
    versions = libraries.versions(settings.libraries)
    libraries.set_threads(options.threads, settings.libraries)
    results = []
    with threadpoolctl.threadpool_limits(options.threads):
        ceilings = measure_ceilings()
        machine = {
            "cpu": cpu_name(),
            "cores": os.cpu_count(),
            "threads": options.threads,
            "python": platform.python_version(),
            "system": platform.platform(),
            "ceilings": ceilings.as_dict(),
        }
        print(
            f"{machine['cpu']}, {machine['cores']} cores, {options.threads} threads; {report.ceilings_line(ceilings)}"
        )
        print(", ".join(f"{name} {version}" for name, version in versions.items()), end="\n\n", flush=True)
        for task in tasks:
            race = run_draws if task.draws > 1 else run_task
            result = race(task, libraries.enter, settings, ceilings)
            results.append(result)
            print(report.table(result), flush=True)
            if options.json:
                report.write_json(options.json, report.as_json(results, settings, machine, versions))
    for part in (report.growth_table(results), report.summary(results) if len(results) > 1 else ""):
        if part:
            print(part, end="\n\n")


if __name__ == "__main__":
    sys.exit(main())
