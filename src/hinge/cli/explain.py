"""``hinge explain``: permutation importances over all rows, or an explanation of one row.

One row is explained by the Shapley values of its columns, estimated by sampling with the other rows of the file as background.
They add up to the prediction minus the mean prediction, for every model.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hinge.errors import USAGE, UserError
from hinge.learning import effects as column_effects
from hinge.learning.model_inputs import TableModel, load_fitted, read_for
from hinge.learning.rows import shapley_values
from hinge.learning.words import word_effects, words_of_row
from hinge.tables.number_formats import format_number

SHOWN_WORDS = 12


def run(model: Path, file: Path, row: int | None, seed: int) -> tuple[dict[str, Any], list[str]]:
    fitted = load_fitted(model)
    if row is None:
        return _all_rows(fitted, file, seed)
    frame, _, _, table = read_for(fitted, file, with_target=False)
    numbers = table.numbers()
    place = int(np.searchsorted(numbers, row))
    if place == len(numbers) or numbers[place] != row:
        raise UserError(
            f"--row {row}: {file} has rows {numbers[0]} to {numbers[-1]}, and this one is not there.", USAGE
        )
    shares, base, value, name = contributions(fitted, frame, place, seed)
    order = np.argsort(-np.abs(shares))
    cells = [(fitted.columns[j], frame[fitted.columns[j]][place], float(shares[j])) for j in order]
    widths = max(len(c) for c, _, _ in cells)
    top = max(abs(s) for _, _, s in cells) or 1.0
    lines = [
        f"{name} for row {row}: {format_number(value, 4)}   (mean over {frame.height} rows: {format_number(base, 4)})",
        "",
    ]
    for column, given, share in cells:
        bar = _bar(share, top)
        shown = "–" if given is None else format_number(given, 4) if isinstance(given, float) else str(given)
        lines.append(f"  {column:<{widths}}  {shown[:24]:<24}  {share:+.4g}  {bar}")
    words = {
        c["name"]: words_of_row(fitted, frame, place, c["name"]) for c in fitted.card["columns"] if c["kind"] == "text"
    }
    for column, parts in words.items():
        top = max((abs(s) for _, s in parts), default=0.0) or 1.0
        lines += ["", f"words of {column} (the change when the word is removed):"] if parts else []
        for word, share in parts[:SHOWN_WORDS]:
            lines.append(f"  {word[:24]:<24}  {share:+.4g}  {_bar(share, top)}")
    data = {
        "row": row, "what": name, "prediction": value, "mean": base,
        "contributions": [{"column": c, "value": _for_json(v), "share": s} for c, v, s in cells],
        "words": {c: [{"word": w, "share": s} for w, s in parts[:SHOWN_WORDS]] for c, parts in words.items()},
    }  # fmt: skip
    return data, lines


def _bar(share: float, top: float) -> str:
    """A bar of signs, 20 for the largest share; none where a prediction overflows."""
    length = 20.0 * abs(share) / top
    return ("+" if share > 0 else "−") * round(length) if np.isfinite(length) else ""


def _for_json(cell: Any) -> Any:
    """A cell as JSON has it: other types and infinite numbers as text."""
    return (
        cell if cell is None or isinstance(cell, int) or (isinstance(cell, float) and np.isfinite(cell)) else str(cell)
    )


def contributions(fitted: TableModel, frame: Any, row: int, seed: int) -> tuple[np.ndarray, float, float, str]:
    """Shapley values of the columns of a row, the mean prediction, the prediction, and a name for the output."""
    own = fitted.outputs(frame[row : row + 1])
    name = _single(fitted, own, own)[1]
    shares, mean, value = shapley_values(
        lambda table: _single(fitted, fitted.outputs(table), own)[0], frame.select(fitted.columns), row, seed
    )
    return shares, mean, value, name


def _single(fitted: TableModel, p: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, str]:
    """The output to explain: the mean, or the probability of a class (the positive one of two, the likeliest of several)."""
    if fitted.labels is None:
        return p, f"predicted {fitted.target}"
    k = int(fitted.card.get("positive", 1)) if fitted.task == "binary" else int(np.argmax(own[0]))
    return p[:, k], f"probability of {fitted.labels[k]}"


def _all_rows(fitted: TableModel, file: Path, seed: int) -> tuple[dict[str, Any], list[str]]:
    frame, y, _, _ = read_for(fitted, file, with_target=True)
    assert y is not None
    effects = column_effects.importances(fitted.pipeline, frame, y, fitted.measure, seed)
    unit = fitted.measure.name
    width = max(len(e.name) for e in effects)
    lines = [f"rise of the {unit} when a column is shuffled (95 % interval):", ""]
    lines += [
        f"  {e.name:<{width}}  {format_number(e.value):>10}   {format_number(e.low)} to {format_number(e.high)}"
        for e in effects
    ]
    texts = [c["name"] for c in fitted.card["columns"] if c["kind"] == "text"]
    words = word_effects(fitted.pipeline, frame, y, texts, fitted.measure)
    if words:
        lines += ["", "rise of the loss of a text when a word is removed from it:", ""]
        lines += [f"  {e.name:<24}  {format_number(e.value):>10}" for e in words]
    data = {
        "unit": unit,
        "words": [{"word": e.name} | _interval(e) for e in words],
        "importances": [{"column": e.name} | _interval(e) for e in effects],
    }
    return data, lines


def _interval(effect: column_effects.Effect) -> dict[str, float | None]:
    """An effect as JSON has it; one row has no standard error."""
    return {
        name: value if np.isfinite(value) else None
        for name, value in (("rise", effect.value), ("low", effect.low), ("high", effect.high))
    }
