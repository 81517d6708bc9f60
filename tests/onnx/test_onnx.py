"""Exported models predict what ours do; no tree takes another path."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

import hinge as hg
from hinge.errors import UserError
from hinge.learning.candidates import FAMILIES, Shape, _boosting
from hinge.learning.fits import preparation
from kit.estimators import make_data, public_estimators

pl = pytest.importorskip("polars", reason="tables need the [cli] extra")
onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")


def run(model, feed):
    from hinge.onnx.models import convert

    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    return runtime.InferenceSession(convert(model).SerializeToString(), options).run(None, feed)


def make(rng, n):
    b = rng.normal(size=n)
    b[rng.random(n) < 0.1] = np.nan
    d = [("yes", "No", None)[i] for i in rng.choice(3, n, p=[0.5, 0.4, 0.1])]
    return pl.DataFrame({
        "a": rng.normal(size=n), "b": b, "c": rng.choice(["x", "y", "z", "w"], n), "d": d,
    }).with_columns(pl.col("b").fill_nan(None))  # fmt: skip


def feed(frame):
    return {
        "a": frame["a"].to_numpy().astype(float)[:, None],
        "b": frame["b"].to_numpy().astype(float)[:, None],
        "c": np.array([["" if v is None else v] for v in frame["c"].to_list()], dtype=object),
        "d": np.array([["" if v is None else v] for v in frame["d"].to_list()], dtype=object),
    }


@pytest.mark.parametrize("task", ["binary", "multiclass", "real", "count"])
@pytest.mark.parametrize("family", [f.name for f in FAMILIES])
def test_exported_pipelines_predict_the_same(rng, task, family):
    if (family, task) == ("kernel", "count"):
        pytest.skip("kernels are not tried on counts")
    chosen = next(f for f in FAMILIES if f.name == family)
    frame = make(rng, 600)
    s = 2 * frame["a"].to_numpy() + 1.5 * (frame["c"] == "x").to_numpy() + rng.normal(size=600)
    y = {
        "binary": np.where(s > 0, "p", "n"),
        "multiclass": np.array(["A", "B", "C"])[np.digitize(s, [-1, 1])],
        "real": 1000 + 50 * s,
        "count": rng.poisson(np.exp(np.clip(s / 3, -3, 3))).astype(float),
    }[task]
    prep = preparation(chosen.encode, {"a": "number", "b": "number", "c": "category", "d": "boolean"})
    X = prep.fit_transform(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = chosen.settings[0].make(Shape(task, 600, X.shape[1], prep.categorical_, 0)).fit(X, y)
    pipeline = Pipeline([("prep", prep), ("model", model)])
    new = make(rng, 300).with_columns(
        pl.Series("c", rng.choice(["x", "y", "z", "w", "unseen", None], 300).tolist(), dtype=pl.String)
    )
    out = run(pipeline, feed(new))
    if task in ("binary", "multiclass"):
        p = np.sort(pipeline.predict_proba(new), axis=1)
        clear = p[:, -1] - p[:, -2] > 1e-12  # votes of a forest can tie, and then rounding decides
        assert np.array_equal(out[0][clear], pipeline.predict(new)[clear])
        assert clear.mean() > 0.9
        assert np.allclose(
            out[1], pipeline.predict_proba(new), atol={"network": 1e-6, "kernel": 1e-9}.get(family, 1e-14)
        )
    else:
        assert np.allclose(out[0], pipeline.predict(new), rtol={"network": 1e-5, "kernel": 1e-8}.get(family, 1e-13))


@pytest.mark.parametrize("task", ["binary", "multiclass", "real"])
def test_exported_ensembles_predict_the_same(rng, task):
    """What hg.learn chooses: pipelines with preparations of their own, one of them a mean of networks."""
    from hinge.models.blend import Blend

    frame = make(rng, 400)
    s = 2 * frame["a"].to_numpy() + 1.5 * (frame["c"] == "x").to_numpy() + rng.normal(size=400)
    y = {
        "binary": np.where(s > 0, "p", "n"), "multiclass": np.array(["A", "B", "C"])[np.digitize(s, [-1, 1])], "real": 9 + s,
    }[task]  # fmt: skip
    kinds = {"a": "number", "b": "number", "c": "category", "d": "boolean"}
    members = []
    for name, place in (("boosting", 0), ("kernel", 0), ("network", 2)):
        family = next(f for f in FAMILIES if f.name == name)
        prep = preparation(family.encode, kinds)
        X = prep.fit_transform(frame)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = family.settings[place].make(Shape(task, 400, X.shape[1], prep.categorical_, 0)).fit(X, y)
        members.append(Pipeline([("prep", prep), ("model", model)]))
    pipeline = Pipeline([("model", Blend.of(members, [0.5, 0.3, 0.2]))])
    new = make(rng, 200)
    out = run(pipeline, feed(new))
    if task == "real":
        np.testing.assert_allclose(out[0], pipeline.predict(new), rtol=1e-5)
    else:
        np.testing.assert_allclose(out[1], pipeline.predict_proba(new), atol=1e-6)
        assert np.mean(out[0] == pipeline.predict(new)) > 0.99


def test_means_of_levels_are_exported(rng):
    n = 600
    level = rng.choice([f"l{k}" for k in range(60)], n)
    y = np.array([int(v[1:]) % 7 for v in level]) + rng.normal(size=n)
    frame = pl.DataFrame({"level": level, "x": rng.normal(size=n)})
    prep = preparation("codes", {"level": "category", "x": "number"})
    X = prep.fit_transform(frame, y)
    model = hg.HistGradientBoostingRegressor(max_iter=30, categorical_features=[0]).fit(X, y)
    new = pl.DataFrame({"level": ["l3", "never", None, "l59"], "x": [0.0, 1.0, -1.0, 0.5]})
    given = {
        "level": np.array([[v or ""] for v in new["level"].to_list()], dtype=object), "x": new["x"].to_numpy()[:, None],
    }  # fmt: skip
    pipeline = Pipeline([("prep", prep), ("model", model)])
    np.testing.assert_allclose(run(pipeline, given)[0], pipeline.predict(new), rtol=1e-12)


@pytest.mark.parametrize("encode", ["codes", "dummies", "means"])
def test_every_encoding_of_categories_for_boosting_is_exported(rng, encode):
    frame = make(rng, 600).with_columns(
        pl.Series("c", rng.choice(["x", "y", "z", "w", None], 600).tolist(), dtype=pl.String)
    )
    y = 2 * frame["a"].to_numpy() + np.where(
        frame["c"].is_null().to_numpy(), 3.0, (frame["c"] == "x").fill_null(False).to_numpy()
    )
    prep = preparation(encode, {"a": "number", "b": "number", "c": "category", "d": "boolean"})
    X = prep.fit_transform(frame, y)
    setting = _boosting(0.1, 15, 1.0, encode=encode)
    model = setting.make(Shape("real", 600, X.shape[1], prep.categorical_, 0)).set_params(max_iter=40).fit(X, y)
    pipeline = Pipeline([("prep", prep), ("model", model)])
    new = make(rng, 300).with_columns(
        pl.Series("c", rng.choice(["x", "y", "z", "w", "unseen", None], 300).tolist(), dtype=pl.String)
    )
    np.testing.assert_allclose(run(pipeline, feed(new))[0], pipeline.predict(new), rtol=1e-12)


def test_what_cannot_be_exported_is_named_when_it_is_chosen(rng, tmp_path):
    n = 120
    words = ["good", "bad", "fine", "poor", "great", "awful", "table", "chair", "lamp"]
    texts = [" ".join(rng.choice(words, 12)) + f" number {k}" for k in range(n)]
    frame = pl.DataFrame({"review": texts, "y": ["p" if "good" in t else "n" for t in texts]})
    found = hg.learn(frame, "y", models="linear", seconds=600.0)
    assert "'review' is a text, which ONNX cannot prepare" in found.model.card["no_onnx"]
    assert hg.learn("heart", models="linear", seconds=600.0).model.card["no_onnx"] == ""


def test_values_at_a_threshold_take_the_same_path(rng):
    """Thresholds in single precision would send these the other way."""
    X = rng.normal(size=(500, 3))
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
    model = hg.HistGradientBoostingRegressor(max_iter=40).fit(X, y)
    thresholds = model.trees_.threshold[model.trees_.feature == 0]
    probes = np.repeat(X[:1], 3 * len(thresholds), axis=0)
    probes[:, 0] = np.concatenate([np.nextafter(thresholds, -np.inf), thresholds, np.nextafter(thresholds, np.inf)])
    assert np.allclose(run(model, {"X": probes})[0], model.predict(probes), rtol=1e-13)


@pytest.mark.parametrize(
    "model",
    [hg.LogisticRegression(), hg.Ridge(), hg.DecisionTreeClassifier(), hg.RandomForestRegressor(20), hg.Lasso(0.1)],
)
def test_bare_models_can_be_exported(rng, model):
    X = rng.normal(size=(100, 4))
    y = X[:, 0] + rng.normal(size=100)
    model.fit(X, np.where(y > 0, "a", "b") if hasattr(model, "predict_proba") else y)
    out = run(model, {"X": X})
    if hasattr(model, "predict_proba"):
        assert np.allclose(out[1], model.predict_proba(X), atol=1e-14)
    else:
        assert np.allclose(out[0], model.predict(X), rtol=1e-12)


PREDICTORS = [
    e
    for e in public_estimators()
    if (is_classifier(e) or is_regressor(e)) and get_tags(e).input_tags.two_d_array and type(e).__name__ != "AnyBoost"
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", PREDICTORS, ids=lambda model: type(model).__name__)
def test_every_model_predicts_the_same_or_is_refused(model):
    from hinge.onnx.models import convert

    X, y = make_data(model)
    model.fit(X, y)
    try:
        convert(model)
    except UserError:
        return
    first, *rest = run(model, {"X": np.asarray(X, dtype=np.float64)})
    if not is_classifier(model):
        np.testing.assert_allclose(first, model.predict(X), rtol=1e-5, atol=1e-8)
        return
    assert np.array_equal(first, np.asarray(model.predict(X)).astype(str))
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(rest[0], model.predict_proba(X), atol=1e-6)
    elif hasattr(model, "decision_function"):
        scores = model.decision_function(X)
        np.testing.assert_allclose(rest[0], scores.reshape(len(scores), -1), rtol=1e-5, atol=1e-8)


def test_links_that_onnx_lacks_are_refused(rng):
    from hinge.onnx.models import convert

    X = rng.uniform(1, 2, size=(60, 2))
    model = hg.GLM("gamma", "inverse").fit(X, rng.gamma(3.0, size=60))
    with pytest.raises(UserError, match="link 'inverse' cannot be exported"):
        convert(model)


def test_what_onnx_cannot_express_is_an_error(rng, hinge, models, tmp_path):
    from hinge.onnx.models import convert

    X = rng.normal(size=(50, 2))
    with pytest.raises(UserError, match="a kernel machine with LinearKernel cannot be exported"):
        convert(hg.KernelRidge().fit(X, X[:, 0]))
    code, _, err = hinge("export", models["binary"][1] / "model.hinge", tmp_path / "m.txt")
    assert code == 2
    assert ".onnx" in err
    code, _, _ = hinge("export", models["binary"][1] / "model.hinge", tmp_path / "m.onnx")
    assert code == 0
    onnx.checker.check_model(str(tmp_path / "m.onnx"))
