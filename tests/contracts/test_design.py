"""Products with the data matrix, in every storage, against NumPy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import hinge as hg
from hinge._native import Design
from hinge.models.base import check_fit
from hinge.solvers.closed_form import Centred

STORAGES = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "strided": lambda X: np.column_stack([X, X])[:, : X.shape[1]],
    "float32": lambda X: X.astype(np.float32),
    "csr": scipy.sparse.csr_array,
    "csc": scipy.sparse.csc_array,
}


# Around the edges of the tiles, the panels and the blocks in which outer products are added up.
@pytest.mark.parametrize(
    ("n", "d"),
    [
        (1, 1), (2, 6), (300, 8), (3000, 14), (5, 16), (40, 11), (127, 12), (129, 23), (300, 22), (300, 24), (513, 25),
        (130, 200), (600, 513),
    ],
)  # fmt: skip
@pytest.mark.parametrize("storage", STORAGES)
def test_gram_and_moments(n, d, storage):
    rng = np.random.default_rng(n + d)
    X, y, h = rng.normal(size=(n, d)) * (rng.uniform(size=(n, d)) < 0.7), rng.normal(size=n), rng.uniform(size=n)
    h[::5] = 0.0
    design = Design(STORAGES[storage](X))
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if storage == "float32" else {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(design.gram(h), X.T @ (h[:, None] * X), **tolerance)
    np.testing.assert_allclose(design.gram(), X.T @ X, **tolerance)
    A = np.column_stack([X, np.ones(n), y])
    np.testing.assert_allclose(design.moments(h, y), A.T @ (h[:, None] * A), **tolerance)


@pytest.mark.parametrize("d", [3, 8, 16])
def test_rows_in_any_memory_layout(d):
    """One row for all, rows backwards, rows that overlap: what views of NumPy may be."""
    rng = np.random.default_rng(d)
    X, h = rng.normal(size=(40, d)), rng.uniform(size=40)
    windows = np.lib.stride_tricks.sliding_window_view(rng.normal(size=39 + d), d)
    for view in (np.broadcast_to(X[0], (40, d)), X[::-1], windows):
        np.testing.assert_allclose(Design(view).gram(h), view.T @ (h[:, None] * view), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("storage", STORAGES)
def test_one_pass_gives_risk_scores_slopes_and_gradient(storage):
    rng = np.random.default_rng(0)
    X, offset = rng.normal(size=(700, 13)), rng.normal(size=700)
    y, w, b = np.where(rng.uniform(size=700) < 0.5, -1.0, 1.0), rng.normal(size=13), np.array([0.3])
    tolerance = {"rtol": 1e-5, "atol": 1e-6} if storage == "float32" else {"rtol": 1e-12, "atol": 1e-13}
    for shift in (None, offset):
        o = hg.make_objective(
            STORAGES[storage](X), y, hg.Logistic(), hg.L2(0.1), sample_weight=rng.uniform(size=700), offset=shift
        )
        risk, z, cu, g = o.evaluate(w, b)
        expected = X @ w + 0.3 + (0.0 if shift is None else shift)
        np.testing.assert_allclose(z, expected, **tolerance)
        np.testing.assert_allclose(risk, o.c @ np.logaddexp(0.0, -y * expected), **tolerance)
        np.testing.assert_allclose(cu, -o.c * y / (1.0 + np.exp(y * expected)), **tolerance)
        np.testing.assert_allclose(g, X.T @ cu, **tolerance)
        slopes = rng.normal(size=700)
        z, g = o.scores_and_adjoint(w, b, slopes)
        np.testing.assert_allclose(z, expected, **tolerance)
        np.testing.assert_allclose(g, X.T @ (o.c * slopes), **tolerance)


@pytest.mark.mission("W1")
@pytest.mark.parametrize("far", [0.0, 1e3, 1e6], ids=lambda f: f"mean {f:g}")
def test_normal_equations_know_when_they_must_be_refined(far):
    """Where centring or collinearity cost digits the weights are refined; the errors stay orthogonal to the inputs."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2000, 20))
    X[:, 1] = X[:, 0] + 1e-3 * X[:, 1]
    y = X @ rng.normal(size=20) + rng.normal(size=2000)
    exact = np.linalg.lstsq(X - X.mean(axis=0), y - y.mean(), rcond=None)[0]
    problem = Centred(Design(X + far), y + far, np.full(2000, 1 / 2000), fit_intercept=True)
    assert (problem.lost_digits() > 1e4) == (far >= 1e3)
    W = problem.solve(np.zeros(20))
    np.testing.assert_allclose(W[:, 0], exact, rtol=1e-8 if far < 1e6 else 1e-4)
    error = y + far - (X + far) @ W[:, 0] - problem.bias(W)[0]
    assert np.max(np.abs(X.T @ error)) / 2000 <= 1e-7 * max(1.0, far / 1e3)


@pytest.mark.parametrize("cls", [hg.LogisticRegression, hg.SGDClassifier])
def test_other_sparse_formats_are_checked_once_converted(cls, rng):
    """SciPy copies the columns of a COO matrix as they are: what they point at is seen only afterwards."""
    X = scipy.sparse.coo_array(np.round(rng.normal(size=(40, 5))))
    model = cls().fit(X, np.arange(40) % 2)
    broken = X.copy()
    broken.coords[1][3] = 10_000
    for use in (lambda: cls().fit(broken, np.arange(40) % 2), lambda: model.predict(broken)):
        with pytest.raises(ValueError, match="broken sparse matrix"):
            use()


def test_plain_arrays_are_checked_as_all_others(rng):
    """They go without scikit-learn's checks, which must not show."""
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    named = hg.Lasso(alpha=0.1).fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    with pytest.warns(UserWarning, match="valid feature names"):
        named.predict(X)
    model = named.fit(X, y)
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == 3
    for bad in (np.nan, np.inf):
        wrong = X.copy()
        wrong[7, 1] = bad
        with pytest.raises(ValueError, match="X contains"):
            model.predict(wrong)
        with pytest.raises(ValueError, match="X contains"):
            hg.Lasso().fit(wrong, y)
        with pytest.raises(ValueError, match="Input y contains"):
            hg.Lasso().fit(X, np.where(np.arange(60) == 5, bad, y))
    with pytest.raises(ValueError, match="2 features, but Lasso is expecting 3"):
        model.predict(X[:, :2])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        hg.Lasso().fit(X, y[:-1])
    broken = scipy.sparse.csr_array(X)
    broken.indices[3] = 9
    for options in ({}, {"ensure_all_finite": False}):
        with pytest.raises(ValueError, match="broken sparse matrix"):
            check_fit(model, broken, y, **options)
    np.testing.assert_array_equal(model.predict(X[::2, ::-1]), model.predict(np.ascontiguousarray(X[::2, ::-1])))
