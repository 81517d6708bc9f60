"""S6: chains of the second order. Inference, gradients and the three learners against enumeration."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import hinge as hg
from hinge._native import core

pytestmark = pytest.mark.mission("S6")


def data_of(matrices):
    stacked = np.vstack(matrices)
    n, d = stacked.shape
    start = np.concatenate([[0], np.cumsum([len(m) for m in matrices])]).astype(np.int64)
    columns = np.tile(np.arange(d, dtype=np.int32), n)
    return core.ChainData(start, np.arange(n + 1) * d, columns, np.ascontiguousarray(stacked.ravel()), None, d)


def layout_of(d, k, cross=False):
    crossed = (np.arange(d + 1) * k * k, np.tile(np.arange(k * k, dtype=np.int32), d)) if cross else (None, None)
    return core.ChainLayout(
        d, k, None, None, np.arange(k * k, dtype=np.int32), *crossed, np.arange(k**3, dtype=np.int32)
    )


class Case:
    """A random second-order model over one short chain, and every labelling of it with its score."""

    def __init__(self, seed: int, forbid: bool = False, cross: bool = False, scale: float = 2.0) -> None:
        rng = np.random.default_rng(seed)
        self.k, self.n, self.d = int(rng.integers(2, 5)), int(rng.integers(1, 6)), 4
        k, d = self.k, self.d
        self.X = rng.normal(size=(self.n, d)) * (rng.random((self.n, d)) < 0.7)
        self.U, self.T = scale * rng.normal(size=(d, k)), scale * rng.normal(size=(k, k))
        self.R = scale * rng.normal(size=(k, k, k))
        self.P = scale * rng.normal(size=(d, k, k)) if cross else np.zeros((d, k, k))
        self.forbidden = np.zeros((k, k), dtype=np.uint8)
        if forbid:
            self.forbidden = (rng.random((k, k)) < 0.3).astype(np.uint8)
            np.fill_diagonal(self.forbidden, 0)
        self.data, self.layout = data_of([self.X]), layout_of(d, k, cross)
        self.w = np.concatenate([self.U.ravel(), self.T.ravel(), self.P.ravel() if cross else [], self.R.ravel()])
        self.model = core.ChainModel(d, k)
        self.model.forbid(self.forbidden.ravel(), None, None)
        self.model.load(self.layout, self.w)
        self.labellings = np.array(list(itertools.product(range(k), repeat=self.n)), dtype=np.int32)
        self.scores = np.array([self.score(y) for y in self.labellings])
        self.log_z = np.logaddexp.reduce(self.scores)
        with np.errstate(under="ignore"):
            self.p = np.exp(self.scores - self.log_z)

    def score(self, y):
        total = sum(self.X[t] @ self.U[:, y[t]] for t in range(self.n))
        for t in range(1, self.n):
            total += self.T[y[t - 1], y[t]] + self.X[t] @ self.P[:, y[t - 1], y[t]]
            total -= np.inf if self.forbidden[y[t - 1], y[t]] else 0.0
        return total + sum(self.R[y[t - 2], y[t - 1], y[t]] for t in range(2, self.n))


@pytest.mark.parametrize("cross", [False, True], ids=["pairs", "observed pairs"])
@pytest.mark.parametrize("forbid", [False, True], ids=["free", "constrained"])
@pytest.mark.parametrize("scale", [2.0, 200.0])  # 200: some normalisers underflow, logarithms take over
def test_inference_equals_enumeration(forbid, cross, scale):
    for seed in range(100):
        case = Case(seed, forbid, cross, scale)
        marginals, log_z = case.model.marginals(case.data)
        expected = np.zeros((case.n, case.k))
        for y, p in zip(case.labellings, case.p):
            expected[np.arange(case.n), y] += p
        np.testing.assert_allclose(log_z[0], case.log_z, rtol=1e-12, atol=1e-11)
        np.testing.assert_allclose(case.model.log_partition(case.data)[0], case.log_z, rtol=1e-12, atol=1e-11)
        np.testing.assert_allclose(marginals, expected, atol=1e-10)
        best, value = case.model.decode(case.data)
        np.testing.assert_array_equal(best, case.labellings[np.argmax(case.scores)])
        np.testing.assert_allclose(value[0], case.scores.max(), rtol=1e-12, atol=1e-11)
        allowed = np.isfinite(case.scores)
        last = int(np.flatnonzero(allowed)[-1])
        score = case.model.score(case.data, case.labellings[last])[0]
        np.testing.assert_allclose(score, case.scores[last], rtol=1e-12, atol=1e-11)
        for count in (1, 4, 2000):
            labels, values = case.model.top(case.data, count)[0]
            order = np.argsort(-case.scores[allowed])[:count]
            np.testing.assert_allclose(values, case.scores[allowed][order], rtol=1e-12, atol=1e-11)
            np.testing.assert_array_equal(labels, case.labellings[allowed][order])


def test_loss_augmented_decoding_equals_enumeration():
    for seed in range(100):
        case = Case(seed)
        rng = np.random.default_rng(1000 + seed)
        cost = rng.random((case.k, case.k)) * (1 - np.eye(case.k))
        y = rng.integers(case.k, size=case.n).astype(np.int32)
        best, value = case.model.decode(case.data, y, cost)
        augmented = case.scores + np.array([cost[y, other].sum() for other in case.labellings])
        np.testing.assert_allclose(value[0], augmented.max(), rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(best, case.labellings[np.argmax(augmented)])


@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
def test_long_sequences_and_extreme_scores(scale, rng):
    """Equal to the recursion with logarithms in NumPy, whatever the scores."""
    n, k = 3000, 4
    S, T, R = scale * rng.normal(size=(n, k)), scale * rng.normal(size=(k, k)), scale * rng.normal(size=(k, k, k))
    data, model = data_of([S]), core.ChainModel(k, k)
    model.load(layout_of(k, k), np.concatenate([np.eye(k).ravel(), T.ravel(), R.ravel()]))
    marginals, log_z = model.marginals(data)
    alpha, beta = np.zeros((n, k, k)), np.zeros((n, k, k))
    alpha[1] = S[0][:, None] + T + S[1]
    for t in range(2, n):
        alpha[t] = np.logaddexp.reduce(alpha[t - 1][:, :, None] + R, axis=0) + T + S[t]
    for t in range(n - 1, 1, -1):
        beta[t - 1] = np.logaddexp.reduce(R + (T + S[t] + beta[t])[None], axis=2)
    total = np.logaddexp.reduce(alpha[-1].ravel())
    np.testing.assert_allclose(log_z[0], total, rtol=1e-10)
    with np.errstate(under="ignore"):
        expected = np.exp(alpha + beta - total).sum(axis=1)
    # Rounding of numbers as large as log Z, in the reference above.
    np.testing.assert_allclose(marginals[1:], expected[1:], atol=1e-12 * max(1e3, abs(total)))
    np.testing.assert_allclose(marginals.sum(axis=1), 1.0, atol=1e-9)


def random_corpus(rng, sequences=12, k=3, d=4):
    X = [rng.normal(size=(int(rng.integers(1, 6)), d)) for _ in range(sequences)]
    y = [rng.integers(k, size=len(x)) for x in X]
    X[0], y[0] = rng.normal(size=(3, d)), np.array([0, 1, 2])
    return X, y


@pytest.mark.parametrize("k", [3, 9, 66])  # one vector of labels, two, and a width known only at run time
@pytest.mark.parametrize("cross", [False, True], ids=["pairs", "observed pairs"])
def test_gradient_is_expected_minus_observed_features(rng, k, cross):
    X, y = random_corpus(rng)
    data, layout, blank = data_of(X), layout_of(4, k, cross), core.ChainModel(4, k)
    codes, c, w = np.concatenate(y).astype(np.int32), rng.dirichlet(np.ones(len(X))), rng.normal(size=layout.size)
    value, gradient = core.crf_loss(data, codes, c, layout, blank, w)
    model = core.ChainModel(4, k)
    model.load(layout, w)
    marginals, log_z = model.marginals(data)
    np.testing.assert_allclose(value, c @ (log_z - model.score(data, codes)), rtol=1e-12)
    weight = np.repeat(c, [len(x) for x in X])[:, None]
    expected = np.vstack(X).T @ (weight * (marginals - np.eye(k)[codes]))
    np.testing.assert_allclose(gradient[: 4 * k].reshape(4, k), expected, atol=1e-12)
    triples = np.arange(layout.size - k**3, layout.size)
    seen = triples[np.argsort(-np.abs(gradient[triples]))[:10]]
    np.testing.assert_allclose(gradient[triples].sum(), 0.0, atol=1e-12)  # as many triples expected as observed
    for j in np.concatenate([rng.choice(layout.size, size=10, replace=False), seen]):
        step = np.zeros_like(w)
        step[j] = 1e-5
        up = core.crf_loss(data, codes, c, layout, blank, w + step)[0]
        down = core.crf_loss(data, codes, c, layout, blank, w - step)[0]
        np.testing.assert_allclose(gradient[j], (up - down) / 2e-5, atol=1e-8)


def test_expected_triples_where_scaled_sums_underflow(rng):
    """Scores of some hundreds: the gradient of the recursion with logarithms equals that of the enumeration."""
    for seed in range(20):
        case = Case(seed, scale=200.0)
        y = rng.integers(case.k, size=case.n).astype(np.int32)
        _, gradient = core.crf_loss(case.data, y, np.ones(1), case.layout, core.ChainModel(case.d, case.k), case.w)
        expected = np.zeros((case.k, case.k, case.k))
        for labels, p in [*zip(case.labellings, case.p), (y, -1.0)]:
            for t in range(2, case.n):
                expected[labels[t - 2], labels[t - 1], labels[t]] += p
        np.testing.assert_allclose(gradient[-(case.k**3) :], expected.ravel(), atol=1e-10)


def features(x, labels, k):
    """ψ(x, y): unary, pairs, triples."""
    d = x.shape[1]
    U, T, R = np.zeros((d, k)), np.zeros((k, k)), np.zeros((k, k, k))
    for t, label in enumerate(labels):
        U[:, label] += x[t]
        if t > 0:
            T[labels[t - 1], label] += 1
        if t > 1:
            R[labels[t - 2], labels[t - 1], label] += 1
    return np.concatenate([U.ravel(), T.ravel(), R.ravel()])


def weights(model):
    return np.concatenate([model.coef_.toarray().ravel(), model.transitions_.ravel(), model.trigrams_.ravel()])


def test_crf_certificate_is_a_true_bound(rng):
    X, y = random_corpus(rng, sequences=20)
    sample_weight = rng.random(20) + 0.5
    c = sample_weight / sample_weight.sum()
    every = [np.array([features(x, o, 3) for o in itertools.product(range(3), repeat=len(x))]) for x in X]
    psi = [features(x, labels, 3) for x, labels in zip(X, y)]
    for r in (0.0, 0.5, 1.0):
        make = {"l1_ratio": r, "all_pairs": True, "order": 2}
        best = hg.ChainCRF(0.05, tol=1e-6, **make).fit(X, y, sample_weight)
        w = weights(best)
        loss = sum(ci * (np.logaddexp.reduce(F @ w) - p @ w) for ci, F, p in zip(c, every, psi))
        objective = loss + 0.05 * (r * np.abs(w).sum() + (1 - r) * w @ w / 2)
        np.testing.assert_allclose(best.certificate_.primal, objective, rtol=1e-10)
        assert best.certificate_.converged
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            for iterations in (1, 3, 10):
                rough = hg.ChainCRF(0.05, tol=0, max_iter=iterations, **make).fit(X, y, sample_weight).certificate_
                assert rough.primal - best.certificate_.primal <= rough.gap + 1e-12
                assert rough.dual <= best.certificate_.primal + 1e-12


def test_structured_svm_reaches_the_optimum_of_its_quadratic_program(rng):
    """Against the QP with one constraint per labelling, solved by an interior-point method."""
    X, y = random_corpus(rng, sequences=6)
    k, alpha, n = 3, 0.1, 6
    model = hg.StructuredSVM(alpha, order=2, tol=1e-6, max_iter=20_000).fit(X, y)
    rows, cost, owner = [], [], []
    for i, x in enumerate(X):
        for labels in itertools.product(range(k), repeat=len(x)):
            rows.append(features(x, labels, k) - features(x, y[i], k))
            cost.append(float(np.sum(np.array(labels) != y[i])))
            owner.append(i)
    A, cost, owner = np.array(rows), np.array(cost), np.array(owner)
    P = sparse.diags_array(np.concatenate([np.full(A.shape[1], alpha), np.zeros(n)])).tocsc()
    q = np.concatenate([np.zeros(A.shape[1]), np.full(n, 1 / n)])
    clarabel = pytest.importorskip("clarabel", reason="the QP reference needs the [qp] extra")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    G = sparse.csc_array(np.hstack([A, -np.eye(n)[owner]]))
    cones = [clarabel.NonnegativeConeT(len(cost))]
    optimum = clarabel.DefaultSolver(P, q, G, -cost, cones, settings).solve().obj_val
    w = weights(model)
    margins = cost + A @ w
    primal = np.mean([margins[owner == i].max() for i in range(n)]) + 0.5 * alpha * w @ w
    np.testing.assert_allclose(model.certificate_.primal, primal, rtol=1e-10)
    assert model.certificate_.converged
    assert model.certificate_.dual <= optimum + 1e-6
    np.testing.assert_allclose(primal, optimum, rtol=2e-6)


def test_perceptron_follows_its_definition(rng):
    X, y = random_corpus(rng, sequences=8)
    w, mean, visits = np.zeros(12 + 9 + 27), np.zeros(12 + 9 + 27), 0
    every = [list(itertools.product(range(3), repeat=len(x))) for x in X]
    psi = [np.array([features(x, o, 3) for o in options]) for x, options in zip(X, every)]
    for visit in range(4):
        for i, x in enumerate(X):
            values = psi[i] @ w
            # Before the first update all labellings tie: the library takes label 0 everywhere, the first listed here.
            best = 0 if visit == i == 0 else int(np.argmax(values))
            w = w + features(x, y[i], 3) - psi[i][best]
            mean, visits = mean + w, visits + 1
    last = hg.StructuredPerceptron(4, average=False, shuffle=False, order=2).fit(X, y)
    averaged = hg.StructuredPerceptron(4, shuffle=False, order=2).fit(X, y)
    if last.n_iter_ == 4:
        np.testing.assert_allclose(weights(last), w, atol=1e-9)
        np.testing.assert_allclose(weights(averaged), mean / visits, atol=1e-9)


def test_sgd_follows_its_definition(rng):
    """Batches of everything: w ← (1 − ηα) w − η ∇L(w), then the mean of the steps from the second on."""
    X, y = random_corpus(rng, sequences=8)
    data, codes, layout = data_of(X), np.concatenate(y).astype(np.int32), layout_of(4, 3)
    alpha, eta0, w, path = 0.3, 0.5, np.zeros(layout.size), []
    for t in range(1, 5):
        eta = eta0 / (1 + eta0 * alpha * t)
        w = (1 - eta * alpha) * w - eta * core.crf_loss(
            data, codes, np.full(8, 1 / 8), layout, core.ChainModel(4, 3), w
        )[1]
        path.append(w)
    for average, expected in ((False, path[-1]), (True, np.mean(path[1:], axis=0))):
        model = hg.ChainCRF(
            alpha, order=2, all_pairs=True, solver="sgd", eta0=eta0, batch_size=8, average=average, max_iter=4, tol=0.0
        )
        with pytest.warns(ConvergenceWarning):
            model.fit(X, y)
        np.testing.assert_allclose(weights(model), expected, atol=1e-10)


def exclusive_or(rng, sequences, length=12, flip=0.1):
    """y_t = y_{t−1} xor y_{t−2}, wrong with probability ``flip``; tokens show nothing. Neighbours are independent."""
    Y = []
    for _ in range(sequences):
        y = list(rng.integers(2, size=2))
        for _ in range(length - 2):
            y.append(int(y[-1] ^ y[-2] ^ (rng.random() < flip)))
        Y.append([int(v) for v in y])
    return [[["token"]] * length for _ in range(sequences)], Y


def test_second_order_data_are_likelier_under_order_two(rng):
    """Held-out log-likelihood: 10 (log 2 − H(0.1)) = 3.68 nats a sequence better, ± 10 standard errors of 0.15."""
    X, y = exclusive_or(rng, 200)
    test_X, test_y = exclusive_or(rng, 200)
    first, second = (hg.ChainCRF(1e-3, order=order).fit(X, y) for order in (1, 2))
    assert first.trigrams_ is None
    difference = second.log_likelihood(test_X, test_y) - first.log_likelihood(test_X, test_y)
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    assert difference.mean() > 5 * error
    limit = 10 * (np.log(2) + 0.1 * np.log(0.1) + 0.9 * np.log(0.9))
    # 5 standard errors of the mean, and half a parameter's worth of nats for each of the 8 + 4 + 2 weights that training
    # estimated from 200 sequences (Wilks), five times over.
    assert abs(difference.mean() - limit) < 5 * error + 5 * 14 / (2 * 200)


LEARNERS = {
    "crf": lambda **k: hg.ChainCRF(1e-3, **k),
    "crf-all": lambda **k: hg.ChainCRF(1e-3, all_pairs=True, **k),
    "sgd": lambda **k: hg.ChainCRF(1e-2, solver="sgd", tol=0.05, **k),
    "svm": lambda **k: hg.StructuredSVM(1e-3, **k),
    "perceptron": lambda **k: hg.StructuredPerceptron(200, average=False, **k),
}


def periodic(rng, sequences):
    """Tokens show the first two labels; the rest follow y_t = y_{t−1} xor y_{t−2}: no label pair separates them."""
    X, Y = [], []
    for _ in range(sequences):
        y = [int(v) for v in rng.integers(2, size=2)]
        for _ in range(6):
            y.append(y[-1] ^ y[-2])
        X.append([[f"first{y[0]}"], [f"second{y[1]}"], *[["then"]] * 6])
        Y.append(["AB"[v] for v in y])
    return X, Y


@pytest.mark.parametrize("name", LEARNERS)
def test_learners_use_trigrams(name, rng, tmp_path):
    """Four distinct sequences that order 2 separates: the perceptron ends without mistakes (Novikoff), the others near."""
    X, y = periodic(rng, 40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # order 1 cannot separate them: the perceptron never ends
        plain, model = (LEARNERS[name](order=order).fit(X, y) for order in (1, 2))
    assert plain.trigrams_ is None
    assert plain.score(X, y) < 1.0
    assert model.score(X, y) == 1.0
    assert model.trigrams_.shape == (2, 2, 2)
    hg.save(model, tmp_path / "model.hinge")
    loaded = hg.load(tmp_path / "model.hinge")
    assert loaded.predict(X) == model.predict(X)
    np.testing.assert_array_equal(loaded.trigrams_, model.trigrams_)
    np.testing.assert_allclose(loaded.decision_function(X), model.decision_function(X))
    top = model.predict_top(X[:1], k=3)[0]
    assert top[0][0] == model.predict(X[:1])[0]
    np.testing.assert_allclose([score for _, score in top], model.decision_function(X[:1] * 3, [s for s, _ in top]))


@pytest.mark.parametrize("name", ["crf", "svm"])
def test_weights_of_sequences_are_repetitions(name, rng):
    X, y = random_corpus(rng, sequences=6)
    times = rng.integers(1, 4, size=6)
    make = {"alpha": 0.1, "order": 2, "tol": 1e-8 if name == "crf" else 1e-5, "max_iter": 20_000}
    kind = hg.ChainCRF if name == "crf" else hg.StructuredSVM
    weighted = kind(**make).fit(X, y, times.astype(float))
    repeated = kind(**make).fit(
        [x for x, n in zip(X, times) for _ in range(n)], [v for v, n in zip(y, times) for _ in range(n)]
    )
    distance = np.linalg.norm(weights(weighted) - weights(repeated))
    # Each objective is α-strongly convex: ‖w − w*‖² ≤ 2 gap/α.
    gaps = [max(model.certificate_.gap, 0.0) for model in (weighted, repeated)]
    assert distance <= sum(np.sqrt(2 * gap / 0.1) for gap in gaps) + 1e-6


def test_constraints_hold_and_forbidden_triples_have_no_weight(rng):
    labels = ["B-a", "I-a", "O"]
    X = [rng.normal(size=(6, 3)) for _ in range(30)]
    y = [["O", "B-a", "I-a", "I-a", "O", "B-a"], ["B-a", "B-a", "O", "O", "B-a", "I-a"]] * 15
    for make in LEARNERS.values():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = make(order=2, constraints="bio").fit(X, y)
        assert model.classes_.tolist() == labels
        assert np.all(model.trigrams_[2, 1] == 0)  # I-a after O
        assert np.all(model.trigrams_[:, 2, 1] == 0)
        for sequence in model.predict([10 * rng.normal(size=(9, 3)) for _ in range(20)]):
            assert sequence[0] != "I-a"
            assert not any(a == "O" and b == "I-a" for a, b in itertools.pairwise(sequence))


@pytest.mark.parametrize("loss", [hg.StructuredLogistic(), hg.StructuredHinge(), hg.StructuredPerceptronLoss()])
def test_the_learner_takes_chains_of_order_two(loss, rng):
    X, y = periodic(rng, 20)
    penalty = hg.NoPenalty() if isinstance(loss, hg.StructuredPerceptronLoss) else hg.L2(1e-3)
    learner = hg.Learner(hg.Chain(order=2), loss, penalty, max_iter=1000).fit(X, y)
    if isinstance(loss, hg.StructuredPerceptronLoss):  # averaged weights: nothing guarantees that they separate
        assert learner.predict(X) == hg.StructuredPerceptron(1000, order=2, random_state=0).fit(X, y).predict(X)
    else:
        assert learner.predict(X) == y
    assert learner.trigrams_.shape == (2, 2, 2)


def test_what_order_two_refuses():
    X, y, parents = [[["a"], ["b"], ["a"]]], [["u", "v", "u"]], [[-1, 0, 0]]
    with pytest.raises(ValueError, match="order"):
        hg.ChainCRF(order=3).fit(X, y)
    with pytest.raises(ValueError, match="chains"):
        hg.TreeCRF(order=2).fit(X, y, parents=parents)
    with pytest.raises(ValueError, match="chains"):
        hg.StructuredSVM(order=2).fit(X, y, parents=parents)
    with pytest.raises(ValueError, match="markov"):
        hg.ChainCRF(order=2, markov=False).fit(X, y)
    model = hg.ChainCRF(order=2).fit(X, y)
    with pytest.raises(ValueError, match="chains"):
        model.predict(X, parents=parents)


def test_sequences_too_short_for_triples():
    """Nothing has a third token: order 2 is order 1."""
    X, y = [[["a"], ["b"]], [["b"]]], [["u", "v"], ["v"]]
    first, second = (hg.ChainCRF(0.1, order=order, tol=1e-8).fit(X, y) for order in (1, 2))
    np.testing.assert_array_equal(second.trigrams_, np.zeros((2, 2, 2)))
    np.testing.assert_allclose(second.coef_.toarray(), first.coef_.toarray(), atol=1e-6)
    assert second.predict([[["a"], ["b"], ["a"], ["b"]]]) == first.predict([[["a"], ["b"], ["a"], ["b"]]])
