"""``hinge fit``: progress in a terminal."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from hinge.cli.leaderboard import draw
from hinge.learning.request import Request
from hinge.learning.run import Monitor
from hinge.learning.search import Trial
from hinge.tables.profile import TableProfile

KINDS = ("number", "boolean", "category", "date", "text")


class ConsoleMonitor(Monitor):
    """Prints the profile of the table and the comparison of models as it grows."""

    def __init__(self, console: Any) -> None:
        self.console = console

    def table(self, request: Request, profile: TableProfile) -> None:
        from rich.markup import escape

        kinds = [column.kind for column in profile.columns]
        counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in KINDS if kind in kinds)
        plural = "s" * (len(kinds) > 1)
        self.console.print(
            f"[bold]{request.path}[/bold]: {profile.frame.height} rows, {len(kinds)} column{plural} ({counts})"
        )
        overrule = "" if request.task != "auto" else "   [dim](--task overrules)[/dim]"
        self.console.print(f"target [bold]{profile.target}[/bold]: {describe_task(profile)}{overrule}")
        for note in profile.notes:
            self.console.print(f"  [yellow]{note.code}[/yellow] {escape(note.text)}")
        self.console.print()

    @contextlib.contextmanager
    def search(self, task: str, seconds: float) -> Iterator[Callable[[list[Trial]], None]]:
        from rich.live import Live

        began = time.perf_counter()
        with Live(console=self.console, refresh_per_second=4, transient=True) as live:
            yield lambda results: live.update(draw(results, task, left=seconds - (time.perf_counter() - began)))

    def choice(self, results: list[Trial], task: str, chosen: Trial) -> None:
        self.console.print(draw(results, task, chosen))
        self.console.print()


def describe_task(profile: TableProfile) -> str:
    """The task that the target sets, with its classes."""
    classes = profile.classes
    if profile.task == "binary":
        return f"binary ({' / '.join(map(str, classes)) if classes is not None else ''})"
    if profile.task == "multiclass":
        return f"multiclass ({0 if classes is None else len(classes)} classes)"
    return {"real": "real number", "count": "count"}[profile.task]
