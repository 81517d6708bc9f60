"""Block coordinate descent for least squares with several targets under a penalty on the rows of the weights.

Problem     min_{W,b} ½ Σ cᵢ ‖yᵢ − W'xᵢ − b‖² + Σ_j (l1_j ‖w_j‖₂ + l2_j/2 ‖w_j‖²),   w_j the weights of feature j
Step        w_j ← max(0, 1 − l1_j/‖v‖) v / (g_jj + l2_j),   v = r_j + g_jj w_j,   g = X'CX,   r = X'C(Y − XW − 1b')
Dual        residuals Y − XW − 1b', scaled until ‖r_j‖ ≤ l1_j where l2_j = 0
Optimality  ‖r_j‖ ≤ l1_j where w_j = 0;  r_j = l1_j w_j/‖w_j‖ + l2_j w_j elsewhere
Method      rounds over the features of a working set, whose Gram matrix g is computed once: all features if they are
            few, otherwise those with weights and the worst violators. Then r is recomputed from X
Reference   Simon, Friedman & Hastie (2013); Massias, Gramfort & Salmon (2018) for the working sets;
            native/solvers/block_descent.hpp
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from hinge._native import Design, core
from hinge.problem.numerics import weighted_sum
from hinge.problem.objective import Array, Objective
from hinge.solvers.base import Need, Solution, Solver, Status, Stop

FEW = 1000  # features up to which the full Gram matrix is computed
FIRST = 10  # size of the first working set
SHARE = 0.3  # share of the tolerance to which rounds on the Gram matrix converge
PROGRESS = 0.9  # a gap that is not below this share of the last one has stalled
PATIENCE = 3  # stalled rounds before the solver gives up


class BlockCoordinateDescent(Solver):
    """Updates the weights of one feature for all targets at a time."""

    name: ClassVar[str] = "block-coordinate-descent"
    shifts: ClassVar[bool] = True
    needs: ClassVar[tuple[Need, ...]] = (Need.SQUARED, Need.ROW_NORMS, Need.SEVERAL_OUTPUTS, Need.NO_OFFSET)
    default_max_iter: ClassVar[int] = 20_000

    def run(self, objective: Objective, w: Array, b: Array, stop: Stop) -> Solution:
        return _descend(_Centred(objective), objective, w, stop)


def block_path(
    objective: Objective,
    strengths: Array,
    *,
    tol: float = 1e-6,
    max_iter: int = BlockCoordinateDescent.default_max_iter,
) -> tuple[Array, Array]:
    """Weights (strengths × features × targets) and biases for the objective's penalty times each strength, uncertified.

    Strengths should decrease: every solution is the start of the next.
    """
    data = _Centred(objective)
    w = objective.zero()[0]
    if objective.d <= FEW:
        every = np.arange(objective.d)
        W = data.rounds(every, data.gradients(data.Y), w, data.rows(objective), strengths, SHARE * tol, max_iter)[0]
    else:
        found = []
        for strength in strengths:
            at = objective.with_penalty(objective.penalty.with_strength(float(strength)))
            w = _descend(data, at, w, Stop(tol=tol, max_iter=max_iter)).w.copy()
            found.append(w)
        W = np.array(found)
    return W, np.array([data.bias(w) for w in W])


class _Centred:
    """The examples minus their means, if there is a bias: the bias of the centred problem is zero at the optimum."""

    def __init__(self, objective: Objective) -> None:
        self.c, self.design = objective.c, objective.design
        self.x = self.design.rmatmul(self.c) if objective.fit_intercept else np.zeros(objective.d)
        self.y = weighted_sum(self.c, objective.y) if objective.fit_intercept else np.zeros(objective.outputs)
        self.fit_intercept = objective.fit_intercept
        self._shift = self.x
        source = self.design.source
        if objective.fit_intercept and isinstance(source, np.ndarray):  # so that products do not cancel
            self.design, self._shift = Design(source - self.x), np.zeros(objective.d)
        self.Y = objective.y - self.y
        self.squares = float(np.sum(weighted_sum(self.c, self.Y**2)))
        self._set, self._gram = np.zeros(0, dtype=np.intp), np.zeros((0, 0))

    def bias(self, w: Array) -> Array:
        return self.y - self.x @ w

    def residuals(self, w: Array) -> Array:
        return self.Y - self.design.matmul(w) + self._shift @ w

    def gradients(self, E: Array) -> Array:
        """Row j: Σ cᵢ xᵢⱼ eᵢ of the centred features."""
        cE = self.c[:, None] * E
        return self.design.rmatmul(cE) - np.outer(self._shift, cE.sum(axis=0))

    def gram(self, which: np.ndarray) -> Array:
        """X'CX of some features."""
        if not np.array_equal(which, self._set):
            if len(which) == self.design.shape[1]:
                self._gram = self.design.gram(self.c) - np.outer(self._shift, self._shift)
            else:
                columns = self.design.columns(which) - self._shift[which]
                self._gram = (columns * self.c[:, None]).T @ columns
            self._set = which
        return self._gram

    def rows(self, objective: Objective) -> tuple[Array, Array]:
        found = objective.penalty.rows(objective.d)
        assert found is not None
        return found.l1, found.l2

    def rounds(
        self, which: np.ndarray, R: Array, w: Array, parts: tuple[Array, Array], strengths: Array, tol: float, most: int
    ) -> tuple[Array, int]:
        """The weights after rounds over some features for every strength, and their number; R is the gradient at w."""
        G, own = self.gram(which), np.ascontiguousarray(w[which])
        l1, l2 = (np.ascontiguousarray(part[which]) for part in parts)
        problem = core.BlockProblem(G=np.ascontiguousarray(G), Q=R[which] + G @ own, s=self.squares, l1=l1, l2=l2)
        W, rounds, _ = core.block_path(problem, own, np.ascontiguousarray(strengths, dtype=np.float64), tol, most)
        found = np.zeros((len(strengths), *w.shape))
        found[:, which] = W.reshape(len(strengths), *own.shape)
        return found, int(rounds.sum())


def _descend(data: _Centred, objective: Objective, w: Array, stop: Stop) -> Solution:
    d, parts = objective.d, data.rows(objective)
    l1 = parts[0]
    which = np.arange(d) if d <= FEW else np.zeros(0, dtype=np.intp)
    rounds, before, lost, status = 0, np.inf, 0, Status.MAX_ITER
    while True:
        E = data.residuals(w)
        R = data.gradients(E)
        primal, gap = _gap(data, objective, w, E, R)
        if rounds > 0 and stop.report(rounds, primal, gap / max(primal, 1e-300), w, data.bias(w)):
            status = Status.STOPPED
            break
        if gap <= stop.tol * primal:
            status = Status.CONVERGED
            break
        lost = lost + 1 if gap > PROGRESS * before and not stop.watched else 0
        if lost >= PATIENCE:
            status = Status.STALLED
            break
        if rounds >= stop.max_iter:
            break
        aim = SHARE * stop.tol
        if d > FEW:
            wider = _working_set(which, w, np.linalg.norm(R, axis=1) - l1)
            lost = lost if len(wider) == len(which) else 0
            which = wider
            aim = max(aim, SHARE * gap / primal)
        most = 1 if stop.watched else stop.max_iter - rounds
        W, count = data.rounds(which, R, w, parts, np.ones(1), aim, most)
        # Without a round, the Gram matrix shows no violation except for rounding.
        w, rounds, before = W[0], rounds + max(count, 1), gap
    return Solution(w, data.bias(w), status, max(rounds, 1), -E)


def _gap(data: _Centred, objective: Objective, w: Array, E: Array, R: Array) -> tuple[float, float]:
    """The objective and its gap at w with the best bias, from the residuals E and R = X'CE."""
    penalty = objective.penalty
    errors = float(np.sum(weighted_sum(data.c, E**2)))
    cross = float(np.sum(weighted_sum(data.c, E * data.Y)))
    scale = penalty.dual_scale(R)
    primal = 0.5 * errors + penalty.value(w)
    return primal, primal - scale * cross + 0.5 * scale**2 * errors + penalty.conjugate(scale * R)


def _working_set(which: np.ndarray, w: Array, excess: Array) -> np.ndarray:
    """Features with weights, those of the last set, and as many of the others, by the largest violation."""
    inside = np.any(w != 0, axis=1)
    inside[which] = True
    outside = np.flatnonzero((excess > 0) & ~inside)
    room = max(FIRST, int(inside.sum()))
    if len(outside) > room:
        outside = outside[np.argpartition(-excess[outside], room)[:room]]
    inside[outside] = True
    return np.flatnonzero(inside)
