"""Model files: whole, unaltered and harmless, or refused."""

from __future__ import annotations

import hashlib
import importlib
import json
import os

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
import scipy.sparse
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.gaussian_process import kernels
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, SplineTransformer, StandardScaler

import hinge as hg
from hinge.file_values import _TRANSFORMER_HOME, Reader, Writer
from hinge.files import SCHEMA
from hinge.problem.kernels.translate import translate


@pytest.fixture
def model(rng):
    X = rng.normal(size=(30, 2))
    return hg.Learner(loss=hg.Logistic(), penalty=hg.L2(0.1)).fit(X, np.where(X[:, 0] > 0, "yes", "no"))


@pytest.fixture
def file(model, tmp_path):
    path = tmp_path / "model.hinge"
    hg.save(model, path)
    return path


def forge(path, state, **changes):
    """A file with a valid checksum and whatever content an attacker likes."""
    metadata = {"format": "hinge", "schema": str(SCHEMA), "hinge": "0", "model": json.dumps(state), "sha256": "0" * 64}
    blank = safetensors.numpy.save({"t0": np.zeros(3)}, metadata=metadata | changes)
    digest = hashlib.sha256(blank).hexdigest().encode()
    path.write_bytes(blank.replace(b"0" * 64, digest, 1))


def test_every_single_bit_flip_is_noticed(file):
    whole = file.read_bytes()
    for i in range(len(whole)):
        for bit in range(8):
            file.write_bytes(whole[:i] + bytes([whole[i] ^ (1 << bit)]) + whole[i + 1 :])
            with pytest.raises(ValueError, match="cannot be loaded"):
                hg.load(file)


def test_every_truncation_and_extension_is_noticed(file):
    whole = file.read_bytes()
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="cannot be loaded"):
            hg.load(file)
    file.write_bytes(whole + b"\0")
    with pytest.raises(ValueError, match="checksum"):
        hg.load(file)


def test_a_wrong_length_is_an_error(file):
    whole = file.read_bytes()
    for length in (0, 1, 2**31, 2**63, 2**64 - 1):
        file.write_bytes(length.to_bytes(8, "little") + whole[8:])
        with pytest.raises(ValueError, match="cannot be loaded"):
            hg.load(file)


def test_a_newer_format_needs_a_newer_hinge(file):
    forge(file, None, schema=str(SCHEMA + 1), hinge="9.9")
    with pytest.raises(ValueError, match=r"newer hinge \(9.9.*Upgrade"):
        hg.load(file)


HOSTILE = [
    {"estimator": "os:system", "state": {}},
    {"estimator": "subprocess:Popen", "state": {"args": ["true"]}},
    {"estimator": "builtins:eval", "state": {}},
    {"estimator": "hinge.models.learner:importlib", "state": {}},
    {"estimator": "hinge.file_values:Reader", "state": {}},
    {"estimator": "load", "state": {}},
    {"estimator": "Squared", "state": {}},
    {"estimator": "Learner", "state": {"predict": 1}},
    {"estimator": "Learner", "state": {"__class__": "Squared"}},
    {"estimator": "Learner", "state": {"a b": 1}},
    {"estimator": "Learner", "state": []},
    {"estimator": "LogisticRegressionOfNobody", "state": {}},
    {"estimator": ["Learner"], "state": {}},
    {"record": "Squared", "fields": {}},
    {"record": "Huber", "fields": {"delta": -1.0}},
    {"record": "Huber", "fields": {"nonsense": 1.0}},
    {"record": "Learner", "fields": {}},
    {"enum": ["Target", "NOBODY"]},
    {"enum": ["Squared", "value"]},
    {"lambda": "x: x"},
    {"array": "t7"},
    {"array": {"t0": 1}},
    {"objects": [1], "shape": [-1]},
    {"objects": [1], "shape": [10**9, 10**9]},
    {"strings": ["a"], "shape": [1], "dtype": "<U999999"},
    {"strings": ["a"], "shape": [1], "dtype": "O"},
    {"float": "1e5"},
    {"numpy": "object"},
    {"dtype": "datetime64"},
    {"sparse": {"format": "csr", "kind": "array", "shape": [1, 1], "parts": [{"array": "t0"}] * 3}},
    {"sparse": {"format": "coo", "kind": "array", "shape": [1, 1], "parts": []}},
    {"spline": [{"array": "t0"}, {"array": "t0"}, 3, True]},
    {"spline": [{"array": "t0"}, {"array": "t0"}, -1, True]},
    {"spline": [{"array": "t0"}, {"array": "t0"}, 10**9, True]},
    {"spline": [{"array": "t0"}, {"array": "t0"}, 1, "sideways"]},
    {"spline": [{"array": "t0"}]},
    {"tuple": 3},
    {"dict": [[1]]},
    {"dict": [[[1], 2]]},
    {},
    None,
    3,
    [],
]


@pytest.mark.parametrize("state", HOSTILE, ids=lambda state: json.dumps(state)[:50])
def test_a_hostile_file_is_refused(file, state):
    forge(file, state)
    with pytest.raises(ValueError, match="cannot be loaded"):
        hg.load(file)


def test_deep_nesting_is_refused(file):
    state = None
    for _ in range(900):
        state = [state]
    forge(file, {"estimator": "Learner", "state": {"loss": state}})
    with pytest.raises(ValueError, match="cannot be loaded"):
        hg.load(file)


def test_weights_of_the_wrong_length_never_reach_native_code(model, tmp_path, rng):
    function = type(model.function_)(np.zeros(1), np.zeros(1))
    object.__setattr__(model, "function_", function)
    hg.save(model, tmp_path / "short.hinge")
    with pytest.raises(ValueError, match="multiply"):
        hg.load(tmp_path / "short.hinge").predict(rng.normal(size=(5, 2)))


@pytest.mark.parametrize(
    "value",
    [
        None, True, 3, -(10**30), 0.1, float("inf"), float("-inf"), "text é", [1, [2]], (1, (2.5, "x")), {"a": 1, 2: (3,)},
        {1, 2}, slice(1, None), np.float32(0.1), np.int64(2**62), np.bool_(True), np.arange(6).reshape(2, 3),
        np.asfortranarray(np.random.default_rng(0).normal(size=(3, 4))), np.zeros((0, 3)), np.array(1.5),
        np.array(["a", "bcd"]), np.array(["a", None, 1.5], dtype=object), np.float64, np.dtype("f4"), hg.Target.SIGN,
        hg.Huber(1.35), hg.L1(0.1), hg.Linear(fit_intercept=False),
    ],
    ids=repr,
)  # fmt: skip
def test_every_kind_of_data_can_be_written_and_read(value):
    writer = Writer()
    state = json.loads(json.dumps(writer.encode(value, "value"), allow_nan=False))
    back = Reader(writer.arrays).decode(state, 0)
    assert type(back) is type(value)
    if isinstance(value, np.ndarray):
        np.testing.assert_array_equal(back, value, strict=True)
        assert back.flags.c_contiguous == value.flags.c_contiguous
        assert back.flags.writeable
    else:
        assert back == value


@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize("family", ["array", "matrix"])
def test_sparse_matrices_can_be_written_and_read(kind, family, rng):
    matrix = getattr(scipy.sparse, f"{kind}_{family}")(rng.choice([0.0, 1.5], size=(4, 5)))
    writer = Writer()
    back = Reader(writer.arrays).decode(writer.encode(matrix, "matrix"), 0)
    assert type(back) is type(matrix)
    assert (back != matrix).nnz == 0


def test_pipelines_of_transformers_can_be_saved(model, tmp_path, rng):
    X = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"]).assign(c=rng.choice(["x", "yy"], size=40))
    y = np.where(X["a"] > 0, "yes", "no")
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    prepare = make_column_transformer((numbers, ["a"]), (OneHotEncoder(), ["c"]), remainder="passthrough")
    pipeline = make_pipeline(prepare, hg.Learner(loss=hg.Logistic(), penalty=hg.L2(0.1))).fit(X, y)
    hg.save(pipeline, tmp_path / "pipeline.hinge")
    loaded = hg.load(tmp_path / "pipeline.hinge")
    np.testing.assert_array_equal(loaded.predict_proba(X), pipeline.predict_proba(X))
    assert list(loaded.feature_names_in_) == ["a", "b", "c"]


def fitted_transformer(name, X, texts):
    """A listed transformer of scikit-learn, fitted to what it takes, and that."""
    cls = getattr(importlib.import_module(_TRANSFORMER_HOME[name]), name)
    if name == "TransformedTargetRegressor":
        return cls(hg.Ridge(), transformer=StandardScaler()).fit(X, X[:, 0]), X
    if name in ("Pipeline", "FeatureUnion", "ColumnTransformer"):
        part = ("scale", StandardScaler(), [0, 1]) if name == "ColumnTransformer" else ("scale", StandardScaler())
        return cls([part]).fit(X), X
    given = texts if name.endswith("Vectorizer") else X[:, 0] if name == "LabelEncoder" else X
    return cls().fit(np.abs(given) if name == "TfidfTransformer" else given), given


@pytest.mark.parametrize("name", sorted(_TRANSFORMER_HOME))
@pytest.mark.filterwarnings("ignore:n_quantiles", "ignore:.*quantile_method")
def test_every_listed_transformer_can_be_saved(name, tmp_path, rng):
    X = rng.normal(size=(40, 2))
    X[:3, 0] = np.nan if name == "MissingIndicator" else X[:3, 0]
    model, given = fitted_transformer(name, X, ["good day", "bad day"])
    hg.save(model, tmp_path / "part.hinge")
    loaded = hg.load(tmp_path / "part.hinge")
    method = "predict" if hasattr(model, "predict") else "transform"
    before, after = (getattr(m, method)(given) for m in (model, loaded))
    before, after = (v.toarray() if scipy.sparse.issparse(v) else v for v in (before, after))
    np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize("extrapolation", ["error", "constant", "linear", "continue", "periodic"])
def test_splines_of_any_extrapolation_can_be_saved(extrapolation, tmp_path, rng):
    X = rng.normal(size=(40, 2))
    model = SplineTransformer(extrapolation=extrapolation).fit(X)
    hg.save(model, tmp_path / "splines.hinge")
    np.testing.assert_array_equal(hg.load(tmp_path / "splines.hinge").transform(X), model.transform(X))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # noise-free: the factor is at its bound
@pytest.mark.parametrize("estimator", [hg.GaussianProcessRegressor, hg.KernelRidge, hg.SVR])
def test_kernels_of_scikit_learn_are_saved_as_their_translations(estimator, tmp_path, rng):
    X = rng.normal(size=(20, 2))
    kernel = kernels.ConstantKernel(2.0) * kernels.RBF(1.5)
    model = estimator(kernel=kernel).fit(X, X[:, 0])
    hg.save(model, tmp_path / "kernel.hinge")
    loaded = hg.load(tmp_path / "kernel.hinge")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert repr(loaded.kernel) == repr(translate(kernel))


def test_a_kernel_without_a_translation_is_named(tmp_path):
    with pytest.raises(TypeError, match=r"model\.kernel is a kernel of scikit-learn without a counterpart"):
        hg.save(hg.KernelRidge(kernel=kernels.PairwiseKernel()), tmp_path / "no.hinge")
    model = hg.GaussianProcessRegressor(kernels.PairwiseKernel() + kernels.RBF(1.0), optimizer=None, alpha=1.0)
    with pytest.raises(TypeError, match=r"model\.kernel.*is a kernel of scikit-learn without a counterpart"):
        hg.save(model.fit([[0.0], [1.0]], [0.0, 1.0]), tmp_path / "no.hinge")


def test_a_text_pipeline_can_be_saved(tmp_path):
    texts, y = ["good day", "bad day", "good night", "bad night"], ["+", "-", "+", "-"]
    pipeline = make_pipeline(TfidfVectorizer(), hg.Learner(loss=hg.Logistic(), penalty=hg.L2(0.01))).fit(texts, y)
    hg.save(pipeline, tmp_path / "text.hinge")
    assert list(hg.load(tmp_path / "text.hinge").predict(texts)) == y


class LossOfMyOwn:
    def value(self, y, s):
        return (s - y) ** 2

    def gradient(self, y, s):
        return 2 * (s - y)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (hg.Learner(loss=LossOfMyOwn()), r"model\.loss is a .*LossOfMyOwn.*data only"),
        (make_pipeline(FunctionTransformer(np.log1p)), r"model\.steps\[0\]\[1\]\.func.*data only"),
        (hg.Learner(random_state=np.random.RandomState(0)), r"model\.random_state.*integer"),
        (hg.Learner(penalty=hg.L2(1.0, weights=np.array([1j]))), "complex128"),
        ({"a": 1}, "must be an estimator"),
    ],
)
def test_what_cannot_be_saved_is_named(bad, message, tmp_path):
    with pytest.raises(TypeError, match=message):
        hg.save(bad, tmp_path / "no.hinge")
    assert not list(tmp_path.iterdir())


def test_a_model_that_contains_itself_is_refused(model, tmp_path):
    model.loop_ = [model]
    with pytest.raises(ValueError, match="refers to itself"):
        hg.save(model, tmp_path / "no.hinge")


def test_a_failed_write_leaves_the_old_file(file, model, monkeypatch):
    before = file.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        hg.save(model, file)
    assert file.read_bytes() == before
    assert [p.name for p in file.parent.iterdir()] == [file.name]


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        hg.load(tmp_path / "nothing.hinge")
