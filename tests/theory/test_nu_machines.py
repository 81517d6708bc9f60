"""Support vector machines with a given fraction of errors: what ν bounds, optimality, and a general solver as reference."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale
from sklearn.svm import SVC as PeerSVC
from sklearn.svm import NuSVC as PeerNuSVC
from sklearn.svm import NuSVR as PeerNuSVR
from sklearn.svm import OneClassSVM as PeerOneClassSVM

import hinge as hg
from hinge.problem.certificates.kernel_machine import (
    classification,
    evaluate_at_scores,
    evaluate_machine,
    feasible,
    nu_classification,
    nu_regression,
    one_class,
    point_coefficients,
    regression,
)
from hinge.problem.kernels import Precomputed, evaluate
from hinge.solvers import decomposition
from hinge.solvers.decomposition import solve_dual
from hinge.solvers.gram_interior_point import interior_multipliers


def quadratic_program(Q, linear, upper, sums):
    """The minimiser of ½ a'Qa − linear'a with 0 ≤ a ≤ upper and given sums, by a general solver."""
    clarabel = pytest.importorskip("clarabel", reason="the QP reference needs the [qp] extra")
    n = len(upper)
    A = scipy.sparse.csc_matrix(np.vstack([*(row for row, _ in sums), -np.eye(n), np.eye(n)]))
    bound = np.concatenate([[total for _, total in sums], np.zeros(n), upper])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    cones = [clarabel.ZeroConeT(len(sums)), clarabel.NonnegativeConeT(2 * n)]
    P = scipy.sparse.csc_matrix(np.triu(Q))
    return np.asarray(clarabel.DefaultSolver(P, -np.asarray(linear), A, bound, cones, settings).solve().x)


def circles(rng, n=30):
    X = rng.normal(size=(n, 2))
    y = np.where(np.hypot(*X.T) + 0.3 * rng.normal(size=n) < 1.1, 1.0, -1.0)
    y[:2] = [-1, 1]
    return X, y


@pytest.mark.mission("K4", "K5", "O6")
@pytest.mark.parametrize("seed", range(50))
def test_multipliers_are_those_of_the_quadratic_program(seed):
    rng = np.random.default_rng(seed)
    X, y = circles(rng)
    n, weight, kernel = len(y), rng.uniform(0.5, 2.0, size=30), hg.kernels.RBF(1.0)
    K, total = kernel(X), weight.sum()
    nu = rng.uniform(0.5, 1.0) * 2 * min(weight[y > 0].sum(), weight[y < 0].sum()) / total

    def check(model, beta, rho=1.0):
        found = np.zeros(n)
        found[model.support_] = model.dual_coef_[0] * rho
        np.testing.assert_allclose(found, beta, atol=2e-5 * np.abs(beta).max())
        assert model.certificate_.relative_gap < 1e-8

    model = hg.NuSVC(nu=nu, kernel=kernel, tol=1e-9).fit(X, y, weight)
    sums = [(y, 0.0), (np.ones(n), nu * total)]
    check(model, y * quadratic_program(K * np.outer(y, y), np.zeros(n), weight, sums), model.rho_[0])

    model = hg.OneClassSVM(nu=0.4, kernel=kernel, tol=1e-9).fit(X, sample_weight=weight)
    check(model, quadratic_program(K, np.zeros(n), weight, [(np.ones(n), 0.4 * total)]))

    target, C, s = np.sin(X[:, 0]) + 0.1 * rng.normal(size=n), 2.0, np.repeat([1.0, -1.0], n)
    model = hg.NuSVR(nu=0.4, C=C, kernel=kernel, tol=1e-9).fit(X, target, weight)
    alpha = quadratic_program(
        np.tile(K, (2, 2)) * np.outer(s, s), s * np.tile(target, 2), C * np.tile(weight, 2),
        [(s, 0.0), (np.ones(2 * n), C * 0.4 * total)],
    )  # fmt: skip
    check(model, alpha[:n] - alpha[n:])


@pytest.mark.parametrize(("n", "nu"), [(60, 0.05), (60, 0.3), (400, 0.3)])
def test_classes_that_coincide(n, nu):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 3)), np.where(np.arange(n) % 2, 1.0, -1.0)
    model = hg.NuSVC(nu=nu, gamma=0.5, tol=1e-4).fit(X, y)
    assert model.certificate_.converged
    assert np.mean(y * model.decision_function(X) < 1 - 1e-2) <= nu <= len(model.support_) / n
    # Where no function of the kernel can do it, a warning is issued.
    with pytest.warns(ConvergenceWarning, match="too small"):
        hg.NuSVC(nu=nu, kernel="linear").fit(X, y)


def test_pairs_and_the_interior_point_method_meet(rng, monkeypatch):
    X, y = rng.normal(size=(150, 3)), np.where(np.arange(150) % 2, 1.0, -1.0)
    target = np.sin(2 * X[:, 0]) + rng.normal(size=150)
    machines = [
        hg.NuSVC(nu=0.3, gamma=0.5),
        hg.NuSVR(nu=0.3, C=100.0),
        hg.OneClassSVM(nu=0.3),
        hg.SVC(C=1e4),
        hg.SVR(C=1e3),
    ]
    pairs = []
    for steps in (decomposition.ENDLESS, 1):
        monkeypatch.setattr(decomposition, "_patience", lambda *_, steps=steps: steps)
        fits = [clone(m).set_params(tol=1e-7).fit(X, target if "SVR" in str(m) else y) for m in machines]
        assert all(m.certificate_.converged for m in fits)
        pairs.append([m.certificate_.dual for m in fits])
    np.testing.assert_allclose(*pairs, rtol=1e-6)


def test_interior_multipliers_are_feasible_and_nearly_optimal(rng):
    X, y = circles(rng, 80)
    K, target, weight = (
        hg.kernels.RBF(1.0)(X),
        np.sin(X[:, 0]),
        rng.uniform(0, 2, size=80).round(),
    )  # some weights are zero
    weight[:2] = 1.0
    rare = 2 * min(weight[y > 0].sum(), weight[y < 0].sum()) / weight.sum()
    problems = [
        classification(y, 10 * weight), regression(target, 0.1, 5 * weight), nu_regression(target, 0.3, 5 * weight),
        one_class(0.2, weight), nu_classification(y, 0.5 * rare, weight), nu_classification(y, rare, weight),
    ]  # fmt: skip
    for dual in problems:
        alpha = interior_multipliers(K, dual, 1e-9)
        assert feasible(dual, alpha)
        scores = K @ point_coefficients(dual, alpha, 80)
        levels = solve_dual(Precomputed(), K, dual, tol=1e-9, cache_bytes=1e8)
        best = levels.dual
        assert evaluate_at_scores(dual, alpha, scores, levels.bias, levels.rho).dual == pytest.approx(
            best, rel=1e-6, abs=1e-9
        )


def test_points_of_both_labels(rng):
    X = np.repeat(rng.normal(size=(40, 2)), 2, axis=0)
    y = np.tile([-1.0, 1.0], 40)
    with pytest.warns(ConvergenceWarning, match="too small"):  # every margin error has a twin: nothing can be learned
        hg.NuSVC(nu=0.5).fit(X, y)
    y[:40] = np.where(
        X[:40, 0] > np.median(X[:40, 0]), 1.0, -1.0
    )  # half of them: 20 of the 80 must err, and their multipliers sum to 40
    model = hg.NuSVC(nu=0.8, gamma=1.0, tol=1e-8).fit(X, y)
    assert model.certificate_.converged
    margin = y * model.decision_function(X)
    assert np.mean(margin < 1 - 1e-6) <= 0.8 <= len(model.support_) / 80
    twins = hg.NuSVR(nu=0.3, tol=1e-8).fit(X, y)
    assert twins.certificate_.converged
    assert hg.OneClassSVM(nu=0.3, tol=1e-8).fit(X).certificate_.converged


def test_one_point_of_each_class():
    X, y = np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([-1, 1])
    for nu in (0.2, 1.0):
        model = hg.NuSVC(nu=nu, kernel="linear", tol=1e-10).fit(X, y)
        np.testing.assert_allclose(model.decision_function([[0.0, 5.0], [0.5, 3.0], [1.0, 0.0]]), [-1, 0, 1], atol=1e-8)
        np.testing.assert_allclose(model.margin_, 0.5)
    tube = hg.NuSVR(nu=1.0, C=100.0, kernel="linear", tol=1e-10).fit(X, [2.0, 4.0])
    np.testing.assert_allclose(tube.predict(X), [2.0, 4.0], atol=1e-8)
    alone = hg.OneClassSVM(nu=0.5).fit([[1.0, 2.0]])
    np.testing.assert_array_equal(alone.predict([[1.0, 2.0], [9.0, 9.0]]), [1, -1])


@pytest.mark.parametrize("factor", [1e-8, 1.0, 1e8])
def test_the_unit_of_inputs_and_targets_does_not_matter(factor, rng):
    X, y = circles(rng, 120)
    X = np.column_stack([X, np.full(120, 3.0)])  # a constant column neither
    target = np.sin(X[:, 0])
    scaled = factor * X
    np.testing.assert_allclose(
        hg.NuSVC(nu=0.4, tol=1e-9).fit(scaled, y).decision_function(scaled),
        hg.NuSVC(nu=0.4, tol=1e-9, gamma=hg.NuSVC(nu=0.4).fit(X, y).kernel_.rate).fit(X, y).decision_function(X),
        atol=1e-5,
    )  # fmt: skip
    plain, large = (
        hg.NuSVR(nu=0.4, tol=1e-9).fit(X, target),
        hg.NuSVR(nu=0.4, tol=1e-9, C=factor).fit(scaled, factor * target),
    )
    np.testing.assert_allclose(large.predict(scaled), factor * plain.predict(X), atol=1e-5 * factor)
    assert large.epsilon_ == pytest.approx(factor * plain.epsilon_, rel=1e-4)
    inside = hg.OneClassSVM(nu=0.2, tol=1e-9).fit(scaled), hg.OneClassSVM(nu=0.2, tol=1e-9).fit(X)
    np.testing.assert_allclose(inside[0].decision_function(scaled), inside[1].decision_function(X), atol=1e-5)


def test_constant_inputs_and_targets(rng):
    y = np.where(np.arange(20) % 2, 1.0, -1.0)
    same = np.full((20, 2), 3.0)
    with pytest.warns(ConvergenceWarning, match="too small"):
        hg.NuSVC(nu=0.5).fit(same, y)
    np.testing.assert_allclose(hg.NuSVR(nu=0.5).fit(same, 1e9 + np.zeros(20)).predict(same), 1e9)
    np.testing.assert_allclose(
        hg.NuSVR(nu=0.5).fit(rng.normal(size=(20, 2)), np.zeros(20)).predict(same), 0.0, atol=1e-12
    )
    assert np.all(hg.OneClassSVM(nu=0.5).fit(same).predict(same) == 1)


def test_kernel_values_that_overflow_are_an_error(rng):
    X, y = circles(rng, 60)
    for machine in (
        hg.NuSVC(kernel="poly", gamma=1.0),
        hg.SVC(kernel="poly", gamma=1.0),
        hg.NuSVR(kernel="poly", gamma=1.0),
    ):
        with pytest.raises(ValueError, match="too large"):
            machine.fit(1e120 * X, y)


@pytest.mark.mission("K4")
@pytest.mark.parametrize("nu", [0.2, 0.4, 0.6])
def test_nu_lies_between_margin_errors_and_support_vectors(nu, rng):
    X, y = circles(rng, 400)
    near = 1e-7
    model = hg.NuSVC(nu=nu, kernel=hg.kernels.RBF(0.3), tol=1e-10).fit(X, y)
    margin = y * model.decision_function(X)
    assert np.mean(margin < 1 - near) <= nu <= len(model.support_) / 400
    region = hg.OneClassSVM(nu=nu, kernel=hg.kernels.RBF(1.0), tol=1e-10).fit(X)
    assert np.mean(region.predict(X) == -1) <= nu <= len(region.support_) / 400
    target = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=400)
    tube = hg.NuSVR(nu=nu, C=5.0, kernel=hg.kernels.RBF(1.0), tol=1e-10).fit(X, target)
    outside = np.abs(target - tube.predict(X)) > tube.epsilon_ + near
    assert np.mean(outside) <= nu <= len(tube.support_) / 400


@pytest.mark.mission("K4", "W8")
def test_multipliers_and_margins_of_the_nu_classifier(rng):
    X, y = circles(rng, 300)
    model = hg.NuSVC(nu=0.4, kernel=hg.kernels.RBF(1.0), tol=1e-11).fit(X, y)
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
    square = (alpha * y) @ hg.kernels.RBF(1.0)(X) @ (alpha * y)
    primal = 0.5 * square - 0.4 * 300 * rho + np.maximum(rho - y * f, 0).sum()
    assert model.certificate_.primal == pytest.approx(primal, rel=1e-9)
    assert model.certificate_.dual == pytest.approx(-0.5 * square, rel=1e-9)


@pytest.mark.mission("K4", "K5")
def test_the_c_forms_find_the_same_functions(rng):
    X, y = circles(rng, 200)
    nu = hg.NuSVC(nu=0.35, kernel=hg.kernels.RBF(1.0), tol=1e-11).fit(X, y)
    by_cost = hg.SVC(C=1 / nu.rho_[0], kernel=hg.kernels.RBF(1.0), tol=1e-11).fit(X, y)
    np.testing.assert_allclose(nu.decision_function(X), by_cost.decision_function(X), atol=1e-6)
    np.testing.assert_allclose(nu.slack_, by_cost.slack_, atol=1e-6)
    target = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=200)
    tube = hg.NuSVR(nu=0.35, C=3.0, kernel=hg.kernels.RBF(1.0), tol=1e-11).fit(X, target)
    by_width = hg.SVR(epsilon=tube.epsilon_, C=3.0, kernel=hg.kernels.RBF(1.0), tol=1e-11).fit(X, target)
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


def test_agreement_with_a_peer_on_measured_data():
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    ours, peer = hg.NuSVC(nu=0.2, tol=1e-9).fit(X, y), PeerNuSVC(nu=0.2, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), peer.decision_function(X), atol=1e-4)
    region, known = hg.OneClassSVM(nu=0.1, tol=1e-9).fit(X), PeerOneClassSVM(nu=0.1, tol=1e-9).fit(X)
    np.testing.assert_allclose(region.decision_function(X), known.decision_function(X), atol=1e-4)
    X, y = load_diabetes(return_X_y=True)
    tube, other = hg.NuSVR(C=100.0, tol=1e-9).fit(X, y), PeerNuSVR(C=100.0, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(tube.predict(X), other.predict(X), atol=1e-3)


def test_class_weights_multiply_the_cost_that_nu_gives(rng):
    X, y = circles(rng, 150)
    plain = hg.NuSVC(nu=0.4, gamma=0.5, tol=1e-10).fit(X, y)
    weighted = hg.NuSVC(nu=0.4, gamma=0.5, tol=1e-10, class_weight={-1.0: 1.0, 1.0: 4.0}).fit(X, y)
    mean = np.mean(np.where(y > 0, 4.0, 1.0))  # only the ratio of class weights matters
    relative = {-1.0: 1.0 / mean, 1.0: 4.0 / mean}
    peer = PeerSVC(C=1 / plain.rho_[0], gamma=0.5, tol=1e-10, class_weight=relative).fit(X, y)
    np.testing.assert_allclose(weighted.decision_function(X), peer.decision_function(X), atol=1e-4)


def test_what_nu_cannot_do_is_refused(rng):
    X, y = circles(rng, 100)
    rare = np.where(np.arange(100) < 10, 1, -1)
    with pytest.raises(ValueError, match=r"at most 0\.2"):
        hg.NuSVC(nu=0.5).fit(X, rare)
    with pytest.warns(ConvergenceWarning, match="too small"):
        hg.NuSVC(nu=0.01, kernel="linear").fit(X, y)
    for bad in (0.0, 1.5):
        for machine in (hg.NuSVC, hg.NuSVR, hg.OneClassSVM):
            with pytest.raises(ValueError, match="'nu' parameter"):
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

    # A solver that returns wrong scores, so that its own objectives agree, gets no certificate for them.
    run = decomposition.core.decompose

    class WrongScores:
        def __getattr__(self, name):
            return getattr(core, name)

        def decompose(self, *arguments):
            program, points, dual, alpha, given, _, report = arguments
            alpha, scores, *rest = run(program, points, dual, alpha, given, 1e9, report)  # stops at once
            return alpha, np.zeros_like(scores), 0.0, *rest[1:]

    core = decomposition.core
    monkeypatch.setattr(decomposition, "core", WrongScores())
    with pytest.warns(match="not met"):
        model = hg.SVC(gamma=0.2).fit(X, y)
    assert not model.certificate_.converged


@pytest.mark.mission("K4")
def test_infeasible_multipliers_prove_nothing(rng):
    X, y = circles(rng, 40)
    upper, kernel = np.ones(40), hg.kernels.RBF(1.0)
    good = hg.SVC(kernel=kernel, tol=1e-9).fit(X, y)
    alpha = np.zeros(40)
    alpha[good.support_] = np.abs(good.dual_coef_[0])
    bias = float(good.intercept_[0])
    dual = classification(y, upper)
    assert evaluate_machine(kernel, X, dual, alpha, bias, 0.0).relative_gap < 1e-6
    for wrong in (alpha + 0.1, alpha - 0.1, alpha * np.where(y > 0, 0.9, 1.0)):
        assert evaluate_machine(kernel, X, dual, wrong, bias, 0.0).dual == -np.inf
    with_sum = nu_classification(y, 0.3, upper)
    assert evaluate_machine(kernel, X, with_sum, 0.5 * with_sum.start, 0.0, 0.0).dual == -np.inf


@pytest.mark.mission("K4")
def test_the_judge_holds_blocks_only(rng, monkeypatch):
    sizes = []

    class Watched(type(hg.kernels.RBF(1.0))):
        def program(self):
            return None

        def block(self, A, B):
            sizes.append((evaluate.length(A), evaluate.length(B)))
            return hg.kernels.RBF(1.0)(A, B)

    X, y = circles(rng, 3000)
    alpha = np.minimum(np.arange(3000) % 2, 1.0) * 0.5
    evaluate_machine(Watched(1.0), X, classification(y, np.ones(3000)), alpha, 0.0, 0.0)
    assert sum(rows for rows, _ in sizes) >= 3000
    assert max(rows for rows, _ in sizes) == 512
