"""Properties of a loss from its values: whether its gradient is right, whether it is convex, whether it has kinks.

A user-defined loss has ``value(y, s)``, ``gradient(y, s)`` and perhaps a few declarations. The probe evaluates it on a
grid of targets and scores.

gradient     by the mean value theorem (ℓ(s + h) − ℓ(s − h)) / 2h lies between the least and the largest gradient on
             [s − h, s + h]; a difference quotient outside is a wrong gradient, and an error
convexity    gradients that never fall along s, and values that lie below every chord
kinks        jumps of the gradient that do not shrink when the interval around them is halved again and again
hessian      compared with differences of the gradient, as the gradient is with those of the value
curvature    the largest difference quotient of the gradient: a lower bound of the bound, so it can only refute one
conjugate    Fenchel–Young: ℓ*(y, u) = us − ℓ(y, s) at u = ℓ'(y, s), and ≥ at every other s

Samples can refute a property, but not prove it. The results are used where a mistake only costs time: to choose a solver,
a start and steps. A certificate claims a duality gap only for a loss that *declares* ``convex = True`` and a conjugate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hinge.problem.losses.base import Array, Target

TARGETS = 24
DISTANCES = np.array([0.0, 0.03, 0.3, 0.75, 1.5, 3.0, 6.0, 20.0])
HALVINGS = 40
STEP = 1e-3  # of the difference quotients, relative to the size of the scores
SLACK = 1e-3  # smaller differences, as a fraction of the largest gradient nearby, are ignored


@dataclass(frozen=True)
class LossFacts:
    """The properties of a loss.

    Attributes
    ----------
    convex : bool
        Declared and not refuted, or true on every sample.
    declared_convex : bool
        The loss declares it: only then may a certificate be a duality gap.
    smooth : bool
        No kink was found (or the loss declares whether it has any).
    twice_differentiable : bool
        It has a ``hessian`` that agrees with its gradient.
    curvature : float
        The declared bound of the second derivative; inf if there is none.
    steepest : float
        The largest difference quotient of the gradient on the samples.
    notes : tuple of str
        What could not be established, and what would.
    """

    convex: bool
    declared_convex: bool
    smooth: bool
    twice_differentiable: bool
    curvature: float
    steepest: float
    notes: tuple[str, ...] = ()

    def explain(self) -> str:
        """One sentence on the properties found."""
        shape = "convex" if self.convex else "not convex"
        origin = "as declared" if self.declared_convex else "on samples"
        parts = [f"The loss is {shape} ({origin})", "differentiable" if self.smooth else "has kinks"]
        parts.append("has a second derivative" if self.twice_differentiable else "has no second derivative to use")
        return "; ".join([", ".join(parts), *self.notes]) + "."


def probe(definition: Any, declared: Callable[[str, Any], Any], y: Array | None = None) -> LossFacts:
    """Evaluate a loss on a grid and compare its declarations with its values.

    Parameters
    ----------
    definition : object with value and gradient
    declared : function of a name and a default
        What the loss declares about itself.
    y : array, optional
        A few targets (see :func:`sample_targets`); a spread of numbers that ``target`` admits by default.
    """
    name = type(definition).__name__
    target = declared("target", Target.REAL)
    if declared("outputs", "one") != "one" or target is Target.CLASSES:
        return _believed(declared, "a loss with several scores per example is not probed")
    table = _Table(definition, _targets(target, y))
    if not table.known.any():
        return _believed(declared, "the loss is finite at none of the samples")
    _check_gradient(name, table)
    notes: list[str] = []
    declares = bool(declared("convex", False))
    bent = _refutation(table)
    if declares and bent is not None:
        raise ValueError(
            f"{name} declares convex = True, but it is not: at y = {bent[0]:.4g} its gradient falls or its value exceeds "
            f"a chord near s = {bent[1]:.4g}. Remove the declaration or correct the loss."
        )
    convex = declares or (declared("convex", None) is None and bent is None)
    if convex and not declares:
        notes.append("convexity was found on samples only: declare convex = True if it is a fact")
    kinks, steepest = _kinks(table)
    smooth = bool(declared("smooth", not kinks))
    if kinks and declared("smooth", None) is None:
        notes.append("a gradient method may stop short at its kinks: declare smooth = False, and a conjugate for a gap")
    twice = callable(declared("hessian", None)) and bool(declared("twice_differentiable", True))
    if twice and not _hessian_fits(table):
        twice = False
        notes.append("its hessian is not the derivative of its gradient and is not used")
    curvature = float(declared("curvature", np.inf))
    if not kinks and steepest > curvature * (1.0 + SLACK):
        raise ValueError(
            f"{name} declares curvature = {curvature:.6g}, but its gradient grows by {steepest:.6g} per unit of s. "
            "Declare an upper bound of the second derivative, or none."
        )
    if callable(declared("conjugate", None)):
        _check_conjugate(name, definition, table, convex)
        if not declares:
            notes.append("its conjugate proves nothing unless convex = True is declared")
    return LossFacts(convex, declares, smooth, twice, curvature, steepest, tuple(notes))


def _believed(declared: Callable[[str, Any], Any], note: str) -> LossFacts:
    """The declarations without a check, if nothing can be evaluated."""
    convex = bool(declared("convex", False))
    return LossFacts(
        convex=convex,
        declared_convex=convex,
        smooth=bool(declared("smooth", True)),
        twice_differentiable=callable(declared("hessian", None)) and bool(declared("twice_differentiable", True)),
        curvature=float(declared("curvature", np.inf)),
        steepest=np.nan,
        notes=(note,),
    )


class _Table:
    """Targets × sorted scores with their values and gradients; ``known`` where both are finite."""

    def __init__(self, definition: Any, y: Array) -> None:
        self.definition, self.y = definition, y
        spread = max(float(np.std(y)), 1e-3 * float(np.max(np.abs(y))), 1e-6)
        offsets = np.concatenate([-DISTANCES[::-1], DISTANCES[1:]])
        jitter = np.random.default_rng(0).uniform(0.9, 1.1, size=(len(y), 3 * len(offsets)))
        # Scores around zero for links and margins, and around the target for residuals, on the scale of the targets and on
        # the unit scale. They are offset a little, because kinks are at the exact points.
        parts = [jitter[:, : len(offsets)] * (offsets + 0.0137)]
        for k, scale in enumerate((spread, 1.0), start=1):
            parts.append(y[:, None] + scale * jitter[:, k * len(offsets) : (k + 1) * len(offsets)] * (offsets + 0.0173))
        self.s = np.sort(np.concatenate(parts, axis=1), axis=1)
        self.h = STEP * np.maximum(np.abs(self.s), min(1.0, spread))
        self.value, self.gradient = self.values(self.s), self.gradients(self.s)
        self.known = np.isfinite(self.value) & np.isfinite(self.gradient)
        # For larger values, rounding errors exceed their differences.
        self.known &= np.abs(self.value) < 1e100

    def values(self, s: Array) -> Array:
        return self.call("value", s)

    def gradients(self, s: Array) -> Array:
        return self.call("gradient", s)

    def call(self, method: str, s: Array) -> Array:
        y = np.broadcast_to(self.y[:, None], s.shape).ravel()
        with np.errstate(all="ignore"):
            found = np.asarray(getattr(self.definition, method)(y, s.ravel()))
        if found.shape != y.shape:
            raise ValueError(
                f"{method} of {type(self.definition).__name__} returns an array of shape {found.shape} for {len(y)} "
                "examples; it must return one number per example."
            )
        self.rounding = float(np.finfo(found.dtype).eps) if found.dtype.kind == "f" else 2.3e-16
        return found.astype(np.float64).reshape(s.shape)


def sample_targets(y: ArrayLike) -> Array:
    """A few of the targets, from the smallest to the largest."""
    values = np.asarray(y, dtype=np.float64).ravel()
    return np.unique(np.quantile(values, np.linspace(0, 1, TARGETS), method="nearest")) if len(values) else values


def _targets(target: Target, y: Array | None) -> Array:
    if target is Target.SIGN:
        return np.array([-1.0, 1.0])
    if y is not None and len(y):
        return y
    if target is Target.UNIT:
        return np.linspace(0.0, 1.0, TARGETS)
    sizes = np.geomspace(0.05, 20.0, TARGETS // 2)
    if target in (Target.POSITIVE, Target.NONNEGATIVE):
        return sizes
    return np.concatenate([-sizes, sizes])


def _between(quotient: Array, gradients: list[Array], noise: Array) -> np.ndarray:
    """Whether a difference quotient lies between the derivatives at both ends and in the middle of its interval."""
    low, middle, high = gradients
    least, most = np.minimum(np.minimum(low, middle), high), np.maximum(np.maximum(low, middle), high)
    slack = SLACK * np.maximum(np.abs(least), np.abs(most)) + np.abs(low - 2 * middle + high) + noise
    return (quotient >= least - slack) & (quotient <= most + slack)


def _check_gradient(name: str, t: _Table) -> None:
    wrong = t.known.copy()
    for step in (1.0, 0.05):  # a jump of the value affects only one of them
        h = step * t.h
        up, down = t.values(t.s + h), t.values(t.s - h)
        noise = 8.0 * t.rounding * (np.abs(up) + np.abs(down)) / h
        quotient = (up - down) / (2.0 * h)
        gradients = [t.gradients(t.s - h), t.gradient, t.gradients(t.s + h)]
        checked = np.isfinite(quotient) & np.all(np.isfinite(gradients), axis=0)
        wrong &= checked & ~_between(quotient, gradients, noise)
    if not wrong.any():
        return
    i, j = np.unravel_index(np.argmax(np.where(wrong, np.abs(quotient - t.gradient), -1.0)), wrong.shape)
    ratio = t.gradient[wrong] / np.where(quotient[wrong] == 0, np.nan, quotient[wrong])
    factor = float(np.median(ratio))
    steady = wrong.sum() > 3 and np.all(np.abs(ratio - factor) <= 1e-2 * abs(factor))
    remark = f" It is {factor:.3g} times the derivative everywhere." if steady else ""
    raise ValueError(
        f"gradient of {name} is not the derivative of its value: at y = {t.y[i]:.4g}, s = {t.s[i, j]:.4g} the value "
        f"changes by {quotient[i, j]:.6g} per unit of s, and gradient returns {t.gradient[i, j]:.6g}.{remark}"
    )


def _refutation(t: _Table) -> tuple[float, float] | None:
    """(y, s) at which the loss is not convex; None if no sample shows it."""
    size = np.maximum(np.abs(t.gradient[:, 1:]), np.abs(t.gradient[:, :-1]))
    falls = np.diff(t.gradient, axis=1) < -1e3 * t.rounding * (size + 1e-3 * _largest(t.gradient, t.known))
    falls &= t.known[:, 1:] & t.known[:, :-1]
    for reach in (1, 3, 7):
        a, b, c = t.s[:, : -2 * reach], t.s[:, reach:-reach], t.s[:, 2 * reach :]
        left, middle, right = t.value[:, : -2 * reach], t.value[:, reach:-reach], t.value[:, 2 * reach :]
        share = np.where(c > a, (b - a) / np.where(c > a, c - a, 1.0), 0.5)
        with np.errstate(invalid="ignore"):
            above = middle - ((1 - share) * left + share * right)
            noise = 1e3 * t.rounding * (np.abs(left) + np.abs(right) + np.abs(middle))
        known = t.known[:, : -2 * reach] & t.known[:, reach:-reach] & t.known[:, 2 * reach :]
        falls[:, reach - 1 : reach - 1 + above.shape[1]] |= known & (above > noise)
    if not falls.any():
        return None
    i, j = np.unravel_index(np.argmax(falls), falls.shape)
    return float(t.y[i]), float(t.s[i, j])


def _largest(values: Array, known: np.ndarray) -> float:
    return float(np.max(np.abs(values), where=known, initial=0.0))


def _kinks(t: _Table) -> tuple[bool, float]:
    """Whether the gradient jumps somewhere, and the largest difference quotient of the gradient."""
    a, b, ga, gb = t.s[:, :-1].copy(), t.s[:, 1:].copy(), t.gradient[:, :-1].copy(), t.gradient[:, 1:].copy()
    known = t.known[:, :-1] & t.known[:, 1:] & (b > a)
    first = np.abs(gb - ga)
    with np.errstate(all="ignore"):
        steepest = float(np.max(first / (b - a), where=known, initial=0.0))
        for _ in range(HALVINGS):
            middle = 0.5 * (a + b)
            g = t.gradients(middle)
            left = np.abs(g - ga) >= np.abs(gb - g)
            b, gb = np.where(left, middle, b), np.where(left, g, gb)
            a, ga = np.where(left, a, middle), np.where(left, ga, g)
        jump = known & np.isfinite(ga) & np.isfinite(gb) & (np.abs(gb - ga) > 1e-3 * np.maximum(first, 1e-9))
    scale = _largest(t.gradient, t.known)
    return bool(np.any(jump & (np.abs(gb - ga) > 1e-6 * scale) & (scale > 0))), steepest


def _hessian_fits(t: _Table) -> bool:
    wrong = t.known.copy()
    for step in (1.0, 0.05):
        h = step * t.h
        up, down = t.gradients(t.s + h), t.gradients(t.s - h)
        quotient = (up - down) / (2.0 * h)
        seconds = [t.call("hessian", t.s - h), t.call("hessian", t.s), t.call("hessian", t.s + h)]
        noise = 8.0 * t.rounding * (np.abs(up) + np.abs(down) + np.abs(t.s)) / h
        noise += SLACK * _largest(quotient, np.isfinite(quotient) & t.known)
        wrong &= np.isfinite(quotient) & np.all(np.isfinite(seconds), axis=0) & ~_between(quotient, seconds, noise)
    return not np.any(wrong)


def _check_conjugate(name: str, definition: Any, t: _Table, convex: bool) -> None:
    if not convex:
        return
    rows, columns = np.nonzero(t.known)
    y, u = t.y[rows], t.gradient[rows, columns]
    with np.errstate(all="ignore"):
        found = np.asarray(definition.conjugate(y, u), dtype=np.float64)
        least = np.max(np.where(t.known[rows], u[:, None] * t.s[rows] - t.value[rows], -np.inf), axis=1)
    size = np.abs(u * t.s[rows, columns]) + np.abs(t.value[rows, columns]) + 1e-9
    # u is an observed gradient, so the conjugate is finite there (unless rounding puts u just outside its domain) and
    # equal to us − ℓ(y, s): a smaller value would be a false bound, a larger one would be no bound.
    wrong = np.isfinite(found) & ((found < least - 1e-6 * size) | (found > least + 1e-6 * size + SLACK * np.abs(least)))
    if np.any(wrong):
        i = int(np.argmax(wrong))
        raise ValueError(
            f"conjugate of {name} is not that of its value: at y = {y[i]:.4g}, u = {u[i]:.4g} the supremum of us − ℓ(y, s) "
            f"is {least[i]:.6g}, and conjugate returns {found[i]:.6g}."
        )
