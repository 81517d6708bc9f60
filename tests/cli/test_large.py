"""``hinge fit`` and ``hinge predict`` over blocks."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hinge as hg


@pytest.fixture
def parts(rng, tmp_path):
    """Three files with numbers, a category, labels and a number to predict."""
    for part in range(3):
        X = rng.normal(size=(400, 2))
        city = rng.choice(["Rome", "Oslo"], 400)
        z = X[:, 0] + (city == "Oslo") + 0.3 * rng.normal(size=400)
        columns = {"a": X[:, 0], "b": X[:, 1], "city": city, "y": np.where(z > 0.5, "yes", "no"), "z": z}
        pq.write_table(pa.table(columns), tmp_path / f"part-{part}.parquet")
    return tmp_path


def test_fit_and_predict_by_pattern(hinge, parts):
    code, out, err = hinge(
        "fit",
        f"{parts}/part-*.parquet",
        "--target",
        "y",
        "--drop",
        "z",
        "--memory",
        "64MB",
        "--out",
        parts / "out",
        "--json",
    )
    assert code == 0, err
    card = json.loads(out)
    assert card["model"] == "HistGradientBoostingClassifier"
    assert card["training_score"] > 0.8
    assert card["passes"] == 3  # categories, rows for the bins, codes
    assert card["bytes"] > 0
    assert card["rows_per_second"] > 0
    assert card["coded_passes"] > 100
    model = hg.load(parts / "out" / "model.hinge")
    assert model.feature_names_in_.tolist() == ["a", "b", "city"]
    place = parts / "out" / "p.parquet"
    code, out, err = hinge(
        "predict", parts / "out" / "model.hinge", f"{parts}/part-*.parquet", "--memory", "64MB", "-o", place
    )
    assert code == 0, err
    assert "1200 predictions" in out
    assert set(pq.read_table(place)["prediction"].to_pylist()) == {"yes", "no"}


def test_numbers_and_linear_models(hinge, parts):
    code, out, err = hinge(
        "fit", f"{parts}/part-*.parquet", "-t", "z", "--drop", "y", "--drop", "city", "--models", "linear", "-o", parts / "out",
        "--checkpoint", parts / "kept", "--json",
    )  # fmt: skip
    assert code == 0, err
    assert json.loads(out)["model"] == "Ridge"
    assert not (parts / "kept").exists()


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--memory", "much"), 3, "memory must be"),
        (("--models", "kernel", "--memory", "1GB"), 2, "boosting and linear"),
        (("--models", "linear", "--memory", "1GB"), 3, "city"),
        (("--target", "nothing", "--memory", "1GB"), 3, "nothing"),
    ],
)
def test_what_cannot_be_done_is_one_line(hinge, parts, options, code, message):
    target = () if "--target" in options else ("--target", "y")
    found, _, err = hinge("fit", f"{parts}/part-*.parquet", *target, *options, "-o", parts / "out")
    assert found == code
    assert message in err
    assert err.count("\n") == 1


def test_predictions_over_blocks_need_a_file(hinge, parts):
    code, _, err = hinge("predict", parts / "m.hinge", f"{parts}/part-*.parquet")
    assert code == 2
    assert "--out" in err


def test_a_cluster_that_does_not_answer(hinge, parts):
    pytest.importorskip("distributed")
    code, _, err = hinge(
        "fit", f"{parts}/part-*.parquet", "-t", "y", "--dask", "tcp://127.0.0.1:9", "-o", parts / "out"
    )
    assert code == 2
    assert "no scheduler answers" in err
