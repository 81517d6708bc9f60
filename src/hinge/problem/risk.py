"""The risk of any predictor under any loss.

R(f) = E ℓ(y, f(x)),   estimated on a sample by   Σ sᵢ ℓ(yᵢ, f(xᵢ)) / Σ sᵢ
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hinge.problem.losses import as_loss, normalise_weights
from hinge.problem.losses.base import Target
from hinge.problem.numerics import weighted_sum


def risk(loss: Any, y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    """The (weighted) mean loss of scores.

    Parameters
    ----------
    loss : Loss
        A loss of this library or an object with ``value(y, s)``.
    y : array of n targets, coded as the loss wants them (−1/+1 for margins, 0 … k−1 for classes)
        What the scores are compared with.
    scores : array of n scores, or n × k for losses over k classes
        One per example, or one per example and class.
    sample_weight : array of n weights, optional
        How much each example counts; all the same by default.

    Examples
    --------
    >>> import hinge as hg
    >>> hg.risk(hg.Hinge(), [1, -1], [0.5, 1.0])
    1.25
    """
    loss = as_loss(loss)
    targets, s = np.asarray(y, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if len(targets) != len(s):
        raise ValueError(f"y has {len(targets)} entries but scores has {len(s)}.")
    if not loss.target.admits(targets):
        raise ValueError(f"y does not suit {type(loss).__name__}: it must hold {loss.target.value}.")
    values = loss.value(targets, s)
    c = normalise_weights(sample_weight, len(targets))
    return float(np.sum(weighted_sum(c, values)))


def empirical_risk(predictor: Any, X: Any, y: ArrayLike, loss: Any, sample_weight: ArrayLike | None = None) -> float:
    """The mean loss of a predictor on examples.

    Parameters
    ----------
    predictor : a function of X that returns scores, or a fitted estimator
        Of an estimator, ``decision_function`` gives the scores if it has one, else ``predict``; its labels are coded
        by ``classes_``.
    X, y : examples; y may hold any labels if the predictor is a classifier
        Inputs and targets.
    loss : Loss
        What is averaged.
    sample_weight : array of n weights, optional
        How much each example counts; all the same by default.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> hg.empirical_risk(lambda X: X[:, 0], np.array([[1.0], [3.0]]), [1.0, 1.0], hg.Squared())
    1.0
    """
    loss = as_loss(loss)
    targets = np.asarray(y)
    classes = getattr(predictor, "classes_", None)
    if loss.target.is_classes and classes is not None:
        codes = np.searchsorted(classes, targets)
        if np.any(codes >= len(classes)) or np.any(np.asarray(classes)[np.minimum(codes, len(classes) - 1)] != targets):
            raise ValueError("y holds labels that the predictor has not been fitted on.")
        targets = np.where(codes == 1, 1.0, -1.0) if loss.target is Target.SIGN else codes.astype(np.float64)
    return risk(loss, targets, _scores(predictor, X, loss.target), sample_weight)


def _scores(predictor: Any, X: Any, target: Target) -> np.ndarray:
    decide = getattr(predictor, "decision_function", None)
    if decide is not None and target.is_classes:
        return np.asarray(decide(X), dtype=np.float64)
    predict = getattr(predictor, "predict", predictor)
    if not callable(predict):
        raise TypeError(f"predictor must be a function or a fitted estimator, got {type(predictor).__name__}.")
    scores = predict(X)
    if getattr(predictor, "classes_", None) is not None and target is Target.SIGN:
        scores = np.where(np.asarray(scores) == predictor.classes_[1], 1.0, -1.0)
    return np.asarray(scores, dtype=np.float64)
