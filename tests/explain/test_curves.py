"""Learning and validation curves: the numbers of scikit-learn, with warm starts that change nothing but the time."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest
import scipy.optimize
import sklearn.model_selection
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import hinge as hg
from hinge.explain.curves import Steps
from hinge.explain.diagnosis.power_law import EXPONENTS

matplotlib.use("agg")


@pytest.fixture
def labelled(rng):
    X = rng.normal(size=(150, 6))
    return X, (X[:, 0] - X[:, 1] + rng.normal(size=150) > 0).astype(int)


MODELS = [
    hg.LogisticRegression(tol=1e-10),
    hg.DecisionTreeClassifier(max_depth=3),
    hg.HistGradientBoostingClassifier(max_iter=5),
]


@pytest.mark.mission("L8")
class TestLearningCurve:
    @pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
    def test_is_scikit_learns(self, model, labelled):
        options = {"train_sizes": [0.2, 0.5, 1.0], "cv": 4, "scoring": "neg_log_loss"}
        if isinstance(model, hg.DecisionTreeClassifier):
            options["scoring"] = None
        mine = hg.learning_curve(model, *labelled, **options)
        theirs = sklearn.model_selection.learning_curve(model, *labelled, **options)
        for a, b in zip(mine, theirs):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)

    def test_warm_starts_change_nothing(self, labelled):
        warm = hg.learning_curve(
            hg.LogisticRegression(C=10.0, tol=1e-10), *labelled, scoring="neg_log_loss", warm_start="auto"
        )
        cold = hg.learning_curve(
            hg.LogisticRegression(C=10.0, tol=1e-10), *labelled, scoring="neg_log_loss", warm_start=False
        )
        np.testing.assert_allclose(warm.test_scores, cold.test_scores, rtol=1e-4)
        assert warm.fit_times.shape == warm.test_scores.shape

    def test_over_fitting_is_visible(self, rng):
        """A least-squares line: training error rises and test error falls towards σ² as n grows."""
        X, y = hg.generators.LinearGaussian(np.ones(10), noise=1.0).sample(2000)
        curve = hg.learning_curve(
            hg.LinearRegression(), X, y, scoring="neg_mean_squared_error", train_sizes=[20, 50, 200, 1600]
        )
        train, test = -curve.train_scores.mean(axis=1), -curve.test_scores.mean(axis=1)
        assert np.all(np.diff(train) > 0)
        assert np.all(np.diff(test) < 0)
        assert train[-1] == pytest.approx(1.0, abs=0.1)
        assert test[-1] == pytest.approx(1.0, abs=0.1)
        # σ²(1 ± d/n) at n = 200, up to noise
        assert train[2] == pytest.approx(1 - 11 / 200, abs=0.12)

    def test_the_law_is_recovered(self):
        n = np.array([20, 40, 80, 160, 320])
        law = hg.fit_power_law(n, (0.3 + 5.0 * n**-0.7)[:, None] + np.zeros((5, 4)))
        assert (law.limit, law.exponent) == (pytest.approx(0.3, abs=0.01), pytest.approx(0.7, abs=0.03))
        assert law(1000) == pytest.approx(0.3 + 5 * 1000**-0.7, abs=0.01)
        noisy = hg.fit_power_law(n, (0.3 + 5.0 / n)[:, None] + 0.01 * np.random.default_rng(0).normal(size=(5, 8)))
        assert abs(noisy.limit - 0.3) < 4 * noisy.asymptote.standard_error + 0.01
        with pytest.raises(ValueError, match="three sizes"):
            hg.fit_power_law([1, 2], [[1.0], [2.0]])

    @pytest.mark.parametrize("floor", [0.3, 0.5, 0.8])
    def test_a_limit_on_its_floor_has_a_standard_error(self, rng, floor):
        """The floor is above the truth, 0.2: every copy sits on it, and the error still reaches the truth."""
        n = np.array([20, 40, 80, 160, 320])
        risks = (0.2 + 20.0 / n)[:, None] + 0.01 * rng.normal(size=(5, 8))
        law = hg.fit_power_law(n[:4], risks[:4], floor=min(floor, risks[3].mean()), bound=0.0)
        assert law.on_floor == (law.limit == pytest.approx(law.floor))
        if law.on_floor:
            assert law.copies[:, 0].std() < 0.05
            assert abs(law.asymptote.value - 0.2) < 3 * law.asymptote.standard_error
        free = hg.fit_power_law(n, risks, floor=0.0, level_error=0.5)
        assert not free.on_floor
        assert free.asymptote.standard_error >= 0.5
        assert free.at(1000.0).standard_error >= 0.5

    def test_display_draws_the_scores(self, labelled, ax):
        curve = hg.learning_curve(hg.LogisticRegression(), *labelled)
        display = hg.plots.LearningCurveDisplay.from_curve(curve, extrapolate=True, ax=ax)
        np.testing.assert_array_equal(display.lines_[0].get_xdata(), curve.train_sizes)
        np.testing.assert_allclose(display.lines_[0].get_ydata(), curve.train_scores.mean(axis=1))
        np.testing.assert_allclose(display.lines_[1].get_ydata(), curve.test_scores.mean(axis=1))
        law = curve.law()
        x, y = display.lines_[2].get_data()
        assert x[-1] == pytest.approx(10 * curve.train_sizes[-1])
        assert y[-1] == pytest.approx(1 - law(x[-1]))
        assert display.ax_ is ax

    def test_wrong_arguments(self, labelled):
        with pytest.raises(ValueError, match="fractions"):
            hg.learning_curve(hg.LogisticRegression(), *labelled, train_sizes=[0.5, 1.5])
        with pytest.raises(ValueError, match="between 1 and"):
            hg.learning_curve(hg.LogisticRegression(), *labelled, train_sizes=[1000])
        with pytest.raises(ValueError, match="no warm_start"):
            hg.learning_curve(hg.DecisionTreeClassifier(), *labelled, warm_start=True)


@pytest.mark.mission("L8")
class TestValidationCurve:
    def test_is_scikit_learns(self, labelled):
        options = {"param_name": "C", "param_range": [0.01, 0.1, 1.0, 10.0], "cv": 3, "scoring": "neg_log_loss"}
        mine = hg.validation_curve(hg.LogisticRegression(tol=1e-10), *labelled, **options)
        theirs = sklearn.model_selection.validation_curve(hg.LogisticRegression(tol=1e-10), *labelled, **options)
        for a, b in zip(mine, theirs):
            np.testing.assert_allclose(a, b, rtol=1e-4)
        assert mine.best in options["param_range"]

    def test_rounds_of_boosting_cost_one_fit(self, labelled):
        rounds = [1, 3, 8, 20]
        model = hg.HistGradientBoostingClassifier(early_stopping=False, random_state=0)
        warm = hg.validation_curve(model, *labelled, param_name="max_iter", param_range=rounds, cv=3)
        cold = hg.validation_curve(model, *labelled, param_name="max_iter", param_range=rounds, cv=3, warm_start=False)
        np.testing.assert_array_equal(warm.test_scores, cold.test_scores)
        steps = Steps(model, "auto", rounds=True)
        first = steps.fit({"max_iter": 2}, *labelled)
        assert steps.fit({"max_iter": 5}, *labelled) is first  # it went on

    def test_stochastic_models_begin_anew(self, labelled):
        steps = Steps(hg.MLPClassifier(max_iter=3, random_state=0, learning_rate="cosine"), "auto")
        first = steps.fit({}, *labelled)
        assert steps.fit({}, *labelled) is not first

    def test_complexity_over_fits(self, rng):
        X, y = hg.generators.SineCurve(noise=0.5).sample(150)
        depths = [1, 2, 3, 5, 12]
        curve = hg.validation_curve(
            hg.DecisionTreeRegressor(),
            X,
            y,
            param_name="max_depth",
            param_range=depths,
            scoring="neg_mean_squared_error",
        )
        assert np.all(np.diff(curve.train_scores.mean(axis=1)) >= 0)  # training only improves
        assert curve.best in (2, 3, 5)  # and the test score has its best inside

    def test_pipeline_and_display(self, labelled, ax):
        model = make_pipeline(StandardScaler(), hg.LogisticRegression())
        display = hg.plots.ValidationCurveDisplay.from_estimator(
            model, *labelled, param_name="logisticregression__C", param_range=[0.01, 1.0, 100.0], cv=3, ax=ax
        )
        np.testing.assert_allclose(display.lines_[1].get_ydata(), display.test_scores.mean(axis=1))
        np.testing.assert_array_equal(display.lines_[1].get_xdata(), [0.01, 1.0, 100.0])
        assert ax.get_xscale() == "log"
        words = hg.plots.ValidationCurveDisplay.from_estimator(
            hg.DecisionTreeClassifier(), *labelled, param_name="criterion", param_range=["gini", "entropy"], cv=3, ax=ax
        )
        assert [t.get_text() for t in words.ax_.get_xticklabels()] == ["gini", "entropy"]

    def test_wrong_arguments(self, labelled):
        with pytest.raises(ValueError, match="not a parameter"):
            hg.validation_curve(hg.LogisticRegression(), *labelled, param_name="speed", param_range=[1])


@pytest.mark.mission("L8")
@pytest.mark.parametrize("floor", [0.0, 0.28])
def test_the_power_law_is_the_weighted_fit_with_more_weight_at_the_end(floor, rng):
    """Σ (R̄ᵢ − a − b nᵢ^(−c))²/sᵢ² with sᵢ² ∝ n_max/nᵢ, by bounded least squares for every exponent of the grid."""
    n = np.array([10.0, 20, 40, 80, 160, 320])
    curve = 0.3 + 5.0 * n**-0.9 + 3.0 * n**-2  # not of the form: the weights decide what is fitted
    risks = curve[:, None] + 0.02 * rng.normal(size=(6, 8))
    mean = risks.mean(axis=1)
    spread = (risks.std(axis=1) / np.sqrt(8) + 1e-2 * mean.max()) * np.sqrt(n[-1] / n)
    best = None
    for c in EXPONENTS:
        A = np.column_stack([np.ones(6), n**-c]) / spread[:, None]
        found = scipy.optimize.lsq_linear(A, mean / spread, bounds=([floor, 0.0], [mean.min(), np.inf]), tol=1e-14)
        if best is None or found.cost < best[0]:
            best = (found.cost, *found.x, c)
    law = hg.fit_power_law(n, risks, floor=floor)
    assert (law.limit, law.scale, law.exponent) == pytest.approx(best[1:], rel=1e-4)


@pytest.mark.parametrize("scoring", ["neg_log_loss", "neg_brier_score", "accuracy"])
def test_errors_are_minus_losses_or_one_minus_scores(scoring, labelled):
    X, y = labelled
    curve = hg.learning_curve(hg.LogisticRegression(), X, y, scoring=scoring, train_sizes=[40, 80, 120])
    errors = curve.errors(curve.test_scores)
    expected = -curve.test_scores if scoring.startswith("neg_") else 1 - curve.test_scores
    np.testing.assert_array_equal(errors, expected)
    assert np.all(errors >= 0)
    law = curve.law()
    assert law.limit >= min(curve.errors(curve.train_scores)[-1].mean(), errors.mean(axis=1).min()) - 1e-12
