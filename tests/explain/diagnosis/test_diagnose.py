"""diagnose: right advice on built cases, useful advice on real data, and numbers that add up."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import hinge as hg
from hinge.explain.diagnosis.findings import CODES

DOCS = Path(__file__).resolve().parents[3] / "docs"


def curved(rng, n=400):
    X = rng.normal(size=(n, 4))
    return X, X[:, 0] ** 2 + np.sin(2 * X[:, 1]) + 0.3 * rng.normal(size=n)


def finding(report, code):
    return next(f for f in report.findings if f.code == code)


@pytest.mark.mission("L2", "L8")
class TestBuiltCases:
    def test_under_fitted(self, rng):
        report = hg.diagnose(hg.Ridge(), *curved(rng))
        assert "H301" in report.codes
        assert not {"H101", "H201", "H202", "H401"} & set(report.codes)
        assert "richer class" in finding(report, "H301").action
        assert report.terms.approximation > 0.5 * report.held_out_risk.value
        right = hg.diagnose(hg.KernelRidge(alpha=0.1, gamma=0.3, kernel="rbf"), *curved(rng), skip=["bias_variance"])
        assert "H301" not in right.codes

    @pytest.mark.parametrize("model", [hg.Ridge(alpha=1e-3), hg.LinearRegression()], ids=repr)
    def test_over_fitted_line(self, rng, model):
        X = rng.normal(size=(60, 40))
        report = hg.diagnose(model, X, X[:, 0] + rng.normal(size=60))
        assert report.findings[0].code == "H201"
        assert "More penalty: alpha=" in report.findings[0].action
        assert not {"H101", "H301", "H302", "H401"} & set(report.codes)
        assert report.terms.estimation > 0.3 * report.held_out_risk.value
        assert report.bias_variance.variance.value > 0.5 * report.bias_variance.risk.value

    def test_over_fitted_tree(self, rng):
        X = rng.normal(size=(300, 5))
        y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
        report = hg.diagnose(hg.DecisionTreeClassifier(), X, y)
        assert report.findings[0].code == "H201"
        assert "min_samples_leaf=10" in report.findings[0].action
        assert "H601" in report.codes  # 0 and 1 are no probabilities
        assert "H301" not in report.codes

    def test_badly_optimised(self, rng):
        scale = np.geomspace(1, 1e3, 8)
        X = rng.normal(size=(500, 8)) * scale
        y = (X @ (1 / scale) + 0.5 * rng.normal(size=500) > 0).astype(int)
        with pytest.warns(match="iteration limit"):
            model = hg.LogisticRegression(max_iter=2, solver="lbfgs").fit(X, y)
        report = hg.diagnose(model, X, y)
        first = report.findings[0]
        assert first.code == "H101"
        assert "Raise max_iter (now 2)" in first.action
        assert "one scale" in first.action
        assert report.optimisation.gain.clear
        assert report.terms.optimisation == pytest.approx(report.optimisation.gain.value)
        assert "H301" not in report.codes  # the class is not to blame for the solver
        good = hg.diagnose(hg.LogisticRegression(), X, y, skip=["bias_variance", "learning"])
        assert not {"H101", "H102"} & set(good.codes)

    def test_badly_optimised_network(self, rng):
        X = rng.normal(size=(200, 3))
        report = hg.diagnose(
            hg.MLPRegressor(hidden_layer_sizes=(10,), max_iter=2, random_state=0), X, X @ [1.0, -1.0, 0.5],
            cv=3, skip=["bias_variance", "learning", "probes"],
        )  # fmt: skip
        assert report.findings[0].code == "H102"
        assert report.terms.optimisation > 0.5 * report.held_out_risk.value

    def test_drifted(self, rng):
        def truth(X):
            return X[:, 0] + np.maximum(X[:, 1], 0) ** 2

        X, new = rng.normal(size=(400, 3)), rng.normal(size=(300, 3)) + np.array([0.0, 2.0, 0.0])
        y, answers = truth(X) + 0.3 * rng.normal(size=400), truth(new) + 0.3 * rng.normal(size=300)
        report = hg.diagnose(hg.Ridge(), X, y, X_test=new, y_test=answers, skip=["bias_variance"])
        assert report.codes[:2] == ("H401", "H403")
        assert "x1 (KS" in report.findings[0].evidence
        assert report.drift.drifted == ("x1",)
        same = rng.normal(size=(300, 3))
        calm = hg.diagnose(
            hg.Ridge(), X, y, X_test=same, y_test=truth(same) + 0.3 * rng.normal(size=300), skip=["bias_variance"]
        )
        assert not {"H401", "H402", "H403"} & set(calm.codes)

    def test_a_target_made_from_columns(self, rng):
        X = rng.normal(size=(200, 4))
        report = hg.diagnose(hg.LinearRegression(), X, X[:, 0] + X[:, 1], skip=["bias_variance"])
        assert report.codes == ("H501",)
        assert "can be computed" in report.findings[0].evidence

    def test_a_good_fit_has_only_notes(self, rng):
        X = rng.normal(size=(400, 3))
        report = hg.diagnose(hg.Ridge(), X, X @ [1.0, 2.0, 3.0] + 3 * rng.normal(size=400))
        assert report.findings[0].code == "H001"
        assert all(f.severity.value == "note" for f in report.findings)
        assert report.terms.remainder > 0.95 * report.held_out_risk.value

    def test_more_data(self, rng):
        """Sixty weights from 96 rows: an estimation error of 60/(96 − 60 − 1) σ², 60/(192 − 60 − 1) with twice the rows."""
        X = rng.normal(size=(120, 60))
        report = hg.diagnose(hg.LinearRegression(), X, X @ rng.normal(size=60) + rng.normal(size=120))
        assert "H202" in report.codes
        limit = report.learning.limit
        assert abs(limit.value - 1.0) < 3 * limit.standard_error  # σ² = 1 is the Bayes risk
        assert ("on its floor" in str(report)) == report.learning.law.on_floor
        assert report.learning.limit.value < report.held_out_risk.value

    def test_too_much_penalty(self, rng):
        X = rng.normal(size=(200, 5))
        report = hg.diagnose(hg.Ridge(alpha=1000.0), X, X @ np.ones(5) + 0.5 * rng.normal(size=200))
        assert "H203" in report.codes
        assert "alpha=100" in finding(report, "H203").evidence


class TestRealData:
    def test_insurance_needs_a_richer_class(self):
        """Smoking and weight multiply each other: a line cannot represent that."""
        data = hg.load_dataset("insurance")
        report = hg.diagnose(hg.Ridge(), data.X, data.y, repeats=10)
        assert "H301" in report.codes
        assert report.terms.approximation > 0.3 * report.held_out_risk.value

    def test_bike_sharing_has_a_leak_and_an_id(self, real_data):
        """casual + registered is the target, and instant is a running number."""
        table = pd.read_csv(real_data("bike_sharing_hour.csv.gz")).drop(columns=["dteday"])
        X, y = table.drop(columns=["cnt"]), table["cnt"].to_numpy(dtype=float)
        report = hg.diagnose(
            hg.Ridge(), X, y, max_rows=2000, skip=["bias_variance", "learning", "probes"], measure="squared error"
        )
        assert report.rows == len(y)
        assert report.used_rows == 2000
        assert {"H501", "H506"} <= set(report.codes)
        assert "registered" in finding(report, "H501").evidence
        assert "instant" in finding(report, "H506").evidence

    def test_electricity_drifts(self, real_data):
        table = pd.read_csv(real_data("electricity_nsw.csv.gz"))
        X, y = table.drop(columns=["class"]).select_dtypes("number"), table["class"].to_numpy()
        first, last = slice(0, 3000), slice(42000, 45000)
        report = hg.diagnose(
            hg.LogisticRegression(), X[first], y[first], X_test=X[last], y_test=y[last],
            skip=["bias_variance", "learning", "rivals", "probes"],
        )  # fmt: skip
        assert report.codes[0] == "H401"


@pytest.fixture(scope="module")
def report():
    heart = hg.load_dataset("heart")
    return hg.diagnose(hg.LogisticRegression(), heart.X, heart.y, repeats=10)


class TestReport:
    @pytest.mark.mission("L2")
    def test_terms_add_up(self, report):
        assert report.terms.total == pytest.approx(report.held_out_risk.value, rel=1e-12)

    def test_held_out_risk_is_the_brier_score_of_folds(self, report):
        codes, p = report.predictions
        assert report.held_out_risk.value == pytest.approx(np.mean((p[:, 1] - codes) ** 2))
        assert report.reliability.error_rate.value == pytest.approx(np.mean((p[:, 1] > 0.5) != codes))
        assert report.held_out_risk.low < report.held_out_risk.value < report.held_out_risk.high

    def test_nine_targets_in_ten_are_within_reach(self, report, rng):
        assert 1.0 <= report.reach.set_size <= 2.0
        X = rng.normal(size=(300, 2))
        line = hg.diagnose(hg.Ridge(), X, X[:, 0] + rng.normal(size=300), skip=["learning", "rivals", "bias_variance"])
        y, predicted = line.predictions
        assert np.mean(np.abs(y - predicted) <= line.reach.half_width) == pytest.approx(0.9, abs=0.01)

    def test_json(self, report):
        tree = json.loads(json.dumps(report.to_dict(), allow_nan=False))
        assert tree["held_out_risk"]["value"] == report.held_out_risk.value
        assert {f["code"] for f in tree["findings"]} == set(report.codes)
        assert all(f["anchor"].startswith("docs/diagnoses.md#h") for f in tree["findings"])
        assert tree["learning"]["sizes"] == report.learning.sizes.tolist()

    def test_text_and_html(self, report):
        text, page = str(report), report._repr_html_()
        for f in report.findings:
            assert f.code in text
            assert f.code in page
        assert "LogisticRegression()" in text
        assert page.count("<table") == page.count("</table>") == 2
        assert "<script" not in page

    def test_plot_draws_the_numbers(self, report):
        import matplotlib

        matplotlib.use("agg")
        import matplotlib.pyplot as plt

        figure = report.plot()
        terms, curve, rivals, parts, reliability, _ = figure.axes
        widths = {bar.get_width() for bar in terms.patches}
        assert widths == {
            getattr(report.terms, n) for n in ("optimisation", "estimation", "approximation", "remainder")
        }
        held = curve.containers[1].lines[0]
        np.testing.assert_allclose(held.get_ydata(), report.learning.held_out.mean(axis=1))
        np.testing.assert_array_equal(held.get_xdata(), report.learning.sizes)
        assert len(rivals.containers[0].lines[0].get_xdata()) == 1 + len(report.rivals)
        assert parts.patches[0].get_height() == report.bias_variance.variance.value
        np.testing.assert_array_equal(reliability.lines[1].get_ydata(), report.reliability.observed)
        plt.close(figure)

    def test_every_code_is_explained(self):
        page = (DOCS / "diagnoses.md").read_text()
        headings = dict(re.findall(r"^## (H\d{3}) (.+)$", page, re.MULTILINE))
        assert headings == CODES
        assert all(f'<a id="{code.lower()}"></a>' in page for code in CODES)

    def test_same_seed_same_report(self, rng):
        X, y = curved(rng, 80)
        one, two = (hg.diagnose(hg.Ridge(), X, y, repeats=5).to_dict() for _ in range(2))
        for tree in (one, two):
            tree["optimisation"].pop("sentence")
        assert one == two


class TestInputs:
    def test_pipelines_frames_and_sparse_matrices_agree(self, rng):
        X = rng.normal(size=(120, 3))
        y = np.where(X[:, 0] + 0.5 * rng.normal(size=120) > 0, "yes", "no")
        skip = ["learning", "bias_variance", "rivals", "probes"]
        plain = hg.diagnose(hg.LogisticRegression(), X, y, skip=skip)
        frame = hg.diagnose(hg.LogisticRegression(), pd.DataFrame(X, columns=list("abc")), y, skip=skip)
        sparse = hg.diagnose(hg.LogisticRegression(), scipy.sparse.csr_array(X), y, skip=skip)
        assert frame.held_out_risk.value == pytest.approx(plain.held_out_risk.value, rel=1e-6)
        assert sparse.held_out_risk.value == pytest.approx(plain.held_out_risk.value, rel=1e-6)
        piped = hg.diagnose(make_pipeline(StandardScaler(), hg.LogisticRegression()), 1e3 * X, y, skip=skip[:2])
        assert {r.name for r in piped.rivals} == {"a constant", "boosted trees", "an RBF kernel"}
        assert piped.probes[0].parameter == "C"

    def test_three_classes_without_probabilities(self, rng):
        X = rng.normal(size=(150, 2))
        y = np.digitize(X[:, 0], [-0.5, 0.5])
        report = hg.diagnose(hg.LinearSVC(), X, y, skip=["bias_variance"], cv=3)
        assert report.measure == "error rate"
        assert report.reliability is None

    @pytest.mark.mission("L1")
    @pytest.mark.parametrize("loss", [hg.Huber(0.5), hg.Absolute(), hg.Quantile(0.7)], ids=repr)
    def test_any_loss(self, rng, loss):
        X = rng.normal(size=(80, 2))
        y = X[:, 0] + rng.normal(size=80)
        report = hg.diagnose(hg.Ridge(), X, y, measure=loss, skip=["learning", "rivals", "probes", "bias_variance"])
        targets, predicted = report.predictions
        assert report.held_out_risk.value == pytest.approx(hg.risk(loss, targets, predicted))
        assert report.train_risk.value == pytest.approx(hg.empirical_risk(hg.Ridge().fit(X, y), X, y, loss))

    def test_test_rows_are_looked_for_among_all_training_rows(self, rng):
        X = rng.normal(size=(2000, 3))
        y = X[:, 0] + rng.normal(size=2000)
        report = hg.diagnose(
            hg.Ridge(), X, y, X_test=X[:200], y_test=y[:200], max_rows=300,
            skip=["learning", "rivals", "probes", "bias_variance"],
        )  # fmt: skip
        assert (report.rows, report.used_rows) == (2000, 300)
        assert report.data.duplicates_in_test == 1.0
        assert report.codes[0] == "H503"

    @pytest.mark.mission("V1")
    def test_groups(self, rng):
        X = np.repeat(rng.normal(size=(40, 3)), 4, axis=0)
        y, groups = np.repeat(rng.normal(size=40), 4), np.repeat(np.arange(40), 4)
        skip = ["learning", "bias_variance", "rivals", "probes"]
        leaking = hg.diagnose(hg.DecisionTreeRegressor(), X, y, skip=skip)
        assert leaking.data.duplicates_across_folds > 0.9
        assert leaking.codes[0] == "H502"
        honest = hg.diagnose(hg.DecisionTreeRegressor(), X, y, groups=groups, cv=GroupKFold(5), skip=skip)
        assert honest.data.duplicates_across_folds == 0.0
        assert honest.held_out_risk.value > 10 * leaking.held_out_risk.value + 0.1

    def test_wrong_arguments(self, rng):
        X, y = curved(rng, 50)
        with pytest.raises(ValueError, match="skip holds 'nothing'"):
            hg.diagnose(hg.Ridge(), X, y, skip=["nothing"])
        with pytest.raises(TypeError, match="classifier or a regressor"):
            hg.diagnose(StandardScaler(), X, y)
        with pytest.raises(ValueError, match="measure must be"):
            hg.diagnose(hg.Ridge(), X, y, measure="accuracy")
        with pytest.raises(ValueError, match="without X_test"):
            hg.diagnose(hg.Ridge(), X, y, y_test=y)
        with pytest.raises(ValueError, match="one target per row"):
            hg.diagnose(hg.Ridge(), X, np.column_stack([y, y]))


@pytest.mark.parametrize(
    "model",
    [hg.GradientBoostingRegressor(max_iter=5), hg.GradientBoostingRegressor("quantile", max_iter=5), hg.HistGradientBoostingRegressor()],
    ids=["squared", "quantile", "hist"],
)  # fmt: skip
def test_the_level_of_a_quantile_is_no_penalty(model):
    from hinge.explain.diagnosis.alternatives import strength_changes

    changes = strength_changes(model)
    assert changes
    assert {change.parameter for change in changes} == {"min_samples_leaf"}
    assert {change.parameter for change in strength_changes(hg.Lasso())} == {"alpha"}


def test_quantile_boosting_is_judged_by_its_own_loss():
    from hinge.select.measure import make_measure

    for level, model in (
        (0.9, hg.GradientBoostingRegressor("quantile")),
        (0.3, hg.GradientBoostingRegressor("quantile", quantile=0.3)),
    ):
        measure = make_measure(model, np.zeros(3))
        np.testing.assert_allclose(measure.pointwise(np.ones(1), np.zeros(1)), level)
