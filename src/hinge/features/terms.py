"""N-grams of many texts at once: n-grams of words or characters as integers, counted by sorting.

A k-gram of units (words, or characters within words) is a (k − 1)-gram followed by a unit, so its key is the pair (index of the
shorter n-gram, index of the unit). No n-gram is in more texts than its beginning, so rare n-grams are dropped before they are
extended (Agrawal & Srikant 1994). Only single words need a dictionary; the rest is arithmetic on arrays.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse

from hinge.features.tokenize import TOKEN


@dataclass(frozen=True, eq=False)
class Units:
    """The units of texts in order.

    Attributes
    ----------
    ids : array of int64
        The number of every unit, −1 for one that is not known.
    text : array of int64
        The text that it is in.
    blank : array of bool, optional
        The blanks among characters, which may only begin or end a run; None for words.
    n : int
        The number of texts.
    """

    ids: np.ndarray
    text: np.ndarray
    blank: np.ndarray | None
    n: int


def cut(texts: Sequence[str], analyzer: str, number: Callable[[str], int]) -> Units:
    """The words of texts, or their characters with one blank around each word."""
    ids = array("q")
    ends = np.zeros(len(texts) + 1, dtype=np.int64)
    find = re.compile(TOKEN).findall
    for k, text in enumerate(texts):
        text = text.lower()
        ids.extend(map(number, find(text) if analyzer == "word" else f" {' '.join(text.split())} "))
        ends[k + 1] = len(ids)
    numbers = np.frombuffer(ids, dtype=np.int64) if len(ids) else np.zeros(0, dtype=np.int64)
    text_of = np.repeat(np.arange(len(texts)), np.diff(ends))
    blank = numbers == number(" ") if analyzer == "char_wb" else None
    return Units(numbers, text_of, blank, len(texts))


def _longer(units: Units, runs: np.ndarray, k: int) -> np.ndarray:
    """Starting positions at which a (k − 1)-gram that is a term (``runs`` ≥ 0) is followed by a known unit of the same text."""
    at = np.flatnonzero(runs[: max(len(runs) - k + 1, 0)] >= 0)
    last = at + k - 1
    good = (units.text[at] == units.text[last]) & (units.ids[last] >= 0)
    if units.blank is not None and k > 2:
        good &= ~units.blank[last - 1]
    return at[good]


def _matrix(text: np.ndarray, terms: np.ndarray, n: int, width: int) -> scipy.sparse.csr_array:
    """Counts of terms in texts; ``text`` is sorted."""
    ends = np.searchsorted(text, np.arange(n + 1))
    found = scipy.sparse.csr_array((np.ones(len(terms)), terms, ends), shape=(n, width))
    found.sum_duplicates()
    return found


class Terms:
    """The terms of texts and how often each occurs in each text.

    Parameters
    ----------
    texts : sequence of str
    analyzer : {"word", "char_wb"}
    ngrams : (int, int)
        The shortest and the longest run.
    least : int
        Runs in fewer texts are left out.
    repeats : array of int, optional
        How many times every text counts for that.

    Attributes
    ----------
    counts : sparse array, texts × terms
    """

    def __init__(
        self, texts: Sequence[str], analyzer: str, ngrams: tuple[int, int], least: int = 1,
        repeats: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        self.analyzer, (low, high) = analyzer, ngrams
        known: defaultdict[str, int] = defaultdict()
        known.default_factory = known.__len__
        units = cut(texts, analyzer, known.__getitem__)
        self._units = list(known)
        self._levels: list[
            tuple[np.ndarray, np.ndarray]
        ] = []  # per length: the shorter n-gram and the last unit of every n-gram
        blocks = []
        runs, width = units.ids, len(known)
        for k in range(1, high + 1):
            if k == 1:
                at, first = np.arange(len(runs)), (np.zeros(width, dtype=np.int64), np.arange(width))
            else:
                at = _longer(units, runs, k)
                keys, inverse = np.unique(runs[at] * len(known) + units.ids[at + k - 1], return_inverse=True)
                first, width = np.divmod(keys, max(len(known), 1)), len(keys)
                runs = np.full(len(runs), -1, dtype=np.int64)
                runs[at] = inverse
            counts = _matrix(units.text[at], runs[at], units.n, width)
            weights = None if repeats is None else np.repeat(repeats, np.diff(counts.indptr))
            frequent = np.bincount(counts.indices, weights, minlength=width) >= least
            place = np.where(frequent, np.cumsum(frequent) - 1, -1)
            runs = np.where(runs >= 0, place[runs], -1)
            self._levels.append((first[0][frequent], first[1][frequent]))
            if k >= low:
                blocks.append(counts[:, np.flatnonzero(frequent)])
        self._low = low
        self.counts = scipy.sparse.csr_array(scipy.sparse.hstack(blocks, format="csr"))

    def names(self, columns: np.ndarray) -> list[str]:
        """The terms of these columns."""
        ends = np.cumsum([len(last) for _, last in self._levels[self._low - 1 :]])
        level = np.searchsorted(ends, columns, side="right")
        within = columns - np.concatenate([[0], ends])[level]
        return [self._name(int(k) + self._low - 1, int(j)) for k, j in zip(level, within)]

    def _name(self, level: int, run: int) -> str:
        between = " " if self.analyzer == "word" else ""
        parts = []
        for k in range(level, -1, -1):
            before, last = self._levels[k]
            parts.append(self._units[last[run]])
            run = int(before[run])
        return between.join(reversed(parts))


class TermIndex:
    """Counts given terms in texts.

    Parameters
    ----------
    terms : sequence of str
        Words with single blanks between them, or characters.
    analyzer : {"word", "char_wb"}
    """

    def __init__(self, terms: Sequence[str], analyzer: str) -> None:
        self.analyzer, self.width = analyzer, len(terms)
        runs = [tuple(term.split(" ")) if analyzer == "word" else tuple(term) for term in terms]
        self.units: dict[str, int] = {}
        for run in runs:
            for unit in run:
                self.units.setdefault(unit, len(self.units))
        longest = max(map(len, runs), default=0)
        self.column: list[dict[tuple[str, ...], int]] = [
            {} for _ in range(longest)
        ]  # per length: n-gram ↦ column, −1 if it is only the beginning of a term
        for k, run in enumerate(runs):
            for length in range(1, len(run)):
                self.column[length - 1].setdefault(run[:length], -1)
            self.column[len(run) - 1][run] = k

    @cached_property
    def levels(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Per length: the sorted keys of n-grams, and their columns."""
        found = []
        numbers: dict[tuple[str, ...], int] = {(): 0}
        for table in self.column:
            keys = np.array(
                [numbers[run[:-1]] * len(self.units) + self.units[run[-1]] for run in table], dtype=np.int64
            )
            order = np.argsort(keys)
            columns = np.array(list(table.values()), dtype=np.int64)[order]
            rank = np.empty(len(order), dtype=np.int64)
            rank[order] = np.arange(len(order))
            numbers = dict(zip(table, rank.tolist()))
            found.append((keys[order], columns))
        return found

    def count(self, texts: Sequence[str]) -> scipy.sparse.csr_array:
        """How often every term occurs in every text."""
        known = self.units
        units = cut(texts, self.analyzer, lambda unit: known.get(unit, -1))
        if self.analyzer == "char_wb" and " " not in known:
            units = Units(units.ids, units.text, units.ids == -2, units.n)  # no term contains a blank
        runs = np.where(units.ids >= 0, 0, -1)
        text, column = [], []
        for k, (keys, columns) in enumerate(self.levels, start=1):
            at = np.flatnonzero(runs >= 0) if k == 1 else _longer(units, runs, k)
            key = runs[at] * len(known) + units.ids[at + k - 1]
            place = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
            there = keys[place] == key
            at, place = at[there], place[there]
            runs = np.full(len(runs), -1, dtype=np.int64)
            runs[at] = place
            shown = columns[place] >= 0
            text.append(units.text[at[shown]])
            column.append(columns[place[shown]])
        at = np.concatenate([*text, np.zeros(0, dtype=np.int64)])
        order = np.argsort(at, kind="stable")
        return _matrix(at[order], np.concatenate([*column, np.zeros(0, dtype=np.int64)])[order], units.n, self.width)
