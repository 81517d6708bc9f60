"""Splitting of texts into terms, and counts of terms as a sparse matrix."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse

BLANKS = re.compile(r"\s\s+")
TOKEN = r"(?u)\b\w\w+\b"


def strip_accents(text: str, how: str) -> str:
    """Remove accents: "unicode" drops combining marks, "ascii" also all characters that are not ASCII afterwards."""
    if text.isascii():
        return text
    parts = unicodedata.normalize("NFKD", text)
    if how == "ascii":
        return parts.encode("ascii", "ignore").decode("ascii")
    return "".join(c for c in parts if not unicodedata.combining(c))


def cutter(
    analyzer: str = "word", ngram_range: tuple[int, int] = (1, 1), prepare: Callable[[str], str] = str.lower,
    find: Callable[[str], list[str]] | None = None, stop_words: Iterable[str] = (),
) -> Callable[[str], list[str]]:  # fmt: skip
    """A function from a text to its terms.

    "word" gives runs of words, "char" runs of characters, "char_wb" runs of characters within words, which are padded
    by a blank on either side.

    Parameters
    ----------
    analyzer : {"word", "char", "char_wb"}
    ngram_range : (int, int)
        The shortest and the longest run.
    prepare : function from text to text
        What is done first.
    find : function from a text to its words, optional
        Those of two letters or more by default.
    stop_words : words to leave out
    """
    low, high = ngram_range
    if analyzer != "word":
        return partial(_cut_characters, analyzer=analyzer, low=low, high=high, prepare=prepare)
    find = re.compile(TOKEN).findall if find is None else find
    return partial(_cut_words, low=low, high=high, prepare=prepare, find=find, stop=frozenset(stop_words))


def _cut_words(text: str, low: int, high: int, prepare: Any, find: Any, stop: frozenset[str]) -> list[str]:
    words = find(prepare(text))
    words = [w for w in words if w not in stop] if stop else words
    return _runs(words, low, high)


def _cut_characters(text: str, analyzer: str, low: int, high: int, prepare: Any) -> list[str]:
    text = BLANKS.sub(" ", prepare(text))
    parts = [text] if analyzer == "char" else [f" {w} " for w in text.split()]
    # A word shorter than n gives one term, the word itself.
    return [
        part[i : i + k]
        for part in parts
        for k in range(low, min(high, max(len(part), low)) + 1)
        if k <= len(part) or (analyzer == "char_wb" and k == low)
        for i in range(max(len(part) - k + 1, 1))
    ]


def _runs(words: list[str], low: int, high: int) -> list[str]:
    if low == high == 1:
        return words
    return [
        " ".join(words[i : i + k]) for k in range(low, min(high, len(words)) + 1) for i in range(len(words) - k + 1)
    ]


def document_frequencies(texts: Iterable[str], cut: Callable[[str], list[str]]) -> Counter[str]:
    """The number of texts that every term occurs in."""
    frequency: Counter[str] = Counter()
    for text in texts:
        frequency.update(set(cut(text)))
    return frequency


def count_terms(
    texts: Iterable[str], cut: Callable[[str], list[str]], place: Any, width: int
) -> scipy.sparse.csr_array:
    """The count of every term in every text.

    Parameters
    ----------
    texts : texts
    cut : function from a text to its terms
    place : function from a term to (column, sign), or None for a term without a column
    width : int
        The number of columns.
    """
    columns: list[int] = []
    values: list[float] = []
    ends = [0]
    for text in texts:
        row: dict[int, float] = {}
        for term in cut(text):
            if (at := place(term)) is not None:
                column, sign = at
                row[column] = row.get(column, 0.0) + sign
        columns.extend(row)
        values.extend(row.values())
        ends.append(len(columns))
    index = np.int32 if max(len(columns), width) < 2**31 else np.int64
    matrix = scipy.sparse.csr_array(
        (np.array(values, dtype=np.float64), np.array(columns, dtype=index), np.array(ends, dtype=index)),
        shape=(len(ends) - 1, width),
    )
    matrix.sort_indices()
    return matrix


class HashedPlaces(dict):
    """Columns of terms by their hash, which is the same on every machine: term ↦ (column, ±1)."""

    def __init__(self, width: int, signed: bool) -> None:
        super().__init__()
        self.width, self.signed = width, signed

    def __missing__(self, term: str) -> tuple[int, float]:
        digest = int.from_bytes(
            hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little"
        )
        sign = -1.0 if self.signed and digest >> 63 else 1.0
        self[term] = at = ((digest & (2**62 - 1)) % self.width, sign)
        return at
