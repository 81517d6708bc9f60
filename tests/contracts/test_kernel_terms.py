"""Kernels with parameters other than their defaults, pair by pair, and what the algebra makes of kernels without a program."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import scipy.special

import hinge as hg
from hinge.problem.kernels import evaluate, scales
from hinge.problem.kernels.custom import as_kernel, full_gram

K = hg.kernels
pytestmark = pytest.mark.mission("K1")


def matern(nu):
    def value(t):
        t = math.sqrt(2 * nu) * t
        return 1.0 if t == 0 else 2 ** (1 - nu) / scipy.special.gamma(nu) * t**nu * scipy.special.kv(nu, t)

    return value


def length(x, z, scale=1.0):
    return float(np.linalg.norm((x - z) / np.asarray(scale)))


DEFINITIONS = [
    (K.RBF(0.7), lambda x, z: np.exp(-length(x, z, 0.7) ** 2 / 2)),
    (K.RBF(gamma=0.3), lambda x, z: np.exp(-0.3 * length(x, z) ** 2)),
    (K.RBF([0.5, 2.0]), lambda x, z: np.exp(-length(x, z, [0.5, 2.0]) ** 2 / 2)),
    (K.Laplacian(0.4), lambda x, z: np.exp(-0.4 * np.abs(x - z).sum())),
    *((K.Matern(0.8, nu), lambda x, z, nu=nu: matern(nu)(length(x, z, 0.8))) for nu in (0.5, 1.5, 2.5, 0.9, 3.2)),
    *((K.Matern([0.5, 2.0], nu), lambda x, z, nu=nu: matern(nu)(length(x, z, [0.5, 2.0]))) for nu in (1.5, 2.5, 1.7)),
    (K.Matern(0.8, np.inf), lambda x, z: np.exp(-length(x, z, 0.8) ** 2 / 2)),
    (K.RationalQuadratic(0.7, 1.6), lambda x, z: (1 + length(x, z) ** 2 / (2 * 1.6 * 0.49)) ** -1.6),
    (K.Periodic(0.8, 1.7), lambda x, z: np.exp(-2 * np.sin(np.pi * length(x, z) / 1.7) ** 2 / 0.64)),
    (K.Constant(2.5), lambda x, z: 2.5),
    (K.Polynomial(2, 0.6, 1.5), lambda x, z: (0.6 * x @ z + 1.5) ** 2),
    (K.Polynomial(3, 0.6, 0.0), lambda x, z: (0.6 * x @ z) ** 3), (K.Polynomial(1, 0.6, 1.5), lambda x, z: 0.6 * x @ z + 1.5),
    (K.ChiSquared(0.4), lambda x, z: np.exp(-0.4 * np.sum((x - z) ** 2 / (x + z)))),
    (3.0 * K.RBF([0.5, 2.0]) * K.Constant(0.5), lambda x, z: 1.5 * np.exp(-length(x, z, [0.5, 2.0]) ** 2 / 2)),
    (K.RBF([0.5, 2.0]) + 0.5 * K.LinearKernel(), lambda x, z: np.exp(-length(x, z, [0.5, 2.0]) ** 2 / 2) + 0.5 * x @ z),
    (K.RBF([0.5, 2.0]) ** 3, lambda x, z: np.exp(-3 * length(x, z, [0.5, 2.0]) ** 2 / 2)),
    (K.Polynomial(2, 0.6, 1.5).normalised(), lambda x, z: (0.6 * x @ z + 1.5) ** 2 / ((0.6 * x @ x + 1.5) * (0.6 * z @ z + 1.5))),
    ((2.0 * K.RBF(0.7)).of(np.sqrt), lambda x, z: 2 * np.exp(-length(np.sqrt(x), np.sqrt(z), 0.7) ** 2 / 2)),
    (K.RBF([0.5, 2.0]).within((0.1, 1.0), None), lambda x, z: np.exp(-length(x, z, [0.5, 2.0]) ** 2 / 2)),
    ((3.0 * K.RBF(0.7)).fixed(), lambda x, z: 3 * np.exp(-length(x, z, 0.7) ** 2 / 2)),
]  # fmt: skip
each = pytest.mark.parametrize(
    ("kernel", "definition"), DEFINITIONS, ids=[repr(kernel)[:50] for kernel, _ in DEFINITIONS]
)


@pytest.fixture
def points(rng):
    A, B = rng.random((5, 2)) + 0.1, rng.random((4, 2)) + 0.1
    B[0] = A[0]
    return A, B


@each
def test_values_derivatives_and_features(kernel, definition, points):
    A, B = points
    expected = np.array([[definition(x, z) for z in B] for x in A])
    np.testing.assert_allclose(kernel(A, B), expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(kernel(A), [[definition(x, z) for z in A] for x in A], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(kernel.diagonal(A), [definition(x, x) for x in A], rtol=1e-6)
    if "of(" not in repr(kernel):
        np.testing.assert_allclose(kernel(sp.csr_array(A), sp.csr_array(B)), expected, rtol=1e-6, atol=1e-9)
    found = list(kernel.derivatives(A))
    assert len(found) == len(kernel.theta) == len(kernel.tunable) == len(kernel.limits)
    for j, derivative in enumerate(found):
        step = 1e-5 * np.eye(len(found))[j]
        up, down = kernel.with_theta(kernel.theta + step), kernel.with_theta(kernel.theta - step)
        np.testing.assert_allclose(derivative, (up(A) - down(A)) / 2e-5, rtol=1e-5, atol=1e-7)
    try:
        phi = kernel.features(A)
    except (TypeError, NotImplementedError):
        return
    phi = phi.toarray() if sp.issparse(phi) else phi
    np.testing.assert_allclose(phi @ phi.T, kernel(A), rtol=1e-6, atol=1e-9)


def test_which_parameters_are_fitted(points):
    A, _ = points
    kernel = 2.0 * K.RBF([0.5, 2.0]) + K.RationalQuadratic(0.7, 1.6).within((0.1, 3.0), None) * K.White(0.3).fixed()
    assert np.exp(kernel.theta) == pytest.approx([2.0, 0.5, 2.0, 1.6])
    assert kernel.tunable == ("Scaled.factor", "RBF.length_scale", "RBF.length_scale", "RationalQuadratic.alpha")
    assert kernel.limits[:3] == pytest.approx(np.full((3, 2), np.nan), nan_ok=True)
    assert kernel.limits[3] == pytest.approx([0.1, 3.0])
    assert np.exp(kernel.bounds) == pytest.approx(np.array([[1e-5, 1e5]] * 3 + [[0.1, 3.0]]))
    moved = kernel.with_theta(np.log([3.0, 0.6, 1.0, 2.0]))
    again = 3.0 * K.RBF([0.6, 1.0]) + K.RationalQuadratic(0.7, 2.0) * K.White(0.3)
    np.testing.assert_allclose(moved(A), again(A))
    assert list(K.RBF(0.7).fixed().derivatives(A)) == []
    for bounds in (((0.0, 1.0),), ((2.0, 1.0),), ((0.1, 1.0), None), ()):
        with pytest.raises(ValueError, match="bounds"):
            K.RBF(0.7).within(*bounds)
    assert K.RBF(0.7).within((1.0, 1.0)).limits == pytest.approx(np.array([[1.0, 1.0]]))


def test_what_combinations_declare():
    indefinite, positive, moving = K.Sigmoid(), K.RBF(), K.LinearKernel()
    for combine in (lambda a, b: a + b, lambda a, b: a * b):
        assert combine(positive, moving).psd
        assert not combine(positive, indefinite).psd
        assert not combine(indefinite, positive).psd
        assert combine(positive, K.Matern()).stationary
        assert not combine(positive, moving).stationary
        assert not combine(moving, positive).stationary
    for wrap in (lambda k: 2.0 * k, lambda k: k**2, lambda k: k.normalised(), lambda k: k.fixed()):
        assert wrap(positive).psd
        assert wrap(positive).stationary
        assert not wrap(indefinite).psd
        assert not wrap(moving).stationary
    assert not positive.of(np.sqrt).stationary
    assert K.Polynomial(2, 1.0, 0.0).psd
    assert not K.Polynomial(2, 1.0, -1e-9).psd
    with pytest.raises(TypeError, match="takes"):
        K.Spectrum() + positive
    for wrong in (-1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="multiplied"):
            wrong * positive
    assert (0.0 * positive).factor == 0.0
    for wrong in (0, 1.5, -2):
        with pytest.raises(ValueError, match="power"):
            positive**wrong


def test_noise_belongs_to_the_rows_of_one_matrix(points):
    A, B = points
    np.testing.assert_array_equal(K.White(0.3)(A), 0.3 * np.eye(5))
    np.testing.assert_array_equal(K.White(0.3)(A, B), np.zeros((5, 4)))
    np.testing.assert_array_equal(K.White(0.3)(A, A.copy()), np.zeros((5, 5)))
    np.testing.assert_allclose((K.RBF([0.5, 2.0]) + K.White(0.3))(A), K.RBF([0.5, 2.0])(A) + 0.3 * np.eye(5))


def test_a_point_without_length_is_similar_to_none(points):
    A, _ = points
    A[1] = 0.0
    for kernel in (K.LinearKernel().normalised(), K.Cosine()):
        found = kernel(A)
        np.testing.assert_array_equal(found[1], np.zeros(5))
        assert np.diagonal(found)[[0, 2, 3, 4]] == pytest.approx(np.ones(4))
    assert list(K.LinearKernel().normalised().diagonal(A)) == [1, 0, 1, 1, 1]
    features = K.LinearKernel().normalised().features(sp.csr_array(A)).toarray()
    np.testing.assert_allclose(features, A / np.where(A.any(axis=1), np.linalg.norm(A, axis=1), 1.0)[:, None])
    with pytest.raises(ValueError, match="negative"):
        K.ChiSquared()(np.array([[0.5, -0.1]]))
    with pytest.raises(ValueError, match="negative"):
        K.ChiSquared()(np.array([[0.5, 0.1]]), np.array([[0.5, -0.1]]))
    assert K.ChiSquared()(np.zeros((1, 2)))[0, 0] == 1.0


def test_wrong_parameters_are_refused():
    for make in (
        lambda: K.RBF(0.0), lambda: K.RBF(-1.0), lambda: K.RBF(np.nan), lambda: K.RBF("mean"), lambda: K.RBF(gamma="median"),
        lambda: K.RBF([1.0, 0.0]), lambda: K.Matern(nu=0.0), lambda: K.Matern(nu=-1.0), lambda: K.Laplacian(0.0),
        lambda: K.Polynomial(0), lambda: K.Polynomial(1.5), lambda: K.Polynomial(2, 1.0, np.inf), lambda: K.White(0.0),
        lambda: K.Constant(-1.0), lambda: K.RationalQuadratic(1.0, 0.0), lambda: K.ChiSquared(0.0),
        lambda: K.WeisfeilerLehman(-1), lambda: K.WeisfeilerLehman(1.5), lambda: K.Spectrum(0), lambda: K.Spectrum(1.5),
        lambda: K.Mismatch(3, 3, "ab"), lambda: K.Mismatch(3, -1, "ab"), lambda: K.Mismatch(3, 1), lambda: K.Subsequence(0),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"must|positive"):
            make()
    assert K.Constant(0.0)(np.ones((1, 1)))[0, 0] == 0.0
    K.Polynomial(1), K.Spectrum(1), K.Mismatch(3, 2, "ab"), K.Mismatch(1, 0, "ab"), K.WeisfeilerLehman(0)
    with pytest.raises(ValueError, match="2 entries; the inputs have 3"):
        K.RBF([1.0, 2.0])(np.ones((2, 3)))
    with pytest.raises(ValueError, match="2 entries; X has 3"):
        K.RBF([1.0, 2.0]).resolve(np.ones((2, 3)))
    with pytest.raises(ValueError, match="resolve"):
        K.RBF("median")(np.ones((2, 2)))


# --- Widths from the data -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("sparse", [True, False])
def test_widths_from_the_data(weighted, sparse, rng, monkeypatch):
    """Weights are repetitions; the median is over pairs of different points."""
    X = rng.normal(size=(9, 3)) + 1.0
    X[4] = X[2]
    weight = np.array([1, 2, 0, 1, 3, 1, 1, 2, 1]) if weighted else np.ones(9, dtype=int)
    table, given = sp.csr_array(X) if sparse else X, weight.astype(float) if weighted else None
    repeated = np.repeat(X, weight, axis=0)
    assert scales.resolve_gamma("scale", table, given) == pytest.approx(1 / (3 * repeated.var()))
    assert scales.resolve_gamma("auto", table, given) == 1 / 3
    assert scales.resolve_gamma(0.25, table) == 0.25
    assert scales.resolve_gamma("scale", np.ones((4, 2))) == 1.0
    used = np.flatnonzero(weight)
    pairs = [
        (length(X[i], X[j]), weight[i] * weight[j])
        for n, i in enumerate(used)
        for j in used[n + 1 :]
        if length(X[i], X[j]) > 0
    ]
    every = np.sort(np.repeat([d for d, _ in pairs], [w for _, w in pairs]))
    expected = (every[(len(every) - 1) // 2] + every[len(every) // 2]) / 2
    assert scales.resolve_length("median", table, given) == pytest.approx(expected)
    assert scales.resolve_length(2, table) == 2.0
    assert scales.resolve_length((1.0, 2.0, 3.0), table) == (1.0, 2.0, 3.0)
    assert scales.resolve_length("median", np.ones((4, 2))) == 1.0
    monkeypatch.setattr(scales, "MEDIAN_ROWS", 4)  # 9 // 4 = 2: every other row
    few = X[used[::2]]
    distances = [length(few[i], few[j]) for i in range(len(few)) for j in range(i) if length(few[i], few[j]) > 0]
    if not weighted:
        assert scales.resolve_length("median", table) == pytest.approx(np.median(distances))
    with pytest.raises(ValueError, match="overflow"):
        scales.resolve_gamma("scale", np.full((2, 1), 1e200) * [[1.0], [-1.0]])


# --- Evaluation -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nu", [0.5, 0.9, 1.5, 3.2])
def test_one_feature_and_single_precision(nu, rng):
    x = rng.normal(size=(5, 1)) + 3.0
    expected = [[matern(nu)(abs(a - b) / 0.8) for b in x[:, 0]] for a in x[:, 0]]
    np.testing.assert_allclose(K.Matern(0.8, nu)(x), expected, rtol=1e-7)
    np.testing.assert_allclose(K.Matern(0.8, nu)(x, x[:3].copy()), np.array(expected)[:, :3], rtol=1e-7)
    exact = K.RBF(0.7)(x.astype(np.float32).astype(float))
    for symmetric in (True, False):
        found = full_gram(K.RBF(0.7), x.astype(np.float32), symmetric=symmetric)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, exact, rtol=1e-12)
        kept = full_gram(K.Precomputed(), exact, symmetric=symmetric)
        assert kept is not exact
        np.testing.assert_array_equal(kept, exact)


def test_what_becomes_a_kernel(rng):
    X = rng.normal(size=(4, 2))
    for given, expected in (
        (K.RBF(0.7), K.RBF(0.7)(X)), (hg.Linear(), X @ X.T), (hg.Linear, X @ X.T), (2.5, np.full((4, 4), 2.5)),
        (lambda A, B: (A @ B.T) ** 2, (X @ X.T) ** 2),
    ):  # fmt: skip
        np.testing.assert_allclose(as_kernel(given)(X), expected)
    for wrong in ("rbf", None, [1.0]):
        with pytest.raises(TypeError, match="kernel must be"):
            as_kernel(wrong)
    with pytest.raises(ValueError, match="expected 4 columns, got 3"):
        K.Precomputed().block(np.ones((2, 3)), np.ones((4, 4)))
    with pytest.raises(ValueError, match="one number per row"):
        K.Rank1(lambda A: A)(X)


def test_symmetric_parts_objects_and_columns(rng):
    M = rng.normal(size=(4, 4))
    half = (M + M.T) / 2
    for table in (M.copy(), np.asfortranarray(M), M.astype(np.float32)):
        before = table.copy()
        np.testing.assert_allclose(evaluate.symmetrise(table), half, rtol=1e-6, atol=1e-7)
        np.testing.assert_array_equal(table, before)
    assert evaluate.symmetrise(M, in_place=True) is M
    np.testing.assert_allclose(M, half)
    wide = rng.normal(size=(2, 3))
    assert evaluate.symmetrise(wide) is wide
    for texts in (["ab", "c"], np.array(["ab", "c"]), np.array([["ab"], ["c"]]), pd.Series(["ab", "c"])):
        found = evaluate.objects(texts)
        assert found.dtype == object
        assert list(found) == ["ab", "c"]
    for wrong in (np.array([["a", "b"], ["c", "d"]]), np.array([["a", "b"]])):
        with pytest.raises(ValueError, match="one object per example"):
            evaluate.objects(wrong)
    left, right = rng.normal(size=(3, 2)), rng.normal(size=(3, 1))
    both = np.hstack([left, right])
    np.testing.assert_array_equal(evaluate.side_by_side(left, right), both)
    for pair in ((sp.csr_array(left), right), (left, sp.csr_array(right)), (sp.csr_array(left), sp.csr_array(right))):
        np.testing.assert_array_equal(evaluate.side_by_side(*pair).toarray(), both)
        np.testing.assert_allclose(evaluate.all_products(*pair), left * right)
    with pytest.raises(ValueError, match="2 and 3 features"):
        K.RBF()(np.ones((2, 2)), np.ones((2, 3)))
    assert K.RBF()(np.ones((0, 2)), np.ones((3, 2))).shape == (0, 3)
    assert K.RBF(0.7) == K.RBF(0.7)
    assert K.RBF(0.7) != K.RBF(0.8)
    assert K.RBF(1.0) != K.Matern(1.0)
    assert K.RBF().theta.shape == (1,)
    assert K.LinearKernel().theta.shape == K.LinearKernel().fixed().theta.shape == (0,)
    assert K.LinearKernel().fixed().limits.shape == (0, 2)
