"""Attributes of tokens: from words, dictionaries or matrices to the sparse rows that chain models learn from.

A token is a dictionary ``{name: value}`` (a string value v under name n is the attribute "n=v"), a list of attribute
names, or a row of a matrix. Attributes that do not occur in training are ignored in prediction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse

from hinge._native import check_indices, core

Token = Mapping[str, Any] | Sequence[str]


def word_shape(word: str) -> str:
    """The shape of a word: X for capitals, x for small letters, d for digits, with runs cut to three characters.

    >>> word_shape("McDonald's-2024")
    "XxXxxx'x-ddd"

    Parameters
    ----------
    word : str
        Any text; other characters stay as they are.
    """
    shape: list[str] = []
    for c in word:
        kind = "X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdigit() else c
        if len(shape) < 3 or shape[-3:] != [kind] * 3:
            shape.append(kind)
    return "".join(shape)


@dataclass
class TextFeatures:
    """Attributes of a word and its neighbours in the sentence.

    Parameters
    ----------
    window : int
        How many words on each side are looked at.
    affixes : int
        The longest prefix and suffix taken, in letters.
    shape : bool
        Whether capitals, digits and signs of the word are described (see :func:`hinge.structured.word_shape`).
    pairs : bool
        Whether the word is also combined with the one before it and the one after it.

    Examples
    --------
    >>> TextFeatures(window=1, affixes=1, shape=False, pairs=False)(["Hi", "there"])[0]
    ['bias', 'word=hi', 'form=Hi', 'suffix=i', 'prefix=h', '-1:<>', '+1:there', '+1~ere']
    """

    window: int = 2
    affixes: int = 4
    shape: bool = True
    pairs: bool = True
    _own: dict[str, list[str]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _near: dict[tuple[int, str], list[str]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __call__(self, words: Sequence[str]) -> list[list[str]]:
        n, lower = len(words), [str(word).lower() for word in words]
        out = []
        for i, word in enumerate(words):
            names = self._of(str(word)).copy()
            for k in range(1, self.window + 1):
                names += self._beside(-k, lower[i - k] if i >= k else "<>")
                names += self._beside(k, lower[i + k] if i + k < n else "<>")
            if self.pairs:
                names.append(f"-1|0:{lower[i - 1] if i else '<>'}|{lower[i]}")
                names.append(f"0|+1:{lower[i]}|{lower[i + 1] if i + 1 < n else '<>'}")
            out.append(names)
        return out

    def _of(self, word: str) -> list[str]:
        """Attributes of the word itself, computed once per distinct word."""
        names = self._own.get(word)
        if names is None:
            low = word.lower()
            names = ["bias", f"word={low}", f"form={word}"]
            longest = min(self.affixes, len(low))
            names += [f"suffix={low[-k:]}" for k in range(1, longest + 1)]
            names += [f"prefix={low[:k]}" for k in range(1, longest + 1)]
            if self.shape:
                names.append(f"shape={word_shape(word)}")
            self._own[word] = names
        return names

    def _beside(self, offset: int, word: str) -> list[str]:
        key = (offset, word)
        names = self._near.get(key)
        if names is None:
            names = [f"{offset:+d}:{word}"]
            if abs(offset) == 1 and word != "<>":
                names.append(f"{offset:+d}~{word[-3:]}")
            self._near[key] = names
        return names

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_own": {}, "_near": {}}  # the caches can be rebuilt


Extractor = Callable[[Any], Sequence[Token]]


@dataclass(frozen=True)
class Encoded:
    """The tokens of all sequences as one sparse matrix, in the form native code takes."""

    start: np.ndarray  # the start of each sequence, and the end of the last
    indptr: np.ndarray
    attribute: np.ndarray
    value: np.ndarray | None  # None: all ones
    attributes: int
    parent: np.ndarray | None = None

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.start)

    def native(self) -> Any:
        return core.ChainData(self.start, self.indptr, self.attribute, self.value, self.parent, self.attributes)

    def split(self, flat: np.ndarray) -> list[np.ndarray]:
        """Splits an array with one entry per token into one array per sequence."""
        return np.split(flat, self.start[1:-1]) if len(self.start) > 1 else []


@dataclass
class Cache:
    """A native object that is built when first needed and never saved or pickled."""

    model: Any = field(default=None, init=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {"model": None}


@dataclass
class Vocabulary:
    """The attributes of a model, in order of decreasing frequency; ``known`` is None if sequences are matrices."""

    known: list[str] | None
    size: int
    _cache: Cache = field(default_factory=Cache, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.known is not None and not len(set(self.known)) == len(self.known) == self.size:
            raise ValueError("a vocabulary must name each of its attributes once.")

    def _index(self) -> Any:
        """The native index from names to numbers."""
        if self._cache.model is None:
            index = core.AttributeIndex()
            index.extend(self.known)
            self._cache.model = index
        return self._cache.model

    @classmethod
    def learn(cls, X: Any, extract: Extractor | None, min_count: int) -> tuple[Vocabulary, Encoded]:
        if _is_numeric(X):
            encoded = _from_matrices(X, None)
            return cls(None, encoded.attributes), encoded
        index = core.AttributeIndex()
        start, indptr, attribute, value = _encode(X, extract, index, True)
        counts = np.bincount(attribute, minlength=len(index))
        # Frequent attributes come first, so that their rows stay in the cache.
        order = np.argsort(-counts, kind="stable")
        order = order[: int(np.searchsorted(-counts[order], -min_count, side="right"))]
        rank = np.full(len(index), -1, dtype=np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        names = index.names()
        vocabulary = cls([names[i] for i in order.tolist()], len(order))
        np.take(rank, attribute, out=attribute, mode="clip")  # in place, because this is the largest array of a fit
        if len(order) < len(index):
            frequent = attribute >= 0
            indptr = np.concatenate([[0], np.cumsum(frequent)])[indptr]
            attribute, value = attribute[frequent], value[frequent] if value is not None else None
        return vocabulary, Encoded(start, indptr, attribute, value, len(order))

    def encode(self, X: Any, extract: Extractor | None) -> Encoded:
        if self.known is None:
            return _from_matrices(X, self.size)
        if _is_numeric(X):
            raise ValueError("X holds matrices, but the model was fitted on tokens with named attributes.")
        start, indptr, attribute, value = _encode(X, extract, self._index(), False)
        return Encoded(start, indptr, attribute, value, self.size)

    def names(self) -> list[str]:
        return [f"x{k}" for k in range(self.size)] if self.known is None else self.known


def _encode(X: Any, extract: Extractor | None, index: Any, grow: bool) -> tuple[Any, Any, Any, Any]:
    if isinstance(X, str | bytes | Mapping) or not hasattr(X, "__len__"):
        raise ValueError(f"X must be a list of sequences, got {type(X).__name__}.")
    encoder = core.ChainEncoder(index, grow)
    if extract is None:
        encoder.add(X)
        return encoder.rows()
    for sequences in batched(X, 256):  # in batches, so that few attribute names are in memory
        encoder.add([extract(sequence) for sequence in sequences])
    return encoder.rows()


def batched(X: Any, size: int) -> Iterator[list[Any]]:
    """Lists of at most ``size`` items of X."""
    items = iter(X)
    while chunk := list(islice(items, size)):
        yield chunk


def _is_numeric(X: Any) -> bool:
    """Whether sequences are matrices, one row per token."""
    if not hasattr(X, "__len__") or len(X) == 0:
        return False
    first = X[0]
    return scipy.sparse.issparse(first) or (isinstance(first, np.ndarray) and first.ndim == 2)


def _from_matrices(X: Any, columns: int | None) -> Encoded:
    rows = []
    for i, sequence in enumerate(X):
        check_indices(sequence)
        try:
            matrix = scipy.sparse.csr_array(sequence, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"X[{i}] is not a matrix of numbers: {error}") from None
        matrix.sum_duplicates()
        if matrix.ndim != 2 or (columns is not None and matrix.shape[1] != columns):
            raise ValueError(f"X[{i}] has shape {matrix.shape}; expected (tokens, {columns or 'attributes'}).")
        columns = matrix.shape[1]
        rows.append(matrix)
    start = np.concatenate([[0], np.cumsum([matrix.shape[0] for matrix in rows])]).astype(np.int64)
    if not rows:
        return Encoded(start, np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0), columns or 0)
    stacked = scipy.sparse.vstack(rows, format="csr")
    if not np.all(np.isfinite(stacked.data)):
        raise ValueError("X contains NaN or infinity.")
    assert columns is not None
    return Encoded(
        start,
        stacked.indptr.astype(np.int64),
        stacked.indices.astype(np.int32),
        np.ascontiguousarray(stacked.data, dtype=np.float64),
        columns,
    )
