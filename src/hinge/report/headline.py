"""The first sentences of a report, for readers who do not fit models themselves."""

from __future__ import annotations

import numpy as np

from hinge.report.evidence import Evidence
from hinge.tables.number_formats import format_number

DOUBTS = ("D15", "D20", "D21", "D22")  # notes that question the score itself


def headline(e: Evidence) -> list[str]:
    """The score beside that of the best constant, the most important columns, and reasons to doubt the score."""
    sentences = [_classes(e) if e.classes else _numbers(e)]
    strong = [effect.name for effect in e.importances if effect.low > 0][:3]
    if strong:
        sentences.append(f"The model relies most on {_listed(strong)}.")
    doubts = [note for note in e.notes if note.code in DOUBTS]
    if any(note.code == "D15" for note in doubts):
        sentences = ["The columns do not predict the target: no model tried is better than a constant."]
    elif doubts:
        columns = list(dict.fromkeys(note.column for note in doubts if note.column))
        sentences.append(
            f"Read the notes on {_listed(columns)} below before you use the model: the score may be too good."
        )
    return sentences


def _listed(names: list[str]) -> str:
    names = [f"“{name}”" for name in names]
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + f" and {names[-1]}"


def _classes(e: Evidence) -> str:
    y = e.y.astype(np.int64)
    right = 100 * float(np.mean(np.argmax(e.prediction, axis=1) == y))
    commonest = int(np.argmax(np.bincount(e.target_values.astype(np.int64), minlength=len(e.classes))))
    always = 100 * float(np.mean(y == commonest))
    return (
        f"Of 100 new rows, about {right:.0f} get the right “{e.target}”; always answering “{e.classes[commonest]}” would be "
        f"right for {always:.0f}."
    )


def _numbers(e: Evidence) -> str:
    error = np.abs(e.y - e.prediction)
    always = float(np.mean(np.abs(e.y - np.median(e.target_values))))
    return (
        f"A prediction of “{e.target}” is off by {format_number(float(np.mean(error)), 3)} on average, half of them by less than "
        f"{format_number(float(np.median(error)), 3)}; always answering {format_number(float(np.median(e.target_values)), 3)} would "
        f"be off by {format_number(always, 3)}."
    )
