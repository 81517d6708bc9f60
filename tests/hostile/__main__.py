"""``python -m hostile [group …] [--seconds N] [--state FILE]``: the fast part, or the long one for N seconds.

``python -m hostile.campaign`` runs the long part of several groups in parallel.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hostile import allocation, runner
from hostile.groups import GROUPS, LONG

SHOWN = 40  # failures of a group that are printed, and saved; the rest are counted
SEEDS = Path(__file__).parent / "seeds"


def saved(group: str) -> list[str]:
    """Cases that failed once: they run in the fast part ever after."""
    path = SEEDS / f"{group}.json"
    return json.loads(path.read_text()) if path.exists() else []


def save(group: str, case: str) -> None:
    known = saved(group)
    if case not in known:
        (SEEDS / f"{group}.json").write_text(json.dumps([*known, case], indent=1) + "\n")


def restart(allocation_fails: bool) -> None:
    """Run this command again in the environment that the groups need, unless it is there.

    BLAS has one thread. The number of its threads changes the last bits of LAPACK's factorisations, and it is one while
    any thread is in the core: with more, of 240 fits of KernelRidge in four threads 170 differed from a fit alone.
    """
    needed = {"OPENBLAS_NUM_THREADS": "1"} | (allocation.environment() if allocation_fails else {})
    if any(os.environ.get(name) != value for name, value in needed.items()):
        os.environ |= needed
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def long_cases(
    group: runner.Group, state: dict[str, int], deadline: float, begin: int, inputs: int
) -> Iterator[list[str]]:
    """Random cases, batch by batch, from where the last run stopped, until the deadline or the last of the inputs."""
    assert group.random is not None
    batch = 100 if group.seconds <= 10 else 25
    while time.monotonic() < deadline and state.get(group.name, begin) < begin + inputs:
        first = state.get(group.name, begin)
        last = min(first + batch, begin + inputs)
        yield [group.random(seed) for seed in range(first, last)]
        state[group.name] = last


def main() -> int:
    parser = argparse.ArgumentParser(prog="hostile", description=__doc__)
    parser.add_argument("groups", nargs="*", choices=[*GROUPS, *LONG, []])
    parser.add_argument("--seconds", type=float, default=0.0, help="random cases for so long; 0: the fast part")
    parser.add_argument("--state", type=Path, default=Path(".hostile_state.json"), help="where a long run stopped")
    parser.add_argument("--first", type=int, default=0, help="the seed of a group's first random case")
    parser.add_argument(
        "--inputs", type=int, default=10**9, help="the number of random cases of a group, from the first"
    )
    parser.add_argument("--out", type=Path, help="write counts and failures as JSON, instead of failures as seeds")
    parser.add_argument("--case", help="one case, in this process")
    options = parser.parse_args()
    restart("allocation" in (options.groups or GROUPS))
    chosen = [(GROUPS | LONG)[name] for name in options.groups or GROUPS]
    if options.case is not None:
        chosen[0].prepare()
        chosen[0].run(options.case)
        return 0
    state = json.loads(options.state.read_text()) if options.seconds and options.state.exists() else {}
    total: Counter[str] = Counter()
    failures: list[dict[str, str]] = []
    began = time.monotonic()
    for group in chosen:
        group.prepare()
        start, counts, slowest = time.monotonic(), Counter[str](), runner.Outcome(group.name, "", "ok")
        if options.seconds:
            if group.random is None:
                continue
            deadline = start + options.seconds / len(chosen)
            batches = long_cases(group, state, deadline, options.first, options.inputs)
        else:
            batches = iter([[*dict.fromkeys([*saved(group.name), *group.cases()])]])
        for batch in batches:
            for outcome in runner.run(group, batch, 1.0 if options.seconds else runner.FAST_PART):
                counts[outcome.verdict] += 1
                slowest = max(slowest, outcome, key=lambda one: one.seconds)
                counts["shown"] += outcome.bad
                if outcome.bad and counts["shown"] <= SHOWN:
                    print(f"{outcome.verdict}: {outcome.group}: {outcome.case}\n    {outcome.detail}", flush=True)
                    failures.append({name: getattr(outcome, name) for name in ("group", "verdict", "case", "detail")})
                    if options.seconds and options.out is None:
                        save(outcome.group, outcome.case)
            if options.seconds and options.out is None:
                options.state.write_text(json.dumps(state))
        del counts["shown"]
        print(f"{group.name}: {runner.summary(counts, time.monotonic() - start)}", flush=True)
        print(f"    the slowest: {slowest.seconds:.1f} s of the processor, {slowest.case}", flush=True)
        total += counts
    print(f"all: {runner.summary(total, time.monotonic() - began)}")
    if options.out is not None:
        options.out.write_text(json.dumps({"counts": total, "failures": failures}))
    return int(any(total[verdict] for verdict in ("crash", "hang", "wrong", "unclear")))


if __name__ == "__main__":
    sys.exit(main())
