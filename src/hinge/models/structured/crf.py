"""Conditional random fields over chains and trees."""

from __future__ import annotations

import time
import warnings
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from hinge._native import core
from hinge._parameters import Constraints, above, count, one_of, shared
from hinge.models.structured.base import StructuredEstimator
from hinge.models.structured.constraints import neighbours
from hinge.models.structured.features import Encoded
from hinge.problem.certificates.chain import crf_certificate

STATUS = (
    "the relative duality gap reached tol.",
    "max_iter was reached; raise it, or raise alpha or tol.",
    "no step lowers the objective any more: rounding is all that is left; raise tol.",
    "a callback stopped the fit.",
    "the held-out accuracy no longer improved.",
)
EARLY = 4


class ChainCRF(StructuredEstimator):
    """Linear-chain conditional random field.

    Minimises  −Σ cᵢ log p(yᵢ | xᵢ) + α (r ‖w‖₁ + (1 − r) ‖w‖²/2),  Σ cᵢ = 1,  where

        p(y | x) = exp(score(x, y)) / Z(x),
        score(x, y) = Σ_t Σ_a x_ta U[a, y_t] + Σ_t (T + Σ_a x_ta P_a)[y_{t−1}, y_t] + Σ_t R[y_{t−2}, y_{t−1}, y_t],

    r is ``l1_ratio`` and w holds U, T, P (see ``pair_features``) and R (see ``order``). The solver is L-BFGS (OWL-QN if
    r > 0) or stochastic gradient descent; the forward–backward recursions compute Z.

    Parameters
    ----------
    alpha : float
        The strength α of the penalty. CRFsuite's ``c2`` on n sequences is α = 2·c2/n, its ``c1`` is α = c1/n.
    l1_ratio : float
        The share r of L1 in the penalty, from 0 to 1.
    features : callable, optional
        From a sequence to its tokens, each a dictionary of attributes or a list of their names; for words
        :class:`hinge.structured.TextFeatures`. Without it, X holds such tokens itself, or one matrix (tokens × attributes) per sequence.
    constraints : {"bio", "bioes"} or callable, optional
        A function (before, after) → bool that says which label may follow which (None: begin or end of a sequence).
    markov : bool
        Whether neighbouring labels have weights T. Without, tokens are classified one by one.
    order : {1, 2}
        2: label triples have weights R too. Inference is exact, at labels³ operations a token instead of labels².
    all_pairs : bool
        Whether every attribute has a weight for every label, and not only for those it was seen with.
    min_count : int
        Attributes seen fewer times than this are dropped.
    pair_features : "observed" or callable, optional
        Gives attributes weights for label pairs, P_a[y_{t−1}, y_t]: "observed" every attribute, a function from an
        attribute's name to bool those it chooses. Weights exist for what was seen in training together.
    solver : {"lbfgs", "sgd"}
        "sgd": gradients of ``batch_size`` sequences at a time, with steps η₀ / (1 + η₀ α t); for r = 0.
    tol : float
        The relative duality gap to reach.
    max_iter : int
        The most L-BFGS iterations, or passes over the data.
    memory : int
        How many steps L-BFGS remembers.
    eta0 : float, optional
        The first step η₀ of "sgd"; by default the best found on a sample.
    batch_size : int
        Sequences in a step of "sgd".
    average : bool
        Whether "sgd" returns the mean of the weights from the second pass on.
    early_stopping : bool
        Hold out sequences and stop when the share of their tokens labelled right has not improved for
        ``n_iter_no_change`` iterations; the best weights are kept.
    validation_fraction : float
        The share of sequences held out.
    n_iter_no_change : int
        How many iterations to wait.
    random_state : int
        The seed of the order of visits and of what is held out.

    Attributes
    ----------
    classes_ : array
        The labels.
    coef_ : sparse array of shape (attributes, labels)
        The weights U; ``attributes_`` names the rows.
    transitions_ : array of shape (labels, labels)
        The weights T, from the row's label to the column's.
    trigrams_ : array of shape (labels, labels, labels) or None
        The weights R, indexed by the labels in order of time; None with ``order=1``.
    pair_coef_ : sparse array of shape (attributes, labels²) or None
        The weights P, label pairs row by row; None without ``pair_features``.
    validation_scores_ : array or None
        The held-out accuracy after each iteration, with ``early_stopping``.
    solver_ : str
        The solver that ran: with an L1 penalty "lbfgs" is its variant "owlqn".
    certificate_ : Certificate
        Objective, duality gap and how they were reached.
    n_iter_ : int
        L-BFGS iterations, or passes over the data.

    Examples
    --------
    >>> import hinge as hg
    >>> X = [["The", "dog", "barks"], ["A", "cat", "sleeps"]]
    >>> y = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"]]
    >>> tagger = hg.ChainCRF(features=hg.structured.TextFeatures()).fit(X, y)
    >>> tagger.predict([["A", "dog", "sleeps"]])
    [['DET', 'NOUN', 'VERB']]
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("l1_ratio"),
        "markov": ["boolean"],
        "all_pairs": ["boolean"],
        "solver": [one_of("lbfgs", "sgd")],
        "memory": [count()],
        "eta0": [above(0), None],
        "batch_size": [count()],
    }

    def __init__(
        self,
        alpha: float = 1e-4,
        *,
        l1_ratio: float = 0.0,
        features: Any = None,
        constraints: Any = None,
        markov: bool = True,
        order: int = 1,
        all_pairs: bool = False,
        min_count: int = 1,
        pair_features: Any = None,
        solver: str = "lbfgs",
        tol: float = 1e-3,
        max_iter: int = 1000,
        memory: int = 6,
        eta0: float | None = None,
        batch_size: int = 8,
        average: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        random_state: int = 0,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.features = features
        self.constraints = constraints
        self.markov = markov
        self.order = order
        self.all_pairs = all_pairs
        self.min_count = min_count
        self.tol = tol
        self.max_iter = max_iter
        self.memory = memory
        self.pair_features = pair_features
        self.solver = solver
        self.eta0 = eta0
        self.batch_size = batch_size
        self.average = average
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ChainCRF:
        """Fit to labelled sequences.

        Parameters
        ----------
        X : list of sequences
            Each a list of tokens (see ``features``) or a matrix with one row per token.
        y : list of lists of labels
        sample_weight : array of one weight per sequence, optional
            A weight of 2 means the same as having the sequence twice.
        """
        return self._fit(X, y, sample_weight, None)

    def _fit(self, X: Any, y: Any, sample_weight: Any, parents: Any) -> ChainCRF:
        begun = time.perf_counter()
        self._check_solver()
        if self.order == 2 and not self.markov:
            raise ValueError("markov=False classifies tokens one by one; set order=1, or markov=True.")
        corpus = self._read(X, y, sample_weight, parents)
        encoded, codes = corpus.encoded, corpus.codes
        begin, label, pair = self._places(encoded, codes)
        crossed = self._crossed(encoded, codes, self.all_pairs)
        triples = self._triples(encoded, codes, self.all_pairs)
        layout = core.ChainLayout(encoded.attributes, len(self.classes_), begin, label, pair, *crossed, triples)
        l1, l2 = self.alpha * self.l1_ratio, self.alpha * (1.0 - self.l1_ratio)
        training, blank = corpus.training(), self._blank()
        if self.solver == "sgd":
            found = core.crf_sgd(
                training, layout, blank, l2=l2, eta0=self.eta0 or 0.0, batch=self.batch_size, average=self.average,
                epochs=self.max_iter, tol=self.tol, seed=self.random_state,
            )  # fmt: skip
        else:
            found = core.crf_fit(
                training, layout, blank, l1=l1, l2=l2, start=np.zeros(layout.size), memory=self.memory,
                max_iter=self.max_iter, tol=self.tol,
            )  # fmt: skip
        w, self.n_iter_, status, scores = found
        self._keep_validation(scores)
        self.certificate_ = crf_certificate(
            (encoded.native(), codes, corpus.weights, layout, blank), w, l1, l2, tol=self.tol, solver=self.solver if l1 == 0 else "owlqn",
            iterations=self.n_iter_, seconds=time.perf_counter() - begun, status=STATUS[status],
        )  # fmt: skip
        self._take(w, begin, label, pair, encoded.attributes, crossed, triples)  # removes zeros from w in place
        if not self.certificate_.converged and status != EARLY:
            warnings.warn(self.certificate_.explain(), ConvergenceWarning, stacklevel=3)
        return self

    @property
    def solver_(self) -> str:
        """The solver that ran."""
        check_is_fitted(self)
        return self.certificate_.solver

    def _check_solver(self) -> None:
        if self.solver == "sgd" and self.l1_ratio > 0:
            raise ValueError("solver='sgd' knows no L1 penalty; set l1_ratio=0 or solver='lbfgs'.")

    def _places(self, encoded: Encoded, codes: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None, np.ndarray]:
        """The weights that exist: offsets per attribute, their labels (None: all), and label pairs."""
        k = len(self.classes_)
        pairs = np.arange(k * k, dtype=np.int32)
        if not self.markov:
            pairs = pairs[:0]
        elif not self.all_pairs:
            before, after = neighbours(codes, encoded.start, encoded.parent)
            pairs = np.unique(before.astype(np.int32) * k + after)
        elif self._forbidden.pairs is not None:
            pairs = pairs[self._forbidden.pairs == 0]
        if self.all_pairs:
            return None, None, pairs
        observed = np.zeros(encoded.attributes * k, dtype=bool)
        for first in range(0, len(codes), 10_000):  # in blocks, to save memory
            ends = encoded.indptr[first : first + 10_001]
            used = encoded.attribute[ends[0] : ends[-1]].astype(np.int64)
            observed[used * k + np.repeat(codes[first : first + 10_000], np.diff(ends))] = True
        keys = np.flatnonzero(observed)
        begin = np.searchsorted(keys, np.arange(encoded.attributes + 1, dtype=np.int64) * k)
        return begin.astype(np.int64), (keys % k).astype(np.int32), pairs

    def _take(
        self, w: np.ndarray, begin: Any, label: Any, pair: np.ndarray, attributes: int, crossed: tuple[Any, Any],
        triple: np.ndarray | None,
    ) -> None:  # fmt: skip
        k = len(self.classes_)
        trigrams = np.zeros(k**3 if self.order == 2 else 0)
        if triple is not None:
            trigrams[triple] = w[len(w) - len(triple) :]
            w = w[: len(w) - len(triple)]
        unary = len(w) - len(pair) - (0 if crossed[1] is None else len(crossed[1]))
        if begin is None:
            coef = scipy.sparse.csr_array(w[:unary].reshape(attributes, k))
        else:
            coef = scipy.sparse.csr_array((w[:unary], label, begin), shape=(attributes, k))
            coef.eliminate_zeros()
        transitions = np.zeros(k * k)
        transitions[pair] = w[unary : unary + len(pair)]
        self._adopt(coef, transitions.reshape(k, k), crossed, w[unary + len(pair) :], trigrams)

    def predict_marginals(self, X: Any, *, parents: Any = None) -> list[np.ndarray]:
        """p(y_t | x) for every token: one array (tokens × labels) per sequence, columns as in ``classes_``."""
        model, encoded = self._ready(), self._encode(X, parents)
        return encoded.split(model.marginals(encoded.native())[0])

    def predict_confidence(self, X: Any, *, parents: Any = None) -> list[np.ndarray]:
        """The marginal probability of the predicted label of each token."""
        model, encoded = self._ready(), self._encode(X, parents)
        native = encoded.native()
        marginals, best = model.marginals(native)[0], model.decode(native)[0]
        return encoded.split(marginals[np.arange(len(best)), best])

    def log_likelihood(self, X: Any, y: Any, *, parents: Any = None) -> np.ndarray:
        """log p(yᵢ | xᵢ) of every sequence."""
        model, encoded = self._ready(), self._encode(X, parents)
        native = encoded.native()
        return model.score(native, self._code(y, encoded)) - model.log_partition(native)


class TreeCRF(ChainCRF):
    """Conditional random field over trees of labels.

    As :class:`ChainCRF`, with  score(x, y) = Σ_t Σ_a x_ta U[a, y_t] + Σ_{t not a root} T[y_parent(t), y_t];  Z and the
    marginals by belief propagation, the best labelling by max-product. Attributes are those of
    :class:`ChainCRF`.

    Parameters
    ----------
    alpha, l1_ratio, features, constraints, markov, order, all_pairs, min_count, pair_features, solver, tol, max_iter,
    memory, eta0, batch_size, average, early_stopping, validation_fraction, n_iter_no_change, random_state
        As in :class:`ChainCRF`; the label before is that of the parent.

    Examples
    --------
    >>> import hinge as hg
    >>> X = [[["root"], ["leaf"], ["leaf"]]]
    >>> model = hg.TreeCRF().fit(X, [["A", "B", "B"]], parents=[[-1, 0, 0]])
    >>> model.predict(X, parents=[[-1, 0, 0]])
    [['A', 'B', 'B']]
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, parents: Any = None) -> TreeCRF:
        """Fit to labelled trees; ``parents`` holds the position of every token's parent, −1 for roots."""
        if parents is None:
            raise ValueError("parents is missing: TreeCRF needs the position of every token's parent (−1 for roots).")
        self._fit(X, y, sample_weight, parents)
        return self
