"""Progress of ``hg.learn`` and ``hinge fit`` in a terminal or a notebook: the table, then the comparison as it grows."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from hinge.errors import argument
from hinge.learning.leaderboard import board_rows, bytes_text, seconds_text
from hinge.learning.monitor import Monitor
from hinge.learning.request import Request
from hinge.learning.scores import METRICS, TITLES
from hinge.learning.trials import Trial
from hinge.tables.number_formats import format_number
from hinge.tables.profile import TableProfile

KINDS = ("number", "boolean", "category", "date", "text")


class ConsoleMonitor(Monitor):
    """Prints the profile of the table and the comparison of models as it grows."""

    def __init__(self, console: Any) -> None:
        self.console = console
        self.metric: str | None = None

    def table(self, request: Request, profile: TableProfile) -> None:
        from rich.markup import escape

        self.metric = request.metric
        kinds = [column.kind for column in profile.columns]
        counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in KINDS if kind in kinds)
        plural = "s" * (len(kinds) > 1)
        self.console.print(
            f"[bold]{request.path}[/bold]: {profile.frame.height} rows, {len(kinds)} column{plural} ({counts})"
        )
        overrule = "" if request.task != "auto" else f"   [dim]({argument('task')} overrules)[/dim]"
        self.console.print(f"target [bold]{profile.target}[/bold]: {describe_task(profile)}{overrule}")
        for note in profile.notes:
            self.console.print(f"  [yellow]{note.code}[/yellow] {escape(note.text)}")
        self.console.print()

    @contextlib.contextmanager
    def search(self, task: str, seconds: float) -> Iterator[Callable[[list[Trial]], None]]:
        from rich.live import Live

        began = time.perf_counter()
        with Live(console=self.console, refresh_per_second=4, transient=True) as live:
            yield lambda results: live.update(
                draw(
                    results,
                    self.metric or METRICS[task][0],
                    None,
                    seconds - (time.perf_counter() - began),
                    self.console.width,
                )
            )

    def choice(self, results: list[Trial], task: str, chosen: Trial) -> None:
        self.console.print(draw(results, self.metric or METRICS[task][0], chosen, width=self.console.width))
        self.console.print()


def describe_task(profile: TableProfile) -> str:
    """The task, with its classes."""
    classes = profile.classes
    if profile.task == "binary":
        return f"binary ({' / '.join(map(str, classes)) if classes is not None else ''})"
    if profile.task == "multiclass":
        return f"multiclass ({0 if classes is None else len(classes)} classes)"
    return {"real": "real number", "count": "count"}[profile.task]


# The columns of the comparison by importance: a narrow terminal drops the last ones first.
KEPT = ("model", "score", "explained", "fit", "setting", "predict/row", "size", "certificate")
SHOWN = ("model", "setting", "score", "explained", "fit", "predict/row", "size", "certificate")


def draw(
    results: list[Trial], metric: str, chosen: Trial | None = None, left: float | None = None, width: int = 140
) -> Any:
    """The table for a terminal; if it is narrow, columns are dropped rather than names truncated."""
    from rich.table import Table

    rows = board_rows(results, chosen)
    best = min((r.score for r in rows if r.state == "done"), default=float("nan"))
    cells, styles = [], []
    for r in rows:
        if r.state != "done":
            cells.append({"model": "  " + r.name, "setting": r.setting, "score": r.state})
            styles.append("dim")
            continue
        styles.append("bold green" if r.chosen else "bold" if r.score == best else "")
        cells.append({
            "model": ("▸ " if r.chosen else "  ") + r.name, "setting": r.setting,
            "score": f"{format_number(r.score, 4)} ± {format_number(r.error, 2)}", "explained": f"{100 * r.explained:.1f} %",
            "fit": seconds_text(r.fit_seconds), "predict/row": f"{r.predict_micros:.1f} µs", "size": bytes_text(r.size),
            "certificate": r.certificate,
        })  # fmt: skip
    heads = {name: f"CV {TITLES[metric]} ± se" if name == "score" else name for name in SHOWN}
    taken, room = set(), width
    for name in KEPT:
        room -= max(len(heads[name]), *(len(row.get(name, "")) for row in cells), 10 if name == "model" else 0) + 1
        if room < 0:
            break
        taken.add(name)
    title = None if left is None else f"trying models, {max(left, 0):.0f} s left"
    table = Table(title=title, title_justify="left", title_style="dim", header_style="bold", box=None, pad_edge=False)
    for name in SHOWN:
        if name in taken:
            side: Any = "left" if name in ("model", "setting") else "right"
            table.add_column(heads[name], justify=side, no_wrap=True, min_width=10 if name == "model" else None,
                             style="dim" if name == "setting" else None)  # fmt: skip
    for row, style in zip(cells, styles, strict=True):
        table.add_row(*(row.get(name, "") for name in SHOWN if name in taken), style=style)
    return table
