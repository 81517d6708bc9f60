"""What watches a run of ``hg.learn``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from hinge.learning.request import Request
from hinge.learning.trials import Trial
from hinge.tables.profile import TableProfile


class Monitor:
    """Watches a run and ignores everything; ``ConsoleMonitor`` prints it."""

    def table(self, request: Request, profile: TableProfile) -> None:
        """The table was read."""

    @contextlib.contextmanager
    def search(self, task: str, seconds: float) -> Iterator[Callable[[list[Trial]], None]]:
        """Around the search: gives the function that is called with the results so far."""
        yield lambda results: None

    def choice(self, results: list[Trial], task: str, chosen: Trial) -> None:
        """A model was chosen."""
