"""Many classes: machines that are solved together are those that are solved one by one."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

import hinge as hg
from hinge.models.kernel import svc_multiclass as pairs
from hinge.problem.certificates.kernel_machine import (
    Dual,
    classification,
    evaluate_machine,
    nu_classification,
)
from hinge.problem.certificates.machine_stack import Stack, evaluate_stack
from hinge.problem.kernels import full_gram
from hinge.solvers.decomposition_many import solve_duals

MODELS = {
    "SVC": hg.SVC(),
    "SVC, large C": hg.SVC(C=1e3, gamma=0.3),
    "SVC, class weights": hg.SVC(class_weight="balanced"),
    "SVC, linear": hg.SVC(kernel="linear"),
    "SVC, precomputed": hg.SVC(kernel="precomputed"),
    "SVC, scores of pairs": hg.SVC(decision_function_shape="ovo"),
    "NuSVC": hg.NuSVC(nu=0.3),
    "NuSVC, class weights": hg.NuSVC(nu=0.2, class_weight="balanced"),
    "NuSVC, precomputed": hg.NuSVC(nu=0.3, kernel="precomputed"),
}


def stacked(rows, duals):
    """Problems side by side, filled up with variables that are held at zero."""
    lengths = np.array([len(part) for part in rows])

    def filled(parts, value, dtype=float):
        return np.array([[*part, *[value] * (lengths.max() - len(part))] for part in parts], dtype=dtype)

    tables = [filled([getattr(d, name) for d in duals], value) for name, value in
              (("sign", 1.0), ("target", 0.0), ("upper", 0.0), ("start", 0.0))]  # fmt: skip
    return Stack(filled(rows, 0, np.int64), lengths, Dual(*tables, duals[0].nu))


def example(rng, classes=8):
    sizes = rng.integers(8, 14, classes)
    y = np.repeat(np.arange(classes), sizes)
    y = y[rng.permutation(len(y))]
    centres = rng.normal(size=(classes, 3)) * 1.5
    return centres[y] + rng.normal(size=(len(y), 3)), np.array([f"class {c}" for c in range(classes)])[y]


@pytest.mark.filterwarnings("ignore:nu=")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_together_or_one_by_one(name, weighted, rng, monkeypatch):
    X, y = example(rng)
    inputs, new = (X @ X.T, X[:9] @ X.T) if "precomputed" in name else (X, X[:9])
    weights = rng.integers(1, 4, len(y)).astype(float) if weighted else None
    model = clone(MODELS[name]).set_params(tol=1e-8)
    together = clone(model).fit(inputs, y, weights)
    monkeypatch.setattr(pairs, "MANY_MACHINES", 10**9)
    apart = clone(model).fit(inputs, y, weights)
    assert together.certificate_.kind == apart.certificate_.kind == "gap"
    assert together.certificate_.converged
    assert together.certificate_.primal == pytest.approx(apart.certificate_.primal, rel=1e-6)
    scale = 1 + np.abs(apart.decision_function(new)).max()
    np.testing.assert_allclose(together.decision_function(new), apart.decision_function(new), atol=2e-3 * scale)
    assert together.dual_coef_.shape[0] == apart.dual_coef_.shape[0] == 7
    assert len(together.n_iter_) == 28


def test_some_data_are_sparse_and_some_machines_need_more_than_pairs(rng):
    X, y = example(rng)
    dense = hg.SVC(C=1e5, gamma=5.0, tol=1e-6).fit(X, y)
    sparse = hg.SVC(C=1e5, gamma=5.0, tol=1e-6).fit(scipy.sparse.csr_matrix(X), y)
    assert dense.certificate_.converged
    assert sparse.certificate_.converged
    np.testing.assert_array_equal(dense.predict(X), sparse.predict(X))


@pytest.mark.parametrize("nu", [False, True])
def test_values_of_many_machines_equal_those_of_each(nu, rng):
    """For any multipliers, feasible or not."""
    X = rng.normal(size=(40, 2))
    kernel = hg.kernels.RBF(1.0)
    K = full_gram(kernel, X)
    rows = [np.sort(rng.permutation(40)[:m]) for m in (12, 20, 7)]
    duals, alphas = [], []
    for part in rows:
        y = np.where(np.arange(len(part)) % 2, 1.0, -1.0)
        upper = rng.uniform(0.5, 2.0, len(part))
        duals.append(nu_classification(y, 0.3, upper) if nu else classification(y, upper))
        alphas.append(duals[-1].start.copy())
    alphas[0] = rng.uniform(0, 3, 12)  # breaks bounds and sums
    stack = stacked(rows, duals)
    padded = np.zeros(stack.rows.shape)
    for line, alpha in zip(padded, alphas):
        line[: len(alpha)] = alpha
    bias, rho = rng.normal(size=3), rng.normal(size=3) * nu
    scores, primal, lower, reference = evaluate_stack(stack, K, padded, bias, rho)
    assert lower[0] == -np.inf
    for p, part in enumerate(rows):
        one = evaluate_machine(kernel, X[part], duals[p], alphas[p], bias[p], rho[p])
        np.testing.assert_allclose(scores[p, : len(part)], one.scores, atol=1e-12)
        assert primal[p] == pytest.approx(one.primal)
        assert lower[p] == pytest.approx(one.dual)
        assert reference[p] == pytest.approx(one.reference)


@pytest.mark.parametrize("nu", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_solutions_are_feasible_and_within_the_tolerance(threads, nu, rng):
    """The judge of one problem finds the gap below the tolerance, whatever the number of threads: the same bits."""
    X = rng.normal(size=(60, 2))
    kernel = hg.kernels.RBF(1.0)
    rows = [np.sort(rng.permutation(60)[:m]) for m in (30, 45, 11, *[20] * 40)]
    duals = []
    for part in rows:
        y = np.where(np.argsort(np.argsort(X[part, 0])) >= len(part) // 2, 1.0, -1.0)
        duals.append(
            nu_classification(y, 0.4, np.ones(len(part))) if nu else classification(y, np.full(len(part), 2.0))
        )
    K, stack = full_gram(kernel, X), stacked(rows, duals)
    before = hg.num_threads()
    for tol in (1e-2, 1e-6):
        one_thread = solve_duals(K, stack, tol)
        try:
            hg.set_num_threads(threads)
            found = solve_duals(K, stack, tol)
        finally:
            hg.set_num_threads(before)
        np.testing.assert_array_equal(found.alpha, one_thread.alpha)
        assert np.all(found.solved)
        for p, (part, dual) in enumerate(zip(rows, duals)):
            one = evaluate_machine(kernel, X[part], dual, found.alpha[p, : len(part)], found.bias[p], found.rho[p])
            assert one.relative_gap <= tol * (1 + 1e-9)


def test_starts_of_many_are_those_of_one(rng):
    """ν-classification fills the multipliers of each sign up to the same sum, problem by problem."""
    y = np.where(rng.random((6, 15)) < 0.5, 1.0, -1.0)
    y[:, :3], y[:, 3:6] = 1.0, -1.0
    upper = rng.uniform(0.2, 2.0, size=y.shape)
    many = nu_classification(y, 0.2, upper)
    for p in range(6):
        np.testing.assert_allclose(many.start[p], nu_classification(y[p], 0.2, upper[p]).start, atol=1e-14)
        for sign in (-1, 1):
            assert many.start[p][y[p] == sign].sum() == pytest.approx(0.1 * upper[p].sum())


def test_pair_expansions_are_their_columns(rng, tmp_path):
    """One dense column per pair of classes gives the same scores; files keep the compact form."""
    X, y = example(rng)
    model = hg.SVC(decision_function_shape="ovo").fit(X, y)
    f = model.function_
    assert f.coefficients.shape == (len(model.support_), 7)
    assert f.columns.shape == (len(model.support_), 28)
    scores = model.kernel_(X, f.points) @ f.columns + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-12)
    hg.save(model, tmp_path / "model.hinge")
    np.testing.assert_array_equal(hg.load(tmp_path / "model.hinge").decision_function(X), model.decision_function(X))
    linear = hg.SVC(kernel="linear", decision_function_shape="ovo").fit(X, y)
    np.testing.assert_allclose(X @ linear.coef_.T + linear.intercept_, linear.decision_function(X), atol=1e-9)


def test_votes_and_layout_are_the_definitions(rng):
    X, y = example(rng, classes=6)
    model = hg.SVC().fit(X, y)
    scores = hg.SVC(decision_function_shape="ovo").fit(X, y).decision_function(X)
    votes, sums = np.zeros((len(X), 6)), np.zeros((len(X), 6))
    for m, (i, j) in enumerate(combinations(range(6), 2)):
        votes[:, i] += scores[:, m] > 0
        votes[:, j] += scores[:, m] <= 0
        sums[:, i] += scores[:, m]
        sums[:, j] -= scores[:, m]
    np.testing.assert_allclose(model.decision_function(X), votes + sums / (3 * (np.abs(sums) + 1)), atol=1e-12)
    # dual_coef_: for a support vector of class c, a row per other class
    K = model.kernel_(X, model.support_vectors_)
    own = np.repeat(np.arange(6), model.n_support_)
    for m, (i, j) in enumerate(combinations(range(6), 2)):
        f = K[:, own == i] @ model.dual_coef_[j - 1, own == i] + K[:, own == j] @ model.dual_coef_[i, own == j]
        np.testing.assert_allclose(f + model.intercept_[m], scores[:, m], atol=1e-9)
