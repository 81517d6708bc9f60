"""Importances, partial dependence and displays: what is drawn is what was computed."""

from __future__ import annotations

import matplotlib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn.inspection
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import hinge as hg
from hinge.explain.importance import LinearScores, idle_columns

matplotlib.use("agg")
import matplotlib.pyplot as plt


@pytest.fixture
def curved(rng):
    X = rng.normal(size=(200, 4))
    return X, X[:, 0] ** 2 + X[:, 1] + 0.1 * rng.normal(size=200)


@pytest.fixture
def labelled(rng):
    X = rng.normal(size=(200, 3))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=200) > 0, "yes", "no")


def as_polars(X):
    return pytest.importorskip("polars").DataFrame(X)


class TestImportance:
    def test_shuffling_a_column_of_a_line_costs_twice_its_variance(self, rng):
        """R² falls by 2 w² Var(x) / Var(y) for a model that is right."""
        X, y = hg.generators.LinearGaussian([3.0, 1.0, 0.0], noise=0.5).sample(20_000)
        found = hg.permutation_importance(hg.LinearRegression().fit(X, y), X, y, n_repeats=3)
        expected = 2 * np.array([9.0, 1.0, 0.0]) / 10.25
        np.testing.assert_allclose(found.importances_mean, expected, atol=0.05)

    @pytest.mark.parametrize("frame", [np.asarray, lambda X: pd.DataFrame(X), as_polars,
                                       scipy.sparse.csr_array], ids=["array", "pandas", "polars", "sparse"])  # fmt: skip
    def test_fast_importances_equal_the_general_ones(self, frame, curved):
        X, y = curved
        for model in (hg.Ridge(), hg.Lasso(alpha=0.3), hg.HistGradientBoostingRegressor(max_iter=10)):
            fitted = model.fit(frame(X) if frame is scipy.sparse.csr_array else X, y)
            quick = hg.permutation_importance(fitted, X, y)
            slow = hg.permutation_importance(fitted, X, y, scoring="r2")
            np.testing.assert_allclose(quick.importances, slow.importances, atol=1e-9)
            if hasattr(X, "columns") or frame is not np.asarray:
                table = hg.permutation_importance(type(model)(**model.get_params()).fit(frame(X), y), frame(X), y)
                np.testing.assert_allclose(table.importances, slow.importances, atol=1e-6)

    def test_columns_that_cannot_matter_are_not_tried(self, curved):
        X, y = curved
        lasso = hg.Lasso(alpha=0.3).fit(X, y)
        assert np.array_equal(idle_columns(lasso, 4), lasso.coef_ == 0)
        tree = hg.DecisionTreeRegressor(max_depth=1).fit(X, y)
        assert idle_columns(tree, 4).sum() == 3
        assert not idle_columns(hg.SVR().fit(X, y), 4).any()
        assert LinearScores.of(hg.Ridge().fit(X, y), X, y, None) is not None
        found = hg.permutation_importance(tree, X, y)
        assert (found.importances_mean != 0).sum() == 1

    def test_classifiers_weights_and_samples(self, labelled):
        X, y = labelled
        model = hg.LogisticRegression().fit(X, y)
        weight = np.arange(200) % 3
        quick = hg.permutation_importance(model, X, y, sample_weight=weight)
        slow = hg.permutation_importance(model, X, y, sample_weight=weight, scoring="accuracy")
        np.testing.assert_allclose(quick.importances, slow.importances, atol=1e-12)
        assert quick.importances_mean.argmax() == 0
        assert hg.permutation_importance(model, X, y, max_samples=0.5).baseline != quick.baseline
        with pytest.raises(ValueError, match="max_samples"):
            hg.permutation_importance(model, X, y, max_samples=1000)

    def test_plot(self, curved, ax):
        X, y = curved
        found = hg.permutation_importance(hg.Ridge().fit(X, y), X, y)
        found.plot(ax=ax)
        order = np.argsort(found.importances_mean)
        assert [t.get_text() for t in ax.get_yticklabels()] == [f"x{j}" for j in order]
        medians = [line.get_xdata()[0] for line in ax.lines if line.get_color() == "C1"]
        np.testing.assert_allclose(sorted(np.median(found.importances, axis=1)), sorted(medians), atol=1e-12)


class TestPartialDependence:
    @pytest.mark.parametrize(
        "model",
        [hg.Ridge(), hg.HistGradientBoostingRegressor(max_iter=20), hg.DecisionTreeRegressor(max_depth=4),
         hg.RandomForestRegressor(n_estimators=5, random_state=0), hg.SVR()],
        ids=lambda m: type(m).__name__,
    )  # fmt: skip
    def test_is_the_definition(self, model, curved):
        X, y = curved
        model.fit(X, y)
        found = hg.partial_dependence(model, X, 0, grid_resolution=15, kind="both")
        for i, value in enumerate(found.grid_values[0]):
            moved = X.copy()
            moved[:, 0] = value
            np.testing.assert_allclose(found.individual[:, i], model.predict(moved), rtol=1e-9, atol=1e-9)
            assert found.average[i] == pytest.approx(model.predict(moved).mean())

    def test_is_scikit_learns(self, curved):
        X, y = curved
        model = hg.SVR().fit(X, y)
        theirs = sklearn.inspection.partial_dependence(model, X, [0], grid_resolution=20, method="brute")
        mine = hg.partial_dependence(model, X, 0, grid_resolution=20)
        np.testing.assert_allclose(mine.average, theirs["average"][0], rtol=1e-3, atol=1e-3)

    def test_pairs_names_and_probabilities(self, labelled):
        X, y = labelled
        frame = pd.DataFrame(X, columns=["a", "b", "c"])
        model = hg.LogisticRegression().fit(frame, y)
        found = hg.partial_dependence(model, frame, ("a", "c"), grid_resolution=4, target="no")
        assert found.average.shape == (4, 4)
        moved = frame.copy()
        moved["a"], moved["c"] = found.grid_values[0][1], found.grid_values[1][2]
        assert found.average[1, 2] == pytest.approx(model.predict_proba(moved)[:, 0].mean())
        wide = make_pipeline(StandardScaler(), hg.LinearSVC()).fit(as_polars(X), y)
        assert hg.partial_dependence(wide, as_polars(X), 1, grid_resolution=5).average.shape == (5,)
        sparse = scipy.sparse.csr_array(X)
        model = hg.LogisticRegression().fit(X, y)
        np.testing.assert_allclose(
            hg.partial_dependence(model, sparse, 0, grid_resolution=5).average,
            hg.partial_dependence(model, X, 0, grid_resolution=5).average,
        )

    def test_display(self, curved):
        X, y = curved
        model = hg.HistGradientBoostingRegressor(max_iter=10).fit(X, y)
        display = hg.plots.PartialDependenceDisplay.from_estimator(
            model, X, [0, 1, (0, 1)], kind="both", subsample=30, grid_resolution=10
        )
        assert len(display.axes_[0].lines) == 31
        np.testing.assert_array_equal(display.lines_[0].get_ydata(), display.results[0].average)
        np.testing.assert_array_equal(display.lines_[1].get_xdata(), display.results[1].grid_values[0])
        drawn = {tuple(line.get_ydata()) for line in display.axes_[0].lines[:30]}
        assert drawn <= {tuple(row) for row in display.results[0].individual}
        plt.close(display.figure_)

    def test_wrong_arguments(self, curved):
        X, y = curved
        model = hg.Ridge().fit(X, y)
        with pytest.raises(ValueError, match="no column 9"):
            hg.partial_dependence(model, X, 9)
        with pytest.raises(ValueError, match="kind must be"):
            hg.partial_dependence(model, X, 0, kind="all")
        with pytest.raises(ValueError, match="percentiles"):
            hg.partial_dependence(model, X, 0, percentiles=(0.9, 0.1))


class TestScoreDisplays:
    @pytest.mark.parametrize("model", [hg.LogisticRegression(), hg.LinearSVC()], ids=lambda m: type(m).__name__)
    def test_roc(self, model, labelled, ax):
        X, y = labelled
        display = hg.plots.RocCurveDisplay.from_estimator(model.fit(X, y), X, y, ax=ax)
        assert display.roc_auc == pytest.approx(roc_auc_score(y == "yes", model.decision_function(X)))
        fpr, tpr = display.line_.get_data()
        np.testing.assert_array_equal(fpr, display.fpr)
        np.testing.assert_array_equal(tpr, display.tpr)
        assert np.trapezoid(tpr, fpr) == pytest.approx(display.roc_auc)
        other = hg.plots.RocCurveDisplay.from_estimator(model, X, y, pos_label="no", ax=ax)
        assert other.roc_auc == pytest.approx(display.roc_auc)
        with pytest.raises(ValueError, match="pos_label"):
            hg.plots.RocCurveDisplay.from_estimator(model, X, y, pos_label="maybe", ax=ax)

    def test_precision_and_recall(self, labelled, ax):
        X, y = labelled
        model = hg.LogisticRegression().fit(X, y)
        display = hg.plots.PrecisionRecallDisplay.from_estimator(model, X, y, ax=ax)
        p = model.predict_proba(X)[:, 1]
        assert display.average_precision == pytest.approx(average_precision_score(y == "yes", p))
        recall, precision = display.line_.get_data()
        i = 40
        chosen = p >= np.sort(np.unique(p))[i]
        at = np.flatnonzero(np.isclose(recall, np.mean(chosen[y == "yes"])))
        assert np.any(np.isclose(precision[at], np.mean(y[chosen] == "yes")))

    def test_confusion(self, rng, ax):
        X = rng.normal(size=(120, 2))
        y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=120), [-0.5, 0.5])
        model = hg.LogisticRegression().fit(X, y)
        display = hg.plots.ConfusionMatrixDisplay.from_estimator(model, X, y, ax=ax)
        predicted = model.predict(X)
        for i in range(3):
            for j in range(3):
                assert display.text_[i, j].get_text() == str(np.sum((y == i) & (predicted == j)))
        np.testing.assert_array_equal(display.im_.get_array(), display.confusion_matrix)
        shares = hg.plots.ConfusionMatrixDisplay.from_predictions(y, predicted, normalize="true", ax=ax)
        np.testing.assert_allclose(shares.confusion_matrix.sum(axis=1), 1.0)
        with pytest.raises(ValueError, match="for two"):
            hg.plots.RocCurveDisplay.from_estimator(model, X, y, ax=ax)


class TestFitDisplays:
    def test_residuals(self, curved, ax):
        X, y = curved
        model = hg.Ridge().fit(X, y)
        display = hg.plots.PredictionErrorDisplay.from_estimator(model, X, y, ax=ax)
        _, r = display.scatter_.get_offsets().T
        np.testing.assert_allclose(np.sort(r), np.sort(y - model.predict(X)))
        assert np.all(np.asarray(display.line_.get_ydata()) == 0)
        actual = hg.plots.PredictionErrorDisplay.from_estimator(
            model, X, y, kind="actual_vs_predicted", subsample=50, ax=ax
        )
        assert len(actual.scatter_.get_offsets()) == 50
        with pytest.raises(ValueError, match="kind must be"):
            hg.plots.PredictionErrorDisplay.from_estimator(model, X, y, kind="qq", ax=ax)

    def test_weights_with_exact_intervals(self, curved, ax):
        X, y = curved
        model = hg.LinearRegression().fit(X, y)
        display = hg.plots.CoefficientDisplay.from_estimator(model, ax=ax)
        low, high = model.inference_.interval(0.95)[1:].T
        np.testing.assert_allclose(display.low, low)
        np.testing.assert_allclose(display.high, high)
        order = np.argsort(np.abs(model.coef_))
        np.testing.assert_allclose(display.points_.get_xdata(), model.coef_[order])
        segments = display.errorbar_.lines[2][0].get_segments()
        np.testing.assert_allclose([s[0, 0] for s in segments], low[order])
        np.testing.assert_allclose([s[1, 0] for s in segments], high[order])

    def test_weights_with_bootstrap_intervals(self, rng, ax):
        """Close to the exact ones where both exist."""
        X, y = hg.generators.LinearGaussian([1.0, -2.0, 0.0]).sample(400)
        exact = hg.plots.CoefficientDisplay.from_estimator(hg.LinearRegression().fit(X, y), ax=ax)
        drawn = hg.plots.CoefficientDisplay.from_estimator(hg.Ridge(alpha=1e-9).fit(X, y), X, y, repeats=200, ax=ax)
        np.testing.assert_allclose(drawn.high - drawn.low, exact.high - exact.low, rtol=0.25)
        with pytest.raises(ValueError, match="X and y are needed"):
            hg.plots.CoefficientDisplay.from_estimator(hg.Ridge().fit(X, y), ax=ax)

    def test_decomposition(self, ax):
        parts = [
            hg.decompose_risk(hg.generators.StepCurve(), hg.LinearRegression(), n=n, repeats=3, points=500)
            for n in (20, 80)
        ]
        hg.plots.plot_decomposition(parts, ax=ax)
        total = ax.lines[-1]
        np.testing.assert_array_equal(total.get_xdata(), [20, 80])
        np.testing.assert_allclose(total.get_ydata(), [p.risk.value for p in parts])
        labels = [c.get_label() for c in ax.collections]
        assert labels == ["Bayes risk", "approximation", "estimation", "optimisation"]
        top = ax.collections[1].get_paths()[0].vertices[:, 1].max()
        assert top == pytest.approx(parts[0].bayes + parts[0].approximation)
