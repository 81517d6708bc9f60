"""Laws that every public kernel of vectors obeys. A new one is found by being public."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest
import scipy.sparse

import hinge as hg


def _made_of_vectors() -> list[hg.kernels.Kernel]:
    found = []
    for name in hg.kernels.__all__:
        cls = getattr(hg.kernels, name)
        if not (inspect.isclass(cls) and issubclass(cls, hg.kernels.Kernel)) or cls is hg.kernels.Kernel:
            continue
        needed = [p for p in inspect.signature(cls).parameters.values() if p.default is p.empty]
        if not needed and cls.takes == "vectors" and cls is not hg.kernels.Precomputed:
            found.append(cls())
    return [*found, hg.kernels.Rank1(_first_coordinate), hg.kernels.RBF(0.7) * hg.kernels.LinearKernel()]


def _first_coordinate(X):
    return 1.0 + 3.0 * np.asarray(X.todense() if scipy.sparse.issparse(X) else X)[:, 0]


every_kernel = pytest.mark.parametrize("kernel", _made_of_vectors(), ids=lambda kernel: type(kernel).__name__)


@pytest.fixture
def points(rng):
    return rng.random((30, 4))  # not negative: chi-squared compares histograms


@every_kernel
def test_blocks_are_parts_of_the_gram_matrix(kernel, points):
    kernel = kernel.resolve(points)
    K = kernel(points)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_allclose(kernel.diagonal(points), np.diagonal(K), rtol=1e-6, atol=1e-12)
    if not isinstance(kernel, hg.kernels.White):  # the noise of one set of points is not that of another
        np.testing.assert_allclose(np.diagonal(kernel(points, points.copy())), np.diagonal(K), rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(kernel(points[:7], points[7:]), K[:7, 7:], rtol=1e-6, atol=1e-9)


@every_kernel
def test_what_is_declared_positive_semidefinite_is(kernel, points):
    values = np.linalg.eigvalsh(kernel.resolve(points)(points))
    assert not kernel.psd or values[0] >= -1e-9 * max(values[-1], 1.0)


@every_kernel
def test_sparse_points_give_the_same_values(kernel, points, rng):
    points = points * (rng.random(points.shape) < 0.6)
    kernel = kernel.resolve(points)
    np.testing.assert_allclose(kernel(scipy.sparse.csr_array(points)), kernel(points), rtol=1e-6, atol=1e-9)


@every_kernel
def test_sums_products_and_multiples(kernel, points):
    kernel, linear = kernel.resolve(points), hg.kernels.LinearKernel()
    K, L = kernel(points), linear(points)
    np.testing.assert_allclose((2.0 * kernel + linear)(points), 2.0 * K + L, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose((kernel * linear)(points), K * L, rtol=1e-9, atol=1e-9)


@every_kernel
def test_parameters_are_recovered_from_their_logarithms(kernel, points):
    kernel = kernel.resolve(points)
    same = kernel.with_theta(kernel.theta)
    assert same.tunable == kernel.tunable
    assert len(kernel.limits) == len(kernel.theta) == len(kernel.tunable)
    np.testing.assert_allclose(same(points), kernel(points), rtol=1e-9)


@every_kernel
def test_derivatives_match_differences(kernel, points):
    kernel = kernel.resolve(points)
    exact = list(kernel.derivatives(points))
    assert len(exact) == len(kernel.theta)
    for j, derivative in enumerate(exact):
        step = np.zeros(len(kernel.theta))
        step[j] = 1e-5
        up, down = (kernel.with_theta(kernel.theta + sign * step)(points) for sign in (1, -1))
        np.testing.assert_allclose(derivative, (up - down) / 2e-5, rtol=1e-4, atol=1e-6)


@every_kernel
def test_pickles(kernel, points):
    copy = pickle.loads(pickle.dumps(kernel))
    np.testing.assert_array_equal(copy.resolve(points)(points), kernel.resolve(points)(points))


@pytest.mark.mission("K1")
@every_kernel
def test_ridge_regression_solves_its_equations(kernel, points, rng):
    if not kernel.psd:
        return
    y = rng.normal(size=len(points))
    model = hg.KernelRidge(kernel=kernel, alpha=0.5).fit(points, y)
    K = kernel.resolve(points)(points)
    np.testing.assert_allclose(model.dual_coef_, np.linalg.solve(K + 0.5 * np.eye(len(y)), y), rtol=1e-6, atol=1e-9)


@every_kernel
def test_stationary_kernels_and_no_others_depend_on_differences(kernel, points):
    kernel = kernel.resolve(points)
    moved = np.allclose(kernel(points + 0.3), kernel(points), rtol=1e-9, atol=1e-9)
    assert kernel.stationary == moved or isinstance(kernel, hg.kernels.Periodic)


@every_kernel
def test_no_points_have_no_diagonal(kernel, points):
    assert kernel.resolve(points).diagonal(points[:0]).shape == (0,)
