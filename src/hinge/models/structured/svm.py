"""The structured support vector machine."""

from __future__ import annotations

import time
import warnings
from typing import Any, ClassVar

from sklearn.exceptions import ConvergenceWarning

from hinge._native import core
from hinge._parameters import Constraints, numbers
from hinge.models.structured.base import StructuredEstimator
from hinge.problem.certificates.chain import structured_svm_certificate
from hinge.problem.losses.multiclass import cost_matrix

EARLY = "the held-out accuracy no longer improved."


class StructuredSVM(StructuredEstimator):
    """Structured support vector machine for chains and trees.

    Minimises  Σ cᵢ max_y [ Δ(yᵢ, y) − score(xᵢ, yᵢ) + score(xᵢ, y) ] + (α/2) ‖w‖²,  Σ cᵢ = 1,  with
    Δ(y, y') = Σ_t cost[y_t, y'_t], by block-coordinate Frank–Wolfe; the score is that of :class:`ChainCRF`.

    Parameters
    ----------
    alpha : float
        The strength α of the penalty.
    cost : array of shape (labels, labels), optional
        cost[a, b]: the price of predicting b where a is right, labels in sorted order; 1 off the diagonal by default.
    features, constraints, min_count, order, pair_features, early_stopping, validation_fraction, n_iter_no_change
        As in :class:`ChainCRF`; an iteration is a pass.
    tol : float
        The relative duality gap to reach.
    max_iter : int
        The most passes over the data.
    random_state : int
        The seed of the order of visits, and of what is held out.

    Attributes
    ----------
    classes_, coef_, transitions_, trigrams_, pair_coef_, validation_scores_
        As in :class:`ChainCRF`.
    certificate_ : Certificate
        The objective and its true duality gap.
    n_iter_ : int
        Passes made.

    Examples
    --------
    >>> import hinge as hg
    >>> X = [[["the"], ["dog"]], [["a"], ["cat"]]]
    >>> model = hg.StructuredSVM(alpha=0.1).fit(X, [["D", "N"], ["D", "N"]])
    >>> model.predict([[["a"], ["dog"]]])
    [['D', 'N']]
    """

    _parameter_constraints: ClassVar[Constraints] = {"cost": [numbers(0), None]}

    def __init__(
        self,
        alpha: float = 1e-3,
        *,
        cost: Any = None,
        features: Any = None,
        constraints: Any = None,
        min_count: int = 1,
        order: int = 1,
        pair_features: Any = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        tol: float = 1e-2,
        max_iter: int = 200,
        random_state: int = 0,
    ) -> None:
        self.alpha = alpha
        self.cost = cost
        self.features = features
        self.constraints = constraints
        self.min_count = min_count
        self.order = order
        self.pair_features = pair_features
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, parents: Any = None) -> StructuredSVM:
        """Fit to labelled sequences, or to trees if ``parents`` is given (−1 for roots)."""
        begun = time.perf_counter()
        corpus = self._read(X, y, sample_weight, parents)
        layout, crossed = self._online_layout(corpus.encoded, corpus.codes)
        unary, pair, cross, triples, self.n_iter_, done, _, primal, gap, early, scores = core.chain_svm(
            corpus.training(), self._blank(layout), cost_matrix(self.cost, len(self.classes_)), l2=self.alpha,
            epochs=self.max_iter, tol=self.tol, seed=self.random_state,
        )  # fmt: skip
        self._keep_validation(scores)
        self._adopt(unary, pair, crossed, cross, triples)
        self.certificate_ = structured_svm_certificate(
            primal, gap, self.alpha, tol=self.tol, solver="block-coordinate Frank–Wolfe",
            iterations=self.n_iter_, seconds=time.perf_counter() - begun,
            status=EARLY if early else "" if done else "max_iter was reached; raise it, or raise alpha or tol.",
        )  # fmt: skip
        if not done and not early:
            warnings.warn(self.certificate_.explain(), ConvergenceWarning, stacklevel=2)
        return self
