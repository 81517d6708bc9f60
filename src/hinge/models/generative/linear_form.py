"""The linear form of Gaussian classes with one covariance: weights and biases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hinge._native import Design


@dataclass(frozen=True)
class LinearForm:
    """Scores ⟨w_c, x⟩ + b_c whose softmax (logistic function, for two classes) is p(class | x).

    Attributes
    ----------
    coef : array of shape (1, d) or (k, d)
        One row for two classes, the log-odds of the second; one row per class otherwise.
    intercept : array of shape (1,) or (k,)
    """

    coef: np.ndarray
    intercept: np.ndarray

    def decision_function(self, X: Any) -> np.ndarray:
        """The scores of new examples."""
        z = Design(np.asarray(X, dtype=np.float64)).matmul(self.coef.T) + self.intercept
        return z[:, 0] if z.shape[1] == 1 else z


def linear_form(means: np.ndarray, weights: np.ndarray, log_prior: np.ndarray) -> LinearForm:
    """From means μ_c and Σ⁻¹μ_c:  δ_c(x) = ⟨Σ⁻¹μ_c, x⟩ − ½⟨μ_c, Σ⁻¹μ_c⟩ + log π_c.

    For two classes, their difference, with weights Σ⁻¹(μ₁ − μ₀).
    """
    intercept = log_prior - 0.5 * np.sum(means * weights, axis=1)
    if len(means) == 2:
        return LinearForm(weights[1:] - weights[:1], intercept[1:] - intercept[:1])
    return LinearForm(weights, intercept)
