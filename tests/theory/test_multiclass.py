"""M: several classes. Reductions against their formulas, perceptron forms against each other, the SVM against its QP."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import sklearn.multiclass
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import hinge as hg
from hinge.models.multiclass.codes import decode, row_separation
from hinge.models.multiclass.perceptron import stacked
from hinge.problem.certificates.multiclass import linear_multiclass_certificate


@pytest.fixture
def blobs(rng):
    X, y = make_blobs(300, 4, centers=6, cluster_std=4.0, random_state=int(rng.integers(1000)))
    return X, np.array(list("abcdef"))[y]


@pytest.mark.mission("M1")
@pytest.mark.parametrize(
    "learner", [LogisticRegression(), GaussianNB(), DecisionTreeClassifier(max_depth=3, random_state=0)]
)
def test_one_vs_rest_is_the_highest_score(blobs, learner):
    X, y = blobs
    model = hg.OneVsRestClassifier(learner, n_jobs=2).fit(X, y)
    scores = []
    for label in model.classes_:
        binary = type(learner)(**learner.get_params()).fit(X, (y == label).astype(int))
        has = hasattr(binary, "decision_function")
        scores.append(binary.decision_function(X) if has else binary.predict_proba(X)[:, 1] - 0.5)
    np.testing.assert_allclose(model.decision_function(X), np.column_stack(scores))
    np.testing.assert_array_equal(model.predict(X), model.classes_[np.argmax(scores, axis=0)])
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.mission("M1")
def test_all_pairs_vote_is_the_formula(blobs):
    """Σ_{j≠i} (1[j<i] h_ji(x) − 1[i<j] h_ij(x)), and the number of pairs that a class wins."""
    X, y = blobs
    model = hg.OneVsOneClassifier(LogisticRegression(), vote="score").fit(X, y)
    k = len(model.classes_)
    assert len(model.estimators_) == k * (k - 1) // 2
    h = {}
    for i, j in itertools.combinations(range(k), 2):
        rows = np.isin(y, model.classes_[[i, j]])
        binary = LogisticRegression().fit(X[rows], (y[rows] == model.classes_[j]).astype(int))
        h[i, j] = binary.decision_function(X)
    formula = np.array([sum(-h[i, j] if i < j else h[j, i] for j in range(k) if j != i) for i in range(k)]).T
    np.testing.assert_allclose(model.decision_function(X), formula, rtol=1e-9, atol=1e-9)
    majority = hg.OneVsOneClassifier(LogisticRegression(), vote="majority").fit(X, y).decision_function(X)
    wins = np.array([sum((h[i, j] <= 0) if i < j else (h[j, i] > 0) for j in range(k) if j != i) for i in range(k)]).T
    np.testing.assert_array_equal(np.round(majority), wins)


@pytest.mark.mission("M1")
def test_classes_in_a_row_go_to_the_majority(rng):
    """Sums of scores leave out a class that lies between two others; by default the signs vote, as scikit-learn's do."""
    X = rng.normal(size=(600, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    ours = hg.OneVsOneClassifier(LogisticRegression()).fit(X, y)
    theirs = sklearn.multiclass.OneVsOneClassifier(LogisticRegression()).fit(X, y)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    scores = hg.OneVsOneClassifier(LogisticRegression(), vote="score").fit(X, y)
    assert scores.score(X, y) < ours.score(X, y) - 0.1


@pytest.mark.mission("M1")
def test_pairwise_coupling_recovers_consistent_probabilities(rng):
    """Where r_ij = p_i / (p_i + p_j) exactly, the coupled probabilities are p."""
    p = rng.dirichlet(np.ones(5), size=20)

    class Pair:
        def __init__(self, i, j):
            self.i, self.j = i, j

        def predict_proba(self, X):
            r = p[:, self.i] / (p[:, self.i] + p[:, self.j])
            return np.column_stack([r, 1 - r])

    X, y = rng.normal(size=(20, 2)), np.arange(20) % 5
    model = hg.OneVsOneClassifier(LogisticRegression(), vote="probability").fit(X, y)
    model.estimators_ = [Pair(i, j) for i, j in model.pairs_]
    np.testing.assert_allclose(model.predict_proba(X), p, atol=1e-6)


@pytest.mark.mission("M1")
@pytest.mark.parametrize(("k", "bits"), [(3, None), (5, None), (7, None), (8, 15), (10, 20), (26, 40)])
def test_codes_correct_half_their_separation(k, bits, rng):
    """Every pattern of ⌊(h − 1)/2⌋ wrong bits (or 500 random ones) decodes to the right class."""
    code = hg.design_code(k, bits)
    h = row_separation(code)
    assert len(np.unique(code, axis=1).T) == code.shape[1]  # no bit is learned twice
    assert h >= (2 ** (k - 2) if bits is None else bits // 4)
    wrong = (h - 1) // 2
    patterns = list(itertools.islice(itertools.combinations(range(code.shape[1]), wrong), 5000))
    for pattern in patterns if len(patterns) < 500 else [patterns[i] for i in rng.integers(len(patterns), size=500)]:
        for label in range(k):
            received = 2.0 * code[label] - 1.0
            received[list(pattern)] *= -1
            assert np.argmin(decode(received[None], code, "hamming")) == label


@pytest.mark.mission("M1")
def test_output_code_predicts_the_nearest_row(blobs):
    X, y = blobs
    model = hg.OutputCodeClassifier(LogisticRegression()).fit(X, y)
    assert model.separation_ == 2 ** (len(model.classes_) - 2)
    bits = np.column_stack([learner.predict(X) for learner in model.estimators_])
    hamming = (bits[:, None, :] != model.code_[None]).sum(axis=2)
    np.testing.assert_allclose(model.distances(X), hamming)
    identity = hg.OutputCodeClassifier(LogisticRegression(), code=np.eye(6), decoding="score").fit(X, y)
    rest = hg.OneVsRestClassifier(LogisticRegression()).fit(X, y)
    assert np.mean(identity.predict(X) == rest.predict(X)) > 0.95  # one-vs-rest is the code 10…0, 01…0, …
    with pytest.raises(ValueError, match="equal rows"):
        hg.OutputCodeClassifier(LogisticRegression(), code=np.zeros((6, 3))).fit(X, y)


@pytest.mark.mission("M3")
@pytest.mark.parametrize("average", [False, True])
def test_both_perceptron_forms_give_the_same_weights(blobs, average):
    X, y = blobs
    per_class = hg.MulticlassPerceptron(20, average=average, fit_intercept=False, shuffle=False).fit(X, y)
    joint = hg.MulticlassPerceptron(20, joint=stacked, average=average, fit_intercept=False, shuffle=False).fit(X, y)
    np.testing.assert_allclose(per_class.coef_.ravel(), joint.coef_, rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(per_class.mistakes_, joint.mistakes_)
    np.testing.assert_array_equal(per_class.predict(X), joint.predict(X))


@pytest.mark.mission("M3")
def test_perceptron_separates_what_can_be_separated(rng):
    X, y = make_blobs(200, 3, centers=4, cluster_std=0.5, center_box=(-20, 20), random_state=1)
    model = hg.MulticlassPerceptron(1000).fit(X, y)
    assert model.mistakes_[-1] == 0
    assert model.score(X, y) == 1.0


@pytest.mark.mission("R4", "M4")
def test_multiclass_hinge_bounds_the_cost(rng):
    k = 5
    cost = rng.random((k, k)) * (1 - np.eye(k))
    loss, y, s = hg.MulticlassHinge(cost), rng.integers(k, size=200), 3 * rng.normal(size=(200, k))
    value = loss.value(y, s)
    assert np.all(value >= cost[y, s.argmax(axis=1)] - 1e-12)
    assert np.all(value >= 0)
    u = loss.gradient(y, s)
    for other in 3 * rng.normal(size=(20, 200, k)):  # subgradient inequality
        assert np.all(loss.value(y, other) >= value + np.sum(u * (other - s), axis=1) - 1e-9)
    np.testing.assert_allclose(loss.conjugate(y, u), np.sum(u * s, axis=1) - value, atol=1e-12)  # Fenchel–Young
    two = hg.MulticlassHinge().value(y % 2, s[:, :2])  # two classes: the hinge of the difference
    np.testing.assert_allclose(two, hg.Hinge().value(2.0 * (y % 2) - 1, s[:, 1] - s[:, 0]))


@pytest.mark.mission("M4", "R4")
@pytest.mark.parametrize("costs", [False, True], ids=["0-1", "cost matrix"])
def test_multiclass_svm_reaches_the_optimum_of_its_quadratic_program(rng, costs):
    n, d, k, C = 40, 3, 4, 0.7
    X, y = rng.normal(size=(n, d)), rng.integers(k, size=n)
    cost = rng.random((k, k)) * (1 - np.eye(k)) if costs else 1 - np.eye(k)
    model = hg.MulticlassSVM(C, cost=cost if costs else None, fit_intercept=False, tol=1e-7).fit(X, y)
    # min ½‖W‖² + C Σ ξᵢ  subject to  Δ(yᵢ, j) − s_y + s_j ≤ ξᵢ
    rows, bound = [], []
    for i, j in itertools.product(range(n), range(k)):
        row = np.zeros(k * d + n)
        row[j * d : (j + 1) * d] += X[i]
        row[y[i] * d : (y[i] + 1) * d] -= X[i]
        row[k * d + i] = -1.0
        rows.append(row)
        bound.append(-cost[y[i], j])
    P = sparse.diags_array(np.concatenate([np.ones(k * d), np.zeros(n)])).tocsc()
    q = np.concatenate([np.zeros(k * d), np.full(n, C)])
    clarabel = pytest.importorskip("clarabel", reason="the QP reference needs the [qp] extra")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cones = [clarabel.NonnegativeConeT(n * k)]
    optimum = clarabel.DefaultSolver(P, q, sparse.csc_array(np.array(rows)), np.array(bound), cones, settings).solve()
    loss = hg.MulticlassHinge(cost)
    primal = C * loss.value(y, X @ model.coef_.T).sum() + 0.5 * np.sum(model.coef_**2)
    np.testing.assert_allclose(model.certificate_.primal, primal, rtol=1e-10)
    np.testing.assert_allclose(primal, optimum.obj_val, rtol=1e-6)
    assert model.certificate_.converged
    # The dual point makes the weights, lies in its simplex, and has the value the certificate claims.
    alpha = model.dual_coef_
    np.testing.assert_allclose(alpha.T @ X, model.coef_, atol=1e-9)
    np.testing.assert_allclose(alpha.sum(axis=1), 0.0, atol=1e-12)
    dual = -C * loss.conjugate(y, -alpha / C).sum() - 0.5 * np.sum(model.coef_**2)
    np.testing.assert_allclose(dual, model.certificate_.dual, rtol=1e-9)


@pytest.mark.mission("M4", "R4")
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_newton_steps_end_what_coordinate_ascent_began(rng, form):
    """A gap no passes would reach, computed here from the weights and from the dual coefficients."""
    n, d, k, C = 600, 8, 5, 1.0
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    y = (X @ rng.normal(size=(d, k)) + rng.gumbel(size=(n, k))).argmax(axis=1)
    X += 3.0 * (X != 0)
    cost, weights = rng.random((k, k)) * (1 - np.eye(k)), rng.integers(1, 4, size=n).astype(float)
    model = hg.MulticlassSVM(C, cost=cost, tol=1e-11).fit(form(X), y, sample_weight=weights)
    assert "Newton" in model.certificate_.solver
    assert model.certificate_.converged
    assert model.n_iter_ < 300
    alpha, mean = model.dual_coef_, np.average(X, axis=0, weights=weights)
    W, b = alpha.T @ (X - mean), model.intercept_ + model.coef_ @ mean
    np.testing.assert_allclose(model.coef_, W, atol=1e-9)
    np.testing.assert_allclose(alpha.sum(axis=0), 0.0, atol=1e-6)  # the biases are not penalised
    p = (y[:, None] == np.arange(k)) - alpha / (C * weights[:, None])
    assert np.all(p >= -1e-12)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-9)
    square = 0.5 * np.sum(W**2)
    primal = C * weights @ hg.MulticlassHinge(cost).value(y, (X - mean) @ W.T + b) + square
    dual = C * weights @ np.sum(p * cost[y], axis=1) - square
    np.testing.assert_allclose(model.certificate_.primal, primal, rtol=1e-12)
    assert abs(primal - dual) <= 1e-10 * primal


def test_passes_end_where_rounding_leaves_no_progress(rng):
    """With a tolerance below the precision of the objective, long before the passes are used up."""
    X, y = rng.normal(size=(30, 3)), rng.integers(0, 3, 30)
    for kernel in (None, hg.kernels.RBF(1.0)):
        model = hg.MulticlassSVM(C=1.0, tol=1e-300, max_iter=1_000_000, fit_intercept=False, kernel=kernel)
        with pytest.warns(ConvergenceWarning, match="no further progress"):
            model.fit(X, y)
        assert model.n_iter_ < 100_000
        assert model.certificate_.relative_gap < 1e-9


@pytest.mark.mission("M4")
def test_kernel_form_of_the_multiclass_svm_is_the_linear_one(blobs):
    X, y = blobs
    linear = hg.MulticlassSVM(0.1, tol=1e-6).fit(X, y)
    kernel = hg.MulticlassSVM(0.1, kernel=lambda A, B: A @ B.T, tol=1e-6).fit(X, y)
    given = hg.MulticlassSVM(0.1, kernel="precomputed", tol=1e-6).fit(X @ X.T, y)
    np.testing.assert_allclose(kernel.certificate_.primal, linear.certificate_.primal, rtol=1e-5)
    np.testing.assert_allclose(kernel.decision_function(X), linear.decision_function(X), atol=1e-2)
    np.testing.assert_allclose(given.decision_function(X @ X.T), kernel.decision_function(X), atol=1e-9)
    sparse_rows = hg.MulticlassSVM(0.1, tol=1e-6).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(sparse_rows.coef_, linear.coef_, atol=1e-6)
    codes = np.searchsorted(linear.classes_, y)
    for model in (linear, sparse_rows):
        scores = model.decision_function(X)
        primal = 0.1 * hg.MulticlassHinge().value(codes, scores).sum() + 0.5 * np.sum(model.coef_**2)
        np.testing.assert_allclose(model.certificate_.primal, primal, rtol=1e-9)


@pytest.mark.mission("M4")
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, "kernel"], ids=["dense", "sparse", "kernel"])
def test_shifting_the_inputs_changes_nothing_but_the_biases(form, blobs, rng):
    X, y = blobs
    shift, options = 10.0 * rng.normal(size=X.shape[1]), {"kernel": lambda A, B: A @ B.T} if form == "kernel" else {}
    make = np.asarray if form == "kernel" else form
    here = hg.MulticlassSVM(0.1, tol=1e-8, **options).fit(make(X), y)
    there = hg.MulticlassSVM(0.1, tol=1e-8, **options).fit(make(X + shift), y)
    np.testing.assert_allclose(there.certificate_.primal, here.certificate_.primal, rtol=2e-8)
    np.testing.assert_allclose(there.decision_function(X + shift), here.decision_function(X), atol=1e-2)
    if form != "kernel":
        np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-3)
        np.testing.assert_allclose(there.intercept_, here.intercept_ - here.coef_ @ shift, atol=1e-1)


@pytest.mark.mission("M4")
@pytest.mark.parametrize("kernel", [None, lambda A, B: A @ B.T], ids=["linear", "kernel"])
def test_biases_of_the_multiclass_svm_are_not_penalised(rng, kernel):
    """The optimum of the quadratic program in W and b; two classes are the binary machine with a free bias."""
    X, y = rng.normal(size=(60, 2)) + 5.0, (rng.random(60) < 0.8).astype(int)
    X[y == 1, 0] += 1.0
    model = hg.MulticlassSVM(0.5, tol=1e-8, kernel=kernel).fit(X, y)
    binary = hg.LinearSVC(C=1.0, loss="hinge", tol=1e-9).fit(X, y)  # ½‖w₁‖² + ½‖w₀‖² is ¼‖w‖² for w = w₁ − w₀
    np.testing.assert_allclose(2.0 * model.certificate_.primal, binary.certificate_.primal * 60.0, rtol=1e-6)


@pytest.mark.mission("M4")
def test_the_bound_of_the_multiclass_svm_is_below_every_objective(rng):
    """Whatever dual coefficients are offered, the bound is below every objective."""
    X, y, c = rng.normal(size=(30, 3)), rng.integers(3, size=30), rng.random(30) + 0.1
    cost = rng.random((3, 3)) * (1 - np.eye(3))
    optimum = hg.MulticlassSVM(1.0, cost=cost, tol=1e-9).fit(X, y, sample_weight=c).certificate_
    for scale in (0.0, 0.1, 1.0, 10.0):
        W, b, dual = (scale * rng.normal(size=shape) for shape in ((3, 3), 3, (30, 3)))
        judged = linear_multiclass_certificate(X, W, b, y, c, cost, dual, tol=1e-6)
        assert judged.dual <= optimum.primal * (1 + 1e-9)
        assert judged.primal >= optimum.dual


@pytest.mark.mission("M4")
def test_two_classes_are_the_binary_machine(rng):
    """With two classes w₁ − w₀ is the binary SVM's w for twice the C."""
    X, y = rng.normal(size=(60, 3)), rng.integers(2, size=60)
    model = hg.MulticlassSVM(1.0, fit_intercept=False, tol=1e-9).fit(X, y)
    w = model.coef_[1] - model.coef_[0]
    np.testing.assert_allclose(model.coef_.sum(axis=0), 0.0, atol=1e-12)
    binary = np.maximum(0, 1 - (2 * y - 1) * (X @ w)).sum() + 0.25 * w @ w
    np.testing.assert_allclose(model.certificate_.primal, binary, rtol=1e-9)


class GivenScores:
    """A binary learner with given scores."""

    def __init__(self, scores):
        self.scores = scores

    def decision_function(self, X):
        return self.scores


@pytest.mark.mission("M1")
def test_equal_votes_are_decided_by_the_scores_and_nothing_else_is(rng):
    """argmax of (votes, Σ ± h/(1 + |h|)) in that order: no score outweighs a vote, however large."""
    k, n = 4, 400
    X, y = rng.normal(size=(n, 2)), np.arange(n) % k
    model = hg.OneVsOneClassifier(LogisticRegression()).fit(X, y)
    h = rng.normal(size=(n, len(model.pairs_))) * 10.0 ** rng.integers(-3, 4, size=(n, len(model.pairs_)))
    model.estimators_ = [GivenScores(column) for column in h.T]
    votes, squeezed = np.zeros((n, k)), np.zeros((n, k))
    for (i, j), column in zip(model.pairs_, h.T):
        for out, part in ((votes, np.sign(column)), (squeezed, column / (1 + np.abs(column)))):
            out[:, j] += part
            out[:, i] -= part
    best = [max(range(k), key=lambda c: (v[c], s[c])) for v, s in zip(votes, squeezed)]
    np.testing.assert_array_equal(model.predict(X), best)
    tied = np.sum(votes == votes.max(axis=1, keepdims=True), axis=1) > 1
    assert tied.sum() > 20
    assert np.any(votes.argmax(axis=1)[tied] != np.array(best)[tied])  # the first of them would not do


@pytest.mark.mission("M1")
def test_codes_are_decoded_by_squeezed_scores(rng):
    """−Σ_b sign_b tanh(h_b): one learner that is very sure does not outvote several that are sure."""
    code = np.array([[0, 0, 0, 0], [1, 1, 1, 0], [0, 0, 1, 1]])
    h = rng.normal(size=(50, 4)) * 3
    expected = [[-sum((1 if bit else -1) * np.tanh(s) for bit, s in zip(word, row)) for word in code] for row in h]
    np.testing.assert_allclose(decode(h, code, "score"), expected, rtol=1e-12, atol=1e-12)
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 3
    model = hg.OutputCodeClassifier(LogisticRegression(), code=code, decoding="score").fit(X, y)
    model.estimators_ = [GivenScores(np.full(30, s)) for s in (-50.0, 2.0, 2.0, -2.0)]
    assert set(model.predict(X)) == {1}  # by plain sums the code 0000 is nearer
