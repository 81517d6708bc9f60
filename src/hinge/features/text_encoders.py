"""Encoders of a column of free text: terms, their counts and their weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse

from hinge.features.encoders import Block
from hinge.features.terms import TermIndex, Terms
from hinge.tables.columns import Column


@dataclass(frozen=True, eq=False)
class Words:
    """Terms of free text, runs of words or of characters: presence, counts or tf-idf with rows of length 1."""

    terms: tuple[str, ...]
    weight: str
    idf: np.ndarray
    analyzer: str = "word"
    sublinear: bool = False

    @property
    def labels(self) -> list[str]:
        mark = ":" if self.analyzer == "word" else "~"
        return [f"{mark}{term}" for term in self.terms]

    @cached_property
    def index(self) -> TermIndex:
        return TermIndex(self.terms, self.analyzer)

    def encode(self, column: Column, counted: CountedTexts | None = None) -> Block:
        codes, texts = column.as_levels()
        if counted is None:
            return self.weigh(self.index.count((*texts, "")))[codes]
        rows, places = counted.rows(texts), counted.places(self.terms)
        return self.weigh(counted.terms.counts[np.append(rows, -1)[codes]][:, places])

    def weigh(self, counts: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
        """Counts as they are, as 0 and 1, or times idf with rows of length 1."""
        if self.weight == "presence":
            counts.data = np.ones_like(counts.data)
        elif self.weight == "tfidf":
            frequency = 1.0 + np.log(counts.data) if self.sublinear else counts.data
            counts.data = frequency * self.idf[counts.indices]
            unit_rows(counts)
        return counts

    def describe(self, gaps: int) -> str:
        how = {"presence": "presence", "counts": "counts", "tfidf": "tf-idf"}[self.weight]
        units = "words" if self.analyzer == "word" else "runs of characters"
        longest = max((len(term.split(" ")) for term in self.terms), default=1) if self.analyzer == "word" else 1
        runs = f" and runs of up to {longest}" if longest > 1 else ""
        return f"{how} of {len(self.terms)} {units}{runs}"


@dataclass(frozen=True, eq=False)
class Several:
    """Several encoders of one column, with their outputs concatenated."""

    parts: tuple[Words, ...]

    @property
    def labels(self) -> list[str]:
        return [label for part in self.parts for label in part.labels]

    def encode(self, column: Column, counted: Sequence[CountedTexts | None] = ()) -> Block:
        given = counted or [None] * len(self.parts)
        blocks = [part.encode(column, own) for part, own in zip(self.parts, given, strict=True)]
        return scipy.sparse.csr_array(scipy.sparse.hstack(blocks, format="csr"))

    def describe(self, gaps: int) -> str:
        return "; ".join(part.describe(gaps) for part in self.parts)


class CountedTexts:
    """The terms of a text column that are in at least ``least`` rows, counted once for all folds and encodings.

    The last row of the counts is zero and stands for missing texts.
    """

    def __init__(self, column: Column, analyzer: str, ngrams: tuple[int, int], least: int) -> None:
        codes, texts = column.as_levels()
        repeats = np.bincount(codes[codes >= 0], minlength=len(texts) + 1)
        self.terms = Terms((*texts, ""), analyzer, ngrams, least, repeats)
        self._row = {text: k for k, text in enumerate(texts)}
        self._place: dict[str, int] = {}

    def rows(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([self._row[text] for text in texts], dtype=np.int64)

    def names(self, columns: np.ndarray) -> list[str]:
        names = self.terms.names(columns)
        self._place.update(zip(names, columns.tolist()))
        return names

    def places(self, terms: Sequence[str]) -> np.ndarray:
        return np.array([self._place[term] for term in terms], dtype=np.int64)


def unit_rows(matrix: scipy.sparse.csr_array) -> None:
    """Divide every row by its Euclidean length, in place."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    lengths = np.sqrt(np.bincount(rows, matrix.data**2, minlength=matrix.shape[0]))
    matrix.data /= np.where(lengths > 0, lengths, 1.0)[rows]


def smooth_idf(frequency: np.ndarray, n: int) -> np.ndarray:
    """ln((1 + n) / (1 + df)) + 1, as in scikit-learn."""
    return np.log((1.0 + n) / (1.0 + frequency)) + 1.0


@dataclass(frozen=True)
class TextPlan:
    """The choice of the terms of a text that get an output: at most ``most`` n-grams, each in at least ``least`` rows.

    ``by_target`` selects the terms on which the target depends most; by default the most frequent ones are selected.
    """

    weight: str = "tfidf"
    analyzer: str = "word"
    ngrams: tuple[int, int] = (1, 1)
    most: int = 1000
    least: int = 1
    sublinear: bool = False
    by_target: bool = False

    def learn(self, column: Column, y: np.ndarray | None = None, counted: CountedTexts | None = None) -> Words:
        """The terms in sorted order, with their weights."""
        codes, texts = column.as_levels()
        rows = codes[codes >= 0]
        repeats = np.bincount(rows, minlength=len(texts))
        if counted is None:
            terms = Terms(texts, self.analyzer, self.ngrams, self.least, repeats)
            counts, names = terms.counts, terms.names
        else:
            counts, names = counted.terms.counts[counted.rows(texts)], counted.names
        frequency = np.bincount(counts.indices, np.repeat(repeats, np.diff(counts.indptr)), counts.shape[1])
        allowed = np.flatnonzero(frequency >= max(self.least, 1))
        if self.by_target and y is not None and len(allowed) > self.most:
            worth = dependence(counts[rows][:, allowed], y[codes >= 0])
        else:
            worth = frequency[allowed]
        if len(allowed) > self.most:
            cut = np.partition(worth, -self.most)[-self.most]
            allowed, worth = allowed[worth >= cut], worth[worth >= cut]
        named = sorted(zip(names(allowed), -worth, frequency[allowed]), key=lambda term: (term[1], term[0]))
        kept = sorted((term, frequency) for term, _, frequency in named[: self.most])
        idf = smooth_idf(np.array([frequency for _, frequency in kept], dtype=np.float64), len(rows))
        return Words(tuple(term for term, _ in kept), self.weight, idf, self.analyzer, self.sublinear)


def dependence(counts: scipy.sparse.csr_array, y: np.ndarray) -> np.ndarray:
    """The dependence of the target on the presence of every term: n · r² for numbers, the χ² statistic for labels.

    With labels the sum over classes of (observed − expected)² / expected of the presences; targets of floating-point type are
    numbers.
    """
    present = scipy.sparse.csr_array((np.ones(counts.nnz), counts.indices, counts.indptr), shape=counts.shape)
    n, total = len(y), np.asarray(present.sum(axis=0), dtype=np.float64)
    share = total / n
    if np.issubdtype(y.dtype, np.floating):
        centred = y - y.mean()
        covariance = present.T @ centred / n
        variance = share * (1 - share) * max(float(np.mean(centred**2)), np.finfo(float).tiny)
        return np.where(total < n, n * covariance**2 / np.maximum(variance, np.finfo(float).tiny), 0.0)
    classes, codes = np.unique(y, return_inverse=True)
    members = scipy.sparse.csr_array((np.ones(n), (codes, np.arange(n))), shape=(len(classes), n))
    observed = (members @ present).toarray()
    expected = np.outer(np.bincount(codes) / n, total)
    return np.sum((observed - expected) ** 2 / np.maximum(expected, np.finfo(float).tiny), axis=0)
