"""Calibration: isotonic regression, Platt, temperature, reliability measured and repaired."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
from sklearn.frozen import FrozenEstimator
from sklearn.utils.estimator_checks import check_estimator

import hinge as hg

# ----------------------------------------------------------------------------------------------- isotonic regression


@pytest.mark.mission("L7")
@pytest.mark.parametrize("increasing", [True, False])
def test_pooling_gives_the_optimum_of_the_quadratic_program(increasing, rng):
    """The optimality conditions of min Σw(y − f)² under monotone f, and the min–max formula by brute force."""
    y, w = rng.normal(size=40) + np.linspace(0, 2, 40), rng.uniform(0.2, 3.0, 40)
    f = hg.isotonic_regression(y, sample_weight=w, increasing=increasing)
    sign = 1 if increasing else -1
    assert np.all(sign * np.diff(f) >= 0)
    slack = sign * np.cumsum(w * (y - f))  # multipliers of the constraints f_i ≤ f_{i+1}
    assert slack.min() > -1e-10
    assert abs(slack[-1]) < 1e-10
    np.testing.assert_allclose(slack[:-1] * np.diff(f), 0.0, atol=1e-9)
    means = [
        [np.average(sign * y[a : b + 1], weights=w[a : b + 1]) if b >= a else np.nan for b in range(40)]
        for a in range(40)
    ]
    brute = [sign * max(min(means[a][b] for b in range(i, 40)) for a in range(i + 1)) for i in range(40)]
    np.testing.assert_allclose(f, brute, atol=1e-10)


@pytest.mark.mission("L7")
def test_isotonic_regression_agrees_with_scikit_learn_and_weights_repeat(rng):
    from sklearn.isotonic import IsotonicRegression

    x = np.round(rng.uniform(0, 5, 200), 1)  # with ties
    y = np.log1p(x) + 0.4 * rng.normal(size=200)
    weight = rng.integers(0, 4, 200)
    new = np.linspace(-1, 6, 50)
    for options in ({}, {"out_of_bounds": "clip"}, {"increasing": "auto", "y_min": 0.3, "y_max": 1.2}):
        ours = hg.IsotonicRegression(**options).fit(x, y, sample_weight=weight)
        theirs = IsotonicRegression(**options).fit(x, y, sample_weight=weight)
        np.testing.assert_allclose(ours.predict(new), theirs.predict(new), atol=1e-12)
        repeated = hg.IsotonicRegression(**options).fit(np.repeat(x, weight), np.repeat(y, weight))
        np.testing.assert_allclose(ours.predict(new), repeated.predict(new), atol=1e-12)
    with pytest.raises(ValueError, match="outside"):
        hg.IsotonicRegression(out_of_bounds="raise").fit(x, y).predict([9.0])


@pytest.mark.filterwarnings("ignore")  # the checks warn about what they skip
def test_isotonic_regression_passes_scikit_learns_checks():
    failed = [r for r in check_estimator(hg.IsotonicRegression(), on_skip=None) if r["status"] == "failed"]
    assert not failed


# -------------------------------------------------------------------------------------------------------- calibration


def overconfident(rng, n=3000, sharpness=3.0):
    """Scores that are the true log-odds times a factor."""
    odds = rng.normal(size=n) * 1.5
    y = (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int)
    return (sharpness * odds)[:, None], y


class Given:
    """A fitted classifier that returns its input as score."""

    def __init__(self, classes=(0, 1), proba=False):
        self.classes_ = np.array(classes)
        if proba:
            self.predict_proba = lambda X: np.asarray(X)
        else:
            self.decision_function = lambda X: np.asarray(X)[:, 0] if len(classes) == 2 else np.asarray(X)

    def fit(self, X, y):
        raise AssertionError("a prefit classifier must not be fitted")

    def __sklearn_is_fitted__(self):
        return True

    def __sklearn_tags__(self):
        return hg.LogisticRegression().__sklearn_tags__()


@pytest.mark.mission("L7")
@pytest.mark.parametrize("method", ["sigmoid", "temperature", "isotonic"])
def test_overconfident_scores_are_repaired(method, rng):
    S, y = overconfident(rng)
    S_new, y_new = overconfident(rng)
    raw = 1 / (1 + np.exp(-S_new[:, 0]))
    model = hg.CalibratedClassifierCV(Given(), method=method, cv="prefit").fit(S, y)
    predicted = model.predict_proba(S_new)[:, 1]
    before = hg.metrics.calibration_report(y_new, raw, n_bootstrap=50)
    after = hg.metrics.calibration_report(y_new, predicted, n_bootstrap=50)
    assert before.ece > 0.08
    assert after.ece < 0.04
    assert after.brier < before.brier
    if method == "temperature":
        assert model.calibrated_classifiers_[0].calibrators[0].beta_ == pytest.approx(1 / 3, rel=0.15)
        np.testing.assert_array_equal(model.predict(S_new), (S_new[:, 0] > 0).astype(int))


@pytest.mark.mission("L7")
def test_the_maps_have_their_stated_likelihood(rng):
    """The gradients of the log-likelihood vanish: Platt's in slope and offset, the temperature's in 1/T."""
    S, y = overconfident(rng, 400)
    (platt,) = hg.CalibratedClassifierCV(Given(), cv="prefit").fit(S, y).calibrated_classifiers_
    plus, minus = y.sum(), (1 - y).sum()
    soft = np.where(y == 1, (plus + 1) / (plus + 2), 1 / (minus + 2))
    error = soft - platt.calibrators[0].predict(S[:, 0])
    assert abs(error.sum()) < 1e-5 * np.abs(error).sum()
    assert abs(error @ S[:, 0]) < 1e-5 * np.abs(error) @ np.abs(S[:, 0])
    logits = rng.normal(size=(300, 3)) * 4
    p = np.exp(logits / 4)
    labels = np.array([rng.choice(3, p=q / q.sum()) for q in p])
    fitted = hg.CalibratedClassifierCV(Given((0, 1, 2)), method="temperature", cv="prefit").fit(logits, labels)
    beta = fitted.calibrated_classifiers_[0].calibrators[0].beta_

    def likelihood(b):
        z = b * logits
        return np.sum(z[np.arange(300), labels] - np.log(np.exp(z).sum(axis=1)))

    best = scipy.optimize.minimize_scalar(lambda b: -likelihood(b), bounds=(1e-3, 3), method="bounded")
    assert likelihood(beta) >= -best.fun - 1e-9
    assert beta == pytest.approx(0.25, rel=0.4)


@pytest.mark.mission("L7")
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("ensemble", [True, False])
def test_cross_validated_calibration_agrees_with_scikit_learn(method, ensemble, rng):
    from sklearn.calibration import CalibratedClassifierCV

    X = rng.normal(size=(240, 3))
    y = np.digitize(X[:, 0] + 0.8 * rng.normal(size=240), [-0.6, 0.6])
    for target in (y, (y > 1).astype(int)):
        base = hg.LogisticRegression(C=10.0, tol=1e-10)
        ours = hg.CalibratedClassifierCV(base, method=method, ensemble=ensemble, cv=3).fit(X, target)
        theirs = CalibratedClassifierCV(base, method=method, ensemble=ensemble, cv=3).fit(X, target)
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=2e-3)


@pytest.mark.mission("L7")
def test_frozen_models_pipelines_and_missing_classes(rng):
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.pipeline import make_pipeline

    X, y = rng.normal(size=(90, 2)), np.repeat(["a", "b", "c"], 30)
    X[:, 0] += 2.0 * (y == "b")
    base = hg.LogisticRegression().fit(X, y)
    frozen = hg.CalibratedClassifierCV(FrozenEstimator(base), method="temperature").fit(X, y)
    np.testing.assert_array_equal(frozen.predict(X), base.predict(X))
    partly = hg.CalibratedClassifierCV(FrozenEstimator(hg.LogisticRegression().fit(X[:60], y[:60]))).fit(X, y)
    assert np.all(partly.predict_proba(X)[:, 2] == 0)
    words = ["good film", "bad film", "good plot", "bad plot"] * 5
    text = hg.CalibratedClassifierCV(make_pipeline(CountVectorizer(), hg.LogisticRegression()), cv=2)
    assert text.fit(words, [1, 0, 1, 0] * 5).predict(["good good"]) == [1]
    with pytest.raises(ValueError, match="fewer folds"):
        hg.CalibratedClassifierCV(cv=4).fit(X[:33], y[:33])
    with pytest.raises(ValueError, match="method"):
        hg.CalibratedClassifierCV(method="beta").fit(X, y)


@pytest.mark.mission("L7")
def test_measures_equal_their_definitions(rng):
    from sklearn.calibration import calibration_curve
    from sklearn.metrics import brier_score_loss

    p, y = rng.random(500), rng.integers(0, 2, 500)
    for strategy in ("uniform", "quantile"):
        ours = hg.metrics.calibration_curve(y, p, n_bins=7, strategy=strategy)
        for predicted, other in zip(ours, calibration_curve(y, p, n_bins=7, strategy=strategy)):
            np.testing.assert_allclose(predicted, other)
    assert hg.metrics.brier_score(y, p) == pytest.approx(brier_score_loss(y, p))
    by_hand = sum(
        abs(y[b].mean() - p[b].mean()) * b.mean() for b in ((p > lo) & (p <= lo + 0.1) for lo in np.arange(10) / 10)
    )
    assert hg.metrics.expected_calibration_error(y, p) == pytest.approx(by_hand)
    weight = rng.integers(0, 4, 500)
    weighted = hg.metrics.expected_calibration_error(y, p, sample_weight=weight)
    assert weighted == pytest.approx(hg.metrics.expected_calibration_error(np.repeat(y, weight), np.repeat(p, weight)))
    P = rng.dirichlet([1, 1, 1], 500)
    labels = rng.integers(0, 3, 500)
    assert hg.metrics.brier_score(labels, P) == pytest.approx(np.mean(np.sum((P - np.eye(3)[labels]) ** 2, axis=1)))
    top = hg.metrics.expected_calibration_error(labels, P)
    assert top == pytest.approx(
        hg.metrics.expected_calibration_error((P.argmax(axis=1) == labels).astype(int), P.max(axis=1))
    )
    with pytest.raises(ValueError, match="y_prob"):
        hg.metrics.brier_score(y, p + 1)


@pytest.mark.mission("L7")
def test_bootstrap_bands_cover_the_truth(rng):
    """The Brier score of calibrated probabilities p ~ U(0, 1) is E p(1 − p) = 1/6."""
    inside = 0
    for i in range(40):
        p = rng.random(400)
        y = (rng.random(400) < p).astype(int)
        low, high = hg.metrics.calibration_report(y, p, n_bootstrap=100, level=0.9, random_state=i).brier_band
        inside += low < 1 / 6 < high
    assert inside >= 30


@pytest.mark.mission("L7")
def test_the_reliability_diagram_shows_the_curve(rng):
    pytest.importorskip("matplotlib").use("agg")
    X = rng.normal(size=(300, 2))
    y = np.where(X[:, 0] + rng.normal(size=300) > 0, "yes", "no")
    model = hg.LogisticRegression().fit(X, y)
    display = hg.plots.CalibrationDisplay.from_estimator(model, X, y, n_bins=6, n_bootstrap=20)
    true, predicted = hg.metrics.calibration_curve(y, model.predict_proba(X)[:, 1], pos_label="yes", n_bins=6)
    np.testing.assert_allclose(display.line_.get_xdata(), predicted)
    np.testing.assert_allclose(display.line_.get_ydata(), true)
    assert np.all(display.band[0] <= display.band[1])
    assert "yes" in display.ax_.get_xlabel()


@pytest.mark.mission("L7")
def test_a_margin_machine_on_adult_is_measured_and_repaired(real_data):
    """Naive probabilities from a margin machine, out by more than a tenth; calibrated, within two hundredths."""
    import pandas

    names = ["train", "test"]
    parts = [pandas.read_csv(real_data(f"adult_{name}.csv.gz"), nrows=6000) for name in names]
    target = parts[0].columns[-1]
    numbers = [part.select_dtypes("number") for part in parts]
    mean, std = numbers[0].mean(), numbers[0].std()
    X, X_test = (((n - mean) / std).to_numpy() for n in numbers)
    y, y_test = (part[target].astype(str).str.contains(">50K").to_numpy().astype(int) for part in parts)
    machine = hg.LinearSVC().fit(X, y)
    squashed = 1 / (1 + np.exp(-machine.decision_function(X_test)))
    before = hg.metrics.calibration_report(y_test, squashed, n_bootstrap=50)
    model = hg.CalibratedClassifierCV(hg.LinearSVC(), method="isotonic").fit(X, y)
    after = hg.metrics.calibration_report(y_test, model.predict_proba(X_test)[:, 1], n_bootstrap=50)
    assert before.ece > 0.08
    assert after.ece < 0.03
    assert after.brier < before.brier


@pytest.mark.mission("L7")
@pytest.mark.parametrize("method", ["sigmoid", "temperature", "isotonic"])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_weight_of_two_is_the_example_twice(method, classes, rng):
    """Weights in a map: rows of which the scores are right count up to three times, which changes every map."""
    n = 120
    S = rng.normal(size=(n, 1 if classes == 2 else classes)) * 2
    logits = np.column_stack([np.zeros(n), S]) if classes == 2 else S
    y = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)
    y[:classes] = np.arange(classes)
    times = np.where(y == logits.argmax(axis=1), rng.integers(2, 4, size=n), 1)
    times[-5:] = 0

    def fit(rows, weight=None):
        model = hg.CalibratedClassifierCV(Given(tuple(range(classes))), method=method, cv="prefit")
        return model.fit(S[rows], y[rows], sample_weight=weight).predict_proba(S)

    weighted, repeated = fit(np.arange(n), times.astype(float)), fit(np.repeat(np.arange(n), times))
    np.testing.assert_allclose(weighted, repeated, atol=1e-6)
    assert np.max(np.abs(weighted - fit(np.arange(n)))) > 1e-3


@pytest.mark.mission("L7")
@pytest.mark.parametrize(("label", "outcome"), [(0, 0.0), (-1, 0.0), (1, 1.0), (2, 1.0)])
def test_one_class_alone_is_the_negative_one_if_it_is_called_so(label, outcome, rng):
    """Brier score Σ (p − o)²/n with o = 0 for labels 0 and −1, and 1 for any other label."""
    p = rng.random(40)
    report = hg.metrics.calibration_report(np.full(40, label), p, n_bootstrap=5)
    assert report.brier == pytest.approx(np.mean((p - outcome) ** 2))
