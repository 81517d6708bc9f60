"""The metrics that models are chosen by: each is the mean of losses of rows, and agrees with scikit-learn's figure."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn import metrics

import hinge as hg
from hinge.errors import UserError
from hinge.learning.scores import METRICS, best_constant, details, measure_for, metric_name, positive_class

pl = pytest.importorskip("polars", reason="tables need the [cli] extra")

CLASSES = np.array(["no", "yes"])
QUICK = {"models": "linear,tree", "seconds": 600.0}


def binary(rng, n=500):
    p = np.round(rng.uniform(0.01, 0.99, n), 1)  # with ties
    return (rng.uniform(size=n) < p**2).astype(np.int64), np.column_stack([1 - p, p])


def test_every_metric_of_classes_is_a_mean_of_losses(rng):
    y, p = binary(rng)
    guess = np.argmax(p, axis=1)
    wanted = {
        "log_loss": metrics.log_loss(y, p),
        "brier": metrics.brier_score_loss(y, p[:, 1]),
        "accuracy": 1 - metrics.accuracy_score(y, guess),
        "balanced_accuracy": 1 - metrics.balanced_accuracy_score(y, guess),
        "auc": 1 - metrics.roc_auc_score(y, p[:, 1]),
    }
    assert set(wanted) == set(METRICS["binary"])
    for name, value in wanted.items():
        losses = measure_for("binary", CLASSES, metric=name).pointwise(y, p)
        assert losses.shape == y.shape
        assert np.mean(losses) == pytest.approx(value, abs=1e-12), name


def test_metrics_of_numbers(rng):
    y, s = rng.poisson(3.0, 300).astype(float), rng.uniform(1.0, 5.0, 300)
    rmse = measure_for("real", None, metric="rmse")
    assert rmse.estimate(rmse.pointwise(y, s)).value == pytest.approx(metrics.root_mean_squared_error(y, s))
    assert np.mean(measure_for("count", None, metric="mae").pointwise(y, s)) == pytest.approx(
        metrics.mean_absolute_error(y, s)
    )
    deviance = np.mean(measure_for("count", None, metric="poisson_deviance").pointwise(y, s))
    assert deviance == pytest.approx(metrics.mean_poisson_deviance(y, s))


def test_without_one_of_the_classes_no_row_is_ranked(rng):
    p = rng.uniform(size=(5, 2))
    np.testing.assert_array_equal(measure_for("binary", CLASSES, metric="auc").pointwise(np.ones(5, dtype=int), p), 0.5)


def test_names_of_metrics():
    assert metric_name("ROC-AUC", "binary") == "auc"
    assert metric_name(None, "count") == "poisson_deviance"
    with pytest.raises(UserError, match=r'metric="auc".*multiclass.*log_loss'):
        metric_name("auc", "multiclass")
    with pytest.raises(UserError, match="not known; choose from accuracy"):
        hg.learn("heart", metric="gini", **QUICK)  # before the table is read


def test_the_chosen_model_is_the_best_by_the_metric(rng):
    n = 400
    x = rng.normal(size=n)
    # Errors that are rare and large: the mean and the median of y differ, and so do the models that are best.
    y = x + rng.exponential(size=n) ** 3
    frame = pl.DataFrame({"x": x, "z": rng.normal(size=n), "y": y})
    found = hg.learn(frame, "y", task="real", metric="mae", models="boosting", seconds=600.0, simple=True)
    search = found.search
    assert found.evidence.metric == "mean absolute error"
    assert found.chosen.score.value == pytest.approx(np.mean(np.abs(y - found.chosen.predictions)))
    assert found.score == pytest.approx(np.mean(np.abs(found.evidence.y - found.evidence.prediction)))
    assert search.results[0].score.value == pytest.approx(np.mean(np.abs(y - np.median(y))), rel=0.02)
    assert float(best_constant(y, None, "mae")) == np.median(y)
    # Medians, not means: about as many rows above the predictions as below.
    assert abs(np.mean(y > found.chosen.predictions) - 0.5) < 0.1
    means = hg.learn(frame, "y", task="real", models="boosting", seconds=600.0, simple=True)
    assert np.mean(np.abs(y - means.chosen.predictions)) > 1.1 * found.chosen.score.value


def test_the_positive_class_by_name(rng):
    y, p = binary(rng)
    assert positive_class(None, CLASSES) == 1
    assert positive_class("no", CLASSES) == 0
    with pytest.raises(UserError, match="no such class; the target has 'no' and 'yes'"):
        positive_class("maybe", CLASSES)
    with pytest.raises(UserError, match="two classes"):
        positive_class("no", None)
    of_no = details(y, p, "binary", 0)["average precision"]
    assert of_no == pytest.approx(metrics.average_precision_score(1 - y, p[:, 0]))


def test_the_command_takes_a_metric_and_a_positive_class(rng, hinge, tmp_path):
    n = 300
    x = rng.normal(size=n)
    label = np.where(x + 0.5 * rng.normal(size=n) > 0, "sick", "well")
    file = tmp_path / "table.csv"
    pl.DataFrame({"x": x, "z": rng.normal(size=n), "state": label}).write_csv(file)
    out = tmp_path / "out"
    options = [
        "--models",
        "linear",
        "--time",
        "600",
        "--metric",
        "auc",
        "--positive",
        "sick",
        "--out",
        str(out),
        "--json",
    ]
    code, text, _ = hinge("fit", str(file), "-t", "state", *options)
    assert code == 0
    card = json.loads(text)
    assert (card["metric"], card["metric_name"], card["positive"]) == ("1 − ROC AUC", "auc", 0)
    assert card["score"] == pytest.approx(1 - card["details"]["ROC AUC"])
    code, text, _ = hinge("compare", str(out / "model.hinge"), str(out / "model.hinge"), str(file))
    assert code == 0
    assert "1 − ROC AUC on table.csv" in text
    code, text, _ = hinge("explain", str(out / "model.hinge"), str(file), "--row", "1")
    assert "probability of sick" in text
    code, _, error = hinge("fit", str(file), "-t", "state", "--positive", "ill", "--out", str(out))
    assert code == 2
    assert "--positive ill: no such class" in error


def test_ranks_have_no_weights(rng):
    frame = pl.DataFrame({"x": rng.normal(size=60), "w": np.arange(60.0), "y": ["a", "b"] * 30})
    with pytest.raises(UserError, match=r'metric="auc": ranks have no weights'):
        hg.learn(frame, "y", metric="auc", weight="w", **QUICK)
