"""Kernels that are not positive semidefinite: refused, clipped or solved as stationary points, never certified by a gap.

With a negative eigenvalue of K the norm β'Kβ has no lower bound, so that every "lower bound" of the objective is false.
"""

import warnings

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_outlier_detector

import hinge as hg
from hinge.problem.kernels import Definiteness, Function, Kernel, definiteness
from hinge.problem.kernels.check import CHECK_ROWS

pytestmark = pytest.mark.mission("K9")


def minus_distance(A, B):
    return -np.sum((A[:, None] - B[None]) ** 2, axis=-1)


def inner(A, B):
    return A @ B.T


INDEFINITE = {
    "sigmoid": hg.kernels.Sigmoid(5.0, -1.0),
    "polynomial": hg.kernels.Polynomial(3, 1.0, -1.0),
    "function": minus_distance,
    "sum": hg.kernels.RBF(1.0) + 3.0 * Function(minus_distance),
    "product": hg.kernels.RBF(1.0) * hg.kernels.Sigmoid(5.0, -1.0),
    "normalised": hg.kernels.Polynomial(3, 1.0, -1.0).normalised(),
    "power": hg.kernels.Sigmoid(5.0, -1.0) ** 3,
    "no positive eigenvalue": lambda A, B: -inner(A, B),
    "precomputed": hg.kernels.Precomputed(),
}
MACHINES = {
    "SVC": lambda k: hg.SVC(kernel=k),
    "SVC ovr": lambda k: hg.SVC(kernel=k, multi_class="ovr"),
    "NuSVC": lambda k: hg.NuSVC(kernel=k, nu=0.3),
    "SVR": lambda k: hg.SVR(kernel=k),
    "NuSVR": lambda k: hg.NuSVR(kernel=k),
    "OneClassSVM": lambda k: hg.OneClassSVM(kernel=k),
    "Learner hinge": lambda k: hg.Learner(hg.RKHS(k), hg.Hinge(), hg.L2(1e-2), tol=1e-4),
    "Learner absolute": lambda k: hg.Learner(hg.RKHS(k), hg.Absolute(), hg.L2(1e-2), tol=1e-4),
}
CLIPPED = {
    "KernelLogisticRegression": lambda k: hg.KernelLogisticRegression(kernel=k),
    "Learner logistic": lambda k: hg.Learner(hg.RKHS(k), hg.Logistic(), hg.L2(1e-2)),
    "Learner squared": lambda k: hg.Learner(hg.RKHS(k), hg.Squared(), hg.L2(1e-2)),
}
RIDGE = {
    "KernelRidge": lambda k: hg.KernelRidge(kernel=k, alpha=1.0),
    "KernelRidge path": lambda k: hg.KernelRidge(kernel=k, alphas=[0.1, 1.0, 10.0]),
}


def example(name, rng, n=80):
    """Inputs (or a matrix with eigenvalues of both signs), labels and real targets."""
    X = rng.normal(size=(n, 3))
    labels, real = (np.hypot(X[:, 0], X[:, 1]) < 1.2).astype(int), np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=n)
    if name == "precomputed":
        Q = rng.normal(size=(n, n))
        return Q + Q.T, labels, real
    return X, labels, real


def fit(model, X, labels, real):
    if is_outlier_detector(model):
        return model.fit(X)
    classes = is_classifier(model) or "Hinge" in str(model) or "Logistic" in str(model)
    return model.fit(X, labels if classes else real)


@pytest.mark.filterwarnings("ignore:nu=")
@pytest.mark.parametrize("kernel", INDEFINITE)
@pytest.mark.parametrize("name", [*MACHINES, *CLIPPED, *RIDGE])
def test_no_gap_and_a_warning_at_the_line_of_the_caller(name, kernel, rng):
    model = ({**MACHINES, **CLIPPED, **RIDGE})[name](INDEFINITE[kernel])
    X, labels, real = example(kernel, rng)
    with pytest.warns(UserWarning, match="not positive semidefinite") as caught:
        fit(model, X, labels, real)
    assert any(w.filename == __file__ for w in caught if "semidefinite" in str(w.message))
    found = model.certificate_
    assert found.kind == "stationarity"
    assert found.dual == -np.inf
    assert found.weight_error == np.inf
    assert found.converged, found.explain()
    assert np.all(np.isfinite(model.predict(X)))
    assert "lower bound" in found.explain()


@pytest.mark.parametrize("kernel", INDEFINITE)
@pytest.mark.parametrize("labels", ["classes", "real"])
def test_machines_meet_the_optimality_conditions_of_the_dual(kernel, labels, rng):
    """The conditions, written out for the multipliers that are returned."""
    X, classes, real = example(kernel, rng)
    K = X if kernel == "precomputed" else hg.problem.kernels.as_kernel(INDEFINITE[kernel])(X)
    shared = {"kernel": INDEFINITE[kernel], "C": 0.7, "tol": 1e-6}
    model, y = (hg.SVC(**shared), classes) if labels == "classes" else (hg.SVR(**shared, epsilon=0.1), real)
    with pytest.warns(UserWarning, match="semidefinite"):
        model.fit(X, y)
    beta = np.zeros(len(K))
    beta[model.support_] = model.dual_coef_[0]
    f = K @ beta + model.intercept_[0]
    assert abs(beta.sum()) < 1e-9
    assert np.abs(beta).max() <= 0.7 + 1e-12
    slack = 1e-5 * (1.0 + np.abs(f).max())
    if labels == "classes":
        y = 2.0 * classes - 1.0
        alpha, margin = y * beta, y * f
        assert np.all(margin[alpha == 0] >= 1 - slack)
        assert np.all(margin[alpha >= 0.7] <= 1 + slack)
        assert np.all(np.abs(margin[(alpha > 0) & (alpha < 0.7)] - 1) <= slack)
    else:
        error = real - f
        assert np.all(np.abs(error[beta == 0]) <= 0.1 + slack)
        assert np.all((error * np.sign(beta))[beta != 0] >= 0.1 - slack)
        free = (beta != 0) & (np.abs(beta) < 0.7)
        assert np.all(np.abs(np.abs(error[free]) - 0.1) <= slack)


@pytest.mark.filterwarnings("ignore:.*semidefinite")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", INDEFINITE)
def test_kernel_ridge_solves_its_equations_whatever_the_signs_of_eigenvalues(kernel, weighted, rng):
    X, _, y = example(kernel, rng)
    K = X if kernel == "precomputed" else hg.problem.kernels.as_kernel(INDEFINITE[kernel])(X)
    s = rng.integers(1, 4, len(y)).astype(float) if weighted else np.ones(len(y))
    model = hg.KernelRidge(kernel=INDEFINITE[kernel], alpha=0.3, loo=True).fit(X, y, s if weighted else None)
    A = K + 0.3 * np.diag(1 / s)
    size = np.linalg.cond(A) * 1e-13
    np.testing.assert_allclose(A @ model.dual_coef_, y, atol=1e-9 + size)
    inverse = np.linalg.inv(A)
    wanted = y - (inverse @ y) / np.diag(inverse)
    np.testing.assert_allclose(model.loo_predictions_, wanted, rtol=1e-5 + size, atol=1e-6 + size)


@pytest.mark.filterwarnings("ignore:.*semidefinite")
@pytest.mark.parametrize("kernel", INDEFINITE)
def test_clipping_is_the_problem_of_the_positive_eigenvalues(kernel, rng):
    X, labels, _ = example(kernel, rng)
    K = X if kernel == "precomputed" else hg.problem.kernels.as_kernel(INDEFINITE[kernel])(X)
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-9 * np.abs(values).max()
    model = hg.KernelLogisticRegression(kernel=INDEFINITE[kernel], C=0.5).fit(X, labels)
    if not np.any(kept):
        assert np.ptp(model.decision_function(X)) == 0
        return
    same = hg.LogisticRegression(C=0.5, tol=1e-12).fit(vectors[:, kept] * np.sqrt(values[kept]), labels)
    wanted = same.decision_function(vectors[:, kept] * np.sqrt(values[kept]))
    np.testing.assert_allclose(model.decision_function(X), wanted, atol=1e-4 * (1 + np.abs(wanted).max()))


@pytest.mark.parametrize("kernel", [k for k in INDEFINITE if k != "precomputed"])
def test_covariances_and_expansions_over_centres_are_refused(kernel, rng):
    X, labels, real = example(kernel, rng)
    with pytest.raises(ValueError, match="not positive semidefinite"):
        hg.GaussianProcessRegressor(INDEFINITE[kernel], alpha=1e4).fit(X, real)
    with pytest.raises(ValueError, match="not positive semidefinite"):
        hg.GaussianProcessClassifier(INDEFINITE[kernel]).fit(X, labels)
    with pytest.raises(ValueError, match="centres"):
        hg.Learner(hg.RKHS(INDEFINITE[kernel], centres=60), hg.Logistic(), hg.L2(1e-2)).fit(X, labels)


@pytest.mark.parametrize("kernel", INDEFINITE)
def test_methods_without_certificate_warn_too(kernel, rng):
    X, labels, _ = example(kernel, rng)
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        hg.KernelPerceptron(kernel=INDEFINITE[kernel], max_iter=5).fit(X, labels)
    if kernel != "precomputed":
        with pytest.warns(UserWarning, match="not positive semidefinite"):
            hg.Nystroem(INDEFINITE[kernel], n_components=60).fit(X)


DEFINITE = {
    "linear": hg.kernels.LinearKernel(),
    "algebra": 0.5
    * (hg.kernels.RBF(1.0) + hg.kernels.Polynomial(2, 1.0, 0.5) * hg.kernels.Laplacian(0.3)).normalised() ** 2,
    "fixed, of": (hg.kernels.Matern(1.0, 2.5) + hg.kernels.White(0.1)).fixed() + hg.kernels.Cosine().of(np.tanh),
    "function": inner,
    "function and kernel": hg.kernels.RBF(1.0) + Function(inner),
    "zero": lambda A, B: 0.0 * inner(A, B),
    "precomputed": hg.kernels.Precomputed(),
}


@pytest.mark.filterwarnings("ignore:nu=")
@pytest.mark.parametrize("kernel", DEFINITE)
@pytest.mark.parametrize("name", [*MACHINES, *CLIPPED, *RIDGE])
def test_positive_semidefinite_kernels_keep_their_gap(name, kernel, rng):
    X, labels, real = example("", rng)
    model = fit(({**MACHINES, **CLIPPED, **RIDGE})[name](DEFINITE[kernel]), inner(X, X) if kernel == "precomputed" else X,
                labels, real)  # fmt: skip
    assert model.certificate_.kind == "gap"
    assert model.certificate_.converged


def test_the_algebra_declares_and_does_not_compute():
    class Undeclared(Kernel):
        def block(self, A, B):
            raise AssertionError("a declared kernel is not evaluated")

    class Declared(Undeclared):
        psd = True

    k = Declared()
    X = np.zeros((5, 2))
    for kernel in (
        k,
        k + k,
        k * k,
        2.0 * k,
        k**3,
        k.normalised(),
        k.fixed(),
        k.of(np.tanh),
        1.0 + k,
        hg.kernels.RBF() * k,
    ):
        assert kernel.psd
        assert definiteness(kernel, X) is Definiteness.PROVEN
    for kernel in (Undeclared(), k + Undeclared(), Undeclared() * k, 2.0 * Undeclared(), Undeclared() ** 2):
        assert not kernel.psd
    assert not hg.kernels.Polynomial(2, 1.0, -0.1).psd
    assert hg.kernels.Polynomial(2, 1.0, 0.0).psd
    assert Function(inner, psd=True).psd
    assert not Function(inner).psd


def test_many_points_prove_an_indefinite_kernel_but_no_definite_one(rng):
    """Beyond CHECK_ROWS a check of all points would take longer than a tenth of the fit: no gap without it."""
    X = rng.normal(size=(CHECK_ROWS + 200, 3))
    assert definiteness(hg.kernels.Sigmoid(5.0, -1.0), X) is Definiteness.INDEFINITE
    assert definiteness(Function(inner), X) is Definiteness.UNKNOWN
    assert definiteness(Function(inner, psd=True), X) is Definiteness.PROVEN
    y = np.sign(X[:, 0] + 0.5 * rng.normal(size=len(X)))
    unknown = hg.SVC(kernel=Function(inner), tol=1e-5).fit(X, y)
    known = hg.SVC(kernel=Function(inner, psd=True), tol=1e-8).fit(X, y)
    assert unknown.certificate_.kind == "stationarity"
    assert unknown.certificate_.converged
    assert known.certificate_.kind == "gap"
    np.testing.assert_allclose(unknown.decision_function(X), known.decision_function(X), atol=1e-2)
    # A factor of the whole matrix proves it: no check is needed.
    smooth = hg.Learner(hg.RKHS(Function(inner)), hg.Logistic(), hg.L2(1e-2)).fit(X, y)
    assert smooth.certificate_.kind == "gap"
    assert smooth.certificate_.converged


def test_a_negative_eigenvalue_that_few_points_hide_is_found_by_the_factor(rng):
    n = CHECK_ROWS + 400
    hidden = np.setdiff1d(np.arange(n), np.linspace(0, n - 1, CHECK_ROWS).astype(int))[:2]
    K = np.eye(n)
    K[hidden[0], hidden[1]] = K[hidden[1], hidden[0]] = 3.0
    y = rng.integers(0, 2, n)
    assert definiteness(hg.kernels.Precomputed(), K) is Definiteness.UNKNOWN
    assert hg.SVC(kernel="precomputed").fit(K, y).certificate_.kind == "stationarity"
    assert hg.KernelRidge(kernel="precomputed").fit(K, y.astype(float)).certificate_.kind == "stationarity"
    with pytest.warns(UserWarning, match="semidefinite"):
        model = hg.KernelLogisticRegression(kernel="precomputed").fit(K, y)
    assert model.certificate_.kind == "stationarity"


def test_matrices_that_are_not_symmetric_are_refused(rng):
    K = rng.normal(size=(30, 30))
    K = K @ K.T
    K[3, 5] += 1.0
    y = np.arange(30) % 2
    for model in (hg.SVC(kernel="precomputed"), hg.KernelRidge(kernel="precomputed"),
                  hg.KernelLogisticRegression(kernel="precomputed")):  # fmt: skip
        with pytest.raises(ValueError, match=r"not symmetric.*\(X \+ X.T\) / 2"):
            clone(model).fit(K, y)


def test_rounding_is_no_negative_eigenvalue(rng):
    """Gram matrices of low rank, in single precision, of many equal points: their eigenvalues are zero to rounding."""
    X = rng.normal(size=(300, 2)) * 10.0 ** rng.uniform(-3, 3)
    for points in (X, X.astype(np.float32), np.repeat(X[:5], 60, axis=0)):
        K = points @ points.T
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert definiteness(hg.kernels.Precomputed(), K) is Definiteness.PROVEN
            assert definiteness(Function(inner), points) is Definiteness.PROVEN


@pytest.mark.parametrize("name", ["SVC", "SVR", "OneClassSVM", "NuSVC", "NuSVR"])
def test_as_the_width_vanishes_every_point_is_a_support_vector(name, rng):
    """K → I: f(xᵢ) = βᵢ, so no point can be left out. For balanced labels the margin conditions give α = 1 < C."""
    X = rng.normal(size=(40, 3))
    y = np.arange(40) % 2
    model = {
        "SVC": hg.SVC(C=10.0, gamma=1e6, tol=1e-8),
        "SVR": hg.SVR(C=10.0, gamma=1e6, epsilon=0.0, tol=1e-8),
        "OneClassSVM": hg.OneClassSVM(nu=0.5, gamma=1e6, tol=1e-8),
        "NuSVC": hg.NuSVC(nu=0.5, gamma=1e6, tol=1e-8),
        "NuSVR": hg.NuSVR(C=10.0, nu=1.0, gamma=1e6, tol=1e-8),
    }[name]
    model.fit(X, rng.normal(size=40) if name in ("SVR", "NuSVR") else y)
    wide = clone(model).set_params(gamma=1e-2).fit(X, y if is_classifier(model) else X[:, 0])
    assert len(model.support_) == 40
    assert model.certificate_.converged
    if name == "SVC":
        np.testing.assert_allclose(np.abs(model.dual_coef_), 1.0, atol=1e-6)
        assert model.loo_bound_ == 1.0
    if name == "OneClassSVM":
        np.testing.assert_allclose(model.dual_coef_, 0.5, atol=1e-6)
        assert len(wide.support_) < 40
