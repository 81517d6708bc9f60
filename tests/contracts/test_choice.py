"""Which solver is chosen for which problem: the table of preferences, row by row."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import hinge as hg
from hinge.problem.distributions import Binomial
from hinge.problem.links import CauchitLink
from hinge.problem.losses.linked import LinkedProbability
from hinge.solvers.run import choose


def problem(loss, penalty, n=40, d=5, *, sparse=False, dtype=np.float64, **options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)).astype(dtype)
    y = rng.choice([-1.0, 1.0], size=n)
    if isinstance(loss, hg.Softmax):
        y = np.arange(n) % 3.0
        options["classes"] = 3
    if isinstance(loss, LinkedProbability):
        y = (y + 1) / 2
    return hg.make_objective(sp.csr_matrix(X) if sparse else X, y, loss, penalty, **options)


CAUCHIT = LinkedProbability(Binomial(), CauchitLink())
CASES = [
    (problem(hg.Squared(), hg.L2(0.1)), "closed-form"),
    (problem(hg.Squared(), hg.L2(0.1), sparse=True), "newton"),
    (problem(hg.Squared(), hg.L2(0.1), dtype=np.float32), "newton"),
    (problem(hg.Squared(), hg.NoPenalty(), sparse=True), "closed-form"),
    (problem(hg.Squared(), hg.L2(0.1), n=30, d=310), "closed-form"),  # the dual side
    (problem(hg.Squared(), hg.L2(0.1), n=320, d=310), "newton"),
    (problem(hg.Logistic(), hg.L2(0.1)), "newton"),
    (problem(hg.Logistic(), hg.L2(0.1), d=501), "newton-cg"),
    (problem(hg.SquaredHinge(), hg.L2(0.1), d=501), "dual-coordinate-descent"),
    (problem(hg.SquaredHinge(), hg.L2(0.1), n=502, d=501), "newton-cg"),
    (problem(CAUCHIT, hg.L2(0.1)), "fisher-scoring"),
    (problem(hg.Softmax(), hg.L2(0.1), d=32), "multinomial-newton"),
    (problem(hg.Softmax(), hg.L2(0.1), d=33), "multinomial-newton-cg"),
    (problem(hg.Softmax(), hg.NoPenalty()), "multinomial-newton"),
    (problem(hg.Softmax(), hg.NoPenalty(), d=199), "multinomial-newton"),
    (problem(hg.Softmax(), hg.NoPenalty(), d=200), "multinomial-newton-cg"),
    (problem(hg.Hinge(), hg.L2(0.1)), "interior-point"),
    (problem(hg.Hinge(), hg.L2(0.1), d=1001, sparse=True), "dual-coordinate-descent"),
    (problem(hg.Hinge(), hg.L2(0.1), d=1001), "interior-point"),
    (problem(hg.Hinge(), hg.L1(0.1), d=1001, sparse=True), "interior-point"),  # the row side
    (problem(hg.Hinge(), hg.L1(0.1), n=1002, d=1001, sparse=True), "admm"),
    (problem(hg.Squared(), hg.L1(0.1)), "proximal-newton"),
    (problem(hg.Logistic(), hg.Elastic(0.1, 0.5)), "proximal-newton"),
    (problem(hg.Squared(), hg.GroupNorm(0.1)), "proximal-gradient"),
    (problem(hg.Squared(), hg.L1Ball(1.0)), "proximal-gradient"),
    (problem(hg.Squared(), hg.L0(0.1)), "proximal-gradient"),
    (problem(hg.Hinge(), hg.GroupNorm(0.1)), "admm"),
]


def targets(columns, penalty, n=40, d=5, **options):
    rng = np.random.default_rng(0)
    X = sp.csr_matrix(rng.normal(size=(n, d)))
    return hg.make_objective(X, rng.normal(size=(n, columns)), hg.Squared(), penalty, **options)


CASES += [
    (targets(2, hg.L2(0.1)), "closed-form"),  # one factorisation for all targets
    (targets(3, hg.L2(0.1)), "closed-form"),
]


@pytest.mark.parametrize(("objective", "name"), CASES, ids=lambda v: v if isinstance(v, str) else f"{v.loss!r}-{v.d}")
def test_the_first_preference_that_suits(objective, name):
    assert choose(objective) == name
