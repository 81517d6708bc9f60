"""A fitted sum of trees: its scores, round by round, its leaves, and the contributions of features."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hinge.models.base import require_no_overflow
from hinge.models.trees.arrays import Trees, add_gains, as_shares
from hinge.models.trees.boosting_loss import BoostedLoss
from hinge.models.trees.boosting_start import start_scores
from hinge.models.trees.inputs import Coder, predict_table
from hinge.models.trees.limits import feature_count
from hinge.problem.losses import Loss


class BoostedSum:
    """The fitted f = f₀ + η Σ_t tree_t."""

    trees_: Any  # Trees, or None before the first round
    n_iter_: int
    n_features_in_: int
    max_features: Any
    baseline_: np.ndarray
    init_: Any
    _coder: Coder
    _loss: BoostedLoss
    _grown: list[Any]

    def first_rounds(self, rounds: int) -> Any:
        """A copy of the model after its first rounds."""
        check_is_fitted(self)
        short = copy.copy(self)
        short.trees_, short.n_iter_ = self.trees_.first(rounds * self._loss.outputs), rounds
        return short

    def score_loss(self) -> Loss:
        """The training loss, whose inverse link maps scores to means or probabilities."""
        check_is_fitted(self)
        return self._loss.definition

    def _start(self, X: np.ndarray) -> np.ndarray:
        """The scores before the first round."""
        start = np.repeat(self.baseline_[None, :], len(X), axis=0)
        return start if self.init_ is None else start + start_scores(self.init_, X, self._loss, self)

    def _raw(self, X: np.ndarray, rounds: int | None = None) -> np.ndarray:
        out = self._start(X)
        trees = self.trees_ if self.trees_ is not None else Trees.stack(self._grown, self._loss.outputs, additive=True)
        last = None if rounds is None else rounds * self._loss.outputs
        return trees.add(X, out, 0, last)

    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        scores = self._raw(predict_table(self, X, self._coder))
        require_no_overflow(scores)
        return scores

    def scores_by_round(self, X: Any, rounds: Iterable[int] | None = None) -> Iterator[np.ndarray]:
        """The scores after these numbers of rounds, which must not fall; by default after every round."""
        check_is_fitted(self)
        X = predict_table(self, X, self._coder)
        out, k, done = self._start(X), self._loss.outputs, 0
        for count in range(1, self.n_iter_ + 1) if rounds is None else rounds:
            until = min(int(count), self.n_iter_)
            if until > done:
                out, done = self.trees_.add(X, out, k * done, k * until), until
            yield out.copy()

    def predictions_at(self, s: np.ndarray) -> np.ndarray:
        """Predictions of rows with these scores."""
        raise NotImplementedError

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Predictions after each round."""
        for s in self.scores_by_round(X):
            yield self.predictions_at(s)

    def _leaves(self, X: Any) -> np.ndarray:
        """The leaf of each row in each tree: n × rounds × outputs."""
        check_is_fitted(self)
        leaves = self.trees_.leaves(predict_table(self, X, self._coder))
        return leaves.reshape(len(leaves), self.n_iter_, self._loss.outputs)

    @property
    def max_features_(self) -> int:
        """The number of features that a split may choose from."""
        check_is_fitted(self)
        return feature_count(self.max_features, self.n_features_in_)

    @property
    def n_estimators_(self) -> int:
        """The number of rounds."""
        check_is_fitted(self)
        return self.n_iter_

    @property
    def estimators_(self) -> np.ndarray:
        """The trees as regression trees, (rounds × outputs): score = baseline_ + learning_rate · Σ predictions."""
        from hinge.models.trees.members import boosted_trees

        check_is_fitted(self)
        return boosted_trees(self)

    @property
    def n_trees_per_iteration_(self) -> int:
        """The number of trees per round: one per score."""
        check_is_fitted(self)
        return self._loss.outputs

    @property
    def is_categorical_(self) -> np.ndarray | None:
        """A mask of the categorical columns; None if there are none."""
        check_is_fitted(self)
        mask = np.isin(np.arange(self.n_features_in_), list(self._coder.columns))
        return mask if mask.any() else None

    @property
    def feature_importances_(self) -> np.ndarray:
        """Total gain by feature, scaled to sum to one."""
        check_is_fitted(self)
        gains = map(self.trees_.gains, range(len(self.trees_)))
        return as_shares(add_gains(np.zeros(self.n_features_in_), gains, scaled=False))

    def shap_values(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """The contribution of each feature to the score of each row (TreeSHAP), and the expected score.

        Returns ``(phi, base)`` with phi of shape (n, d) (or (n, d, k) for k classes): base + Σ_j phi_j = score.
        """
        from hinge.models.trees.shap import shap_values

        check_is_fitted(self)
        phi, base = shap_values(self.trees_, predict_table(self, X, self._coder))
        base = base + self.baseline_
        return (phi[:, :, 0], base[:1]) if self._loss.outputs == 1 else (phi, base)
