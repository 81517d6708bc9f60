"""Kernels on strings: shared substrings, with or without mismatches or gaps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, pairwise, product
from math import comb
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from hinge._native import core
from hinge.problem.kernels import evaluate
from hinge.problem.kernels.base import Kernel
from hinge.problem.kernels.inner_products import LinearKernel

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Words(Kernel):
    """Kernels that count words of a fixed length: ⟨φ(s), φ(t)⟩ over sparse count vectors."""

    takes: ClassVar[str] = "objects"
    psd: ClassVar[bool] = True

    def words(self, letters: Numbers, starts: Numbers, base: int) -> tuple[Numbers, Numbers]:
        """The (string, word) pairs of all occurrences, words coded as numbers in the given base."""
        raise NotImplementedError

    def block(self, A: Any, B: Any) -> Array:
        if B is A:
            (counts,) = self._counts(A)
            return evaluate.gram(LinearKernel().program(), counts, counts)
        return evaluate.gram(LinearKernel().program(), *self._counts(A, B))

    def diagonal(self, A: Any) -> Array:
        (counts,) = self._counts(evaluate.objects(A))
        return np.asarray(counts.multiply(counts).sum(axis=1)).ravel()

    def features(self, X: Any) -> Any:
        """Counts of all words that occur in X, as a sparse matrix."""
        (counts,) = self._counts(evaluate.objects(X))
        return counts

    def _counts(self, *sets: Any) -> list[Any]:
        """Count matrices over the same words, for several sets of strings."""
        return count_words(self.words, *sets)[1]


Words = Callable[[Numbers, Numbers, int], tuple[Numbers, Numbers]]


def count_words(words_of: Words, *sets: Any) -> tuple[Numbers, list[Any]]:
    """The words that occur, and their counts in every string, for several sets of strings."""
    letters, starts, base = code_letters(np.concatenate(sets))
    rows, words = words_of(letters, starts, base)
    distinct, columns = np.unique(words, return_inverse=True)
    n = len(starts) - 1
    counts = scipy.sparse.csr_array(
        (np.ones(len(rows)), (rows.astype(np.int64), columns.ravel())), shape=(n, max(len(distinct), 1))
    )
    counts.sum_duplicates()
    bounds = np.cumsum([0, *(len(s) for s in sets)])
    return distinct, [counts[int(lo) : int(hi)] for lo, hi in pairwise(bounds)]


@dataclass(frozen=True, eq=False)
class Spectrum(_Words):
    """Σ_u #ᵤ(s)·#ᵤ(t) over all words u of the given length (Leslie et al. 2002).

    Parameters
    ----------
    length : int
        The length of the words.
    """

    length: int = 3

    def __post_init__(self) -> None:
        _check_length(self.length)

    def words(self, letters: Numbers, starts: Numbers, base: int) -> tuple[Numbers, Numbers]:
        return windows(letters, starts, base, self.length)


@dataclass(frozen=True, eq=False)
class Mismatch(_Words):
    """As :class:`Spectrum`, but a word counts wherever it occurs with at most ``mistakes`` wrong letters.

    Words consist of the letters in ``alphabet``, whose number affects the value (Leslie et al. 2004).

    Two words that agree in g places have f(g) words near both of them. Values are found from f(g) = Σ_k a_k C(g, k):
    a_k times the pairs that agree in k given places, over all choices of k places (few, while the words near one are
    many). All of it is whole numbers, so nothing is lost where terms cancel.

    Parameters
    ----------
    length : int
        The number of letters of a word.
    mistakes : int
        How many of them may be wrong.
    alphabet : str
        All letters there are, such as "ACGT"; it must be given.
    """

    length: int = 3
    mistakes: int = 1
    alphabet: str = ""

    def __post_init__(self) -> None:
        _check_length(self.length)
        if not 0 <= self.mistakes < self.length:
            raise ValueError(f"mistakes must lie between 0 and length − 1, got {self.mistakes!r}.")
        if not self.alphabet:
            raise ValueError(
                "alphabet must name the letters words are made of, e.g. alphabet='ACGT': the value of the kernel "
                "depends on how many there are."
            )
        if self._size() * len(self._places()) >= 2**63:
            raise ValueError(f"Words of {self.length} out of {len(set(self.alphabet))} letters are too many to number.")

    def block(self, A: Any, B: Any) -> Array:
        counts, weights = self._weighted(*((A,) if B is A else (A, B)))
        return evaluate.gram(LinearKernel().program(), scipy.sparse.csr_array(counts[0] * weights), counts[-1])

    def diagonal(self, A: Any) -> Array:
        (counts,), weights = self._weighted(evaluate.objects(A))
        return np.asarray(counts.multiply(counts) @ weights)

    def _weighted(self, *sets: Any) -> tuple[list[Any], Array]:
        """Counts of parts of words, and a_k for each of them."""
        parts, counts = count_words(self._parts, *sets)
        terms = common_neighbours(len(set(self.alphabet)), self.length, self.mistakes)
        weights = np.array([terms[len(places)] for places in self._places()], dtype=np.float64)
        return counts, weights[parts // self._size()] if len(parts) else np.zeros(1)

    def words(self, letters: Numbers, starts: Numbers, base: int) -> tuple[Numbers, Numbers]:
        rows, words, base = self._windows(letters, starts)
        return neighbours(rows, words, base, self.length, self.mistakes)

    def _size(self) -> int:
        return len(set(self.alphabet)) ** int(self.length)

    def _windows(self, letters: Numbers, starts: Numbers) -> tuple[Numbers, Numbers, int]:
        known = np.array(sorted({ord(c) for c in self.alphabet}))
        at = np.searchsorted(known, letters)
        if len(letters) and (np.any(at >= len(known)) or np.any(known[np.minimum(at, len(known) - 1)] != letters)):
            raise ValueError(f"A string has a letter that is not in alphabet={self.alphabet!r}.")
        return *windows(at, starts, len(known), self.length), len(known)

    def _places(self) -> list[tuple[int, ...]]:
        """The choices of places in which two words with common neighbours may agree."""
        fewest = max(self.length - 2 * self.mistakes, 0)
        return [c for k in range(fewest, self.length + 1) for c in combinations(range(self.length), k)]

    def _parts(self, letters: Numbers, starts: Numbers, base: int) -> tuple[Numbers, Numbers]:
        """(string, choice of places and the letters there) for every word that occurs."""
        rows, words, base = self._windows(letters, starts)
        parts = []
        for number, places in enumerate(self._places()):
            part = np.full(len(words), number * self._size())
            for place in places:
                part += words // base**place % base * base**place
            parts.append(part)
        return np.tile(rows, len(parts)), np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class Subsequence(Kernel):
    """Shared words with gaps: each occurrence contributes decay^(letters it spans), in both strings (Lodhi et al. 2002).

    Parameters
    ----------
    length : int
        The length of the words.
    decay : float
        Between 0 and 1.
    """

    length: int = 3
    decay: float = 0.5
    takes: ClassVar[str] = "objects"
    psd: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_length(self.length)
        if not 0 < self.decay <= 1:
            raise ValueError(f"decay must lie in (0, 1], got {self.decay!r}.")

    def block(self, A: Any, B: Any) -> Array:
        left = _letters(A)
        right = left if B is A else _letters(B)
        return core.subsequence_gram(*left, *right, int(self.length), float(self.decay), B is A)

    def diagonal(self, A: Any) -> Array:
        return np.array([self.block(a, a)[0, 0] for a in np.split(evaluate.objects(A), len(A))])


def code_letters(strings: Any) -> tuple[Numbers, Numbers, int]:
    """All letters as Unicode code points, the start of each string, and the largest code point plus one."""
    letters, starts = _letters(strings)
    return letters.astype(np.int64), starts, int(letters.max(initial=0)) + 1


def _letters(strings: Any) -> tuple[NDArray[np.int32], Numbers]:
    for s in strings:
        if not isinstance(s, str):
            raise TypeError(f"String kernels compare strings; got {type(s).__name__}: {s!r}.")
    starts = np.concatenate([[0], np.cumsum([len(s) for s in strings])]).astype(np.int64)
    text = "".join(strings).encode("utf-32-le", errors="surrogatepass")
    return np.frombuffer(text, dtype=np.int32).copy(), starts


def windows(letters: Numbers, starts: Numbers, base: int, length: int) -> tuple[Numbers, Numbers]:
    """Every substring of the given length as (string, number)."""
    if base ** int(length) >= 2**63:
        _, letters = np.unique(letters, return_inverse=True)
        base = int(letters.max(initial=0)) + 1
        if base ** int(length) >= 2**63:
            raise ValueError(f"Words of {length} out of {base} different letters are too many to number.")
    m = len(letters) - length + 1
    if m <= 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    words = np.zeros(m, dtype=np.int64)
    for k in range(length):
        words = words * base + letters[k : k + m]
    owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    inside = owner[:m] == owner[length - 1 :]
    return owner[:m][inside], words[inside]


def neighbours(
    rows: Numbers, words: Numbers, base: int, length: int, mistakes: int, first: int = 0
) -> tuple[Numbers, Numbers]:
    """All words within ``mistakes`` of each: change one letter at or after ``first``, then later ones."""
    all_rows, all_words = [rows], [words]
    if mistakes:
        for position in range(first, length):
            place = base**position
            digit = words // place % base
            for shift in range(1, base):
                changed = words + ((digit + shift) % base - digit) * place
                more = neighbours(rows, changed, base, length, mistakes - 1, position + 1)
                all_rows.append(more[0])
                all_words.append(more[1])
    return np.concatenate(all_rows), np.concatenate(all_words)


def common_neighbours(base: int, length: int, mistakes: int) -> list[int]:
    """a_k with f(g) = Σ_k a_k C(g, k), where f(g) words are within ``mistakes`` of both of two words that agree in g places.

    Where the two differ, a word near both has the letter of the one (i places), of the other (j) or a third; where
    they agree, it may differ from both in r places.
    """
    f = []
    for g in range(length + 1):
        d, total = length - g, 0
        for i, j in product(range(d + 1), repeat=2):
            if i + j <= d:
                ways = comb(d, i) * comb(d - i, j) * (base - 2) ** (d - i - j) if base > 1 else int(d == 0)
                total += ways * sum(comb(g, r) * (base - 1) ** r for r in range(g + 1) if d - min(i, j) + r <= mistakes)
        f.append(total)
    return [sum((-1) ** (k - g) * comb(k, g) * f[g] for g in range(k + 1)) for k in range(length + 1)]


def _check_length(length: Any) -> None:
    if int(length) != length or length < 1:
        raise ValueError(f"length must be a positive whole number, got {length!r}.")
