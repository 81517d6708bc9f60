"""Stochastic learners on data that do not fit into the caches, where rows are copied ahead of their visits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

import hinge as hg

N, D = 30_000, 500  # about 17 MB as sparse rows of 48 numbers, beyond what is taken to be at hand


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(N, D, density=0.096, format="csr", random_state=rng)
    score = X @ rng.normal(size=D) + rng.normal(size=N)
    return X, np.digitize(score, np.quantile(score, [1 / 3, 2 / 3]))


def on_threads(threads, model, X, y):
    hg.set_num_threads(threads)
    try:
        return model.fit(X, y)
    finally:
        hg.set_num_threads(None)


@pytest.mark.parametrize("storage", ["csr", "float32", "dense"])
@pytest.mark.parametrize(
    "model",
    [
        hg.SGDClassifier(max_iter=2, tol=None, random_state=1),
        hg.SGDClassifier("log_loss", penalty="elasticnet", average=True, max_iter=2, tol=None, random_state=1),
        hg.Perceptron(max_iter=2, tol=None, average=True),
        hg.MulticlassPerceptron(max_iter=2),
    ],
    ids=["sgd", "sgd-averaged", "perceptron", "multiclass-perceptron"],
)
def test_rows_copied_ahead_change_no_bit(table, model, storage):
    X, y = table
    if storage == "float32":
        X = X.astype(np.float32)
    if storage == "dense":
        X, y = X[:6000].toarray(), y[:6000]
    alone, together = (on_threads(k, model, X, y).coef_.copy() for k in (1, 2))
    np.testing.assert_array_equal(alone, together)
    assert np.any(alone)


@pytest.mark.mission("W9")
def test_an_epoch_is_the_textbook_recursion(table):
    """w ← (1 − ηα)w − η u x, b ← b − ρ η u with η = 1/(α(t₀ + t)) and the share ρ of nonzeros, in a few lines."""
    X, y = table
    X, s = X[:500], np.where(y[:500] > 0, 1.0, -1.0)
    alpha = 1e-3
    model = hg.SGDClassifier("log_loss", alpha=alpha, max_iter=1, tol=None, shuffle=False).fit(X, s)
    rows, w, b = X.toarray(), np.zeros(D), 0.0
    typical = np.sqrt(1.0 / np.sqrt(alpha))
    first = typical / max(1.0, 1.0 / (1.0 + np.exp(-typical)))
    for t, (x, target) in enumerate(zip(rows, s)):
        eta = first / (1.0 + first * alpha * t)
        u = -target / (1.0 + np.exp(target * (x @ w + b)))
        w, b = (1.0 - eta * alpha) * w - eta * u * x, b - eta * u * np.mean(rows != 0)
    np.testing.assert_allclose(model.coef_[0], w, rtol=1e-10, atol=1e-12)
    assert model.intercept_[0] == pytest.approx(b, rel=1e-10)
    dense = hg.SGDClassifier("log_loss", alpha=alpha, max_iter=1, tol=None, shuffle=False).fit(rows, s)
    assert dense.intercept_[0] == pytest.approx(b, rel=1e-10)


def test_labels_as_floats_are_the_classes_of_the_integers(table):
    X, y = table
    whole = hg.Perceptron(max_iter=1, tol=None).fit(X[:300], y[:300])
    floats = hg.Perceptron(max_iter=1, tol=None).fit(X[:300], y[:300].astype(np.float32))
    assert floats.classes_.dtype == np.float32
    np.testing.assert_array_equal(floats.classes_, [0, 1, 2])
    np.testing.assert_array_equal(whole.coef_, floats.coef_)
    with pytest.raises(ValueError, match="Unknown label type"):
        hg.Perceptron().fit(X[:300], np.linspace(0, 1, 300))


@pytest.mark.parametrize("cls", [hg.SGDClassifier, hg.Perceptron])
def test_a_generator_is_a_seed_too(cls, rng):
    X = rng.normal(size=(300, 5))
    y = np.sign(X @ np.ones(5) + rng.normal(size=300))

    def weights(random_state):
        return cls(max_iter=2, tol=None, random_state=random_state).fit(X, y).coef_

    np.testing.assert_array_equal(weights(np.random.RandomState(1)), weights(np.random.RandomState(1)))
    np.testing.assert_array_equal(weights(np.int64(3)), weights(3))
    assert not np.array_equal(weights(np.random.RandomState(1)), weights(np.random.RandomState(2)))


@pytest.mark.mission("W9")
@pytest.mark.parametrize("cls", [hg.SGDRegressor, hg.SGDClassifier])
@pytest.mark.parametrize("over", ["arrays", "blocks"])
def test_steps_that_diverge_are_reported(cls, over, rng):
    """Columns far from zero make steps of the default length diverge; standardised ones do not."""
    X = rng.normal(size=(400, 5))
    score = X @ np.array([1.0, -1.0, 2.0, 0.5, 1.0])
    y = score if cls is hg.SGDRegressor else (score > 0).astype(int)

    def fit(A):
        data = (A, y) if over == "arrays" else (hg.scan(A, target=y, block_rows=100),)
        return cls(random_state=0).fit(*data)

    assert fit(X).certificate_.primal < 1.0
    with pytest.warns(ConvergenceWarning, match=r"The steps diverged: the objective is .* with zero weights"):
        model = fit(X + 200.0)
    assert model.certificate_.primal > 100.0


def test_a_constant_target_does_not_count_as_divergence(rng):
    model = hg.SGDRegressor(random_state=0).fit(rng.normal(size=(100, 3)), np.full(100, 3.0))
    assert model.certificate_.primal < 1e-2
