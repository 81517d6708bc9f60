"""The statistics of drift and calibration against their formulas, written out in NumPy or taken from SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
import sklearn.metrics

import hinge as hg
from hinge.explain.calibration import reliability
from hinge.explain.drift import compare_column, compare_target, two_sample_test
from hinge.models.trees.boosting import HistGradientBoostingClassifier


class TestTwoSamples:
    def test_auc_and_p_value_are_the_formulas(self, rng):
        """Mean AUC over three divisions into three folds; the variance of U, with a correlation of 1/3 between folds."""
        table, side = rng.normal(size=(61, 2)), np.repeat([0, 1], [36, 25])
        table[side == 1] += 0.4
        draw, aucs, variances = np.random.default_rng(5), [], []
        for _ in range(3):
            fold = np.empty(61, dtype=int)
            for s in (0, 1):
                rows = np.flatnonzero(side == s)
                fold[rows] = draw.permutation(len(rows)) % 3
            for k in range(3):
                model = HistGradientBoostingClassifier(
                    max_iter=30, max_leaf_nodes=8, early_stopping=False, random_state=0
                )
                score = model.fit(table[fold != k], side[fold != k]).predict_proba(table[fold == k])[:, 1]
                aucs.append(sklearn.metrics.roc_auc_score(side[fold == k], score))
                n0, n1 = np.sum(side[fold == k] == 0), np.sum(side[fold == k] == 1)
                variances.append((n0 + n1 + 1) / (12 * n0 * n1))
        auc, p = two_sample_test(table, side, 5)
        assert auc == pytest.approx(np.mean(aucs))
        error = np.sqrt(np.mean(variances) * (1 + 2 / 3) / 3)
        assert p == pytest.approx(scipy.stats.norm.sf((np.mean(aucs) - 0.5) / error))

    def test_folds_are_not_taken_for_independent(self):
        """Without drift the variance of z is at most 1: below 1 + 4√(2/120) for 120 pairs of samples."""
        z = []
        for seed in range(120):
            table = np.random.default_rng(seed).normal(size=(90, 2))
            z.append(scipy.stats.norm.isf(two_sample_test(table, np.arange(90) % 2, seed, repeats=1)[1]))
        assert abs(np.mean(z)) < 4 / np.sqrt(120)
        assert np.var(z) < 1 + 4 * np.sqrt(2 / 120)

    @pytest.mark.parametrize("n", [0, 2])
    def test_folds_without_rows_of_both_sides_are_left_out(self, n, rng):
        """With no row of one side there is no AUC; with two, only two of the three folds have one."""
        side = np.repeat([0, 1], [30, n])
        auc, p = two_sample_test(rng.normal(size=(30 + n, 1)), side, 0)
        assert (auc, p) == (0.5, 1.0) if n == 0 else 0 <= auc <= 1
        if n:
            error = np.sqrt((10 + 1 + 1) / (12 * 10) * (1 + 1 / 3) / 2)
            assert p == pytest.approx(scipy.stats.norm.sf((auc - 0.5) / error))

    def test_columns_of_numbers(self, rng):
        one, two = rng.normal(size=80), rng.normal(size=60) + 0.3
        found, expected = compare_column("a", one, two, False), scipy.stats.ks_2samp(one, two, method="asymp")
        assert (found.name, found.test) == ("a", "KS")
        assert (found.statistic, found.p) == pytest.approx((expected.statistic, expected.pvalue))

    def test_columns_of_categories(self, rng):
        one, two = rng.integers(0, 3, 90).astype(float), rng.integers(0, 4, 70).astype(float)
        counts = np.array([[np.sum(column == v) for v in range(4)] for column in (one, two)])
        expected = scipy.stats.chi2_contingency(counts, correction=False)
        for category in (True, False):  # numbers with few values are compared like categories
            found = compare_column("a", one, two, category)
            assert (found.test, found.p) == ("chi2", pytest.approx(expected.pvalue))
            assert found.statistic == pytest.approx(np.sqrt(expected.statistic / 160))

    def test_rare_values_are_taken_together(self):
        """Values seen fewer than ten times in both samples form one column of the table; nine are rare, ten are not."""
        one = np.repeat([0.0, 1.0, 2.0, 3.0, 4.0], [30, 20, 5, 4, 2])
        two = np.repeat([0.0, 1.0, 2.0, 3.0, 4.0], [20, 35, 5, 5, 1])
        expected = scipy.stats.chi2_contingency([[30, 20, 5, 6], [20, 35, 5, 6]], correction=False)
        found = compare_column("a", one, two, True)
        assert found.p == pytest.approx(expected.pvalue)
        assert found.statistic == pytest.approx(np.sqrt(expected.statistic / 127))

    def test_a_column_with_one_value_does_not_differ(self):
        found = compare_column("a", np.ones(20), np.ones(30), False)
        assert (found.statistic, found.p) == (0.0, 1.0)

    def test_gaps_are_a_value_of_their_own(self, rng):
        """Tenths of the known range, and the gaps."""
        one, two = rng.normal(size=300), rng.normal(size=300) + 0.1
        one[:60], two[:40] = np.nan, np.nan
        cuts = np.quantile(np.concatenate([one[60:], two[40:]]), np.linspace(0.1, 0.9, 9))
        codes = [np.where(np.isnan(column), -1, np.searchsorted(cuts, column)) for column in (one, two)]
        counts = [[np.sum(c == v) for v in range(-1, 10)] for c in codes]
        found = compare_column("a", one, two, False)
        expected = scipy.stats.chi2_contingency(counts, correction=False)
        assert found.p == pytest.approx(expected.pvalue, abs=0)
        assert found.statistic == pytest.approx(np.sqrt(expected.statistic / 600))
        swapped = compare_column("a", two, one, False)
        assert (swapped.test, swapped.p) == ("chi2", pytest.approx(found.p))

    def test_gaps_in_one_sample_only(self, rng):
        """They are a difference too, on whichever side they are; among categories and few values the gap is one more."""
        known = rng.normal(size=100)
        gaps = np.where(np.arange(100) < 40, np.nan, known)
        cuts = np.quantile(np.concatenate([gaps[40:], known]), np.linspace(0.1, 0.9, 9))
        counts = [[np.sum(np.searchsorted(cuts, c[~np.isnan(c)]) == v) for v in range(10)] for c in (gaps, known)]
        expected = scipy.stats.chi2_contingency(np.column_stack([[40, 0], counts]), correction=False).pvalue
        assert compare_column("a", gaps, known, False).p == pytest.approx(expected, abs=0)
        assert compare_column("a", known, gaps, False).p == pytest.approx(expected, abs=0)
        for levels, shift in ((2, 0.0), (10, 0.0), (11, 0.0), (3, -1.0), (3, -3.0)):
            values = np.arange(44 * levels) % levels + shift
            one, two = values.copy(), values.copy()
            one[: 4 * levels], two[: 2 * levels] = np.nan, np.nan
            counts = [[np.isnan(c).sum(), *(np.sum(c == v) for v in np.unique(values))] for c in (one, two)]
            expected = scipy.stats.chi2_contingency(counts, correction=False).pvalue
            found = compare_column("a", one, two, True)
            assert found.p == pytest.approx(expected)
            if levels <= 10:
                assert compare_column("a", one, two, False) == found

    def test_targets(self, rng):
        y, other = rng.normal(size=50), rng.normal(size=40)
        assert compare_target(y, other).p == pytest.approx(scipy.stats.ks_2samp(y, other, method="asymp").pvalue)
        names = np.array(["a", "b"])
        one, two = rng.integers(0, 2, 60), rng.integers(0, 2, 50)
        counts = [[np.sum(v == 0), np.sum(v == 1)] for v in (one, two)]
        expected = scipy.stats.chi2_contingency(counts, correction=False).pvalue
        assert compare_target(names[one], names[two]).p == pytest.approx(expected)
        assert compare_target(one, two).p == pytest.approx(expected)
        for k, test in ((10, "chi2"), (11, "KS")):  # numbers with more than ten values are compared as numbers
            assert compare_target(np.arange(k), np.arange(k)).test == test
            assert compare_column("a", np.arange(float(k)), np.arange(float(k)), False).test == test
        assert compare_target(np.arange(12).astype(str), np.arange(12).astype(str)).test == "chi2"

    def test_drift_has_to_be_certain_and_large(self):
        drift = hg.measure_drift(np.arange(20.0)[:, None], np.arange(20.0)[:, None])
        assert type(drift)(0.6, 9e-4, (), None).found
        assert not type(drift)(0.599, 9e-4, (), None).found
        assert not type(drift)(0.9, 1e-3, (), None).found
        column = drift.columns[0]
        marked = [type(column)(name, "KS", 0.5, p) for name, p in (("a", 0.0099), ("b", 0.01))]
        assert type(drift)(0.6, 1.0, tuple(marked), None).drifted == ("a",)

    def test_what_a_drift_is_made_of(self, rng):
        """The classifier's AUC on all columns, the target where both samples have one, equal p-values by their statistics."""
        one, two = rng.normal(size=(60, 2)), rng.normal([0.5, 0.0], size=(45, 2))
        y, other = rng.normal(size=60), rng.normal(size=45) + 1.0
        found = hg.measure_drift(one, two, y, other, random_state=4)
        draw = np.random.default_rng(4)
        rows, test_rows = draw.permutation(60), draw.permutation(45)
        expected = two_sample_test(np.vstack([one[rows], two[test_rows]]), np.repeat([0, 1], [60, 45]), 4)
        assert (found.auc, found.p) == expected
        assert found.target == compare_target(y, other)
        assert hg.measure_drift(one, two).target is None
        assert hg.measure_drift(one, two, y).target is None
        assert hg.measure_drift(one, two, None, other).target is None
        apart = hg.measure_drift(
            np.column_stack([np.arange(400.0), np.arange(400.0)]), np.arange(800.0).reshape(400, 2) + 300
        )
        assert [c.p for c in apart.columns] == [0.0, 0.0] or apart.columns[0].statistic >= apart.columns[1].statistic
        statistics = [c.statistic for c in apart.columns]
        assert statistics == sorted(statistics, reverse=True)
        alike = hg.measure_drift(one, one + 1e-9)
        assert [c.p for c in alike.columns] == [1.0, 1.0]  # a corrected probability is one at most

    def test_columns_are_sorted_and_corrected(self, rng):
        one, two = rng.normal(size=(200, 3)), rng.normal([0.1, 2.0, 0.5], size=(150, 3))
        found = hg.measure_drift(one, two).columns
        raw = [scipy.stats.ks_2samp(one[:, j], two[:, j], method="asymp").pvalue for j in range(3)]
        assert [c.name for c in found] == [f"x{j}" for j in np.argsort(raw)]
        p = np.sort(raw)
        holm = np.minimum(np.maximum.accumulate(p * [3, 2, 1]), 1)
        assert [c.p for c in found] == pytest.approx(holm)


class TestCalibration:
    @pytest.mark.parametrize("strategy", ["uniform", "quantile"])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_curve_and_error(self, strategy, weighted, rng):
        p, y = rng.random(57), rng.integers(0, 2, 57)
        w = rng.random(57) if weighted else np.ones(57)
        edges = np.linspace(0, 1, 6) if strategy == "uniform" else np.percentile(p, np.linspace(0, 100, 6))
        bins = [(p <= edges[1] if k == 0 else p > edges[k]) & ((p <= edges[k + 1]) | (k == 4)) for k in range(5)]
        true = np.array([np.average(y[b], weights=w[b]) for b in bins])
        predicted = np.array([np.average(p[b], weights=w[b]) for b in bins])
        share = np.array([w[b].sum() for b in bins]) / w.sum()
        given = {"n_bins": 5, "strategy": strategy, "sample_weight": w if weighted else None}
        found = hg.metrics.calibration_curve(y, p, **given)
        np.testing.assert_allclose(found[0], true)
        np.testing.assert_allclose(found[1], predicted)
        assert hg.metrics.expected_calibration_error(y, p, **given) == pytest.approx(share @ np.abs(true - predicted))

    def test_brier_score(self, rng):
        P, y, w = rng.dirichlet([1.0, 2.0, 0.5], 40), rng.integers(0, 3, 40), rng.random(40)
        per_row = ((P - np.eye(3)[y]) ** 2).sum(axis=1)
        assert hg.metrics.brier_score(y, P, sample_weight=w) == pytest.approx(np.average(per_row, weights=w))
        two = y == 1
        assert hg.metrics.brier_score(two, P[:, 1], sample_weight=w) == pytest.approx(
            np.average((P[:, 1] - two) ** 2, weights=w)
        )
        assert hg.metrics.brier_score(two, P[:, 1], pos_label=False) == pytest.approx(np.mean((P[:, 1] - 1 + two) ** 2))

    def test_outcomes(self, rng):
        """One column: the positive class is the larger label, or the given one; a matrix: the most probable class."""
        p = np.array([0.0, 0.2, 0.7, 1.0])
        one_bin = {"n_bins": 1}
        for labels, chosen, share in (([0, 1, 1, 1], None, 0.75), ([0, 1, 1, 1], 0, 0.25), (["b", "a", "a", "b"], None, 0.5),
                                      ([1, 1, 1, 1], None, 1.0), ([0, 0, 0, 0], None, 0.0), ([-1, -1, -1, -1], None, 0.0),
                                      ([0, 0, 0, 0], 0, 1.0)):  # fmt: skip
            true, predicted = hg.metrics.calibration_curve(labels, p, pos_label=chosen, **one_bin)
            assert (true[0], predicted[0]) == pytest.approx((share, p.mean()))
        P = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.6, 0.3, 0.1], [0.2, 0.5, 0.3]])
        labels = np.array(["x", "z", "y", "y"])
        assert hg.metrics.expected_calibration_error(labels, P, n_bins=1) == pytest.approx(abs(0.75 - 0.575))
        assert hg.metrics.expected_calibration_error(labels, P, classes=["x", "z", "y"], n_bins=1) == pytest.approx(
            0.575 - 0.25
        )
        one_hot = labels[:, None] == np.array(["x", "z", "y"])
        assert hg.metrics.brier_score(labels, P, classes=["x", "z", "y"]) == pytest.approx(
            np.mean(np.sum((P - one_hot) ** 2, axis=1))
        )
        for wrong in (np.array([-0.1, 0.5]), np.array([0.5, 1.1]), np.array([np.nan, 0.5])):
            with pytest.raises(ValueError, match="outside"):
                hg.metrics.brier_score([0, 1], wrong)
        for call, message in (
            (lambda: hg.metrics.brier_score(labels, P[:, :2]), "2 columns but there are 3 classes"),
            (lambda: hg.metrics.brier_score([0, 1, 2], p[:3]), "Only binary"),
            (lambda: hg.metrics.calibration_curve([0, 1], p[:2], n_bins=0), "n_bins"),
            (lambda: hg.metrics.calibration_curve([0, 1], p[:2], n_bins=1.5), "n_bins"),
            (lambda: hg.metrics.calibration_curve([0, 1], p[:2], strategy="even"), "strategy"),
            (lambda: hg.metrics.calibration_report([0, 1], p[:2], level=1.0), "level"),
            (lambda: hg.metrics.calibration_report([0, 1], p[:2], level=0.0), "level"),
        ):
            with pytest.raises(ValueError, match=message):
                call()

    def test_a_bin_that_no_draw_reaches_has_no_interval(self):
        """Among 40 rows one alone has a high probability; with one draw it is left out for some seed."""
        p, y = np.r_[np.full(39, 0.1), 0.95], np.r_[np.zeros(39), 1.0]
        for seed in range(9):
            drawn = np.random.default_rng(seed).integers(40, size=40)
            low, high = hg.metrics.calibration_report(y, p, n_bins=2, n_bootstrap=1, random_state=seed).prob_true_band
            assert (low[0], high[0]) == (0.0, 0.0)
            assert np.isnan(low[1]) == (39 not in drawn) == np.isnan(high[1])

    def test_report_is_the_bootstrap(self, rng):
        p, level = rng.random(50), 0.8
        y = (rng.random(50) < p).astype(int)
        found = hg.metrics.calibration_report(y, p, n_bins=4, n_bootstrap=30, level=level, random_state=3)
        draw, errors, briers, curves = np.random.default_rng(3), [], [], []
        place = np.minimum((p * 4).astype(int), 3)
        for _ in range(30):
            rows = draw.integers(50, size=50)
            parts = [rows[place[rows] == k] for k in range(4)]
            errors.append(sum(abs(y[r].sum() - p[r].sum()) / 50 for r in parts))
            briers.append(np.mean((p[rows] - y[rows]) ** 2))
            curves.append([y[r].mean() if len(r) else np.nan for r in parts])
        np.testing.assert_allclose(found.ece_band, np.quantile(errors, [0.1, 0.9]))
        np.testing.assert_allclose(found.brier_band, np.quantile(briers, [0.1, 0.9]))
        np.testing.assert_allclose(found.prob_true_band, np.nanquantile(curves, [0.1, 0.9], axis=0))
        np.testing.assert_allclose(found.share, np.bincount(place, minlength=4) / 50)
        assert found.brier == pytest.approx(np.mean((p - y) ** 2))
        assert found.ece == pytest.approx(hg.metrics.expected_calibration_error(y, p, n_bins=4))

    @pytest.mark.parametrize("k", [2, 3])
    def test_spiegelhalters_test(self, k, rng):
        """z = Σ(y − p)(1 − 2p) / √(Σ(1 − 2p)²p(1 − p)), of the second class of two, or of the most probable one."""
        P, codes = rng.dirichlet(np.ones(k), 80), rng.integers(0, k, 80)
        p = P[:, 1] if k == 2 else P.max(axis=1)
        hit = codes == (1 if k == 2 else P.argmax(axis=1))
        z = np.sum((hit - p) * (1 - 2 * p)) / np.sqrt(np.sum((1 - 2 * p) ** 2 * p * (1 - p)))
        found = reliability(codes, P, bins=5)
        assert found.p == pytest.approx(2 * scipy.stats.norm.sf(abs(z)))
        assert found.overconfident == (z > 0)
        edges = np.percentile(p, [20, 40, 60, 80])
        place = np.searchsorted(edges, p)
        np.testing.assert_allclose(found.predicted, [p[place == b].mean() for b in range(5)])
        np.testing.assert_allclose(found.observed, [hit[place == b].mean() for b in range(5)])
        np.testing.assert_array_equal(found.count, np.bincount(place))
        assert found.ece == pytest.approx(found.count / 80 @ np.abs(found.predicted - found.observed))
        assert found.error_rate.value == pytest.approx(np.mean(codes != P.argmax(axis=1)))
        assert found.log_loss.value == pytest.approx(-np.mean(np.log(P[np.arange(80), codes])))

    def test_certain_probabilities(self):
        """Probabilities of 0 and 1 promise no variance: right ones are calibrated, one wrong one is not."""
        P = np.eye(2)[[0, 1, 1, 0, 1]]
        right, wrong = reliability(np.array([0, 1, 1, 0, 1]), P), reliability(np.array([0, 1, 1, 0, 0]), P)
        assert (right.p, right.ece, right.overconfident) == (1.0, 0.0, False)
        assert (wrong.p, wrong.overconfident) == (0.0, True)
        assert list(right.count) == [2, 3]
        even = reliability(np.array([0, 1, 0, 1]), np.full((4, 2), 0.5))  # z = 0/0, as 1 − 2p = 0
        assert (even.p, even.overconfident, list(even.count)) == (1.0, False, [4])

    def test_off_has_to_be_certain_and_large(self, rng):
        from dataclasses import replace

        found = reliability(rng.integers(0, 2, 40), rng.dirichlet([1.0, 1.0], 40))
        assert replace(found, p=0.0099, ece=0.03).off
        assert not replace(found, p=0.01, ece=0.03).off
        assert not replace(found, p=0.0, ece=0.0299).off
