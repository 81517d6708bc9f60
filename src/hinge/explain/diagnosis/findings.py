"""Findings: each has a code, which docs/diagnoses.md explains."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Severity(Enum):
    """The severity of a finding."""

    PROBLEM = "problem"
    ADVICE = "advice"
    NOTE = "note"


# Every code with its heading in docs/diagnoses.md.
CODES = {
    "H001": "Nothing stands out",
    "H101": "The optimum was not reached",
    "H102": "The solver ran into its limit",
    "H201": "Over-fitted",
    "H202": "More data would help",
    "H203": "Too much penalty",
    "H204": "More data would hardly help",
    "H301": "Under-fitted",
    "H302": "No better than a constant",
    "H401": "Test rows differ from training rows",
    "H402": "The target has shifted",
    "H403": "Worse on the test set than cross-validation promised",
    "H501": "A column knows the target",
    "H502": "The same rows on both sides of a fold",
    "H503": "Test rows that are also training rows",
    "H504": "Constant columns",
    "H505": "Copies of columns",
    "H506": "Columns that are ids",
    "H507": "A rare class",
    "H508": "Doubtful targets",
    "H509": "Equal inputs with different targets",
    "H510": "Columns of very different scale",
    "H601": "Probabilities that cannot be taken at their word",
}


@dataclass(frozen=True)
class Finding:
    """One observation and the advice that follows from it.

    Attributes
    ----------
    code : str
        Such as "H201"; explained in docs/diagnoses.md.
    severity : Severity
        How urgent it is.
    evidence : str
        What was measured.
    action : str
        What to do next.
    """

    code: str
    severity: Severity
    evidence: str
    action: str

    @property
    def title(self) -> str:
        return CODES[self.code]

    @property
    def anchor(self) -> str:
        """The anchor of its explanation in the documentation."""
        return f"docs/diagnoses.md#{self.code.lower()}"

    def __str__(self) -> str:
        return f"{self.code} {self.title}. {self.evidence} {self.action}"
