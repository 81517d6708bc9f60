"""Single rows for a report: the worst predictions with their values, and Shapley values of a few."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hinge.report.evidence import ColumnPicture, Evidence, Explained, WorstRow
from hinge.tables.number_formats import format_number

ORDERS = 200
WORST, SHOWN_COLUMNS, SHOWN_SHARES = 10, 6, 8
BINS, LEVELS, MOST_PICTURES, PICTURE_ROWS = 20, 12, 24, 200_000


def shapley_values(
    outputs: Callable[[Any], np.ndarray], frame: Any, row: int, seed: int, orders: int = ORDERS
) -> tuple[np.ndarray, float, float]:
    """Shapley values of the columns of a row, the mean prediction, and the prediction of the row.

    For a random order of the columns and another row, replace the values of the other row by those of this one, column by column,
    and record each change of the prediction. A column's Shapley value is the mean of its changes over orders and other rows.
    ``outputs`` gives one number per row of a table.
    """
    import polars as pl

    rng = np.random.default_rng(seed)
    names = frame.columns
    d = len(names)
    others = np.resize(rng.permutation(frame.height), orders)
    drawn = np.stack([rng.permutation(d) for _ in range(orders // 2)])
    drawn = np.concatenate([drawn, drawn[:, ::-1]])  # antithetic: each order with its reverse has a lower variance
    others[orders // 2 :] = others[: orders // 2]
    rank = np.argsort(drawn, axis=1)
    # Step k of an order: its first k columns come from the row, the others from the other row.
    own = rank[:, None, :] < np.arange(d + 1)[None, :, None]
    source = np.where(own, row, others[:, None, None]).reshape(-1, d)
    p = outputs(pl.DataFrame([frame[name].gather(source[:, j]) for j, name in enumerate(names)]))
    steps = np.diff(p.reshape(orders, d + 1), axis=1)
    shares = np.zeros(d)
    np.add.at(shares, drawn.ravel(), steps.ravel())
    return shares / orders, float(p.reshape(orders, d + 1)[:, 0].mean()), float(p[d])


def shown(value: Any) -> str:
    """A value of a table as text."""
    if value is None:
        return "–"
    text = format_number(value, 4) if isinstance(value, float | int) and not isinstance(value, bool) else str(value)
    return text if len(text) <= 40 else text[:38] + "…"


def worst_rows(e: Evidence, frame: Any, rows: np.ndarray, numbers: np.ndarray, loss: np.ndarray) -> list[WorstRow]:
    """The rows with the largest losses; ``rows`` are indices into the table, ``numbers`` the row numbers in the file."""
    order = np.argsort(-loss, kind="stable")[:WORST]
    names = [effect.name for effect in e.importances][:SHOWN_COLUMNS] or frame.columns[:SHOWN_COLUMNS]
    found = []
    for k in order:
        place = int(rows[k])
        if e.classes:
            best = int(np.argmax(e.prediction[k]))
            truth, guess = e.classes[int(e.y[k])], f"{e.classes[best]} ({100 * e.prediction[k][best]:.0f} %)"
        else:
            truth, guess = format_number(float(e.y[k]), 4), format_number(float(e.prediction[k]), 4)
        values = [(name, shown(frame[name][place])) for name in names]
        found.append(WorstRow(int(numbers[place]), truth, guess, values))
    return found


def explained_rows(
    e: Evidence, model: Any, output: Callable[[Any, Any], np.ndarray], frame: Any, rows: np.ndarray, numbers: np.ndarray, seed: int
) -> list[Explained]:  # fmt: skip
    """Shapley values of the held-out rows with the lowest, the median and the highest score."""
    column = e.positive if e.task == "binary" else None
    score = (
        e.prediction
        if not e.classes
        else e.prediction[:, e.positive]
        if column is not None
        else e.prediction.max(axis=1)
    )
    order = np.argsort(score, kind="stable")
    few = rows[np.sort(np.random.default_rng(seed).permutation(len(rows))[:500])]
    found = []
    for k in dict.fromkeys(order[[0, len(order) // 2, len(order) - 1]].tolist()):
        part = frame[np.append(few, rows[k])]
        c = column if column is not None else int(np.argmax(e.prediction[k])) if e.classes else None

        def single(table: Any, c: int | None = c) -> np.ndarray:
            values = output(model, table)
            return values if c is None else values[:, c]

        shares, mean, value = shapley_values(single, part, part.height - 1, seed, ORDERS // 2)
        largest = np.argsort(-np.abs(shares), kind="stable")[:SHOWN_SHARES]
        what = f"predicted {e.target}" if c is None else f"probability of “{e.classes[c]}”"
        cells = [(frame.columns[j], shown(part[frame.columns[j]][-1]), float(shares[j])) for j in largest]
        found.append(Explained(int(numbers[rows[k]]), what, value, mean, cells))
    return found


def column_pictures(
    frame: Any, y: np.ndarray, kinds: dict[str, str], order: list[str], positive: int | None
) -> list[ColumnPicture]:
    """Histograms of the columns, the most important first, with the mean target (or the share of a class) by value."""
    import polars as pl

    if frame.height > PICTURE_ROWS:
        some = np.sort(np.random.default_rng(0).permutation(frame.height)[:PICTURE_ROWS])
        frame, y = frame[some], y[some]
    t = y if positive is None else (y == positive).astype(np.float64)
    found = []
    for name in [*order, *(c for c in frame.columns if c not in order)][:MOST_PICTURES]:
        kind = kinds.get(name)
        if kind == "number":
            values = frame[name].cast(pl.Float64).to_numpy()
            there = np.isfinite(values)
            if not there.any():
                continue
            low, high = np.quantile(values[there], [0.005, 0.995])  # outliers would squeeze the other bins
            edges = np.linspace(low, high if high > low else low + 1.0, BINS + 1)
            cell = np.clip(np.searchsorted(edges, values[there], side="right") - 1, 0, BINS - 1)
            inside = (values[there] >= edges[0]) & (values[there] <= edges[-1])
            found.append(_picture(name, cell[inside], t[there][inside], BINS, edges.tolist(), []))
        elif kind in ("category", "boolean"):
            texts = frame[name].cast(pl.String).fill_null("(missing)")
            levels = texts.value_counts(sort=True).head(LEVELS)[name].to_list()
            place = {level: k for k, level in enumerate(levels)}
            cell = np.array([place.get(text, -1) for text in texts.to_list()])
            found.append(_picture(name, cell[cell >= 0], t[cell >= 0], len(levels), [], levels))
    return found


def _picture(
    name: str, cell: np.ndarray, t: np.ndarray, k: int, edges: list[float], labels: list[str]
) -> ColumnPicture:
    counts = np.bincount(cell, minlength=k)
    with np.errstate(invalid="ignore"):
        means = np.bincount(cell, weights=t, minlength=k) / counts
    return ColumnPicture(name, edges, labels, counts.tolist(), means.tolist())
