"""Base of the generative classifiers: class priors, and predictions from the scores log p(class, x)."""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge._native import Design, core

OUTPUT = core.Output


class ClassPosterior:
    """Predictions of a model with ``_wanted(X, output)``, which returns one of OUTPUT for every example."""

    classes_: np.ndarray

    def _wanted(self, X: Any, output: Any) -> np.ndarray:
        raise NotImplementedError

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class."""
        best = self._wanted(X, OUTPUT.best)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> np.ndarray:
        """p(class | x), a column per class."""
        return self._wanted(X, OUTPUT.probability)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """log p(class | x)."""
        return self._wanted(X, OUTPUT.log_probability)


class JointPosterior(ClassPosterior):
    """ClassPosterior with ``predict_joint_log_proba``."""

    def predict_joint_log_proba(self, X: Any) -> np.ndarray:
        """log p(class, x)."""
        return self._wanted(X, OUTPUT.joint)


def as_output(values: np.ndarray, output: Any, log_prior: np.ndarray) -> np.ndarray:
    """Probabilities, or their logarithms; the prior for examples at which every density underflows to zero.

    A joint density whose logarithm is NaN, since a distance overflowed, is zero.
    """
    if output == OUTPUT.joint:
        return np.where(np.isnan(values), -np.inf, values).astype(values.dtype)
    if output not in (OUTPUT.probability, OUTPUT.log_probability):
        return values
    prior = np.exp(log_prior) if output == OUTPUT.probability else log_prior
    return np.where(np.isnan(values).any(axis=1, keepdims=True), prior, values).astype(values.dtype)


def log_prior(given: Any, counts: np.ndarray, *, fit: bool = True, name: str = "class_prior") -> np.ndarray:
    """Logarithms of the class probabilities: given, estimated from counts, or uniform."""
    k = len(counts)
    if given is not None:
        prior = np.asarray(given, dtype=np.float64)
        if prior.shape != (k,):
            raise ValueError(f"{name} must have one entry per class ({k}), got shape {prior.shape}.")
        if np.any(prior < 0) or not np.isclose(prior.sum(), 1.0):
            raise ValueError(f"{name} must be probabilities: of zero or more, with sum 1; got {prior.tolist()}.")
    elif fit:
        prior = counts / counts.sum()
    else:
        prior = np.full(k, 1.0 / k)
    with np.errstate(divide="ignore"):
        return np.log(prior)


def finish(joint: np.ndarray, output: Any) -> tuple[np.ndarray, bool]:
    """The requested output from joint scores that were not computed by the compiled core."""
    k = joint.shape[1]
    # A linear model with unit weights returns its inputs as scores.
    return core.linear_scores(Design(joint).native, np.eye(k), np.zeros(k), None, output)
