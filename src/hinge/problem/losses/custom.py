"""User-defined losses: any object with ``value(y, s)`` and ``gradient(y, s)``, optionally ``hessian(y, s)``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from hinge.problem.losses.base import Array, Kink, Loss, Target, normalise_weights
from hinge.problem.losses.probe import LossFacts, probe, sample_targets

SCORES = (-7.3, -1.9, -0.6, 0.4, 1.7, 8.2)  # at which declared kinks are compared with values


@dataclass(frozen=True, eq=False)
class CustomLoss(Loss):
    """Wraps a user-defined loss: any object, or a subclass of :class:`Loss` outside the library.

    Its values are probed once (see :func:`probe_loss`). Its declarations (``target``, ``smooth``, ``convex``,
    ``curvature``, ``conjugate`` with ``dual_interval``, ``inverse_link``, …) are used unless samples refute them; a refuted
    declaration is an error, and so is a wrong gradient. Properties that are not declared are inferred from samples, and then
    no duality gap is claimed. Nothing has to be registered.
    """

    compiled: ClassVar[bool] = False

    definition: Any = None
    sample: Array | None = None  # targets for the probe

    def __post_init__(self) -> None:
        d = self.definition
        missing = [name for name in ("value", "gradient") if not callable(self._declared(name, None))]
        if missing:
            raise TypeError(
                f"loss must be a hinge loss or an object with value(y, s) and gradient(y, s); "
                f"{type(d).__name__} has no {' and no '.join(missing)}."
            )

    def _declared(self, name: str, default: Any) -> Any:
        """The definition's attribute of this name; attributes inherited from :class:`Loss` are not declarations."""
        d = self.definition
        if isinstance(d, Loss) and not _is_builtin(d) and name not in getattr(d, "__dict__", {}):
            owner = next((c for c in type(d).__mro__ if name in c.__dict__), Loss)
            if owner is Loss:
                return default
        return getattr(d, name, default)

    @cached_property
    def facts(self) -> LossFacts:
        """The results of the probe."""
        return probe(self.definition, self._declared, self.sample)

    @property
    def target(self) -> Target:  # type: ignore[override]
        return self._declared("target", Target.REAL)

    @property
    def outputs(self) -> str:  # type: ignore[override]
        return self._declared("outputs", "one")

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        """As declared; otherwise True, because gradient methods make progress on losses with kinks too."""
        return bool(self._declared("smooth", True))

    @property
    def convex(self) -> bool:  # type: ignore[override]
        return self.facts.convex

    @property
    def declared_convex(self) -> bool:
        return self.facts.declared_convex

    @property
    def twice_differentiable(self) -> bool:  # type: ignore[override]
        return self.facts.twice_differentiable

    @property
    def has_conjugate(self) -> bool:  # type: ignore[override]
        """A conjugate bounds the optimum only if the loss is convex, which samples cannot prove."""
        return self.declared_convex and callable(self._declared("conjugate", None))

    @cached_property
    def piecewise_linear(self) -> bool:  # type: ignore[override]
        """As declared or inherited, if the kinks reproduce the differences of values."""
        if not bool(self._declared("piecewise_linear", False)) or self.outputs != "one":
            return False
        y = np.repeat(np.ones(1) if self.sample is None else self.sample, len(SCORES))
        s = np.tile(np.array(SCORES), len(y) // len(SCORES))
        found = self.value(y, s) - self.value(y, 0.0 * s)
        parts = [np.maximum(k.low * (t - k.at), k.high * (t - k.at)) * sign
                 for t, sign in ((s, 1.0), (0.0 * s, -1.0)) for k in self.kinks(y)]  # fmt: skip
        return bool(np.allclose(found, np.sum(parts, axis=0), rtol=1e-9, atol=1e-9))

    def kinks(self, y: Array) -> list[Kink]:
        declared = self._declared("kinks", None)
        return super().kinks(y) if declared is None else declared(y)

    @property
    def curvature(self) -> float:
        return self.facts.curvature

    def value(self, y: Array, s: Array) -> Array:
        with np.errstate(all="ignore"):  # searches evaluate extreme scores
            return self.definition.value(y, s)

    def gradient(self, y: Array, s: Array) -> Array:
        with np.errstate(all="ignore"):  # searches evaluate extreme scores
            return self.definition.gradient(y, s)

    def hessian(self, y: Array, s: Array) -> Array:
        with np.errstate(all="ignore"):  # searches evaluate extreme scores
            return self.definition.hessian(y, s)

    def conjugate(self, y: Array, u: Array) -> Array:
        return self.definition.conjugate(y, u)

    def dual_interval(self, y: Array) -> tuple[Array | float, Array | float]:
        declared = self._declared("dual_interval", None)
        return super().dual_interval(y) if declared is None else declared(y)

    def subgradients(self, y: Array, s: Array) -> tuple[Array, Array]:
        own = self._declared("subgradients", None)
        return super().subgradients(y, s) if own is None else own(y, s)

    def prox(self, y: Array, v: Array, step: float) -> Array:
        own = self._declared("prox", None)
        return super().prox(y, v, step) if own is None else own(y, v, step)

    def inverse_link(self, s: Array) -> Array:
        own = self._declared("inverse_link", None)
        return s if own is None else own(s)

    def baseline(self, y: ArrayLike, weight: ArrayLike | None = None) -> float:
        """argmin_b Σ cᵢ ℓ(yᵢ, b): by the gradient if the loss is convex, otherwise by a search over values."""
        own = self._declared("baseline", None)
        if own is not None:
            return float(own(y, weight))
        if self.convex:
            return super().baseline(y, weight)
        y = np.asarray(y, dtype=np.float64)
        return best_constant(self, y, normalise_weights(weight, len(y)))

    def __repr__(self) -> str:
        return repr(self.definition)


def best_constant(loss: Loss, y: Array, c: Array) -> float:
    """argmin_b Σ cᵢ ℓ(yᵢ, b) for any loss: the best of a grid, refined by golden-section search between its neighbours.

    A bounded margin loss may have its infimum at infinity, where all gradients vanish and no solver could leave; then zero.
    """
    grid = np.geomspace(1e-3, loss.score_span(y), 40)
    found = [np.array([0.0]), grid, -grid]
    if not loss.target.is_classes:
        found.append(np.quantile(y, np.linspace(0, 1, 101)))
    places = np.unique(np.concatenate(found))

    def risk(b: float) -> float:
        with np.errstate(all="ignore"):
            r = float(c @ loss.value(y, np.full_like(y, b)))
        return r if np.isfinite(r) else np.inf

    risks = np.array([risk(b) for b in places])
    k = int(np.argmin(risks))
    low, high = places[max(k - 1, 0)], places[min(k + 1, len(places) - 1)]
    ratio = 0.5 * (np.sqrt(5.0) - 1.0)
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    at_a, at_b = risk(a), risk(b)
    while high - low > 1e-9 * (1e-9 + abs(low) + abs(high)):
        if at_a <= at_b:
            high, b, at_b = b, a, at_a
            a = high - ratio * (high - low)
            at_a = risk(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + ratio * (high - low)
            at_b = risk(b)
    best = 0.5 * (low + high) if risk(0.5 * (low + high)) <= risks[k] else places[k]
    there, at_zero = (np.max(np.abs(loss.gradient(y, np.full_like(y, b)))) for b in (best, 0.0))
    return 0.0 if there <= 1e-6 * at_zero else float(best)


def _is_builtin(loss: Any) -> bool:
    """Whether the library defines the loss; its declarations are covered by the library's tests."""
    return isinstance(loss, Loss) and type(loss).__module__.partition(".")[0] == "hinge"


def as_loss(loss: Any, y: ArrayLike | None = None) -> Loss:
    """The loss itself if the library defines it, otherwise wrapped; y: targets for its probe."""
    if isinstance(loss, CustomLoss):
        return loss if y is None else CustomLoss(loss.definition, sample_targets(y))
    if _is_builtin(loss):
        return loss
    return CustomLoss(loss, None if y is None else sample_targets(y))


def probe_loss(loss: Any, y: ArrayLike | None = None) -> LossFacts:
    """Determine properties of a loss from samples: a right gradient, convexity, kinks, second derivative.

    Samples can refute a property, but not prove it: a loss that is convex on every sample but does not declare
    ``convex = True`` is treated as convex where a mistake only costs time, and its certificate is a stationarity residual,
    never a gap. A gradient that is not the derivative of the value is an error.

    Parameters
    ----------
    loss : Loss or object with value(y, s) and gradient(y, s)
        What is to be examined.
    y : array, optional
        Targets to take samples from.

    Returns
    -------
    LossFacts
        With ``explain()``, one sentence.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> class Cauchy:
    ...     def value(self, y, s):
    ...         return np.log1p((y - s) ** 2)
    ...     def gradient(self, y, s):
    ...         return 2 * (s - y) / (1 + (y - s) ** 2)
    >>> hg.probe_loss(Cauchy()).convex
    False
    """
    definition = loss.definition if isinstance(loss, CustomLoss) else loss
    return CustomLoss(definition, None if y is None else sample_targets(y)).facts


__all__ = ["CustomLoss", "LossFacts", "as_loss", "best_constant", "probe_loss"]
