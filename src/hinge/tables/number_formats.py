"""Formats of numbers and Booleans in text: 1.234,50 €, 12 %, 3 kg; yes, True and 1."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

MOSTLY = 0.95  # share of the rows that must follow a format
SAMPLE = 2000  # distinct texts that are tried
TRUE, FALSE = ("true", "yes", "y", "t", "on", "1", "1.0"), ("false", "no", "n", "f", "off", "0", "0.0")
# Pairs of texts that mean false and true, in lower case.
PAIRS = ({"false", "true"}, {"f", "t"}, {"no", "yes"}, {"n", "y"}, {"off", "on"})
WORDS = {"true", "false", "yes", "no"}
BEFORE = r"(?:[$€£¥₹]|US\$|USD|EUR|GBP|CHF|JPY|kr|Rs\.?)"
AFTER = r"[^\d\s.,+\-][^\d]{0,11}"
SPACES = "'’\u00a0\u202f "  # between thousands, besides the comma or the point
SIGN = r"[+\-−]?"


@dataclass(frozen=True)
class Notation:
    """The format of a column of texts that stand for numbers or truth values.

    Attributes
    ----------
    decimal : {".", ","}
        The decimal mark; the other one may separate thousands.
    before, after : str
        The currency, unit or percent sign beside every number.
    truth : bool
        The texts are words for true and false instead.
    """

    decimal: str = "."
    before: str = ""
    after: str = ""
    truth: bool = False

    def number(self, text: str) -> float:
        """The number (or truth value, 0 or 1) that a text stands for; NaN if it does not follow the format."""
        if self.truth:
            return truth_value(text)
        before, value, after = split_number(text.strip(), self.decimal)
        return value if (before, after) == (self.before, self.after) else math.nan

    def describe(self, example: str) -> str:
        """The format in words, with an example, for a note."""
        if self.truth:
            return "words for true and false, written in several ways; read as true and false"
        marks = [repr(mark) for mark in (self.before, self.after) if mark]
        if self.decimal == "," or not marks:
            marks.insert(0, "decimal commas" if self.decimal == "," else "thousands separators")
        return f"numbers written with {' and '.join(marks)}; {example!r} was read as {self.number(example):.10g}"


def plain_number(text: str) -> float:
    """A text as a number; NaN if it is not one. Unlike float(), infinities and underscores are not accepted."""
    try:
        value = float(text) if "_" not in text else math.nan
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


def split_number(text: str, decimal: str) -> tuple[str, float, str]:
    """The text before a number, the number, and the text after it; NaN if the text holds no number."""
    match = _pattern(decimal).match(text)
    if match is None:
        return "", math.nan, ""
    sign, before, inner_sign, digits, after = match.groups(default="")
    value = float(digits.translate(_DELETED[decimal]).replace(decimal, "."))
    return before, -value if {"-", "−"} & {sign, inner_sign} else value, after.strip()


_DELETED = {".": str.maketrans("", "", SPACES + ","), ",": str.maketrans("", "", SPACES + ".")}


@lru_cache(maxsize=2)
def _pattern(decimal: str) -> re.Pattern[str]:
    other, mark = "," if decimal == "." else ".", "\\" + decimal
    integer = rf"(?:[1-9]\d{{0,2}}(?:[{SPACES}{other}]\d{{3}})+|\d+)"
    number = rf"(?:{integer}(?:{mark}\d*)?|{mark}\d+)(?:[eE][+\-]?\d+)?"
    return re.compile(rf"({SIGN})\s*({BEFORE})?\s*({SIGN})\s*({number})\s*({AFTER})?$")


def notation_of(levels: Sequence[str], counts: np.ndarray | None = None, hint: str = ".") -> Notation | None:
    """The number format of most rows, or None if they hold something else.

    Parameters
    ----------
    levels : sequence of str
        The distinct texts of a column.
    counts : array of int, optional
        The rows that hold each of them; one each by default.
    hint : {".", ","}
        The decimal mark where the texts leave it open: 1,234 is one thousand or one and a bit.
    """
    levels, weights = sample_levels(levels, counts)
    total = float(weights.sum())
    digits = sum(w for text, w in zip(levels, weights) if any(c.isdigit() for c in text))
    best, most = None, MOSTLY * total
    if not levels or digits < most:
        return None
    for decimal in (hint, "," if hint == "." else "."):
        shares: dict[tuple[str, str], float] = {}
        for text, weight in zip(levels, weights):
            before, value, after = split_number(text.strip(), decimal)
            if not math.isnan(value):
                shares[before, after] = shares.get((before, after), 0.0) + weight
        marks = max(shares, key=shares.__getitem__, default=("", ""))
        share = shares.get(marks, 0.0)
        if share >= most and (best is None or share > most):
            best, most = Notation(decimal, *marks), share
    return best


def sample_levels(levels: Sequence[str], counts: np.ndarray | None) -> tuple[Sequence[str], np.ndarray]:
    """At most SAMPLE evenly spaced levels, with their counts."""
    weights = np.ones(len(levels)) if counts is None else np.asarray(counts, dtype=np.float64)
    step = -(-len(levels) // SAMPLE) or 1
    return levels[::step], weights[::step]


def decimal_mark(columns: Sequence[Sequence[str]]) -> str:
    """The decimal mark of a table, from the distinct texts of its columns: the comma if one can only be read with it."""
    for levels in columns:
        point = notation_of(levels)
        if point is not None and point.decimal == ",":
            return ","
    return "."


def is_truth(levels: Sequence[str]) -> bool:
    """True if the distinct texts mean true and false: one pair of words, or several words for each.

    Several single letters may be codes of anything, so that more than two texts need a word among them.
    """
    if len(levels) > 4 * len(TRUE):
        return False
    low = {level.lower() for level in levels}
    return low in PAIRS or (len(levels) > 2 and low <= {*TRUE, *FALSE} and bool(low & WORDS))


def truth_value(text: str) -> float:
    """1 for words that mean true, 0 for words that mean false, NaN for every other text."""
    low = text.strip().lower()
    return 1.0 if low in TRUE else 0.0 if low in FALSE else math.nan


def format_number(value: float, digits: int = 3) -> str:
    """A number for display: few digits, no trailing zeros, thousands separated."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e7 or size < 1e-4:
        mantissa, _, power = f"{value:.{digits - 1}e}".partition("e")
        mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        sign = {"1": "", "-1": "-"}.get(mantissa, f"{mantissa}·")
        return f"{sign}10{_superscript(int(power))}"
    if size >= 1000:
        return f"{value:,.0f}".replace(",", "\u202f")
    text = f"{value:.{digits}g}"
    return f"{float(text):g}" if "e" not in text else f"{float(text):.0f}"


def format_range(low: float, high: float) -> str:
    """The range of a number, for display."""
    return f"{format_number(low)} … {format_number(high)}"


def _superscript(power: int) -> str:
    return str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
