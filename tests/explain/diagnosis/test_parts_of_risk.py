"""The parts of a diagnosis against their formulas: solver states, learning curves, power laws, decompositions."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

import hinge as hg
from hinge.explain.diagnosis import diagnose as diagnosis
from hinge.explain.diagnosis.decompose import LEVELS, decompose_risk, fit_population
from hinge.explain.diagnosis.optimisation import harder, read_optimisation
from hinge.explain.diagnosis.power_law import EXPONENTS, PowerLaw, _fit, fit_power_law
from hinge.select.estimate import Estimate, mean_of
from hinge.select.measure import make_measure

# --- The solver -----------------------------------------------------------------------------------------------------


class Fitted(BaseEstimator):
    """An estimator with a limit of iterations and whatever else is given."""

    def __init__(self, max_iter=7, tol=1e-4):
        self.max_iter = max_iter
        self.tol = tol


def fitted(max_iter=7, **attributes):
    model = Fitted(max_iter)
    for name, value in attributes.items():
        setattr(model, name, value)
    return model


def proof(converged, error, iterations=5):
    return SimpleNamespace(
        converged=converged, error=error, kind="gap", iterations=iterations, explain=lambda: "As far as this."
    )


@pytest.mark.parametrize(
    ("certificate", "reached"),
    [(proof(True, 0.5), True), (proof(False, 1e-3), True), (proof(False, 1.01e-3), False)],
)
def test_a_certificate_decides_whether_the_optimum_was_reached(certificate, reached):
    """It says so, or the error is at most a thousandth."""
    found = read_optimisation(fitted(certificate_=certificate, n_iter_=np.array([3, 7])))
    assert (found.converged, found.proof, found.error) == (reached, "gap", certificate.error)
    assert (found.iterations, found.max_iter, found.gain, found.sentence) == (5, 7, None, "As far as this.")


def test_iterations_are_counted_where_the_certificate_has_none():
    found = read_optimisation(fitted(certificate_=proof(True, 0.0, iterations=0), n_iter_=np.array([3, 6])))
    assert found.iterations == 6


@pytest.mark.parametrize(
    ("done", "most", "reached"),
    [(np.array([3, 7]), 7, False), (np.array([3, 6]), 7, True), (7, 7.0, False), (0, 7, True)],
)
def test_without_a_certificate_the_limit_of_iterations_decides(done, most, reached):
    found = read_optimisation(fitted(most, n_iter_=done))
    assert (found.converged, found.proof, found.iterations, found.max_iter) == (reached, "iterations", np.max(done), 7)
    assert np.isnan(found.error)
    assert ("stopped by itself" in found.sentence) is reached


@pytest.mark.parametrize(
    "model",
    [
        fitted(), fitted(None, n_iter_=3), fitted(-1, n_iter_=3), fitted(0, n_iter_=3), fitted(n_iter_=np.array([])),
        fitted(n_iter_=3, trees_=()), fitted(n_iter_=3, estimators_=()), fitted(n_iter_=3, _predictors=()),
    ],
)  # fmt: skip
def test_models_without_a_solver_that_could_stop_early(model):
    """No limit, no count, or iterations that are terms of the model."""
    found = read_optimisation(model)
    assert (found.converged, found.proof, found.max_iter) == (None, "none", None)
    assert "no solver" in found.sentence
    assert found.iterations == (3 if np.size(getattr(model, "n_iter_", ())) else None)


def test_a_harder_fit_has_a_hundred_times_the_iterations_and_a_small_tolerance():
    def settings(model, *least):
        found = harder(model, *least)
        return None if found is None else (found.max_iter, found.tol)

    assert settings(Fitted(7)) == (1000, 1e-6)
    assert settings(Fitted(50)) == (5000, 1e-6)
    assert settings(Fitted(50), 1e-10) == (5000, 1e-10)
    assert settings(Fitted(50, 1e-6)) == (5000, 1e-6)
    assert settings(Fitted(50, 1e-7)) == (5000, 1e-7)
    assert settings(Fitted(None)) == (None, 1e-6)
    assert settings(Fitted(1, 5)) == (1000, 5)
    assert settings(Fitted(0, None)) is None
    assert harder(hg.GaussianNB()) is None


# --- Power laws -----------------------------------------------------------------------------------------------------


def test_a_power_law_and_its_errors():
    copies = np.array([[0.5, 2.0, 1.0], [0.7, 1.0, 0.5], [0.2, 4.0, 1.25]])
    law = PowerLaw(0.5, 2.0, 1.0, copies, level_error=0.3)
    assert (law(1.0), law(4.0)) == (2.5, 1.0)
    at = [0.5 + 2.0 / 4, 0.7 + 1.0 / 2, 0.2 + 4.0 * 4**-1.25]
    assert law.at(4.0).value == 1.0
    assert law.at(4.0).standard_error == pytest.approx(np.hypot(np.std(at), 0.3))
    assert not law.on_floor
    assert law.asymptote == Estimate(0.5, np.hypot(np.std([0.5, 0.7, 0.2]), 0.3))


@pytest.mark.parametrize(("free", "bracket", "inner"), [
    ([0.1, 0.3], np.inf, np.sqrt((0.4**2 + 0.2**2) / 2)), ([0.1, 0.3], 0.4, 0.4 / np.sqrt(3)), ([], 0.4, 0.1),
    ([0.5, 0.5], 9.0, 0.1),
])  # fmt: skip
def test_a_limit_on_its_floor_is_as_uncertain_as_the_limits_without_one(free, bracket, inner):
    """The root mean square distance to them, at most bracket/√3, at least the spread of the copies (here 0.1)."""
    copies = np.array([[0.5, 1.0, 1.0], [0.7, 1.0, 1.0]])
    law = PowerLaw(0.5, 1.0, 1.0, copies, floor=0.5, free=np.array(free), bracket=bracket, level_error=0.2)
    assert law.on_floor
    assert law.asymptote.value == 0.5
    assert law.asymptote.standard_error == pytest.approx(np.hypot(inner, 0.2))
    above = PowerLaw(0.5, 1.0, 1.0, copies, floor=0.4, free=np.array(free), bracket=bracket, level_error=0.2)
    assert above.asymptote.standard_error == pytest.approx(np.hypot(0.1, 0.2))


@pytest.mark.parametrize("floor", [-np.inf, 0.45, 0.9])
def test_one_curve_is_fitted_by_least_squares_over_limits_and_exponents(floor, rng):
    """No better misfit for any exponent of the grid, any limit between floor and least risk, and its best scale ≥ 0."""
    sizes, mean = np.array([10.0, 20, 40, 80, 160]), 0.5 + 3.0 * np.array([10.0, 20, 40, 80, 160]) ** -0.7
    mean = mean + 0.01 * rng.normal(size=5)
    spread = np.array([0.04, 0.03, 0.02, 0.015, 0.01])
    a, b, c = _fit(sizes, mean, spread, floor)
    top = mean.min()
    assert min(floor, top) - 1e-12 <= a <= top
    assert b >= 0
    misfit = np.sum(((mean - a - b * sizes**-c) / spread) ** 2)
    for e in EXPONENTS:
        u = sizes**-e
        for limit in np.linspace(max(min(floor, top), top - 1.0), top, 201):
            scale = max(np.sum(u * (mean - limit) / spread**2) / np.sum((u / spread) ** 2), 0.0)
            assert misfit <= np.sum(((mean - limit - scale * u) / spread) ** 2) * (1 + 1e-8)


def test_copies_are_fits_to_resampled_repeats(rng):
    sizes = np.array([10.0, 20, 40, 80])
    risks = 0.6 + 2.0 / sizes[:, None] + 0.05 * rng.random((4, 6))
    law = fit_power_law(sizes, risks, floor=0.55, bound=0.4, level_error=0.1, draws=3, random_state=5)
    mean = risks.mean(axis=1)
    spread = (risks.std(axis=1) / np.sqrt(6) + 0.01 * mean.max()) * np.sqrt(80 / sizes)
    rows = np.random.default_rng(5).integers(0, 6, size=(3, 6))
    for r in range(3):
        drawn = risks[:, rows[r]].mean(axis=1)
        assert law.copies[r] == pytest.approx(_fit(sizes, drawn, spread, 0.55))
        assert law.free[r] == pytest.approx(_fit(sizes, drawn, spread, -np.inf)[0])
    assert (law.limit, law.scale, law.exponent) == pytest.approx(_fit(sizes, mean, spread, 0.55))
    assert (law.floor, law.bracket, law.level_error) == (0.55, pytest.approx(mean.min() - 0.4), 0.1)
    assert fit_power_law(sizes, risks, floor=0.55).bracket == pytest.approx(mean.min() - 0.55)
    high = fit_power_law(sizes, risks, floor=9.0, bound=8.0)
    assert (high.floor, high.bracket) == (pytest.approx(mean.min()), 0.0)
    assert len(high.copies) == 200
    with pytest.raises(ValueError, match="at least three sizes, got 2"):
        fit_power_law(sizes[:2], risks[:2])
    fit_power_law(sizes[:3], risks[:3], draws=1)


# --- Learning curves of a diagnosis ---------------------------------------------------------------------------------


def learned(rows, train, test, *, classes=None, fixed_class=False, error=0.01, random_state=3):
    """What a diagnosis makes of a curve with these risks, and the fractions it was measured at."""
    measured = []

    def learning_curve(model, fractions, held):
        measured.append(tuple(fractions))
        return np.array([10.0, 20, 40, 80, 160])[: len(train)], np.array(train), np.array(test)

    data = SimpleNamespace(
        folds=[(np.arange(rows + 5), None), (np.arange(rows), None)], learning_curve=learning_curve,
        measure=SimpleNamespace(classes=None if classes is None else np.arange(classes)), random_state=random_state,
    )  # fmt: skip
    held = SimpleNamespace(risk=Estimate(1.0, error))
    return diagnosis._learning(data, None, held, fixed_class=fixed_class), measured


TRAIN = [[0.2, 0.3], [0.3, 0.35], [0.4, 0.42], [0.42, 0.46]]
TEST = [[2.0, 1.8], [1.3, 1.2], [0.9, 0.8], [0.7, 0.75]]


@pytest.mark.parametrize(
    ("rows", "classes", "expected"),
    [
        (100, None, (0.1, 0.17, 0.3, 0.5, 0.75, 1.0)), (99, None, (0.17, 0.3, 0.5, 0.75, 1.0)), (20, None, (0.5, 0.75, 1.0)),
        (100, 2, (0.1, 0.17, 0.3, 0.5, 0.75, 1.0)), (100, 3, (0.17, 0.3, 0.5, 0.75, 1.0)), (100, 4, (0.3, 0.5, 0.75, 1.0)),
    ],
)  # fmt: skip
def test_parts_of_a_curve_have_ten_rows_and_five_per_class(rows, classes, expected):
    assert learned(rows, TRAIN, TEST, classes=classes)[1] == [expected]


def test_fewer_than_three_parts_are_no_curve():
    assert learned(19, TRAIN, TEST) == (None, [])
    assert learned(40, TRAIN, TEST, classes=6) == (None, [])


@pytest.mark.parametrize("fixed_class", [True, False])
@pytest.mark.parametrize("error", [0.01, np.nan])
def test_the_limit_of_a_learning_curve(fixed_class, error):
    """Above the training risk; for a fixed class above its mean with the held-out risk."""
    found, _ = learned(100, TRAIN, TEST, fixed_class=fixed_class, error=error)
    bound = 0.44
    floor = (0.44 + 0.725) / 2 if fixed_class else bound
    law = fit_power_law(
        np.array([10.0, 20, 40, 80]), np.array(TEST), floor=floor, bound=bound,
        level_error=0.01 if error == 0.01 else 0.0, random_state=3,
    )  # fmt: skip
    assert (found.law.limit, found.law.scale, found.law.exponent) == (law.limit, law.scale, law.exponent)
    assert (found.law.floor, found.law.bracket, found.law.level_error) == pytest.approx(
        (law.floor, law.bracket, law.level_error)
    )
    assert (found.doubled, found.limit) == (law.at(160.0), law.asymptote)
    assert np.array_equal(found.copies if hasattr(found, "copies") else found.law.copies, law.copies)


def test_exact_fits_come_before_the_law(rng):
    """Sizes at which the class fits its rows exactly are left out, if three others remain."""
    for exact, used in ((2, slice(2, None)), (3, slice(None))):
        train = np.array([[0.2, 0.2], [0.3, 0.3], [0.4, 0.4], [0.42, 0.42], [0.43, 0.43]])
        test = np.array([[5.0, 5.1], [9.0, 8.0], [1.3, 1.2], [0.9, 0.8], [0.7, 0.75]])
        train[:exact] = test[:exact] * 1e-10
        found, _ = learned(100, train, test)
        law = fit_power_law(
            np.array([10.0, 20, 40, 80, 160])[used], test[used], floor=0.43, level_error=0.01, random_state=3
        )
        assert (found.law.limit, found.law.scale, found.law.exponent) == (law.limit, law.scale, law.exponent)


def test_the_parts_of_the_held_out_risk():
    def parts(held, best, limit, rivals):
        learning = None if limit is None else SimpleNamespace(limit=Estimate(limit, 0.0))
        risks = [SimpleNamespace(risk=Estimate(v, 0.0)) for v in (held, best)]
        found = diagnosis._terms(*risks, learning, tuple(SimpleNamespace(risk=Estimate(v, 0.0)) for v in rivals))
        return found.optimisation, found.estimation, found.approximation, found.remainder

    assert parts(10.0, 9.0, 6.0, (4.0, 5.0, 20.0)) == (1.0, 3.0, 2.0, 4.0)
    assert parts(10.0, 9.0, 6.0, (7.0,)) == (1.0, 3.0, 0.0, 6.0)
    assert parts(10.0, 9.0, 9.5, (4.0,)) == (1.0, 0.0, 5.0, 4.0)
    assert parts(10.0, 9.0, None, (4.0,)) == (1.0, 0.0, 5.0, 4.0)


def test_at_most_so_many_rows_in_their_order(rng):
    X, y, names = np.arange(20.0).reshape(10, 2), np.arange(10.0), np.arange(10) + 100
    assert diagnosis._at_most(X, y, None, names, 10, 0)[1] is y
    table, targets, groups, kept = diagnosis._at_most(X, y, np.arange(10) % 3, names, 4, 7)
    rows = np.sort(np.random.default_rng(7).permutation(10)[:4])
    assert np.array_equal(targets, rows)
    assert np.array_equal(table, X[rows])
    assert np.array_equal(groups, rows % 3)
    assert np.array_equal(kept, rows + 100)
    assert diagnosis._at_most(X, y, None, names, 4, 7)[2] is None


def test_test_rows_are_judged_by_the_model_and_compared(rng):
    X, T = rng.normal(size=(40, 1)), rng.normal(size=(30, 1))
    y, t = X[:, 0] + 0.1 * rng.normal(size=40), T[:, 0] + 0.3
    model = hg.LinearRegression().fit(X, y)
    measure = make_measure(model, y)
    assert diagnosis._on_test(model, measure, X, y, None, None, False) == (None, None)
    drift, risk = diagnosis._on_test(model, measure, X, y, T, t, False)
    assert drift == hg.measure_drift(X, T, y, t)
    assert risk == mean_of((t - model.predict(T)) ** 2)
    assert diagnosis._on_test(model, measure, X, y, T, t, True) == (None, risk)
    assert diagnosis._on_test(model, measure, X, y, T, None, False)[1] is None


def test_a_fit_that_fell_short_is_compared_with_a_harder_one():
    losses = {7: 5.0, 1000: 3.0}
    data = SimpleNamespace(held_out=lambda model: losses[model.max_iter])
    held = SimpleNamespace(minus=lambda other: Estimate(5.0 - other, 0.1))
    short = fitted(certificate_=proof(False, 0.5))
    found, better, better_held = diagnosis._try_harder(short, data, held)
    assert (found.gain, better.max_iter, better_held) == (Estimate(2.0, 0.1), 1000, 3.0)
    for model in (fitted(certificate_=proof(True, 0.0)), fitted()):
        found, same, same_held = diagnosis._try_harder(model, data, held)
        assert found.gain is None
        assert same is model
        assert same_held is held


def test_wrong_arguments_are_refused():
    X, y = np.zeros((4, 1)), np.arange(4.0)
    for arguments, message in (
        ((hg.Ridge(), X, y, None, None, ["rival"]), "skip holds 'rival'"),
        ((hg.StandardScaler(), X, y, None, None, ()), "classifier or a regressor"),
        ((hg.Ridge(), X, y, None, y, ()), "y_test was given without X_test"),
        ((hg.Ridge(), X, X, None, None, ()), "one target per row"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            diagnosis._check(*arguments)
    diagnosis._check(hg.LogisticRegression(), X, y, X, None, ["drift"])
    diagnosis._check(hg.Ridge(), X, y, X, y, ["rivals"])


# --- Decompositions -------------------------------------------------------------------------------------------------


class Shrunk(RegressorMixin, BaseEstimator):
    """The mean of the targets, and half of it after one iteration."""

    def __init__(self, max_iter=1):
        self.max_iter = max_iter

    def fit(self, X, y):
        self.level_ = np.mean(y) * (0.5 if self.max_iter == 1 else 1.0)
        return self

    def predict(self, X):
        return np.full(len(X), self.level_)


def test_a_decomposition_in_closed_form():
    """Constants on a line: R(a) = E(f* − a)² + σ², so every part is known for every training set."""
    line = hg.generators.PolynomialCurve([0.5, 1.0], noise=0.3)
    found = decompose_risk(line, Shrunk(), 10, repeats=4, points=501, random_state=9)
    grid = line.quadrature(501)
    truth, bayes = line.mean(grid), 0.09

    def risk(level):
        return np.mean((truth - level) ** 2) + bayes

    levels = []
    for r in range(4):
        rng = np.random.default_rng([9, r])
        X = line.inputs(10, rng)
        levels.append(np.mean(line.targets(X, rng)))
    short, full = (np.array([risk(k * a) for a in levels]) for k in (0.5, 1.0))
    limit = risk(truth.mean())
    assert found.risks == pytest.approx(np.column_stack([short, full, np.full(4, limit), np.full(4, bayes)]))
    assert found.risk == mean_of(found.risks[:, 0])
    assert (found.optimisation.value, found.estimation.value) == pytest.approx(
        (np.mean(short - full), np.mean(full - limit))
    )
    assert found.estimation.standard_error == pytest.approx(np.std(full, ddof=1) / 2)
    assert (found.approximation, found.bayes, found.n) == pytest.approx((limit - bayes, bayes, 10))
    assert found.excess == pytest.approx(short.mean() - bayes)
    alone = decompose_risk(line, hg.LinearRegression(), 10, repeats=1, points=11)
    assert alone.optimisation.value == 0.0
    for n, repeats in ((1, 1), (2, 0)):
        with pytest.raises(ValueError, match="n must be at least 2"):
            decompose_risk(line, Shrunk(), n, repeats=repeats)


class Recorder(ClassifierMixin, BaseEstimator):
    def fit(self, X, y, sample_weight=None):
        self.seen_ = X, y, sample_weight
        return self


def test_the_population_that_a_learner_is_fitted_to():
    """Numbers: the mean for squared loss, else the quantiles of y; labels: both, weighted by their probabilities."""
    line = hg.generators.PolynomialCurve([0.5, 1.0], noise=0.3)
    grid = line.quadrature(8)
    for loss in (None, hg.Squared()):
        X, y, weight = fit_population(line, Recorder(), grid, loss).seen_
        assert np.array_equal(X, grid)
        assert y == pytest.approx(0.5 + grid[:, 0])
        assert weight is None
    X, y, weight = fit_population(line, Recorder(), grid, hg.Absolute()).seen_
    np.testing.assert_allclose(X, np.tile(grid, (LEVELS, 1)))
    law = line.law(grid)
    assert y[:8] == pytest.approx(law.quantile(0.5 / 64))
    assert y[-8:] == pytest.approx(law.quantile(63.5 / 64))
    assert len(y) == 8 * 64
    assert len(fit_population(line, Recorder(), line.quadrature(1100), hg.Absolute()).seen_[1]) == 1024 * 64
    labels = hg.generators.LogisticLabels([1.0, -1.0])
    grid = labels.quadrature(8)
    X, y, weight = fit_population(labels, Recorder(), grid).seen_
    p = labels.mean(grid)
    assert np.array_equal(X, np.vstack([grid, grid]))
    assert list(y) == [0] * 8 + [1] * 8
    assert weight == pytest.approx(np.concatenate([1 - p, p]))
    with pytest.raises(ValueError, match="takes no sample_weight"):
        fit_population(labels, Shrunk(), grid)
