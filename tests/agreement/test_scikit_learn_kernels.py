"""scikit-learn's kernel objects are translated: the same values, derivatives, evidence, bounds and predictions."""

import numpy as np
import pytest
import sklearn.gaussian_process as peer
import sklearn.kernel_ridge
import sklearn.svm
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    GenericKernelMixin,
    Hyperparameter,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)
from sklearn.gaussian_process.kernels import Kernel as SklearnKernel

import hinge as hg
from hinge.problem.kernels import as_kernel

KERNELS = {
    "rbf": 2.0 * RBF(1.3) + WhiteKernel(0.1),
    "rbf by features": 1.0 * RBF([1.0, 2.0]) + WhiteKernel(0.1),
    "fixed length": ConstantKernel(2.0) * RBF(0.8, "fixed") + WhiteKernel(0.1),
    "fixed factor": ConstantKernel(2.0, "fixed") * RBF(0.8) + WhiteKernel(0.1, "fixed"),
    "matern 1/2": Matern(1.1, nu=0.5) + WhiteKernel(0.1),
    "matern 3/2": Matern([1.1, 0.7], nu=1.5) + WhiteKernel(0.1),
    "matern 5/2": 1.0 * Matern(1.1, nu=2.5) + WhiteKernel(0.1),
    "matern 0.7": Matern(1.1, nu=0.7) + WhiteKernel(0.1),
    "matern 2.1": Matern(1.1, nu=2.1) + WhiteKernel(0.1),
    "matern infinite": Matern(1.1, nu=np.inf) + WhiteKernel(0.1),
    "rational quadratic": RationalQuadratic(1.2, 0.7) + WhiteKernel(0.1),
    "rational quadratic, one fixed": RationalQuadratic(1.2, 0.7, length_scale_bounds="fixed") + WhiteKernel(0.1),
    "dot product": DotProduct(0.9) + WhiteKernel(0.1),
    "power": Exponentiation(DotProduct(0.9), 2) + WhiteKernel(0.1, (1e-3, 10.0)),
    "narrow bounds": ConstantKernel(1.0, (0.9, 1.1)) * RBF(1.0, (0.5, 0.6)) + WhiteKernel(0.1, (0.05, 0.2)),
    "sum of products": 1.0 * RBF(1.0) * DotProduct(1.0, "fixed") + 0.5 * RationalQuadratic() + WhiteKernel(0.2),
}


def example(rng, n=50):
    X, new = rng.normal(size=(n, 2)), rng.normal(size=(20, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.3 * rng.normal(size=n), new


@pytest.mark.parametrize("name", KERNELS)
def test_values_gradients_and_bounds(name, rng):
    X, y, new = example(rng)
    theirs, ours = KERNELS[name], as_kernel(KERNELS[name])
    np.testing.assert_allclose(ours(X), theirs(X), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours(X, new), theirs(X, new), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours.diagonal(X), theirs.diag(X))
    scale = np.ones(len(theirs.theta))  # theta of DotProduct is log σ₀, ours log σ₀²
    names = [h.name for h in theirs.hyperparameters if not h.fixed for _ in range(h.n_elements)]
    scale[[n.endswith("sigma_0") for n in names]] = 2.0
    np.testing.assert_allclose(ours.theta, scale * theirs.theta)
    limits = np.where(np.isnan(ours.limits), (1e-5, 1e5), ours.limits)
    np.testing.assert_allclose(np.log(limits), scale[:, None] * theirs.bounds)
    a = peer.GaussianProcessRegressor(theirs, alpha=1e-2, optimizer=None).fit(X, y)
    b = hg.GaussianProcessRegressor(theirs, alpha=1e-2, optimizer=None).fit(X, y)
    value, gradient = a.log_marginal_likelihood(theirs.theta, eval_gradient=True)
    mine = b.log_marginal_likelihood(ours.theta, eval_gradient=True)
    np.testing.assert_allclose(mine[0], value, rtol=1e-8)
    # scikit-learn differentiates Matérn kernels of other ν numerically.
    np.testing.assert_allclose(scale * mine[1], gradient, rtol=1e-3, atol=1e-4 * (1 + np.abs(gradient).max()))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # theirs, at bounds
@pytest.mark.parametrize("optimizer", [None, "fmin_l_bfgs_b"])
@pytest.mark.parametrize("name", KERNELS)
def test_regression_agrees(name, optimizer, rng):
    X, y, new = example(rng)
    a = peer.GaussianProcessRegressor(KERNELS[name], alpha=1e-2, optimizer=optimizer).fit(X, y)
    b = hg.GaussianProcessRegressor(KERNELS[name], alpha=1e-2, optimizer=optimizer).fit(X, y)
    if optimizer is None:
        tolerance = 1e-6
        np.testing.assert_allclose(b.log_marginal_likelihood_value_, a.log_marginal_likelihood_value_, rtol=1e-8)
    else:
        assert b.log_marginal_likelihood_value_ > a.log_marginal_likelihood_value_ - 0.01
        tolerance = 0.02
        if b.log_marginal_likelihood_value_ > a.log_marginal_likelihood_value_ + 0.01:
            return  # a better maximum
    for found, wanted in zip(b.predict(new, return_std=True), a.predict(new, return_std=True)):
        np.testing.assert_allclose(found, wanted, atol=tolerance * (1 + np.abs(wanted).max()))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("optimizer", [None, "fmin_l_bfgs_b"])
@pytest.mark.parametrize("name", [k for k in KERNELS if "matern 0" not in k and "matern 2." not in k])
def test_classification_agrees(name, optimizer, rng):
    X, y, new = example(rng)
    labels = np.where(y > 0, "up", "down")
    a = peer.GaussianProcessClassifier(KERNELS[name], optimizer=optimizer).fit(X, labels)
    b = hg.GaussianProcessClassifier(KERNELS[name], optimizer=optimizer).fit(X, labels)
    if optimizer is None:
        np.testing.assert_allclose(b.log_marginal_likelihood_value_, a.log_marginal_likelihood_value_, rtol=1e-5)
        np.testing.assert_allclose(b.predict_proba(new), a.predict_proba(new), atol=2e-3)
    else:
        assert b.log_marginal_likelihood_value_ > a.log_marginal_likelihood_value_ - 0.02


def test_the_classifier_fits_its_kernel_unless_its_optimizer_is_none(rng):
    X, y, _ = example(rng)
    kernel = 1.0 * hg.kernels.RBF(1.0)
    fitted = hg.GaussianProcessClassifier(kernel).fit(X, y > 0)
    kept = hg.GaussianProcessClassifier(kernel, optimizer=None).fit(X, y > 0)
    assert np.max(np.abs(fitted.kernel_.theta - kernel.theta)) > 0.1
    assert kept.kernel_ == kernel
    assert fitted.log_marginal_likelihood_value_ > kept.log_marginal_likelihood_value_

    def no_step(objective, theta, bounds):
        value, gradient = objective(theta)
        assert np.isfinite(value)
        assert gradient.shape == theta.shape == bounds[:, 0].shape
        return theta, value

    same = hg.GaussianProcessClassifier(kernel, optimizer=no_step).fit(X, y > 0)
    np.testing.assert_allclose(same.kernel_.theta, kernel.theta)
    with pytest.raises(ValueError, match="optimizer"):
        hg.GaussianProcessClassifier(kernel, optimizer="adam").fit(X, y > 0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # at bounds, as they should be
def test_parameters_stay_within_their_own_bounds(rng):
    X, y, _ = example(rng)
    kernel = hg.kernels.Constant(1.0).within((0.9, 1.1)) * hg.kernels.RBF(1.0).within((0.5, 0.6)) + hg.kernels.White(
        0.1
    )
    for model in (
        hg.GaussianProcessRegressor(kernel, n_restarts_optimizer=2, random_state=0, bounds=(1e-3, 0.2)).fit(X, y),
        hg.GaussianProcessClassifier(kernel, n_restarts_optimizer=1, random_state=0, bounds=(1e-3, 0.2)).fit(X, y > 0),
    ):
        values = np.exp(model.kernel_.theta)
        assert np.all(values >= np.array([0.9, 0.5, 1e-3]) - 1e-9)
        assert np.all(values <= np.array([1.1, 0.6, 0.2]) + 1e-9)
    with pytest.raises(ValueError, match="bounds"):
        hg.kernels.RBF(1.0).within()
    with pytest.raises(ValueError, match="low"):
        hg.kernels.RBF(1.0).within((2.0, 1.0))


def test_periodic(rng):
    X, new = rng.uniform(0, 10, (60, 1)), rng.uniform(0, 20, (30, 1))
    theirs = 1.0 * ExpSineSquared(1.0, 3.0) + WhiteKernel(0.1)
    ours = as_kernel(theirs)
    np.testing.assert_allclose(ours(X, new), theirs(X, new), atol=1e-9)
    np.testing.assert_allclose(ours.theta, theirs.theta)
    y = np.sin(2 * np.pi * X[:, 0] / 3.1) + 0.1 * rng.normal(size=60)
    a = peer.GaussianProcessRegressor(theirs).fit(X, y)
    b = hg.GaussianProcessRegressor(theirs).fit(X, y)
    assert b.log_marginal_likelihood_value_ > a.log_marginal_likelihood_value_ - 0.01
    _, gradient = b.log_marginal_likelihood(ours.theta, eval_gradient=True)
    _, wanted = a.log_marginal_likelihood(theirs.theta, eval_gradient=True)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["rbf", "matern 3/2", "rational quadratic", "dot product"])
def test_kernel_machines_take_them_too(name, rng):
    X, y, new = example(rng)
    kernel = KERNELS[name].k1  # without noise
    a = sklearn.kernel_ridge.KernelRidge(kernel=kernel, alpha=0.1).fit(X, y)
    b = hg.KernelRidge(kernel=kernel, alpha=0.1).fit(X, y)
    np.testing.assert_allclose(b.predict(new), a.predict(new), rtol=1e-6, atol=1e-6)
    assert b.certificate_.kind == "gap"
    a = sklearn.svm.SVC(kernel=kernel, tol=1e-8).fit(X, y > 0)
    b = hg.SVC(kernel=kernel, tol=1e-10).fit(X, y > 0)
    np.testing.assert_allclose(b.decision_function(new), a.decision_function(new), atol=1e-4)
    assert b.certificate_.kind == "gap"


def test_both_libraries_in_one_expression(rng):
    X, _, _ = example(rng)
    wanted = hg.kernels.RBF(1.0)(X) + 2.0 * hg.kernels.Matern(0.5, 1.5)(X)
    for kernel in (hg.kernels.RBF(1.0) + 2.0 * Matern(0.5, nu=1.5), 2.0 * Matern(0.5, nu=1.5) + hg.kernels.RBF(1.0)):
        np.testing.assert_allclose(as_kernel(kernel)(X), wanted)


@pytest.mark.parametrize("kernel", [CompoundKernel([RBF(1.0)]), RBF(1.0) ** 0.5, RBF(1.0) ** 2.5, RBF(1.0) ** -1])
def test_what_is_no_kernel_is_refused_by_name(kernel, rng):
    X, y, _ = example(rng)
    name = "exponent" if isinstance(kernel, Exponentiation) else "CompoundKernel"
    for model in (hg.GaussianProcessRegressor(kernel), hg.KernelRidge(kernel=kernel), hg.SVR(kernel=kernel)):
        with pytest.raises(ValueError, match=name):
            model.fit(X, y)


class Shifted(RBF):
    """A kernel of a user's own class: k(x, x') + 1/2."""

    def __call__(self, X, Y=None, eval_gradient=False):
        if eval_gradient:
            K, gradient = super().__call__(X, Y, eval_gradient=True)
            return K + 0.5, gradient
        return super().__call__(X, Y) + 0.5

    def diag(self, X):
        return super().diag(X) + 0.5


class SharedLetters(GenericKernelMixin, SklearnKernel):
    """How many letters two words share, and a baseline: a kernel of objects."""

    def __init__(self, baseline=0.5, baseline_bounds=(1e-3, 10.0)):
        self.baseline = baseline
        self.baseline_bounds = baseline_bounds

    @property
    def hyperparameter_baseline(self):
        return Hyperparameter("baseline", "numeric", self.baseline_bounds)

    def __call__(self, X, Y=None, eval_gradient=False):
        K = np.array([[len(set(a) & set(b)) for b in (X if Y is None else Y)] for a in X]) + self.baseline
        return (K, np.full((*K.shape, 1), self.baseline)) if eval_gradient else K

    def diag(self, X):
        return np.array([len(set(a)) for a in X]) + self.baseline

    def is_stationary(self):
        return False


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # at bounds
@pytest.mark.parametrize(
    "kernel", [Shifted(1.0), 1.0 * Shifted([1.0, 2.0]) + WhiteKernel(0.1), PairwiseKernel(metric="rbf")]
)
def test_kernels_of_users_classes(kernel, rng):
    """They are evaluated, differentiated and fitted by their own methods."""
    X, y, new = example(rng)
    a = peer.GaussianProcessRegressor(kernel, alpha=1e-1, optimizer=None).fit(X, y)
    b = hg.GaussianProcessRegressor(kernel, alpha=1e-1, optimizer=None).fit(X, y)
    for found, wanted in zip(b.predict(new, return_std=True), a.predict(new, return_std=True)):
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)
    found = b.log_marginal_likelihood(kernel.theta, eval_gradient=True)
    for mine, theirs in zip(found, a.log_marginal_likelihood(kernel.theta, eval_gradient=True)):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(b.kernel_.bounds, kernel.bounds)
    fitted = hg.GaussianProcessRegressor(kernel, alpha=1e-1).fit(X, y)
    assert fitted.log_marginal_likelihood_value_ > b.log_marginal_likelihood_value_


def test_kernels_of_objects_of_users_classes():
    words, y = ["bread", "butter", "beer", "tea", "toast", "salt"], np.array([1.0, 2.0, 0.0, 1.0, 1.5, 0.5])
    for kernel in (SharedLetters(), 2.0 * SharedLetters() + WhiteKernel(0.1)):
        a = peer.GaussianProcessRegressor(kernel, alpha=0.1, optimizer=None).fit(words, y)
        b = hg.GaussianProcessRegressor(kernel, alpha=0.1, optimizer=None).fit(words, y)
        np.testing.assert_allclose(b.predict(["broth", "teat"]), a.predict(["broth", "teat"]), rtol=1e-9)
        np.testing.assert_allclose(b.log_marginal_likelihood_value_, a.log_marginal_likelihood_value_, rtol=1e-9)


def test_a_parameter_at_its_bound_is_reported(rng):
    X, y, _ = example(rng)
    kernel = hg.kernels.RBF(1.0).within((1e-5, 1e-3))
    for model, targets in (
        (hg.GaussianProcessRegressor(kernel, alpha=0.1), y),
        (hg.GaussianProcessClassifier(kernel), y > 0),
    ):
        with pytest.warns(ConvergenceWarning, match=r"RBF.length_scale is close to the specified (lower|upper) bound"):
            model.fit(X, targets)


def test_the_default_kernel_is_fitted_by_the_regressor_only(rng):
    X, y, _ = example(rng)
    a, b = peer.GaussianProcessRegressor(alpha=0.1).fit(X, y), hg.GaussianProcessRegressor(alpha=0.1).fit(X, y)
    assert b.log_marginal_likelihood_value_ > a.log_marginal_likelihood_value_ - 0.01
    assert len(b.kernel_.theta) == 2
    assert len(hg.GaussianProcessClassifier().fit(X, y > 0).kernel_.theta) == 0


def test_kernels_of_several_classes_have_their_parameters_in_one_vector(rng):
    X, y, _ = example(rng)
    labels = np.digitize(y, np.quantile(y, [0.3, 0.7]))
    model = hg.GaussianProcessClassifier(1.0 * hg.kernels.RBF(1.0).within((0.1, 10.0)), optimizer=None).fit(X, labels)
    assert model.kernel_.theta.shape == (6,)
    assert model.kernel_.bounds.shape == (6, 2)
    assert len(model.kernel_.kernels) == 3
    np.testing.assert_allclose(
        model.log_marginal_likelihood(model.kernel_.theta), model.log_marginal_likelihood_value_, rtol=1e-12
    )
