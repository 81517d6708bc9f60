"""S: structured prediction. Inference against brute force, gradients against differences, three learners."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import hinge as hg
from hinge._native import core


class Case:
    """A random model over one small chain or tree, and every labelling of it with its score."""

    def __init__(self, seed: int, tree: bool, scale: float = 2.0, forbid: bool = False) -> None:
        rng = np.random.default_rng(seed)
        self.k, self.length, d = int(rng.integers(2, 5)), int(rng.integers(1, 6)), 6
        X = rng.normal(size=(self.length, d)) * (rng.random((self.length, d)) < 0.6)
        self.U, self.T = scale * rng.normal(size=(d, self.k)), scale * rng.normal(size=(self.k, self.k))
        parents = np.array([-1 if t == 0 or rng.random() < 0.15 else int(rng.integers(t)) for t in range(self.length)])
        order = rng.permutation(self.length)  # parents may come after their children
        inverse = np.argsort(order)
        self.parent = np.array([-1 if parents[o] < 0 else inverse[parents[o]] for o in order]) if tree else None
        self.pairs = np.zeros((self.k, self.k), dtype=np.uint8)
        if forbid:
            self.pairs = (rng.random((self.k, self.k)) < 0.3).astype(np.uint8)
            np.fill_diagonal(self.pairs, 0)
        self.X = X
        self.data, self.model = build([X], self.U, self.T, None if self.parent is None else [self.parent], self.pairs)
        self.labellings = np.array(list(itertools.product(range(self.k), repeat=self.length)), dtype=np.int32)
        T = np.where(self.pairs == 1, -np.inf, self.T)
        S = X @ self.U
        up = np.arange(self.length) - 1 if self.parent is None else self.parent
        self.scores = np.array(
            [sum(S[t, y[t]] + (T[y[up[t]], y[t]] if up[t] >= 0 else 0.0) for t in range(self.length))
             for y in self.labellings]
        )  # fmt: skip
        with np.errstate(under="ignore"):
            self.log_z = np.logaddexp.reduce(self.scores)
            self.p = np.exp(self.scores - self.log_z)


def build(matrices, U, T, parents=None, forbidden=None):
    """Native data and model from dense arrays."""
    d, k = U.shape
    stacked = np.vstack(matrices)
    start = np.concatenate([[0], np.cumsum([len(m) for m in matrices])]).astype(np.int64)
    indptr = (np.arange(len(stacked) + 1) * d).astype(np.int64)
    attribute = np.tile(np.arange(d, dtype=np.int32), len(stacked))
    parent = None if parents is None else np.concatenate(parents).astype(np.int32)
    data = core.ChainData(start, indptr, attribute, np.ascontiguousarray(stacked.ravel()), parent, d)
    model = core.ChainModel(d, k)
    model.forbid(None if forbidden is None else np.ascontiguousarray(forbidden).ravel(), None, None)
    layout = core.ChainLayout(d, k, None, None, np.arange(k * k, dtype=np.int32))
    model.load(layout, np.concatenate([U.ravel(), T.ravel()]))
    return data, model


both = pytest.mark.parametrize("tree", [False, True], ids=["chain", "tree"])


@pytest.mark.mission("S1", "S2", "S4")
@both
@pytest.mark.parametrize("forbid", [False, True], ids=["free", "constrained"])
def test_inference_equals_brute_force(tree, forbid):
    """log Z, marginals, best labelling and scores on 200 random chains and trees."""
    for seed in range(200):
        case = Case(seed, tree, forbid=forbid)
        marginals, log_z = case.model.marginals(case.data)
        expected = np.zeros((case.length, case.k))
        for y, p in zip(case.labellings, case.p):
            expected[np.arange(case.length), y] += p
        np.testing.assert_allclose(log_z[0], case.log_z, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(case.model.log_partition(case.data)[0], case.log_z, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(marginals, expected, atol=1e-12)
        best, value = case.model.decode(case.data)
        top = np.argmax(case.scores)
        np.testing.assert_allclose(value[0], case.scores[top], rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(best, case.labellings[top])
        finite = int(np.flatnonzero(np.isfinite(case.scores))[0])
        score = case.model.score(case.data, case.labellings[finite])[0]
        np.testing.assert_allclose(score, case.scores[finite], rtol=1e-12, atol=1e-12)


@pytest.mark.mission("S2", "R4")
@both
def test_loss_augmented_decoding_equals_brute_force(tree):
    for seed in range(200):
        case = Case(seed, tree)
        rng = np.random.default_rng(1000 + seed)
        cost = rng.random((case.k, case.k)) * (1 - np.eye(case.k))
        y = rng.integers(case.k, size=case.length).astype(np.int32)
        best, value = case.model.decode(case.data, y, cost)
        augmented = case.scores + np.array([cost[y, other].sum() for other in case.labellings])
        np.testing.assert_allclose(value[0], augmented.max(), rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(best, case.labellings[np.argmax(augmented)])
        if not tree:  # the NumPy definition of the structured hinge agrees
            loss = hg.StructuredHinge(cost)
            observed = loss.score(y, case.X @ case.U, case.T)
            value = loss.sequence_value(y, case.X @ case.U, case.T)
            np.testing.assert_allclose(value, augmented.max() - observed, atol=1e-12)
            assert augmented.max() - observed >= cost[y, case.model.decode(case.data)[0]].sum() - 1e-12


@pytest.mark.mission("S2", "S4")
@both
def test_top_labellings_equal_brute_force(tree):
    for seed in range(200):
        case = Case(seed, tree, forbid=seed % 2 == 1)
        allowed = np.isfinite(case.scores)
        for count in (1, 3, 1000):
            labels, values = case.model.top(case.data, count)[0]
            order = np.argsort(-case.scores[allowed])[:count]
            np.testing.assert_allclose(values, case.scores[allowed][order], rtol=1e-12, atol=1e-12)
            np.testing.assert_array_equal(labels, case.labellings[allowed][order])


@pytest.mark.mission("S2")
@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
def test_long_sequences_and_extreme_scores(scale, rng):
    """10⁵ tokens: no overflow, and the same answer as logarithms in NumPy."""
    n, k = 100_000, 5
    S, T = scale * rng.normal(size=(n, k)), scale * rng.normal(size=(k, k))
    data, model = build([S], np.eye(k), T)
    marginals, log_z = model.marginals(data)
    forward = S[0]
    for row in S[1:]:
        forward = np.logaddexp.reduce(forward[:, None] + T, axis=0) + row
    np.testing.assert_allclose(log_z[0], np.logaddexp.reduce(forward), rtol=1e-10)
    np.testing.assert_allclose(marginals.sum(axis=1), 1.0, atol=1e-9)
    chain = np.arange(n, dtype=np.int32) - 1
    logarithms, _ = build([S], np.eye(k), T, [chain])[1].marginals(build([S], np.eye(k), T, [chain])[0])
    np.testing.assert_allclose(marginals, logarithms, atol=1e-9)


@pytest.mark.mission("S2")
def test_paths_that_look_dead_to_a_scaled_recursion():
    """A label whose scaled probability underflows can still be the only way on."""
    k = 2
    S = np.array([[0.0, -800.0], [0.0, 0.0], [0.0, 0.0]])
    T = np.array([[0.0, -2000.0], [-2000.0, 0.0]])
    S[2] = [-3000.0, 0.0]
    data, model = build([S], np.eye(k), T)
    marginals, log_z = model.marginals(data)
    np.testing.assert_allclose(log_z[0], -800.0, rtol=1e-12)
    np.testing.assert_allclose(marginals[:, 1], 1.0, atol=1e-12)


def random_corpus(rng, sequences=12, k=3, d=5, tree=False):
    X = [rng.normal(size=(int(rng.integers(1, 6)), d)) for _ in range(sequences)]
    y = [rng.integers(k, size=len(x)) for x in X]
    y[0][0], y[1][0], y[2][0] = 0, 1, 2
    parents = [np.array([-1 if t == 0 else int(rng.integers(t)) for t in range(len(x))]) for x in X] if tree else None
    return X, y, parents


@pytest.mark.mission("S3", "S4")
@both
@pytest.mark.parametrize("k", [3, 9, 70])  # one vector of labels, two, and a width known only at run time
def test_gradient_is_expected_minus_observed_features(rng, tree, k):
    X, y, parents = random_corpus(rng, k=3, tree=tree)
    U, T = rng.normal(size=(5, k)), rng.normal(size=(k, k))
    data, model = build(X, U, T, parents)
    codes, c = np.concatenate(y).astype(np.int32), rng.dirichlet(np.ones(len(X)))
    layout = core.ChainLayout(5, k, None, None, np.arange(k * k, dtype=np.int32))
    w = np.concatenate([U.ravel(), T.ravel()])
    blank = core.ChainModel(5, k)
    value, gradient = core.crf_loss(data, codes, c, layout, blank, w)
    marginals, log_z = model.marginals(data)
    np.testing.assert_allclose(value, c @ (log_z - model.score(data, codes)), rtol=1e-12)
    weight = np.repeat(c, [len(x) for x in X])[:, None]
    expected = np.vstack(X).T @ (weight * (marginals - np.eye(k)[codes]))
    np.testing.assert_allclose(gradient[: 5 * k].reshape(5, k), expected, atol=1e-12)
    for j in rng.choice(len(w), size=20, replace=False):
        step = np.zeros_like(w)
        step[j] = 1e-5
        up = core.crf_loss(data, codes, c, layout, blank, w + step)[0]
        down = core.crf_loss(data, codes, c, layout, blank, w - step)[0]
        np.testing.assert_allclose(gradient[j], (up - down) / 2e-5, atol=1e-8)


@pytest.mark.mission("S3")
def test_crf_certificate_is_a_true_bound(rng):
    """At loose tolerance the gap covers the distance to the optimum found at a tight one."""
    X, y, _ = random_corpus(rng, sequences=20)
    for r in (0.0, 0.5, 1.0):
        best = hg.ChainCRF(0.05, l1_ratio=r, all_pairs=True, tol=1e-6).fit(X, y).certificate_
        assert best.converged
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            for iterations in (1, 3, 10):
                rough = hg.ChainCRF(0.05, l1_ratio=r, all_pairs=True, tol=0, max_iter=iterations).fit(X, y).certificate_
                assert rough.primal - best.primal <= rough.gap + 1e-12
                assert rough.dual <= best.primal + 1e-12
                assert rough.primal >= best.dual


@pytest.mark.mission("S3")
def test_l1_solution_satisfies_its_optimality_conditions(rng):
    X, y, _ = random_corpus(rng, sequences=20)
    model = hg.ChainCRF(0.05, l1_ratio=1.0, all_pairs=True, tol=1e-7).fit(X, y)
    w = np.concatenate([model.coef_.toarray().ravel(), model.transitions_.ravel()])
    k = 3
    data, _ = build(X, model.coef_.toarray(), model.transitions_)
    layout = core.ChainLayout(5, k, None, None, np.arange(k * k, dtype=np.int32))
    codes, c = np.concatenate(y).astype(np.int32), np.full(len(X), 1 / len(X))
    _, g = core.crf_loss(data, codes, c, layout, core.ChainModel(5, k), w)
    assert np.any(w == 0)
    np.testing.assert_allclose(g[w != 0], -0.05 * np.sign(w[w != 0]), atol=1e-4)
    assert np.all(np.abs(g[w == 0]) <= 0.05 + 1e-4)


@pytest.mark.mission("S3", "M2")
def test_chain_without_markov_features_is_multinomial_logistic_regression(rng):
    from sklearn.linear_model import LogisticRegression

    X, y, _ = random_corpus(rng, sequences=40)
    X, y = [x[:1] for x in X], [labels[:1] for labels in y]
    crf = hg.ChainCRF(0.01, markov=False, all_pairs=True, tol=1e-10).fit(X, y)
    logistic = LogisticRegression(C=1 / (0.01 * len(X)), fit_intercept=False, tol=1e-10, max_iter=10_000)
    logistic.fit(np.vstack(X), np.concatenate(y))
    np.testing.assert_allclose(crf.coef_.toarray().T, logistic.coef_, atol=1e-4)
    np.testing.assert_allclose(np.vstack(crf.predict_marginals(X)), logistic.predict_proba(np.vstack(X)), atol=1e-4)
    softmax = hg.Softmax().value(np.concatenate(y), np.vstack(X) @ crf.coef_.toarray())
    np.testing.assert_allclose(-crf.log_likelihood(X, y), softmax, atol=1e-12)


@pytest.mark.mission("S3", "S4")
@both
def test_structured_svm_reaches_the_optimum_of_its_quadratic_program(rng, tree):
    """Against the QP with one constraint per labelling, solved by an interior-point method."""
    X, y, parents = random_corpus(rng, sequences=6, tree=tree)
    k, d, alpha = 3, 5, 0.1
    keywords = {"parents": parents} if tree else {}
    model = hg.StructuredSVM(alpha, tol=1e-6, max_iter=20_000).fit(X, y, **keywords)
    size = d * k + k * k

    def features(i, labels):
        psi = np.zeros(size)
        for t, label in enumerate(labels):
            psi[np.arange(d) * k + label] += X[i][t]
            up = parents[i][t] if tree else t - 1
            if up >= 0:
                psi[d * k + labels[up] * k + label] += 1
        return psi

    rows, cost, owner = [], [], []
    for i in range(len(X)):
        for labels in itertools.product(range(k), repeat=len(X[i])):
            rows.append(features(i, labels) - features(i, y[i]))
            cost.append(np.sum(np.array(labels) != y[i]))
            owner.append(i)
    A, cost, owner = np.array(rows), np.array(cost, dtype=float), np.array(owner)

    def primal(w):
        margins = cost + A @ w
        return np.mean([margins[owner == i].max() for i in range(len(X))]) + 0.5 * alpha * w @ w

    # min α/2 ‖w‖² + mean ξ  subject to  A w + cost ≤ ξ
    n, slack = len(X), np.eye(len(X))[owner]
    P = sparse.diags_array(np.concatenate([np.full(size, alpha), np.zeros(n)])).tocsc()
    q = np.concatenate([np.zeros(size), np.full(n, 1 / n)])
    G = sparse.csc_array(np.hstack([A, -slack]))
    clarabel = pytest.importorskip("clarabel", reason="the QP reference needs the [qp] extra")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cones = [clarabel.NonnegativeConeT(len(cost))]
    optimum = clarabel.DefaultSolver(P, q, G, -cost, cones, settings).solve().obj_val

    w = np.concatenate([model.coef_.toarray().ravel(), model.transitions_.ravel()])
    np.testing.assert_allclose(model.certificate_.primal, primal(w), rtol=1e-10)
    assert model.certificate_.converged
    assert model.certificate_.dual <= optimum + 1e-6 <= primal(w) + 2e-6
    np.testing.assert_allclose(primal(w), optimum, rtol=2e-6)


@pytest.mark.mission("S3", "S4")
@both
def test_perceptron_follows_its_definition(rng, tree):
    """Against the update rule written out, with argmax by enumeration."""
    X, y, parents = random_corpus(rng, sequences=8, tree=tree)
    k, d = 3, 5
    U, T = np.zeros((d, k)), np.zeros((k, k))
    mean_U, mean_T, visits = np.zeros((d, k)), np.zeros((k, k)), 0
    for _ in range(4):
        for i, x in enumerate(X):
            up = parents[i] if tree else np.arange(len(x)) - 1
            best, top = None, -np.inf
            for labels in itertools.product(range(k), repeat=len(x)):
                value = sum(x[t] @ U[:, labels[t]] for t in range(len(x)))
                value += sum(T[labels[up[t]], labels[t]] for t in range(len(x)) if up[t] >= 0)
                if value > top + 1e-12:
                    best, top = labels, value
            for t in range(len(x)):
                U[:, y[i][t]] += x[t]
                U[:, best[t]] -= x[t]
                if up[t] >= 0:
                    T[y[i][up[t]], y[i][t]] += 1
                    T[best[up[t]], best[t]] -= 1
            mean_U, mean_T, visits = mean_U + U, mean_T + T, visits + 1
    keywords = {"parents": parents} if tree else {}
    last = hg.StructuredPerceptron(4, average=False, shuffle=False).fit(X, y, **keywords)
    averaged = hg.StructuredPerceptron(4, shuffle=False).fit(X, y, **keywords)
    if last.n_iter_ == 4:
        np.testing.assert_allclose(last.coef_.toarray(), U, atol=1e-9)
        np.testing.assert_allclose(last.transitions_, T, atol=1e-9)
        np.testing.assert_allclose(averaged.coef_.toarray(), mean_U / visits, atol=1e-9)
        np.testing.assert_allclose(averaged.transitions_, mean_T / visits, atol=1e-9)
