"""Error-correcting output codes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from hinge._parameters import Constraints, between, count, has, numbers, one_of, shared
from hinge.models.multiclass.base import one_score_for_two
from hinge.models.multiclass.reductions import Reduction


def row_separation(code: np.ndarray) -> int:
    """The minimum Hamming distance h between two rows: such a code corrects ⌊(h − 1)/2⌋ wrong bits."""
    signs = 2 * np.asarray(code, dtype=np.int64) - 1
    distance = (signs.shape[1] - signs @ signs.T) // 2
    np.fill_diagonal(distance, signs.shape[1] + 1)
    return int(distance.min())


def design_code(k: int, bits: int | None = None, random_state: Any = 0) -> np.ndarray:
    """A k × bits table of 0 and 1 with a large distance between rows and no two equivalent columns.

    Up to 7 classes the default is the exhaustive code (all 2^(k−1) − 1 ways to split the classes); otherwise
    ⌈10 log₂ k⌉ bits. A shorter code is the best of many random ones, improved by exchanging columns.

    Parameters
    ----------
    k : int
        How many classes, at least 2.
    bits : int, optional
        How many problems of two classes; see above for the default.
    random_state : int or RandomState
        Seed of the random codes and exchanges.
    """
    most = 2 ** (k - 1) - 1 if k <= 20 else None
    if bits is None:
        bits = most if most is not None and k <= 7 else int(np.ceil(10 * np.log2(k)))
    if bits < 1 or 2.0 ** min(bits, 60) < k:
        raise ValueError(f"bits={bits} cannot tell {k} classes apart: at least {int(np.ceil(np.log2(k)))} are needed.")
    if most is not None and bits > most:
        raise ValueError(f"bits={bits} is more than the {most} different ways to split {k} classes.")
    if most is not None and most <= 4096:
        splits = (np.arange(1, most + 1)[:, None] >> np.arange(k - 1)) & 1
        columns = np.column_stack([np.zeros(most, dtype=np.int64), splits])  # class 0 is always on side 0
        return columns.T if bits == most else _search(columns, bits, random_state)
    rng = check_random_state(random_state)
    columns = np.unique(rng.randint(2, size=(20 * bits, k)), axis=0)
    columns[columns[:, 0] == 1] ^= 1
    columns = np.unique(columns, axis=0)
    columns = columns[columns.any(axis=1)]
    return _search(columns, bits, random_state)


def _search(columns: np.ndarray, bits: int, random_state: Any) -> np.ndarray:
    rng = check_random_state(random_state)
    best: tuple[tuple[int, float], np.ndarray] | None = None

    def quality(chosen: np.ndarray) -> tuple[int, float]:
        signs = 2 * columns[chosen].T - 1
        distance = (len(chosen) - signs @ signs.T) / 2
        upper = distance[np.triu_indices(len(distance), 1)]
        return int(upper.min()), -float(np.sum(1.0 / (1.0 + upper) ** 4))  # second criterion: few close pairs

    for _ in range(30):
        chosen = rng.permutation(len(columns))[:bits]
        value = quality(chosen)
        for _ in range(4 * bits if len(columns) > bits else 0):
            trial = chosen.copy()
            unused = np.setdiff1d(np.arange(len(columns)), chosen)
            trial[rng.randint(bits)] = unused[rng.randint(len(unused))]
            if (better := quality(trial)) > value:
                chosen, value = trial, better
        if best is None or value > best[0]:
            best = (value, chosen)
    assert best is not None
    return columns[best[1]].T


class OutputCodeClassifier(Reduction):
    """Error-correcting output codes: one binary learner per bit; predicts the class with the nearest code.

    Parameters
    ----------
    estimator : classifier
        The binary learner.
    code : array of shape (classes, bits) of 0 and 1, optional
        The code, rows in the order of the sorted labels; designed for row separation by default
        (see :func:`design_code`).
    bits : int, optional
        The length of a designed code.
    code_size : float, optional
        The length of a designed code in bits per class, as scikit-learn counts it: int(classes · code_size) bits, as
        far as there are that many different ways to split the classes. Give this or ``bits``.
    decoding : {"hamming", "score"}
        Distance to the code in bits, or in the learners' scores: Σ_b −sign_b · tanh(h_b(x)).
    n_jobs : int, optional
        How many learners to fit at once (threads).
    random_state : int
        The seed of the design.

    Attributes
    ----------
    classes_ : array
        The labels.
    code_, code_book_ : array of shape (classes, bits)
        The code in use (the second name is scikit-learn's).
    separation_ : int
        The least Hamming distance h of two rows: ⌊(h − 1)/2⌋ wrong bits are corrected.
    estimators_ : list
        The fitted learners.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.array([[0.0, 0], [0, 1], [5, 0], [5, 1], [0, 9], [1, 9]])
    >>> hg.OutputCodeClassifier(LogisticRegression()).fit(X, ["a", "a", "b", "b", "c", "c"]).predict([[4, 0]])
    array(['b'], dtype='<U1')
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("n_jobs", "random_state"),
        "estimator": [has("fit", "predict")],
        "code": [numbers(0), None],
        "bits": [count(), None],
        "code_size": [between(0, 1e9, "right"), None],
        "decoding": [one_of("hamming", "score")],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        code: Any = None,
        bits: int | None = None,
        code_size: float | None = None,
        decoding: str = "hamming",
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.estimator = estimator
        self.code = code
        self.bits = bits
        self.code_size = code_size
        self.decoding = decoding
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> OutputCodeClassifier:
        """Fit one learner per bit; ``fit_params`` are passed to the learners if metadata routing is enabled."""
        X, codes, arguments = self._check(X, y, sample_weight, fit_params)
        self.code_ = self._table(len(self.classes_))
        self.separation_ = row_separation(self.code_)
        self._learn([(X, column[codes], arguments) for column in self.code_.T])
        return self

    def _table(self, k: int) -> np.ndarray:
        if self.code is None:
            return np.ascontiguousarray(design_code(k, self._length(k), self.random_state))
        table = np.asarray(self.code)
        if table.ndim != 2 or table.shape[0] != k or not np.all((table == 0) | (table == 1)):
            raise ValueError(f"code must be an array of 0 and 1 with {k} rows, one per class; got {table.shape}.")
        if len(np.unique(table, axis=0)) < k:
            raise ValueError("code has two equal rows: their classes could not be told apart.")
        return table.astype(np.intp)

    def _length(self, k: int) -> int | None:
        if self.code_size is None:
            return self.bits
        if self.bits is not None:
            raise ValueError(f"bits={self.bits!r} and code_size={self.code_size!r} both say how long; give one.")
        length = max(int(k * self.code_size), 1)
        return length if k > 20 else min(length, 2 ** (k - 1) - 1)

    @property
    def code_book_(self) -> np.ndarray:
        return self.code_

    def distances(self, X: Any) -> np.ndarray:
        """The distance of each example's bits to the code of every class."""
        return decode(self._binary_scores(X), self.code_, self.decoding)

    def decision_function(self, X: Any) -> np.ndarray:
        """The negative distance to the code of each class; for two classes the difference, positive for the second."""
        return one_score_for_two(-self.distances(X))


def decode(scores: np.ndarray, code: np.ndarray, decoding: str) -> np.ndarray:
    """Distances (examples × classes) of scores (examples × bits) to the rows of a code."""
    signs = 2.0 * code - 1.0
    if decoding == "hamming":
        return (code.shape[1] - np.where(scores > 0, 1.0, -1.0) @ signs.T) / 2.0
    return -(np.tanh(scores) @ signs.T)
