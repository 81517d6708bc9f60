"""The results as tables for people and as JSON for machines."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import Settings
from benchmarks.machine import Ceilings
from benchmarks.results import Result, Row


def number(value: float | None, digits: int = 3) -> str:
    """Three significant digits; a dash for nothing."""
    if value is None or not math.isfinite(value):
        return "–" if value is None else str(value)
    if value != 0 and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.{digits - 1}e}"
    return f"{value:.{digits}g}" if abs(value) < 1000 else f"{value:.0f}"


def times(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}×"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells as columns, the first left-aligned; the first row is the heading."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]

    def line(row: Sequence[str]) -> str:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]
        return "| " + " | ".join(cells) + " |"

    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([line(rows[0]), rule, *(line(row) for row in rows[1:])])


def row_cells(row: Row, result: Result, score_names: Sequence[str]) -> list[str]:
    """One contender's line: its time against the best peer's, and against the floor."""
    peer = result.best_peer
    name = row.name if row.tolerance is None else f"{row.name} (tol {row.tolerance:g})"
    if row.fit is None:
        return [name, *["–"] * (7 + len(score_names))]
    against = peer.fit.median / row.fit.median if peer and peer.fit else None
    return [
        name,
        number(row.fit.median),
        f"{number(min(row.fit.times))}–{number(max(row.fit.times))}",
        times(against) if row.reached else "–",
        "–" if result.floor is None else times(row.fit.median / result.floor),
        number(row.predict.median) if row.predict else "–",
        "–" if row.memory is None else f"{row.memory / 1e6:.0f}",
        number(row.suboptimality, 2),
        *(number(row.scores.get(score), 5) for score in score_names),
    ]


def table(result: Result) -> str:
    """The table of one task, quickest first, those that fell short last."""
    score_names = [score.name for score in result.task.scores]
    heading = ["contender", "fit s", "range", "speed", "of floor", "predict s", "peak MB", "subopt.", *score_names]
    rows = sorted(result.rows, key=lambda row: (not row.reached, row.fit.median if row.fit else math.inf))
    cells = [heading, *(row_cells(row, result, score_names) for row in rows)]
    shape = " × ".join(f"{size:,}" for size in result.shape)
    lines = [f"## {result.task.name}  ({shape})", result.task.setting, ""]
    lines.append(aligned(cells) if result.rows else "nobody took part")
    for row in rows:
        if row.note or (row.fit and not row.reached):
            lines.append(f"- {row.name}: {row.note or 'short of the target'}")
    facts = []
    if result.best_objective is not None:
        facts.append(f"best objective {result.best_objective:.12g}")
    if result.floor is not None:
        facts.append(f"floor {number(result.floor)} s ({result.floor_note})")
    if result.ratio is not None:
        goal = f", goal {result.task.goal:g}×" if result.task.goal else ""
        facts.append(f"hinge is {times(result.ratio)} the best peer{goal}")
    if result.predict_ratio is not None:
        facts.append(f"predicting {times(result.predict_ratio)}")
    if facts:
        lines += ["", "; ".join(facts) + "."]
    if result.skipped:
        lines += ["skipped: " + "; ".join(f"{skip.name} ({skip.reason})" for skip in result.skipped)]
    return "\n".join(lines) + "\n"


def summary(results: Sequence[Result]) -> str:
    """One line a task: ours, the best peer, the ratio, the goal."""
    rows = [["task", "hinge s", "best peer s", "best peer", "ratio", "goal", "predict", "of floor"]]
    for result in results:
        home, peer = result.home, result.best_peer
        rows.append(
            [
                result.task.name,
                number(home.fit.median) if home and home.fit else "–",
                number(peer.fit.median) if peer and peer.fit else "–",
                peer.name if peer else "–",
                times(result.ratio),
                f"{result.task.goal:g}×" if result.task.goal else "–",
                times(result.predict_ratio),
                times(home.fit.median / result.floor) if home and home.fit and result.floor else "–",
            ]
        )
    return aligned(rows)


def growth(results: Sequence[Result]) -> dict[str, dict[str, list[tuple[int, float]]]]:
    """For each series, each contender's fit time against size."""
    series: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for result in results:
        if result.task.growth is None:
            continue
        name, size = result.task.growth
        for row in result.rows:
            if row.fit is not None and row.reached:
                series.setdefault(name, {}).setdefault(row.name, []).append((size, row.fit.median))
    return {name: {who: sorted(points) for who, points in lines.items()} for name, lines in series.items()}


def exponent(points: Sequence[tuple[int, float]]) -> float | None:
    """Slope of log time against log size between the smallest and the largest size: 1 is linear."""
    (small, quick), (large, slow) = points[0], points[-1]
    return None if small == large else math.log(slow / quick) / math.log(large / small)


def growth_table(results: Sequence[Result]) -> str:
    """Fit times of each series side by side, with the exponent of growth."""
    parts = []
    for name, lines in growth(results).items():
        sizes = sorted({size for points in lines.values() for size, _ in points})
        rows = [[f"growth: {name}", *(f"{size:,}" for size in sizes), "exponent"]]
        for who, points in lines.items():
            at = dict(points)
            rows.append([who, *(number(at.get(size)) for size in sizes), number(exponent(points), 2)])
        parts.append(aligned(rows))
    return "\n\n".join(parts)


def as_json(
    results: Sequence[Result], settings: Settings, machine: dict[str, Any], versions: dict[str, str]
) -> dict[str, Any]:
    """Everything needed to read the numbers later: machine, versions, settings, all timings."""
    return {
        "taken": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine,
        "versions": versions,
        "settings": {"repeats": settings.repeats, "target": settings.target, "budget": settings.budget},
        "tasks": [result.as_dict() for result in results],
        "growth": growth(results),
    }


def write_json(path: Path, record: dict[str, Any]) -> None:
    """Infinities and NaN become null, since JSON has neither."""

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: clean(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [clean(item) for item in value]
        if isinstance(value, float) and not math.isfinite(value):
            return None
        return value

    path.write_text(json.dumps(clean(record), indent=1, allow_nan=False, ensure_ascii=False) + "\n")


def ceilings_line(ceilings: Ceilings) -> str:
    return (
        f"ceilings: gemv reads {ceilings.bandwidth / 1e9:.1f} GB/s, "
        f"dgemm {ceilings.dgemm / 1e9:.0f} GFLOP/s, sgemm {ceilings.sgemm / 1e9:.0f} GFLOP/s"
    )
