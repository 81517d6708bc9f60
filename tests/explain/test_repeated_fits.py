"""Curves, bias and variance, and the reach of predictions against their definitions, number by number."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

import hinge as hg
from hinge.explain.bias_variance import bias_variance, bootstrap_parts
from hinge.explain.curves import Steps, _sizes
from hinge.explain.diagnosis.prediction_bands import measure_reach
from hinge.select.measure import make_measure
from hinge.select.resample import Resampler

# --- Curves ---------------------------------------------------------------------------------------------------------


class Counter(ClassifierMixin, BaseEstimator):
    """Counts the fits that started from another one."""

    def __init__(self, warm_start=False, size=1):
        self.warm_start = warm_start
        self.size = size

    def fit(self, X, y):
        self.started_ = getattr(self, "started_", 0) + 1 if self.warm_start else 1
        self.certificate_ = "optimal"
        return self


def starts(estimator, warm_start, change=None, rounds=False):
    steps = Steps(estimator, warm_start, rounds=rounds)
    found = []
    for size in (1, 2, 3):
        model = steps.fit({"size": size}, None, None)
        if change:
            setattr(model, *change)
        assert model.size == size
        found.append(model.started_)
    return found


def test_which_fits_start_at_the_one_before():
    """Certified optima, on request or where allowed; stochastic solvers and early stopping only on request; boosting in rising order."""
    assert starts(Counter(), "auto") == [1, 2, 3]
    assert starts(Counter(), True) == [1, 2, 3]
    assert starts(Counter(), False) == [1, 1, 1]
    assert starts(Counter(), "auto", ("certificate_", None)) == [1, 1, 1]
    assert starts(Counter(), True, ("certificate_", None)) == [1, 2, 3]
    assert starts(Counter(), "auto", ("t_", 7)) == [1, 1, 1]
    assert starts(Counter(), "auto", ("trees_", ())) == [1, 1, 1]
    boosted = Counter()
    for early, rounds, expected in ((False, True, [1, 2, 3]), (True, True, [1, 1, 1]), (False, False, [1, 1, 1])):

        class Boosted(Counter):
            early_stopping = early
            trees_ = ()

        assert starts(Boosted(), "auto", rounds=rounds) == expected
    assert boosted.warm_start is False
    with pytest.raises(ValueError, match="no warm_start"):
        Steps(hg.GaussianNB(), True)
    assert Steps(hg.GaussianNB(), "auto").warm is False
    with pytest.raises(ValueError, match="warm_start must be"):
        Steps(Counter(), "yes")


def test_sizes_of_training_sets():
    assert list(_sizes([0.1, 0.5, 1.0], 25)) == [2, 12, 25]
    assert list(_sizes([0.01, 0.02, 1.0], 25)) == [1, 25]
    assert list(_sizes([25, 1, 3, 3], 25)) == [1, 3, 25]
    for wrong in ([0.0, 0.5], [0.5, 1.1], [0, 5], [5, 26]):
        with pytest.raises(ValueError, match="train_sizes"):
            _sizes(wrong, 25)


class First(RegressorMixin, BaseEstimator):
    """Predicts level times the mean of the targets it was fitted to."""

    def __init__(self, level=1.0):
        self.level = level

    def fit(self, X, y):
        self.rows_, self.mean_ = np.array(X)[:, 0], np.mean(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.level * self.mean_)


def test_curves_of_a_model_in_closed_form(rng):
    X, y = np.arange(20.0)[:, None], rng.normal(size=20) + 2.0
    folds = [(np.arange(12), np.arange(12, 20)), (np.arange(4, 20), np.arange(4))]
    curve = hg.learning_curve(First(), X, y, cv=folds, train_sizes=[3, 12], scoring="neg_mean_squared_error")
    for k, (learn, test) in enumerate(folds):
        for i, size in enumerate((3, 12)):
            part = learn[:size]
            assert curve.train_scores[i, k] == pytest.approx(-np.var(y[part]))
            assert curve.test_scores[i, k] == pytest.approx(-np.mean((y[test] - y[part].mean()) ** 2))
    assert list(curve.train_sizes) == [3, 12]
    assert curve.scoring == "neg_mean_squared_error"
    assert np.all(curve.fit_times >= 0)
    assert curve.fit_times.shape == (2, 2)
    grid = [0.5, 1.0, 2.0]
    found = hg.validation_curve(
        First(), X, y, param_name="level", param_range=grid, cv=folds, scoring="neg_mean_squared_error"
    )
    for k, (learn, test) in enumerate(folds):
        for i, level in enumerate(grid):
            guess = level * y[learn].mean()
            assert found.train_scores[i, k] == pytest.approx(-np.mean((y[learn] - guess) ** 2))
            assert found.test_scores[i, k] == pytest.approx(-np.mean((y[test] - guess) ** 2))
    assert found.best == grid[int(np.argmax(found.test_scores.sum(axis=1)))]
    train, test = found
    assert train is found.train_scores
    assert test is found.test_scores


# --- Bias and variance ----------------------------------------------------------------------------------------------


def test_parts_of_a_bootstrap_by_hand(rng):
    """Means over the fits that left a row out; rows left out once or never do not count."""
    for classes in (None, 3):
        X = np.arange(9.0)[:, None]
        y = rng.normal(size=9) if classes is None else np.array([0, 1, 2] * 3)
        model = First() if classes is None else hg.GaussianNB(var_smoothing=0.1)
        measure = make_measure(model, y)
        found = bootstrap_parts(Resampler(X, y, measure.code(y), measure, (), 4), model, 6)
        draw = np.random.default_rng([4, 1])
        seen = [[] for _ in range(9)]
        for _ in range(6):
            drawn = draw.integers(0, 9, size=9)
            out = np.setdiff1d(np.arange(9), drawn)
            for i, p in zip(out, measure.output(model.fit(X[drawn], y[drawn]), X[out])):
                seen[i].append(np.atleast_1d(p))
        truth = y[:, None] if classes is None else np.eye(3)[y]
        half = 1.0 if classes is None else 0.5
        rows = [i for i in range(9) if len(seen[i]) >= 2]
        loss = [half * np.mean([np.sum((p - truth[i]) ** 2) for p in seen[i]]) for i in rows]
        variance = [half * np.sum(np.var(seen[i], axis=0, ddof=1)) for i in rows]
        rest = [
            half * np.sum((np.mean(seen[i], axis=0) - truth[i]) ** 2) - v / len(seen[i]) for i, v in zip(rows, variance)
        ]
        for part, expected in ((found.risk, loss), (found.variance, variance), (found.bias2_plus_noise, rest)):
            assert (part.value, part.standard_error) == pytest.approx(
                (np.mean(expected), np.std(expected, ddof=1) / np.sqrt(len(rows)))
            )
        assert (found.bias2, found.noise, found.repeats) == (None, None, 6)


@pytest.mark.parametrize("noise_only", [True, False])
def test_parts_of_a_generator_by_hand(noise_only):
    line = hg.generators.PolynomialCurve([0.5, 1.0], noise=0.3)
    x = np.array([[-0.5], [0.1], [0.8]])
    found = bias_variance(First(), line, n=5, repeats=7, x=x, noise_only=noise_only, random_state=2)
    draw, levels = np.random.default_rng(2), []
    fixed = line.inputs(5, draw) if noise_only else None
    for _ in range(7):
        X = line.inputs(5, draw) if fixed is None else fixed
        levels.append(line.targets(X, draw).mean())
    truth, levels = 0.5 + x[:, 0], np.array(levels)
    variance = np.var(levels, ddof=1)
    bias2 = np.mean((levels.mean() - truth) ** 2) - variance / 7
    distances = np.array([np.mean((a - truth) ** 2) for a in levels])
    assert found.variance.value == pytest.approx(variance)
    assert found.bias2.value == pytest.approx(bias2)
    assert found.noise == pytest.approx(0.09)
    assert found.bias2_plus_noise.value == pytest.approx(bias2 + 0.09)
    assert found.risk.value == pytest.approx(distances.mean() + 0.09)
    assert found.risk.standard_error == pytest.approx(np.std(distances, ddof=1) / np.sqrt(7))
    assert found.risk.value == pytest.approx(found.variance.value + found.bias2_plus_noise.value)
    around = (levels - levels.mean()) ** 2 * 7 / 6
    assert found.variance.standard_error == pytest.approx(np.std(around, ddof=1) / np.sqrt(7))
    slant = 2 * (levels - levels.mean()) * np.mean(levels.mean() - truth)
    assert found.bias2.standard_error == pytest.approx(np.std(slant, ddof=1) / np.sqrt(7))
    assert found.bias2_plus_noise.standard_error == found.bias2.standard_error
    assert found.repeats == 7
    drawn = bias_variance(First(), line, n=5, repeats=2, random_state=2)
    again = bias_variance(First(), line, n=5, repeats=2, x=line.inputs(1000, np.random.default_rng(2)), random_state=2)
    assert drawn.noise == again.noise


# --- Prediction bands -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_the_reach_of_held_out_predictions(coverage, rng):
    """The ⌈(n + 1)·coverage⌉-th smallest score, of numbers and of classes."""
    y, output = rng.normal(size=19), rng.normal(size=19)
    place = int(np.ceil(20 * coverage)) - 1
    order = rng.permutation(19)
    targets = np.empty(19)
    targets[order] = y
    held = SimpleNamespace(rows=order, output=output)
    found = measure_reach(targets, SimpleNamespace(classes=None), held, coverage)
    assert (found.coverage, found.set_size) == (coverage, None)
    assert found.half_width == pytest.approx(np.sort(np.abs(y - output))[place])
    P, codes = rng.dirichlet(np.ones(3), 19), rng.integers(0, 3, 19)
    labels = np.empty(19, dtype=int)
    labels[order] = codes
    classes = SimpleNamespace(classes=np.arange(3), probabilities=True)
    found = measure_reach(labels, classes, SimpleNamespace(rows=order, output=P), coverage)
    threshold = np.sort(1 - P[np.arange(19), codes])[place]
    assert found.set_size == pytest.approx(np.mean(np.sum(threshold >= 1 - P, axis=1)))
    assert (found.coverage, found.half_width) == (coverage, None)
    classes.probabilities = False
    assert measure_reach(labels, classes, SimpleNamespace(rows=order, output=P)) is None
