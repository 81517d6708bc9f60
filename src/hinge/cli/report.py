"""``hinge report``: the report of a model on other rows."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hinge.files import write_atomically
from hinge.learning import effects
from hinge.learning.fits import certificate_of
from hinge.learning.model_inputs import TableModel, load_fitted, read_for
from hinge.learning.request import checksum, versions
from hinge.learning.scores import best_constant, constant_losses, details, explained, measure_for
from hinge.report.document import document
from hinge.report.evidence import BoardRow, Evidence
from hinge.tables.notes import Note
from hinge.tables.number_formats import format_number


def run(model: Path, file: Path, out: Path) -> tuple[dict[str, Any], list[str]]:
    """Score the model on the rows of a file and write the report."""
    fitted = load_fitted(model)
    frame, y, notes, _ = read_for(fitted, file, with_target=True)
    assert y is not None
    evidence = gather(fitted, frame, y, file, notes)
    write_atomically(out, document(evidence, {"predict": f"hinge predict {model} new.csv"}).encode())
    data = {"report": str(out), "metric": evidence.metric, "score": evidence.score, "score_error": evidence.error,
            "trivial": evidence.trivial, "explained": evidence.explained, "details": evidence.details,
            "rows": len(y), "notes": notes}  # fmt: skip
    line = (
        f"{evidence.metric} {format_number(evidence.score, 4)} ± {format_number(evidence.error, 2)} on {len(y)} rows "
        f"(best constant {format_number(evidence.trivial, 4)}); the report is {out}"
    )
    return data, [*(f"  {note}" for note in notes), line]


def gather(fitted: TableModel, frame: Any, y: np.ndarray, file: Path, notes: list[str]) -> Evidence:
    """The evidence from new rows."""
    card, task, classes = fitted.card, fitted.task, fitted.labels
    prediction = fitted.outputs(frame)
    mean = float(np.mean(y)) if classes is None else 1.0
    measure = measure_for(task, classes, mean, card.get("metric_name"))
    loss = measure.pointwise(y, prediction)
    base = constant_losses(measure, y, best_constant(y, classes, card.get("metric_name")))
    score = measure.estimate(loss)
    positive = int(card.get("positive", 1))
    unknown = {"score": float("nan"), "error": float("nan")}  # JSON has no NaN
    rows: list[dict[str, Any]] = [row | {k: v for k, v in unknown.items() if row[k] is None} for row in card["board"]]
    board = [BoardRow(**row) for row in rows]
    evidence = Evidence(
        title=f"{fitted.target} in {file.name}", source=card["data"], target=fitted.target, task=task,
        metric=measure.name, classes=card["classes"], rows=card["rows"], columns=card["columns"],
        left_out=card["left_out"], notes=[Note("D12", "", f"{file.name}: {text}") for text in notes], board=board,
        chosen=card["chosen"], formula=card["formula"], objective=card["objective"], reason=card["reason"],
        held_out=f"the {len(y)} rows of {file.name} (trained on {card['rows']} rows of {card['data']})", y=y,
        prediction=prediction, score=score.value, error=score.standard_error, trivial=measure.estimate(base).value,
        explained=explained(loss, base), details=details(y, prediction, task, positive), positive=positive, train_rows=card["rows"],
        sample_rows=card["rows"], target_values=y, command=f"hinge {' '.join(sys.argv[1:])}", seed=card["seed"],
        versions=versions(), checksum=checksum(file),
    )  # fmt: skip
    evidence.scored = "on its training rows" if evidence.checksum == card["data_sha256"] != "" else "on new rows"
    certificate = certificate_of(fitted.pipeline.named_steps["model"])
    evidence.certificate = "" if certificate is None else certificate.explain()
    kinds = {c["name"]: c["kind"] for c in card["columns"]}
    evidence.outputs = card["classes"] if task == "multiclass" else []
    evidence.importances = effects.importances(fitted.pipeline, frame, y, measure, card["seed"])
    evidence.partials = list(effects.partials(fitted.pipeline, frame, evidence.importances, kinds, task, card["seed"]))
    evidence.board = [replace(row, chosen=row.name == card["chosen"]) for row in board]
    return evidence
