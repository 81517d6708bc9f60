"""``hinge report``: the page again, for other rows."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hinge.cli.fitting import checksum, versions
from hinge.cli.search import certificate_of
from hinge.cli.using import Fitted, load_fitted, read_for
from hinge.explain.page import measure
from hinge.explain.page.charts import number
from hinge.explain.page.document import document
from hinge.explain.page.evidence import BoardRow, Evidence
from hinge.explain.page.notes import Note
from hinge.explain.page.scores import METRIC, details, explained, losses, score
from hinge.files import write_whole


def run(model: Path, file: Path, out: Path) -> tuple[dict[str, Any], list[str]]:
    """Score, measure, write."""
    fitted = load_fitted(model)
    frame, y, notes, _ = read_for(fitted, file, with_target=True)
    assert y is not None
    evidence = gather(fitted, frame, y, file, notes)
    write_whole(out, document(evidence, {"predict": f"hinge predict {model} new.csv"}).encode())
    data = {"report": str(out), "metric": evidence.metric, "score": evidence.score, "score_error": evidence.error,
            "trivial": evidence.trivial, "explained": evidence.explained, "details": evidence.details,
            "rows": len(y), "notes": notes}  # fmt: skip
    line = (
        f"{evidence.metric} {number(evidence.score, 4)} ± {number(evidence.error, 2)} on {len(y)} rows "
        f"(best constant {number(evidence.trivial, 4)}); the report is {out}"
    )
    return data, [*(f"  {note}" for note in notes), line]


def gather(fitted: Fitted, frame: Any, y: np.ndarray, file: Path, notes: list[str]) -> Evidence:
    """The evidence that new rows give."""
    card, task, classes = fitted.card, fitted.task, fitted.classes
    prediction = fitted.predict(frame)
    mean = float(np.mean(y)) if classes is None else 1.0
    loss = losses(y, prediction, task, mean)
    constant: Any = mean if classes is None else np.bincount(y.astype(np.int64), minlength=len(classes)) / len(y)
    base = losses(y, np.broadcast_to(constant, (len(y), *np.shape(constant))), task, mean)
    result = score(loss, task)
    unknown = {"score": float("nan"), "error": float("nan")}  # JSON has no NaN
    rows: list[dict[str, Any]] = [row | {k: v for k, v in unknown.items() if row[k] is None} for row in card["board"]]
    board = [BoardRow(**row) for row in rows]
    evidence = Evidence(
        title=f"{fitted.target} in {file.name}", source=card["data"], target=fitted.target, task=task,
        metric=METRIC[task], classes=card["classes"], rows=card["rows"], columns=card["columns"],
        left_out=card["left_out"], notes=[Note("D12", "", f"{file.name}: {text}") for text in notes], board=board,
        chosen=card["chosen"], formula=card["formula"], objective=card["objective"], reason=card["reason"],
        held_out=f"the {len(y)} rows of {file.name} (trained on {card['rows']} rows of {card['data']})", y=y,
        prediction=prediction, score=result.value, error=result.error, trivial=score(base, task).value,
        explained=explained(loss, base), details=details(y, prediction, task), train_rows=card["rows"],
        sample_rows=card["rows"], target_values=y, command=f"hinge {' '.join(sys.argv[1:])}", seed=card["seed"],
        versions=versions(), checksum=checksum(file),
    )  # fmt: skip
    evidence.scored = "on its training rows" if evidence.checksum == card["data_sha256"] != "" else "on new rows"
    certificate = certificate_of(fitted.model.named_steps["model"])
    evidence.certificate = "" if certificate is None else certificate.explain()
    kinds = {c["name"]: c["kind"] for c in card["columns"]}
    evidence.outputs = card["classes"] if task == "multiclass" else []
    evidence.importances = measure.importances(fitted.model, frame, y, task, classes, card["seed"])
    for effect in [e for e in evidence.importances[:6] if e.high > 0]:
        found = measure.partial(fitted.model, frame, effect.name, kinds[effect.name], task, classes, card["seed"])
        if found is not None:
            evidence.partials.append(found)
    evidence.board = [replace(row, chosen=row.name == card["chosen"]) for row in board]
    return evidence
