"""The structured perceptron."""

from __future__ import annotations

from typing import Any

from hinge._native import core
from hinge.models.structured.base import StructuredEstimator


class StructuredPerceptron(StructuredEstimator):
    """Averaged structured perceptron for chains and trees.

    Visits the sequences in turn; where the best labelling ŷ under the present weights is not y,

        w ← w + ψ(x, y) − ψ(x, ŷ),     ψ: the counts of (attribute, label) and of neighbouring label pairs.

    Parameters
    ----------
    max_iter : int
        Passes over the data; stops earlier after a pass without mistakes.
    average : bool
        Return the mean of all the weights passed through and not the last, which generalises better.
    features, constraints, min_count
        As in :class:`ChainCRF`.
    shuffle : bool
        Visit in a new random order in every pass.
    random_state : int
        The seed of that order.

    Attributes
    ----------
    classes_, coef_, transitions_
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

    def __init__(
        self,
        max_iter: int = 10,
        *,
        average: bool = True,
        features: Any = None,
        constraints: Any = None,
        min_count: int = 1,
        shuffle: bool = True,
        random_state: int = 0,
    ) -> None:
        self.max_iter = max_iter
        self.average = average
        self.features = features
        self.constraints = constraints
        self.min_count = min_count
        self.shuffle = shuffle
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, parents: Any = None) -> StructuredPerceptron:
        """Learn from labelled sequences, or from trees where ``parents`` is given (−1 for roots)."""
        encoded, codes, _ = self._read(X, y, None, parents)
        unary, pair, self.n_iter_, _, self.mistakes_, _, _ = core.chain_perceptron(
            encoded.native(), codes, self._blank(), self.max_iter, self.average, self.random_state, self.shuffle
        )
        self._adopt(unary, pair)
        return self
