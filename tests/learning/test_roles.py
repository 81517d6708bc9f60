"""Weights, exposures, offsets, groups and times in hg.learn and hinge fit."""

from __future__ import annotations

import json

import numpy as np
import pytest

import hinge as hg
from hinge.errors import UserError
from hinge.learning.roles import Roles
from hinge.learning.run import hold_out
from hinge.learning.trials import split

pl = pytest.importorskip("polars", reason="tables need the [cli] extra")

QUICK = {"models": "linear", "seconds": 600.0}


def counts(rng, n=1500):
    x, years = rng.normal(size=n), rng.uniform(0.05, 3.0, n)
    y = rng.poisson(np.exp(0.5 * x - 1.0) * years)
    return pl.DataFrame({"x": x, "z": rng.normal(size=n), "years": years, "claims": y})


@pytest.mark.mission("P1")
def test_counts_are_rates_times_exposure(rng):
    frame = counts(rng)
    found = hg.learn(frame, "claims", exposure="years", **QUICK)
    assert found.profile.task == "count"
    assert found.profile.left_out["years"] == "the exposure of rows"
    new = pl.DataFrame({"x": [0.0, 0.0, 1.0], "z": [0.0] * 3, "years": [1.0, 2.0, 1.0]})
    once, twice, other = found.model.predict(new)
    assert twice == pytest.approx(2 * once)
    assert once == pytest.approx(np.exp(-1.0), rel=0.2)
    assert other / once == pytest.approx(np.exp(0.5), rel=0.2)
    assert found.model.predict(new.drop("years"))[1] == pytest.approx(once)  # per unit of exposure
    # An offset is the logarithm of an exposure.
    offset = frame.with_columns(pl.col("years").log().alias("log years")).drop("years")
    again = hg.learn(offset, "claims", task="count", offset="log years", **QUICK)
    np.testing.assert_allclose(
        again.model.predict(new.with_columns(pl.col("years").log().alias("log years"))), [once, twice, other], rtol=1e-6
    )


def test_the_deviance_with_exposure_is_that_of_the_counts(rng):
    from sklearn.metrics import mean_poisson_deviance

    frame = counts(rng)
    found = hg.learn(frame, "claims", exposure="years", **QUICK)
    held = frame[found.test]
    mean = found.evidence.prediction * held["years"].to_numpy()
    whole = found.evidence.score * frame["years"].mean()  # weights have mean one
    assert whole == pytest.approx(mean_poisson_deviance(held["claims"].to_numpy(), mean), rel=1e-9)


def test_a_real_target_is_measured_from_its_offset(rng):
    n = 400
    x, base = rng.normal(size=n), 100 * rng.normal(size=n)
    frame = pl.DataFrame({"x": x, "base": base, "y": base + x + 0.1 * rng.normal(size=n)})
    found = hg.learn(frame, "y", offset="base", **QUICK)
    np.testing.assert_allclose(found.model.predict(frame), base + x, atol=0.3)
    assert found.score < 0.2


@pytest.mark.parametrize("models", ["linear", "tree", "boosting", "forest", "kernel", "network"])
@pytest.mark.parametrize("task", ["real", "binary"])
def test_rows_of_weight_zero_do_not_count(rng, models, task):
    n = 600
    x = rng.normal(size=n)
    weight = np.where(np.arange(n) % 3 == 0, 0.0, 1.5)
    f = np.where(weight > 0, x, -x) + 0.1 * rng.normal(size=n)
    y = f if task == "real" else np.where(f > 0, "yes", "no")
    frame = pl.DataFrame({"x": x, "w": weight, "y": y})
    found = hg.learn(frame, "y", weight="w", models=models, seconds=600.0, simple=True)
    grid = pl.DataFrame({"x": [-1.5, 1.5]})
    if task == "real":
        low, high = found.model.predict(grid)
        assert low < -0.7
        assert high > 0.7
    else:
        p = found.model.predict_proba(grid)[:, 1]
        assert p[0] < 0.3
        assert p[1] > 0.7
    assert found.evidence.explained > 0.3


def test_groups_are_on_one_side_of_every_split(rng):
    group = rng.integers(0, 40, 2000)
    roles, y = Roles(group=group), rng.normal(size=2000)
    train, test = hold_out(y, "real", 0, roles)
    assert not set(group[train]) & set(group[test])
    assert 0.1 < len(test) / 2000 < 0.3
    for fold in split(y, "real", 5, 0, roles):
        assert not set(group[fold.train]) & set(group[fold.test])
        assert len(fold.test) > 200


def test_a_group_that_gives_the_answer_is_no_help_across_groups(rng):
    n = 900
    person = rng.integers(0, 60, n)
    taste = rng.normal(size=60) * 3
    frame = pl.DataFrame(
        {"age": 20 + person % 13, "shoe": person // 13 * 1.0, "who": person, "y": taste[person] + rng.normal(size=n)}
    )
    apart = hg.learn(frame, "y", group="who", models="tree", seconds=600.0)
    mixed = hg.learn(frame.drop("who"), "y", models="tree", seconds=600.0)
    assert apart.score > 1.2 * mixed.score
    assert "who" in apart.profile.left_out


def test_later_rows_score_the_model(rng):
    n = 1500
    when = rng.permutation(n)
    roles, y = Roles(order=when), rng.normal(size=n)
    train, test = hold_out(y, "real", 0, roles)
    assert when[test].min() > when[train].max()
    for fold in split(y, "real", 5, 0, roles):
        assert np.ptp(when[fold.test]) == len(fold.test) - 1
    x = rng.normal(size=n)
    frame = pl.DataFrame(
        {"when": [f"20{10 + k // 300:02}-{k // 25 % 12 + 1:02}-{k % 25 + 1:02}" for k in when], "x": x}
    )
    frame = frame.with_columns(pl.Series("y", x * np.where(when < 1200, 1.0, -1.0) + 0.1 * rng.normal(size=n)))
    found = hg.learn(frame, "y", time_column="when", **QUICK)
    assert "by time" in found.evidence.held_out
    assert found.evidence.explained < 0.2  # the relation has turned


def test_copies_of_a_row_stay_together(rng):
    n = 500
    frame = pl.DataFrame({"x": rng.normal(size=n), "y": np.where(rng.random(n) < 0.5, "a", "b")})
    frame = pl.concat([frame] * 3).sample(fraction=1.0, shuffle=True, seed=1)
    found = hg.learn(frame, "y", models="tree", seconds=600.0)
    inside = set(frame[np.setdiff1d(np.arange(3 * n), found.test)]["x"])
    assert not inside & set(frame[found.test]["x"])
    assert any("kept together" in note.text for note in found.profile.notes)
    assert found.evidence.explained < 0.1  # noise is not learned by heart


@pytest.mark.parametrize(
    ("option", "column", "message"),
    [
        ("weight", "wait", "no such column"),
        ("weight", "negative", "finite and not negative"),
        ("exposure", "x", "finite and not negative"),
        ("exposure", "zero", "have no exposure"),
        ("group", "one", "one group"),
        ("time_column", "word", "no times"),
    ],
)
def test_roles_that_cannot_be_are_named(rng, option, column, message):
    frame = counts(rng, 200).with_columns(
        pl.lit(-1.0).alias("negative"), pl.lit("only").alias("one"), pl.lit("word").alias("word"),
        pl.Series("zero", np.arange(200.0)),
    )  # fmt: skip
    with pytest.raises(UserError, match=message):
        hg.learn(frame, "claims", **{option: column}, **QUICK)


def test_the_command_takes_roles(hinge, tmp_path, rng):
    path = tmp_path / "claims.csv"
    counts(rng).write_csv(path)
    args = ("--models", "linear", "--time", "600", "-o", tmp_path / "out", "--json")
    code, out, err = hinge("fit", path, "-t", "claims", "--exposure", "years", *args)
    assert code == 0, err
    assert json.loads(out)["exposure"] == "years"
    code, out, err = hinge("predict", tmp_path / "out" / "model.hinge", path)
    assert code == 0, err
    predicted = np.array([float(line) for line in out.splitlines()[1:]])
    found = hg.learn(path, "claims", exposure="years", **QUICK)
    np.testing.assert_allclose(predicted, found.model.predict(pl.read_csv(path)), rtol=1e-6)
    assert "--time-column" in hinge("fit", path, "-t", "claims", "--time-column", "x2", *args)[2]
