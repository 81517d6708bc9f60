"""Callbacks of a run of ``hg.learn``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from hinge.learning.request import Request
from hinge.learning.trials import Trial
from hinge.tables.profile import TableProfile


class Monitor:
    """Callbacks that do nothing; those of ``ConsoleMonitor`` print the progress."""

    def table(self, request: Request, profile: TableProfile) -> None:
        """Called when the table has been read."""

    @contextlib.contextmanager
    def search(self, task: str, seconds: float) -> Iterator[Callable[[list[Trial]], None]]:
        """A context for the search; yields the function that is called with the results so far."""
        yield lambda results: None

    def choice(self, results: list[Trial], task: str, chosen: Trial) -> None:
        """Called when a model has been chosen."""
