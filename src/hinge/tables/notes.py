"""The numbered remarks on data: what each means and what to do. The same list is the page docs/remarks.md."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Diagnosis:
    """A remark that can be made, its cause and its cure."""

    title: str
    cause: str
    cure: str


DIAGNOSES = {
    "D01": Diagnosis(
        "Constant column",
        "Every row has the same value (or none), so the column says nothing about the target. It was left out.",
        "Check the query or join that made the file; otherwise nothing needs doing.",
    ),
    "D02": Diagnosis(
        "Identifier",
        "Nearly every row has a value of its own: a key, a serial number, a row number. A model can only memorise it, "
        "and new rows will have new ones. It was left out.",
        "If the number does carry meaning (an order in time, a region in its digits), say so with --keep.",
    ),
    "D03": Diagnosis(
        "Duplicate column",
        "The column equals another one. It was left out: weights and importances would be split between the two.",
        "Remove it from the file, or keep it with --keep.",
    ),
    "D04": Diagnosis(
        "Leaked target",
        "The column gives the target away: it is a copy, a recoding, or a part of a sum that makes the target. It is "
        "most likely not known at the time a prediction is needed. It was left out.",
        "If it really is known beforehand, use --keep; then the problem needs no learning.",
    ),
    "D05": Diagnosis(
        "Suspiciously good column",
        "On its own the column predicts the target almost perfectly. Columns recorded after the outcome do that. It "
        "was kept.",
        "Ask when the value becomes known. If after the outcome: --drop.",
    ),
    "D06": Diagnosis(
        "Rows without target",
        "Rows whose target is missing cannot be learned from. They were left out.",
        "If the missing ones differ from the others (they often do), the model will not know about them.",
    ),
    "D07": Diagnosis(
        "Mixed values",
        "A column of numbers holds some words or infinite values. These were taken as missing.",
        "If a word is a value of its own (“>100”, “none”), recode it in the file.",
    ),
    "D08": Diagnosis(
        "Repeated rows",
        "Some rows are copies of others, target included. A copy may sit on both sides of a split, which flatters "
        "scores.",
        "Remove the copies if they are an accident; group the split if they are repeated measurements.",
    ),
    "D09": Diagnosis(
        "Rare class",
        "A class has too few rows to be learned or to be scored.",
        "Collect more of it, merge it with another class, or accept that it will hardly ever be predicted.",
    ),
    "D10": Diagnosis(
        "Mostly missing column",
        "More than half of the values are missing. The column was kept; that a value is missing may itself say "
        "something.",
        "Make sure that it will be missing in the same way when predictions are made.",
    ),
    "D11": Diagnosis(
        "Few rows",
        "With so few rows scores are rough; see the intervals.",
        "Prefer the simpler model, and collect more rows if the learning curve still falls.",
    ),
    "D12": Diagnosis(
        "About the file",
        "Something about the file was put right while reading it.",
        "Look at the file once, to be sure that what was read is what was meant.",
    ),
    "D13": Diagnosis(
        "Many categories",
        "A column has very many different values. Rare ones are put together.",
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
        "The columns may not say anything about the target, or there are too few rows to see it.",
    ),
    "D16": Diagnosis(
        "Numbers among words",
        "A column holds numbers in most rows and words in many others. Every different value, numbers too, was taken as a "
        "category of its own, so that 3 is no nearer to 4 than to 100.",
        "If the words mean that a number is missing, empty those cells; if they are codes, move them to a column of their "
        "own.",
    ),
    "D17": Diagnosis(
        "Cut short by time",
        "The last fits would have taken longer than the time that was left, so that boosting did fewer rounds than the "
        "search had found best.",
        "Give more time (--time), or try fewer families (--models boosting).",
    ),
    "D18": Diagnosis(
        "Ways of writing",
        "Values are written for people: numbers with decimal commas, separators of thousands, a currency, a percent sign or "
        "a unit; true and false in several words; codes of very many digits. They were read as the remark says.",
        "Check the example in the remark. New rows are read in the same way, so write them like these, or as plain numbers.",
    ),
    "D19": Diagnosis(
        "Few different numbers",
        "The target is a whole number with few different values: it may be a quantity, or the codes of classes.",
        "If the values are names rather than amounts, say --task multiclass.",
    ),
}


@dataclass(frozen=True)
class Note:
    """One remark: its number, the column it is about (or ""), and what was seen."""

    code: str
    column: str
    text: str

    def __str__(self) -> str:
        return f"{self.code} {self.text}"
