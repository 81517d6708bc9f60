"""Stopping rules of iterative methods, besides the tolerance of the certificate and the iteration limit.

    GradientNorm(ε)       ‖∇J‖₂ ≤ ε
    ObjectiveChange(ε)    |J_k − J_{k−1}| ≤ ε max(|J_k|, 1)
    ParameterChange(ε)    ‖(w, b)_k − (w, b)_{k−1}‖₂ ≤ ε max(‖(w, b)_k‖₂, 1)
    HeldOutLoss(X, y)     the held-out risk has not improved for `patience` evaluations; the best weights are kept

A rule is an immutable description; ``watch`` starts a run with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from hinge._native import Design
from hinge.problem.losses import normalise_weights
from hinge.problem.objective import Array, Objective


class State(NamedTuple):
    """The state of a run after an iteration, as passed to the rules."""

    objective: float
    gradient_norm: float  # nan if the method does not compute it
    x: Array  # weights and bias as one vector
    w: Array
    b: Array


class Watch:
    """One run with a rule: called after every iteration, True to stop. ``best``, if set, replaces the last iterate."""

    best: tuple[Array, Array] | None = None

    def __call__(self, state: State) -> bool:
        raise NotImplementedError


class Rule:
    """Base class of the stopping rules."""

    def watch(self, objective: Objective) -> Watch:
        raise NotImplementedError


@dataclass(frozen=True)
class GradientNorm(Rule):
    """Stop when ‖∇J‖₂ ≤ tol.

    Parameters
    ----------
    tol : float
        The length of the gradient, in units of J per unit of w.
    """

    tol: float = 1e-6

    def watch(self, objective: Objective) -> Watch:
        return _Small(self.tol, lambda before, state: state.gradient_norm, needs_two=False)


@dataclass(frozen=True)
class ObjectiveChange(Rule):
    """Stop when |J_k − J_{k−1}| ≤ tol · max(|J_k|, 1).

    Parameters
    ----------
    tol : float
        The relative change of the objective.
    """

    tol: float = 1e-9

    def watch(self, objective: Objective) -> Watch:
        return _Small(
            self.tol, lambda before, now: abs(now.objective - before.objective) / max(abs(now.objective), 1.0)
        )


@dataclass(frozen=True)
class ParameterChange(Rule):
    """Stop when ‖x_k − x_{k−1}‖₂ ≤ tol · max(‖x_k‖₂, 1), x = (w, b).

    Parameters
    ----------
    tol : float
        The relative change of the weights and the bias.
    """

    tol: float = 1e-6

    def watch(self, objective: Objective) -> Watch:
        return _Small(
            self.tol,
            lambda before, now: float(np.linalg.norm(now.x - before.x)) / max(float(np.linalg.norm(now.x)), 1.0),
        )


@dataclass(frozen=True, eq=False)
class HeldOutLoss(Rule):
    """Stop when the risk on held-out examples stops improving, and return the best weights.

    Parameters
    ----------
    X, y : held-out examples, y coded as the loss wants it (−1/+1, or 0 … k−1)
        Examples the solver does not see.
    sample_weight : weights of the held-out examples, optional
        How much each counts; all the same by default.
    patience : int
        How many looks without an improvement to wait for.
    min_change : float
        An improvement counts if it is at least this much.
    """

    X: Any = field(repr=False)
    y: Any = field(repr=False)
    sample_weight: Any = field(default=None, repr=False)
    patience: int = 5
    min_change: float = 0.0

    def watch(self, objective: Objective) -> Watch:
        return _HeldOut(self, objective)


class _Small(Watch):
    def __init__(self, tol: float, measure: Any, needs_two: bool = True) -> None:
        self._tol, self._measure, self._needs_two = tol, measure, needs_two
        self._before: State | None = None

    def __call__(self, state: State) -> bool:
        before, self._before = self._before, state._replace(x=state.x.copy())
        if before is None and self._needs_two:
            return False
        return bool(self._measure(before, state) <= self._tol)


class _HeldOut(Watch):
    def __init__(self, rule: HeldOutLoss, objective: Objective) -> None:
        self._rule, self._design, self._loss = rule, Design(rule.X), objective.loss
        self._y = np.ascontiguousarray(rule.y, dtype=np.float64)
        self._c = normalise_weights(rule.sample_weight, len(self._y))
        self._lowest, self._waited = np.inf, 0

    def __call__(self, state: State) -> bool:
        z = self._design.matmul(state.w)
        z = z + (state.b[0] if state.w.ndim == 1 else state.b)
        risk = float(np.sum(self._c @ self._loss.value(self._y, z)))
        if risk < self._lowest - self._rule.min_change:
            self._lowest, self._waited, self.best = risk, 0, (state.w.copy(), state.b.copy())
        else:
            self._waited += 1
        return self._waited >= self._rule.patience


class Watches:
    """Several rules: stops with the first one that is met."""

    def __init__(self, rules: tuple[Rule, ...] | Rule, objective: Objective) -> None:
        self._watches = [rule.watch(objective) for rule in ((rules,) if isinstance(rules, Rule) else rules)]

    def __call__(self, state: State) -> bool:
        verdicts = [watch(state) for watch in self._watches]  # every rule is called at every iteration
        return any(verdicts)

    def final(self, w: Array, b: Array) -> tuple[Array, Array]:
        """The weights to return: the best ones of a held-out rule, the last ones otherwise."""
        for watch in self._watches:
            if watch.best is not None:
                return watch.best
        return w, b
