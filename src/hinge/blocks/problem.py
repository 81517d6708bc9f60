"""A regularised empirical risk over blocks, whose quantities are totals of statistics.

J(w, b) = Σᵢ cᵢ ℓ(yᵢ, zᵢ) + Ω(w),     z = Xw + b + offset,     cᵢ = sᵢ / Σ s
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from hinge._native import Design
from hinge.blocks.block import Block
from hinge.blocks.passes import Passes
from hinge.blocks.survey import Labels, Sample
from hinge.problem.certificates.sums import DualSums, Point, dual_sums
from hinge.problem.losses import Loss
from hinge.problem.objective import Array, Objective
from hinge.problem.penalties import NoPenalty, Penalty


@dataclass(frozen=True)
class View:
    """The mapping from blocks to examples of a problem.

    Attributes
    ----------
    weight_sum : float
        Σ s over all blocks.
    labels, values, factors : arrays or None
        The labels in order, what each is coded as, and the factor of its weight; None for targets that are numbers.
    with_offset : bool
    encode : function or None
        From a block to X; None takes its numbers as they are.
    """

    weight_sum: float
    fit_intercept: bool
    outputs: int = 1
    labels: Array | None = None
    values: Array | None = None
    factors: Array | None = None
    with_offset: bool = False
    encode: Callable[[Block], Any] | None = None

    def targets(self, block: Block) -> tuple[Array, Array]:
        """Coded targets and weights of a block; the weights of all blocks sum to one."""
        assert block.y is not None
        weight = np.ones(block.rows) if block.weight is None else block.weight
        if self.labels is None or self.values is None:
            return np.ascontiguousarray(block.y, dtype=np.float64), weight / self.weight_sum
        codes = np.searchsorted(self.labels, block.y)
        if self.factors is not None:
            weight = weight * self.factors[codes]
        return self.values[codes], weight / self.weight_sum

    def objective(self, block: Block, loss: Loss) -> Objective:
        """The objective of the rows of a block."""
        y, c = self.targets(block)
        X = block.X if self.encode is None else self.encode(block)
        return Objective(
            Design(X), y, c, loss, NoPenalty(), self.fit_intercept, self.outputs,
            block.offset if self.with_offset else None, self.weight_sum,
        )  # fmt: skip


class SecondOrder(NamedTuple):
    """The risk, its gradient and its Hessian in (w, b), packed output by output: w₁, b₁, w₂, b₂ …"""

    risk: float
    gradient: Array
    hessian: Array


def second_order(block: Block, view: View, loss: Loss, w: Array, b: Array) -> SecondOrder:
    """The statistic of Newton's method."""
    o = view.objective(block, loss)
    if o.outputs > 1:
        return _second_order_of_many(o, w, b)
    risk, z, cu, g = o.evaluate(w, b)
    ch = o.c * loss.hessian(o.y, z)
    H = o.design.gram(ch)
    if view.fit_intercept:
        edge = o.design.rmatmul(ch)
        H = np.block([[H, edge[:, None]], [edge[None, :], np.array([[ch.sum()]])]])
        g = np.append(g, cu.sum())
    return SecondOrder(risk, g, H)


def _second_order_of_many(o: Objective, w: Array, b: Array) -> SecondOrder:
    """Several outputs: softmax, or one target for every output."""
    z = o.scores(w, b)
    cu = o.weighted(o.loss.gradient(o.y, z))
    k, d, ones = o.outputs, o.d, int(o.fit_intercept)
    size = d + ones
    G = o.design.rmatmul(cu)
    if ones:
        G = np.vstack([G, cu.sum(axis=0)])
    H = np.zeros((k * size, k * size))

    def bordered(h: Array) -> Array:
        gram = o.design.gram(h)
        if not ones:
            return gram
        edge = o.design.rmatmul(h)
        return np.block([[gram, edge[:, None]], [edge[None, :], np.array([[h.sum()]])]])

    if o.loss.outputs == "classes":
        p = o.loss.inverse_link(z)
        for i in range(k):
            for j in range(i, k):
                h = o.c * p[:, i] * (1.0 - p[:, i]) if i == j else o.c * p[:, i] * p[:, j]
                part = bordered(np.ascontiguousarray(h))
                rows, columns = slice(i * size, (i + 1) * size), slice(j * size, (j + 1) * size)
                H[rows, columns] = part if i == j else -part
                H[columns, rows] = H[rows, columns].T
    else:
        h = o.weighted(o.loss.hessian(o.y, z))
        for i in range(k):
            rows = slice(i * size, (i + 1) * size)
            H[rows, rows] = bordered(np.ascontiguousarray(h[:, i]))
    return SecondOrder(o.risk_of_scores(z), G.T.ravel(), H)


def risks_along(block: Block, view: View, loss: Loss, point: Point, lengths: Array) -> Array:
    """The risk at several lengths of a step."""
    o = view.objective(block, loss)
    z = o.scores(point.w, point.b)
    shift = point.bias_step if o.outputs > 1 else point.bias_step[0]
    dz = o.design.matmul(point.step) + (shift if o.fit_intercept else 0.0)
    return np.array([o.risk_of_scores(z + t * dz) for t in lengths])


def block_dual_sums(block: Block, view: View, loss: Loss, point: Point) -> DualSums:
    """The statistic of the certificate."""
    return dual_sums(view.objective(block, loss), point)


def first_order(block: Block, view: View, loss: Loss, w: Array, b: Array) -> tuple[float, Array, Array]:
    """The risk and its gradient."""
    return view.objective(block, loss).risk_gradient(w, b)


SAMPLE = 100_000  # targets from which the best constant is computed, unless they are classes


def some_targets(block: Block, view: View) -> Sample:
    """A uniform sample of coded targets and their weights."""
    y, c = view.targets(block)
    rows = np.arange(len(y))
    if len(y) > SAMPLE:
        rows = np.sort(np.random.default_rng(len(y)).choice(len(y), SAMPLE, replace=False))
    return Sample((y[rows], c[rows]), len(rows), block.rows, SAMPLE)


def class_targets(block: Block, view: View) -> Labels:
    """Coded targets that are classes, and the weight of each."""
    y, c = view.targets(block)
    values, codes = np.unique(y, return_inverse=True)
    return Labels(values, np.bincount(codes, c, minlength=len(values)))


@dataclass(frozen=True, eq=False)
class BlockProblem:
    """A problem over blocks, with the quantities of :class:`hinge.problem.objective.Objective` that are sums."""

    passes: Passes
    view: View
    loss: Loss
    penalty: Penalty
    d: int

    @property
    def fit_intercept(self) -> bool:
        return self.view.fit_intercept

    @property
    def outputs(self) -> int:
        return self.view.outputs

    def zero(self) -> tuple[Array, Array]:
        """w = 0 and b = 0."""
        return np.zeros(self.d if self.outputs == 1 else (self.d, self.outputs)), np.zeros(self.outputs)

    def second_order(self, w: Array, b: Array) -> SecondOrder:
        """One pass."""
        return self.passes.total(second_order, self.view, self.loss, w, b)

    def risk_gradient(self, w: Array, b: Array) -> tuple[float, Array, Array]:
        """The risk and its gradient in w and b; one pass."""
        return self.passes.total(first_order, self.view, self.loss, w, b)

    def values_along(self, point: Point, lengths: Array) -> Array:
        """J at several lengths of a step; one pass."""
        risks = self.passes.total(risks_along, self.view, self.loss, point, lengths)
        return risks + [self.penalty.value(point.w + t * point.step) for t in lengths]

    def dual_sums(self, point: Point) -> DualSums:
        """The sums of the certificate; one pass."""
        return self.passes.total(block_dual_sums, self.view, self.loss, point)

    @property
    def square_sums(self) -> Array:
        """Σ cᵢ xᵢⱼ²; one pass."""
        w, b = self.zero()
        return self.dual_sums(Point(w, b, w, b)).square_sums

    def best_constant(self) -> float:
        """The constant score of the least risk: from the weights of the classes, or from a sample of other targets."""
        if self.loss.target.is_classes:
            found = self.passes.total(class_targets, self.view, only_targets=True)
            return self.loss.baseline(found.values, found.weights)
        return self.loss.baseline(*self.passes.total(some_targets, self.view, only_targets=True).data)

    def with_penalty(self, penalty: Penalty) -> BlockProblem:
        """The same data and loss under another penalty."""
        return replace(self, penalty=penalty)
