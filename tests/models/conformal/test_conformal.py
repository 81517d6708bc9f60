"""Conformal prediction: the truth is inside as often as stated, on built and real data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import hinge as hg
from hinge.models.conformal.base import upper_quantile


def wavy(rng, n):
    """Noise whose size depends on x."""
    X = rng.uniform(-1, 1, size=(n, 2))
    return X, np.sin(3 * X[:, 0]) + (0.1 + np.abs(X[:, 1])) * rng.normal(size=n)


def covers(interval, y):
    low, high = interval.T
    return (low <= y) & (y <= high)


def within_binomial_error(inside, calibration, level):
    """Is the share inside what conformal theory predicts: Beta-binomial over the draw of calibration and test rows?

    Given the calibration rows the coverage is Beta(k, m + 1 − k) with k = ⌈level (m + 1)⌉; the share in the test set is
    binomial around it. Four standard deviations are allowed.
    """
    spread = np.sqrt(level * (1 - level) * (1 / len(inside) + 1 / calibration))
    return abs(np.mean(inside) - level) <= 4 * spread + 1 / calibration


def test_quantile_of_scores():
    scores = np.arange(1.0, 10.0)
    assert upper_quantile(scores, 0.1) == 9.0  # ⌈0.9 · 10⌉
    assert upper_quantile(scores, 0.5) == 5.0
    assert upper_quantile(scores, 0.05) == np.inf


def test_split_coverage_is_exact(rng):
    """With m = 19 scores and level 0.9 the probability is 18/20 exactly; over many draws the mean shows it."""
    hits = []
    for seed in range(200):
        X, y = wavy(np.random.default_rng(seed), 57)
        model = hg.ConformalRegressor(hg.Ridge(), coverage=0.9, calibration_size=19 / 37, random_state=seed)
        interval = model.fit(X[:37], y[:37]).predict_interval(X[37:])
        assert len(model.scores_) == 19
        hits.append(np.mean(covers(interval, y[37:])))
    assert np.mean(hits) == pytest.approx(0.9, abs=4 * np.std(hits) / np.sqrt(200))


@pytest.mark.parametrize("method", ["split", "cv+", "jackknife+", "normalized", "quantile"])
def test_regression_coverage(rng, method):
    X, y = wavy(rng, 3000)
    base = hg.KernelRidge(alpha=1.0, kernel="rbf", gamma=2.0) if method == "jackknife+" else None
    base = hg.HistGradientBoostingRegressor(max_iter=30, max_leaf_nodes=8) if method in ("normalized", "cv+") else base
    n = 300 if method == "jackknife+" else 800
    model = hg.ConformalRegressor(base, method=method, coverage=0.9).fit(X[:n], y[:n])
    inside = covers(model.predict_interval(X[800:]), y[800:])
    assert within_binomial_error(inside, 200, 0.9)
    # Given the calibration scores the coverage is Beta distributed about its guarantee, with 200 of them as few.
    guaranteed = model.guaranteed_coverage_
    assert np.mean(inside) >= guaranteed - 4 * np.sqrt(guaranteed * (1 - guaranteed) * (1 / 202 + 1 / len(inside)))
    narrow, wide = (np.diff(model.predict_interval(X[800:], level)).mean() for level in (0.5, 0.9))
    assert narrow < wide
    assert model.guaranteed_coverage_ == pytest.approx(0.8 if method in ("cv+", "jackknife+") else 0.9)


@pytest.mark.parametrize("method", ["normalized", "quantile"])
def test_adaptive_intervals_are_wide_where_the_noise_is(rng, method):
    X, y = wavy(rng, 3000)
    base = hg.HistGradientBoostingRegressor(max_iter=40, max_leaf_nodes=8) if method == "normalized" else None
    model = hg.ConformalRegressor(base, method=method).fit(X[:2000], y[:2000])
    width = np.diff(model.predict_interval(X[2000:])).ravel()
    loud = np.abs(X[2000:, 1])
    assert scipy.stats.spearmanr(width, loud).statistic > 0.7
    # One width everywhere covers too much where it is quiet and too little where it is loud; these do not.
    inside = covers(model.predict_interval(X[2000:]), y[2000:])
    plain = covers(hg.ConformalRegressor(hg.HistGradientBoostingRegressor()).fit(X[:2000], y[:2000])
                   .predict_interval(X[2000:]), y[2000:])  # fmt: skip
    quiet = loud < 0.3
    assert abs(inside[quiet].mean() - inside[~quiet].mean()) < abs(plain[quiet].mean() - plain[~quiet].mean())


def test_jackknife_plus_from_one_fit_is_brute_force(rng):
    X, y = wavy(rng, 40)
    new = rng.uniform(-1, 1, size=(9, 2))
    exact = hg.ConformalRegressor(hg.Ridge(alpha=0.5), method="jackknife+").fit(X, y)
    assert exact.left_out_ is not None
    assert exact.estimators_ == []

    brute = hg.ConformalRegressor(hg.Learner(penalty=hg.L2(0.5 / 39), tol=1e-12), method="jackknife+").fit(X, y)
    assert len(brute.estimators_) == 40
    np.testing.assert_allclose(exact.predict_interval(new), brute.predict_interval(new), atol=1e-5)


@pytest.mark.parametrize("method", ["split", "cv+"])
@pytest.mark.parametrize("conformity", ["aps", "lac"])
def test_classification_coverage(rng, method, conformity):
    X = rng.normal(size=(4000, 3))
    y = np.array(["a", "b", "c"])[np.argmax(X + rng.gumbel(size=X.shape), axis=1)]
    model = hg.ConformalClassifier(method=method, conformity=conformity, coverage=0.9).fit(X[:800], y[:800])
    sets = model.predict_set(X[800:])
    inside = sets[np.arange(3200), np.searchsorted(model.classes_, y[800:])]
    assert within_binomial_error(inside, 200, 0.9)
    assert 1.0 < sets.sum(axis=1).mean() < 3.0
    assert model.predict_set(X[800:], 0.5).sum() < sets.sum()
    sure = model.predict_proba(X[800:]).max(axis=1)
    assert sets[sure > 0.9].sum(axis=1).mean() < sets[sure < 0.5].sum(axis=1).mean()  # unsure: larger sets


def test_empty_sets_can_be_filled(rng):
    X = rng.normal(size=(600, 2))
    y = (X[:, 0] + 0.2 * rng.normal(size=600) > 0).astype(int)
    empty = hg.ConformalClassifier(conformity="lac", coverage=0.8).fit(X[:300], y[:300])
    full = hg.ConformalClassifier(conformity="lac", coverage=0.8, allow_empty=False).fit(X[:300], y[:300])
    assert (~empty.predict_set(X[300:]).any(axis=1)).any()
    assert full.predict_set(X[300:]).any(axis=1).all()


def test_wrong_arguments(rng):
    X, y = wavy(rng, 30)
    with pytest.raises(ValueError, match="'method' parameter"):
        hg.ConformalRegressor(method="bayes").fit(X, y)
    with pytest.raises(ValueError, match="'coverage' parameter"):
        hg.ConformalRegressor(coverage=1.0).fit(X, y)
    with pytest.raises(ValueError, match="'conformity' parameter"):
        hg.ConformalClassifier(conformity="none").fit(X, np.arange(30) % 2)
    assert np.all(np.isinf(hg.ConformalRegressor(coverage=0.99).fit(X, y).predict_interval(X)))


def regression_set(path, target, most=6000):
    table = pd.read_csv(path).dropna().sample(frac=1.0, random_state=0)[:most]
    X = pd.get_dummies(table.drop(columns=[target]), dtype=float).to_numpy(dtype=float)
    return X, table[target].to_numpy(dtype=float)


@pytest.mark.parametrize("method", ["split", "quantile", pytest.param("cv+", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("name", "target"),
    [("california_housing", "median_house_value"), ("abalone", "rings"), ("kin8nm", "y")],
)
def test_real_regression_coverage(real_data, name, target, method):
    X, y = regression_set(real_data(f"{name}.csv.gz"), target, 4000)
    base = hg.HistGradientBoostingRegressor(max_iter=60) if method != "quantile" else None
    model = hg.ConformalRegressor(base, method=method, coverage=0.9).fit(X[:2000], y[:2000])
    inside = covers(model.predict_interval(X[2000:]), y[2000:])
    assert within_binomial_error(inside, len(model.scores_), 0.9)


@pytest.mark.parametrize(
    ("name", "target"), [("pendigits", "class"), ("pima_diabetes", "diabetes"), ("nursery", "class")]
)
def test_real_classification_coverage(real_data, name, target):
    table = pd.read_csv(real_data(f"{name}.csv.gz")).dropna().sample(frac=1.0, random_state=0)[:4000]
    table = table[table.groupby(target)[target].transform("size") >= 50]
    X = pd.get_dummies(table.drop(columns=[target]), dtype=float).to_numpy(dtype=float)
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    y, n = table[target].to_numpy(), len(table) // 2
    model = hg.ConformalClassifier(hg.LogisticRegression(), coverage=0.9).fit(X[:n], y[:n])
    sets = model.predict_set(X[n:])
    inside = sets[np.arange(len(sets)), np.searchsorted(model.classes_, y[n:])]
    assert within_binomial_error(inside, len(model.scores_), 0.9)


class Known(hg.Ridge):
    """A regressor that knows its answer: slope · x₀ + offset."""

    def __init__(self, slope=1.0, offset=0.0):
        self.slope, self.offset = slope, offset

    def fit(self, X, y):
        return self

    def predict(self, X):
        return self.slope * np.asarray(X)[:, 0] + self.offset

    def __sklearn_is_fitted__(self):
        return True


def test_normalized_scores_are_errors_over_their_scale(rng):
    """s = |y − f(x)|/σ(x), σ = exp(model of log |error|) + a thousandth of the median error; half width q σ(x)."""
    X = rng.uniform(0, 2, size=(80, 1))
    y = 3.0 * X[:, 0] + np.exp(X[:, 0]) * rng.normal(size=80)
    model = hg.ConformalRegressor(Known(3.0), method="normalized", scale_estimator=Known(1.0, -0.5), coverage=0.8)
    model.fit(X, y)
    held = np.sort(np.random.RandomState(0).permutation(80)[:20])
    learn = np.setdiff1d(np.arange(80), held)
    error = np.abs(y - 3.0 * X[:, 0])
    scale = np.exp(X[:, 0] - 0.5) + 1e-3 * np.median(error[learn])
    np.testing.assert_allclose(model.scores_, (error / scale)[held])
    q = np.sort((error / scale)[held])[16]  # ⌈0.8 · 21⌉ = 17
    np.testing.assert_allclose(
        model.predict_interval(X), np.column_stack([3.0 * X[:, 0] - q * scale, 3.0 * X[:, 0] + q * scale])
    )


@pytest.mark.parametrize("method", ["cv+", "jackknife+"])
@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
def test_plus_intervals_are_order_statistics_of_shifted_predictions(method, coverage, rng):
    """Barber et al.: from the ⌊α(n + 1)⌋-th smallest f₋ᵢ(x) − Rᵢ to the ⌈(1 − α)(n + 1)⌉-th smallest f₋ᵢ(x) + Rᵢ."""
    n = 37
    X, new = rng.normal(size=(n, 2)), rng.normal(size=(5, 2))
    y = X[:, 0] + rng.normal(size=n)
    folds = [(np.setdiff1d(np.arange(n), part), part) for part in np.array_split(rng.permutation(n), 5)]
    model = hg.ConformalRegressor(hg.Ridge(0.5), method=method, coverage=coverage, cv=folds).fit(X, y)
    if method == "jackknife+":
        folds = [(np.delete(np.arange(n), i), np.array([i])) for i in range(n)]
    low, high = np.empty((n, 5)), np.empty((n, 5))
    for learn, test in folds:
        part = hg.Ridge(0.5).fit(X[learn], y[learn])
        error = np.abs(y[test] - part.predict(X[test]))
        low[test], high[test] = part.predict(new) - error[:, None], part.predict(new) + error[:, None]
    upper = int(np.ceil(round(coverage * (n + 1), 9)))
    lower = int(np.floor(round((1 - coverage) * (n + 1), 9)))
    expected = np.column_stack([np.sort(low, axis=0)[lower - 1], np.sort(high, axis=0)[upper - 1]])
    np.testing.assert_allclose(model.predict_interval(new), expected, rtol=1e-7)
