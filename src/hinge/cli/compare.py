"""``hinge compare``: a comparison of two models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hinge.errors import UserError
from hinge.learning.model_inputs import load_fitted, read_for
from hinge.learning.scores import details, measure_for
from hinge.select.estimate import mean_of
from hinge.tables.number_formats import format_number


def run(first: Path, second: Path, file: Path | None) -> tuple[dict[str, Any], list[str]]:
    """The metadata of both models and, with a file, the difference of their scores on its rows and its significance."""
    a, b = load_fitted(first), load_fitted(second)
    if (a.target, a.task) != (b.target, b.task):
        raise UserError(
            f"{first} predicts {a.target!r} ({a.task}), {second} predicts {b.target!r} ({b.task}): they cannot be compared."
        )
    cells: list[tuple[str, ...]] = [("", str(first), str(second))]
    for name, key in (("model", "chosen"), ("trained on", "data"), ("rows", "rows")):
        cells.append((name, str(a.card[key]), str(b.card[key])))
    cells.append(("size", *(f"{p.stat().st_size / 1e3:.3g} kB" for p in (first, second))))
    cells.append(
        (
            f"own {a.card['metric']}",
            *(f"{format_number(m.card['score'], 4)} ± {format_number(m.card['score_error'], 2)}" for m in (a, b)),
        )
    )
    data: dict[str, Any] = {"first": str(first), "second": str(second), "metric": a.card["metric"]}
    verdict = "Their own scores are from different rows unless data and seed agree; give a FILE to compare them on."
    if file is not None:
        frame, y, notes, _ = read_for(a, file, with_target=True)
        other, _, more, _ = read_for(b, file, with_target=True)
        notes = list(dict.fromkeys([*notes, *more]))
        assert y is not None
        mean = float(np.mean(y)) if a.labels is None else 1.0
        predictions = a.outputs(frame), b.outputs(other)
        measure = measure_for(a.task, a.labels, mean, a.card.get("metric_name"))
        scored = [measure.pointwise(y, p) for p in predictions]
        if not np.all(np.isfinite(scored)):
            raise UserError(f"{file}: the loss of a row overflows; its target is too far from the predictions.")
        both = [measure.estimate(loss) for loss in scored]
        cells.append(
            (
                f"{measure.name} on {file.name}",
                *(s.brief() for s in both),
            )
        )
        figures = [details(y, p, a.task) for p in predictions]
        cells += [(name, *(format_number(f[name], 4) for f in figures)) for name in figures[0] if name != measure.name]
        difference = scored[0] - scored[1]
        mean_gap = mean_of(difference)
        gap, low, high = mean_gap.value, mean_gap.low, mean_gap.high
        better = second if gap > 0 else first
        sure = low > 0 or high < 0
        unit = "squared error" if measure.root else measure.name
        verdict = (
            f"{better} is better: mean {unit} lower by {format_number(abs(gap))} a row (95 % interval of the difference "
            f"{format_number(low)} to {format_number(high)})."
            if sure
            else "Their predictions have the same loss in every row."
            if not difference.any()
            else f"No difference beyond noise: mean {unit} differs by {format_number(gap)} (95 % interval {format_number(low)} to "
            f"{format_number(high)}); take the simpler or quicker one."
        )
        data |= {"file": str(file), "rows": len(y), "scores": [s.value for s in both], "difference": gap,
                 "notes": notes, "interval": [low, high], "better": str(better) if sure else None}  # fmt: skip
    widths = [max(len(row[k]) for row in cells) for k in range(3)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells]
    return data | {"verdict": verdict}, [*lines, "", *(f"  {note}" for note in data.get("notes", ())), verdict]
