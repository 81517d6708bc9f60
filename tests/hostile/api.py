"""Every public estimator against hostile arrays, frames, targets, weights and parameters.

A case ends well if the call is refused by a ValueError or TypeError that names what is wrong with which argument, or if
the fit returns and its predictions of sound examples are finite.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

import hinge as hg
from hostile.machine import estimators
from hostile.runner import Group
from kit.estimators import make_data, takes_weights

Change = Callable[[np.ndarray], Any]
# Modules that may be missing, and what the kinds of input begin with that need them.
OPTIONAL = {"pandas": ("pandas", "series"), "polars": ("polars",), "pyarrow": ("arrow", "polars null")}
pd, polars, pyarrow = (importlib.import_module(name) if importlib.util.find_spec(name) else None for name in OPTIONAL)


def _put(value: Any, dtype: Any = None) -> Change:
    """The array with one value replaced."""

    def change(A: np.ndarray) -> np.ndarray:
        numeric = isinstance(value, (int, float)) and A.dtype.kind != "U"
        A = A.astype(dtype or (np.float64 if numeric else object))
        if A.size > 1:
            A[(1,) * A.ndim] = value
        return A

    return change


def _read_only(A: np.ndarray) -> np.ndarray:
    A = A.copy()
    A.flags.writeable = False
    return A


def _strided(A: np.ndarray) -> np.ndarray:
    return np.repeat(np.repeat(A, 2, axis=0), 3, axis=1)[::2, ::3]


def _frame(X: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])


def _column(change: Callable[[pd.Series], Any]) -> Change:
    """A pandas frame with another first column."""

    def frame(X: np.ndarray) -> pd.DataFrame:
        table = _frame(X)
        return table.assign(c0=change(table["c0"]))

    return frame


def _with_nulls(X: np.ndarray) -> pyarrow.Table:
    columns = [pyarrow.array([None, *column[1:]]) for column in X.T.tolist()]
    return pyarrow.table(columns, names=[f"c{j}" for j in range(len(columns))])


X_KINDS: dict[str, Change] = {
    "NaN": _put(np.nan), "inf": _put(np.inf), "-inf": _put(-np.inf), "None": _put(None), "text": _put("a"),
    "object": _put(object()), "list inside": lambda X: [*X.tolist()[:-1], [X[0].tolist()] * X.shape[1]],
    "Decimal": _put(Decimal("1.5")), "Fraction": _put(Fraction(1, 3)), "complex": lambda X: X + 1j,
    "bytes": lambda X: X.astype("S"), "strings": lambda X: X.astype(str), "words": lambda X: np.full(X.shape, "word"),
    "dates": lambda X: X.astype("M8[s]"), "spans": lambda X: X.astype("m8[s]"), "void": lambda X: X.view("V8"),
    "records": lambda X: np.rec.fromarrays(list(X.T)), "masked": lambda X: np.ma.masked_less(X, 0.0),
    "matrix": lambda X: np.asmatrix(X), "empty": lambda X: np.empty((0, 0)), "no rows": lambda X: X[:0],
    "no columns": lambda X: X[:, :0], "one row": lambda X: X[:1], "two rows": lambda X: X[:2],
    "one column": lambda X: X[:, :1], "scalar": lambda X: np.float64(3.0), "one-dimensional": lambda X: X[:, 0],
    "three-dimensional": lambda X: X[:, :, None], "a number": lambda X: 5, "nothing": lambda X: None,
    "a text": lambda X: "X", "a dict": lambda X: {"a": 1}, "a set": lambda X: {1, 2}, "a generator": lambda X: iter(X),
    "lists": lambda X: X.tolist(), "ragged": lambda X: [[1.0], *X.tolist()[1:]], "tuples": lambda X: tuple(map(tuple, X)),
    "constant": lambda X: np.ones_like(X), "zeros": np.zeros_like, "huge": lambda X: X * 1e300,
    "largest": lambda X: np.sign(X) * np.finfo(float).max, "large": lambda X: X * 1e155, "tiny": lambda X: X * 1e-300,
    "denormal": lambda X: X * 1e-320, "float32 denormal": lambda X: (X * 1e-44).astype(np.float32),
    "float32 large": lambda X: (X * 1e30).astype(np.float32), "float32 small": lambda X: (X * 1e-30).astype(np.float32),
    "float32 largest": lambda X: (np.sign(X) * np.finfo(np.float32).max).astype(np.float32),
    "one huge": _put(1e308), "one large": _put(1e160), "half": lambda X: X.astype(np.float16),
    "long double": lambda X: X.astype(np.longdouble), "bytes of int": lambda X: X.astype(np.int8),
    "booleans": lambda X: X > 0, "unsigned": lambda X: np.full(X.shape, 2**64 - 1, dtype=np.uint64),
    "big integers": _put(10**400, object), "swapped": lambda X: X.astype(">f8"), "read-only": _read_only,
    "strided": _strided, "reversed": lambda X: X[::-1, ::-1], "Fortran": np.asfortranarray,
    "broadcast": lambda X: np.broadcast_to(X[0], X.shape), "collinear": lambda X: np.repeat(X[:, :1], X.shape[1], 1),
    "pandas": _frame, "pandas no rows": lambda X: _frame(X)[:0], "pandas NA": _column(lambda c: c.astype("Float64").where(c > 0)),
    "pandas category": _column(lambda c: pd.Categorical(c > 0)), "pandas date": _column(lambda c: pd.Timestamp("2020-1-1")),
    "pandas objects": _column(lambda c: pd.Series([[1]] * len(c))), "pandas period": _column(lambda c: pd.Period("2020")),
    "pandas interval": _column(lambda c: pd.cut(c, 3)), "pandas sparse": lambda X: _frame(X).astype("Sparse[float]"),
    "pandas complex": _column(lambda c: c + 1j), "pandas text": _column(lambda c: c.astype(str) + "a"),
    "pandas twice": lambda X: pd.concat([_frame(X), _frame(X)], axis=1), "pandas mixed names": lambda X: _frame(X).rename(columns={"c0": 0}),
    "pandas levels": lambda X: pd.DataFrame(X, columns=pd.MultiIndex.from_product([["a"], range(X.shape[1])])),
    "series": lambda X: pd.Series(X[:, 0]), "polars": lambda X: polars.DataFrame(X), "polars null": lambda X: polars.DataFrame(_with_nulls(X)),
    "polars list": lambda X: polars.DataFrame({"a": [[1.0]] * len(X)}), "polars text": lambda X: polars.DataFrame(X.astype(str)),
    "polars lazy": lambda X: polars.DataFrame(X).lazy(), "arrow": lambda X: pyarrow.table(_frame(X)), "arrow null": _with_nulls,
    "sparse NaN": lambda X: sp.csr_array(_put(np.nan)(X)), "sparse empty": lambda X: sp.csr_array(X.shape),
    "sparse objects": lambda X: sp.csr_matrix(X > 0), "sparse complex": lambda X: sp.csr_array(X + 1j),
}  # fmt: skip

Y_KINDS: dict[str, Change] = {
    "NaN": _put(np.nan), "inf": _put(np.inf), "None": _put(None), "object": _put(object()), "list inside": _put([1, 2]),
    "complex": lambda y: y + 1j, "short": lambda y: y[:-1], "long": lambda y: np.append(y, y[:1]), "empty": lambda y: y[:0],
    "scalar": lambda y: 3.0, "nothing": lambda y: None, "a text": lambda y: "y", "column": lambda y: y.reshape(len(y), -1)[:, :1],
    "three-dimensional": lambda y: np.zeros((len(y), 2, 2)), "constant": lambda y: np.ones(len(y)), "zeros": lambda y: np.zeros(len(y)),
    "distinct": lambda y: np.arange(len(y)), "huge": lambda y: np.linspace(-1e300, 1e300, len(y)),
    "large": lambda y: np.linspace(1e200, 2e200, len(y)), "tiny": lambda y: np.linspace(1e-300, 2e-300, len(y)),
    "denormal": lambda y: np.linspace(1e-320, 2e-320, len(y)), "fractions": lambda y: np.linspace(0.1, 0.9, len(y)),
    "negative": lambda y: -np.ones(len(y)) - np.arange(len(y)) % 2, "texts": lambda y: np.array(["a", "b", "c"])[np.arange(len(y)) % 3],
    "mixed": lambda y: np.array(["a", 1, None] * len(y), dtype=object)[: len(y)], "booleans": lambda y: np.arange(len(y)) % 2 == 0,
    "dates": lambda y: np.arange(len(y)).astype("M8[s]"), "two columns": lambda y: np.tile(np.arange(len(y))[:, None] % 2, 2),
    "no columns": lambda y: np.zeros((len(y), 0)), "ragged": lambda y: [[1], *([[1, 2]] * (len(y) - 1))],
    "pandas category": lambda y: pd.Series(np.arange(len(y)) % 3).astype("category"), "pandas NA": lambda y: pd.Series([pd.NA, *range(len(y) - 1)], dtype="Int64"),
    "polars": lambda y: polars.Series(np.arange(len(y)) % 3), "polars null": lambda y: polars.Series([None, *range(len(y) - 1)]),
    "sparse": lambda y: sp.csr_array(np.arange(len(y))[:, None] % 2), "big integers": _put(10**400, object),
}  # fmt: skip

WEIGHTS: dict[str, Callable[[int], Any]] = {
    "negative": lambda n: -np.ones(n), "one negative": lambda n: np.append(np.ones(n - 1), -1.0), "NaN": lambda n: np.full(n, np.nan),
    "one NaN": lambda n: np.append(np.ones(n - 1), np.nan), "inf": lambda n: np.append(np.ones(n - 1), np.inf), "zero": np.zeros,
    "one positive": lambda n: np.eye(1, n)[0], "huge": lambda n: np.full(n, 1e308), "one huge": lambda n: np.append(np.ones(n - 1), 1e308),
    "tiny": lambda n: np.full(n, 1e-308), "denormal": lambda n: np.full(n, 5e-324), "short": lambda n: np.ones(n - 1), "long": lambda n: np.ones(n + 1),
    "empty": lambda n: np.ones(0), "columns": lambda n: np.ones((n, 2)), "column": lambda n: np.ones((n, 1)), "a number": lambda n: 2.0,
    "a text": lambda n: "balanced", "texts": lambda n: np.full(n, "a"), "complex": lambda n: np.ones(n) + 1j, "None inside": lambda n: [None, *[1.0] * (n - 1)],
    "booleans": lambda n: np.arange(n) % 2 == 0, "a list": lambda n: [1.0] * n, "a dict": lambda n: {0: 1.0}, "an object": lambda n: object(),
    "pandas": lambda n: pd.Series(np.ones(n)), "float32": lambda n: np.ones(n, dtype=np.float32), "a half zero": lambda n: np.arange(n) % 2 * 1.0,
}  # fmt: skip

MISSING = tuple(
    beginning
    for module, beginnings in zip((pd, polars, pyarrow), OPTIONAL.values())
    for beginning in beginnings
    if module is None
)
for made in (X_KINDS, Y_KINDS, WEIGHTS):
    for kind in [kind for kind in made if kind.startswith(MISSING)]:
        del made[kind]

# Words by which an error says which argument it is about.
NAMED = re.compile(
    r"\bX\b|\by\b|sample_weight|weight|feature|sample|column|row|example|class|target|label|input|array|data|dtype|"
    r"dimension|table|matrix|value|number|kernel|component", re.IGNORECASE,
)  # fmt: skip


PARAMETERS: dict[str, Any] = {
    "NaN": np.nan, "inf": np.inf, "-inf": -np.inf, "0": 0, "-1": -1, "3": 3, "0.0": 0.0, "-0.5": -0.5, "0.5": 0.5, "1e308": 1e308,
    "1e-320": 1e-320, "-2**31": -(2**31), "-2**63": -(2**63), "-10**400": -(10**400), "True": True, "None": None, "text": "text", "no text": "",
    "bytes": b"auto", "no list": [], "list": [1.0], "list of NaN": [np.nan, 1.0], "list of text": ["a", 1], "tuple": (), "dict": {}, "dict of None": {None: None},
    "complex": 1j, "function": len, "class": dict, "object": object(), "array": np.ones(3), "matrix": np.ones((2, 2)), "0-d array": np.array(1.0),
    "no array": np.empty(0), "Decimal": Decimal("0.5"), "Fraction": Fraction(1, 3), "float32": np.float32(0.5), "uint8": np.uint8(200),
    "date": np.datetime64("2020-01-01"), "range": range(3), "model": hg.Ridge(), "model class": hg.Ridge, "loss": hg.Logistic(), "kernel": hg.kernels.RBF(1.0),
}  # fmt: skip


@cache
def data(name: str) -> tuple[np.ndarray, Any]:
    return make_data(estimators()[name], n=40, d=4)


def kinds(name: str) -> dict[str, Any]:
    """What can be changed about a call of the estimator: slot → kinds. A slot that is no argument is a parameter."""
    found: dict[str, Any] = {"X": X_KINDS, "predict": X_KINDS}
    if data(name)[1] is not None:
        found["y"] = Y_KINDS
    if takes_weights(estimators()[name]):
        found["weights"] = WEIGHTS
    return found | dict.fromkeys(estimators()[name].get_params(deep=False), PARAMETERS)


@cache
def all_cases() -> list[str]:
    """One thing that is wrong."""
    every = [(name, slot, kind) for name in estimators() for slot, found in kinds(name).items() for kind in found]
    return ["|".join(case) for case in every]


def cases() -> Iterator[str]:
    """Every 251st, a prime, so that every kind meets some estimators; and of each estimator those that overflow most."""
    yield from all_cases()[::251]
    yield from (case for case in all_cases() if case.endswith(("|predict|largest", "|weights|one huge")))


@cache
def shuffled() -> np.ndarray:
    return np.random.default_rng(0).permutation(len(all_cases()))


def random(seed: int) -> str:
    """All cases, one after another in a fixed random order; then several things at a time."""
    if seed < len(all_cases()):
        return all_cases()[shuffled()[seed]]
    rng = np.random.default_rng(seed)
    name = str(rng.choice(list(estimators())))
    slots = kinds(name)
    chosen = rng.choice(list(slots), size=int(rng.integers(2, 4)), replace=False)
    return "|".join([name, *(part for slot in chosen for part in (slot, str(rng.choice(list(slots[slot])))))])


METHODS = (
    "predict", "predict_proba", "decision_function", "transform", "score_samples", "predict_log_proba", "predict_joint_log_proba",
    "predict_quantiles", "predict_components", "predict_interval", "predictive",
)  # fmt: skip
INFINITE = (
    "predict_log_proba",
    "predict_joint_log_proba",
    "predict_interval",
)  # log 0; too few examples for a coverage


def numbers(model: Any, X: Any) -> Iterator[tuple[str, np.ndarray]]:
    """What the fitted model computes from X, where it is numeric."""
    for method in METHODS:
        if method == "predict_quantiles" and not getattr(model, "keep_leaves", True):
            continue
        if callable(call := getattr(model, method, None)):
            value = call(X)
            if method == "predictive":
                value = [value.mean, value.std]
            for part in value if isinstance(value, (list, tuple)) else [value]:
                found = np.asarray(part.toarray() if sp.issparse(part) else part)
                if found.dtype.kind in "fc":
                    yield method, found


def run(case: str) -> None:
    name, *rest = case.split("|")
    changes = dict(zip(rest[::2], rest[1::2]))
    if any(kind.startswith(MISSING) for kind in changes.values()):
        return  # a saved case
    try:
        attempt(name, changes)
    except (ValueError, TypeError) as error:
        parameters = [slot for slot in changes if slot not in ("X", "predict", "y") and changes[slot] in PARAMETERS]
        # A function that was passed in place of a kernel or a score raises errors of its own.
        passed = [getattr(PARAMETERS[changes[slot]], "__name__", slot) for slot in parameters]
        check_named(error, [name, *passed, *(slot.rstrip("s") for slot in parameters)])
        raise


def check_named(error: Exception, words: list[str]) -> None:
    """An error that names no argument, nor any of the words, is unclear."""
    if not NAMED.search(str(error)) and not any(word in str(error) for word in words):
        raise RuntimeError(f"no argument is named: {type(error).__name__}: {error}") from error


def attempt(name: str, changes: dict[str, str]) -> None:
    (X, y), extra = data(name), {}
    hostile, model = X, clone(estimators()[name])
    known = model.get_params(deep=False)
    parameters = {slot: PARAMETERS[kind] for slot, kind in changes.items() if slot in known and kind in PARAMETERS}
    if "groups" in inspect.signature(model.fit).parameters:
        extra["groups"] = np.arange(len(X)) % 5
    if (kind := changes.get("X")) is not None:
        hostile = X_KINDS[kind](X)
        if kind in ("one row", "two rows", "no rows", "pandas no rows"):
            y, extra = None if y is None else y[: len(hostile)], {k: v[: len(hostile)] for k, v in extra.items()}
    if (kind := changes.get("weights")) is not None and "weights" not in parameters:
        extra["sample_weight"] = WEIGHTS[kind](40 if y is None else len(y))
    if (kind := changes.get("y")) is not None:
        y = Y_KINDS[kind](y)
    model.set_params(**parameters).fit(hostile, y, **extra)
    if getattr(model, "n_features_in_", None) != X.shape[1]:
        return
    new = X_KINDS[changes["predict"]](X) if "predict" in changes else X
    finite = isinstance(new, np.ndarray) and new.dtype.kind == "f" and bool(np.isfinite(new).all())
    for method, found in numbers(model, new):
        assert not finite or not np.isnan(found).any(), f"{method} gives NaN silently"
        # Infinity is the right rounding of what is beyond 1.8e308; examples of ordinary size never come near.
        may = "predict" in changes or method in INFINITE
        assert may or not np.isinf(found).any(), f"{method} gives infinity silently"


GROUP = Group("api", cases, run, random, seconds=10.0)
