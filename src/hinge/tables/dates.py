"""Dates and times as text: one list of formats for the whole library."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence

import numpy as np

from hinge.tables.number_formats import MOSTLY, sample_levels

LONGEST = 40  # characters of a date and time
_DATES = (
    "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d", "%d-%m-%Y", "%d-%b-%Y", "%d %b %Y", "%b %d, %Y", "%d %B %Y", "%B %d, %Y",
)  # fmt: skip
# Of two formats that read equally many texts the first is taken: 01/02/2020 is the first of February.
DATE_FORMATS = ("iso", *_DATES, *(f"{date} {time}" for date in _DATES[:5] for time in ("%H:%M", "%H:%M:%S")))


def read_dates(texts: Iterable[str], pattern: str) -> np.ndarray:
    """Texts as local times in datetime64[us], without their offsets from UTC; NaT where they do not follow the format."""
    date, _, clock = pattern.partition(" %H")
    if not clock:
        return _read(texts, pattern)
    parts = [text.rpartition(" ") for text in texts]
    times = _read((time for _, _, time in parts), f"%H{clock}")  # on the first day of 1900
    return _read((day for day, _, _ in parts), date) + (times - np.datetime64("1900-01-01"))


def _read(texts: Iterable[str], pattern: str) -> np.ndarray:
    place: dict[str, int] = {}
    codes = [place.setdefault(text, len(place)) for text in texts]
    return np.array([_moment(text, pattern) for text in place], dtype="datetime64[us]")[codes]


def _moment(text: str, pattern: str) -> datetime.datetime | None:
    try:
        if pattern != "iso":
            return datetime.datetime.strptime(text, pattern)
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is None else moment.replace(tzinfo=None)


def date_format(levels: Sequence[str], counts: np.ndarray | None = None) -> str | None:
    """The date format of most rows, from the distinct texts of a column and their counts; None if there is none."""
    levels, weights = sample_levels(levels, counts)
    plausible = np.array([len(level) <= LONGEST and any(c.isdigit() for c in level) for level in levels], dtype=bool)
    best, most = None, MOSTLY * float(weights.sum())
    if not len(levels) or weights[plausible].sum() < most:
        return None
    for pattern in DATE_FORMATS:
        if np.isnat(read_dates(levels[:: len(levels) // 20 + 1], pattern)).all():
            continue
        share = float(weights[~np.isnat(read_dates(levels, pattern))].sum())
        if share >= most and (best is None or share > most):
            best, most = pattern, share
    return best
