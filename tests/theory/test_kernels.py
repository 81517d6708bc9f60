"""K: kernels, their algebra, and the machines built on them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
import scipy.special

import hinge as hg
from hinge.problem.kernels import evaluate

VECTOR_KERNELS = [
    hg.kernels.LinearKernel(),
    hg.kernels.Quadratic(),
    hg.kernels.Polynomial(3),
    hg.kernels.Polynomial(2, gamma=0.5, coef0=0.0),
    hg.kernels.RBF(1.3),
    hg.kernels.RBF(gamma=0.4),
    hg.kernels.Laplacian(0.7),
    hg.kernels.Matern(1.1, nu=0.5),
    hg.kernels.Matern(1.1, nu=1.5),
    hg.kernels.Matern(1.1, nu=2.5),
    hg.kernels.Matern(1.1, nu=0.8),
    hg.kernels.Matern(1.1, nu=np.inf),
    hg.kernels.RationalQuadratic(1.2, alpha=0.7),
    hg.kernels.Cosine(),
    hg.kernels.ChiSquared(0.6),
    hg.kernels.Constant(2.0),
]
FINITE = [
    k
    for k in VECTOR_KERNELS
    if isinstance(k, hg.kernels.LinearKernel | hg.kernels.Polynomial | hg.kernels.Cosine | hg.kernels.Constant)
] + [
    hg.kernels.Quadratic(),
    2.0 * hg.kernels.Polynomial(2) + hg.Linear() * hg.kernels.Polynomial(1),
    (hg.kernels.LinearKernel() + 1.0) ** 2,
    hg.kernels.Polynomial(2).normalised(),
    hg.kernels.Polynomial(2).of(np.tanh),
    hg.kernels.Rank1(lambda X: np.sin(X[:, 0])),
    hg.kernels.Rank1(lambda X: np.exp(X[:, 1])) * hg.Linear(),
]


def by_hand(kernel, a, b) -> float:
    """The definitions, in as many words."""
    r = np.linalg.norm(a - b)
    match kernel:
        case hg.kernels.LinearKernel():
            return a @ b
        case hg.kernels.Polynomial():
            return (kernel.gamma * (a @ b) + kernel.coef0) ** kernel.degree
        case hg.kernels.RBF():
            return (
                np.exp(-(r**2) / (2 * kernel.length_scale**2)) if kernel.gamma is None else np.exp(-kernel.gamma * r**2)
            )
        case hg.kernels.Laplacian():
            return np.exp(-kernel.gamma * np.abs(a - b).sum())
        case hg.kernels.Matern(nu=0.5):
            return np.exp(-r / kernel.length_scale)
        case hg.kernels.Matern(nu=1.5):
            t = np.sqrt(3) * r / kernel.length_scale
            return (1 + t) * np.exp(-t)
        case hg.kernels.Matern(nu=2.5):
            t = np.sqrt(5) * r / kernel.length_scale
            return (1 + t + t**2 / 3) * np.exp(-t)
        case hg.kernels.Matern(nu=0.8):
            from scipy.special import gamma, kv

            t = np.sqrt(1.6) * r / kernel.length_scale
            return 2**0.2 / gamma(0.8) * t**0.8 * kv(0.8, t) if t > 0 else 1.0
        case hg.kernels.Matern():
            return np.exp(-(r**2) / (2 * kernel.length_scale**2))
        case hg.kernels.RationalQuadratic():
            return (1 + r**2 / (2 * kernel.alpha * kernel.length_scale**2)) ** -kernel.alpha
        case hg.kernels.Cosine():
            return a @ b / np.linalg.norm(a) / np.linalg.norm(b)
        case hg.kernels.ChiSquared():
            return np.exp(-kernel.gamma * np.sum((a - b) ** 2 / (a + b)))
        case hg.kernels.Constant():
            return kernel.value
    return a @ b + (a @ b) ** 2  # Quadratic()


@pytest.mark.mission("K1")
@pytest.mark.parametrize("kernel", VECTOR_KERNELS, ids=repr)
@pytest.mark.parametrize("storage", ["float64", "float32", "csr"])
def test_values_are_the_definitions(kernel, storage, rng):
    A, B = rng.random((7, 5)), rng.random((600, 5))
    expected = np.array([[by_hand(kernel, a, b) for b in B] for a in A])
    if storage == "csr":
        K = kernel(scipy.sparse.csr_array(A), scipy.sparse.csr_array(B))
    else:
        K = kernel(A.astype(storage), B.astype(storage))
    np.testing.assert_allclose(K, expected, rtol=3e-4 if storage == "float32" else 1e-9, atol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(A), [by_hand(kernel, a, a) for a in A], rtol=1e-7)


@pytest.mark.mission("K1")
def test_functions_and_sigmoid_and_precomputed(rng):
    A, B = rng.normal(size=(4, 3)), rng.normal(size=(5, 3))
    np.testing.assert_allclose(hg.kernels.Sigmoid(0.3, 0.1)(A, B), np.tanh(0.3 * A @ B.T + 0.1), rtol=1e-12)
    mine = hg.kernels.LinearKernel() + (lambda X, Y: X @ Y.T)
    np.testing.assert_allclose(mine(A, B), 2 * A @ B.T)
    K = rng.normal(size=(4, 4))
    np.testing.assert_array_equal(hg.kernels.Precomputed()(K, np.zeros((4, 4))), K)


@pytest.mark.mission("K1")
def test_spectrum_counts_shared_words():
    K = hg.kernels.Spectrum(2)(["abab", "ab", "x", ""])
    # "abab" has ab twice and ba once; "ab" has ab once; the others are too short.
    np.testing.assert_array_equal(K, [[5, 2, 0, 0], [2, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])


@pytest.mark.mission("K1")
def test_mismatch_counts_words_with_mistakes(rng):
    strings = ["".join(rng.choice(list("abc"), size=8)) for _ in range(6)]
    words = ["".join(w) for w in itertools.product("abc", repeat=3)]

    def counts(s):
        windows = [s[i : i + 3] for i in range(len(s) - 2)]
        return [sum(sum(a != b for a, b in zip(w, u, strict=True)) <= 1 for w in windows) for u in words]

    phi = np.array([counts(s) for s in strings], dtype=float)
    np.testing.assert_allclose(hg.kernels.Mismatch(3, 1, "abc")(strings), phi @ phi.T)
    for length, mistakes, alphabet in ((1, 0, "abc"), (2, 1, "abcd"), (4, 1, "abc"), (4, 2, "abcd"), (5, 3, "abc")):
        kernel = hg.kernels.Mismatch(length, mistakes, alphabet)
        phi = kernel.features([*strings, "", "ab"])
        np.testing.assert_array_equal(kernel([*strings, "", "ab"]), (phi @ phi.T).toarray())
        np.testing.assert_array_equal(kernel(strings[:2], strings), (phi[:2] @ phi[:6].T).toarray())
    with pytest.raises(ValueError, match="too many to number"):
        hg.kernels.Mismatch(30, 1, "abcdefgh")
    exact = hg.kernels.Mismatch(3, 0, "abc")(strings)
    np.testing.assert_allclose(exact, hg.kernels.Spectrum(3)(strings))


@pytest.mark.mission("K1")
@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 7])
def test_subsequence_is_the_sum_over_all_occurrences(length, rng):
    decay, strings = 0.7, ["cat", "car", "bat", "abracadabra", "ca", ""]
    strings += ["".join(rng.choice(list("abc"), size=size)) for size in range(13)]  # more than are compared at a time

    def features(s):
        table: dict[str, float] = {}
        for chosen in itertools.combinations(range(len(s)), length):
            word = "".join(s[i] for i in chosen)
            table[word] = table.get(word, 0.0) + decay ** (chosen[-1] - chosen[0] + 1)
        return table

    tables = [features(s) for s in strings]
    expected = [[sum(v * b.get(w, 0.0) for w, v in a.items()) for b in tables] for a in tables]
    kernel = hg.kernels.Subsequence(length, decay)
    np.testing.assert_allclose(kernel(strings), expected, rtol=1e-12)
    np.testing.assert_allclose(kernel(strings, strings[:2]), np.array(expected)[:, :2], rtol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(strings), np.diag(expected), rtol=1e-12)


@pytest.mark.mission("K1")
def test_weisfeiler_lehman_cannot_separate_isomorphic_graphs(rng):
    edges = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]
    labels = list("aabb")
    order = rng.permutation(4)
    shuffled = hg.kernels.Graph([labels[int(np.flatnonzero(order == i)[0])] for i in range(4)],
                        [(int(order[a]), int(order[b])) for a, b in edges])  # fmt: skip
    graph, path = hg.kernels.Graph(labels, edges), hg.kernels.Graph(labels, [(0, 1), (1, 2), (2, 3)])
    K = hg.kernels.WeisfeilerLehman(3).normalised()([graph, shuffled, path])
    assert K[0, 1] == pytest.approx(1.0)
    assert K[0, 2] < 0.9
    np.testing.assert_allclose(hg.kernels.WeisfeilerLehman(0)([graph, path]), [[8, 8], [8, 8]])  # labels alone
    phi = hg.kernels.WeisfeilerLehman(2).features([graph, path])
    np.testing.assert_allclose((phi @ phi.T).toarray(), hg.kernels.WeisfeilerLehman(2)([graph, path]))


@pytest.mark.mission("K2")
@pytest.mark.parametrize("kernel", FINITE, ids=repr)
def test_explicit_features_have_the_kernel_as_inner_products(kernel, rng):
    A, B = rng.normal(size=(9, 4)), rng.normal(size=(6, 4))
    K = kernel(A, B)
    np.testing.assert_allclose(kernel.features(A) @ kernel.features(B).T, K, atol=1e-12 * np.abs(K).max())
    features = hg.kernels.Spectrum(2).features(["abab", "ab", "ba"])
    np.testing.assert_allclose((features @ features.T).toarray(), hg.kernels.Spectrum(2)(["abab", "ab", "ba"]))


@pytest.mark.mission("K2")
def test_algebra_equals_its_formulas_and_stays_positive_semidefinite(rng):
    X = rng.random((30, 4))
    for _ in range(20):
        k1, k2 = (VECTOR_KERNELS[i] for i in rng.integers(len(VECTOR_KERNELS), size=2))
        a = float(rng.random()) + 0.1
        K1, K2 = k1(X), k2(X)
        for made, expected in [
            (a * k1, a * K1),
            (k1 + k2, K1 + K2),
            (k1 * k2, K1 * K2),
            (k1**2, K1**2),
            (k1.normalised(), K1 / np.sqrt(np.outer(np.diag(K1), np.diag(K1)))),
            (k1.of(np.sqrt), k1(np.sqrt(X))),
        ]:
            np.testing.assert_allclose(made(X), expected, rtol=1e-8, atol=1e-12)
            hg.kernels.check_psd(made, X)
    with pytest.raises(ValueError, match="≥ 0"):
        -1.0 * hg.kernels.RBF()


@pytest.mark.mission("K2")
def test_linear_space_stands_for_the_linear_kernel():
    assert repr(hg.kernels.RBF(2.0) + hg.Linear()) == repr(hg.kernels.RBF(2.0) + hg.kernels.LinearKernel())
    assert hg.Linear() * hg.kernels.RBF(1.0) == hg.kernels.LinearKernel() * hg.kernels.RBF(1.0)


@pytest.mark.mission("K3")
def test_gram_check_names_the_eigenvalue(rng):
    X = rng.normal(size=(20, 3))
    K = hg.kernels.RBF(1.0)(X)
    assert np.array_equal(K, K.T)
    hg.kernels.check_psd(K)
    values, vectors = np.linalg.eigh(K)
    values[0] = -0.125
    with pytest.raises(ValueError, match=r"smallest eigenvalue is -0\.125"):
        hg.kernels.check_psd((vectors * values) @ vectors.T)
    K[2, 5] += 1.0
    with pytest.raises(ValueError, match=r"not symmetric: entry \(2, 5\)"):
        hg.kernels.check_psd(K)


@pytest.mark.mission("K3")
def test_length_scales_from_data(rng):
    X = rng.normal(size=(40, 3))
    distances = scipy.spatial.distance.pdist(X)
    assert hg.kernels.RBF("median").resolve(X).length_scale == pytest.approx(np.median(distances))
    assert hg.kernels.RBF(gamma="scale").resolve(X).gamma == pytest.approx(1 / (3 * X.var()))
    assert hg.kernels.RBF(gamma="auto").resolve(X).gamma == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match="resolve"):
        hg.kernels.RBF("median")(X)


def quadratic_program(K, y, C):
    """The dual by a general solver."""
    Q = K * np.outer(y, y)
    result = scipy.optimize.minimize(
        lambda a: 0.5 * a @ Q @ a - a.sum(), np.full(len(y), 0.0), jac=lambda a: Q @ a - 1, method="SLSQP",
        bounds=[(0, C)] * len(y), constraints={"type": "eq", "fun": lambda a: a @ y, "jac": lambda a: y},
        options={"maxiter": 1000, "ftol": 1e-15},
    )  # fmt: skip
    return result.x


@pytest.mark.mission("K4")
@pytest.mark.parametrize("seed", range(50))
def test_svc_finds_the_multipliers_of_the_quadratic_program(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(25, 3))
    y = np.sign(X[:, 0] + 0.5 * rng.normal(size=25))
    y[:2] = [-1, 1]
    C = float(10 ** rng.uniform(-1, 1))
    model = hg.SVC(C=C, kernel=hg.kernels.RBF(1.0), tol=1e-10).fit(X, y)
    alpha = np.zeros(25)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    np.testing.assert_allclose(alpha, quadratic_program(hg.kernels.RBF(1.0)(X), y, C), atol=2e-5 * C)


@pytest.mark.mission("K4", "W7", "W8")
def test_margin_and_multiplier_relations(rng):
    X = rng.normal(size=(300, 2))
    y = np.sign(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=300))
    C = 2.0
    model = hg.SVC(C=C, kernel="rbf", gamma=0.5, tol=1e-10).fit(X, y)
    alpha = np.zeros(300)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    m = y * model.decision_function(X)
    near = 1e-6
    assert abs(alpha @ y) < 1e-9
    assert np.all((alpha >= 0) & (alpha <= C))
    # The six relations between the margin and the multiplier.
    assert np.all(alpha[m > 1 + near] == 0)
    assert np.all(alpha[m < 1 - near] == C)
    assert np.all(m[alpha == 0] >= 1 - near)
    assert np.all(m[alpha == C] <= 1 + near)
    inside = (alpha > 0) & (alpha < C)
    assert inside.any()
    np.testing.assert_allclose(m[inside], 1.0, atol=near)
    on = np.abs(m - 1) <= near
    assert np.all((alpha[on] >= 0) & (alpha[on] <= C))
    # Slacks are the losses; both objectives agree; the margin is 1/‖f‖.
    np.testing.assert_allclose(model.slack_, np.maximum(0, 1 - m), atol=1e-9)
    K = hg.kernels.RBF(gamma=0.5)(X)
    square = (alpha * y) @ K @ (alpha * y)
    primal, dual = 0.5 * square + C * model.slack_.sum(), alpha.sum() - 0.5 * square
    assert model.certificate_.primal == pytest.approx(primal, rel=1e-8)
    assert model.certificate_.dual == pytest.approx(dual, rel=1e-8)
    assert primal == pytest.approx(dual, rel=1e-8)
    assert model.margin_[0] == pytest.approx(1 / np.sqrt(square))


@pytest.mark.mission("K4")
def test_only_support_vectors_matter(rng):
    X = rng.normal(size=(200, 2))
    y = np.where(np.hypot(*X.T) < 1, "in", "out")
    model = hg.SVC(C=10.0, kernel=hg.kernels.RBF(1.0), tol=1e-10).fit(X, y)
    again = hg.SVC(C=10.0, kernel=hg.kernels.RBF(1.0), tol=1e-10).fit(X[model.support_], y[model.support_])
    assert len(model.support_) < 100
    grid = rng.normal(size=(500, 2))
    np.testing.assert_allclose(again.decision_function(grid), model.decision_function(grid), atol=1e-7)


@pytest.mark.mission("L5")
def test_leave_one_out_error_is_at_most_the_fraction_of_support_vectors(rng):
    X = rng.normal(size=(60, 2))
    y = np.sign(X[:, 0] + X[:, 1] ** 2 - 0.5)
    model = hg.SVC(C=5.0, kernel=hg.kernels.RBF(1.0), tol=1e-8).fit(X, y)
    errors = 0
    for i in range(60):
        rest = np.arange(60) != i
        errors += hg.SVC(C=5.0, kernel=hg.kernels.RBF(1.0), tol=1e-8).fit(X[rest], y[rest]).predict(X[[i]])[0] != y[i]
    assert errors / 60 <= model.loo_bound_ < 1


@pytest.mark.mission("W7")
def test_hard_margin_or_a_clear_refusal(rng):
    X = np.array([[0.0, 0.0], [0.0, 1.0], [2.0, 0.0], [2.0, 1.0]])
    y = np.array([-1, -1, 1, 1])
    model = hg.SVC(C=np.inf, kernel="linear", tol=1e-9).fit(X, y)
    assert model.margin_[0] == pytest.approx(1.0, rel=1e-6)
    np.testing.assert_allclose(model.coef_, [[1.0, 0.0]], atol=1e-6)
    with pytest.raises(ValueError, match="no hard margin"):
        hg.SVC(C=np.inf, kernel="linear").fit(X, [1, -1, -1, 1])
    assert hg.SVC(C=np.inf, kernel="rbf").fit(X, [1, -1, -1, 1]).score(X, [1, -1, -1, 1]) == 1.0


@pytest.mark.mission("W7")
def test_c_and_lambda_forms_agree(rng):
    X = rng.normal(size=(80, 3))
    y = np.sign(X[:, 0] + 0.5 * rng.normal(size=80))
    C = 3.0
    machine = hg.SVC(C=C, kernel=hg.kernels.RBF(1.5), tol=1e-10).fit(X, y)
    learner = hg.Learner(hg.RKHS(hg.kernels.RBF(1.5)), hg.Hinge(), hg.L2(1 / (C * 80)), tol=1e-10).fit(X, y)
    np.testing.assert_allclose(learner.function_.scores(X), machine.decision_function(X), atol=1e-6)
    assert learner.certificate_.primal == pytest.approx(machine.certificate_.primal / (C * 80), rel=1e-8)


@pytest.mark.mission("K5")
def test_svr_tube(rng):
    X = np.sort(rng.uniform(0, 6, size=(150, 1)), axis=0)
    y = np.sin(X[:, 0]) + 0.2 * rng.normal(size=150)
    C, epsilon = 5.0, 0.1
    model = hg.SVR(C=C, epsilon=epsilon, kernel=hg.kernels.RBF(1.0), tol=1e-10).fit(X, y)
    beta = np.zeros(150)
    beta[model.support_] = model.dual_coef_[0]
    r = y - model.predict(X)
    near = 1e-6
    assert abs(beta.sum()) < 1e-9
    assert np.all(beta[np.abs(r) < epsilon - near] == 0)
    np.testing.assert_allclose(beta[np.abs(r) > epsilon + near], C * np.sign(r[np.abs(r) > epsilon + near]))
    inside = (np.abs(beta) > 0) & (np.abs(beta) < C)
    np.testing.assert_allclose(np.abs(r[inside]), epsilon, atol=near)
    square = beta @ hg.kernels.RBF(1.0)(X) @ beta
    primal = 0.5 * square + C * np.maximum(np.abs(r) - epsilon, 0).sum()
    dual = beta @ y - epsilon * np.abs(beta).sum() - 0.5 * square
    assert primal == pytest.approx(dual, rel=1e-8) == pytest.approx(model.certificate_.primal, rel=1e-8)


@pytest.mark.mission("K6")
@pytest.mark.parametrize("weighted", [False, True])
def test_kernel_ridge_closed_form_and_exact_leave_one_out(weighted, rng):
    X = rng.normal(size=(40, 3))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=40)
    s = rng.integers(1, 4, size=40).astype(float) if weighted else None
    kernel = hg.kernels.RBF(1.0)
    model = hg.KernelRidge(0.3, kernel=kernel, loo=True).fit(X, y, s)
    shift = np.diag(0.3 / (np.ones(40) if s is None else s))
    np.testing.assert_allclose(model.dual_coef_, np.linalg.solve(kernel(X) + shift, y), atol=1e-10)
    assert model.certificate_.relative_gap < 1e-10
    for i in range(40):
        rest = np.arange(40) != i
        without = hg.KernelRidge(0.3, kernel=kernel).fit(X[rest], y[rest], None if s is None else s[rest])
        assert without.predict(X[[i]])[0] == pytest.approx(model.loo_predictions_[i], abs=1e-9)


@pytest.mark.mission("K6")
def test_kernel_ridge_path_from_one_decomposition(rng):
    X = rng.normal(size=(50, 2))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=50)
    alphas = np.logspace(-4, 2, 13)
    model = hg.KernelRidge(kernel=hg.kernels.RBF(1.0), alphas=alphas).fit(X, y)
    single = [hg.KernelRidge(a, kernel=hg.kernels.RBF(1.0), loo=True).fit(X, y) for a in alphas]
    np.testing.assert_allclose(model.path_.dual_coef, [m.dual_coef_ for m in single], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(model.path_.loo_error, [m.loo_error_ for m in single], rtol=1e-8)
    assert model.alpha_ == alphas[np.argmin([m.loo_error_ for m in single])]


@pytest.mark.mission("K6")
def test_kernel_logistic_regression_is_stationary(rng):
    X = rng.normal(size=(80, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    C = 2.0
    model = hg.KernelLogisticRegression(C=C, kernel=hg.kernels.RBF(1.0), tol=1e-12).fit(X, y)
    # f = C Σ yᵢ P(wrong at i) k(xᵢ, ·), from ∇ = 0; and the residuals sum to zero because of the bias.
    residual = y - model.predict_proba(X)[:, 1]
    grid = rng.normal(size=(30, 2))
    f = C * hg.kernels.RBF(1.0)(grid, X) @ residual + model.functions_[0].bias
    np.testing.assert_allclose(model.decision_function(grid), f, atol=1e-5)
    assert abs(residual.sum()) < 1e-5


@pytest.mark.mission("K6")
def test_kernel_perceptron_is_the_perceptron_of_the_features_and_keeps_its_bound(rng):
    X = rng.normal(size=(60, 2))
    f = X[:, 0] ** 2 - X[:, 1]
    X, f = X[np.abs(f) > 0.2], f[np.abs(f) > 0.2]
    y = np.sign(f)
    kernel = hg.kernels.Polynomial(2)
    model = hg.KernelPerceptron(kernel=kernel).fit(X, y)
    phi = kernel.features(X)
    w, mistakes, clean = np.zeros(phi.shape[1]), 0, False
    while not clean:
        clean = True
        for x, t in zip(phi, y, strict=True):
            if t * (w @ x) <= 0:
                w, mistakes, clean = w + t * x, mistakes + 1, False
    np.testing.assert_allclose(model.decision_function(X), phi @ w, rtol=1e-9)
    assert model.mistakes_ == mistakes
    # A direction with a margin: f itself, in the coordinates of the features.
    g = np.linalg.lstsq(phi, f, rcond=None)[0]
    gamma, radius = np.min(y * (phi @ g)) / np.linalg.norm(g), np.sqrt(kernel.diagonal(X).max())
    assert model.mistakes_ <= (radius / gamma) ** 2


@pytest.mark.mission("K6")
def test_a_weight_scales_the_steps_of_the_kernel_perceptron(rng):
    X = rng.normal(size=(60, 2))
    y, s = np.sign(X[:, 0] ** 2 - X[:, 1]), rng.integers(0, 4, size=60) / 2
    kernel = hg.kernels.Polynomial(2)
    phi = kernel.features(X)
    w, mistakes = np.zeros(phi.shape[1]), 0
    for _ in range(5):
        for x, t, step in zip(phi, y, s, strict=True):
            if step > 0 and t * (w @ x) <= 0:
                w, mistakes = w + step * t * x, mistakes + 1
    model = hg.KernelPerceptron(kernel=kernel, max_iter=5).fit(X, y, sample_weight=s)
    np.testing.assert_allclose(model.decision_function(X), phi @ w, rtol=1e-9)
    assert model.mistakes_ == mistakes
    given = hg.KernelPerceptron(kernel="precomputed", max_iter=5).fit(kernel(X), y, sample_weight=s)
    np.testing.assert_allclose(given.decision_function(kernel(X)), phi @ w, rtol=1e-9)
    linear = hg.Perceptron(fit_intercept=False, shuffle=False, max_iter=5, tol=None).fit(phi, y, sample_weight=s)
    np.testing.assert_allclose(linear.coef_[0], w, rtol=1e-9)


LOSSES = [
    (hg.Squared(), "real"),
    (hg.Huber(0.5), "real"),
    (hg.Logistic(), "sign"),
    (hg.SquaredHinge(), "sign"),
    (hg.LogCosh(), "real"),
    (hg.Poisson(), "count"),
]


@pytest.mark.mission("K7")
@pytest.mark.parametrize(("loss", "kind"), LOSSES, ids=lambda v: repr(v))
@pytest.mark.parametrize("kernel", [hg.kernels.LinearKernel(), hg.kernels.Polynomial(2)], ids=repr)
def test_representer_theorem(loss, kind, kernel, rng):
    X = rng.normal(size=(70, 3))
    s = X[:, 0] - 0.5 * X[:, 1] ** 2
    y = {"real": s + 0.1 * rng.normal(size=70), "sign": np.sign(s + 0.2), "count": rng.poisson(np.exp(0.5 * s))}[kind]
    dual = hg.Learner(hg.RKHS(kernel), loss, hg.L2(0.05), tol=1e-12).fit(X, y)
    primal = hg.Learner(hg.Linear(), loss, hg.L2(0.05), tol=1e-12).fit(kernel.features(X), y)
    assert dual.certificate_.primal == pytest.approx(primal.certificate_.primal, rel=1e-9)
    grid = rng.normal(size=(20, 3))
    np.testing.assert_allclose(dual.function_.scores(grid), primal.function_.scores(kernel.features(grid)), atol=2e-5)
    # R(√α'Kα) is the penalty that was paid.
    alpha = dual.dual_coef_
    K = kernel(X[dual.support_])
    assert alpha @ K @ alpha == pytest.approx(np.sum(primal.coef_**2), rel=1e-4)


@pytest.mark.mission("K7")
def test_quantiles_in_a_space_of_functions(rng):
    X = rng.uniform(-2, 2, size=(400, 1))
    y = X[:, 0] ** 2 + (1 + np.abs(X[:, 0])) * rng.normal(size=400)
    for level in (0.1, 0.5, 0.9):
        model = hg.Learner(hg.RKHS(hg.kernels.RBF(1.0)), hg.Quantile(level), hg.L2(1e-3), tol=1e-6).fit(X, y)
        assert model.certificate_.converged
        # Optimality in the bias: at most a fraction `level` lies below, up to the points on the curve.
        below = np.mean(y < model.predict(X) - 1e-6)
        above = np.mean(y > model.predict(X) + 1e-6)
        assert below <= level + 1e-9
        assert above <= 1 - level + 1e-9


@pytest.mark.mission("K7")
def test_only_penalties_of_the_norm_make_sense(rng):
    X, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    with pytest.raises(ValueError, match="norm"):
        hg.Learner(hg.RKHS(hg.kernels.RBF(1.0)), hg.Squared(), hg.L1(0.1)).fit(X, y)


@pytest.mark.mission("K8")
def test_all_centres_give_the_exact_solution(rng):
    X = rng.normal(size=(120, 2))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=120)
    for loss, targets in ((hg.Squared(), y), (hg.Huber(0.3), y), (hg.Logistic(), np.sign(y))):
        exact = hg.Learner(hg.RKHS(hg.kernels.RBF(1.0)), loss, hg.L2(0.01), tol=1e-10).fit(X, targets)
        some = hg.Learner(hg.RKHS(hg.kernels.RBF(1.0), centres=120), loss, hg.L2(0.01), tol=1e-9).fit(X, targets)
        assert some.certificate_.converged
        assert some.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=1e-5)
        np.testing.assert_allclose(some.function_.scores(X), exact.function_.scores(X), atol=2e-3)


@pytest.mark.mission("K8")
def test_blocks_made_anew_equal_blocks_kept(rng):
    X = rng.normal(size=(900, 3))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=900)
    fits = [
        hg.Learner(hg.RKHS(hg.kernels.RBF(1.0), centres=60, cache_size=size), hg.Squared(), hg.L2(1e-3), tol=1e-8).fit(
            X, y
        )
        for size in (100.0, 0.05, 1e-9)
    ]
    assert fits[0].certificate_.converged
    for other in fits[1:]:
        np.testing.assert_allclose(other.predict(X), fits[0].predict(X), atol=1e-4)


@pytest.mark.mission("K8")
def test_nystroem_with_all_points_is_exact_and_projects_otherwise(rng):
    X = rng.normal(size=(60, 3))
    kernel = hg.kernels.RBF(1.0)
    full = hg.Nystroem(kernel, n_components=60, random_state=0).fit_transform(X)
    np.testing.assert_allclose(full @ full.T, kernel(X), atol=1e-8)
    part = hg.Nystroem(kernel, n_components=20, random_state=0).fit(X)
    phi, chosen = part.transform(X), part.component_indices_
    np.testing.assert_allclose((phi @ phi.T)[:, chosen], kernel(X)[:, chosen], atol=1e-7)  # exact at the centres
    hg.kernels.check_psd(kernel(X) - phi @ phi.T, tol=1e-7)  # and never too large


@pytest.mark.mission("K8")
@pytest.mark.parametrize("orthogonal", [False, True])
@pytest.mark.parametrize(
    "kernel",
    [hg.kernels.RBF(1.2), hg.kernels.Matern(1.0, nu=1.5), hg.kernels.Laplacian(0.5), 3.0 * hg.kernels.RBF(0.8)],
    ids=repr,
)
def test_random_fourier_features_approach_the_kernel(kernel, orthogonal, rng):
    if orthogonal and isinstance(kernel, hg.kernels.Laplacian):
        pytest.skip("the Laplacian kernel is not rotation-invariant")
    X = rng.normal(size=(15, 4))
    errors = []
    for D in (200, 20000):
        features = hg.RandomFourierFeatures(kernel, n_components=D, orthogonal=orthogonal, random_state=1)
        phi = features.fit_transform(X)
        errors.append(np.abs(phi @ phi.T - kernel(X)).max())
    assert errors[1] < 0.1 * kernel.diagonal(X).max() / 2
    assert errors[1] < errors[0]


@pytest.mark.mission("K1")
@pytest.mark.parametrize("nu", [0.3, 0.8, 1.2, 3.7])
def test_matern_of_any_smoothness(nu, rng):
    """2^(1−ν)/Γ(ν) t^ν K_ν(t), t = √(2ν) r/ℓ, one on the diagonal; ν = ½, 3/2, 5/2 have closed forms next to it."""
    A = rng.normal(size=(7, 3))
    r = np.sqrt(np.sum((A[:, None] - A) ** 2, axis=-1))
    t = np.sqrt(2 * nu) * r / 1.3 + np.eye(7)
    expected = 2 ** (1 - nu) / scipy.special.gamma(nu) * t**nu * scipy.special.kv(nu, t)
    K = hg.kernels.Matern(nu=nu, length_scale=1.3)(A, A)
    np.testing.assert_allclose(K, np.where(np.eye(7, dtype=bool), 1.0, expected), rtol=1e-5, atol=1e-7)
    for closed in (0.5, 1.5, 2.5):
        other = hg.kernels.Matern(nu=closed * (1 + 1e-7), length_scale=1.3)(A, A)
        np.testing.assert_allclose(hg.kernels.Matern(nu=closed, length_scale=1.3)(A, A), other, rtol=1e-4, atol=1e-6)


@pytest.mark.mission("K3")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_points_keep_their_precision_unless_another_is_wanted(dtype, rng):
    X = rng.normal(size=(5, 2)).astype(dtype)
    name = "KernelPoints32" if dtype == np.float32 else "KernelPoints64"
    assert type(evaluate.points(X)).__name__ == name
    assert type(evaluate.points(X, np.float64)).__name__ == "KernelPoints64"
    assert type(evaluate.points(X, np.float32)).__name__ == "KernelPoints32"
