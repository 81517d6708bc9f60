"""Single rows: those with the largest losses, and the Shapley values of a few predictions."""

from __future__ import annotations

import html

from hinge.report.charts import intervals
from hinge.report.evidence import Evidence, Explained
from hinge.tables.number_formats import format_number


def worst_rows(e: Evidence) -> str:
    """The rows with the largest losses."""
    if not e.worst:
        return ""
    names = [name for name, _ in e.worst[0].values]
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    body = "".join(
        f"<tr><td class='num'>{r.row}</td><td>{html.escape(r.truth)}</td><td>{html.escape(r.predicted)}</td>"
        + "".join(f"<td>{html.escape(value)}</td>" for _, value in r.values)
        + "</tr>"
        for r in e.worst
    )
    return (
        "<div class='card'><h3>The rows with the largest losses</h3><p class='soft'>Among the held-out rows. Look for wrong values, rare "
        "cases and missing columns. The most important columns are shown.</p><div class='scroll'><table><thead><tr>"
        f"<th class='num'>row</th><th>true {html.escape(e.target)}</th><th>predicted</th>{head}</tr></thead><tbody>{body}</tbody>"
        "</table></div></div>"
    )


def explained_rows(e: Evidence) -> str:
    """The Shapley values of a few rows."""
    if not e.explained_rows:
        return ""
    cards = "".join(f'<div class="card">{_explained(row)}</div>' for row in e.explained_rows)
    return (
        "<h3>Why these predictions?</h3><p class='soft'>Shapley values: how far each column moves the prediction of a row from the "
        "mean prediction; together they make up the whole difference. <code>hinge explain model.hinge table.csv --row N</code> "
        f"gives those of any row.</p><div class='grid'>{cards}</div>"
    )


def _explained(row: Explained) -> str:
    title = f"Row {row.row}: {row.what} {format_number(row.prediction, 3)}, on average {format_number(row.mean, 3)}"
    nan = float("nan")
    return intervals(title, [(f"{name} = {value}", share, nan, nan) for name, value, share in row.shares], "")
