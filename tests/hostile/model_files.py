"""Model files with a right checksum and wrong content.

A sound file of every public estimator is taken apart, one to three of its arrays or JSON nodes are changed, the checksum
is made right again, and the file is loaded and used. ``load`` refuses it with a ValueError, or the model may be used with
any answer or error; the process must survive, in time and memory.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import pickle
import tempfile
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from sklearn.utils import get_tags

import hinge as hg
from hostile.runner import Group
from kit.estimators import fitted, make_data, public_estimators

USES = (
    "predict", "predict_proba", "decision_function", "transform", "apply", "shap_values", "decision_path", "predict_interval",
    "predict_set", "score_samples", "predict_quantiles", "predictive", "predict_top", "predict_marginals", "staged_predict",
    "get_feature_names_out", "summary", "partial_fit",
)  # fmt: skip
NUMBERS: list[Any] = [
    -1, 0, 1, 2, 255, 2**31 - 1, -(2**31), 2**40, 10**30, 1e308, -0.5, None, True, "x", [], {"float": "nan"}, {"float": "inf"},
    {"tuple": []}, float("inf"),
]  # fmt: skip
SEQUENCES = [[["a"], ["b"], ["a"]], [["b"], ["c"]]], [["u", "v", "u"], ["v", "u"]]


@cache
def models() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for estimator in public_estimators():
        found.setdefault(type(estimator).__name__, estimator)
    found["CategoricalForest"] = hg.RandomForestClassifier(3, max_depth=3, categorical_features=[0], random_state=0)
    found["CategoricalGLM"] = hg.PoissonRegressor(categorical_features=[0]) if hasattr(hg.PoissonRegressor(), "categorical_features") else hg.PoissonRegressor()  # fmt: skip
    return found


def inputs(name: str) -> tuple[Any, Any, dict[str, Any]]:
    estimator = models()[name]
    if name == "TreeCRF":
        return *SEQUENCES, {"parents": [[-1, 0, 0], [-1, 0]]}
    if name in ("ChainCRF", "StructuredSVM", "StructuredPerceptron"):
        return *SEQUENCES, {}
    if "Vectorizer" in name:
        return ["apple pear fig", "pear fig plum", "lime apple"], [0, 1, 0], {}
    if name == "ImageVectors":
        return np.random.default_rng(0).integers(0, 255, size=(6, 8, 8), dtype=np.uint8), np.arange(6) % 2, {}
    if not get_tags(estimator).input_tags.two_d_array:
        X, y = make_data(estimator, n=40, d=3)
        return X[:, 0], y, {}
    X, y = make_data(estimator, n=40, d=4)
    if name.startswith("Categorical"):
        X = X.copy()
        X[:, 0] = np.arange(40) % 5
    return X, y, {}


@cache
def parts(name: str) -> tuple[bytes, bytes]:
    """JSON state and pickled arrays of a sound file; files are taken apart once, before the fork."""
    X, y, more = inputs(name)
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        model = models()[name]
        model = model.fit(X, y, **more) if more or name.endswith(("CRF", "Vectorizer")) else fitted(model, X, y)
        path = Path(folder) / "m.hinge"
        hg.save(model, path)
        content = path.read_bytes()
    state = json.loads(header(content)["model"])
    return json.dumps(state).encode(), pickle.dumps(safetensors.numpy.load(content))


def header(content: bytes) -> dict[str, str]:
    """The metadata of a file."""
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length])["__metadata__"]


def seal(metadata: dict[str, str], arrays: dict[str, np.ndarray]) -> bytes:
    """A file whose checksum is right."""
    metadata = metadata | {"format": "hinge", "schema": "1", "hinge": hg.__version__, "sha256": "0" * 64}
    blank = safetensors.numpy.save({k: np.asarray(v, order="C") for k, v in arrays.items()}, metadata=metadata)
    digest = hashlib.sha256(blank).hexdigest().encode()
    return blank.replace(b'"sha256":"' + b"0" * 64, b'"sha256":"' + digest, 1)


def write(path: Path, state: Any, arrays: dict[str, np.ndarray]) -> None:
    path.write_bytes(seal({"model": json.dumps(state)}, arrays))


def nodes(state: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of everything in a JSON tree but its root."""
    items = state.items() if isinstance(state, dict) else enumerate(state) if isinstance(state, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from nodes(value, (*path, key))


def change_array(rng: np.random.Generator, arrays: dict[str, np.ndarray]) -> None:
    name = str(rng.choice(list(arrays)))
    a = arrays[name]
    flat = a.copy().ravel()
    odd = [-1, 0, 1, 7, 2**31 - 1, -(2**31), 2**62, -(2**63), np.nan, np.inf, -np.inf, 1e308, 1e-320]
    kind = rng.integers(12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == 0:
            a = a[: rng.integers(0, len(a) + 1)] if a.ndim else a
        elif kind == 1:
            a = np.concatenate([a] * int(rng.integers(2, 4))) if a.ndim else a
        elif kind == 2 and a.ndim > 1:
            a = a[..., : rng.integers(0, a.shape[-1] + 1)]
        elif kind == 3:
            a = a.T
        elif kind == 4:
            a = flat
        elif kind == 5:
            a = a.astype(rng.choice(["f4", "f8", "i4", "i8", "u1", "?", "i2", "u8"]))
        elif kind == 6:
            a = a[None]
        elif kind == 7 and flat.size > 1:
            rng.shuffle(flat)
            a = flat.reshape(a.shape)
        elif kind == 8:
            a = arrays[str(rng.choice(list(arrays)))]
        elif flat.size:
            values = np.array([rng.choice(odd) for _ in range(int(rng.integers(1, 4)))])
            if flat.dtype.kind in "iub":
                values = np.array(
                    [int(v) for v in np.nan_to_num(values, posinf=2**31 - 1, neginf=-(2**31))], dtype=object
                )
                low, high = (0, 1) if flat.dtype.kind == "b" else (np.iinfo(flat.dtype).min, np.iinfo(flat.dtype).max)
                values = np.clip(values, low, high).astype(flat.dtype)
            flat[rng.integers(0, flat.size, len(values))] = values
            a = flat.reshape(a.shape)
    arrays[name] = a


def change_state(rng: np.random.Generator, state: Any) -> None:
    every = list(nodes(state))
    path = every[rng.integers(len(every))]
    holder = state
    for key in path[:-1]:
        holder = holder[key]
    key, kind = path[-1], rng.integers(8)
    old = holder[key]
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(old, list):
        holder[key] = old[: rng.integers(0, len(old) + 1)]
    elif kind == 2 and isinstance(old, list):
        holder[key] = old * 3
    elif kind == 3:
        other = every[rng.integers(len(every))]
        value = state
        for k in other:
            value = value[k]
        holder[key] = copy.deepcopy(value)
    elif isinstance(old, bool):
        holder[key] = not old
    elif isinstance(old, str) and old in ("csr", "csc", "matrix", "array"):
        holder[key] = str(rng.choice(["csr", "csc", "matrix", "array"]))
    elif isinstance(old, (int, float)) and kind < 6:
        holder[key] = old * 2 + int(rng.integers(-3, 4)) if kind < 5 else -old
    else:
        holder[key] = copy.deepcopy(NUMBERS[rng.integers(len(NUMBERS))])


def cases() -> Iterator[str]:
    """A few of every estimator."""
    yield from CRAFTED
    for i, name in enumerate(models()):
        yield from (f"{name}|{1000 * i + k}" for k in range(6))


def random(seed: int) -> str:
    rng = np.random.default_rng(seed)
    return f"{rng.choice(sorted(models()))}|{seed}"


def run(case: str) -> None:
    name, _, seed = case.partition("|")
    if name in CRAFTED:
        CRAFTED[name]()
        return
    rng = np.random.default_rng(int(seed))
    pair = parts(name)
    state, arrays = json.loads(pair[0]), pickle.loads(pair[1])  # our own bytes
    for _ in range(int(rng.integers(1, 4))):
        if arrays and rng.random() < 0.6:
            change_array(rng, arrays)
        else:
            change_state(rng, state)
    open_and_use(name, state, arrays)


def open_and_use(name: str, state: Any, arrays: dict[str, np.ndarray]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.hinge"
        write(path, state, arrays)
        if os.environ.get("HOSTILE_KEEP"):
            write(Path(os.environ["HOSTILE_KEEP"]), state, arrays)
        model = hg.load(path)  # a ValueError is the answer hoped for; any other is a defect
    X, y, more = inputs(name)
    for use in USES:
        try:
            method = getattr(model, use, None)
            if method is None:
                continue
            if use in ("get_feature_names_out", "summary"):
                method()
            elif use == "partial_fit":
                method(X, y)
            else:
                answer = method(X, **more)
                if use == "staged_predict":
                    list(answer)
        except Exception:  # a model that was tampered with may fail in any way but one
            continue


def prepare() -> None:
    for name in models():
        try:
            parts(name)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{name} cannot be fitted and saved: {error}") from error


def _crafted(name: str, change: Any) -> None:
    pair = parts(name)
    state, arrays = json.loads(pair[0]), pickle.loads(pair[1])
    change(state, arrays)
    open_and_use(name, state, arrays)


def _key(state: Any, wanted: str) -> Any:
    """The first value under that key, anywhere."""
    for path in nodes(state):
        if path[-1] == wanted:
            holder = state
            for key in path:
                holder = holder[key]
            return holder
    raise KeyError(wanted)


def _more_points(state: Any, arrays: dict[str, np.ndarray]) -> None:
    points = _key(state, "points")["array"]
    arrays[points] = np.concatenate([arrays[points]] * 50)


def _column_format(state: Any, arrays: dict[str, np.ndarray]) -> None:
    inner = _key(state, "coef_")["sparse"]
    inner["format"], inner["shape"] = "csc", inner["shape"][::-1]


def _chain(nodes_: int, shared: bool = False) -> Any:
    """A tree that is one long path, or (shared) one in which both children of a node are inner nodes that meet again."""

    def change(state: Any, arrays: dict[str, np.ndarray]) -> None:
        trees = next(
            value["fields"]
            for value in _records(state)
            if isinstance(value, dict) and "missing_left" in value.get("fields", {})
        )
        inner = nodes_ // 2
        total = 2 * inner + 1
        feature = np.full(total, -1, dtype=np.int32)
        left = np.zeros(total, dtype=np.int32)
        at = 0
        for k in range(inner):
            feature[at], left[at] = 0, 2 * k + 1
            if shared and k + 1 < inner:  # the right child has the same children as the left one
                feature[2 * k + 2], left[2 * k + 2] = 0, 2 * k + 3
            at = 2 * k + 1
        new = {
            "feature": feature, "left": left, "threshold": np.zeros(total), "missing_left": np.zeros(total, dtype=np.uint8),
            "set": np.full(total, -1, dtype=np.int32), "gain": np.zeros(total), "weight": np.ones(total),
            "count": np.ones(total), "impurity": np.zeros(total),
        }  # fmt: skip
        for name, value in new.items():
            node = trees.get(name)
            if isinstance(node, dict) and "array" in node:
                arrays[node["array"]] = value.astype(arrays[node["array"]].dtype)
        old = arrays[trees["value"]["array"]]
        outputs = max(1, old.size // max(1, int(arrays[trees["start"]["array"]][-1])))
        arrays[trees["value"]["array"]] = np.zeros((total, outputs), dtype=old.dtype)
        arrays[trees["start"]["array"]] = np.array([0, total], dtype=np.int64)

    return change


def _records(state: Any) -> Iterator[Any]:
    if isinstance(state, dict):
        yield state
        for value in state.values():
            yield from _records(value)
    elif isinstance(state, list):
        for value in state:
            yield from _records(value)


def _degree(state: Any, arrays: dict[str, np.ndarray]) -> None:
    state["state"]["degree"] = 10**6


def _many_features(state: Any, arrays: dict[str, np.ndarray]) -> None:
    state["state"]["n_features_in_"] = 10**9
    state["state"]["degree"] = 5


def _infinite_shape(state: Any, arrays: dict[str, np.ndarray]) -> None:
    state["state"]["extra_"] = {"objects": [1], "shape": [float("inf")]}


def _strings_of_infinite_shape(state: Any, arrays: dict[str, np.ndarray]) -> None:
    state["state"]["extra_"] = {"strings": ["a"], "shape": [float("nan")], "dtype": "<U1"}


def _deep(state: Any, arrays: dict[str, np.ndarray]) -> None:
    value: Any = 1
    for _ in range(900):
        value = [value]
    state["state"]["extra_"] = value


CRAFTED: dict[str, Any] = {
    "more points than coefficients": lambda: _crafted("SVC", _more_points),
    "more points than coefficients in KernelRidge": lambda: _crafted("KernelRidge", lambda s, a: a.__setitem__("t0", a["t0"][:1])),
    "CSC weights": lambda: _crafted("ChainCRF", _column_format),
    "a tree that is a long chain": lambda: _crafted("GradientBoostingRegressor", _chain(400_001)),
    "a forest that is a long chain": lambda: _crafted("RandomForestRegressor", _chain(400_001)),
    "a decision tree that is a long chain": lambda: _crafted("DecisionTreeClassifier", _chain(400_001)),
    "nodes that share children": lambda: _crafted("GradientBoostingRegressor", _chain(201, shared=True)),
    "nodes of a forest that share children": lambda: _crafted("RandomForestClassifier", _chain(201, shared=True)),
    "a polynomial of huge degree": lambda: _crafted("PolynomialFeatures", _degree),
    "a polynomial of many features": lambda: _crafted("PolynomialFeatures", _many_features),
    "an infinite shape": lambda: _crafted("Ridge", _infinite_shape),
    "a shape that is not a number": lambda: _crafted("Ridge", _strings_of_infinite_shape),
    "a deep list": lambda: _crafted("Ridge", _deep),
}  # fmt: skip
GROUP = Group("model_files", cases, run, random, seconds=10.0, prepare=prepare)
