"""Support vector machines told the fraction of errors: what ν bounds, optimality, and a general solver as reference."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
from sklearn.datasets import make_classification
from sklearn.svm import SVC as PeerSVC
from sklearn.svm import NuSVC as PeerNuSVC
from sklearn.svm import NuSVR as PeerNuSVR
from sklearn.svm import OneClassSVM as PeerOneClassSVM

import hinge as hg
from hinge.problem.kernels import evaluate
from hinge.problem.machines import classification, judge, nu_classification
from hinge.solve import decomposition


def quadratic_program(Q, linear, upper, sums):
    """min ½ a'Qa − linear'a with 0 ≤ a ≤ upper and given sums, by a general solver; the value at its solution."""
    start = np.linalg.lstsq(np.array([row for row, _ in sums]), np.array([total for _, total in sums]), rcond=None)[0]
    result = scipy.optimize.minimize(
        lambda a: 0.5 * a @ Q @ a - linear @ a, np.clip(start, 0, upper), jac=lambda a: Q @ a - linear, method="SLSQP",
        bounds=[(0, u) for u in upper], options={"maxiter": 2000, "ftol": 1e-15},
        constraints=[
            {"type": "eq", "fun": lambda a, r=row, t=total: a @ r - t, "jac": lambda a, r=row: r} for row, total in sums
        ],
    )  # fmt: skip
    return result.fun


def circles(rng, n=30):
    X = rng.normal(size=(n, 2))
    y = np.where(np.hypot(*X.T) + 0.3 * rng.normal(size=n) < 1.1, 1.0, -1.0)
    y[:2] = [-1, 1]
    return X, y


@pytest.mark.mission("K4")
@pytest.mark.parametrize("seed", range(10))
def test_the_dual_value_is_that_of_the_quadratic_program(seed):
    rng = np.random.default_rng(seed)
    X, y = circles(rng)
    n, weight, kernel = len(y), rng.uniform(0.5, 2.0, size=30), hg.RBF(1.0)
    K, total = kernel(X), weight.sum()
    nu = 0.9 * 2 * min(weight[y > 0].sum(), weight[y < 0].sum()) / total

    def check(model, value):
        assert model.certificate_.dual == pytest.approx(-value, rel=1e-7)
        assert model.certificate_.primal == pytest.approx(-value, rel=1e-7)

    model = hg.NuSVC(nu=nu, kernel=kernel, tol=1e-9).fit(X, y, weight)
    check(model, quadratic_program(K * np.outer(y, y), np.zeros(n), weight, [(y, 0.0), (np.ones(n), nu * total)]))

    model = hg.OneClassSVM(nu=0.4, kernel=kernel, tol=1e-9).fit(X, sample_weight=weight)
    check(model, quadratic_program(K, np.zeros(n), weight, [(np.ones(n), 0.4 * total)]))

    target, C, s = np.sin(X[:, 0]) + 0.1 * rng.normal(size=n), 2.0, np.repeat([1.0, -1.0], n)
    model = hg.NuSVR(nu=0.4, C=C, kernel=kernel, tol=1e-9).fit(X, target, weight)
    value = quadratic_program(
        np.tile(K, (2, 2)) * np.outer(s, s), s * np.tile(target, 2), C * np.tile(weight, 2),
        [(s, 0.0), (np.ones(2 * n), C * 0.4 * total)],
    )  # fmt: skip
    check(model, value)


@pytest.mark.mission("K4")
@pytest.mark.parametrize("nu", [0.2, 0.4, 0.6])
def test_nu_lies_between_margin_errors_and_support_vectors(nu, rng):
    X, y = circles(rng, 400)
    near = 1e-7
    model = hg.NuSVC(nu=nu, kernel=hg.RBF(0.3), tol=1e-10).fit(X, y)
    margin = y * model.decision_function(X)
    assert np.mean(margin < 1 - near) <= nu <= len(model.support_) / 400
    region = hg.OneClassSVM(nu=nu, kernel=hg.RBF(1.0), tol=1e-10).fit(X)
    assert np.mean(region.predict(X) == -1) <= nu <= len(region.support_) / 400
    target = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=400)
    tube = hg.NuSVR(nu=nu, C=5.0, kernel=hg.RBF(1.0), tol=1e-10).fit(X, target)
    outside = np.abs(target - tube.predict(X)) > tube.epsilon_ + near
    assert np.mean(outside) <= nu <= len(tube.support_) / 400


@pytest.mark.mission("K4", "W8")
def test_multipliers_and_margins_of_the_nu_classifier(rng):
    X, y = circles(rng, 300)
    model = hg.NuSVC(nu=0.4, kernel=hg.RBF(1.0), tol=1e-11).fit(X, y)
    alpha, rho = np.zeros(300), model.rho_[0]
    alpha[model.support_] = np.abs(model.dual_coef_[0]) * rho  # multipliers of the ν problem lie in [0, 1]
    margin, near = y * model.decision_function(X), 1e-6
    assert abs(alpha @ y) < 1e-8
    assert alpha.sum() == pytest.approx(0.4 * 300)
    np.testing.assert_allclose(alpha[margin < 1 - near], 1.0, rtol=1e-12)
    assert np.all(alpha[margin > 1 + near] == 0)
    inside = (alpha > 0) & (alpha < 1 - 1e-12)
    assert inside.any()
    np.testing.assert_allclose(margin[inside], 1.0, atol=near)
    # Both objectives by hand, in the units of the ν problem.
    f = rho * model.decision_function(X)
    square = (alpha * y) @ hg.RBF(1.0)(X) @ (alpha * y)
    primal = 0.5 * square - 0.4 * 300 * rho + np.maximum(rho - y * f, 0).sum()
    assert model.certificate_.primal == pytest.approx(primal, rel=1e-9)
    assert model.certificate_.dual == pytest.approx(-0.5 * square, rel=1e-9)


@pytest.mark.mission("K4", "K5")
def test_the_c_forms_find_the_same_functions(rng):
    X, y = circles(rng, 200)
    nu = hg.NuSVC(nu=0.35, kernel=hg.RBF(1.0), tol=1e-11).fit(X, y)
    by_cost = hg.SVC(C=1 / nu.rho_[0], kernel=hg.RBF(1.0), tol=1e-11).fit(X, y)
    np.testing.assert_allclose(nu.decision_function(X), by_cost.decision_function(X), atol=1e-6)
    np.testing.assert_allclose(nu.slack_, by_cost.slack_, atol=1e-6)
    target = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=200)
    tube = hg.NuSVR(nu=0.35, C=3.0, kernel=hg.RBF(1.0), tol=1e-11).fit(X, target)
    by_width = hg.SVR(epsilon=tube.epsilon_, C=3.0, kernel=hg.RBF(1.0), tol=1e-11).fit(X, target)
    np.testing.assert_allclose(tube.predict(X), by_width.predict(X), atol=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_agreement_with_a_peer(kernel, rng):
    X, y = make_classification(240, 6, n_informative=4, n_classes=3, random_state=0)
    same = {"kernel": kernel, "coef0": 1.0, "nu": 0.3, "tol": 1e-9}
    shape = {"decision_function_shape": "ovo"}
    ours, peer = hg.NuSVC(**same, **shape).fit(X, y), PeerNuSVC(**same, **shape).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), peer.decision_function(X), atol=1e-4)
    np.testing.assert_array_equal(ours.support_, peer.support_)
    np.testing.assert_allclose(ours.dual_coef_, peer.dual_coef_, atol=1e-3 * np.abs(peer.dual_coef_).max())
    target = X[:, 0] + np.sin(X[:, 1])
    tube, other = hg.NuSVR(**same).fit(X, target), PeerNuSVR(**same).fit(X, target)
    np.testing.assert_allclose(tube.predict(X), other.predict(X), atol=1e-4)
    np.testing.assert_array_equal(tube.support_, other.support_)
    region, known = hg.OneClassSVM(**same).fit(X), PeerOneClassSVM(**same).fit(X)
    scale = float(np.abs(known.score_samples(X)).max())
    np.testing.assert_allclose(region.score_samples(X), known.score_samples(X), atol=1e-5 * scale)
    assert region.offset_ == pytest.approx(known.offset_[0], abs=1e-5 * scale)
    np.testing.assert_array_equal(region.support_, known.support_)


def test_class_weights_multiply_the_cost_that_nu_gives(rng):
    X, y = circles(rng, 150)
    plain = hg.NuSVC(nu=0.4, gamma=0.5, tol=1e-10).fit(X, y)
    weighted = hg.NuSVC(nu=0.4, gamma=0.5, tol=1e-10, class_weight={-1.0: 1.0, 1.0: 4.0}).fit(X, y)
    peer = PeerSVC(C=1 / plain.rho_[0], gamma=0.5, tol=1e-10, class_weight={-1.0: 1.0, 1.0: 4.0}).fit(X, y)
    np.testing.assert_allclose(weighted.decision_function(X), peer.decision_function(X), atol=1e-4)


def test_what_nu_cannot_do_is_refused(rng):
    X, y = circles(rng, 100)
    rare = np.where(np.arange(100) < 10, 1, -1)
    with pytest.raises(ValueError, match=r"at most 0\.2"):
        hg.NuSVC(nu=0.5).fit(X, rare)
    with pytest.raises(ValueError, match="too small"):
        hg.NuSVC(nu=0.01, kernel="linear").fit(X, y)
    for bad in (0.0, 1.5):
        for machine in (hg.NuSVC, hg.NuSVR, hg.OneClassSVM):
            with pytest.raises(ValueError, match="nu must"):
                machine(nu=bad).fit(X, y)


def test_an_origin_inside_the_data_leaves_the_zero_function(rng):
    X = rng.normal(size=(80, 2))
    model = hg.OneClassSVM(kernel="linear", nu=0.2).fit(X)
    assert model.certificate_.converged
    assert abs(model.certificate_.primal) < 1e-3 * 80


# -- the judge


@pytest.mark.mission("K4")
def test_the_judge_computes_scores_itself_however_many_points(rng, monkeypatch):
    X, y = make_classification(2600, 5, n_informative=4, n_redundant=0, random_state=0)
    model = hg.SVC(gamma=0.2).fit(X, y)
    beta = np.zeros(2600)
    beta[model.support_] = model.dual_coef_[0]
    square_distances = np.sum((X[:, None] - X[None, model.support_]) ** 2, axis=2)
    scores = np.exp(-0.2 * square_distances) @ beta[model.support_]
    slack = np.maximum(0, 1 - np.where(y == 1, 1, -1) * (scores + model.intercept_))
    assert model.certificate_.primal == pytest.approx(0.5 * beta @ scores + slack.sum(), rel=1e-5)
    assert model.certificate_.dual == pytest.approx(np.abs(beta).sum() - 0.5 * beta @ scores, rel=1e-5)

    # A solver that lies about its scores, so that its own objectives agree, does not get its lie certified.
    run = decomposition.core.decompose

    class Liar:
        def __getattr__(self, name):
            return getattr(core, name)

        def decompose(self, *arguments):
            alpha, scores, *rest = run(*arguments[:6], 1e9, *arguments[7:])  # stops at once
            return alpha, np.zeros_like(scores), 0.0, *rest[1:]

    core = decomposition.core
    monkeypatch.setattr(decomposition, "core", Liar())
    with pytest.warns(match="not met"):
        fooled = hg.SVC(gamma=0.2).fit(X, y)
    assert not fooled.certificate_.converged


@pytest.mark.mission("K4")
def test_infeasible_multipliers_prove_nothing(rng):
    X, y = circles(rng, 40)
    upper, kernel = np.ones(40), hg.RBF(1.0)
    good = hg.SVC(kernel=kernel, tol=1e-9).fit(X, y)
    alpha = np.zeros(40)
    alpha[good.support_] = np.abs(good.dual_coef_[0])
    bias = float(good.intercept_[0])
    dual = classification(y, upper)
    assert judge(kernel, X, dual, alpha, bias, 0.0).relative_gap < 1e-6
    for wrong in (alpha + 0.1, alpha - 0.1, alpha * np.where(y > 0, 0.9, 1.0)):
        assert judge(kernel, X, dual, wrong, bias, 0.0).dual == -np.inf
    with_sum = nu_classification(y, 0.3, upper)
    assert judge(kernel, X, with_sum, 0.5 * with_sum.start, 0.0, 0.0).dual == -np.inf


@pytest.mark.mission("K4")
def test_the_judge_holds_blocks_only(rng, monkeypatch):
    sizes = []

    class Watched(type(hg.RBF(1.0))):
        def program(self):
            return None

        def block(self, A, B):
            sizes.append((evaluate.length(A), evaluate.length(B)))
            return hg.RBF(1.0)(A, B)

    X, y = circles(rng, 3000)
    alpha = np.minimum(np.arange(3000) % 2, 1.0) * 0.5
    judge(Watched(1.0), X, classification(y, np.ones(3000)), alpha, 0.0, 0.0)
    assert sum(rows for rows, _ in sizes) >= 3000
    assert max(rows for rows, _ in sizes) == 512
