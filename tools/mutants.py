"""Mutation testing: what share of small changes in the code do the tests notice?

python tools/mutants.py -n 250 --seed 0          a sample of all mutations (tools/mutations.py) of the FOLDERS
python tools/mutants.py --file solvers/lbfgs.py     all mutations of one file
python tools/mutants.py --known                     those of tools/known_mutations.py, each with its own tests

1. A map from lines of code to tests, from one run of the TESTS under coverage, but for those that take longer than a few
   seconds (tools/cpu_seconds.py); it is kept in build/mutants and made again where tests have changed. Where the code has
   changed since, a file is taken to be reached by all tests that reached any line of it; delete build/mutants/map.json for
   a new map.
2. The working tree is never touched. A mutant of a function is a forked process in which the function has got the changed
   code; a mutant of what runs at import (a default, a constant, an attribute of a class) is a copy of the package in a
   temporary folder (links, but for one file). The process runs the tests that reach the changed line, quickest first,
   until one fails: the mutant is killed. It is killed, too, if it takes much longer than the tests do without it, in
   seconds of processor time. It survives if they pass. ``-j 2`` tries two at a time.
3. Results are kept in build/mutants/results.json: a run that was stopped goes on, killed mutants stay killed as long as their
   file is as it was, and survivors are tried again when tests have changed.

Some survivors change nothing that could be seen (a guard against rounding, a second way to the same answer): the rate does
not go to zero.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import hashlib
import importlib
import inspect
import json
import math
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import types
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock, local
from typing import Any

from known_mutations import KNOWN, Known
from mutations import Mutation, functions, mutations

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "hinge"
# What is mutated, below src/hinge. Pictures and pages are left out: their numbers are matters of taste.
FOLDERS = ("problem", "solvers", "select", "explain")
DRAWN = ("plot", "display", "page", "axes", "report_text", "posterior")
# What is run. Checks of names, files, pages and the command reach every line and judge few.
TESTS = (
    "tests/contracts", "tests/theory", "tests/select", "tests/explain", "tests/features", "tests/models", "tests/agreement",
    "tests/blocks/test_judge.py",
)  # fmt: skip
DEFAULTS = "tests/contracts/test_defaults.py"  # judges what runs at import, and reaches no line of its own
KEPT = ROOT / "build" / "mutants"
PYTEST = ("-q", "-p", "no:cacheprovider", "-m", "not slow", "--tb=line")
BUDGET = 12.0  # seconds of tests per mutant, as they take without it (processor time, like all that follow)
TOGETHER = 4  # files of tests per run under coverage; the map is saved after each run
PATIENCE, START = 3.0, 30  # how many times that long a mutant may take, and for imports and collection
WAIT = 600.0  # by the clock, if it does nothing at all
# Imported once, before the processes of the mutants are forked; hinge itself is not.
HEAVY = (
    "numpy", "scipy.optimize", "scipy.sparse", "scipy.special", "scipy.stats", "scipy.linalg", "sklearn.ensemble",
    "sklearn.linear_model", "sklearn.model_selection", "sklearn.pipeline", "sklearn.preprocessing", "sklearn.svm",
    "sklearn.utils.estimator_checks", "pandas", "polars", "narwhals", "matplotlib.pyplot", "clarabel", "pytest",
)  # fmt: skip

Map = dict[str, Any]


def digest(*paths: Path) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:16]


def sources() -> list[Path]:
    """The files that are mutated."""
    found = [path for folder in FOLDERS for path in sorted((SOURCE / folder).rglob("*.py"))]
    return [path for path in found if not any(word in str(path.relative_to(SOURCE)) for word in DRAWN)]


# --- 1. Which tests reach which lines -------------------------------------------------------------------------------


def covering(jobs: int = 1, places: Sequence[str] = TESTS) -> Map:
    """{"lines": {file: {line: [test]}}, "times": {test: seconds}}, kept; tests that are new are measured."""
    path, files = KEPT / "map.json", [p for t in places for p in _tests_in(ROOT / t)]
    kept: Map = {"code": {}, "tests": {}, "lines": {}, "times": {}}
    if path.exists():
        kept = json.loads(path.read_text())
    if not kept["tests"]:
        kept["code"] = {str(p.relative_to(SOURCE)): digest(p) for p in sources()}
    now = {str(p.relative_to(ROOT)): digest(p) for p in files}
    changed = [name for name, key in now.items() if kept["tests"].get(name) != key]
    if changed:
        print(f"tests of {len(changed)} files under coverage …", flush=True)
        _forget(kept, {*changed, *(set(kept["tests"]) - set(now))})
        kept["tests"] = {name: key for name, key in kept["tests"].items() if name in now and name not in changed}
        KEPT.mkdir(parents=True, exist_ok=True)
        parts, lock = [changed[first : first + TOGETHER] for first in range(0, len(changed), TOGETHER)], Lock()

        def measure(part: list[str]) -> None:
            with tempfile.TemporaryDirectory() as folder:
                _run_covered(Path(folder), part)
                with lock:
                    _adopt(kept, Path(folder), part)
                    kept["tests"] |= {name: now[name] for name in part}
                    path.write_text(json.dumps(kept))

        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(measure, parts))
    return kept


def _tests_in(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(path.rglob("test_*.py"))


def _forget(kept: Map, names: set[str]) -> None:
    for lines in kept["lines"].values():
        for line, tests in lines.items():
            lines[line] = [test for test in tests if test.split("::")[0] not in names]
    kept["times"] = {test: t for test, t in kept["times"].items() if test.split("::")[0] not in names}


def _run_covered(folder: Path, names: list[str]) -> None:
    packages = [f"--cov=hinge.{name}" for name in FOLDERS]
    path = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))
    subprocess.run(
        [sys.executable, "-m", "pytest", *PYTEST, "-p", "cpu_seconds", *packages, "--cov-context=test", "--cov-report=",
         f"--junitxml={folder / 'times.xml'}", *names],
        cwd=ROOT, env={**os.environ, "COVERAGE_FILE": str(folder / "coverage"), "PYTHONPATH": path}, check=False,
    )  # fmt: skip


def _adopt(kept: Map, folder: Path, names: list[str]) -> None:
    import coverage

    failed = set()
    for case in ElementTree.parse(folder / "times.xml").getroot().iter("testcase"):
        test = _node(case.get("classname") or "", case.get("name") or "", names)
        seconds = [p.get("value") for p in case.iter("property") if p.get("name") == "seconds"]
        kept["times"][test] = float((seconds or [case.get("time")])[0] or 0.0)
        if case.find("failure") is not None or case.find("error") is not None or case.find("skipped") is not None:
            failed.add(test)
    found = coverage.CoverageData(str(folder / "coverage"))
    found.read()
    for file in found.measured_files():
        lines = kept["lines"].setdefault(str(Path(file).relative_to(SOURCE)), {})
        for line, contexts in found.contexts_by_lineno(file).items():
            tests = {context.rsplit("|", 1)[0] for context in contexts if "|" in context}
            lines[str(line)] = sorted({*lines.get(str(line), []), *(tests - failed)})


def _node(classname: str, name: str, files: list[str]) -> str:
    """tests.theory.test_x.TestY, test_z → tests/theory/test_x.py::TestY::test_z."""
    for file in files:
        module = file[:-3].replace("/", ".")
        if classname == module or classname.startswith(module + "."):
            return "::".join([file, *classname[len(module) + 1 :].split("."), name]).replace("::::", "::")
    return f"{classname}::{name}"


def reaching(kept: Map, file: str, line: int, text: str) -> list[str]:
    """The tests that reach a line, quickest first, for BUDGET seconds.

    A line that runs at import (a default, a constant) is reached by the tests of the function it belongs to, or of the
    file, and by the record of defaults.
    """
    lines = {int(k): v for k, v in kept["lines"].get(file, {}).items()}
    same = kept["code"].get(file) == digest(SOURCE / file)
    found = set(lines.get(line, ())) if same else set()
    if not found:
        around = [span for span in functions(text) if span[0] <= line <= span[1] and same]
        first, last = around[-1] if around else (0, 10**9)
        found = {test for k, tests in lines.items() if first <= k <= last for test in tests}
    inside = any(first < line <= last for first, last in functions(text))
    chosen, total = [] if lines.get(line) and same and inside else [DEFAULTS], 0.0
    found = {test for test in found if "\\" not in test}  # pytest does not find the escapes of its own names
    for test in sorted(found, key=lambda t: (kept["times"].get(t, 1.0), t)):
        total += kept["times"].get(test, 1.0)
        if total > BUDGET and chosen:
            break
        chosen.append(test)
    return chosen


# --- 2. One mutant --------------------------------------------------------------------------------------------------


def overlay(folder: Path, file: str, text: str) -> None:
    """The package in a folder: links to everything but one file."""
    here, there = folder / "hinge", SOURCE
    for part in [*Path(file).parts, ""]:
        here.mkdir()
        for child in there.iterdir():
            if child.name not in (part, "__pycache__"):
                (here / child.name).symlink_to(child)
        here, there = here / part, there / part
        if there.suffix == ".py":
            break
    here.write_text(text)
    for place in sys.path:  # the compiled core, which an editable install keeps elsewhere
        for library in Path(place, "hinge").glob("_core*"):
            if not (folder / "hinge" / library.name).exists():
                (folder / "hinge" / library.name).symlink_to(library)


Codes = dict[tuple[str, int], types.CodeType]


def codes(text: str, path: str) -> Codes:
    """The compiled code of a file: {(qualified name, how many of that name came before): code}."""
    found: Codes = {}
    waiting = [compile(text, path, "exec")]
    while waiting:
        code = waiting.pop(0)
        number = sum(name == code.co_qualname for name, _ in found)
        found[code.co_qualname, number] = code
        waiting += [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return found


def changed_functions(text: str, mutant: str, path: str) -> Codes | None:
    """The functions whose code differs, with their new code; None if what runs at import differs."""
    before, after = codes(text, path), codes(mutant, path)
    if before.keys() != after.keys():
        return None

    def own(code: types.CodeType) -> tuple[Any, ...]:
        constants = [(type(c), repr(c)) for c in code.co_consts if not isinstance(c, types.CodeType)]
        return code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars

    differ = [key for key in before if own(before[key]) != own(after[key])]
    places = Counter(map(_place, before.values()))
    if any(not before[key].co_flags & inspect.CO_OPTIMIZED or places[_place(before[key])] > 1 for key in differ):
        return None
    return {key: after[key] for key in differ}


def _place(code: types.CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def patch(file: str, text: str, mutant: str) -> None:
    """Give the functions of an imported module the code of its mutant."""
    module = importlib.import_module("hinge." + file[:-3].replace("/", ".").removesuffix(".__init__"))
    path = str(module.__file__)
    new, old = codes(mutant, path), codes(text, path)
    places = Counter(map(_place, old.values()))  # two lambdas of one line have one key, and are not changed
    keys = {_place(code): key for key, code in old.items() if places[_place(code)] == 1}
    for item in gc.get_objects():
        if isinstance(item, types.FunctionType) and item.__code__.co_filename == path:
            key = keys.get(_place(item.__code__))
            if key is not None and len(new[key].co_freevars) == len(item.__code__.co_freevars):
                item.__code__ = new[key]


def attempt(file: str, text: str, mutant: str, tests: list[str], limit: float, warm: bool) -> str:
    """killed, survived, timeout or "no such test": how tests of the package with one file changed end. Forks.

    "killed" is followed by the name of the test that failed, if the process lived to print it.
    """
    with tempfile.TemporaryDirectory(prefix="mutant") as folder:
        if not warm:
            overlay(Path(folder), file, mutant)
        pid = os.fork()
        if pid == 0:
            resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit), math.ceil(limit) + 5))
            os._exit(_child(folder, (file, text, mutant) if warm else None, tests))
        ends = time.monotonic() + WAIT
        while time.monotonic() < ends:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                code = os.waitstatus_to_exitcode(status)
                if code in (-signal.SIGXCPU, -signal.SIGKILL):
                    return "timeout"
                failed = re.search(r"^(?:FAILED|ERROR) (\S+)", (Path(folder) / "log").read_text(errors="replace"), re.M)
                killed = f"killed by {failed[1]}" if failed else "killed"
                return "survived" if code == 0 else "no such test" if code in (4, 5) else killed
            time.sleep(0.02)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return "timeout"


def _child(folder: str, change: tuple[str, str, str] | None, tests: list[str]) -> int:
    os.setsid()
    log = os.open(os.path.join(folder, "log"), os.O_CREAT | os.O_WRONLY)
    os.dup2(log, 1)
    os.dup2(log, 2)
    sys.dont_write_bytecode = True
    import pytest

    try:
        if change is None:
            sys.path.insert(0, folder)
        else:
            patch(*change)
        return int(pytest.main([*PYTEST, "-x", "--rootdir", str(ROOT), *tests]))
    except BaseException:
        return 1


def serve() -> None:
    """Reads one mutant a line, answers with its fate. Runs under -S, so that no editable install hides the copies.

    The first line names the tests to import, and the package with them, before the processes of mutants are forked; with
    none, each process imports the package itself.
    """
    for name in HEAVY:
        with contextlib.suppress(ImportError):
            __import__(name)
    sys.dont_write_bytecode = True
    with tempfile.TemporaryDirectory(prefix="original") as folder:
        tests = json.loads(sys.stdin.readline())
        if tests:
            import pytest

            overlay(Path(folder), "__init__.py", (SOURCE / "__init__.py").read_text(encoding="utf-8"))
            sys.path.insert(0, folder)
            with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
                pytest.main([*PYTEST, "--collect-only", "--rootdir", str(ROOT), *tests])
        for line in sys.stdin:
            print(json.dumps(attempt(**json.loads(line), warm=bool(tests))), flush=True)


# --- 3. Many --------------------------------------------------------------------------------------------------------


class Server:
    """A process that forks mutants, with these tests imported already."""

    def __init__(self, tests: list[str]) -> None:
        packages = [place for place in sys.path if place.endswith("-packages")]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(packages), "MPLBACKEND": "agg"}
        self._process = subprocess.Popen(
            [sys.executable, "-S", __file__, "--serve"], cwd=ROOT, env=env, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert self._process.stdin
        print(json.dumps(tests), file=self._process.stdin, flush=True)

    def __call__(self, **task: Any) -> str:
        assert self._process.stdin
        assert self._process.stdout
        print(json.dumps(task), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("the process of the mutants has ended; its error is above.")
        return json.loads(answer)


def chosen(n: int, seed: int, only: str | None) -> list[tuple[str, Mutation]]:
    """A random sample of all mutations, or all of one file.

    The sample is that of the smallest hashes of file, edit and seed: a change elsewhere leaves it nearly as it was.
    """
    every: list[tuple[str, Mutation]] = []
    for path in sources() if only is None else [SOURCE / only]:
        every += [(str(path.relative_to(SOURCE)), m) for m in mutations(path.read_text(encoding="utf-8"))]
    if only is not None:
        return every

    def rank(item: tuple[str, Mutation]) -> bytes:
        file, m = item
        around = (SOURCE / file).read_bytes()[max(m.begin - 60, 0) : m.end + 60]
        return hashlib.sha256(f"{seed}:{file}:{m.old}:{m.new}:".encode() + around).digest()

    return sorted(every, key=rank)[:n]


def main() -> int:
    parser = argparse.ArgumentParser(description="Which small changes in the code do the tests notice?")
    parser.add_argument("-n", type=int, default=250, help="how many mutants")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--file", help="all mutants of one file instead, below src/hinge")
    parser.add_argument("--known", action="store_true", help="the changes of tools/known_mutations.py instead")
    parser.add_argument(
        "--tests", nargs="+", default=TESTS, metavar="PATH", help="files and folders of tests to choose from"
    )
    parser.add_argument("-j", "--jobs", type=int, default=2, help="how many at a time")
    parser.add_argument("--most", type=float, default=100.0, help="exit with 1 if more than this percentage survives")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return 0
    if options.known:
        return known_mutations(options.jobs)
    kept = covering(options.jobs, options.tests)
    sample = chosen(options.n, options.seed, options.file)
    with ThreadPoolExecutor(options.jobs) as pool:
        judge = Judge(kept, len(sample))
        fates = list(pool.map(judge, enumerate(sample, start=1)))
    return summary(fates, options.most)


def known_mutations(jobs: int) -> int:
    """Print what became of each known mutation; 1 if one survives."""
    own, lock, sound = local(), Lock(), dict[str, str]()

    def fate(known: Known) -> str:
        if not hasattr(own, "server"):
            own.server = Server([])
        text = (SOURCE / known.file).read_text(encoding="utf-8")
        task = {"file": known.file, "text": text, "tests": [f"tests/{known.tests}"], "limit": WAIT}
        with lock:
            before = sound.get(known.tests) or sound.setdefault(known.tests, own.server(mutant=text, **task))
        if before != "survived":
            raise RuntimeError(f"tests/{known.tests} fails without any mutation ({before})")
        found = own.server(mutant=known.apply(text), **task)
        print(f"{known.about} ({known.file}): {found}", flush=True)
        return found

    with ThreadPoolExecutor(jobs) as pool:
        fates = list(pool.map(fate, KNOWN))
    killed = sum(found.startswith("killed") for found in fates)
    print(f"{killed} of {len(fates)} killed")
    return int(killed < len(fates))


class Judge:
    """Finds the fate of mutants, each thread with processes of its own; what is known already is not tried again."""

    def __init__(self, kept: Map, count: int) -> None:
        self._kept, self._count, self._lock, self._own = kept, count, Lock(), local()
        self._path = KEPT / "results.json"
        self._results: dict[str, Any] = json.loads(self._path.read_text()) if self._path.exists() else {}
        self._tests_now = hashlib.sha256(json.dumps(kept["tests"], sort_keys=True).encode()).hexdigest()[:16]

    def __call__(self, item: tuple[int, tuple[str, Mutation]]) -> tuple[str, Mutation, Any]:
        number, (file, mutation) = item
        text = (SOURCE / file).read_text(encoding="utf-8")
        key = f"{file}:{digest(SOURCE / file)}:{mutation.begin}:{mutation.end}:{mutation.new}"
        known = self._results.get(key)
        if known is None or (known["fate"] == "survived" and known["tests"] != self._tests_now):
            tests = reaching(self._kept, file, mutation.line, text)
            fate = self._try(file, text, mutation.apply(text), tests) if tests else "survived"
            known = {"fate": fate, "tests": self._tests_now, "count": len(tests)}
            with self._lock:
                self._results[key] = known
                self._path.write_text(json.dumps(self._results, indent=0))
        if known["fate"] == "survived":
            line = f"[{number}/{self._count}] survived  {shown(file, mutation, text)}   ({known['count']} tests)"
            print(line, flush=True)
        return file, mutation, known

    def _try(self, file: str, text: str, mutant: str, tests: list[str]) -> str:
        limit = PATIENCE * sum(self._kept["times"].get(t, 1.0) for t in tests) + START
        task = {"file": file, "text": text, "tests": tests, "limit": limit}
        if not hasattr(self._own, "warm"):
            self._own.warm, self._own.cold = Server(sorted(self._kept["tests"])), Server([])
            if self._own.warm(mutant=text, **task) != "survived":
                raise RuntimeError(f"the tests fail without any mutation: {tests[:3]} …")
        server = self._own.cold if changed_functions(text, mutant, file) is None else self._own.warm
        fate = server(mutant=mutant, **task).split(" by ")[0]
        if fate == "no such test":  # the mutant changes what is collected, or the map is old
            fate = "killed"
            if server(mutant=text, **task) == "no such test":
                raise RuntimeError(f"pytest cannot find the tests of {file}: {tests[:3]} …; delete {KEPT}/map.json")
        return fate


def shown(file: str, mutation: Mutation, text: str) -> str:
    line = text.splitlines()[mutation.line - 1].strip()
    return f"{file}:{mutation.line}  {mutation.old!r} → {mutation.new!r}  in  {line}"


def summary(fates: list[tuple[str, Mutation, Any]], most: float) -> int:
    counts = Counter(known["fate"] for _, _, known in fates)
    folders: dict[str, Counter[str]] = defaultdict(Counter)
    for file, _, known in fates:
        folders[file.split("/")[0]][known["fate"]] += 1
    for folder, part in sorted(folders.items()):
        print(f"{folder:10} {part['survived']:4} of {sum(part.values()):4} survived")
    rate = 100.0 * counts["survived"] / max(len(fates), 1)
    print(f"{len(fates)} mutants: {counts['killed']} killed, {counts['timeout']} ran too long, {counts['survived']} survived "
          f"({rate:.1f} %)")  # fmt: skip
    return int(rate > most)


if __name__ == "__main__":
    sys.exit(main())
