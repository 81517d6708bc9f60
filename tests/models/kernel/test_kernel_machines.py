"""Kernel machines as estimators: agreement with scikit-learn, several classes, probabilities, precision, threads."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.svm import SVC as PeerSVC
from sklearn.svm import SVR as PeerSVR

import hinge as hg


def three_classes(n=240):
    X, y = make_classification(n, 6, n_informative=4, n_classes=3, random_state=0)
    return X, np.array(["a", "b", "c"])[y]


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
def test_svc_agrees_with_a_peer(kernel):
    X, y = three_classes()
    ours = hg.SVC(kernel=kernel, coef0=1.0, tol=1e-9).fit(X, y)
    peer = PeerSVC(kernel=kernel, coef0=1.0, tol=1e-9, decision_function_shape="ovo").fit(X, y)
    pairs = hg.SVC(kernel=kernel, coef0=1.0, tol=1e-9, decision_function_shape="ovo").fit(X, y)
    np.testing.assert_allclose(pairs.decision_function(X), peer.decision_function(X), atol=1e-4)
    np.testing.assert_array_equal(ours.support_, peer.support_)
    np.testing.assert_array_equal(ours.n_support_, peer.n_support_)
    np.testing.assert_allclose(ours.dual_coef_, peer.dual_coef_, atol=1e-3)  # the peer's kernel is in float32
    np.testing.assert_array_equal(ours.predict(X), peer.predict(X))
    by_sum = PeerSVC(kernel=kernel, coef0=1.0, tol=1e-9, break_ties=True).fit(X, y)
    np.testing.assert_array_equal(ours.set_params(break_ties=True).predict(X), by_sum.predict(X))
    assert ours.decision_function(X).shape == (240, 3)
    if kernel == "linear":
        np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-4)


def test_svr_agrees_with_a_peer(rng):
    X = rng.normal(size=(150, 3))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=150)
    ours, peer = hg.SVR(tol=1e-9).fit(X, y), PeerSVR(tol=1e-9).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), peer.predict(X), atol=1e-5)
    np.testing.assert_array_equal(ours.support_, peer.support_)


def test_one_machine_per_class():
    X, y = three_classes()
    model = hg.SVC(multi_class="ovr", tol=1e-9).fit(X, y)
    for k, label in enumerate(model.classes_):
        alone = hg.SVC(tol=1e-9).fit(X, y == label)
        np.testing.assert_allclose(model.decision_function(X)[:, k], alone.decision_function(X), atol=1e-6)
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_probabilities_are_calibrated_on_held_out_scores(multi_class):
    X, y = three_classes(600)
    model = hg.SVC(probability=True, multi_class=multi_class).fit(X[:400], y[:400])
    p = model.predict_proba(X[400:])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    chosen = p[np.arange(200), np.searchsorted(model.classes_, y[400:])]
    frequencies = np.array([np.mean(y[:400] == c) for c in model.classes_])
    assert -np.mean(np.log(chosen)) < 0.6 * -np.sum(frequencies * np.log(frequencies))
    assert abs(p.max(axis=1).mean() - np.mean(model.classes_[p.argmax(axis=1)] == y[400:])) < 0.1
    with pytest.raises(AttributeError, match="predict_proba"):
        hg.SVC().fit(X[:50], y[:50]).predict_proba(X)


def test_coupling_recovers_probabilities_from_pairs(rng):
    from hinge.models.calibration.platt import couple

    p = rng.dirichlet(np.ones(4), size=5)
    pairwise = p[:, :, None] / (p[:, :, None] + p[:, None, :])
    np.testing.assert_allclose(couple(pairwise), p, atol=1e-6)


def test_class_weights_and_sample_weights_multiply(rng):
    X, y = make_classification(200, 4, weights=[0.8], random_state=1)
    w = rng.random(200) + 0.5
    by_class = hg.SVC(class_weight={0: 1.0, 1: 3.0}, gamma=0.25, tol=1e-9).fit(X, y, w)
    by_hand = hg.SVC(gamma=0.25, tol=1e-9).fit(X, y, w * np.where(y == 1, 3.0, 1.0))
    np.testing.assert_allclose(by_class.decision_function(X), by_hand.decision_function(X), atol=1e-6)
    balanced = hg.SVC(class_weight="balanced", gamma=0.25, tol=1e-9).fit(X, y)
    factors = 200 / (2 * np.bincount(y))
    np.testing.assert_allclose(
        balanced.decision_function(X),
        hg.SVC(gamma=0.25, tol=1e-9).fit(X, y, factors[y]).decision_function(X),
        atol=1e-6,
    )


def test_storage_does_not_matter():
    X, y = three_classes()
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    dense = hg.SVC(gamma=0.2, tol=1e-8).fit(X, y)
    sparse = hg.SVC(gamma=0.2, tol=1e-8).fit(scipy.sparse.csr_array(X), y)
    given = hg.SVC(kernel="precomputed", tol=1e-8).fit(hg.kernels.RBF(gamma=0.2)(X), y)
    named = hg.SVC(kernel=lambda A, B: hg.kernels.RBF(gamma=0.2)(A, B), tol=1e-8).fit(X, y)
    expected = dense.decision_function(X)
    np.testing.assert_allclose(sparse.decision_function(scipy.sparse.csr_array(X)), expected, atol=1e-5)
    np.testing.assert_allclose(given.decision_function(hg.kernels.RBF(gamma=0.2)(X)), expected, atol=1e-5)
    np.testing.assert_allclose(named.decision_function(X), expected, atol=1e-5)


@pytest.mark.parametrize("cache_size", [0.01, 1.0, 500.0])
@pytest.mark.parametrize("shrinking", [False, True])
def test_cache_and_shrinking_change_the_work_not_the_answer(cache_size, shrinking):
    X, y = make_classification(2500, 8, n_informative=6, flip_y=0.1, random_state=0)
    exact = hg.SVC(gamma=0.1, tol=1e-7).fit(X, y)
    model = hg.SVC(gamma=0.1, tol=1e-4, cache_size=cache_size, shrinking=shrinking).fit(X, y)
    assert model.certificate_.converged
    # The dual objective is below the optimum by much less than the gap.
    assert model.certificate_.dual == pytest.approx(exact.certificate_.dual, rel=1e-5)
    assert model.certificate_.dual <= exact.certificate_.primal * (1 + 1e-6)


def test_threads_do_not_change_a_bit():
    X, y = make_classification(3000, 10, n_informative=6, random_state=0)
    results = []
    try:
        for threads in (1, 2, 7, 16):
            hg.set_num_threads(threads)
            model = hg.SVC(gamma=0.1).fit(X, y)
            results.append(
                (
                    model.dual_coef_,
                    model.decision_function(X),
                    hg.KernelRidge(kernel="rbf").fit(X[:900], y[:900]).predict(X),
                )
            )
    finally:
        hg.set_num_threads(None)
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


def test_strings_are_inputs():
    words = ["banana", "bandana", "cabana", "kiwi", "kiwano", "wiki"] * 5
    y = np.array([1, 1, 1, 0, 0, 0] * 5)
    for kernel in (
        hg.kernels.Spectrum(2).normalised(),
        hg.kernels.Mismatch(2, 1, "abcdinokw").normalised(),
        hg.kernels.Subsequence(2, 0.5).normalised(),
    ):
        assert hg.SVC(kernel=kernel, C=10.0).fit(words, y).predict(["banana split"[:6], "kiwi"]).tolist() == [1, 0]
        assert hg.KernelRidge(0.1, kernel=kernel).fit(words, y).predict(["kiwi"])[0] < 0.5


def test_graphs_are_inputs():
    rings = [hg.kernels.Graph("c" * n, [(i, (i + 1) % n) for i in range(n)]) for n in range(4, 10)]
    paths = [hg.kernels.Graph("c" * n, [(i, i + 1) for i in range(n - 1)]) for n in range(4, 10)]
    y = np.repeat([1, 0], 6)
    model = hg.SVC(kernel=hg.kernels.WeisfeilerLehman(2).normalised(), C=100.0).fit(rings + paths, y)
    assert model.score([*rings, *paths], y) == 1.0


def test_wrong_arguments_are_named(rng):
    X, y = rng.normal(size=(20, 2)), np.repeat([0, 1], 10)
    for arguments, match in [
        ({"C": -1.0}, "C must"),
        ({"kernel": "rbff"}, "rbff"),
        ({"gamma": "wide"}, "gamma"),
        ({"tol": 0.0}, "tol"),
        ({"cache_size": 0}, "cache_size"),
        ({"multi_class": "all"}, "multi_class"),
    ]:
        with pytest.raises(ValueError, match=match):
            hg.SVC(**arguments).fit(X, y)
    with pytest.raises(ValueError, match="square"):
        hg.SVC(kernel="precomputed").fit(X, y)
    with pytest.raises(ValueError, match="alpha"):
        hg.KernelRidge(-1.0).fit(X, y)
    with pytest.raises(ValueError, match="two derivatives"):
        hg.Learner(hg.RKHS(hg.kernels.RBF(1.0), centres=5), hg.Hinge(), hg.L2(0.1)).fit(X, y)
    with pytest.raises(TypeError, match="strings"):
        hg.SVC(kernel=hg.kernels.Spectrum(2)).fit([1, 2, 3, 4], [0, 0, 1, 1])


def test_saved_models_are_loaded_unchanged(tmp_path):
    X, y = three_classes()
    for model in (
        hg.SVC(kernel=2.0 * hg.kernels.RBF(1.0) + hg.Linear()),
        hg.KernelLogisticRegression(),
        hg.Nystroem(n_components=5),
    ):
        model.fit(X, y)
        hg.save(model, tmp_path / "model.hinge")
        again = hg.load(tmp_path / "model.hinge")
        call = "transform" if hasattr(model, "transform") else "decision_function"
        np.testing.assert_array_equal(getattr(again, call)(X), getattr(model, call)(X))


class Stopper:
    """A callback that counts iterations and stops after some."""

    def __init__(self, stop_after=10**9):
        self.stop_after, self.seen = stop_after, 0

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        if context.parent is not None:
            self.seen += 1
            return self.seen >= self.stop_after


@pytest.mark.parametrize(
    "model",
    [
        hg.SVC(gamma=0.5, tol=1e-8),
        hg.NuSVC(nu=0.4, gamma=0.5, tol=1e-8),
        hg.SVR(gamma=0.5, tol=1e-8),
        hg.NuSVR(gamma=0.5, tol=1e-8),
        hg.OneClassSVM(gamma=0.5, tol=1e-8),
        hg.KernelLogisticRegression(gamma=0.5),
        hg.KernelLogisticRegression(gamma=0.5, centres=30),
        hg.KernelPerceptron(gamma=0.5, max_iter=20),
        hg.Learner(hg.RKHS(hg.kernels.RBF(1.0)), hg.Hinge(), hg.L2(1e-3)),
    ],
    ids=lambda m: type(m).__name__ + ("-centres" if getattr(m, "centres", None) else ""),
)
def test_iterations_are_reported_and_can_be_stopped(model):
    if not hasattr(model, "set_callbacks"):
        pytest.skip("callbacks came with scikit-learn 1.9")
    X, y = make_classification(1200, 5, n_informative=3, n_redundant=0, flip_y=0.2, random_state=0)
    free, two = Stopper(), Stopper(stop_after=2)
    whole = clone(model).set_callbacks(free).fit(X, y)
    assert free.seen == whole.n_iter_ > 2
    stopped = clone(model).set_callbacks(two).fit(X, y)
    assert two.seen == stopped.n_iter_ == 2
    if hasattr(stopped, "certificate_"):
        assert not stopped.certificate_.converged
        assert stopped.certificate_.status == "A callback requested the stop."
        assert stopped.certificate_.primal >= whole.certificate_.dual


@pytest.mark.mission("K7", "K1")
def test_the_learner_takes_strings_and_graphs():
    words = ["banana", "bandana", "cabana", "kiwi", "kiwano", "wiki"] * 5
    y = np.array(["long", "long", "long", "round", "round", "round"] * 5)
    kernel = hg.kernels.Spectrum(2).normalised()
    K = kernel(words)
    for loss in (hg.Logistic(), hg.Hinge()):
        model = hg.Learner(hg.RKHS(kernel), loss, hg.L2(1e-2), tol=1e-9).fit(words, y)
        given = hg.Learner(hg.RKHS(hg.kernels.Precomputed()), loss, hg.L2(1e-2), tol=1e-9).fit(K, y)
        np.testing.assert_allclose(model.decision_function(words), given.decision_function(K), atol=1e-4)
        assert model.certificate_.converged
        assert model.predict(["banana split"[:6], "kiwi"]).tolist() == ["long", "round"]
        assert model.score(words, y) == 1.0
    lengths = np.array([float(len(w)) for w in words])
    ridge = hg.Learner(hg.RKHS(kernel), hg.Squared(), hg.L2(1e-4)).fit(words, lengths)
    assert ridge.score(words, lengths) > 0.99
    with pytest.raises(ValueError, match="inconsistent"):
        hg.Learner(hg.RKHS(kernel), hg.Hinge(), hg.L2(1e-2)).fit(words, y[:3])
    rings = [hg.kernels.Graph("c" * n, [(i, (i + 1) % n) for i in range(n)]) for n in range(4, 10)]
    paths = [hg.kernels.Graph("c" * n, [(i, i + 1) for i in range(n - 1)]) for n in range(4, 10)]
    kind = np.repeat([1, 0], 6)
    space = hg.RKHS(hg.kernels.WeisfeilerLehman(2).normalised())
    assert hg.Learner(space, hg.Logistic(), hg.L2(1e-4)).fit(rings + paths, kind).score(rings + paths, kind) == 1.0


@pytest.mark.mission("K1")
def test_kernel_params_are_the_arguments_of_a_function(rng):
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)

    def power(A, B, degree=1, shift=0.0):
        return (A @ B.T + shift) ** degree

    parameters, named = {"degree": 2, "shift": 1.0}, hg.kernels.Polynomial(2, 1.0, 1.0)
    ridge = hg.KernelRidge(kernel=power, kernel_params=parameters).fit(X, y)
    np.testing.assert_allclose(ridge.predict(X), hg.KernelRidge(kernel=named).fit(X, y).predict(X), atol=1e-9)
    features = hg.Nystroem(power, kernel_params=parameters, n_components=8).fit_transform(X)
    same = hg.Nystroem(named, n_components=8).fit_transform(X)
    np.testing.assert_allclose(features @ features.T, same @ same.T, atol=1e-6)
    with pytest.raises(ValueError, match="kernel_params"):
        hg.KernelRidge(kernel="rbf", kernel_params={"gamma": 1.0}).fit(X, y)
