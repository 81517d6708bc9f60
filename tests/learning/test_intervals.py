"""Intervals and sets of predictions, scores on other tables, standard input and output."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

import hinge as hg
from hinge.errors import UserError
from hinge.learning.intervals import threshold
from kit.command import table

pl = pytest.importorskip("polars", reason="tables need the [cli] extra")

QUICK = {"models": "linear", "seconds": 600.0}


def data(rng, n, task):
    x = rng.normal(size=n)
    s = x + rng.normal(size=n)
    y = {
        "real": s,
        "multiclass": np.array(["low", "mid", "top"])[np.digitize(s, [-1, 1])],
        "count": rng.poisson(np.exp(x / 2)),
    }
    return pl.DataFrame({"x": x, "z": rng.normal(size=n), "y": y[task]})


@pytest.mark.parametrize("level", [0.5, 0.9])
@pytest.mark.parametrize("task", ["real", "count", "multiclass"])
def test_new_rows_are_covered(rng, task, level):
    frame, new = data(rng, 2000, task), data(rng, 3000, task)
    model = hg.learn(frame, "y", task=task, **QUICK).model
    if task == "multiclass":
        sets = model.predict_set(new, level)
        covered = np.mean([own in found for own, found in zip(new["y"], sets)])
        assert all(found for found in sets)
        with pytest.raises(TypeError, match="predict_set"):
            model.predict_interval(new)
    else:
        ends = model.predict_interval(new, level)
        y = new["y"].to_numpy()
        covered = np.mean((ends[:, 0] <= y) & (y <= ends[:, 1]))
        assert np.all(ends[:, 0] <= ends[:, 1])
        with pytest.raises(TypeError, match="predict_interval"):
            model.predict_set(new)
    assert covered > level - 0.08  # 400 rows of calibration: a deviation of the level of at most 0.025
    if task == "real":
        assert covered < level + 0.08


def test_the_threshold_is_the_order_statistic():
    card = {"conformal": {"rows": 9, "ranks": list(range(1, 10)), "scores": [float(k) for k in range(1, 10)]}}
    assert threshold(card, 0.5) == 5.0  # the ⌈10 · 0.5⌉-th
    assert threshold(card, 0.9) == 9.0
    assert threshold(card, 0.95) == np.inf  # needs more rows
    with pytest.raises(UserError, match="between 0 and 1"):
        threshold(card, 1.5)
    with pytest.raises(UserError, match="fit it again"):
        threshold({}, 0.5)


@pytest.mark.parametrize("task", ["real", "binary"])
def test_the_command_adds_intervals_and_reads_standard_input(hinge, tmp_path, monkeypatch, task):
    path = table(tmp_path / "t.csv", n=300, task=task)
    content = path.read_bytes()

    def stdin():
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))

    stdin()
    args = ("--models", "linear", "--time", "600", "-o", tmp_path / "out", "--json")
    code, out, err = hinge("fit", "-", "-t", "y", *args)
    assert code == 0, err
    assert json.loads(out)["data"] == "stdin.csv"
    stdin()
    model = tmp_path / "out" / "model.hinge"
    code, out, err = hinge("predict", model, "-", "--interval", "0.9", "--out", "-")
    assert code == 0, err
    found = pl.read_csv(io.StringIO(out))
    assert found.height == 300
    if task == "real":
        low, high = found["90 % low y"], found["90 % high y"]
        y = pl.read_csv(path)["y"]
        assert ((low <= y) & (y <= high)).mean() > 0.85
    else:
        assert set(found["90 % set of y"]) <= {"no", "yes", "no|yes"}
    code, _, err = hinge("predict", model, path, "--interval", "2")
    assert code == 2
    assert "between 0 and 1" in err


def test_another_table_scores_the_model_and_its_drift_is_named(rng, hinge, tmp_path):
    frame, new = data(rng, 800, "real"), data(rng, 800, "real")
    moved = new.with_columns(pl.col("z") + 3.0)
    found = hg.learn(frame, "y", test=moved, **QUICK)
    note = next(n.text for n in found.evidence.notes if n.code == "D23")
    assert "differ from the training rows in z" in note
    assert found.model.card["test"]["drifted"] == ["z"]
    rmse = np.sqrt(np.mean((found.model.predict(moved) - moved["y"].to_numpy()) ** 2))
    assert found.model.card["test"]["score"] == pytest.approx(rmse)
    frame.write_csv(tmp_path / "a.csv")
    new.write_csv(tmp_path / "b.csv")
    args = ("--models", "linear", "--time", "600", "-o", tmp_path / "out", "--json")
    code, out, err = hinge("fit", tmp_path / "a.csv", "-t", "y", "--test", tmp_path / "b.csv", *args)
    assert code == 0, err
    assert json.loads(out)["test"]["rows"] == 800


@pytest.mark.parametrize("task", ["real", "multiclass"])
def test_extra_columns_and_the_target_are_ignored(rng, task):
    frame = data(rng, 300, task)
    model = hg.learn(frame, "y", task=task, **QUICK).model
    bare = frame.drop("y")
    extra = frame.with_columns(pl.lit("noise").alias("other")).select("other", "y", "z", "x")
    assert (model.predict(extra) == model.predict(bare)).all()
    assert (model.predict(extra.to_pandas()) == model.predict(bare)).all()
