"""What the three learners of sequences and trees share: inputs, labels, inference.

score(x, y) = Σ_t Σ_a x_ta U[a, y_t] + Σ_t T[y_parent(t), y_t],     parent(t) = t − 1 for chains
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from hinge._native import core
from hinge.models.structured.constraints import Forbidden
from hinge.models.structured.features import Encoded, Vocabulary
from hinge.problem.losses.base import normalise_weights

Labelling = list[Any]


@dataclass
class Cache:
    """The native model: made when first needed, never saved or pickled."""

    model: Any = field(default=None, init=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {"model": None}


class StructuredEstimator(BaseEstimator):
    """Base class; a subclass has the parameters ``features``, ``constraints``, ``min_count`` and a ``fit``."""

    features: Any
    constraints: Any
    min_count: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags

    # Fitting -------------------------------------------------------------------------------------------------------

    def _read(self, X: Any, y: Any, sample_weight: Any, parents: Any) -> tuple[Encoded, np.ndarray, np.ndarray]:
        """Learns attributes and labels; returns coded tokens, coded labels and weights that sum to one."""
        if not hasattr(X, "__len__") or not hasattr(y, "__len__") or len(X) != len(y):
            raise ValueError("X and y must be lists of the same number of sequences.")
        if len(X) == 0:
            raise ValueError("X has no sequences: there is nothing to learn from.")
        if self.min_count < 1:
            raise ValueError(f"min_count={self.min_count!r} must be at least 1.")
        self.vocabulary_, encoded = Vocabulary.learn(X, self.features, self.min_count)
        lengths = np.fromiter((len(labels) for labels in y), dtype=np.int64, count=len(y))
        wrong = np.flatnonzero(lengths != encoded.lengths)
        if len(wrong):
            i = int(wrong[0])
            raise ValueError(f"y[{i}] has {lengths[i]} labels, but X[{i}] has {encoded.lengths[i]} tokens.")
        if encoded.start[-1] == 0:
            raise ValueError("X has no tokens: there is nothing to learn from.")
        names: dict[Any, int] = {}
        for labels in y:
            for label in labels:
                names.setdefault(label, len(names))
        self.classes_ = _as_array(sorted(names))
        codes = {label: k for k, label in enumerate(self.classes_.tolist())}
        coded = np.fromiter((codes[label] for labels in y for label in labels), np.int32, count=int(encoded.start[-1]))
        encoded = self._attach(encoded, parents)
        self._forbidden = Forbidden.by(self.constraints, self.classes_)
        self._forbidden.check(coded, encoded.start, encoded.parent, self.classes_)
        return encoded, coded, normalise_weights(sample_weight, len(X))

    def _attach(self, encoded: Encoded, parents: Any) -> Encoded:
        if parents is None:
            return encoded
        if len(parents) != len(encoded.lengths) or any(len(p) != n for p, n in zip(parents, encoded.lengths)):
            raise ValueError("parents must have one entry per token of every sequence: −1 for a root.")
        flat = np.concatenate([np.asarray(p, dtype=np.int32) for p in parents]) if len(parents) else np.zeros(0)
        return replace(encoded, parent=np.ascontiguousarray(flat, dtype=np.int32))

    def _blank(self) -> Any:
        """A native model that knows the constraints and no weights."""
        model = core.ChainModel(self.vocabulary_.size, len(self.classes_))
        model.forbid(self._forbidden.pairs, self._forbidden.first, self._forbidden.last)
        return model

    def _adopt(self, unary: Any, transitions: np.ndarray) -> None:
        self.coef_ = scipy.sparse.csr_array(unary)
        self.transitions_ = transitions
        self._cache = Cache()

    # Using ---------------------------------------------------------------------------------------------------------

    def _ready(self) -> Any:
        """The native model, made from the fitted attributes when first needed."""
        check_is_fitted(self)
        if self._cache.model is None:
            k, coef = len(self.classes_), self.coef_
            every = np.arange(k * k, dtype=np.int32)
            layout = core.ChainLayout(
                coef.shape[0], k, coef.indptr.astype(np.int64), coef.indices.astype(np.int32), every
            )
            model = self._blank()
            model.load(layout, np.concatenate([coef.data, self.transitions_.ravel()]))
            self._cache.model = model
        return self._cache.model

    def _check_loaded(self) -> None:
        """Called on a model read from a file, before native code sees it."""
        k = len(self.classes_)
        if self.coef_.shape != (self.vocabulary_.size, k) or self.transitions_.shape != (k, k):
            raise ValueError("its weights do not fit its attributes and labels.")
        if not self._forbidden.fits(k):
            raise ValueError("its constraints do not fit its labels.")

    def _encode(self, X: Any, parents: Any) -> Any:
        check_is_fitted(self)
        encoded = self._attach(self.vocabulary_.encode(X, self.features), parents)
        return encoded

    def _code(self, y: Any, encoded: Encoded) -> np.ndarray:
        codes = {label: k for k, label in enumerate(self.classes_.tolist())}
        try:
            flat = np.fromiter((codes[label] for labels in y for label in labels), np.int32)
        except KeyError as error:
            raise ValueError(f"y has the label {error.args[0]!r}, which was not seen in training.") from None
        if len(flat) != encoded.start[-1]:
            raise ValueError("y must have one label per token of X.")
        return flat

    def predict(self, X: Any, *, parents: Any = None) -> list[Labelling]:
        """The best labelling of every sequence (Viterbi; max-product on trees).

        Parameters
        ----------
        X : list of sequences
        parents : list of lists of int, optional
            For trees: the position of each token's parent within its sequence, −1 for a root.
        """
        model, encoded = self._ready(), self._encode(X, parents)
        best, _ = model.decode(encoded.native())
        flat = self.classes_[best].tolist()
        bounds = encoded.start.tolist()
        return [flat[a:b] for a, b in pairwise(bounds)]

    def decision_function(self, X: Any, y: Any = None, *, parents: Any = None) -> np.ndarray:
        """The score of the labellings y, of the best labellings if y is not given."""
        model, encoded = self._ready(), self._encode(X, parents)
        if y is None:
            return model.decode(encoded.native())[1]
        return model.score(encoded.native(), self._code(y, encoded))

    def predict_top(self, X: Any, k: int = 5) -> list[list[tuple[Labelling, float]]]:
        """The k best labellings of every sequence with their scores, best first (fewer where there are fewer)."""
        if k < 1:
            raise ValueError(f"k={k!r} must be at least 1.")
        model, encoded = self._ready(), self._encode(X, None)
        found = model.top(encoded.native(), int(k))
        return [
            [(self.classes_[row].tolist(), float(value)) for row, value in zip(labels, values)]
            for labels, values in found
        ]

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, parents: Any = None) -> float:
        """The share of tokens labelled correctly."""
        right = [np.mean([a == b for a, b in zip(p, t)]) for p, t in zip(self.predict(X, parents=parents), y) if len(t)]
        size = np.array([len(t) for t in y if len(t)], dtype=np.float64)
        if sample_weight is not None:
            size = size * np.array([w for w, t in zip(sample_weight, y) if len(t)])
        return float(np.average(right, weights=size))

    @property
    def attributes_(self) -> list[str]:
        """Names of the rows of ``coef_``."""
        return self.vocabulary_.names()


def _as_array(labels: Sequence[Any]) -> np.ndarray:
    array = np.array(labels)
    if array.ndim == 1 and array.tolist() == list(labels):
        return array
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array
