"""Bayes actions: the best prediction for a given distribution of the outcome and a given loss.

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

from hinge.problem.decisions.discrete import Bernoulli, Categorical, Dirichlet
from hinge.problem.decisions.distributions import Distribution
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

# Numbers processed at a time.
CHUNK = 1 << 20
# Actions that are tried first if the loss is a plain function.
CANDIDATES = 101
# Probabilities this close to 0 and 1 are treated as certain; their log-odds are within ±SPAN.
CERTAIN = 1e-15
SPAN = 40.0


def bayes_action(distribution: Distribution, loss: Any) -> Any:
    """The action a that minimises E ℓ(Y, a).

    Parameters
    ----------
    distribution : Distribution
        What Y may be: a posterior, a predictive distribution, or draws (``Empirical``). One action is found for each
        of the distributions it holds.
    loss : Loss, {"mean", "median", "mode"}, function or matrix
        Any loss of the library, or an object with ``value`` and ``gradient``. Losses of a margin are for
        ``Bernoulli``, losses over classes for ``Categorical``. A function ``loss(action, outcome)`` of numbers (or of a
        number and an array of outcomes, which is faster). A matrix of costs, with a row for every action and a column
        for every outcome: for ``Bernoulli`` and ``Categorical``, or draws of classes.

    Returns
    -------
    array
        Actions as the loss takes them: for likelihoods and margins they are scores, and ``loss.inverse_link`` turns
        them into predictions. The action of the 0-1 loss is the mode. For a matrix of costs, and for a function over
        classes, the number of the action: the first one, if several are best.

    Examples
    --------
    >>> import hinge as hg
    >>> from hinge.problem.decisions import Gamma
    >>> float(hg.decisions.bayes_action(Gamma(2.0, 1.0), hg.Squared()))
    2.0
    >>> round(float(hg.decisions.bayes_action(Gamma(2.0, 1.0), hg.Absolute())), 4)
    1.6783
    >>> round(float(hg.decisions.bayes_action(Gamma(2.0, 1.0), lambda a, y: (a - y) ** 2)), 4)
    2.0
    >>> from hinge.problem.decisions import Bernoulli
    >>> treat = [[10, 10], [0, 100]]  # the costs of treating and of waiting, for the healthy and for the ill
    >>> hg.decisions.bayes_action(Bernoulli([0.05, 0.2]), treat)
    array([1, 0])
    """
    if isinstance(loss, str):
        if loss not in ("mean", "median", "mode"):
            raise ValueError(f"the action must be 'mean', 'median', 'mode' or a loss, got {loss!r}.")
        return getattr(distribution, loss)
    if is_table(loss):
        return _cheapest(distribution, _cost_table(loss, distribution))
    if is_function(loss):
        if isinstance(distribution, Bernoulli | Categorical):
            k = distribution.nodes()[0].shape[-1]
            return _cheapest(distribution, np.array([_values(loss, float(a), np.arange(float(k))) for a in range(k)]))
        return _in_chunks(distribution, lambda y, w: np.array([_search_function(loss, *row) for row in zip(y, w)]))
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
    """E ℓ(Y, a): the expected loss of an action (one per distribution) under a posterior or a predictive distribution.

    ``loss`` is as in :func:`hinge.decisions.bayes_action`. For ``Bernoulli`` and margin losses, Y is −1 or +1; with a matrix of costs the
    action is the index of a row.

    Parameters
    ----------
    distribution : Distribution
        The law of Y: a posterior or a prediction, for one case or an array of them.
    loss : Loss, function or matrix of costs
        As for :func:`hinge.decisions.bayes_action`: what an action costs if Y comes out as it does.
    action : number or array
        The action a, one for each distribution.

    Examples
    --------
    >>> import hinge as hg
    >>> from hinge.problem.decisions import Normal
    >>> round(float(hg.decisions.posterior_risk(Normal(0.0, 2.0), hg.Squared(), 1.0)), 6)  # (2² + 1²)/2
    2.5
    """
    if is_table(loss):
        table = _cost_table(loss, distribution)
        return np.take_along_axis(_expected(distribution, table), np.asarray(action, dtype=np.intp)[..., None], -1)[
            ..., 0
        ]
    if is_function(loss):
        y, weight = distribution.nodes()
        y = np.broadcast_to(y, weight.shape).reshape(-1, y.shape[-1])
        actions = np.broadcast_to(np.asarray(action, dtype=np.float64), distribution.shape).ravel()
        costs = np.array([_values(loss, float(a), row) for a, row in zip(actions, y)]).reshape(weight.shape)
        return np.sum(weight * costs, axis=-1)
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


def is_table(loss: Any) -> bool:
    """Whether the loss is a matrix of costs."""
    return isinstance(loss, np.ndarray | list | tuple) or hasattr(loss, "to_numpy")


def is_function(loss: Any) -> bool:
    """Whether the loss is a plain function of action and outcome."""
    return callable(loss) and not isinstance(loss, Loss) and not hasattr(loss, "value")


def in_units_of_target(loss: Any, action: Any) -> Any:
    """The prediction of an action: the inverse link is applied to scores of likelihoods and margins."""
    return (
        action if isinstance(loss, str) or is_table(loss) or is_function(loss) else as_loss(loss).inverse_link(action)
    )


def _cost_table(costs: Any, distribution: Distribution) -> Array:
    table = np.asarray(costs, dtype=np.float64)
    if table.ndim != 2 or not table.size or not np.all(np.isfinite(table)):
        raise ValueError(
            f"loss must be a matrix of finite costs, with a row per action and a column per outcome; got shape {table.shape}."
        )
    if not distribution.discrete or isinstance(distribution, Dirichlet):
        raise TypeError(
            f"{type(distribution).__name__} has no list of outcomes for a matrix of costs; use a function "
            "loss(action, outcome)."
        )
    outcomes, weight = distribution.nodes()
    largest = float(np.max(outcomes[np.broadcast_to(weight, outcomes.shape) > 0], initial=0.0))
    fixed = isinstance(distribution, Bernoulli | Categorical)
    if outcomes.shape[-1] != table.shape[1] if fixed else not largest < table.shape[1]:
        needed = outcomes.shape[-1] if fixed else int(largest) + 1
        raise ValueError(f"loss has {table.shape[1]} columns, and there are {needed} outcomes.")
    if np.any(outcomes < 0) or np.any(outcomes != np.floor(outcomes)):
        raise ValueError("A matrix of costs needs outcomes 0, 1, …: its columns.")
    return table


def _expected(distribution: Distribution, table: Array) -> Array:
    """The expected cost of every action: an array of (*shape, actions)."""
    outcomes, weight = distribution.nodes()
    if isinstance(distribution, Bernoulli | Categorical):
        return weight @ table.T
    return np.einsum("...m,a...m->...a", weight, table[:, outcomes.astype(np.intp)])


def _cheapest(distribution: Distribution, table: Array) -> Any:
    return np.argmin(_expected(distribution, table), axis=-1)


def _values(function: Any, action: float, outcomes: Array) -> Array:
    """loss(action, outcome) for an array of outcomes; the function may take arrays or only numbers."""
    try:
        values = np.asarray(function(action, outcomes), dtype=np.float64)
    except (TypeError, ValueError):
        values = np.zeros(0)
    if values.shape != outcomes.shape:
        values = np.array([float(function(action, float(y))) for y in outcomes])
    return values


def _search_function(function: Any, y: Array, weight: Array) -> float:
    """The best of some points of the distribution, refined between its neighbours."""

    def risk(a: float) -> float:
        return float(weight @ _values(function, float(a), y))

    points = np.unique(y[weight > 0])
    points = points[np.unique(np.linspace(0, len(points) - 1, CANDIDATES).astype(int))]
    risks = [risk(a) for a in points]
    if not np.all(np.isfinite(risks)):
        raise ValueError("loss(action, outcome) must be a finite number for every action and outcome.")
    best = int(np.argmin(risks))
    low, high = points[max(best - 1, 0)], points[min(best + 1, len(points) - 1)]
    if low == high:
        return float(low)
    found = scipy.optimize.minimize_scalar(risk, bounds=(low, high), method="bounded", options={"xatol": 1e-9})
    return float(found.x) if found.fun < risks[best] else float(points[best])


def _in_chunks(distribution: Distribution, act: Any) -> Any:
    y, weight = distribution.nodes()
    m = y.shape[-1]
    y, weight = np.broadcast_to(y, weight.shape).reshape(-1, m), weight.reshape(-1, m)
    step = max(1, CHUNK // m)
    parts = [act(y[i : i + step], weight[i : i + step]) for i in range(0, len(y), step)]
    return np.concatenate(parts).reshape(distribution.shape)[()]


def _check_targets(distribution: Distribution, loss: Loss) -> None:
    """Raises an error if the loss is not defined on every possible outcome."""
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
        derivative = np.sum(weight * loss.gradient(y, np.broadcast_to(middle[:, None], y.shape)), axis=1)
        low, high = np.where(derivative > 0, low, middle), np.where(derivative > 0, middle, high)
        if np.all(high - low <= 1e-13 * (1.0 + np.abs(low))):
            break
    return 0.5 * (low + high)


def _middle(y: Array, weight: Array) -> Array:
    """The median of densities sampled at increasing y in each row, interpolated between the points."""
    below = np.cumsum(weight, axis=1) - 0.5 * weight
    return np.array([np.interp(0.5 * w.sum(), b, row) for row, b, w in zip(y, below, weight)])


def _tube_action(distribution: Distribution, epsilon: float) -> Any:
    """The root a of P(Y < a − ε) = P(Y > a + ε), by bisection on the distribution function."""
    low, high = distribution.median - epsilon, distribution.median + epsilon
    for _ in range(100):
        middle = 0.5 * (low + high)
        derivative = distribution.cdf(middle - epsilon) + distribution.cdf(middle + epsilon) - 1.0
        low, high = np.where(derivative > 0, low, middle), np.where(derivative > 0, middle, high)
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
    """The score that minimises the risk p ℓ(+1, s) + (1 − p) ℓ(−1, s)."""
    if not isinstance(distribution, Bernoulli):
        raise TypeError(f"{type(loss).__name__} is for {loss.target.value}: the distribution must be Bernoulli.")
    p = np.clip(distribution.p, CERTAIN, 1.0 - CERTAIN)
    low, high = np.full(p.shape, -SPAN), np.full(p.shape, SPAN)
    plus = np.ones(p.shape)
    for _ in range(100):
        middle = 0.5 * (low + high)
        derivative = p * loss.gradient(plus, middle) + (1.0 - p) * loss.gradient(-plus, middle)
        low, high = np.where(derivative > 0, low, middle), np.where(derivative > 0, middle, high)
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
