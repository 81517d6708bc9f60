"""Base class of the text vectorisers: documents to texts, and texts to terms."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.base import TransformerMixin

from hinge._parameters import DTYPE, Constraints, Estimator, between, count, has, numbers, one_of
from hinge._sources import is_source
from hinge.features.text_encoders import unit_rows
from hinge.features.tokenize import TOKEN, cutter, strip_accents


class TextVectorizer(TransformerMixin, Estimator):
    """Base class of the vectorisers: splits texts into terms."""

    _parameter_constraints: ClassVar[Constraints] = {
        "input": [one_of("filename", "file", "content")],
        "encoding": [str],
        "decode_error": [one_of("strict", "ignore", "replace")],
        "strip_accents": [one_of("ascii", "unicode"), None, callable],
        "lowercase": ["boolean"],
        "preprocessor": [callable, None],
        "tokenizer": [callable, None],
        "stop_words": [one_of("english"), list, tuple, set, frozenset, None],
        "token_pattern": [str, None],
        "ngram_range": [numbers(1, size=2)],
        "analyzer": [one_of("word", "char", "char_wb"), callable],
        "max_df": [between(0, 1), count()],
        "min_df": [between(0, 1), count()],
        "max_features": [count(), None],
        "vocabulary": [Mapping, has("__iter__"), None],
        "binary": ["boolean"],
        "dtype": DTYPE,
        "norm": [one_of("l1", "l2"), None],
    }

    _constant_tags: ClassVar[dict[str, bool]] = {
        "input_tags.string": True,
        "input_tags.two_d_array": False,
        "requires_fit": False,
    }

    def __init_subclass__(cls, **options: Any) -> None:
        # No set_output: sparse matrices of thousands of columns are not converted to data frames.
        super().__init_subclass__(auto_wrap_output_keys=None, **options)

    input: str
    encoding: str
    decode_error: str
    strip_accents: Any
    lowercase: bool
    preprocessor: Any
    tokenizer: Any
    stop_words: Any
    token_pattern: str
    ngram_range: tuple[int, int]
    analyzer: Any
    binary: bool
    dtype: Any

    def build_analyzer(self) -> Any:
        """A function from a document to its terms."""
        if callable(self.analyzer) and self.input == "content":
            return self.analyzer
        return partial(_decode_and_cut, decode=self.decode, cut=self._cutter())

    def _cutter(self) -> Any:
        """A function from a text to its terms."""
        low, high = self.ngram_range
        if low > high:
            raise ValueError(
                f"Invalid value for ngram_range={self.ngram_range} lower boundary larger than the upper boundary."
            )
        if not low >= 1:
            raise ValueError(f"ngram_range must be (min, max) with 1 ≤ min ≤ max, got {self.ngram_range!r}.")
        if callable(self.analyzer):
            return self.analyzer
        find = self.build_tokenizer() if self.analyzer == "word" else None
        return cutter(self.analyzer, (low, high), self.build_preprocessor(), find, self.get_stop_words() or ())

    def build_preprocessor(self) -> Callable[[str], str]:
        """A function that prepares a text for splitting: lower case, no accents."""
        if self.preprocessor is not None:
            return self.preprocessor
        bare = self.strip_accents
        if not (bare is None or callable(bare) or bare in ("ascii", "unicode")):
            raise ValueError(f"strip_accents={bare!r} must be 'ascii', 'unicode', None or a function.")
        if bare is None:
            return str.lower if self.lowercase else str
        strip = bare if callable(bare) else partial(strip_accents, how=bare)
        return partial(_lower_and_strip, strip=strip) if self.lowercase else strip

    def build_tokenizer(self) -> Callable[[str], list[str]]:
        """A function from a text to its words."""
        if self.tokenizer is not None:
            return self.tokenizer
        if self.token_pattern is None:
            raise ValueError("token_pattern=None needs a tokenizer.")
        pattern = re.compile(self.token_pattern)
        if pattern.groups > 1:
            raise ValueError(
                "More than 1 capturing group in token pattern. Only a single group should be captured; write the others "
                "as (?:…)."
            )
        return pattern.findall

    def get_stop_words(self) -> frozenset[str] | None:
        """The words that are left out."""
        if isinstance(self.stop_words, str):
            if self.stop_words != "english":
                raise ValueError(f"stop_words={self.stop_words!r} is no list of its own; pass 'english' or the words.")
            from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS  # imported here, since it is rarely needed

            return ENGLISH_STOP_WORDS
        return None if self.stop_words is None else frozenset(self.stop_words)

    def _warn_of_unused(self) -> None:
        """Warn of parameters that have no effect beside others, with the messages of scikit-learn."""
        other = callable(self.analyzer)
        idle = {
            "preprocessor": self.preprocessor is not None and other and "'analyzer' is callable",
            "ngram_range": tuple(self.ngram_range) != (1, 1) and other and "'analyzer' is callable",
            "stop_words": self.stop_words is not None and self.analyzer != "word" and "'analyzer' != 'word'",
            "tokenizer": self.tokenizer is not None and self.analyzer != "word" and "'analyzer' != 'word'",
        }
        if self.token_pattern not in (None, TOKEN):
            by_analyzer = self.analyzer != "word" and "'analyzer' != 'word'"
            idle["token_pattern"] = by_analyzer or (self.tokenizer is not None and "'tokenizer' is not None")
        for name, why in idle.items():
            if why:
                warnings.warn(f"The parameter '{name}' will not be used since {why}", UserWarning, stacklevel=4)

        self._warn_of_stop_words()

    def _warn_of_stop_words(self) -> None:
        """Warn of stop words that the tokenizer splits into other words, which are then not removed."""
        if self.analyzer != "word" or not isinstance(self.stop_words, list | tuple | set | frozenset):
            return
        words, prepare, find = frozenset(self.stop_words), self.build_preprocessor(), self.build_tokenizer()
        try:
            missing = sorted({token for word in words for token in find(prepare(word))} - words)
        except Exception:  # a user's own functions may fail on single words
            return
        if missing:
            warnings.warn(
                "Your stop_words may be inconsistent with your preprocessing. Tokenizing the stop words generated "
                f"tokens {missing} not in stop_words.",
                UserWarning,
                stacklevel=5,
            )

    def decode(self, doc: Any) -> Any:
        """The text of a document: read from its file, and its bytes decoded."""
        if self.input == "filename":
            doc = Path(doc).read_bytes()
        elif self.input == "file":
            doc = doc.read()
        return doc.decode(self.encoding, self.decode_error) if isinstance(doc, bytes) else doc

    def _texts(self, texts: Iterable[Any]) -> list[Any]:
        if isinstance(texts, str):
            raise ValueError("Give a list of texts, not one text.")
        if is_source(texts):
            raise TypeError("A source is read in two passes: fit(source), then transform(source) or source.map(…).")
        items = list(np.asarray(texts, dtype=object).ravel()) if hasattr(texts, "__array__") else list(texts)
        items = [self.decode(item) for item in items]
        needs_strings = self.preprocessor is None and not callable(
            self.analyzer
        )  # a user's own functions may take any type
        bad = next((t for t in items if needs_strings and not isinstance(t, str)), None)
        if bad is not None:
            raise ValueError(f"Texts must be strings, got {bad!r}; fill missing texts with ''.")
        return items

    def _finish(self, counts: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
        if self.binary:
            counts.data = np.sign(counts.data)
        return counts.astype(self.dtype)


def _decode_and_cut(document: Any, decode: Any, cut: Any) -> list[str]:
    return cut(decode(document))


def _lower_and_strip(text: str, strip: Any) -> str:
    return strip(text.lower())


def divide_rows(matrix: scipy.sparse.csr_array, norm: str | None) -> None:
    if norm == "l2":
        unit_rows(matrix)
    elif norm == "l1":
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        lengths = np.bincount(rows, np.abs(matrix.data), minlength=matrix.shape[0])
        matrix.data /= np.where(lengths > 0, lengths, 1.0)[rows]
