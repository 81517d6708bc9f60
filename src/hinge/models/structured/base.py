"""Base of the estimators for sequences and trees: inputs, labels, inference.

score(x, y) = Σ_t Σ_a x_ta U[a, y_t] + Σ_t (T + Σ_a x_ta P_a)[y_parent(t), y_t],     parent(t) = t − 1 for chains,
and for chains of order 2 also Σ_t R[y_{t−2}, y_{t−1}, y_t].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_is_fitted

from hinge._native import core
from hinge._parameters import Constraints, Estimator, above, count, one_of, shared
from hinge.models.structured.constraints import RULES, Forbidden, neighbours, triples_of
from hinge.models.structured.features import Cache, Encoded, Vocabulary
from hinge.problem.losses.base import normalise_weights

Labelling = list[Any]


@dataclass(frozen=True)
class Corpus:
    """The training data: coded sequences, labels, weights that sum to one, and the held-out sequences."""

    encoded: Encoded
    codes: np.ndarray
    weights: np.ndarray
    held: Encoded | None = None
    held_codes: np.ndarray | None = None
    patience: int = 0

    def training(self) -> Any:
        """The sequences as every compiled trainer takes them: with labels, weights and the held-out sequences."""
        held = None if self.held is None else self.held.native()
        return core.ChainTraining(self.encoded.native(), self.codes, self.weights, held, self.held_codes, self.patience)


class StructuredEstimator(Estimator):
    """Base class; a subclass has the parameters named below and a ``fit``."""

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("tol", "max_iter", "early_stopping", "validation_fraction", "n_iter_no_change"),
        "alpha": [above(0)],
        "features": [callable, None],
        "constraints": [one_of(*RULES), callable, None],
        "min_count": [count()],
        "order": [count(1, 2)],
        "pair_features": [one_of("observed"), callable, None],
        "average": ["boolean"],
        "random_state": [count(0)],
    }

    _constant_tags: ClassVar[dict[str, bool]] = {"input_tags.two_d_array": False, "target_tags.required": True}

    features: Any
    constraints: Any
    min_count: int
    order: int
    pair_features: Any
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    random_state: int

    # Fitting -------------------------------------------------------------------------------------------------------

    def _read(self, X: Any, y: Any, sample_weight: Any, parents: Any) -> Corpus:
        """Learns attributes and labels; returns the training sequences and the held-out sequences."""
        _require_pairs(X, y)
        if len(X) == 0:
            raise ValueError("X has no sequences: there is nothing to learn from.")
        if self.order == 2 and parents is not None:
            raise ValueError("order=2 is for chains: set order=1 for trees.")
        if parents is not None and (not hasattr(parents, "__len__") or len(parents) != len(X)):
            raise ValueError(f"parents must be a list of {len(X)} lists, one per sequence of X.")
        names: dict[Any, int] = {}
        try:
            for labels in y:
                for label in labels:
                    names.setdefault(label, len(names))
            self.classes_ = _as_array(sorted(names))
        except TypeError as error:
            raise ValueError(f"y must be a list of lists of labels that can be put in order: {error}.") from None
        weights = normalise_weights(sample_weight, len(X))
        if not self.early_stopping:
            return Corpus(*self._learn(X, y, parents), weights)
        train, held_out = self._hold_out(len(X))
        chosen = [None if data is None else [data[i] for i in train] for data in (X, y, parents)]
        encoded, codes = self._learn(*chosen)
        held = self._encode([X[i] for i in held_out], None if parents is None else [parents[i] for i in held_out])
        held_codes = self._code([y[i] for i in held_out], held)
        if weights[train].sum() == 0:
            raise ValueError("every sequence outside the held-out part has weight zero.")
        if held.start[-1] == 0:
            raise ValueError("the held-out sequences have no tokens; raise validation_fraction.")
        return Corpus(encoded, codes, weights[train] / weights[train].sum(), held, held_codes, self.n_iter_no_change)

    def _hold_out(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Indices of the training sequences and of the held-out sequences, both in order."""
        size = int(np.ceil(n * self.validation_fraction))
        if size >= n:
            raise ValueError(f"early_stopping needs sequences to learn from: {n} are too few to hold {size} out.")
        order = np.random.default_rng(self.random_state).permutation(n)
        return np.sort(order[size:]), np.sort(order[:size])

    def _learn(self, X: Any, y: Any, parents: Any) -> tuple[Encoded, np.ndarray]:
        self.vocabulary_, encoded = Vocabulary.learn(X, self.features, self.min_count)
        lengths = np.fromiter((len(labels) for labels in y), dtype=np.int64, count=len(y))
        wrong = np.flatnonzero(lengths != encoded.lengths)
        if len(wrong):
            i = int(wrong[0])
            raise ValueError(f"y[{i}] has {lengths[i]} labels, but X[{i}] has {encoded.lengths[i]} tokens.")
        if encoded.start[-1] == 0:
            raise ValueError("X has no tokens: there is nothing to learn from.")
        codes = {label: k for k, label in enumerate(self.classes_.tolist())}
        coded = np.fromiter((codes[label] for labels in y for label in labels), np.int32, count=int(encoded.start[-1]))
        encoded = self._attach(encoded, parents)
        self._forbidden = Forbidden.by(self.constraints, self.classes_)
        self._forbidden.check(coded, encoded.start, encoded.parent, self.classes_)
        return encoded, coded

    def _attach(self, encoded: Encoded, parents: Any) -> Encoded:
        if parents is None:
            return encoded
        if not hasattr(parents, "__len__") or not all(hasattr(p, "__len__") for p in parents):
            raise ValueError("parents must be a list of lists of whole numbers.")
        if len(parents) != len(encoded.lengths) or any(len(p) != n for p, n in zip(parents, encoded.lengths)):
            raise ValueError("parents must have one entry per token of every sequence: −1 for a root.")
        flat = np.concatenate([np.asarray(p) for p in parents if len(p)] or [np.zeros(0, dtype=np.int32)])
        if flat.dtype.kind not in "iu" or flat.ndim != 1 or np.any(np.abs(flat) > np.iinfo(np.int32).max):
            raise ValueError("parents must hold whole numbers: the position of each token's parent, −1 for a root.")
        attached = replace(encoded, parent=np.ascontiguousarray(flat, dtype=np.int32))
        attached.native()  # raises an error if the parents do not form a forest
        return attached

    def _blank(self, layout: Any = None) -> Any:
        """A native model with the constraints, and zero weights if a layout is given."""
        model = core.ChainModel(self.vocabulary_.size, len(self.classes_))
        model.forbid(self._forbidden.pairs, self._forbidden.first, self._forbidden.last)
        if layout is not None:
            model.load(layout, np.zeros(layout.size))
        return model

    def _crossed(self, encoded: Encoded, codes: np.ndarray, every: bool = False) -> tuple[Any, Any]:
        """The weights P that exist: offsets per attribute and label pairs, those observed in training or ``every`` one."""
        if self.pair_features is None:
            return None, None
        if self.pair_features == "observed":
            marked = np.ones(encoded.attributes, dtype=bool)
        elif callable(self.pair_features):
            marked = np.array([bool(self.pair_features(name)) for name in self.attributes_], dtype=bool)
        else:
            raise ValueError(
                f"pair_features={self.pair_features!r} is not known; expected None, 'observed' or a function from the "
                "name of an attribute to whether it has weights for label pairs."
            )
        k = len(self.classes_)
        if every:
            allowed = np.arange(k * k) if self._forbidden.pairs is None else np.flatnonzero(self._forbidden.pairs == 0)
            pairs = np.tile(allowed.astype(np.int32), int(marked.sum()))
            begin = np.concatenate([[0], np.cumsum(marked * len(allowed))])
        else:
            token, before = neighbours(codes, encoded.start, encoded.parent, where=True)
            observed = np.full(len(codes), -1, dtype=np.int64)
            observed[token] = before.astype(np.int64) * k + codes[token]
            cell = np.repeat(observed, np.diff(encoded.indptr))
            used = (cell >= 0) & marked[encoded.attribute]
            keys = np.unique(encoded.attribute[used].astype(np.int64) * (k * k) + cell[used])
            pairs = (keys % (k * k)).astype(np.int32)
            begin = np.searchsorted(keys, np.arange(encoded.attributes + 1, dtype=np.int64) * (k * k))
        return begin.astype(np.int64), pairs

    def _triples(self, encoded: Encoded, codes: np.ndarray, every: bool) -> np.ndarray | None:
        """The weights R that exist: (first · k + second) · k + third of the observed triples, or of ``every`` allowed one."""
        if self.order == 1:
            return None
        k = len(self.classes_)
        if not every:
            return np.unique(triples_of(codes, encoded.start, k)).astype(np.int32)
        if self._forbidden.pairs is None:
            return np.arange(k**3, dtype=np.int32)
        allowed = self._forbidden.pairs.reshape(k, k) == 0
        return np.flatnonzero(allowed[:, :, None] & allowed[None, :, :]).astype(np.int32)

    def _online_layout(self, encoded: Encoded, codes: np.ndarray) -> tuple[Any, tuple[Any, Any]]:
        """The layout of a learner with a weight for every label and label pair, and the positions of the weights P."""
        k, crossed = len(self.classes_), self._crossed(encoded, codes)
        every = np.arange(k * k, dtype=np.int32)
        triples = self._triples(encoded, codes, True)
        return core.ChainLayout(encoded.attributes, k, None, None, every, *crossed, triples), crossed

    def _adopt(
        self, unary: Any, transitions: np.ndarray, crossed: tuple[Any, Any], cross: np.ndarray, triples: np.ndarray
    ) -> None:
        k = len(self.classes_)
        self.coef_ = scipy.sparse.csr_array(unary)
        self.transitions_ = transitions
        self.trigrams_ = triples.reshape(k, k, k) if self.order == 2 else None
        self.pair_coef_ = None
        if crossed[0] is not None:
            shape = (self.vocabulary_.size, k**2)
            self.pair_coef_ = scipy.sparse.csr_array((cross, crossed[1], crossed[0]), shape=shape)
            self.pair_coef_.eliminate_zeros()
        self._cache = Cache()

    def _keep_validation(self, scores: np.ndarray) -> None:
        self.validation_scores_ = scores if self.early_stopping else None

    # Using ---------------------------------------------------------------------------------------------------------

    def _ready(self) -> Any:
        """The native model, built from the fitted attributes when it is first needed."""
        check_is_fitted(self)
        if self._cache.model is None:
            k, coef = len(self.classes_), self.coef_
            every = np.arange(k * k, dtype=np.int32)
            parts = [coef.data, self.transitions_.ravel()]
            crossed: tuple[Any, Any] = (None, None)
            triples = None
            if (cross := self.pair_coef_) is not None:
                crossed = cross.indptr.astype(np.int64), cross.indices.astype(np.int32)
                parts.append(cross.data)
            if self.trigrams_ is not None:
                triples = np.arange(k**3, dtype=np.int32)
                parts.append(self.trigrams_.ravel())
            layout = core.ChainLayout(
                coef.shape[0], k, coef.indptr.astype(np.int64), coef.indices.astype(np.int32), every, *crossed, triples
            )
            model = self._blank()
            model.load(layout, np.concatenate(parts))
            self._cache.model = model
        return self._cache.model

    def _check_loaded(self) -> None:
        """Checks a model read from a file before native code uses it."""
        k = len(self.classes_)
        weights = [self.coef_] if self.pair_coef_ is None else [self.coef_, self.pair_coef_]
        if any(getattr(matrix, "format", "") != "csr" or matrix.dtype != np.float64 for matrix in weights):
            raise ValueError("its weights must be CSR matrices of float64.")
        if self.coef_.shape != (self.vocabulary_.size, k) or self.transitions_.shape != (k, k):
            raise ValueError("its weights do not fit its attributes and labels.")
        if self.trigrams_ is not None and (self.trigrams_.shape != (k, k, k) or self.trigrams_.dtype != np.float64):
            raise ValueError("its weights of label triples do not fit its labels.")
        if self.pair_coef_ is not None and self.pair_coef_.shape != (self.vocabulary_.size, k * k):
            raise ValueError("its weights of label pairs do not fit its attributes and labels.")
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
        flat = np.asarray(self.classes_.tolist(), dtype=object)[best].tolist()  # one object per label, not per token
        bounds = encoded.start.tolist()
        return [flat[a:b] for a, b in pairwise(bounds)]

    def decision_function(self, X: Any, y: Any = None, *, parents: Any = None) -> np.ndarray:
        """The score of the labellings y, or of the best labellings if y is None."""
        model, encoded = self._ready(), self._encode(X, parents)
        if y is None:
            return model.decode(encoded.native())[1]
        return model.score(encoded.native(), self._code(y, encoded))

    def predict_top(self, X: Any, k: int = 5, *, parents: Any = None) -> list[list[tuple[Labelling, float]]]:
        """The k best labellings of every sequence or tree with their scores, best first (fewer if fewer exist)."""
        if k < 1:
            raise ValueError(f"k={k!r} must be at least 1.")
        model, encoded = self._ready(), self._encode(X, parents)
        found = model.top(encoded.native(), int(k))
        return [
            [(self.classes_[row].tolist(), float(value)) for row, value in zip(labels, values)]
            for labels, values in found
        ]

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, parents: Any = None) -> float:
        """The fraction of tokens labelled correctly."""
        _require_pairs(X, y)
        predicted = self.predict(X, parents=parents)
        for i, (p, t) in enumerate(zip(predicted, y)):
            if not hasattr(t, "__len__") or len(p) != len(t):
                raise ValueError(f"y[{i}] must have one label for each of the {len(p)} tokens of X[{i}].")
        right = [np.mean([a == b for a, b in zip(p, t)]) for p, t in zip(predicted, y) if len(t)]
        size = np.array([len(t) for t in y if len(t)], dtype=np.float64)
        if sample_weight is not None:
            size = size * np.array([w for w, t in zip(sample_weight, y) if len(t)])
        return float(np.average(right, weights=size))

    @property
    def attributes_(self) -> list[str]:
        """Names of the rows of ``coef_``."""
        return self.vocabulary_.names()


def _require_pairs(X: Any, y: Any) -> None:
    """X and y as lists of equal length."""
    if any(scipy.sparse.issparse(data) or not hasattr(data, "__len__") for data in (X, y)) or len(X) != len(y):
        raise ValueError("X and y must be lists of the same number of sequences.")


def _as_array(labels: Sequence[Any]) -> np.ndarray:
    array = np.array(labels)
    if array.ndim == 1 and array.tolist() == list(labels):
        return array
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array
