"""The numbered remarks on data: cause and remedy of each. tools/remarks.py writes docs/remarks.md from this list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hinge.errors import with_arguments


@dataclass(frozen=True)
class Diagnosis:
    """The title, the cause and the remedy of a remark."""

    title: str
    cause: str
    remedy: str  # {keep} and the like stand for arguments of hg.learn

    @property
    def cure(self) -> str:
        """The remedy, with arguments as the caller writes them."""
        return with_arguments(self.remedy)


DIAGNOSES = {
    "D01": Diagnosis(
        "Constant column",
        "Every row has the same value (or none), so the column carries no information on the target. It was left out.",
        "Check the query or join that made the file. If it is right, nothing needs to be done.",
    ),
    "D02": Diagnosis(
        "Identifier",
        "Nearly every row has a different value: a key, a serial number, a row number. A model can only memorise it, "
        "and new rows have new values. It was left out.",
        "If the values are informative (an order in time, a region in the digits), use {keep}.",
    ),
    "D03": Diagnosis(
        "Duplicate column",
        "The column equals another one. It was left out: weights and importances would be split between the two.",
        "Remove it from the file, or keep it with {keep}.",
    ),
    "D04": Diagnosis(
        "Leaked target",
        "The column determines the target: it is a copy, a recoding, or a term of a sum that equals the target. Most likely "
        "it is unknown at the time a prediction is needed. It was left out.",
        "If it is known at that time, use {keep}; then the target can be computed and needs no model.",
    ),
    "D05": Diagnosis(
        "Suspiciously good column",
        "The column alone predicts the target almost perfectly, which is typical of columns recorded after the outcome. "
        "It was kept.",
        "Find out when the value becomes known. If it is after the outcome, use {drop}.",
    ),
    "D06": Diagnosis(
        "Rows without target",
        "Models cannot be fitted to rows whose target is missing. They were left out.",
        "Rows without a target often differ from the others; if so, expect the model to be worse on rows like them.",
    ),
    "D07": Diagnosis(
        "Mixed values",
        "A column of numbers or dates holds some other words or infinite values. These are treated as missing.",
        "If a word is a value (“>100”, “none”), recode it in the file.",
    ),
    "D08": Diagnosis(
        "Repeated rows",
        "Some rows are copies of others, target included. If a row is in the training part and its copy in the test part of "
        "a split, scores are too good.",
        "Remove copies made by accident; for repeated measurements, split by group.",
    ),
    "D09": Diagnosis(
        "Rare class",
        "A class has too few rows to fit or to score a model.",
        "Collect more of it, merge it with another class, or expect that it is hardly ever predicted.",
    ),
    "D10": Diagnosis(
        "Mostly missing column",
        "More than half of the values are missing. The column was kept: that a value is missing may be informative.",
        "Make sure that values are missing for the same reasons when predictions are made.",
    ),
    "D11": Diagnosis(
        "Few rows",
        "With few rows scores are uncertain; see their intervals.",
        "Prefer the simpler model, and collect more rows if the learning curve still falls.",
    ),
    "D12": Diagnosis(
        "About the file",
        "The reader corrected an irregularity of the file.",
        "Compare the first rows of the table with the file.",
    ),
    "D13": Diagnosis(
        "Many categories",
        "A column has very many different values. Rare ones share one level.",
        "Group them by meaning, or drop the column if it is a name.",
    ),
    "D14": Diagnosis(
        "Extreme values",
        "A few numbers lie very far from the rest; they dominate linear models and squared errors.",
        "Check them. If they are mistakes, remove them; if they are real, prefer models of trees or a logarithm.",
    ),
    "D15": Diagnosis(
        "No better than guessing",
        "No model predicts held-out rows better than the best constant, beyond noise.",
        "The columns may carry no information on the target, or there are too few rows to show it.",
    ),
    "D16": Diagnosis(
        "Numbers among words",
        "A column holds numbers in most rows and words in many others. Every value, numbers included, is a separate "
        "category, so that 3 is no nearer to 4 than to 100.",
        "If the words mean that a number is missing, empty those cells; if they are codes, move them to another column.",
    ),
    "D17": Diagnosis(
        "Cut short by time",
        "The last fits would have exceeded the time limit, so that boosting stopped before the number of rounds that the "
        "search found best.",
        "Give more time ({seconds}), or try fewer families ({models:boosting}).",
    ),
    "D18": Diagnosis(
        "Number formats",
        "Values are formatted for people: numbers with decimal commas, thousands separators, a currency, a percent sign or a "
        "unit; several words for true and false; codes of very many digits. The remark shows how they were read.",
        "Check the example in the remark. New rows are read in the same format, so write them like these.",
    ),
    "D19": Diagnosis(
        "Whole numbers",
        "The target is a whole number: it may be a quantity, a count of events, or the codes of classes. Counts are small or "
        "often zero, and are fitted by a Poisson loss; other quantities by squared errors.",
        "If it counts events, use {task:count}; if the values are names rather than amounts, {task:multiclass}; otherwise "
        "{task:real}.",
    ),
    "D20": Diagnosis(
        "Known beforehand?",
        "A column alone explains nearly all that can be explained, or has the name of something that is known after the outcome "
        "and explains much of it. Such columns are often recorded with the outcome or after it. It was kept.",
        "Find out when its value becomes known. If that is after the prediction is needed, use {drop}; the remark shows what is "
        "explained without it.",
    ),
    "D21": Diagnosis(
        "Groups of like rows",
        "Rows that share an identifier resemble each other, so that a model recognises the groups of its training rows. Scores "
        "with a random split are those for known groups, not for new ones.",
        "If new rows belong to new groups, use {group}.",
    ),
    "D22": Diagnosis(
        "Changes with time",
        "Models of earlier rows predict later ones worse than a random split suggests: the relation changes with time.",
        "If the model is to predict the future, use {time_column}, and fit it again often.",
    ),
    "D23": Diagnosis(
        "Other rows",
        "The model was scored on rows of another table, after it was fitted. Where these differ from the training rows, the "
        "columns that differ are named.",
        "Trust the score on the rows that are most like those to be predicted.",
    ),
}


@dataclass(frozen=True)
class Note:
    """One remark: its code, the column it refers to (or ""), and its text."""

    code: str
    column: str
    text: str

    def __str__(self) -> str:
        return f"{self.code} {self.text}"


def counted(n: int, noun: str) -> str:
    """1 value is, 2 values are."""
    return f"{n} {noun} is" if n == 1 else f"{n} {noun}s are"


def some_values(series: Any, most: int = 3) -> str:
    """The first distinct values of a polars series, for a message."""
    values = series.drop_nulls().unique(maintain_order=True).head(most + 1).to_list()
    return ", ".join(repr(str(v)[:30]) for v in values[:most]) + (", …" if len(values) > most else "")
