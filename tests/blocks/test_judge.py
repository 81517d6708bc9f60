"""The judge on sums: a bound of the optimum for any weights and any step, the same for any cut into blocks."""

from __future__ import annotations

import numpy as np
import pytest

import hinge as hg
import zoo
from hinge.blocks.passes import Passes
from hinge.blocks.problem import BlockProblem, View
from hinge.problem.certificates.dual_points import has_dual
from hinge.problem.certificates.sums import Point, certificate_from_sums, dual_sums

LOSSES = [
    loss for loss in (*zoo.LOSSES, hg.Softmax()) if loss.convex and loss.has_conjugate and (loss.smooth or loss.outputs == "one")
]  # fmt: skip
PENALTIES = [hg.L2(0.1), hg.L1(0.05), hg.Elastic(0.1, 0.5), hg.NoPenalty()]


def problem_of(loss, penalty, rng, n=120):
    X, y, s = rng.normal(size=(n, 3)), zoo.targets(loss, n, rng), rng.integers(1, 4, n).astype(float)
    classes = 3 if loss.outputs == "classes" else None
    return X, y, s, hg.make_objective(X, y, loss, penalty, sample_weight=s, classes=classes)


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_no_weights_and_no_step_break_the_bound(loss, penalty, rng):
    """D ≤ min P, whatever the point: that is all a certificate states."""
    _, _, _, objective = problem_of(loss, penalty, rng)
    assert has_dual(objective)
    optimum = hg.solve(objective, tol=1e-9, warn=False)
    for size in (0.0, 0.01, 1.0):
        w, b = optimum.w, optimum.b
        point = Point(
            w + size * rng.normal(size=w.shape), b + size * rng.normal(size=b.shape),
            0.1 * size * rng.normal(size=w.shape), 0.1 * size * rng.normal(size=b.shape),
        )  # fmt: skip
        if not np.isfinite(objective.risk(*point.weights)):
            continue
        judged = certificate_from_sums(objective, point, lambda p: dual_sums(objective, p), tol=1e-6)
        assert judged.primal == pytest.approx(objective.value(*point.weights), rel=1e-12)
        assert judged.dual <= optimum.certificate.primal * (1 + 1e-12) + 1e-12


@pytest.mark.parametrize(
    "loss", [hg.Logistic(), hg.Huber(0.5), hg.Poisson(), hg.SquaredHinge(), hg.Softmax()], ids=repr
)
def test_sums_over_blocks_are_those_over_all_rows(loss, rng):
    X, y, s, objective = problem_of(loss, hg.L2(0.1), rng)
    view = View(float(s.sum()), True, objective.outputs)
    w, b = (0.1 * rng.normal(size=part.shape) for part in objective.zero())
    point = Point(w, b, 0.1 * w, 0.1 * b, 0.7)
    passes = Passes(hg.scan(X, target=y, weight=s, block_rows=17))
    found = BlockProblem(passes, view, loss, hg.L2(0.1), 3).dual_sums(point)
    for name, one, two in zip(found._fields, found, dual_sums(objective, point)):
        np.testing.assert_allclose(one, two, rtol=1e-10, atol=1e-14, err_msg=name)
    assert passes.reading.passes == 1


def test_two_passes_certify_any_weights(rng):
    X, y, s, objective = problem_of(hg.Logistic(), hg.L1(0.05), rng)
    passes = Passes(hg.scan(X, target=y, weight=s, block_rows=17))
    problem = BlockProblem(passes, View(float(s.sum()), True), hg.Logistic(), hg.L1(0.05), 3)
    found = hg.solve(objective, tol=1e-9)
    still, zero = problem.zero()
    judged = certificate_from_sums(problem, Point(found.w, found.b, still, zero), problem.dual_sums, tol=1e-6)
    assert passes.reading.passes <= 2
    assert judged.kind == "gap"
    assert judged.relative_gap < 1e-3
    assert judged.dual <= found.certificate.primal
