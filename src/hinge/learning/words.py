"""Words of free text that predictions depend on, over many rows and in one row."""

from __future__ import annotations

import re
import time
from typing import Any

import numpy as np

from hinge.features.terms import Terms
from hinge.features.text_encoders import dependence
from hinge.features.tokenize import TOKEN
from hinge.problem.numerics import Z95
from hinge.report.evidence import Effect
from hinge.select.estimate import mean_of
from hinge.select.measure import Measure

ROWS, TRIED, SHOWN = 2000, 20, 12
LEAST_ROWS = 5  # rows that must contain a word


def without(series: Any, word: str) -> Any:
    """The texts of a column without a word."""
    import polars as pl

    return series.cast(pl.String).str.replace_all(rf"(?i)\b{re.escape(word)}\b", " ")


def word_effects(
    model: Any, frame: Any, targets: np.ndarray, columns: list[str], measure: Measure, seconds: float = 10.0
) -> list[Effect]:
    """The rise of the loss when a word is removed from the texts that contain it, per text, with 95 % intervals.

    The words tried are those on which the target depends most (χ², correlation); ``targets`` are coded. They are sorted by
    the rise over all rows, which is the rise per text times the number of texts.
    """
    began = time.perf_counter()
    frame, targets = frame[:ROWS], targets[:ROWS]
    base = measure.pointwise(targets, measure.output(model, frame))
    coded = targets.astype(np.float64) if measure.classes is None else targets.astype(np.int64)
    found: list[tuple[float, Effect]] = []
    for name in columns:
        texts = frame[name].fill_null("").to_list()
        terms = Terms(texts, "word", (1, 1), LEAST_ROWS)
        order = np.argsort(-dependence(terms.counts, coded), kind="stable")[:TRIED]
        present = terms.counts.tocsc()
        for word, j in zip(terms.names(order), order):
            if time.perf_counter() - began > seconds:
                break
            rows = np.sort(present.indices[present.indptr[j] : present.indptr[j + 1]])
            part = frame[rows]
            part = part.with_columns(without(part[name], word))
            rise = mean_of(measure.pointwise(targets[rows], measure.output(model, part)) - base[rows])
            width = Z95 * rise.standard_error
            label = f"“{word}”" if len(columns) == 1 else f"{name}: “{word}”"
            found.append((rise.value * len(rows), Effect(label, rise.value, rise.value - width, rise.value + width)))
    return [effect for _, effect in sorted(found, key=lambda pair: -pair[0])[:SHOWN]]


def words_of_row(fitted: Any, frame: Any, row: int, column: str, most: int = 200) -> list[tuple[str, float]]:
    """The fall of the explained output when each word of a text is removed; the largest change first."""
    import polars as pl

    text = frame[column][row]
    words = list(dict.fromkeys(re.findall(TOKEN, (text or "").lower())))[:most]
    if not words:
        return []
    one = frame[row : row + 1]
    changed = pl.concat([one, *(one.with_columns(without(one[column], word)) for word in words)])
    p = fitted.outputs(changed)
    if fitted.labels is not None:
        p = p[:, 1 if fitted.task == "binary" else int(np.argmax(p[0]))]
    shares = [(word, float(p[0] - value)) for word, value in zip(words, p[1:])]
    return sorted(shares, key=lambda pair: -abs(pair[1]))
