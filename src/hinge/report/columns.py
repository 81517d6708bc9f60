"""Charts of single columns: the distribution of the values, and the mean target by value."""

from __future__ import annotations

import itertools

import numpy as np

from hinge.report.charts import Chart
from hinge.report.evidence import ColumnPicture, Evidence
from hinge.tables.number_formats import format_number


def pictured_class(e: Evidence) -> int:
    """The class whose share is drawn: the positive one of two, the commonest of several."""
    if e.task == "binary":
        return e.positive
    return int(np.argmax(np.bincount(e.target_values.astype(np.int64), minlength=len(e.classes))))


def column_chart(e: Evidence, c: ColumnPicture) -> str:
    """Bars: rows by value. Line: the mean target (or the share of a class) among them, on the scale of the bars."""
    counts, means = np.asarray(c.counts, dtype=float), np.asarray(c.means, dtype=float)
    what = f"share of “{e.classes[pictured_class(e)]}”" if e.classes else f"mean {e.target}"
    names = None if c.edges else c.labels
    edges = c.edges or [k - 0.5 for k in range(len(counts) + 1)]
    chart = Chart(
        (edges[0], edges[-1]), (0, max(float(counts.max()), 1.0) * 1.08), (c.name, "rows"), names=names, height=230
    )
    spans = [f"{format_number(a)} to {format_number(b)}" for a, b in itertools.pairwise(edges)] if c.edges else c.labels
    known = np.isfinite(means)
    tail = [f"; {what} {format_number(m, 3)}" if ok else "" for m, ok in zip(means, known)]
    chart.bars(edges, counts, 5, [f"{span}: {int(n)} rows{more}" for span, n, more in zip(spans, counts, tail)])
    title = c.name
    if known.sum() > 1:
        low, high = float(means[known].min()), float(means[known].max())
        height = (means - low) / (high - low if high > low else 1.0) * float(counts.max())
        places = [(a + b) / 2 for a, b in itertools.pairwise(edges)]
        chart.line(
            [p for p, ok in zip(places, known) if ok], height[known], "", 1, dots=True,
            hover=[f"{span}: {what} {format_number(m, 3)}" for span, m, ok in zip(spans, means, known) if ok],
        )  # fmt: skip
        title = f"{c.name} (line: {what}, {format_number(low, 3)} to {format_number(high, 3)})"
    return chart.svg(title)
