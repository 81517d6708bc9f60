"""Kernels on strings: shared substrings, with or without mistakes or gaps."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from hinge._native import core
from hinge.problem.kernels import evaluate
from hinge.problem.kernels.base import Kernel
from hinge.problem.kernels.vector import LinearKernel

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Words(Kernel):
    """Kernels that count words of a fixed length: ⟨φ(s), φ(t)⟩ over sparse count vectors."""

    takes: ClassVar[str] = "objects"

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
        letters, starts, base = code_letters(np.concatenate(sets))
        rows, words = self.words(letters, starts, base)
        known, columns = np.unique(words, return_inverse=True)
        n = len(starts) - 1
        counts = scipy.sparse.csr_array(
            (np.ones(len(rows)), (rows.astype(np.int64), columns.ravel())), shape=(n, max(len(known), 1))
        )
        counts.sum_duplicates()
        bounds = np.cumsum([0, *(len(s) for s in sets)])
        return [counts[int(lo) : int(hi)] for lo, hi in pairwise(bounds)]


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
    """Like :class:`Spectrum`, but a word counts wherever it occurs with at most ``mistakes`` wrong letters.

    Words are made of the letters in ``alphabet``; how many there are matters for the value (Leslie et al. 2004).
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

    def words(self, letters: Numbers, starts: Numbers, base: int) -> tuple[Numbers, Numbers]:
        known = np.array(sorted({ord(c) for c in self.alphabet}))
        at = np.searchsorted(known, letters)
        if len(letters) and (np.any(at >= len(known)) or np.any(known[np.minimum(at, len(known) - 1)] != letters)):
            raise ValueError(f"A string has a letter that is not in alphabet={self.alphabet!r}.")
        base = len(known)
        rows, words = windows(at, starts, base, self.length)
        return neighbours(rows, words, base, self.length, self.mistakes)


@dataclass(frozen=True, eq=False)
class Subsequence(Kernel):
    """Shared words with gaps: every occurrence counts decay^(letters it spans), in both strings (Lodhi et al. 2002).

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
    """All letters as Unicode numbers, where each string starts, and one more than the largest number."""
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
    """All words within so many mistakes of each: change one letter at or after ``first``, then later ones."""
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


def _check_length(length: Any) -> None:
    if int(length) != length or length < 1:
        raise ValueError(f"length must be a positive whole number, got {length!r}.")
