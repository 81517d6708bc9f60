"""The structured perceptron."""

from __future__ import annotations

from typing import Any, ClassVar

from hinge._native import core
from hinge._parameters import Constraints, shared
from hinge.models.structured.base import StructuredEstimator


class StructuredPerceptron(StructuredEstimator):
    """Averaged structured perceptron for chains and trees.

    Visits the sequences in turn; if the best labelling ŷ under the current weights is not y,

        w ← w + ψ(x, y) − ψ(x, ŷ),     ψ: the counts of (attribute, label) and of neighbouring label pairs.

    Parameters
    ----------
    max_iter : int
        Passes over the data; stops earlier after a pass without mistakes.
    average : bool
        Return the mean of all the weights passed through and not the last, which generalises better.
    features, constraints, min_count, order, pair_features, early_stopping, validation_fraction, n_iter_no_change
        As in :class:`ChainCRF`; an iteration is a pass.
    shuffle : bool
        Visit in a new random order in every pass.
    random_state : int
        The seed of that order, and of what is held out.

    Attributes
    ----------
    classes_, coef_, transitions_, trigrams_, pair_coef_, validation_scores_
        As in :class:`ChainCRF`.
    n_iter_ : int
        Passes made.
    mistakes_ : array
        Tokens labelled wrong in each pass.

    Examples
    --------
    >>> import hinge as hg
    >>> X = [[["the"], ["dog"]], [["a"], ["cat"]]]
    >>> model = hg.StructuredPerceptron().fit(X, [["D", "N"], ["D", "N"]])
    >>> model.predict([[["a"], ["dog"]]])
    [['D', 'N']]
    """

    _parameter_constraints: ClassVar[Constraints] = shared("shuffle")

    def __init__(
        self,
        max_iter: int = 10,
        *,
        average: bool = True,
        features: Any = None,
        constraints: Any = None,
        min_count: int = 1,
        order: int = 1,
        pair_features: Any = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        shuffle: bool = True,
        random_state: int = 0,
    ) -> None:
        self.max_iter = max_iter
        self.average = average
        self.features = features
        self.constraints = constraints
        self.min_count = min_count
        self.order = order
        self.pair_features = pair_features
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.shuffle = shuffle
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, parents: Any = None) -> StructuredPerceptron:
        """Fit to labelled sequences, or to trees if ``parents`` is given (−1 for roots)."""
        corpus = self._read(X, y, None, parents)
        layout, crossed = self._online_layout(corpus.encoded, corpus.codes)
        unary, pair, cross, triples, self.n_iter_, _, self.mistakes_, _, _, _, scores = core.chain_perceptron(
            corpus.training(), self._blank(layout), epochs=self.max_iter, average=self.average, seed=self.random_state,
            shuffle=self.shuffle,
        )  # fmt: skip
        self._keep_validation(scores)
        self._adopt(unary, pair, crossed, cross, triples)
        return self
