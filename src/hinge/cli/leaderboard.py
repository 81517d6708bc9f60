"""The comparison of models, drawn in a terminal while they are tried."""

from __future__ import annotations

from typing import Any

from hinge.learning.leaderboard import board_rows, bytes_text, seconds_text
from hinge.learning.scores import METRIC
from hinge.learning.search import Trial
from hinge.tables.number_formats import format_number


def draw(results: list[Trial], task: str, chosen: Trial | None = None, left: float | None = None) -> Any:
    """The table for a terminal."""
    from rich.table import Table

    title = None if left is None else f"trying models, {max(left, 0):.0f} s left"
    table = Table(title=title, title_justify="left", title_style="dim", header_style="bold", box=None, pad_edge=False)
    table.add_column("model", no_wrap=True)
    table.add_column("setting", no_wrap=True, style="dim")
    for name in (f"CV {METRIC[task]} ± se", "explained", "fit", "predict/row", "size", "certificate"):
        table.add_column(name, justify="right", no_wrap=True)
    rows = board_rows(results, chosen)
    best = min((r.score for r in rows if r.state == "done"), default=float("nan"))
    for r in rows:
        if r.state != "done":
            table.add_row("  " + r.name, r.setting, f"[dim]{r.state}[/dim]", "", "", "", "", "", style="dim")
            continue
        style = "bold green" if r.chosen else "bold" if r.score == best else ""
        table.add_row(
            ("▸ " if r.chosen else "  ") + r.name, r.setting, f"{format_number(r.score, 4)} ± {format_number(r.error, 2)}",
            f"{100 * r.explained:.1f} %", seconds_text(r.fit_seconds), f"{r.predict_micros:.1f} µs",
            bytes_text(r.size), r.certificate, style=style,
        )  # fmt: skip
    return table
