"""Base of the multiclass models: the class with the highest score."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from hinge._parameters import Estimator


def one_score_for_two(scores: np.ndarray) -> np.ndarray:
    """Scores of k classes; for two classes their difference, positive for the second, as scikit-learn has it."""
    return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores


class HighestScore(ClassifierMixin, Estimator):
    """A classifier that predicts  argmax_j f_j(x)."""

    classes_: np.ndarray

    def decision_function(self, X: Any) -> np.ndarray:
        """The scores f_j(x)."""
        raise NotImplementedError

    def predict(self, X: Any) -> np.ndarray:
        """The class with the highest score."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]
