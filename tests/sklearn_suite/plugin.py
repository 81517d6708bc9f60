"""A pytest plugin that runs scikit-learn's own tests on hinge's estimators (`make test-sklearn`).

Every name that hinge and scikit-learn share is replaced in scikit-learn's public modules, after all of them have been
imported: classes of scikit-learn keep their bases, and a test module that imports `sklearn.linear_model.Ridge` gets
hinge's. What is left out, and why, is in `deselected.txt`; a test that merely fails is counted as failed.
"""

from __future__ import annotations

import collections
import faulthandler
import functools
import importlib
import json
import pkgutil
import signal
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import pytest
import sklearn
import sklearn.tree
from sklearn.base import BaseEstimator

import hinge
from sklearn_suite import deselection
from sklearn_suite.deselection import REASONS

SECONDS = 60
"""Time limit of one test, in time of the processor. A test that waits, or whose native code does not poll for signals, is
stopped after a multiple of it by the clock."""
GOAL = 0.97
OTHERS = (
    "partial_dependence", "permutation_importance", "learning_curve", "validation_curve",
    "set_config", "get_config", "config_context", "show_versions",
)  # fmt: skip
"""Functions of ours that share a name but not a purpose: plots and reports (docs/from_sklearn.md), and hinge's settings."""
ROOT = str(Path(sklearn.__file__).parent) + "/"

_touched = False


def _touch() -> None:
    global _touched
    _touched = True


def _is_ours(thing: object) -> bool:
    module = getattr(thing if isinstance(thing, type | types.FunctionType) else type(thing), "__module__", None)
    return (module or "").split(".")[0] == "hinge"


def _new(cls: type, *args: object, **kwargs: object) -> object:
    if _is_ours(cls):
        _touch()
    return object.__new__(cls)


def _counted(function: Any) -> Any:
    """A function of ours that records that the running test has called it."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        _touch()
        return function(*args, **kwargs)

    return call


def _drawn_by_ours(theirs: Any) -> Any:
    """``hg.plots.plot_tree``, which takes our trees to scikit-learn's function: that one is in its place for the call."""

    @functools.wraps(theirs)
    def call(*args: Any, **kwargs: Any) -> Any:
        swapped, sklearn.tree.plot_tree = sklearn.tree.plot_tree, theirs
        try:
            return _counted(hinge.plots.plot_tree)(*args, **kwargs)
        finally:
            sklearn.tree.plot_tree = swapped

    return call


def _is_public(name: str) -> bool:
    return not any(part.startswith("_") or part in ("tests", "externals", "conftest") for part in name.split("."))


def _import_public() -> None:
    for module in pkgutil.walk_packages(sklearn.__path__, "sklearn.", onerror=lambda _: None):
        if _is_public(module.name):
            try:
                importlib.import_module(module.name)
            except ImportError:  # an optional dependency that is not installed
                continue


def swap() -> dict[str, list[str]]:
    """Replace scikit-learn's names by hinge's; returns those replaced, by module."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _import_public()
    ours = {name: getattr(hinge, name) for name in hinge.__all__ if name not in OTHERS}
    ours |= {name: getattr(hinge.metrics, name) for name in hinge.metrics.__all__}
    ours = {name: v if isinstance(v, type) else _counted(v) for name, v in ours.items() if callable(v)}
    BaseEstimator.__new__ = _new  # type: ignore[method-assign]
    swapped = {}
    for path, module in sorted(sys.modules.items()):
        if path.split(".")[0] == "sklearn" and _is_public(path):
            theirs = {k: v for k, v in vars(module).items() if k in ours and hasattr(v, "__module__")}
            names = [k for k, v in theirs.items() if v.__module__.split(".")[0] == "sklearn"]
            for name in names:
                setattr(module, name, ours[name])
            if names:
                swapped[path] = names
    sklearn.tree.plot_tree = _drawn_by_ours(sklearn.tree.plot_tree)
    swapped["sklearn.tree"].append("plot_tree")
    return swapped


def short(nodeid: str) -> str:
    """The test's name with its path inside scikit-learn."""
    return nodeid.split("site-packages/sklearn/")[-1].removeprefix(ROOT)


class Timeout(BaseException):
    """The test ran longer than the limit. No estimator catches it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("hinge")
    group.addoption("--results", help="append one line of JSON per test to this file")
    group.addoption("--only-deselected", action="store_true", help="run what deselected.txt lists, to see what passes")


def pytest_configure(config: pytest.Config) -> None:
    swap()
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Counts(config.getoption("--results")), "hinge-counts")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    reasons = deselection.read()
    for item in items:
        test = short(item.nodeid)
        reason = reasons.get(test) or reasons.get(test.split("[")[0])
        if config.getoption("--only-deselected"):
            if reason is None:
                item.add_marker(pytest.mark.skip(reason="not deselected"))
        elif reason is not None:
            item.add_marker(pytest.mark.skip(reason=f"deselected: {reason}"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: object) -> Any:
    global _touched
    parameters = getattr(item, "callspec", None)
    _touched = parameters is not None and any(_is_ours(v) for v in parameters.params.values())

    def stop(*_: object) -> None:
        raise Timeout(f"longer than {SECONDS} s")

    timers = {signal.ITIMER_PROF: (signal.SIGPROF, SECONDS), signal.ITIMER_REAL: (signal.SIGALRM, 5 * SECONDS)}
    for timer, (number, seconds) in timers.items():
        signal.signal(number, stop)
        signal.setitimer(timer, seconds)
    faulthandler.dump_traceback_later(6 * SECONDS, exit=True)
    try:
        return (yield)
    finally:
        for timer in timers:
            signal.setitimer(timer, 0)
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    if call.excinfo is not None and call.excinfo.errisinstance(Timeout):
        report.user_properties.append(("timeout", True))
    if _touched:
        report.user_properties.append(("touched", True))
    return report


class Counts:
    """Outcomes of all tests, by module, in the process that reports."""

    def __init__(self, path: str | None) -> None:
        self.outcomes: dict[str, str] = {}
        self.seconds: dict[str, float] = collections.defaultdict(float)
        self.path = path

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:  # a module that cannot be imported
            self.outcomes[short(report.nodeid)] = "failed"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test, known = short(report.nodeid), dict(report.user_properties)
        text, message = report.longreprtext, ""
        self.seconds[test] += report.duration
        if report.when not in ("setup", "call", "teardown"):
            outcome = "timed out" if "dump_traceback" in text else "crashed"
        elif "timeout" in known:
            outcome = "timed out"
        elif report.failed and "[XPASS(strict)]" in text:  # scikit-learn marks it as a failure of its own estimator
            outcome = "passed"
        elif report.failed:
            outcome = "failed"
        elif report.skipped:
            outcome = next((f"deselected: {r}" for r in REASONS if f"deselected: {r}" in text), "skipped")
        elif report.when == "call":
            outcome = "passed"
        else:
            return
        if outcome == "passed" and "touched" not in known:
            outcome = "without hinge"
        if outcome in ("failed", "timed out", "crashed"):
            crash = getattr(report.longrepr, "reprcrash", None)
            message = f"{short(crash.path)}:{crash.lineno}: {crash.message}" if crash else text[-2000:]
        self.outcomes[test] = outcome
        if self.path:
            line = {"test": test, "outcome": outcome, "seconds": round(self.seconds[test], 2), "message": message}
            with open(self.path, "a") as file:
                file.write(json.dumps(line) + "\n")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        total = self._total()
        broken = total["crashed"] or total["timed out"]
        if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            reached = rate(total) >= GOAL and not broken
            session.exitstatus = pytest.ExitCode.OK if reached else pytest.ExitCode.TESTS_FAILED

    def _total(self) -> collections.Counter[str]:
        return collections.Counter(self.outcomes.values())

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        by_module: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        for test, outcome in self.outcomes.items():
            by_module[test.split("::")[0]][outcome] += 1
        write = terminalreporter.write_line
        terminalreporter.section("scikit-learn's tests on hinge's estimators")
        for name, counts in sorted(by_module.items()):
            write(f"{name}: {describe(counts)}")
        write(f"all: {describe(self._total())}")


def rate(counts: collections.Counter[str]) -> float:
    """Passed, of the tests that ran and called hinge."""
    ran = sum(counts[o] for o in ("passed", "failed", "crashed", "timed out"))
    return counts["passed"] / ran if ran else 1.0


def describe(counts: collections.Counter[str]) -> str:
    order = ["passed", "failed", "crashed", "timed out", *(f"deselected: {r}" for r in REASONS)]
    shown = [f"{counts[o]} {o}" for o in [*order, "without hinge", "skipped"] if counts[o] or o in order[:4]]
    return f"{rate(counts):.1%} ({', '.join(shown)})"
