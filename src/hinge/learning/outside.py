"""The score of a model on another table, and how the rows of that table differ from the training rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from hinge.explain.drift import measure_drift
from hinge.learning.model_inputs import TableModel, conform, keep_rows_with_target, targets
from hinge.learning.scores import best_constant, explained
from hinge.tables.notes import Note
from hinge.tables.number_formats import format_number
from hinge.tables.profile import TableProfile
from hinge.tables.reading import as_table

SHOWN = 6


def outside_score(model: TableModel, data: TableProfile, source: Any, seed: int) -> tuple[dict[str, Any], Note]:
    """The score on another table with the target, and a remark with the columns that differ from training."""
    table = as_table(source)
    keep_rows_with_target(table, model)
    frame = conform(table, model)[0]
    y = targets(table, model)
    measure = model.measure
    output = model.with_exposure(model.outputs(frame), table)
    loss = measure.pointwise(y, output)
    score = measure.estimate(loss)
    constant = np.broadcast_to(best_constant(data.y, data.classes, model.card.get("metric_name")), output.shape)
    base = measure.pointwise(y, model.with_exposure(constant, table))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        drift = measure_drift(data.frame, frame, random_state=seed)
    found = {
        "rows": len(y), "score": score.value, "score_error": score.standard_error, "explained": explained(loss, base),
        "drifted": list(drift.drifted),
    }  # fmt: skip
    text = (
        f"{table.path.name}: {measure.name} {format_number(score.value, 4)} ± {format_number(score.standard_error, 2)} on "
        f"{len(np.atleast_1d(y))} rows"
    )
    if drift.found:
        named = ", ".join(drift.drifted[:SHOWN]) + (", …" if len(drift.drifted) > SHOWN else "")
        text += f"; these rows differ from the training rows{f' in {named}' if named else ''}"
    return found, Note("D23", "", text)
