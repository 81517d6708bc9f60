"""Numbers, truths and dates as people write them: 1.234,50 €, 12 %, 3 kg; yes, True and 1; 31.12.2024."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

MOSTLY = 0.95
LOOK = 2000
TRUE, FALSE = ("true", "yes", "y", "t", "1", "1.0"), ("false", "no", "n", "f", "0", "0.0")
WORDS = ["true", "false", "yes", "no"]
BEFORE = r"(?:[$€£¥₹]|US\$|USD|EUR|GBP|CHF|JPY|kr|Rs\.?)"
AFTER = r"[^\d\s.,+\-][^\d]{0,11}"
SPACES = "'’\u00a0\u202f "  # between thousands, besides the comma or the point
SIGN = r"[+\-−]?"


@dataclass(frozen=True)
class Notation:
    """How a column of texts is to be read.

    Attributes
    ----------
    decimal : {".", ","}
        The decimal mark; the other one may stand between thousands.
    before, after : str
        What stands beside every number: a currency, a unit, a percent sign.
    truth : bool
        Whether the texts are words for true and false instead.
    """

    decimal: str = "."
    before: str = ""
    after: str = ""
    truth: bool = False

    def read(self, text: Any) -> Any:
        """The numbers (or "true" and "false") that texts stand for; None where they stand for none."""
        import polars as pl

        text = text.str.strip_chars()
        if self.truth:
            codes = dict.fromkeys(TRUE, "true") | dict.fromkeys(FALSE, "false")
            return text.str.to_lowercase().replace_strict(
                list(codes), list(codes.values()), default=None, return_dtype=pl.String
            )
        parts = _parts(text, self.decimal)
        fits = (parts["before"] == self.before) & (parts["after"] == self.after)
        numbers = parts["number"].cast(pl.Float64, strict=False)
        return pl.select(pl.when(fits).then(numbers).otherwise(None)).to_series().rename(text.name)

    def says(self, example: str) -> str:
        """For a remark: what was done."""
        if self.truth:
            return "words for true and false, written in several ways; taken as true and false"
        marks = [repr(mark) for mark in (self.before, self.after) if mark]
        if self.decimal == "," or not marks:
            marks.insert(0, "decimal commas" if self.decimal == "," else "separators of thousands")
        number = self.read(_series([example]))[0]
        return f"numbers written with {' and '.join(marks)}; {example!r} was read as {number:.10g}"


def notation_of(text: Any, hint: str = ".") -> Notation | None:
    """How most texts of a column are written, or None if they are neither numbers nor words for truth.

    ``hint`` is the decimal mark where the texts do not tell: 1,234 is one thousand or one and a bit.
    """
    look = text.drop_nulls().head(LOOK).str.strip_chars()
    if len(look) == 0:
        return None
    if _is_truth(look):
        return Notation(truth=True)
    best, most = None, MOSTLY * len(look)
    for decimal in (hint, "," if hint == "." else "."):
        parts = _parts(look, decimal)
        found = (
            parts.filter(parts["number"].is_not_null()).group_by("before", "after").len().sort("len", descending=True)
        )
        if found.height and found["len"][0] >= most and (best is None or found["len"][0] > most):
            best, most = Notation(decimal, found["before"][0], found["after"][0]), found["len"][0]
    return best


def decimal_mark(texts: list[Any]) -> str:
    """The decimal mark of a table: the comma if some column can only be read with it."""
    for text in texts:
        point, comma = (notation_of(text, mark) for mark in ".,")
        if point is not None and comma is not None and point.decimal == comma.decimal == ",":
            return ","
    return "."


def _is_truth(look: Any) -> bool:
    """Words for true and false, more than two of them. Letters alone may be codes of anything."""
    low = look.str.to_lowercase()
    return look.n_unique() > 2 and bool(low.is_in([*TRUE, *FALSE]).all()) and bool(low.is_in(WORDS).any())


def _parts(text: Any, decimal: str) -> Any:
    """Every text as what stands before, the number with a decimal point, and what stands after."""
    import polars as pl

    other = "," if decimal == "." else "."
    mark = "\\" + decimal
    whole = rf"(?:[1-9]\d{{0,2}}(?:[{SPACES}{other}]\d{{3}})+|\d+)"
    number = rf"(?:{whole}(?:{mark}\d*)?|{mark}\d+)(?:[eE][+\-]?\d+)?"
    pattern = rf"^(?<s>{SIGN})\s*(?<before>{BEFORE})?\s*(?<t>{SIGN})\s*(?<number>{number})\s*(?<after>{AFTER})?$"
    groups = text.str.extract_groups(pattern).struct.unnest()
    sign = pl.col("s").fill_null("") + pl.col("t").fill_null("")
    digits = pl.col("number").str.replace_all(f"[{SPACES}\\{other}]", "").str.replace(decimal, ".", literal=True)
    return groups.select(
        pl.col("before").fill_null(""), pl.col("after").fill_null("").str.strip_chars(),
        (pl.when(sign.str.contains("[-−]")).then(pl.lit("-")).otherwise(pl.lit("")) + digits).alias("number"),
    )  # fmt: skip


def _series(values: list[str]) -> Any:
    import polars as pl

    return pl.Series("", values, dtype=pl.String)


def parse_dates(text: Any) -> Any:
    """ISO dates and times, or day/month/year and month/day/year; None if these are not dates."""
    if not text.drop_nulls().head(50).str.contains(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}").all():
        return None
    best = None
    for pattern in ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S%.f",
                    "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d", "%d-%m-%Y",
                    "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M", "%d.%m.%Y %H:%M"):  # fmt: skip
        read = text.str.to_datetime(pattern, strict=False, time_unit="us")
        if best is None or read.null_count() < best.null_count():
            best = read
        if best.null_count() == text.null_count():
            break
    return best if best is not None and best.null_count() < len(text) else None


def format_number(value: float, digits: int = 3) -> str:
    """A number for people: few digits, no needless zeros, thousands apart."""
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


def _superscript(power: int) -> str:
    return str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
