"""Piecewise linear losses over blocks: examples near a kink are kept, the others are merged.

Problem     min_{w,b} Σ cᵢ ℓ(yᵢ, xᵢ'w + b) + Ω(w), ℓ made of straight pieces (hinge, absolute, quantile, ε-insensitive)
Reduction   at weights w, examples on one piece at similar distances from a kink become one example: their mean, with the sum of
            their weights. There the loss of the mean is the mean of the losses; elsewhere it is smaller (Jensen), so the
            optimum of the reduced problem is a lower bound of the optimum of all examples.
Method      reduce at w, minimise in memory, and step towards that minimiser as far as J decreases; one pass gives J and the reduction
Returns     the weights with the smallest J; the certified gap is J minus the largest lower bound
Reference   Evgeniou, Pontil & Elisseeff (2003) reduce to examples near kinks; DuMouchel et al. (1999) merge examples
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse

from hinge.blocks.block import Block
from hinge.blocks.problem import BlockProblem, View
from hinge.blocks.survey import Sample
from hinge.problem.certificates.certificate import Certificate, with_run
from hinge.problem.certificates.linear import conclude
from hinge.problem.losses import Absolute, EpsilonInsensitive, Hinge, Loss, PerceptronLoss, Quantile
from hinge.problem.losses.base import Target
from hinge.problem.objective import Array, make_objective
from hinge.solvers.base import Record, Solution, Status
from hinge.solvers.run import Result, solve

NAME = "reduction-over-blocks"
MERGEABLE = (Hinge, PerceptronLoss, Absolute, Quantile, EpsilonInsensitive)  # convex in target and score together
KEPT_BYTES, LEAST_KEPT = 32 << 20, 1000
DEFAULT_MAX_ITER = 60
SHARE = 0.25  # the problems in memory are solved to this share of the tolerance
SHORTER, SHORTEST = 0.4, 1e-3  # a step that does not lower the objective is shortened, down to this
NEAREST = 1e-9  # lower bound of distances from a kink, as a share of the scores


@dataclass(frozen=True, eq=False)
class Reduced:
    """Rows near kinks, and groups of rows far from them.

    Attributes
    ----------
    X, y, c : arrays
        Features, targets and weights of the rows that are kept.
    distance, piece : arrays
        How far their scores are from the nearest kink, and the numbers of their pieces.
    groups : dict
        Number of the piece and of the distance → weight, Σ c x and Σ c y.
    most : int
        How many rows are kept.
    """

    X: Array
    y: Array
    c: Array
    distance: Array
    piece: Array
    groups: dict[tuple[int, int], tuple[float, Array, float]]
    most: int

    def merge(self, other: Reduced) -> Reduced:
        """The rows and groups of both; if there are too many rows, the farthest ones join the groups."""
        groups = dict(self.groups)
        for key, more in other.groups.items():
            old = groups.get(key)
            groups[key] = more if old is None else (old[0] + more[0], old[1] + more[1], old[2] + more[2])
        X, y, c, distance, piece = (np.concatenate([getattr(self, name), getattr(other, name)]) for name in ROWS)
        return reduced(X, y, c, distance, piece, groups, self.most)

    def examples(self) -> tuple[Array, Array, Array]:
        """Features, targets and weights of the reduced problem."""
        sums = [self.groups[key] for key in sorted(self.groups)]
        weight = np.array([s[0] for s in sums])
        X = np.vstack([self.X, *(s[1] / s[0] for s in sums)])
        y = np.concatenate([self.y, [s[2] / s[0] for s in sums]])
        return np.ascontiguousarray(X), y, np.concatenate([self.c, weight])


ROWS = ("X", "y", "c", "distance", "piece")


def reduced(
    X: Array, y: Array, c: Array, distance: Array, piece: Array,
    groups: dict[tuple[int, int], tuple[float, Array, float]], most: int,
) -> Reduced:  # fmt: skip
    """The nearest rows, and the others in groups."""
    if len(y) <= most:
        return Reduced(X, y, c, distance, piece, groups, most)
    order = np.argpartition(distance, most - 1)
    near, far = np.sort(order[:most]), np.sort(order[most:])
    level = np.floor(2.0 * np.log2(distance[far])).astype(int)
    for key in sorted({(int(p), int(k)) for p, k in zip(piece[far], level)}):
        rows = far[(piece[far] == key[0]) & (level == key[1])]
        weight, x, target = groups.get(key, (0.0, 0.0, 0.0))
        groups[key] = (weight + float(c[rows].sum()), x + c[rows] @ X[rows], target + float(c[rows] @ y[rows]))
    return Reduced(X[near], y[near], c[near], distance[near], piece[near], groups, most)


def reduction(block: Block, view: View, loss: Loss, w: Array, b: Array, most: int) -> tuple[float, float, Reduced]:
    """The statistic: the risk at w, that of constant scores, and the reduced block."""
    o = view.objective(block, loss)
    z = o.scores(w, b)
    live = np.flatnonzero(o.c > 0)
    X = o.design.source.toarray() if scipy.sparse.issparse(o.design.source) else o.design.source
    X, y, c, scores = np.asarray(X, dtype=np.float64)[live], o.y[live], o.c[live], z[live]
    kinks = [kink.at for kink in loss.kinks(y)]
    distance = np.min([np.abs(scores - at) for at in kinks], axis=0)
    distance = np.maximum(distance, NEAREST * (1.0 + np.abs(scores)))
    piece = np.sum([scores > at for at in kinks], axis=0)
    if loss.target is Target.SIGN:
        piece = 2 * piece + (y > 0)
    return (
        o.risk_of_scores(z), o.risk_of_scores(np.zeros_like(z)), reduced(X, y, c, distance, piece, {}, most),
    )  # fmt: skip


def minimise_kinked(
    problem: BlockProblem,
    start: tuple[Array, Array],
    *,
    tol: float,
    max_iter: int | None = None,
    callback: Callable[[Record], bool] | None = None,
    most: int | None = None,
) -> Result:
    """Minimise a problem with a piecewise linear loss over blocks and certify the result, keeping at most ``most`` rows."""
    search = _Search(problem, tol, most or max(LEAST_KEPT, KEPT_BYTES // (8 * (problem.d + 4))), callback)
    return search.run(*start, max_iter or DEFAULT_MAX_ITER)


class _Search:
    """The best weights so far, their reduction, and the largest lower bound."""

    def __init__(self, problem: BlockProblem, tol: float, most: int, callback: Callable[[Record], bool] | None) -> None:
        self.problem, self.tol, self.most, self.callback = problem, tol, most, callback
        self.began = time.perf_counter()
        self.lower, self.value, self.constant = -np.inf, np.inf, 0.0

    def run(self, w: Array, b: Array, max_iter: int) -> Result:
        """Iterate until the gap is within the tolerance, no step lowers the objective, or the limit is reached."""
        status = Status.MAX_ITER
        self.evaluate(w, b)
        if self.kept.groups:  # some examples were merged: start at the optimum of a sample
            self.evaluate(*self.optimum_of_sample())
        target, length, iterations = self.bounded(), 1.0, 0
        while iterations < max_iter:
            iterations += 1
            w, b = self.w + length * (target[0] - self.w), self.b + length * (target[1] - self.b)
            if self.evaluate(w, b):
                target, length = self.bounded(), 1.0
            else:
                length *= SHORTER
            certificate = self.certificate()
            if certificate.converged or length < SHORTEST:
                status = Status.STALLED
                break
            record = Record(iterations, time.perf_counter() - self.began, self.value, certificate.error, self.w, self.b)
            if self.callback is not None and self.callback(record):
                status = Status.STOPPED
                break
        certificate = self.certificate()
        status = Status.CONVERGED if certificate.converged else status
        seconds = time.perf_counter() - self.began
        certificate = with_run(certificate, solver=NAME, iterations=iterations, seconds=seconds, status=status.value)
        return Result(Solution(self.w, self.b, status, iterations), certificate)

    def evaluate(self, w: Array, b: Array) -> bool:
        """Compute J and the reduction at some weights in one pass; keep them and return True if J is the smallest so far."""
        problem = self.problem
        risk, constant, kept = problem.passes.total(reduction, problem.view, problem.loss, w, b, self.most)
        value = risk + problem.penalty.value(w)
        if not value < self.value:
            return False
        self.value, self.constant, self.w, self.b, self.kept = value, constant, w, b, kept
        return True

    def bounded(self) -> tuple[Array, Array]:
        """The minimiser of the reduced problem, whose lower bound also holds for the full problem."""
        found = self.minimised(self.kept.examples(), SHARE * self.tol)
        if np.isfinite(found.certificate.dual):
            self.lower = max(self.lower, found.certificate.dual)
        return found.w, found.b

    def optimum_of_sample(self) -> tuple[Array, Array]:
        """The minimiser over a uniform sample, of as many examples as are kept."""
        problem = self.problem
        found = problem.passes.total(sampled, problem.view, self.most)
        result = self.minimised(found.data, 1e-4)
        return result.w, result.b

    def minimised(self, examples: tuple[Array, Array, Array], tol: float) -> Result:
        """The minimiser over examples in memory: features, targets and weights."""
        problem, (X, y, c) = self.problem, examples
        objective = make_objective(
            X, y, problem.loss, problem.penalty, sample_weight=c, fit_intercept=problem.fit_intercept
        )
        return solve(objective, tol=tol, warn=False)

    def certificate(self) -> Certificate:
        """The certificate of the best weights."""
        return conclude(
            self.problem, self.value, self.lower, tol=self.tol, constant=lambda: abs(self.constant),
            residual=lambda: np.inf, exact=True,
        )  # fmt: skip


def sampled(block: Block, view: View, most: int) -> Sample:
    """A uniform sample of the examples with positive weight."""
    y, c = view.targets(block)
    live = np.flatnonzero(c > 0)
    rows = live if len(live) <= most else np.sort(np.random.default_rng(block.rows).choice(live, most, replace=False))
    X = block.X[rows]
    X = np.asarray(X.toarray() if scipy.sparse.issparse(X) else X, dtype=np.float64)
    return Sample((np.ascontiguousarray(X), y[rows], c[rows]), len(rows), block.rows, most)
