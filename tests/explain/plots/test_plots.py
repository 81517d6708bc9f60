"""R6 and histories: what is drawn is what was computed."""

from __future__ import annotations

import numpy as np
import pytest

import hinge as hg

matplotlib = pytest.importorskip("matplotlib", reason="drawing needs the [plot] extra")
matplotlib.use("Agg")


@pytest.fixture
def ax():
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots()
    yield axes
    plt.close(figure)


@pytest.mark.mission("R6")
def test_losses_against_margin(ax):
    losses = [hg.Hinge(), hg.Logistic(1 / np.log(2)), hg.ZeroOne()]
    hg.plots.plot_losses(losses, ax=ax)
    assert len(ax.lines) == 3
    for line, loss in zip(ax.lines, losses):
        m, value = line.get_data()
        assert value == pytest.approx(loss.value(np.ones_like(m), m))
    assert "margin" in ax.get_xlabel()


@pytest.mark.mission("R6")
def test_losses_against_residual(ax):
    hg.plots.plot_losses([hg.Squared(), hg.Huber(1.0)], ax=ax)
    r, value = ax.lines[0].get_data()
    assert value == pytest.approx(0.5 * r**2)
    with pytest.raises(ValueError, match="pictures of their own"):
        hg.plots.plot_losses([hg.Squared(), hg.Hinge()], ax=ax)


@pytest.mark.mission("R6")
def test_norm_contours(ax):
    hg.plots.plot_norm_contours((0.5, 1.0, 2.0, np.inf), radius=2.0, ax=ax)
    for line, q in zip(ax.lines, (0.5, 1.0, 2.0, np.inf)):
        w = np.array(line.get_data())
        size = np.abs(w).max(axis=0) if np.isinf(q) else (np.abs(w) ** q).sum(axis=0) ** (1 / q)
        assert size == pytest.approx(np.full(w.shape[1], 2.0))


@pytest.mark.mission("R6")
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_the_ball_touches_the_contour_at_the_constrained_optimum(norm, ax, rng):
    X = rng.normal(size=(50, 2))
    y = X @ [2.0, 0.3] + 0.1 * rng.normal(size=50)
    hg.plots.plot_risk_contours(X, y, hg.Squared(), norm=norm, radius=1.0, ax=ax)
    free, bound = (np.array(line.get_xydata()[0]) for line in ax.lines[-2:])
    assert free == pytest.approx(np.linalg.lstsq(X, y)[0], abs=1e-3)
    assert np.linalg.norm(bound, 1 if norm == "l1" else 2) == pytest.approx(1.0, abs=1e-5)
    if norm == "l1":
        assert bound == pytest.approx([1.0, 0.0], abs=1e-6)  # a corner of the diamond
    else:
        g = X.T @ (X @ bound - y)
        assert abs(g[0] * bound[1] - g[1] * bound[0]) <= 1e-3 * np.linalg.norm(g)  # the normals line up
    with pytest.raises(ValueError, match="two weights"):
        hg.plots.plot_risk_contours(np.ones((5, 3)), np.ones(5), hg.Squared(), ax=ax)


def test_history(ax, rng):
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    model = hg.Learner(loss=hg.Squared(), penalty=hg.L1(0.05), solver="proximal-gradient", history=True).fit(X, y)
    hg.plots.plot_history(model, ax=ax)
    x, excess = ax.lines[0].get_data()
    assert len(x) == len(model.history_)
    lowest = min(r.objective for r in model.history_)
    expected = [r.objective - lowest for r in model.history_]
    known = np.isfinite(excess)
    assert excess[known] == pytest.approx(np.array(expected)[known])
    hg.plots.plot_history(model.history_, against="seconds", ax=ax)
    with pytest.raises(TypeError, match="history=True"):
        hg.plots.plot_history(hg.Learner(loss=hg.Squared()).fit(X, y), ax=ax)
