"""S: label pairs that look at the observation, stochastic gradients, held-out stopping."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import hinge as hg
from hinge._native import core

both = pytest.mark.parametrize("tree", [False, True], ids=["chain", "tree"])
EVERY = np.arange(9, dtype=np.int32)


class Observed:
    """A random model with weights P[a, y', y] over one small chain or tree, and every labelling of it."""

    def __init__(self, seed: int, tree: bool, forbid: bool = False) -> None:
        rng = np.random.default_rng(seed)
        self.k, self.d, self.n = 3, 4, int(rng.integers(1, 6))
        self.X = rng.normal(size=(self.n, self.d)) * (rng.random((self.n, self.d)) < 0.7)
        self.U, self.T = rng.normal(size=(self.d, 3)), rng.normal(size=(3, 3))
        self.P = 2.0 * rng.normal(size=(self.d, 9)) * (rng.random((self.d, 9)) < 0.6)
        self.P[1] = 0  # an attribute without such weights
        self.up = np.array([-1 if t == 0 else int(rng.integers(t)) if tree else t - 1 for t in range(self.n)])
        used = [np.flatnonzero(row) for row in self.P]
        begin = np.concatenate([[0], np.cumsum([len(u) for u in used])]).astype(np.int64)
        self.layout = core.ChainLayout(self.d, 3, None, None, EVERY, begin, np.concatenate(used).astype(np.int32))
        self.w = np.concatenate([self.U.ravel(), self.T.ravel(), self.P[self.P != 0]])
        self.data = data_of([self.X], [self.up.astype(np.int32)] if tree else None)
        forbidden = np.zeros(9, dtype=np.uint8)
        if forbid:
            forbidden[1] = 1
        self.model = core.ChainModel(self.d, 3)
        self.model.forbid(forbidden, None, None)
        self.model.load(self.layout, self.w)
        self.labellings = np.array(list(itertools.product(range(3), repeat=self.n)), dtype=np.int32)
        self.scores = np.array([self.score(y, forbidden) for y in self.labellings])
        self.log_z = np.logaddexp.reduce(self.scores)
        self.p = np.exp(self.scores - self.log_z)

    def score(self, y, forbidden):
        total = 0.0
        for t in range(self.n):
            total += self.X[t] @ self.U[:, y[t]]
            if self.up[t] >= 0:
                cell = 3 * y[self.up[t]] + y[t]
                total += self.T.ravel()[cell] + self.X[t] @ self.P[:, cell] - (np.inf if forbidden[cell] else 0.0)
        return total


def data_of(matrices, parents=None):
    stacked = np.vstack(matrices)
    n, d = stacked.shape
    start = np.concatenate([[0], np.cumsum([len(m) for m in matrices])]).astype(np.int64)
    columns = np.tile(np.arange(d, dtype=np.int32), n)
    parent = None if parents is None else np.concatenate(parents).astype(np.int32)
    return core.ChainData(start, np.arange(n + 1) * d, columns, np.ascontiguousarray(stacked.ravel()), parent, d)


@pytest.mark.mission("S1", "S2", "S4")
@both
@pytest.mark.parametrize("forbid", [False, True], ids=["free", "constrained"])
def test_inference_with_observed_pairs_equals_brute_force(tree, forbid):
    for seed in range(100):
        case = Observed(seed, tree, forbid)
        marginals, log_z = case.model.marginals(case.data)
        expected = np.zeros((case.n, 3))
        for y, p in zip(case.labellings, case.p):
            expected[np.arange(case.n), y] += p
        np.testing.assert_allclose(log_z[0], case.log_z, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(case.model.log_partition(case.data)[0], case.log_z, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(marginals, expected, atol=1e-12)
        best, value = case.model.decode(case.data)
        np.testing.assert_array_equal(best, case.labellings[np.argmax(case.scores)])
        np.testing.assert_allclose(value[0], case.scores.max(), rtol=1e-12, atol=1e-12)
        allowed = np.isfinite(case.scores)
        first = int(np.flatnonzero(allowed)[-1])
        np.testing.assert_allclose(
            case.model.score(case.data, case.labellings[first])[0], case.scores[first], atol=1e-12
        )
        if not tree:
            labels, values = case.model.top(case.data, 4)[0]
            order = np.argsort(-case.scores[allowed])[:4]
            np.testing.assert_allclose(values, case.scores[allowed][order], atol=1e-12)
            np.testing.assert_array_equal(labels, case.labellings[allowed][order])


@pytest.mark.mission("S3", "S4")
@both
def test_gradient_with_observed_pairs_is_that_of_the_brute_force_loss(tree, rng):
    for seed in range(10):
        case = Observed(seed, tree)
        y = rng.integers(3, size=case.n).astype(np.int32)
        at = int(np.flatnonzero(np.all(case.labellings == y, axis=1))[0])
        blank, one = core.ChainModel(case.d, 3), np.ones(1)
        value, gradient = core.crf_loss(case.data, y, one, case.layout, blank, case.w)
        np.testing.assert_allclose(value, case.log_z - case.scores[at], rtol=1e-10, atol=1e-12)
        for j in range(len(case.w)):
            step = np.zeros_like(case.w)
            step[j] = 1e-5
            up = core.crf_loss(case.data, y, one, case.layout, blank, case.w + step)[0]
            down = core.crf_loss(case.data, y, one, case.layout, blank, case.w - step)[0]
            np.testing.assert_allclose(gradient[j], (up - down) / 2e-5, atol=1e-7)


def switches(rng, sequences, length=8):
    """The label stays where the token is "stay" and changes where it is "swap": only observed pairs show it."""
    X, Y = [], []
    for _ in range(sequences):
        words = ["ab"[int(rng.integers(2))], *rng.choice(["stay", "swap"], size=length - 1)]
        labels = [words[0].upper()]
        for word in words[1:]:
            labels.append(labels[-1] if word == "stay" else "B" if labels[-1] == "A" else "A")
        X.append([[word] for word in words])
        Y.append(labels)
    return X, Y


LEARNERS = [
    lambda **k: hg.ChainCRF(1e-3, **k),
    lambda **k: hg.ChainCRF(1e-3, all_pairs=True, **k),
    lambda **k: hg.ChainCRF(1e-3, solver="sgd", tol=0.05, **k),
    lambda **k: hg.StructuredSVM(1e-3, **k),
    lambda **k: hg.StructuredPerceptron(1000, average=False, **k),
]
NAMES = ["crf", "crf-all", "sgd", "svm", "perceptron"]


@pytest.mark.mission("S1", "S3")
@pytest.mark.parametrize("make", LEARNERS, ids=NAMES)
def test_learners_use_observed_pairs(make, rng, tmp_path):
    X, y = switches(rng, 60)
    test_X, test_y = switches(rng, 40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the perceptron's and SVM's tolerance is not the point
        plain = make().fit(X, y)
        model = make(pair_features="observed").fit(X, y)
        chosen = make(pair_features=lambda name: name in ("stay", "swap")).fit(X, y)
    assert plain.pair_coef_ is None
    assert plain.score(test_X, test_y) < 0.8
    if isinstance(model, hg.StructuredPerceptron):
        # Observed pairs separate the sequences: the last weights make no mistake on them (Novikoff), once training ends.
        assert model.mistakes_[-1] == chosen.mistakes_[-1] == 0
        assert (model.score(X, y), chosen.score(X, y)) == (1.0, 1.0)
    else:
        assert (model.score(test_X, test_y), chosen.score(test_X, test_y)) == (1.0, 1.0)
    rows = dict(zip(chosen.attributes_, np.abs(chosen.pair_coef_.toarray()).sum(axis=1)))
    assert rows["a"] == rows["b"] == 0.0
    assert rows["stay"] > 0
    hg.save(model, tmp_path / "model.hinge")
    assert hg.load(tmp_path / "model.hinge").predict(test_X) == model.predict(test_X)


@pytest.mark.mission("S3")
def test_svm_with_observed_pairs_has_a_true_gap(rng):
    """The certificate's objective is the brute-force one, and its bound holds against a tighter fit."""
    X = [rng.normal(size=(int(rng.integers(1, 5)), 3)) for _ in range(8)]
    y = [rng.integers(3, size=len(x)) for x in X]
    y[0][0], y[1][0], y[2][0] = 0, 1, 2
    tight = hg.StructuredSVM(0.1, pair_features="observed", tol=1e-6, max_iter=20_000).fit(X, y)
    loose = hg.StructuredSVM(0.1, pair_features="observed", tol=0.1).fit(X, y)
    for model in (tight, loose):
        P, U, T = model.pair_coef_.toarray(), model.coef_.toarray(), model.transitions_
        losses = []
        for x, labels in zip(X, y):

            def value(other, x=x, U=U, T=T, P=P):
                cells = [(t, 3 * other[t - 1] + other[t]) for t in range(1, len(x))]
                return sum(x[t] @ U[:, other[t]] for t in range(len(x))) + sum(
                    T.ravel()[c] + x[t] @ P[:, c] for t, c in cells
                )

            every = itertools.product(range(3), repeat=len(x))
            losses.append(max(np.sum(np.array(o) != labels) + value(o) for o in every) - value(labels))
        objective = np.mean(losses) + 0.05 * ((U**2).sum() + (T**2).sum() + (P**2).sum())
        np.testing.assert_allclose(model.certificate_.primal, objective, rtol=1e-10)
    assert tight.certificate_.converged
    assert loose.certificate_.dual <= tight.certificate_.primal + 1e-12


@pytest.mark.mission("S3")
@both
def test_sgd_follows_its_definition(tree, rng):
    """Batches of everything: w ← (1 − ηα) w − η ∇L(w), then the mean of the steps from the second on."""
    X = [rng.normal(size=(int(rng.integers(2, 6)), 3)) for _ in range(8)]
    y = [rng.integers(3, size=len(x)) for x in X]
    y[0][:2], y[1][0] = [0, 1], 2
    weights = rng.random(8) + 0.5
    parents = [np.array([-1, *(int(rng.integers(t)) for t in range(1, len(x)))]) for x in X] if tree else None
    make, keywords = (hg.TreeCRF, {"parents": parents}) if tree else (hg.ChainCRF, {})
    every = (np.arange(4) * 9).astype(np.int64), np.tile(EVERY, 3)
    layout = core.ChainLayout(3, 3, None, None, EVERY, *every)
    data, codes, c = data_of(X, parents), np.concatenate(y).astype(np.int32), weights / weights.sum()
    alpha, eta0, w, path = 0.3, 0.5, np.zeros(45), []
    for t in range(1, 5):
        eta = eta0 / (1 + eta0 * alpha * t)
        gradient = core.crf_loss(data, codes, c, layout, core.ChainModel(3, 3), w)[1]
        w = (1 - eta * alpha) * w - eta * gradient
        path.append(w)
    for average, expected in ((False, path[-1]), (True, np.mean(path[1:], axis=0))):
        model = make(
            alpha, all_pairs=True, pair_features="observed", solver="sgd", eta0=eta0, batch_size=8, average=average,
            max_iter=4, tol=0.0,
        )  # fmt: skip
        with pytest.warns(ConvergenceWarning):
            model.fit(X, y, weights, **keywords)
        found = [model.coef_.toarray().ravel(), model.transitions_.ravel(), model.pair_coef_.toarray().ravel()]
        np.testing.assert_allclose(np.concatenate(found), expected, atol=1e-10)


@pytest.mark.mission("S3")
def test_sgd_reaches_the_optimum_of_lbfgs(rng):
    X = [rng.normal(size=(int(rng.integers(2, 6)), 5)) for _ in range(60)]
    y = [(x[:, 0] > 0).astype(int) + (x[:, 1] > 0.5) for x in X]
    best = hg.ChainCRF(0.02, tol=1e-8).fit(X, y)
    found = hg.ChainCRF(0.02, solver="sgd", tol=1e-3, batch_size=4).fit(X, y)
    assert found.certificate_.converged
    assert found.certificate_.gap <= 1e-3 * found.certificate_.primal
    assert best.certificate_.primal - 1e-9 <= found.certificate_.primal <= best.certificate_.primal * (1 + 1e-3)
    again = hg.ChainCRF(0.02, solver="sgd", tol=1e-3, batch_size=4).fit(X, y)
    np.testing.assert_array_equal(again.coef_.toarray(), found.coef_.toarray())
    with pytest.raises(ValueError, match="l1_ratio"):
        hg.ChainCRF(solver="sgd", l1_ratio=0.5).fit(X, y)


NOISY = [
    lambda **k: hg.ChainCRF(1e-6, max_iter=300, **k),
    lambda **k: hg.ChainCRF(1e-6, solver="sgd", max_iter=300, **k),
    lambda **k: hg.StructuredSVM(1e-5, max_iter=300, tol=1e-6, **k),
    lambda **k: hg.StructuredPerceptron(300, **k),
]


@pytest.mark.mission("S3")
@pytest.mark.parametrize("make", NOISY, ids=["crf", "sgd", "svm", "perceptron"])
def test_early_stopping_keeps_the_best_weights(make, rng):
    """Labels with noise: training stops long before the end, at the best model for the sequences held out."""
    X = [rng.normal(size=(6, 30)) for _ in range(60)]
    y = [((x[:, 0] + rng.normal(size=6)) > 0).astype(int) for x in X]
    model = make(early_stopping=True, validation_fraction=0.25, n_iter_no_change=4, random_state=3).fit(X, y)
    scores = model.validation_scores_
    assert len(scores) == model.n_iter_ < 300
    assert np.argmax(scores) == len(scores) - 5  # four looks without a better one
    held = np.random.default_rng(3).permutation(60)[:15]
    reached = model.score([X[i] for i in held], [y[i] for i in held])
    np.testing.assert_allclose(reached, scores.max(), atol=1e-12)
    with pytest.raises(ValueError, match="validation_fraction"):
        make(early_stopping=True, validation_fraction=1.5).fit(X, y)
