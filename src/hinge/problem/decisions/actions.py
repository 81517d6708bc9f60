"""Bayes actions: what to say, given a distribution of what is true and a loss.

Problem     min_a E ℓ(Y, a)  for Y of a given distribution
Closed      squared → mean, absolute → median, quantile τ → τ-quantile, 0-1 → mode; log-link likelihoods → log mean;
            softmax → log p; logistic → log-odds
Otherwise   E ∂ℓ/∂a is increasing in a for convex losses: bisection on a quadrature of the expectation;
            for losses that are not convex the best of the quadrature's points, refined
Accuracy    to rounding for smooth losses; a kink in a user's loss costs about 1/800 of the width of the distribution
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

from hinge.problem.decisions.distributions import Bernoulli, Categorical, Dirichlet, Distribution
from hinge.problem.losses import (
    Absolute,
    EpsilonInsensitive,
    Loss,
    MulticlassHinge,
    Quantile,
    RelativeError,
    Softmax,
    Squared,
    Target,
    ZeroOne,
    as_loss,
)
from hinge.problem.losses.likelihood import LogLink
from hinge.problem.losses.multiclass import StructuredLoss, cost_matrix

Array = NDArray[np.float64]

# Numbers looked at a time.
CHUNK = 1 << 20
# Probabilities this close to 0 and 1 are as good as certain; their log-odds are within ±SPAN.
CERTAIN = 1e-15
SPAN = 40.0


def bayes_action(distribution: Distribution, loss: Any) -> Any:
    """The action a that minimises E ℓ(Y, a).

    Parameters
    ----------
    distribution : Distribution
        What Y may be: a posterior, a predictive distribution, or draws (``Empirical``). One action is found for each
        of the distributions it holds.
    loss : Loss, or {"mean", "median", "mode"}
        Any loss of the library, or an object with ``value`` and ``gradient``. Losses of a margin are for
        ``Bernoulli``, losses over classes for ``Categorical``.

    Returns
    -------
    array
        Actions as the loss takes them: for likelihoods and margins they are scores, and ``loss.inverse_link`` turns
        them into predictions. The action of the 0-1 loss is the mode.

    Examples
    --------
    >>> import hinge as hg
    >>> from hinge.problem.decisions import Gamma
    >>> float(hg.bayes_action(Gamma(2.0, 1.0), hg.Squared()))
    2.0
    >>> round(float(hg.bayes_action(Gamma(2.0, 1.0), hg.Absolute())), 4)
    1.6783
    """
    if isinstance(loss, str):
        if loss not in ("mean", "median", "mode"):
            raise ValueError(f"the action must be 'mean', 'median', 'mode' or a loss, got {loss!r}.")
        return getattr(distribution, loss)
    loss = as_loss(loss)
    if isinstance(loss, ZeroOne):
        return distribution.mode
    if isinstance(distribution, Dirichlet):
        return bayes_action(distribution.marginals(), loss)
    if isinstance(loss, StructuredLoss):
        raise TypeError(f"{type(loss).__name__} compares whole outputs; it has no action for one target.")
    if loss.target is Target.CLASSES or isinstance(distribution, Categorical):
        return _class_action(distribution, loss)
    if loss.target is Target.SIGN:
        return _margin_action(distribution, loss)
    if isinstance(loss, Squared):
        return distribution.mean
    if isinstance(loss, Absolute):
        return distribution.median
    if isinstance(loss, Quantile):
        return distribution.quantile(loss.quantile)
    _check_targets(distribution, loss)
    if isinstance(loss, LogLink):
        return np.log(distribution.mean)
    if not distribution.discrete and isinstance(loss, RelativeError):
        return _in_chunks(distribution, lambda y, w: _middle(y, w / np.abs(y)))
    if not distribution.discrete and isinstance(loss, EpsilonInsensitive):
        return _tube_action(distribution, loss.epsilon)
    return _in_chunks(distribution, lambda y, w: _minimise(loss, y, w))


def posterior_risk(distribution: Distribution, loss: Any, action: Any) -> Any:
    """E ℓ(Y, a): the expected loss of an action (one per distribution) under a posterior or a prediction.

    For ``Bernoulli`` and losses of a margin, Y is −1 or +1.

    Examples
    --------
    >>> import hinge as hg
    >>> from hinge.problem.decisions import Normal
    >>> round(float(hg.posterior_risk(Normal(0.0, 2.0), hg.Squared(), 1.0)), 6)  # (2² + 1²)/2
    2.5
    """
    loss = as_loss(loss)
    y, weight = distribution.nodes()
    if loss.target is Target.SIGN and isinstance(distribution, Bernoulli):
        y = 2.0 * y - 1.0
    action = np.asarray(action, dtype=np.float64)
    if loss.outputs == "classes":
        k = y.shape[-1]
        rows = np.repeat(action.reshape(-1, k), k, axis=0)
        value = loss.value(y.ravel(), rows).reshape(y.shape)
    else:
        value = loss.value(y, np.broadcast_to(action[..., None], y.shape))
    return np.sum(weight * value, axis=-1)


def _in_chunks(distribution: Distribution, act: Any) -> Any:
    y, weight = distribution.nodes()
    m = y.shape[-1]
    y, weight = np.broadcast_to(y, weight.shape).reshape(-1, m), weight.reshape(-1, m)
    step = max(1, CHUNK // m)
    parts = [act(y[i : i + step], weight[i : i + step]) for i in range(0, len(y), step)]
    return np.concatenate(parts).reshape(distribution.shape)[()]


def _check_targets(distribution: Distribution, loss: Loss) -> None:
    """The loss must be defined on everything that may happen."""
    y, weight = distribution.nodes()
    possible = y[weight > 0]
    straddles = loss.target is Target.NONZERO and possible.min(initial=0.0) < 0 < possible.max(initial=0.0)
    if not loss.target.admits(possible) or (straddles and not distribution.discrete):
        raise ValueError(
            f"{type(loss).__name__} is for {loss.target.value}, and {type(distribution).__name__} may be something else."
        )


def _minimise(loss: Loss, y: Array, weight: Array) -> Array:
    """One action per row of y."""
    if not loss.convex:
        return np.array([_search(loss, row, w) for row, w in zip(y, weight)])
    low, high = y.min(axis=1), y.max(axis=1)
    for _ in range(200):
        middle = 0.5 * (low + high)
        slope = np.sum(weight * loss.gradient(y, np.broadcast_to(middle[:, None], y.shape)), axis=1)
        low, high = np.where(slope > 0, low, middle), np.where(slope > 0, middle, high)
        if np.all(high - low <= 1e-13 * (1.0 + np.abs(low))):
            break
    return 0.5 * (low + high)


def _middle(y: Array, weight: Array) -> Array:
    """The median of densities sampled at y, increasing along each row, between the points too."""
    below = np.cumsum(weight, axis=1) - 0.5 * weight
    return np.array([np.interp(0.5 * w.sum(), b, row) for row, b, w in zip(y, below, weight)])


def _tube_action(distribution: Distribution, epsilon: float) -> Any:
    """P(Y < a − ε) = P(Y > a + ε): solved for a, by bisection, with the distribution function."""
    low, high = distribution.median - epsilon, distribution.median + epsilon
    for _ in range(100):
        middle = 0.5 * (low + high)
        slope = distribution.cdf(middle - epsilon) + distribution.cdf(middle + epsilon) - 1.0
        low, high = np.where(slope > 0, low, middle), np.where(slope > 0, middle, high)
    return 0.5 * (low + high)


def _search(loss: Loss, y: Array, weight: Array) -> float:
    def risk(a: float) -> float:
        return float(weight @ loss.value(y, np.full_like(y, a)))

    points = np.sort(y[weight > 0])
    best = int(np.argmin([risk(a) for a in points]))
    low, high = points[max(best - 1, 0)], points[min(best + 1, len(points) - 1)]
    found = scipy.optimize.minimize_scalar(risk, bounds=(low, high), method="bounded", options={"xatol": 1e-10})
    return float(found.x) if found.fun < risk(points[best]) else float(points[best])


def _margin_action(distribution: Distribution, loss: Loss) -> Any:
    """The score of least risk p ℓ(+1, s) + (1 − p) ℓ(−1, s)."""
    if not isinstance(distribution, Bernoulli):
        raise TypeError(f"{type(loss).__name__} is for {loss.target.value}: the distribution must be Bernoulli.")
    p = np.clip(distribution.p, CERTAIN, 1.0 - CERTAIN)
    low, high = np.full(p.shape, -SPAN), np.full(p.shape, SPAN)
    plus = np.ones(p.shape)
    for _ in range(100):
        middle = 0.5 * (low + high)
        slope = p * loss.gradient(plus, middle) + (1.0 - p) * loss.gradient(-plus, middle)
        low, high = np.where(slope > 0, low, middle), np.where(slope > 0, middle, high)
    return (0.5 * (low + high))[()]


def _class_action(distribution: Distribution, loss: Loss) -> Array:
    if not isinstance(distribution, Categorical) or loss.target is not Target.CLASSES:
        raise TypeError(f"{type(loss).__name__} and {type(distribution).__name__} do not go together.")
    if isinstance(loss, Softmax):
        return np.log(np.clip(distribution.p, CERTAIN, None))
    if isinstance(loss, MulticlassHinge):
        k = distribution.p.shape[-1]
        cost = cost_matrix(loss.cost, k)
        flat = [_hinge_scores(p, cost) for p in distribution.p.reshape(-1, k)]
        return np.array(flat).reshape(distribution.p.shape)
    raise TypeError(f"no Bayes action is known for {type(loss).__name__}.")


def _hinge_scores(p: Array, cost: Array) -> Array:
    """min Σ_y p_y ξ_y over ξ_y ≥ Δ(y, j) + s_j − s_y: a linear program in (s, ξ), with s₀ = 0."""
    k = len(p)
    rows, right = [], []
    for y in range(k):
        for j in range(k):
            row = np.zeros(2 * k)
            row[j] += 1.0
            row[y] -= 1.0
            row[k + y] = -1.0
            rows.append(row)
            right.append(-cost[y, j])
    free = [(0.0, 0.0)] + [(None, None)] * (2 * k - 1)
    objective = np.concatenate([np.zeros(k), p])
    found = scipy.optimize.linprog(objective, A_ub=np.array(rows), b_ub=np.array(right), bounds=free)
    return np.asarray(found.x[:k])
