"""The structured support vector machine."""

from __future__ import annotations

import time
import warnings
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from hinge._native import core
from hinge.models.structured.base import StructuredEstimator
from hinge.problem.certificate import Certificate
from hinge.problem.losses.multiclass import cost_matrix


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
    features, constraints, min_count
        As in :class:`ChainCRF`.
    tol : float
        The relative duality gap to reach.
    max_iter : int
        The most passes over the data.
    random_state : int
        The seed of the order of visits.

    Attributes
    ----------
    classes_, coef_, transitions_
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

    def __init__(
        self,
        alpha: float = 1e-3,
        *,
        cost: Any = None,
        features: Any = None,
        constraints: Any = None,
        min_count: int = 1,
        tol: float = 1e-2,
        max_iter: int = 200,
        random_state: int = 0,
    ) -> None:
        self.alpha = alpha
        self.cost = cost
        self.features = features
        self.constraints = constraints
        self.min_count = min_count
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, parents: Any = None) -> StructuredSVM:
        """Learn from labelled sequences, or from trees where ``parents`` is given (−1 for roots)."""
        begun = time.perf_counter()
        if not self.alpha > 0:
            raise ValueError(f"alpha={self.alpha!r} must be positive.")
        encoded, codes, weights = self._read(X, y, sample_weight, parents)
        unary, pair, self.n_iter_, done, _, primal, gap = core.chain_svm(
            encoded.native(), codes, weights, self._blank(), cost_matrix(self.cost, len(self.classes_)), self.alpha,
            self.max_iter, self.tol, self.random_state,
        )  # fmt: skip
        self._adopt(unary, pair)
        self.certificate_ = Certificate.of_gap(
            primal, gap, tol=self.tol, convexity=self.alpha, solver="block-coordinate Frank–Wolfe",
            iterations=self.n_iter_, seconds=time.perf_counter() - begun,
            status="" if done else "max_iter was reached; raise it, or raise alpha or tol.",
        )  # fmt: skip
        if not done:
            warnings.warn(self.certificate_.explain(), ConvergenceWarning, stacklevel=2)
        return self
