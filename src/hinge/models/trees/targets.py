"""Targets of trees and forests: one per row, or several that share their splits.

With several targets a split decreases the mean of their impurities. For classes with the Gini impurity this equals the
squared error of the indicators of all classes of all targets, because 1 − Σ p² = Σ p (1 − p); one criterion serves both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hinge._validation import numeric_targets
from hinge.models.base import unique_codes


@dataclass(frozen=True)
class Shape:
    """The number of classes of a single target (0 for a number), the number of targets, and the numbers per row."""

    classes: int
    outputs: int
    columns: int


class ClassTargets:
    """Labels as codes (one target) or as class indicators (several), and class proportions as predictions."""

    criterion: str
    classes_: Any
    n_classes_: Any
    n_outputs_: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.target_tags.multi_output = tags.classifier_tags.multi_label = self.criterion != "misclassification"
        return tags

    def _code(self, y: np.ndarray) -> np.ndarray:
        if y.ndim == 1:
            self.classes_, codes = unique_codes(y)  # a single class gives a tree with one leaf
            self.n_classes_, self.n_outputs_ = len(self.classes_), 1
            return codes
        coded = [unique_codes(column) for column in y.T]
        self.classes_, self.n_outputs_ = [classes for classes, _ in coded], len(coded)
        self.n_classes_ = np.array([len(classes) for classes in self.classes_])
        return np.column_stack([np.eye(len(classes))[codes] for classes, codes in coded])

    def _shape(self) -> Shape:
        if self.n_outputs_ == 1:
            return Shape(self.n_classes_, 1, 1)
        return Shape(0, self.n_outputs_, int(np.sum(self.n_classes_)))

    def _shares(self, values: np.ndarray) -> Any:
        """Class proportions; a list with one array per target if there are several."""
        return values if self.n_outputs_ == 1 else np.split(values, np.cumsum(self.n_classes_)[:-1], axis=1)

    def _labels(self, values: np.ndarray) -> np.ndarray:
        if self.n_outputs_ == 1:
            return self.classes_[np.argmax(values, axis=1)]
        best = [np.argmax(shares, axis=1) for shares in self._shares(values)]
        return np.column_stack([classes[at] for classes, at in zip(self.classes_, best)])


class RealTargets:
    """Numbers, one or several per row."""

    criterion: str
    n_outputs_: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.target_tags.multi_output = True
        return tags

    def _code(self, y: np.ndarray) -> np.ndarray:
        y = numeric_targets(y)
        self.n_outputs_ = 1 if y.ndim == 1 else y.shape[1]
        if self.criterion == "poisson":
            if np.any(y < 0):
                raise ValueError("Some value(s) of y are negative which is not allowed for Poisson regression.")
            if not np.all(np.sum(y, axis=0) > 0):
                raise ValueError("Sum of y is not strictly positive which is necessary for Poisson regression.")
        return y

    def _shape(self) -> Shape:
        return Shape(0, self.n_outputs_, self.n_outputs_)

    def _numbers(self, values: np.ndarray) -> np.ndarray:
        return values[:, 0] if self.n_outputs_ == 1 else values


def per_target(grown: dict[str, np.ndarray], outputs: int) -> dict[str, np.ndarray]:
    """Impurities and gains as means over the targets; the native code sums them."""
    if outputs > 1:
        grown["impurity"], grown["gain"] = grown["impurity"] / outputs, grown["gain"] / outputs
    return grown
