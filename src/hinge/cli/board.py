"""The table of models that grows while they are tried."""

from __future__ import annotations

from typing import Any

from hinge.cli.search import Result
from hinge.explain.page.charts import number
from hinge.explain.page.evidence import BoardRow
from hinge.explain.page.scores import METRIC, Score


def by_family(results: list[Result]) -> list[Result]:
    """The best setting of every family so far, from the simplest family to the richest."""
    rows: dict[str, Result] = {}
    for result in results:
        before = rows.get(result.family.name)
        better = before is None or (
            result.score is not None and (before.score is None or result.score.value < before.score.value)
        )
        if better:
            rows[result.family.name] = result
    return sorted(rows.values(), key=lambda r: r.family.rank)


def bytes_text(size: int) -> str:
    for unit, scale in (("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size} B" if size else ""


def seconds_text(seconds: float) -> str:
    return f"{1e3 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.3g} s"


def certificate_text(certificate: Any) -> str:
    if certificate is None:
        return "–"
    kind = "gap" if certificate.kind == "gap" else "slope"
    error = f"{certificate.error:.0e}" if certificate.error > 0 else "0"
    return f"{kind} {error}" + ("" if certificate.converged else " (!)")


def board_rows(results: list[Result], chosen: Result | None) -> list[BoardRow]:
    """The comparison as data."""
    rows = []
    for r in by_family(results):
        score = r.score or Score(float("nan"), float("nan"))
        rows.append(BoardRow(
            r.family.name, r.family.what, r.setting.name, r.state, score.value, score.error, r.explained, r.fit_seconds, r.predict_micros, r.size,
            certificate_text(r.certificate), r is chosen, r.why,
        ))  # fmt: skip
    return rows


def draw(results: list[Result], task: str, chosen: Result | None = None, left: float | None = None) -> Any:
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
            ("▸ " if r.chosen else "  ") + r.name, r.setting, f"{number(r.score, 4)} ± {number(r.error, 2)}",
            f"{100 * r.explained:.1f} %", seconds_text(r.fit_seconds), f"{r.predict_micros:.1f} µs",
            bytes_text(r.size), r.certificate, style=style,
        )  # fmt: skip
    return table
