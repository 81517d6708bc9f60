"""Importances by a measure, partial dependence on a given grid, and the names of rows in findings."""

from __future__ import annotations

import numpy as np
import pytest

import hinge as hg
from hinge.select.measure import make_measure


@pytest.mark.mission("T4")
def test_importances_by_a_measure_are_rises_of_the_mean_loss(rng):
    """For f = ⟨w, x⟩ a shuffled column raises the squared error by 2 w_j² Var(x_j) on average."""
    X = rng.normal(size=(4000, 3))
    y = X @ [2.0, 1.0, 0.0] + rng.normal(size=4000)
    model = hg.LinearRegression().fit(X, y)
    found = hg.permutation_importance(model, X, y, measure=make_measure(model, y), n_repeats=5)
    expected = 2 * model.coef_**2 * X.var(axis=0)
    assert np.all(np.abs(found.importances_mean - expected) <= 5 * found.standard_error + 1e-3)
    assert found.baseline == pytest.approx(np.mean((y - model.predict(X)) ** 2))
    assert found.standard_error[0] > found.standard_error[1] > found.standard_error[2]


def test_partial_dependence_takes_a_grid_and_every_class(rng):
    X = rng.normal(size=(200, 2))
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=200), [-0.5, 0.5])
    model = hg.LogisticRegression().fit(X, y)
    grid = [-1.0, 0.25, 2.0]
    found = hg.partial_dependence(model, X, 0, grid=grid, target="all")
    for k, value in enumerate(grid):
        moved = X.copy()
        moved[:, 0] = value
        np.testing.assert_allclose(found.average[k], model.predict_proba(moved).mean(axis=0), rtol=1e-12)
    with pytest.raises(ValueError, match="grid gives the values of one column"):
        hg.partial_dependence(model, X, (0, 1), grid=grid)


def test_findings_name_rows_by_their_names(rng):
    X = rng.normal(size=(300, 2))
    y = 3 * X[:, 0] + 0.1 * rng.normal(size=300)
    y[[17, 200]] += 50.0
    names = np.arange(300) + 1000
    skip = ["learning", "rivals", "probes", "bias_variance"]
    for most in (300, 250):  # also where the experiments use a sample of the rows
        report = hg.diagnose(hg.LinearRegression(), X, y, skip=skip, max_rows=most, row_names=names)
        assert set(report.data.doubtful) <= {1017, 1200}
        assert report.data.doubtful
