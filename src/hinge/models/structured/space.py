"""Sequences and trees of labels as hypothesis spaces of the Learner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hinge.models.learner import Fit, Task, minimise
from hinge.models.structured.base import StructuredEstimator
from hinge.models.structured.crf import ChainCRF, TreeCRF
from hinge.models.structured.perceptron import StructuredPerceptron
from hinge.models.structured.svm import StructuredSVM
from hinge.problem.losses.multiclass import StructuredHinge, StructuredLogistic, StructuredPerceptronLoss
from hinge.problem.penalties import L1, L2, Elastic, NoPenalty, Penalty
from hinge.problem.spaces import Chain, TreeOutput


@dataclass
class Labeller:
    """Adapts a fitted estimator to the Learner's function; ``trees``: inputs are pairs (tokens, parents)."""

    estimator: StructuredEstimator
    trees: bool

    def _inputs(self, X: Any) -> tuple[Any, dict[str, Any]]:
        if not self.trees:
            return X, {}
        return [tokens for tokens, _ in X], {"parents": [parents for _, parents in X]}

    def scores(self, X: Any) -> np.ndarray:
        tokens, structure = self._inputs(X)
        return self.estimator.decision_function(tokens, **structure)

    def predict(self, X: Any) -> list[list[Any]]:
        tokens, structure = self._inputs(X)
        return self.estimator.predict(tokens, **structure)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        tokens, structure = self._inputs(X)
        return self.estimator.score(tokens, y, sample_weight, **structure)


@minimise.register
def _(space: Chain, task: Task) -> Fit:
    labeller = Labeller(_estimator(space, task), isinstance(space, TreeOutput))
    tokens, structure = labeller._inputs(task.X)
    if task.sample_weight is not None:
        structure["sample_weight"] = task.sample_weight
    fitted = labeller.estimator.fit(tokens, task.y, **structure)
    shown = {name: getattr(fitted, name) for name in ("classes_", "coef_", "transitions_", "trigrams_", "n_iter_")}
    return Fit(labeller, getattr(fitted, "certificate_", None), shown)


def _estimator(space: Chain, task: Task) -> Any:
    """The estimator that minimises this loss and this penalty."""
    common: dict[str, Any] = {
        "features": space.features, "constraints": space.constraints, "min_count": space.min_count,
        "order": space.order,
    }  # fmt: skip
    if task.max_iter is not None:
        common["max_iter"] = task.max_iter
    loss, penalty = task.loss, task.penalty
    if isinstance(loss, StructuredLogistic):
        alpha, ratio = _strength(penalty)
        make = TreeCRF if isinstance(space, TreeOutput) else ChainCRF
        return make(alpha, l1_ratio=ratio, tol=task.tol, **common)
    if isinstance(loss, StructuredHinge):
        alpha, ratio = _strength(penalty)
        if ratio != 0:
            raise TypeError("StructuredHinge needs the penalty hg.L2(lam): its dual solver knows no other.")
        return StructuredSVM(alpha, cost=loss.cost, tol=task.tol, random_state=task.random_state, **common)
    if isinstance(loss, StructuredPerceptronLoss):
        if not isinstance(penalty, NoPenalty):
            raise TypeError("StructuredPerceptronLoss is minimised by the perceptron, which takes no penalty.")
        return StructuredPerceptron(random_state=task.random_state, **common)
    raise TypeError(
        f"{type(loss).__name__} is not a loss of sequences. Use hg.StructuredLogistic(), hg.StructuredHinge() or "
        "hg.StructuredPerceptronLoss()."
    )


def _strength(penalty: Penalty) -> tuple[float, float]:
    """(α, ``l1_ratio``) of an L1, L2 or elastic-net penalty."""
    if isinstance(penalty, L1 | L2 | Elastic) and penalty.weights is None and not penalty.positive:
        ratio = penalty.l1_ratio if isinstance(penalty, Elastic) else float(isinstance(penalty, L1))
        return penalty.lam, ratio
    raise TypeError("Sequences take the penalties hg.L2(lam), hg.L1(lam) and hg.Elastic(lam, l1_ratio).")
