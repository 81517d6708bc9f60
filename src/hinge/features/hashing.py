"""Text to sparse vectors without a vocabulary: the column of a term is its hash."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from hinge._parameters import Constraints, count
from hinge.features.text_base import TextVectorizer, divide_rows
from hinge.features.tokenize import TOKEN, HashedPlaces, count_terms


class HashingVectorizer(TextVectorizer):
    """Bag of words without a vocabulary: the column of a term is its hash, so nothing is learned or kept.

    Two terms may share a column; with ``alternate_sign`` they then cancel on average, and inner products stay right in
    the mean.

    Parameters
    ----------
    n_features : int
        The number of columns.
    norm : {"l2", "l1", None}
        What rows are divided by.
    alternate_sign : bool
        Whether the hash decides the sign of a term too.
    input, encoding, decode_error, strip_accents, lowercase, preprocessor, tokenizer, stop_words, token_pattern, \
ngram_range, analyzer, binary, dtype
        As for :class:`CountVectorizer`.

    Examples
    --------
    >>> import hinge as hg
    >>> Z = hg.HashingVectorizer(n_features=2**10, norm=None).transform(["good day", "good good night"])
    >>> Z.shape, abs(Z).sum(axis=1).tolist()
    ((2, 1024), [2.0, 3.0])
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "n_features": [count()],
        "alternate_sign": ["boolean"],
    }

    def __init__(
        self,
        *,
        input: str = "content",
        encoding: str = "utf-8",
        decode_error: str = "strict",
        strip_accents: Any = None,
        lowercase: bool = True,
        preprocessor: Any = None,
        tokenizer: Any = None,
        stop_words: Any = None,
        token_pattern: str = TOKEN,
        ngram_range: tuple[int, int] = (1, 1),
        analyzer: Any = "word",
        n_features: int = 2**20,
        binary: bool = False,
        norm: str | None = "l2",
        alternate_sign: bool = True,
        dtype: Any = np.float64,
    ) -> None:
        self.input = input
        self.encoding = encoding
        self.decode_error = decode_error
        self.strip_accents = strip_accents
        self.lowercase = lowercase
        self.preprocessor = preprocessor
        self.tokenizer = tokenizer
        self.stop_words = stop_words
        self.token_pattern = token_pattern
        self.ngram_range = ngram_range
        self.analyzer = analyzer
        self.n_features = n_features
        self.binary = binary
        self.norm = norm
        self.alternate_sign = alternate_sign
        self.dtype = dtype

    def fit(self, raw_documents: Any = None, y: Any = None) -> HashingVectorizer:
        """Nothing to learn."""
        self._warn_of_unused()
        self._cutter()
        return self

    def partial_fit(self, raw_documents: Any = None, y: Any = None) -> HashingVectorizer:
        """Nothing to learn."""
        return self

    def transform(self, raw_documents: Any) -> Any:
        """Counts by hash, as a sparse matrix."""
        self._validate_params()
        self._warn_of_stop_words()
        places = HashedPlaces(int(self.n_features), self.alternate_sign)
        texts = self._texts(raw_documents)
        counts = self._finish(count_terms(texts, self._cutter(), places.__getitem__, int(self.n_features)))
        counts.data = counts.data.astype(np.float64)
        divide_rows(counts, self.norm)
        return counts.astype(self.dtype)
