"""Problems of data are found where they were put, and not where they were not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import hinge as hg
from hinge.explain.calibration import reliability
from hinge.explain.diagnosis.data_checks import check_data, column_skill
from hinge.explain.drift import ColumnDrift, holm, two_sample_test
from hinge.select.measure import make_measure
from hinge.select.resample import make_folds
from hinge.tables.columns import aligned, row_keys
from hinge.tables.kinds import typed_columns
from kit.frames import in_library


def checked(X, y, model=None, **options):
    model = hg.Ridge() if model is None else model
    measure = make_measure(model, y)
    folds = make_folds(5, X, y, measure.classes is not None, None, 0)
    return check_data(X, measure.code(y), measure, folds, **options)


def test_clean_data_have_no_problems(rng):
    X = rng.normal(size=(300, 5))
    found = checked(X, X[:, 0] + rng.normal(size=300))
    assert (found.leaks, found.constant, found.copies, found.ids) == ((), (), (), ())
    assert found.duplicates == found.duplicates_across_folds == found.conflict == found.missing == 0.0
    assert found.scale_ratio < 2


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_every_problem_is_found(library, rng):
    n = 300
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    y = X["a"].to_numpy() + rng.normal(size=n)
    X["leak"] = np.exp(y) + 0.01 * rng.normal(size=n)
    X["still"] = 1.0
    X["twin"] = -3.0 * X["b"] + 7.0
    X["number"] = np.arange(n) + 1000
    X["name"] = [f"person {i}" for i in rng.permutation(n)]
    X["tiny"] = 1e-6 * rng.normal(size=n)
    X.loc[::10, "c"] = np.nan
    found = checked(in_library(X, library), y)
    assert [name for name, _ in found.leaks] == ["leak"]
    assert found.constant == ("still",)
    assert found.copies == (("twin", "b"),)
    assert found.ids == ("number", "name")
    assert found.missing == pytest.approx(0.1 / 9)
    assert found.scale_ratio > 1e5


def test_leaks_of_labels(rng):
    n = 4000  # the skills are then within 0.02 of −0.03, 0.985 and 0.205
    y = rng.integers(0, 3, size=n)
    X = np.column_stack([rng.normal(size=n), y + 0.01 * rng.normal(size=n), y + rng.normal(size=n)])
    measure = make_measure(hg.LogisticRegression(), y)
    skills = [column_skill(X[:, j], y, measure) for j in range(3)]
    assert skills[0] < 0.1
    assert skills[1] > 0.9
    assert 0.1 < skills[2] < 0.8
    assert [name for name, _ in checked(X, y, hg.LogisticRegression()).leaks] == ["x1"]


def test_duplicates_and_conflicts(rng):
    X = rng.normal(size=(100, 2))
    twice = np.vstack([X, X])
    y = rng.normal(size=100)
    same = checked(twice, np.concatenate([y, y]))
    assert same.duplicates == 0.5
    assert same.duplicates_across_folds == pytest.approx(0.8, abs=0.15)  # the twin is elsewhere four times in five
    assert same.conflict == 0.0
    other = checked(twice, np.concatenate([y, y + 2.0]))
    assert other.conflict == pytest.approx(1.0)  # (±1)² around the mean of the two
    assert other.duplicates_across_folds == 0.0
    labels = np.concatenate([np.zeros(100, dtype=int), np.ones(100, dtype=int)])
    assert checked(twice, labels, hg.LogisticRegression()).conflict == pytest.approx(0.25)
    assert checked(X, y, X_test=np.vstack([X[:10], rng.normal(size=(30, 2))])).duplicates_in_test == 0.25


def test_keys_of_rows():
    table = np.array([[0.0, 1.0], [-0.0, 1.0], [np.nan, 1.0], [np.nan, 1.0], [0.0, 2.0]])
    keys = row_keys(table)
    assert keys[0] == keys[1]
    assert keys[2] == keys[3]
    assert len(set(keys)) == 3


def test_texts_are_compared_as_texts():
    one, two = (typed_columns(pd.DataFrame({"c": values}))[0] for values in (["x", "y"], ["y", "z"]))
    a, b = aligned(one, two)
    assert a[1] == b[0]
    assert len({*a, *b}) == 3


def test_rare_classes_and_doubtful_labels(rng):
    X = rng.normal(size=(600, 2))
    y = (X[:, 0] > 0).astype(int)
    wrong = rng.permutation(np.flatnonzero(np.abs(X[:, 0]) > 1))[:12]
    noisy = y.copy()
    noisy[wrong] = 1 - noisy[wrong]
    report = hg.diagnose(hg.LogisticRegression(), X, noisy, skip=["learning", "rivals", "probes", "bias_variance"])
    assert set(report.data.doubtful) >= set(wrong.tolist())
    assert len(report.data.doubtful) < 40
    spiked = X[:, 0] + 0.1 * rng.normal(size=600)
    spiked[[3, 77]] += 50.0
    report = hg.diagnose(hg.Ridge(), X, spiked, skip=["learning", "rivals", "probes", "bias_variance"])
    assert set(report.data.doubtful) == {3, 77}
    rare = np.zeros(600, dtype=int)
    rare[:15] = 1
    found = checked(X, rare, hg.LogisticRegression())
    assert (found.smallest_class_count, found.smallest_class) == (15, 0.025)


def test_sparse_matrices(rng):
    X = scipy.sparse.random_array((200, 5), density=0.3, rng=rng, format="csr")
    found = checked(X, X.toarray()[:, 0] + rng.normal(size=200))
    assert found.leaks == ()
    assert hg.measure_drift(X[:100], X[100:]).found is False


class TestDrift:
    def test_no_false_alarms(self):
        alarms, small = 0, 0
        for seed in range(20):
            rng = np.random.default_rng(seed)
            drift = hg.measure_drift(rng.normal(size=(150, 4)), rng.normal(size=(150, 4)))
            alarms += drift.found
            small += bool(drift.drifted)
        assert alarms == 0
        assert small <= 1  # Holm at 0.01: one in a hundred

    def test_p_values_are_uniform_without_drift(self):
        p = []
        for seed in range(40):
            rng = np.random.default_rng(seed)
            p.append(two_sample_test(rng.normal(size=(120, 2)), np.arange(120) % 2, seed)[1])
        assert 0.25 < np.mean(p) < 0.75
        assert np.mean(np.array(p) < 0.1) < 0.25

    def test_drift_that_no_single_column_shows(self, rng):
        """The sign of a product: every column alone has the same distribution on both sides.

        P(Kolmogorov–Smirnov distance > 0.17) ≤ 2 exp(−2 · 0.17² · n/4) < 1e-9 then.
        """
        X = rng.normal(size=(1500, 2))
        same, other = X[X[:, 0] * X[:, 1] > 0], X[X[:, 0] * X[:, 1] < 0]
        drift = hg.measure_drift(same, other)
        assert drift.found
        assert all(column.statistic < 0.17 for column in drift.columns)
        assert drift.auc > 0.9

    def test_categories_and_gaps(self, rng):
        one = pd.DataFrame({"kind": rng.choice(["a", "b", "c"], 500), "size": rng.normal(size=500)})
        two = pd.DataFrame({"kind": rng.choice(["a", "b", "d"], 500), "size": rng.normal(size=500)})
        two.loc[rng.random(500) < 0.3, "size"] = np.nan
        drift = hg.measure_drift(one, two, rng.integers(0, 2, 500), np.ones(500, dtype=int))
        assert set(drift.drifted) == {"kind", "size"}
        assert drift.target.p < 1e-6

    def test_holm_is_the_textbook(self):
        columns = [ColumnDrift(str(p), "KS", 0.0, p) for p in (0.01, 0.04, 0.03)]
        assert [c.p for c in holm(columns)] == pytest.approx([0.03, 0.06, 0.06])


@pytest.mark.mission("L7")
class TestReliability:
    def test_true_probabilities_are_calibrated(self, rng):
        p = rng.random(4000)
        y = (rng.random(4000) < p).astype(int)
        found = reliability(y, np.column_stack([1 - p, p]))
        assert found.ece < 0.03
        assert found.p > 0.01
        assert not found.off
        assert found.brier.value == pytest.approx(np.mean((p - y) ** 2))

    def test_extreme_probabilities_are_overconfident(self, rng):
        p = rng.random(4000)
        y = (rng.random(4000) < p).astype(int)
        hot = 1 / (1 + ((1 - p) / p) ** 3)
        found = reliability(y, np.column_stack([1 - hot, hot]))
        assert found.off
        assert found.overconfident
        cold = 1 / (1 + ((1 - p) / p) ** 0.4)
        found = reliability(y, np.column_stack([1 - cold, cold]))
        assert found.off
        assert not found.overconfident
