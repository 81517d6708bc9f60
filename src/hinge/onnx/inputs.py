"""ONNX operations from raw columns to the matrix that a model was trained on."""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge.errors import argument
from hinge.features.encoders import Dropped, Levels, Number, Truth
from hinge.features.target_means import LevelMeans
from hinge.onnx.graph import ML, Graph
from hinge.tables.number_formats import FALSE, TRUE

# The code of a missing category, one more than a tree can have. NaN cannot be used: ONNX Runtime (1.31) merges consecutive
# category splits even if they send missing values to different sides.
MISSING = 255


def unprepared(prep: Any) -> str:
    """The reason why the columns of a preparation cannot be encoded in ONNX, or ""."""
    for name, encoder in zip(prep.feature_names_in_, prep.encoders_):
        if not isinstance(encoder, Dropped | Number | Levels | LevelMeans | Truth):
            return (
                f"the column {name!r} is a {prep.kinds_[name]}, which ONNX cannot prepare; fit again with {argument('drop', str(name))}, or turn "
                "it into numbers beforehand."
            )
    return ""


def prepared(graph: Graph, prep: Any, recode: dict[int, np.ndarray]) -> str:
    """One input per column: numbers as double (NaN where missing), categories as text ("" where missing).

    ``recode`` maps, for outputs that are codes, the code of the preparation to that of the model (−1: missing).
    """
    blocks, place = [], 0
    for name, encoder in zip(prep.feature_names_in_, prep.encoders_):
        if isinstance(encoder, Dropped):
            continue
        if isinstance(encoder, Number):
            blocks.append(_number(graph, graph.input(str(name), np.float64, 1), encoder))
        elif isinstance(encoder, Levels):
            text = graph.input(str(name), np.str_, 1)
            blocks.append(_levels(graph, text, encoder, prep.missing_values, recode.get(place)))
        elif isinstance(encoder, LevelMeans):
            text = graph.input(str(name), np.str_, 1)
            blocks.append(_levels(graph, text, encoder.codes, prep.missing_values, recode.get(place)))
            blocks.append(_level_means(graph, text, encoder))
        else:
            blocks.append(_truth(graph, graph.input(str(name), np.str_, 1), encoder, prep.missing_values))
        place += len(encoder.labels)
    return graph.node("Concat", *blocks, axis=1)


def _number(graph: Graph, x: str, encoder: Number) -> str:
    missing = graph.node("IsNaN", x)
    if not np.isnan(encoder.fill):
        x = graph.node("Where", missing, graph.constant(np.array([[encoder.fill]])), x)
    if (encoder.centre, encoder.scale) != (0.0, 1.0):
        x = graph.node("Sub", x, graph.constant(np.array([[encoder.centre]])))
        x = graph.node("Div", x, graph.constant(np.array([[encoder.scale]])))
    return graph.node("Concat", x, graph.cast(missing, np.float64), axis=1) if encoder.marked else x


def _truth(graph: Graph, text: str, encoder: Truth, absent: Any) -> str:
    words = {case for word in (*TRUE, *FALSE, encoder.true) for case in (word, word.title(), word.upper())} - {*absent}
    codes = {word: int(encoder.value(word)) for word in sorted(words)} | dict.fromkeys(("", *absent), -1)
    other = encoder.value("\0")
    code = graph.node(
        "LabelEncoder", text, domain=ML, keys_strings=list(codes), values_int64s=list(codes.values()),
        default_int64=-1 if np.isnan(other) else int(other),
    )  # fmt: skip
    missing = graph.node("Equal", code, graph.constant(np.array([[-1]])))
    x = graph.node("Where", missing, graph.constant(np.array([[encoder.fill]])), graph.cast(code, np.float64))
    return graph.node("Concat", x, graph.cast(missing, np.float64), axis=1) if encoder.marked else x


def _level_means(graph: Graph, text: str, encoder: LevelMeans) -> str:
    """The row of a level in the table of means; the last row, the overall mean, for unknown levels."""
    places = list(range(len(encoder.levels)))
    place = graph.node(
        "LabelEncoder",
        text,
        domain=ML,
        keys_strings=list(encoder.levels),
        values_int64s=places,
        default_int64=len(places),
    )
    table = graph.constant(np.vstack([encoder.means, encoder.overall]).astype(np.float64))
    return graph.node("Gather", table, graph.node("Squeeze", place, graph.constant(np.array([1]))))


def _levels(graph: Graph, text: str, encoder: Levels, absent: Any, recode: np.ndarray | None) -> str:
    other = len(encoder.levels) if encoder.pooled else -1
    gap = len(encoder.levels) + (encoder.pooled > 0) if encoder.missing_level and not encoder.codes else -1
    keys = [*encoder.levels, *(word for word in sorted({*absent, ""}) if word not in encoder.levels)]
    codes = [*range(len(encoder.levels)), *[gap] * (len(keys) - len(encoder.levels))]
    if recode is not None:
        codes = [int(recode[c]) if 0 <= c < len(recode) else -1 for c in codes]
        other = int(recode[other]) if 0 <= other < len(recode) else -1
    code = graph.node(
        "LabelEncoder", text, domain=ML, keys_strings=keys, values_int64s=codes, default_int64=other
    )  # fmt: skip
    if (
        encoder.codes
    ):  # missing values get a code rather than NaN (see MISSING), except for trees that take codes as numbers
        unknown = graph.node("Equal", code, graph.constant(np.array([[-1]])))
        gap_code = np.array([[float(MISSING) if recode is not None else np.nan]])
        return graph.node("Where", unknown, graph.constant(gap_code), graph.cast(code, np.float64))
    return graph.cast(graph.node("Equal", code, graph.constant(np.arange(len(encoder.labels))[None, :])), np.float64)
