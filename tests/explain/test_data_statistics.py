"""The checks of data against their formulas, written out in NumPy."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
import scipy.stats

import hinge as hg
from hinge.explain.diagnosis.data_checks import (
    across,
    check_data,
    column_skill,
    conflict_risk,
    doubtful_rows,
    leak_suspects,
    near_copies,
    overlap,
    scale_ratio,
)  # fmt: skip
from hinge.select.measure import make_measure
from hinge.tables.kinds import typed_columns

REGRESSION = SimpleNamespace(classes=None, probabilities=False)


def labels(k: int, probabilities: bool = True) -> SimpleNamespace:
    return SimpleNamespace(classes=np.arange(k), probabilities=probabilities)


def columns(**arrays):
    import pandas as pd

    return typed_columns(pd.DataFrame(arrays))


class TestDataChecks:
    @pytest.mark.parametrize("kind", ["numbers", "ties", "gaps"])
    @pytest.mark.parametrize("classes", [None, 3])
    def test_skill_is_the_variance_explained_by_the_means_of_bins(self, kind, classes, rng):
        n = 160
        x = rng.normal(size=n) if kind != "ties" else rng.integers(0, 4, n).astype(float)
        if kind == "ties":
            x[:4] = [7.0, 7.0, 8.0, 9.0]  # once, or never, among the rows to learn from
        y = x + rng.normal(size=n) if classes is None else np.digitize(x + rng.normal(size=n), [0.0, 1.0])
        if kind == "gaps":
            x[::7] = np.nan
        known = x[~np.isnan(x)]
        cuts = np.unique(known) if kind == "ties" else np.quantile(known, np.linspace(0, 1, 9)[1:-1])  # 160/20 = 8 bins
        place = np.where(np.isnan(x), -1, np.searchsorted(cuts, x))
        Y = scipy.stats.rankdata(y)[:, None] if classes is None else np.eye(3)[y]
        half, left, total = np.random.default_rng(0).permutation(n) % 2, 0.0, 0.0
        for side in (0, 1):
            learn, test = half != side, half == side
            for r in np.flatnonzero(test):
                same = learn & (place == place[r])
                mean = Y[same].mean(axis=0) if np.any(same) else Y[learn].mean(axis=0)
                left, total = left + np.sum((Y[r] - mean) ** 2), total + np.sum((Y[r] - Y[learn].mean(axis=0)) ** 2)
        found = column_skill(x, y, REGRESSION if classes is None else labels(3))
        assert found == pytest.approx(1 - left / total)

    def test_a_constant_target_is_not_explained(self):
        assert column_skill(np.arange(50.0), np.zeros(50, dtype=int), labels(1)) == 0.0

    def test_suspects_explain_nine_tenths(self, rng):
        y = rng.normal(size=2000)
        found = leak_suspects(columns(a=y, b=y + 0.05 * rng.normal(size=2000), c=rng.normal(size=2000)), y, REGRESSION)
        assert [name for name, _ in found] == ["a", "b"]
        assert found[0][1] >= found[1][1] >= 0.9

    def test_copies_are_columns_with_a_correlation_of_one(self, rng):
        a, b, noise = rng.normal(size=(3, 50))
        b -= a * (a @ b) / (a @ a)
        near = a + 0.005 * np.linalg.norm(a) * b / np.linalg.norm(b)
        far = a + 0.05 * np.linalg.norm(a) * b / np.linalg.norm(b)
        table = columns(a=a, still=np.ones(50), noise=noise, far=far, near=near, minus=3 - 2 * a)
        assert abs(np.corrcoef(a, near)[0, 1]) > 0.9999 > abs(np.corrcoef(a, far)[0, 1])
        assert near_copies(table) == (("near", "a"), ("minus", "a"))
        assert near_copies(columns(a=a, gone=np.full(50, np.nan), twin=2 * a)) == (("twin", "a"),)
        assert near_copies(columns(a=[1.0, 2.0], b=[2.0, 4.0])) == ()  # two rows always lie on a line
        assert near_copies(columns(a=[1.0, 2.0, 3.0], b=[2.0, 4.0, 6.0])) == (("b", "a"),)

    def test_single_columns_and_small_tables(self, rng):
        y = rng.normal(size=60)
        alone = check_data(y[:, None], y, REGRESSION, [])
        assert alone.leaks == ()  # the only column cannot be removed
        pair = check_data(np.column_stack([y, rng.normal(size=60)]), y, REGRESSION, [])
        assert [name for name, _ in pair.leaks] == ["x0"]
        assert scale_ratio(columns(a=[1.0, 3.0], b=[np.nan, 5.0], c=[10.0, 30.0])) == pytest.approx(10.0)
        assert near_copies(columns(a=[1.0, 1.0, 1.0 + 1e-200], b=[1.0, 2.0, 4.0], c=[-2.0, -4.0, -8.0])) == (
            ("c", "b"),
        )

    @pytest.mark.parametrize(("n", "bins"), [(60, 4), (99, 4), (119, 5), (120, 6), (1279, 63), (2000, 64)])
    def test_a_bin_holds_twenty_rows(self, n, bins):
        """n // 20 bins, from 4 to 64: a target that alternates between the bins is explained, one that alternates within is not."""
        x = (np.arange(n) + 0.5) / n
        cuts = np.quantile(x, np.linspace(0, 1, bins + 1)[1:-1])
        y = np.searchsorted(cuts, x, side="left") % 2
        assert column_skill(x, y, labels(2)) == pytest.approx(1.0)
        other = np.quantile(x, np.linspace(0, 1, bins + 2)[1:-1])
        assert column_skill(x, np.searchsorted(other, x, side="left") % 2, labels(2)) < 1.0

    def test_scales(self, rng):
        a, b = rng.normal(size=40), 30 * rng.normal(size=40)
        b[3] = np.nan
        expected = np.nanstd(b) / np.std(a)
        found = scale_ratio(columns(a=a, b=b, still=np.ones(40), text=["u", "v"] * 20))
        assert found == pytest.approx(max(expected, 1 / expected))
        assert scale_ratio(columns(still=np.ones(4))) == 1.0

    def test_shares_of_copies(self):
        keys = np.array([0, 1, 2, 0, 3, 1])
        folds = [(np.array([0, 1, 2]), np.array([3, 4])), (np.array([3, 4]), np.array([0, 1, 2, 5]))]
        assert across(keys, folds) == pytest.approx(np.mean([1 / 2, 1 / 4]))
        assert across(keys, []) == 0.0
        train = columns(a=[1.0, 2.0, 3.0], b=[1.0, 1.0, 2.0])
        assert overlap(train, np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 2.0], [3.0, 1.0]])) == 0.5

    def test_conflicts(self, rng):
        inputs, y = rng.integers(0, 4, 30), rng.normal(size=30)
        mean = np.array([y[inputs == i].mean() for i in inputs])
        assert conflict_risk(inputs, y, REGRESSION) == pytest.approx(np.mean((y - mean) ** 2))
        codes = rng.integers(0, 3, 30)
        P = np.array([np.bincount(codes[inputs == i], minlength=3) / np.sum(inputs == i) for i in inputs])
        brier = 0.5 * np.mean(np.sum((np.eye(3)[codes] - P) ** 2, axis=1))
        assert conflict_risk(inputs, codes, labels(3)) == pytest.approx(brier)

    def test_targets_far_from_the_median_residual(self, rng):
        """Beyond eight robust standard deviations, 1.4826 median |r − median r|; the worst first."""
        y, output = rng.normal(size=51), 0.3 + np.zeros(51)
        residual = y - output
        centre = np.median(residual)
        spread = 1.4826 * np.median(np.abs(residual - centre))
        y[[4, 9, 20]] = output[0] + np.array([centre - 20 * spread, centre + 40 * spread, centre + 4 * spread])
        rows = rng.permutation(51)
        held = SimpleNamespace(rows=rows, output=output)
        targets = np.empty(51)
        targets[rows] = y
        found, expected = doubtful_rows(targets, REGRESSION, held)
        assert list(found) == list(rows[[9, 4]])
        assert expected is None
        residuals = (
            np.array([-1.0, 1.0, -1.0, 1.0, 0.0, 1.4826 * 8 + 1e-6, -1.4826 * 8 + 1e-6]) + 2.0
        )  # median 2, MAD 1
        some, _ = doubtful_rows(residuals + 5.0, REGRESSION, SimpleNamespace(rows=np.arange(7), output=np.full(7, 5.0)))
        assert list(some) == [5]
        nothing, _ = doubtful_rows(np.ones(9), REGRESSION, SimpleNamespace(rows=np.arange(9), output=np.zeros(9)))
        assert len(nothing) == 0

    def test_labels_that_the_model_does_not_believe(self, rng):
        p = rng.dirichlet([0.3, 0.3, 0.3], 200)
        y = np.array([rng.choice(3, p=row) for row in p])
        y[:10] = p[:10].argmin(axis=1)
        usual = np.array([p[y == c, c].mean() for c in range(3)])
        guess, own = p.argmax(axis=1), p[np.arange(200), y]
        sure = p.max(axis=1) >= usual[guess]
        suspects = [i for i in range(200) if guess[i] != y[i] and sure[i] and own[i] < 0.1]
        found, expected = doubtful_rows(y, labels(3), SimpleNamespace(rows=np.arange(200), output=p))
        assert list(found) == sorted(suspects, key=lambda i: own[i])
        assert expected == pytest.approx(sum(q for i in range(200) if sure[i] for q in p[i] if q < 0.1))
        none, unknown = doubtful_rows(y, labels(3, probabilities=False), SimpleNamespace(rows=np.arange(200), output=p))
        assert (len(none), none.dtype.kind, unknown) == (0, "i", None)


def test_data_without_comparable_columns():
    """A sparse matrix that is too large to be looked at column by column: only the targets are checked."""
    wide, y = scipy.sparse.csr_array((30, 1_000_000)), np.repeat([0, 1], [20, 10])
    found = check_data(wide, y, labels(2), [])
    assert typed_columns(wide) == []
    assert (found.smallest_class, found.smallest_class_count) == (1 / 3, 10)
    assert (found.leaks, found.constant, found.copies, found.ids, found.doubtful) == ((), (), (), (), ())
    assert (found.duplicates, found.duplicates_across_folds, found.conflict, found.missing) == (0.0, 0.0, 0.0, 0.0)
    assert (found.duplicates_in_test, found.doubtful_count, found.doubtful_expected, found.scale_ratio) == (
        None,
        0,
        None,
        1.0,
    )


def test_measures_name_their_classes(rng):
    assert make_measure(hg.Ridge(), rng.normal(size=20)).classes is None
    assert list(make_measure(hg.LogisticRegression(), rng.integers(0, 3, 30)).classes) == [0, 1, 2]
