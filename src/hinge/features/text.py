"""Text to sparse vectors: term counts and tf-idf."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_is_fitted

from hinge._parameters import Constraints
from hinge.features.text_base import TextVectorizer, divide_rows
from hinge.features.tokenize import TOKEN, count_terms, document_frequencies


class CountVectorizer(TextVectorizer):
    """Bag of words: the count of every training term in a text (or its presence, with ``binary``).

    Parameters
    ----------
    input : {"content", "filename", "file"}
        Whether texts are given, or the names of their files, or files that are open.
    encoding : str
        How bytes become text.
    decode_error : {"strict", "ignore", "replace"}
        What happens where bytes are no text in this encoding.
    strip_accents : {"ascii", "unicode"} or function, optional
        Letters without their accents.
    lowercase : bool
        Whether case is ignored.
    preprocessor : function from text to text, optional
        In place of ``lowercase`` and ``strip_accents``.
    tokenizer : function from text to words, optional
        In place of ``token_pattern``.
    stop_words : list of str or "english", optional
        Words to leave out.
    token_pattern : str
        A regular expression for words: two letters or more.
    ngram_range : (int, int)
        The shortest and longest runs of words (or characters) that are terms.
    analyzer : {"word", "char", "char_wb"} or function from text to terms
        Runs of words, of characters, or of characters inside words.
    max_df : float or int
        Terms in more training texts are left out: a share if a float, a number if an int.
    min_df : float or int
        Terms in fewer training texts are left out: a share if a float, a number if an int.
    max_features : int, optional
        Keep this many terms, those that occur most often.
    vocabulary : dict or list, optional
        The terms, given.
    binary : bool
        1 for every term that occurs.
    dtype : type
        Of the numbers.

    Attributes
    ----------
    vocabulary_ : dict
        Term ↦ column.
    fixed_vocabulary_ : bool
        Whether the terms were given.

    Examples
    --------
    >>> import hinge as hg
    >>> bag = hg.CountVectorizer()
    >>> bag.fit_transform(["good day", "good good night"]).toarray().astype(int).tolist()
    [[1, 1, 0], [0, 2, 1]]
    >>> list(bag.get_feature_names_out())
    ['day', 'good', 'night']
    """

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
        max_df: Any = 1.0,
        min_df: Any = 1,
        max_features: int | None = None,
        vocabulary: Any = None,
        binary: bool = False,
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
        self.max_df = max_df
        self.min_df = min_df
        self.max_features = max_features
        self.vocabulary = vocabulary
        self.binary = binary
        self.dtype = dtype

    def fit(self, raw_documents: Any, y: Any = None) -> CountVectorizer:
        """Learn the terms."""
        self.fit_transform(raw_documents)
        return self

    def fit_transform(self, raw_documents: Any, y: Any = None) -> Any:
        """Learn the terms and count them."""
        return self._learn_and_count(raw_documents)

    def _learn_and_count(self, raw_documents: Any) -> scipy.sparse.csr_array:
        self._warn_of_unused()
        texts = self._texts(raw_documents)
        if self.vocabulary is None:
            self._learn(texts)
        else:
            self._adopt_vocabulary()
            self._warn_of_upper_case()
        return self._count(texts)

    @property
    def fixed_vocabulary_(self) -> bool:
        """Whether the terms were given."""
        return self.vocabulary is not None

    def _warn_of_upper_case(self) -> None:
        if self.lowercase and self.preprocessor is None and any(term != term.lower() for term in self.vocabulary_):
            warnings.warn(
                "Upper case characters found in vocabulary while 'lowercase' is True. These entries will not be matched"
                " with any documents",
                UserWarning,
                stacklevel=4,
            )

    def _adopt_vocabulary(self) -> None:
        """The terms that were given."""
        terms = sorted(self.vocabulary) if isinstance(self.vocabulary, set) else list(self.vocabulary)
        places = self.vocabulary if isinstance(self.vocabulary, dict) else {t: k for k, t in enumerate(terms)}
        if not terms:
            raise ValueError("empty vocabulary passed to fit")
        if sorted(places.values()) != list(range(len(places))):
            raise ValueError("vocabulary must map terms to 0, 1, 2, …, each once.")
        self.vocabulary_ = {term: int(k) for term, k in places.items()}

    def _check_vocabulary(self) -> None:
        """A vocabulary that was given needs no fit."""
        if self.vocabulary is not None and not hasattr(self, "vocabulary_"):
            self._adopt_vocabulary()
        check_is_fitted(self, "vocabulary_")

    def _learn(self, texts: list[str]) -> None:
        frequency = document_frequencies(texts, self._cutter())
        self._choose_terms(frequency, len(texts), lambda terms: self._occurrences(texts, terms))

    def _occurrences(self, texts: list[str], terms: list[str]) -> np.ndarray:
        """The counts of terms over all texts."""
        places = {term: (k, 1.0) for k, term in enumerate(terms)}
        return count_terms(texts, self._cutter(), places.get, len(terms)).sum(axis=0)

    def _choose_terms(
        self, frequency: Mapping[str, int], texts: int, occurrences: Callable[[list[str]], np.ndarray]
    ) -> None:
        """The vocabulary, from the number of texts that every term occurs in."""
        least, most = _threshold(self.min_df, texts), _threshold(self.max_df, texts)
        kept = sorted(term for term, count in frequency.items() if least <= count <= most)
        if self.max_features is not None and len(kept) > self.max_features:
            order = np.argsort(-occurrences(kept), kind="stable")[: self.max_features]
            kept = sorted(kept[k] for k in order)
        if not kept:
            raise ValueError(
                "No terms are left: the texts are empty, or token_pattern, min_df, max_df and stop_words leave nothing of them."
            )
        self.vocabulary_ = {term: k for k, term in enumerate(kept)}

    def transform(self, raw_documents: Any) -> Any:
        """Counts of the known terms, as a sparse matrix."""
        self._check_vocabulary()
        return self._count(self._texts(raw_documents))

    def _count(self, texts: list[str]) -> scipy.sparse.csr_array:
        places = {term: (k, 1.0) for term, k in self.vocabulary_.items()}
        return self._finish(count_terms(texts, self._cutter(), places.get, len(places)))

    def inverse_transform(self, X: Any) -> list[np.ndarray]:
        """The terms that occur in every row of counts."""
        terms = self.get_feature_names_out()
        rows = scipy.sparse.csr_array(X)
        rows.eliminate_zeros()
        return [terms[np.sort(part)] for part in np.split(rows.indices, rows.indptr[1:-1])]

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The terms, in the order of the columns."""
        self._check_vocabulary()
        return np.array(sorted(self.vocabulary_, key=self.vocabulary_.__getitem__), dtype=object)


class TfidfVectorizer(CountVectorizer):
    """Term frequency times inverse document frequency: count · (ln((1 + n)/(1 + df)) + 1), rows of length 1.

    Parameters
    ----------
    norm : {"l2", "l1", None}
        What rows are divided by.
    use_idf : bool
        Weigh terms by how few texts they occur in.
    smooth_idf : bool
        Count one more text that has every term.
    sublinear_tf : bool
        1 + ln(count) instead of the count.
    input, encoding, decode_error, strip_accents, lowercase, preprocessor, tokenizer, stop_words, token_pattern, \
ngram_range, analyzer, max_df, min_df, max_features, vocabulary, binary, dtype
        As for :class:`CountVectorizer`.

    Attributes
    ----------
    vocabulary_ : dict
        Term ↦ column.
    idf_ : array
        The factor of every term.

    Examples
    --------
    >>> import hinge as hg
    >>> hg.TfidfVectorizer().fit_transform(["good day", "good night"]).toarray().round(2).tolist()
    [[0.81, 0.58, 0.0], [0.0, 0.58, 0.81]]
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "use_idf": ["boolean"],
        "smooth_idf": ["boolean"],
        "sublinear_tf": ["boolean"],
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
        max_df: Any = 1.0,
        min_df: Any = 1,
        max_features: int | None = None,
        vocabulary: Any = None,
        binary: bool = False,
        dtype: Any = np.float64,
        norm: str | None = "l2",
        use_idf: bool = True,
        smooth_idf: bool = True,
        sublinear_tf: bool = False,
    ) -> None:
        super().__init__(
            input=input, encoding=encoding, decode_error=decode_error, strip_accents=strip_accents,
            lowercase=lowercase, preprocessor=preprocessor, tokenizer=tokenizer, stop_words=stop_words,
            token_pattern=token_pattern, ngram_range=ngram_range, analyzer=analyzer, max_df=max_df, min_df=min_df,
            max_features=max_features, vocabulary=vocabulary, binary=binary, dtype=dtype,
        )  # fmt: skip
        self.norm = norm
        self.use_idf = use_idf
        self.smooth_idf = smooth_idf
        self.sublinear_tf = sublinear_tf

    def fit_transform(self, raw_documents: Any, y: Any = None) -> Any:
        """Learn terms and idf factors, and apply them."""
        if np.dtype(self.dtype).kind != "f":
            name = np.dtype(self.dtype).name
            warnings.warn(
                f"Only float 'dtype' should be used. {name} 'dtype' will be converted to np.float64.",
                UserWarning,
                stacklevel=3,
            )
        counts = self._learn_and_count(raw_documents)
        self._set_factors(np.bincount(counts.indices, minlength=counts.shape[1]), counts.shape[0])
        return self._weigh(counts)

    def _set_factors(self, frequency: np.ndarray, texts: int) -> None:
        """Set the idf factors from the number of texts that every term occurs in."""
        extra = float(self.smooth_idf)
        if self.use_idf:
            with np.errstate(divide="ignore"):
                self.idf_ = np.log((texts + extra) / (frequency + extra)) + 1.0

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, self._checked_idf(value) if name == "idf_" else value)

    def _checked_idf(self, value: Any) -> np.ndarray:
        """The idf factors in the type of the output, one per term."""
        if not self.use_idf:
            raise ValueError("`idf_` cannot be set when `user_idf=False`.")
        terms = getattr(self, "vocabulary_", self.vocabulary)
        if terms is not None and len(value) != len(terms):
            raise ValueError(f"idf_ has {len(value)} factors; there are {len(terms)} terms.")
        return np.asarray(value, dtype=self._float())

    def _float(self) -> Any:
        """The type of the output, which must be floating-point."""
        return self.dtype if np.dtype(self.dtype).kind == "f" else np.float64

    def transform(self, raw_documents: Any) -> Any:
        """Weighted counts of the known terms, as a sparse matrix."""
        self._check_vocabulary()
        if self.use_idf:
            check_is_fitted(self, "idf_")
        return self._weigh(self._count(self._texts(raw_documents)))

    def _weigh(self, counts: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
        values = counts.data.astype(np.float64)
        if self.sublinear_tf:
            values = 1.0 + np.log(values)
        counts.data = values * self.idf_[counts.indices] if self.use_idf else values
        divide_rows(counts, self.norm)
        return counts.astype(self._float())


def _threshold(value: float, n: int) -> float:
    """A number of texts, from a number or from a share of all n."""
    return int(value) if isinstance(value, Integral) else value * n
