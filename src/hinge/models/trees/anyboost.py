"""Boosting in its textbook form: any loss, any base learner, a few lines per idea.

AnyBoost (gradient boosting)           f ← f + η v h,  h fitted to −∂ℓ/∂s,  v = argmin_v Σ w ℓ(y, f + v h)
forward stagewise additive modelling   f ← f + v h,    (v, h) = argmin_{v, h} Σ w ℓ(y, f + v h)

With the exponential loss and classifiers ±1 the second is AdaBoost with v = α/2. For speed use
:class:`hinge.HistGradientBoostingRegressor` and :class:`hinge.HistGradientBoostingClassifier`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from hinge._parameters import Constraints, above, between, count, has
from hinge.models.base import check_predict
from hinge.models.learner import Learner
from hinge.models.trees.boosting_loss import BoostedLoss
from hinge.models.trees.tree import DecisionTreeRegressor
from hinge.problem.losses import Loss, normalise_weights
from hinge.problem.tree_spaces import Boosted, Stagewise


@dataclass(frozen=True)
class Stump:
    """h(x) = sign if x_feature > threshold, −sign otherwise."""

    feature: int
    threshold: float
    sign: float = 1.0

    def predict(self, X: Any) -> np.ndarray:
        column = np.asarray(X[:, [self.feature]].todense()) if hasattr(X, "todense") else X[:, [self.feature]]
        return np.where(column[:, 0] > self.threshold, self.sign, -self.sign)


@dataclass
class Additive:
    """f(x) = start + Σ coefficient · h(x), each member in one output; ``history`` is the mean loss by round."""

    start: np.ndarray
    members: list[tuple[float, Any, int]] = field(default_factory=list)
    history: list[float] = field(default_factory=list)

    def scores(self, X: Any, rounds: int | None = None) -> np.ndarray:
        s = np.repeat(self.start[None, :], X.shape[0], axis=0)
        last = None if rounds is None else rounds * len(self.start)
        for coefficient, h, output in self.members[:last]:
            s[:, output] += coefficient * h.predict(X)
        return s[:, 0] if len(self.start) == 1 else s


def line_search(loss: Loss, y: np.ndarray, f: np.ndarray, H: np.ndarray, c: np.ndarray) -> np.ndarray:
    """argmin_v Σ cᵢ ℓ(yᵢ, fᵢ + v Hᵢⱼ) for every column j of H: bisection on the increasing derivative in v.

    For a nonconvex loss it returns a local minimum at which the sum is not larger than at v = 0.
    """

    def derivative(v: np.ndarray) -> np.ndarray:
        s = f[:, None] + v * H
        return (c[:, None] * loss.gradient(np.broadcast_to(y[:, None], s.shape), s) * H).sum(axis=0)

    def risk(v: np.ndarray) -> np.ndarray:
        s = f[:, None] + v * H
        with np.errstate(over="ignore", invalid="ignore"):
            r = c @ loss.value(np.broadcast_to(y[:, None], s.shape), s)
        return np.where(np.isfinite(r), r, np.inf)

    at_zero = derivative(np.zeros(H.shape[1]))
    direction = -np.sign(at_zero)
    if not loss.convex:
        return direction * _lowest(lambda v: risk(direction * v), H.shape[1])
    far = np.ones(H.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(40):  # until the derivative changes sign or is flat (separable data have no minimum)
            open_ = derivative(direction * far) * direction < -1e-12 * np.abs(at_zero)
            if not open_.any():
                break
            far = np.where(open_, 2.0 * far, far)
        low, high = np.zeros(H.shape[1]), far
        for _ in range(100):
            middle = 0.5 * (low + high)
            short = derivative(direction * middle) * direction < 0
            low, high = np.where(short, middle, low), np.where(short, high, middle)
    return direction * 0.5 * (low + high)


def _lowest(risk: Callable[[np.ndarray], np.ndarray], columns: int) -> np.ndarray:
    """The v ≥ 0 of smallest risk on a geometric grid, refined by golden-section search; 0 if none decreases the risk."""
    steps = np.concatenate([[0.0], np.ldexp(1.0, np.arange(-30, 21))])
    values = np.array([risk(np.full(columns, v)) for v in steps])
    k = np.argmin(values, axis=0)
    low, high = steps[np.maximum(k - 1, 0)], steps[np.minimum(k + 1, len(steps) - 1)]
    ratio = 0.5 * (np.sqrt(5.0) - 1.0)
    for _ in range(50):
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        left = risk(a) <= risk(b)
        low, high = np.where(left, low, a), np.where(left, b, high)
    best = 0.5 * (low + high)
    return np.where(risk(best) <= values.min(axis=0), best, steps[k])


def any_boost(
    X: Any,
    y: np.ndarray,
    loss: Loss,
    base: Any,
    *,
    weight: np.ndarray | None = None,
    classes: int | None = None,
    rounds: int = 100,
    learning_rate: float = 0.1,
    subsample: float = 1.0,
    line_search: bool = True,
    random_state: int = 0,
    callback: Callable[[Any], bool] | None = None,
) -> Additive:
    """Gradient boosting of any regressor on any subdifferentiable loss."""
    n, c = X.shape[0], normalise_weights(weight, X.shape[0])
    boosted = BoostedLoss(loss, classes or 1)
    function = Additive(boosted.start(y, weight))
    f = np.repeat(function.start[None, :], n, axis=0)
    rng = np.random.default_rng(random_state)
    takes_weights = has_fit_parameter(base, "sample_weight")
    if weight is not None and not takes_weights:
        raise ValueError(f"sample_weight was given, but {type(base).__name__}.fit does not take it.")
    for _ in range(rounds):
        rows = np.flatnonzero(rng.random(n) < subsample) if subsample < 1 else np.arange(n)
        residual = -np.asarray(loss.gradient(y, f if classes else f[:, 0])).reshape(n, -1)
        for k in range(f.shape[1]):
            h = clone(base)
            extra = {"sample_weight": weight[rows]} if weight is not None else {}
            h.fit(_safe_indexing(X, rows), residual[rows, k], **extra)
            values = np.asarray(h.predict(X), dtype=np.float64)
            v = learning_rate * (_step(loss, y, f[:, k], values, c) if line_search and not classes else 1.0)
            f[:, k] += v * values
            function.members.append((v, h, k))
        function.history.append(float(c @ loss.value(y, f if classes else f[:, 0])))
        if callback is not None and callback(function.history[-1]):
            break
    return function


def _step(loss: Loss, y: np.ndarray, f: np.ndarray, h: np.ndarray, c: np.ndarray) -> float:
    return float(line_search(loss, y, f, h[:, None], c)[0])


def stumps(X: np.ndarray, most: int) -> list[Stump]:
    """Candidates: the midpoints of every feature, or ``most`` quantiles of them."""
    found = []
    for j in range(X.shape[1]):
        values = np.unique(X[:, j])
        middles = 0.5 * (values[1:] + values[:-1])
        if len(middles) > most:
            middles = middles[np.linspace(0, len(middles) - 1, most).round().astype(int)]
        found += [Stump(j, float(t)) for t in middles]
    return found


def stagewise(
    X: np.ndarray, y: np.ndarray, loss: Loss, *, weight: np.ndarray | None = None, rounds: int = 50,
    max_thresholds: int = 64, start: np.ndarray | None = None, callback: Callable[[Any], bool] | None = None,
) -> Additive:  # fmt: skip
    """Forward stagewise additive modelling with stumps: each round adds the pair (v, h) that decreases the loss most."""
    if weight is not None:
        X, y, weight = X[weight > 0], y[weight > 0], weight[weight > 0]
    c = normalise_weights(weight, len(y))
    candidates = stumps(X, max_thresholds)
    function = Additive(BoostedLoss(loss, 1).start(y, weight) if start is None else start)
    f = np.full(len(y), function.start[0])
    H = np.column_stack([h.predict(X) for h in candidates]) if candidates else np.empty((len(y), 0))
    for _ in range(rounds if candidates else 0):
        v = line_search(loss, y, f, H, c)
        s = f[:, None] + v * H
        losses = c @ loss.value(np.broadcast_to(y[:, None], s.shape), s)
        # The first of those that are equal up to rounding.
        best = int(np.argmax(losses <= losses.min() + 1e-10 * abs(losses.min())))
        f = s[:, best]
        function.members.append((float(v[best]), candidates[best], 0))
        function.history.append(float(losses[best]))
        if callback is not None and callback(function.history[-1]):
            break
    return function


class _Named(Learner):
    """A Learner whose hypothesis space is built from its own parameters."""

    penalty = None
    solver = "auto"
    tol = 1e-6
    max_iter = None
    history = False

    @available_if(lambda self: self.score_loss().target.is_classes)
    def decision_function(self, X: Any) -> np.ndarray:
        """The scores f(x): one per row for two classes, one per class otherwise."""
        s = self._scores(X)
        return s[:, 1] - s[:, 0] if s.ndim == 2 and s.shape[1] == 2 else s

    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return self.function_.scores(check_predict(self, X))

    def predict(self, X: Any) -> np.ndarray:
        """Labels for classifiers; the mean (for likelihoods) or the score for regressors."""
        s, loss = self._scores(X), self.score_loss()
        if not loss.target.is_classes:
            return loss.inverse_link(s)
        return self.classes_[np.argmax(s, axis=1) if s.ndim == 2 else (s > 0).astype(int)]


class AnyBoost(_Named):
    """Gradient boosting of any regressor, for any subdifferentiable loss.

    Minimises  Σ wᵢ ℓ(yᵢ, f(xᵢ)),  f = f₀ + η Σ_t v_t h_t: f₀ is the best constant, h_t is the base learner fitted to
    −∂ℓ/∂s at the current scores, v_t the exact line search (or 1). Whether this is a regressor or a classifier follows
    from the loss.

    Parameters
    ----------
    loss : Loss
        Any loss of the library, or an object with value and gradient; ``hg.Squared()`` by default.
    estimator : regressor, optional
        ``DecisionTreeRegressor(max_depth=3)`` by default.
    n_estimators : int
        The number of rounds.
    learning_rate : float
        The shrinkage η.
    subsample : float
        The share of rows each member is fitted to.
    line_search : bool
        Whether v_t is searched for; otherwise v_t = 1.
    random_state : int
        Seed of the subsamples and of members that need one.

    Attributes
    ----------
    members_ : list of (v, h, output)
    history_ : list
        The mean training loss after each round.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> model = hg.AnyBoost(hg.Huber(0.5), n_estimators=50).fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.95)
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "estimator": [has("fit", "predict"), None],
        "n_estimators": [count()],
        "learning_rate": [above(0)],
        "subsample": [between(0, 1, "right")],
        "line_search": ["boolean"],
    }

    def __init__(
        self,
        loss: Any = None,
        estimator: Any = None,
        *,
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        subsample: float = 1.0,
        line_search: bool = True,
        random_state: int = 0,
    ) -> None:
        self.loss = loss
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.subsample = subsample
        self.line_search = line_search
        self.random_state = random_state

    @property
    def space(self) -> Boosted:
        base = DecisionTreeRegressor(max_depth=3) if self.estimator is None else self.estimator
        return Boosted(base, self.n_estimators, self.learning_rate, self.subsample, self.line_search)


class ForwardStagewise(_Named):
    """Forward stagewise additive modelling with stumps, for any loss of one score.

    Round t adds the pair that decreases the loss most:  (v_t, h_t) = argmin_{v, h} Σ wᵢ ℓ(yᵢ, f(xᵢ) + v h(xᵢ)),  where h
    is a stump with values ±1. With ``hg.Exponential()`` this is AdaBoost with v = α/2.

    Parameters
    ----------
    loss : Loss
        Any loss of one score; ``hg.Squared()`` by default.
    n_estimators : int
        The number of rounds.
    max_thresholds : int
        Candidates per feature.
    random_state : int
        Unused; there is nothing random here.

    Attributes
    ----------
    members_ : list of (v, stump, 0)
    history_ : list
        The mean training loss after each round: it never rises.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.arange(8.0)[:, None]
    >>> y = (X[:, 0] > 3).astype(float)
    >>> bool(hg.ForwardStagewise(n_estimators=5).fit(X, y).score(X, y) > 0.99)
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {"n_estimators": [count()], "max_thresholds": [count()]}

    def __init__(
        self, loss: Any = None, *, n_estimators: int = 50, max_thresholds: int = 64, random_state: int = 0
    ) -> None:
        self.loss = loss
        self.n_estimators = n_estimators
        self.max_thresholds = max_thresholds
        self.random_state = random_state

    @property
    def space(self) -> Stagewise:
        return Stagewise(self.n_estimators, self.max_thresholds)
