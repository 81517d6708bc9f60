"""Raw tables → R^d: one encoder per column."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn import get_config
from sklearn.base import TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from hinge._parameters import DTYPE, Constraints, Estimator, count, numbers, one_of
from hinge.features import encoders
from hinge.features.table_inputs import align_table, check_table, given_kinds, names_of
from hinge.features.target_means import LevelMeans, learn_means, means_of_other_rows
from hinge.features.text_encoders import CountedTexts, Several, TextPlan
from hinge.tables.columns import MISSING_TEXTS, Column, read_columns
from hinge.tables.kinds import DROPPED, infer_kind
from hinge.tables.number_formats import SAMPLE, decimal_mark

SPARSE_BELOW = 0.25  # share of non-zeros below which a sparse result is smaller and quicker
SPARSE_FROM = 40  # outputs from which the result may be sparse


class TablePrep(TransformerMixin, Estimator):
    """Encodes a raw table as numbers: z = (φ₁(x₁), …, φ_p(x_p)), with one map φⱼ per column, fitted to training rows.

    The kind of a column is inferred from its values (see ``kinds_``) by the rules of :func:`hinge.profile`, or given in
    ``kinds``:

    - *number*: (x − mean) / deviation, also of texts such as "1.234,50 €"; gaps are filled with the median and marked by a second output. A column that is
      more than three quarters zeros is divided by its deviation only, so that zeros stay zeros.
    - *boolean*: 0 or 1.
    - *category*: one output per level; rare levels share "(other)", gaps have "(missing)". A level that is not
      in the training rows counts as "(other)" if there is one, and gives zeros if not.
    - *date*: days, and the cycles of year, week and day that vary in training.
    - *text*: tf-idf of the words found in most rows, or of runs of words and characters (``word_ngrams``, ``char_ngrams``).
    - *id*, *constant*: dropped.

    Tables come from pandas, polars, Arrow, NumPy (also arrays of objects) or SciPy; the same content gives the same
    numbers. Texts are trimmed and compared in composed Unicode.

    Parameters
    ----------
    kinds : dict, optional
        The kinds of columns, by name (or position), that override inference: "number", "boolean", "category", "date",
        "text" or "drop".
    encode : {"onehot", "codes"}
        "codes" keeps one output per category: its code, NaN for gaps and unseen levels; pass
        ``categorical_features=prep.categorical_`` to tree learners. Dates then give year, month, day, weekday and hour.
    missing : {"indicator", "impute", "keep"}
        Fill gaps in numbers and mark them; only fill them; or leave NaN, for learners that accept it.
    scale : bool
        Standardise numbers.
    max_categories : int
        The number of levels, the most frequent ones, with an output of their own in each column.
    min_frequency : int
        Levels of fewer rows are pooled.
    target_means : int, optional
        With ``encode="codes"``, categories of more levels than this get the mean target of the level as further outputs (the
        share of every class, for labels; floating-point y are numbers). ``fit_transform`` takes the means of a row from other
        rows only (five folds), so that they do not give its own target away.
    text : {"tfidf", "counts", "presence", "drop"}
        The encoding of free text.
    max_words : int
        Terms with an output of their own, per column of text.
    word_ngrams : (int, int)
        The shortest and the longest run of words that is a term.
    char_ngrams : (int, int), optional
        Runs of characters within words as further terms, as many as ``max_words`` again.
    min_df : int
        Terms in fewer rows are left out.
    sublinear_tf : bool
        1 + ln(count) in place of counts in tf-idf.
    word_choice : {"frequent", "target"}
        Which terms are kept if there are more than ``max_words``: those found in most rows, or those on which y depends most
        (χ² for labels, correlation for numbers of floating-point type).
    missing_values : collection of str
        Texts that mean "missing".
    sparse : bool or "auto"
        Return a sparse matrix (CSR); by default if there are many outputs and at most a quarter is not zero.
    dtype : type
        The type of the result: float64 or float32.

    Attributes
    ----------
    kinds_ : dict
        The kind of every column, by name.
    schema_ : dict
        The storage of every column in training: "numbers", "texts" or "times".
    columns_ : dict
        The outputs of every column, by name: positions in the result, none for dropped columns.
    origin_ : list of str
        The column every output came from.
    categorical_ : array of bool
        True for outputs that are codes of categories.
    encoders_ : list
        The encoder of every column: records of :mod:`hinge.features.encoders`, ``text_encoders`` and ``target_means``.
    sparse_ : bool
        True if results are sparse.
    n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> import hinge as hg, pandas as pd
    >>> table = pd.DataFrame({"age": [31, None, 45, 52], "city": ["Rome", "Oslo", "Rome", None]})
    >>> prep = hg.TablePrep(scale=False).fit(table)
    >>> print(*prep.get_feature_names_out(), sep=" | ")
    age | age=missing | city=Oslo | city=Rome | city=(missing)
    >>> prep.transform(pd.DataFrame({"age": [40], "city": ["Paris"]})).tolist()
    [[40.0, 0.0, 0.0, 0.0, 0.0]]
    >>> print(prep.describe())
    column  kind      outputs  missing  what is done
    age     number    2        1        gaps filled with 45 and marked
    city    category  3        1        one output for each of 2 levels; levels not seen in training count as zeros
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "kinds": [dict, None],
        "encode": [one_of("onehot", "codes")],
        "missing": [one_of("indicator", "impute", "keep")],
        "scale": ["boolean"],
        "max_categories": [count()],
        "min_frequency": [count()],
        "target_means": [count(), None],
        "text": [one_of("tfidf", "counts", "presence", "drop")],
        "max_words": [count()],
        "word_ngrams": [numbers(1, size=2)],
        "char_ngrams": [numbers(1, size=2), None],
        "min_df": [count()],
        "sublinear_tf": ["boolean"],
        "word_choice": [one_of("frequent", "target")],
        "missing_values": ["array-like", set, frozenset],
        "sparse": ["boolean", one_of("auto")],
        "dtype": DTYPE,
    }

    def __init__(
        self,
        kinds: dict[Any, str] | None = None,
        *,
        encode: str = "onehot",
        missing: str = "indicator",
        scale: bool = True,
        max_categories: int = 50,
        min_frequency: int = 1,
        target_means: int | None = None,
        text: str = "tfidf",
        max_words: int = 1000,
        word_ngrams: tuple[int, int] = (1, 1),
        char_ngrams: tuple[int, int] | None = None,
        min_df: int = 1,
        sublinear_tf: bool = False,
        word_choice: str = "frequent",
        missing_values: Any = MISSING_TEXTS,
        sparse: Any = "auto",
        dtype: Any = np.float64,
    ) -> None:
        self.kinds = kinds
        self.encode = encode
        self.missing = missing
        self.scale = scale
        self.max_categories = max_categories
        self.min_frequency = min_frequency
        self.target_means = target_means
        self.text = text
        self.max_words = max_words
        self.word_ngrams = word_ngrams
        self.char_ngrams = char_ngrams
        self.min_df = min_df
        self.sublinear_tf = sublinear_tf
        self.word_choice = word_choice
        self.missing_values = missing_values
        self.sparse = sparse
        self.dtype = dtype

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def fit(self, X: Any, y: Any = None) -> TablePrep:
        """Learn the encoder of every column from training rows; y is used with ``word_choice="target"`` and ``target_means``."""
        return self.fit_counted(X, y, {})

    def fit_counted(self, X: Any, y: Any, counted: dict[Any, CountedTexts]) -> TablePrep:
        """As :meth:`fit`; the terms of texts are taken from ``counted``, by column and :meth:`text_plans`, where it has them."""
        return self.learn_table(check_table(self, X, reset=True), y, counted)

    def learn_table(self, X: Any, y: Any, counted: dict[Any, CountedTexts]) -> TablePrep:
        """As :meth:`fit_counted`, from a checked table, whose number and names of columns have been set."""
        given = given_kinds(self.kinds, names_of(self))
        sample = () if scipy.sparse.issparse(X) else read_columns(X[:SAMPLE], self.missing_values)
        decimal = decimal_mark([column.levels for column in sample])
        self.kinds_, self.schema_, self.encoders_, self.missing_ = {}, {}, [], {}
        for column in self._columns(X):
            kind = given.get(column.name) or infer_kind(column)
            self.kinds_[column.name] = kind
            self.schema_[column.name] = column.storage
            self.missing_[column.name] = int(column.missing().sum())
            self.encoders_.append(self._learn(column, kind, decimal, y, counted))
        self._index()
        if not self.origin_:
            n = len(column)
            raise ValueError(
                f"X has no column to learn from: in its {n} sample{'s' * (n != 1)} every column is constant, an id or "
                "dropped. Pass kinds={'name': 'number'} to keep one."
            )
        self.sparse_ = self.sparse is True or (self.sparse == "auto" and self._pays(X))
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """The outputs of the training rows; target means of a row are computed from other folds."""
        return self.fit_transform_counted(X, y, {})

    def fit_transform_counted(self, X: Any, y: Any, counted: dict[Any, CountedTexts]) -> Any:
        """As :meth:`fit_transform`, with texts that were counted before."""
        outputs = self.fit_counted(X, y, counted).transform_counted(X, counted)
        for column, encoder in zip(self._columns(check_table(self, X, reset=False)), self.encoders_, strict=True):
            if isinstance(encoder, LevelMeans):
                outputs[:, self.columns_[column.name][1:]] = means_of_other_rows(column, encoder, np.asarray(y))
        return outputs

    def transform(self, X: Any) -> Any:
        """The outputs for any rows with the columns of training."""
        return self.transform_counted(X, {})

    def transform_counted(self, X: Any, counted: dict[Any, CountedTexts]) -> Any:
        """As :meth:`transform`, with texts that were counted before."""
        check_is_fitted(self)
        X = check_table(self, X, reset=False)
        sparse = self.sparse_ and not self._frames_wanted()
        blocks, n = [], 0
        for column, encoder in zip(self._columns(X), self.encoders_, strict=True):
            n = len(column)
            if not isinstance(encoder, encoders.Dropped):
                ready = self._ready(column.name, counted) if isinstance(encoder, Several) else ()
                block = encoder.encode(column, ready) if ready else encoder.encode(column)
                blocks.append(scipy.sparse.csr_array(block) if sparse else block)
        if sparse:
            return scipy.sparse.hstack(blocks, format="csr", dtype=self.dtype)
        out = np.empty((n, len(self.origin_)), dtype=self.dtype)
        end = 0
        for block in blocks:
            begin, end = end, end + block.shape[1]
            out[:, begin:end] = block.toarray() if scipy.sparse.issparse(block) else block
        return out

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the outputs: "age", "city=Rome", "when.month", "comment:word"."""
        check_is_fitted(self)
        given = [str(name) for name in _check_feature_names_in(self, input_features)]
        names = [name + label for name, encoder in zip(given, self.encoders_) for label in encoder.labels]
        return np.array(_distinct(names), dtype=object)

    def describe(self) -> TableDescription:
        """The encoding of every column, as a table to print or to iterate over by rows."""
        check_is_fitted(self)
        rows = [
            (name, kind, len(self.columns_[name]), self.missing_[name], encoder.describe(self.missing_[name]))
            for (name, kind), encoder in zip(self.kinds_.items(), self.encoders_)
        ]
        return TableDescription(tuple(rows))

    def align(self, X: Any) -> Any:
        """The columns of training, by name and in their order; other columns of X are left out.

        A column of training that X does not have is an error, which names the nearest name that X has.
        """
        check_is_fitted(self)
        return align_table(self, X)

    def _columns(self, X: Any) -> Iterator[Column]:
        """The columns of X under their names in training."""
        for column, name in zip(read_columns(X, self.missing_values), names_of(self), strict=True):
            yield replace(column, name=name)

    def text_plans(self) -> list[TextPlan]:
        """The terms of a column of text that get outputs."""
        words = TextPlan(
            self.text, "word", (self.word_ngrams[0], self.word_ngrams[1]), self.max_words, self.min_df, self.sublinear_tf,
            self.word_choice == "target",
        )  # fmt: skip
        if self.char_ngrams is None:
            return [words]
        return [words, replace(words, analyzer="char_wb", ngrams=(self.char_ngrams[0], self.char_ngrams[1]))]

    def _ready(self, name: str, counted: dict[Any, CountedTexts]) -> list[CountedTexts]:
        """The term counts of a column, if they were computed before."""
        keys = [(name, plan.analyzer, plan.ngrams) for plan in self.text_plans()]
        return [counted[key] for key in keys] if all(key in counted for key in keys) else []

    def _learn(
        self, column: Column, kind: str, decimal: str, y: Any, counted: dict[Any, CountedTexts]
    ) -> Any:  # fmt: skip
        if kind in DROPPED:
            reason = {"id": "dropped: an identifier", "constant": "dropped: the same value in every row"}
            return encoders.Dropped(reason.get(kind, "dropped by kinds"))
        if kind == "number":
            return encoders.learn_number(column, self.scale, self.missing, decimal)
        if kind == "boolean":
            return encoders.learn_truth(column, self.missing)
        if kind == "date":
            return encoders.learn_dates(column, self.scale, self.missing, self.encode == "codes")
        if kind == "text":
            if self.text == "drop":
                return encoders.Dropped("dropped: free text")
            plans = self.text_plans()
            ready: list[Any] = self._ready(column.name, counted) or [None] * len(plans)
            targets = None if y is None else np.asarray(y)
            return Several(tuple(p.learn(column, targets, own) for p, own in zip(plans, ready)))
        levels = encoders.learn_levels(column, self.encode == "codes", self.max_categories, self.min_frequency)
        many = self.target_means is not None and len(levels.levels) + levels.pooled > self.target_means
        if many and self.encode == "codes" and y is not None:
            return learn_means(column, levels, np.asarray(y))
        return levels

    def _index(self) -> None:
        """Map outputs to columns and columns to outputs."""
        self.columns_: dict[str, list[int]] = {}
        self.origin_: list[str] = []
        codes: list[bool] = []
        for name, encoder in zip(self.kinds_, self.encoders_):
            begin = len(self.origin_)
            self.origin_ += [name] * len(encoder.labels)
            if isinstance(encoder, LevelMeans):
                codes += [True] + [False] * len(encoder.names)
            else:
                codes += [isinstance(encoder, encoders.Levels) and encoder.codes] * len(encoder.labels)
            self.columns_[name] = list(range(begin, len(self.origin_)))
        self.categorical_ = np.array(codes, dtype=bool)
        self._n_features_out = len(self.origin_)

    def _pays(self, X: Any) -> bool:
        """True if few enough outputs of a row are expected to be non-zero."""
        if len(self.origin_) < SPARSE_FROM:
            return False
        filled = 0.0
        for encoder in self.encoders_:
            if isinstance(encoder, encoders.Levels):
                filled += 1
            elif isinstance(encoder, Several):
                filled += min(len(encoder.labels), 30)
            else:
                filled += len(encoder.labels)
        return filled <= SPARSE_BELOW * len(self.origin_) or scipy.sparse.issparse(X)

    def _frames_wanted(self) -> bool:
        """True if scikit-learn is configured to wrap results in data frames, which are dense."""
        chosen = getattr(self, "_sklearn_output_config", {}).get("transform", get_config()["transform_output"])
        return chosen not in ("default", None)


@dataclass(frozen=True)
class TableDescription:
    """The encodings of :class:`TablePrep`: rows of (column, kind, outputs, missing, encoding).

    Attributes
    ----------
    rows : tuple of (str, str, int, int, str)
        For each column of the table: its name, its kind, how many columns it becomes, how many values are missing, and
        how it is encoded.
    """

    rows: tuple[tuple[str, str, int, int, str], ...]

    HEAD = ("column", "kind", "outputs", "missing", "what is done")

    def __iter__(self) -> Any:
        return iter(self.rows)

    def __str__(self) -> str:
        cells = [self.HEAD, *([str(cell) for cell in row] for row in self.rows)]
        widths = [max(len(row[j]) for row in cells) for j in range(4)]
        return "\n".join("  ".join([*(row[j].ljust(widths[j]) for j in range(4)), row[4]]) for row in cells)


def _distinct(names: list[str]) -> list[str]:
    """The names, with a number added to those that occurred before."""
    unique_names: dict[str, None] = {}
    for name in names:
        unique, k = name, 2
        while unique in unique_names:
            unique, k = f"{name} ({k})", k + 1
        unique_names[unique] = None
    return list(unique_names)
