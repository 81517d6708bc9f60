"""The linear programs of separation against data that were made separable, quasi-separable, or neither."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import hinge as hg
from hinge.solvers.separation import (
    _free_features,
    _gram,
    _Margins,
    check_direction,
    find_separation,
    separating_direction,
)

WAYS = ("dense", "sparse", "repeated")


def stored(X, way):
    """X as it is, as a sparse matrix, or as a sparse matrix whose entries are given in two halves."""
    if way == "dense":
        return X
    rows, columns = np.nonzero(np.ones_like(X))
    if way == "sparse":
        return scipy.sparse.csr_array(X)
    values = np.concatenate([0.25 * X.ravel(), 0.75 * X.ravel()])
    return scipy.sparse.csr_array((values, (np.tile(rows, 2), np.tile(columns, 2))), shape=X.shape)


def searched(o):
    """The direction, the bias and whether all margins are positive, by the program alone; None if there is none."""
    return _Margins(o, o.loss.falling(o.y), _free_features(o), o.scores(*o.zero())).search()


def made(kind, intercept, rng):
    """Rows and signs; a shift of 3 along the first column, if there is a bias to find it."""
    X = rng.normal(size=(40, 3)) * [1.0, 1e3, 1e-3]
    margin = X[:, 0] + 1e-3 * X[:, 1]
    X = X[np.abs(margin) > 0.1]
    margin = X[:, 0] + 1e-3 * X[:, 1]
    signs = np.where(margin > 0, 1.0, -1.0)
    if kind == "quasi":  # four rows on the hyperplane, of both signs, that no other direction separates
        on = np.array([[1.0, -1e3, 1e-3], [1.0, -1e3, -1e-3], [-1.0, 1e3, 1e-3], [-1.0, 1e3, -1e-3]])
        X, signs = np.vstack([X, on, on]), np.concatenate([signs, np.ones(4), -np.ones(4)])
    if kind == "none":
        X, signs = np.vstack([X, X[:6]]), np.concatenate([signs, -signs[:6]])
        X[-6:] *= 0.9
    return X + np.array([3.0, 0.0, 0.0]) * intercept, signs


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", ["complete", "quasi", "none"])
def test_directions_of_two_classes(kind, intercept, way, rng):
    X, signs = made(kind, intercept, rng)
    found = separating_direction(stored(X, way), signs, fit_intercept=intercept)
    if kind == "none":
        assert found is None
        return
    margins = signs * (X @ found.direction + found.bias)
    size = np.abs(margins).max()
    assert found.complete == (kind == "complete")
    assert margins.min() > 0 if kind == "complete" else margins.min() >= -1e-9 * size
    assert np.sum(margins > 1e-6 * size) >= len(X) - 8
    assert intercept or found.bias == 0.0
    judged = check_direction(X, signs, found.direction, found.bias)
    assert judged.complete == found.complete
    assert check_direction(X, -signs, found.direction, found.bias) is None
    assert check_direction(X, signs, np.zeros(3), 0.0) is None


@pytest.mark.parametrize("way", WAYS[:2])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", ["complete", "quasi", "none"])
def test_directions_of_an_objective(kind, intercept, way, rng):
    """Rows of weight zero do not count; weights that a penalty holds back do not move."""
    X, signs = made(kind, intercept, rng)
    lost = rng.normal(size=(3, 3)) * [1.0, 1e3, 1e-3] + np.array([3.0, 0.0, 0.0]) * intercept
    X, weight = np.vstack([X, lost]), np.concatenate([np.ones(len(X)), np.zeros(3)])
    signs = np.concatenate([signs, rng.choice([-1.0, 1.0], 3)])
    o = hg.make_objective(stored(X, way), signs, hg.Logistic(), sample_weight=weight, fit_intercept=intercept)
    found = searched(o)
    assert (found is None) == (kind == "none")
    if found is not None:
        v, t, complete = found
        margins = (signs * (X @ v + t))[weight > 0]
        assert complete == bool(margins.min() > 1e-9 * np.abs(X @ v + t)[weight > 0].max())
        assert kind == "complete" or not complete
        assert margins.min() >= -1e-9 * margins.max()
        assert margins.max() <= 1 + 1e-9
        fit = find_separation(o, 1e3 * v, np.array([1e3 * t]), converged=False)  # weights that have gone that way
        assert fit.complete == complete
        assert max(np.abs(fit.direction).max(), abs(fit.bias)) == pytest.approx(1.0)
        assert fit.classes
    assert find_separation(o.with_penalty(hg.L2(0.1)), *o.zero(), converged=False) is None


@pytest.mark.parametrize("way", WAYS[:2])
@pytest.mark.parametrize("intercept", [True, False])
def test_directions_of_counts(intercept, way, rng):
    """Zeros move down, other counts must stay: the indicator of an all-zero group is found, and no other column."""
    group = np.arange(30) % 3 == 0
    X = np.column_stack([rng.normal(size=30) * ~group, group, rng.normal(size=30) * ~group])
    y = np.where(group, 0.0, 1.0 + rng.poisson(2.0, 30))
    o = hg.make_objective(stored(X, way), y, hg.Poisson(), fit_intercept=intercept)
    v, t, complete = searched(o)
    assert v == pytest.approx([0.0, -1.0, 0.0], abs=1e-9)
    assert t == pytest.approx(0.0, abs=1e-9)
    assert not complete
    fit = find_separation(o, 50 * v, np.zeros(1))
    assert fit.direction == pytest.approx([0.0, -1.0, 0.0])
    assert not fit.classes
    y[0] = 1.0
    o = hg.make_objective(stored(X, way), y, hg.Poisson(), fit_intercept=intercept)
    assert searched(o) is None
    assert find_separation(o, 50 * v, np.zeros(1), converged=False) is None


@pytest.mark.parametrize("way", WAYS[:2])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", ["complete", "quasi", "none"])
def test_directions_of_several_classes(kind, intercept, way, rng):
    X = np.vstack([rng.normal(size=(12, 2)) * 0.3 + c for c in ([4.0, 0.0], [-2.0, 3.5], [-2.0, -3.5])])
    y = np.repeat([0.0, 1.0, 2.0], 12)
    if kind == "quasi":  # class 0 is apart, the two others are mixed
        X[12:, 1] = rng.normal(size=24)
        X[12:, 0] = -2.0
    if kind == "none":
        y = rng.permutation(y)
    o = hg.make_objective(stored(X, way), y, hg.Softmax(), fit_intercept=intercept)
    margins = _Margins(o, np.ones(36), np.ones(2, dtype=bool), o.scores(*o.zero()))
    A = np.column_stack([X / np.abs(X).max(axis=0), *([np.ones(36)] if intercept else [])])
    V = rng.normal(size=(A.shape[1], 3))
    pairs = [A[i] @ (V[:, int(y[i])] - V[:, j]) for i in range(36) for j in range(3) if j != y[i]]
    np.testing.assert_allclose(margins.rows() @ V.ravel(), pairs)
    h, c = margins._curvature()
    np.testing.assert_allclose(h, 1 / 9)
    np.testing.assert_allclose(c, np.repeat(o.c, 2))
    found = searched(o)
    assert (found is None) == (kind == "none")
    if found is not None:
        v, t, complete = found
        scores = X @ v + t
        own = scores[np.arange(36), y.astype(int)]
        rest = np.where(np.eye(3, dtype=bool)[y.astype(int)], -np.inf, scores).max(axis=1)
        assert np.min(own - rest) >= -1e-8
        assert complete == bool(np.min(own - rest) > 1e-8)
        assert kind == "complete" or not complete


def test_a_bound_forbids_one_sign(rng):
    X = np.abs(rng.normal(size=(30, 1))) + 0.1
    X[15:] *= -1
    for signs, free in ((np.sign(X[:, 0]), True), (-np.sign(X[:, 0]), False)):
        o = hg.make_objective(X, signs, hg.Logistic(), hg.Box(0.0, np.inf), fit_intercept=False)
        assert (searched(o) is not None) == free


def test_one_sign_alone_separates_by_the_bias(rng):
    X = rng.normal(size=(6, 2))
    for y, bias in ((np.ones(6), 1.0), (-np.ones(6), -1.0), (np.array([1.0, 1, 1, 1, 1, -1]), None)):
        o = hg.make_objective(X, y, hg.Logistic(), hg.L2(1.0))
        found = find_separation(o, *o.zero(), converged=False)
        assert (None if found is None else found.bias) == bias
        assert found is None or found.complete
        alone = hg.make_objective(X, y, hg.Logistic(), hg.L2(1.0), fit_intercept=False)
        assert find_separation(alone, *alone.zero(), converged=False) is None


def test_gram_matrices(rng):
    R, c = rng.normal(size=(9, 4)), rng.random(9)
    np.testing.assert_allclose(_gram(R, c), R.T @ np.diag(c) @ R)
    np.testing.assert_allclose(_gram(scipy.sparse.csr_array(R), c), R.T @ np.diag(c) @ R)
