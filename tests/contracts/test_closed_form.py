"""Every part of the closed-form solver against NumPy on the centred matrix itself."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import hinge as hg
from hinge._native import Design
from hinge.solvers.admm import _inverse_of_columns, _inverse_of_rows
from hinge.solvers.closed_form import Centred

SOURCES = ("dense", "single", "sparse", "matrix")


def case(source, intercept, targets, wide, rng):
    n, d = (9, 14) if wide else (30, 4)
    X, y, c = rng.normal(size=(n, d)) + 2.0, rng.normal(size=(n, targets)), rng.random(n) + 0.1
    c /= c.sum()
    if source == "single":
        X = X.astype(np.float32)
    stored = {"sparse": scipy.sparse.csr_array, "matrix": scipy.sparse.csr_matrix}.get(source, np.asarray)(X)
    X = X.astype(np.float64)
    y = y[:, 0] if targets == 1 else y
    problem = Centred(Design(stored), y, c, intercept)
    x_mean, y_mean = (c @ X, c @ y.reshape(n, -1)) if intercept else (np.zeros(d), np.zeros(targets))
    return problem, X - x_mean, y.reshape(n, -1) - y_mean, c, x_mean, y_mean


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("wide", [False, True])
def test_every_part(source, intercept, targets, wide, rng):
    problem, Z, Y, c, x_mean, y_mean = case(source, intercept, targets, wide, rng)
    n, d = Z.shape
    W, R = rng.normal(size=(d, targets)), rng.normal(size=(n, 3))
    near = {"rtol": 1e-5, "atol": 1e-5} if source == "single" else {"rtol": 1e-9, "atol": 1e-11}
    np.testing.assert_allclose(problem.x_mean, x_mean, **near)
    np.testing.assert_allclose(problem.y_mean, y_mean, **near)
    np.testing.assert_allclose(problem.Y, Y, **near)
    np.testing.assert_allclose(problem.bias(W), y_mean - x_mean @ W, **near)
    np.testing.assert_allclose(problem.residual(W), Y - Z @ W, **near)
    np.testing.assert_allclose(problem.moment(R), Z.T @ (c[:, None] * R), **near)
    np.testing.assert_allclose(problem.gram(), Z.T @ (c[:, None] * Z), **near)
    np.testing.assert_allclose(problem.first_moment(), Z.T @ (c[:, None] * Y), **near)
    np.testing.assert_allclose(problem._adjoint(R), Z.T @ R, **near)
    inverse, root = rng.random(d), np.sqrt(c)
    expected = (root[:, None] * Z * inverse) @ (root[:, None] * Z).T
    np.testing.assert_allclose(problem.dual_gram(inverse), expected, **near)
    one_pass = source == "dense" and targets == 1 and not wide
    if not one_pass:
        assert problem.lost_digits() == np.inf
    elif not intercept:
        assert problem.lost_digits() == 1.0
    else:
        columns = np.column_stack([Z + x_mean, Y + y_mean])
        centred = np.column_stack([Z, Y])
        assert problem.lost_digits() == pytest.approx(np.max(c @ columns**2 / (c @ centred**2)))


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("strength", ["one", "several"])
def test_every_linear_solver_gives_the_closed_form(source, intercept, targets, wide, strength, rng):
    """Normal equations, the dual system, singular values and iterations solve the same problem."""
    problem, Z, Y, c, *_ = case(source, intercept, targets, wide, rng)
    d = Z.shape[1]
    l2 = np.full(d, 0.3) if strength == "one" else rng.random(d) + 0.1
    expected = np.linalg.solve(Z.T @ (c[:, None] * Z) + np.diag(l2), Z.T @ (c[:, None] * Y))
    near = {"rtol": 1e-5, "atol": 1e-5} if source == "single" else {"rtol": 1e-8, "atol": 1e-10}
    np.testing.assert_allclose(problem.solve(l2), expected, **near)
    np.testing.assert_allclose(problem._solve_normal_equations(l2), expected, **near)
    np.testing.assert_allclose(problem._least_norm(l2), expected, **near)
    iterated, met = problem._iterate(l2)
    np.testing.assert_allclose(iterated, expected, rtol=1e-5, atol=1e-6)
    assert met
    W, A = problem.solve_dual(l2)
    np.testing.assert_allclose(W, expected, **near)
    root, stretch = np.sqrt(c)[:, None], l2.max() / l2
    np.testing.assert_allclose(stretch[:, None] * (Z.T @ (root * A)), W, **near)
    np.testing.assert_allclose(root * (Y - Z @ W), l2.max() * A, **near)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("source", ["dense", "sparse"])
def test_singular_problems_have_the_solution_of_least_norm(intercept, source, rng):
    problem, Z, Y, c, *_ = case(source, intercept, 1, True, rng)
    root = np.sqrt(c)[:, None]
    expected = np.linalg.pinv(root * Z) @ (root * Y)
    zero = np.zeros(Z.shape[1])
    np.testing.assert_allclose(problem.solve(zero), expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(problem._least_norm(zero), expected, rtol=1e-7, atol=1e-9)
    some = np.where(np.arange(Z.shape[1]) < 7, 0.0, 0.5)  # a penalty on half of the weights
    A = np.vstack([root * Z, np.diag(np.sqrt(some))])
    expected = np.linalg.pinv(A) @ np.vstack([root * Y, np.zeros((Z.shape[1], 1))])
    np.testing.assert_allclose(problem.solve(some), expected, rtol=1e-7, atol=1e-9)


def test_rows_without_weight_do_not_count(rng):
    X, y, c = rng.normal(size=(20, 3)), rng.normal(size=20), np.repeat([0.1, 0.0], 10)
    problem, part = Centred(Design(X), y, c, True), Centred(Design(X[:10]), y[:10], c[:10], True)
    l2 = np.full(3, 0.2)
    np.testing.assert_allclose(problem.solve(l2), part.solve(l2))
    np.testing.assert_allclose(problem._least_norm(l2), part.solve(l2))
    assert problem.solve_dual(l2) is None


def test_offsets_are_taken_off_the_targets(rng):
    X, y, offset = rng.normal(size=(20, 3)), rng.normal(size=20), rng.normal(size=20)
    c, l2 = np.full(20, 0.05), np.full(3, 0.2)
    shifted, plain = Centred(Design(X), y, c, True, offset), Centred(Design(X), y - offset, c, True)
    np.testing.assert_allclose(shifted.solve(l2), plain.solve(l2))
    np.testing.assert_allclose(shifted.bias(plain.solve(l2)), plain.bias(plain.solve(l2)))


@pytest.mark.parametrize("shape", [(), (3,)], ids=["one output", "three outputs"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_both_factors_of_admm_invert_the_same_matrix(rng, fit_intercept, shape):
    """(X̃'CX̃ + κI)⁻¹ r by a factor of order d and by one of order n, against the matrix written out."""
    X, c = rng.normal(1.0, 1.0, size=(7, 5)), rng.uniform(0.1, 1.0, 7)
    c /= c.sum()
    objective = hg.make_objective(
        X, rng.normal(size=(7, *shape)), hg.Squared(), hg.L1(0.1), sample_weight=c, fit_intercept=fit_intercept
    )
    centre = c @ X if fit_intercept else np.zeros(5)
    A = (X - centre).T @ np.diag(c) @ (X - centre) + 0.3 * np.eye(5)
    r = rng.normal(size=(5, *shape))
    for inverse in (_inverse_of_columns(objective, centre, 0.3), _inverse_of_rows(objective, 0.3)):
        np.testing.assert_allclose(A @ inverse(r), r, rtol=1e-9, atol=1e-11)
