"""Sparse matrices whose parts contradict each other, at every public entry that takes a matrix."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import get_tags

import hinge as hg
from hostile.runner import Group
from kit.estimators import make_data, public_estimators

HUGE = np.iinfo(np.int32).max - 1


def _compressed(change: Callable[[Any], None]) -> Callable[[sp.csr_array], Any]:
    def broken(X: sp.csr_array) -> Any:
        X = X.copy()
        change(X)
        return X

    return broken


def _set(name: str, value: Callable[[Any], Any]) -> Callable[[sp.csr_array], Any]:
    return _compressed(lambda X: setattr(X, name, value(X)))


def _at(name: str, place: int, value: int) -> Callable[[sp.csr_array], Any]:
    def change(X: Any) -> None:
        getattr(X, name)[place] = value

    return _compressed(change)


def _csc(X: sp.csr_array, change: Callable[[Any], Any]) -> Any:
    Z = X.tocsc()
    change(Z)
    return Z


def _coo(X: sp.csr_array, axis: int, value: int) -> Any:
    Z = X.tocoo()
    Z.coords = tuple(np.where(np.arange(Z.nnz) == 3, value, c) if a == axis else c for a, c in enumerate(Z.coords))
    return Z


def _bsr(X: sp.csr_array, change: Callable[[Any], Any]) -> Any:
    Z = sp.bsr_array(X.toarray(), blocksize=(2, 2))
    change(Z)
    return Z


def _lil(X: sp.csr_array, column: int) -> Any:
    Z = X.tolil()
    Z.rows[2][-1] = column
    return Z


def _dok(X: sp.csr_array, key: tuple[int, int]) -> Any:
    Z = X.todok()
    Z._dict[key] = 1.0
    return Z


# Every one of these is refused: there is no matrix that it stands for.
BROKEN: dict[str, Callable[[sp.csr_array], Any]] = {
    "short indptr": _set("indptr", lambda X: X.indptr[: len(X.indptr) // 2].copy()),
    "indptr of one": _set("indptr", lambda X: X.indptr[:1].copy()),
    "no indptr": _set("indptr", lambda X: X.indptr[:0].copy()),
    "long indptr": _set("indptr", lambda X: np.append(X.indptr, X.indptr[-1])),
    "decreasing indptr": _at("indptr", 3, HUGE),
    "negative indptr": _at("indptr", 3, -5),
    "late start": _at("indptr", 0, 1),
    "end beyond": _at("indptr", -1, HUGE),
    "index too large": _at("indices", 5, HUGE),
    "index negative": _at("indices", 5, -1),
    "few indices": _set("indices", lambda X: X.indices[:3].copy()),
    "few data": _set("data", lambda X: X.data[:3].copy()),
    "float indices": _set("indices", lambda X: X.indices.astype(float)),
    "float indptr": _set("indptr", lambda X: X.indptr.astype(float)),
    "flat data": _set("data", lambda X: X.data[:, None]),
    "more rows": _set("_shape", lambda X: (10**7, X.shape[1])),
    "fewer columns": _set("_shape", lambda X: (X.shape[0], X.shape[1] - 3)),
    "csc short indptr": lambda X: _csc(X, lambda Z: setattr(Z, "indptr", Z.indptr[:2].copy())),
    "csc index too large": lambda X: _csc(X, lambda Z: Z.indices.__setitem__(2, HUGE)),
    "csc index negative": lambda X: _csc(X, lambda Z: Z.indices.__setitem__(2, -7)),
    "coo row too large": lambda X: _coo(X, 0, HUGE),
    "coo column negative": lambda X: _coo(X, 1, -HUGE),
    "bsr index too large": lambda X: _bsr(X, lambda Z: Z.indices.__setitem__(2, HUGE)),
    "bsr short indptr": lambda X: _bsr(X, lambda Z: setattr(Z, "indptr", Z.indptr[:3].copy())),
    "lil column too large": lambda X: _lil(X, HUGE),
    "dok key too large": lambda X: _dok(X, (2, HUGE)),
    "dok key negative": lambda X: _dok(X, (-HUGE, 1)),
}  # fmt: skip


def _unsorted(X: sp.csr_array, flag: bool) -> Any:
    Z = X.copy()
    for i in range(Z.shape[0]):
        part = slice(Z.indptr[i], Z.indptr[i + 1])
        Z.indices[part], Z.data[part] = Z.indices[part][::-1].copy(), Z.data[part][::-1].copy()
    if flag:  # a flag that was right before the arrays were changed
        Z.has_sorted_indices = Z.has_canonical_format = True
    return Z


def _repeated(X: sp.csr_array, flag: bool) -> Any:
    Z = sp.csr_array((np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape)
    if flag:
        Z.has_sorted_indices = Z.has_canonical_format = True
    return Z


def _spare(X: sp.csr_array) -> Any:
    Z = X.copy()
    Z.indices, Z.data = np.append(Z.indices, HUGE).astype(Z.indices.dtype), np.append(Z.data, np.nan)
    return Z


# These are odd but stand for the same matrix: they give the same result, or are refused.
ODD: dict[str, Callable[[sp.csr_array], Any]] = {
    "unsorted": lambda X: _unsorted(X, False),
    "unsorted with a stale flag": lambda X: _unsorted(X, True),
    "repeated entries": lambda X: _repeated(X, False),
    "repeated entries with a stale flag": lambda X: _repeated(X, True),
    "entries beyond the end": _spare,
    "indptr of other type": _set("indptr", lambda X: X.indptr.astype(np.int64)),
    "small unsigned indices": _compressed(
        lambda X: (setattr(X, "indices", X.indices.astype(np.uint8)), setattr(X, "indptr", X.indptr.astype(np.uint16)))
    ),
}
SKIPPED = {"get_metadata_routing", "inverse_transform", "prepare", "plot_margins", "align"}


@cache
def estimators() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for estimator in public_estimators():
        if get_tags(estimator).input_tags.two_d_array:
            found.setdefault(type(estimator).__name__, estimator)
    return found


@cache
def data(name: str) -> tuple[sp.csr_array, Any]:
    X, y = make_data(estimators()[name], n=60, d=6)
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    return sp.csr_array(X), y


@cache
def model(name: str) -> Any:
    X, y = data(name)
    try:
        return clone(estimators()[name]).fit(X, y)
    except (TypeError, ValueError):
        return clone(estimators()[name]).fit(X.toarray(), y)


FITS = ("fit", "partial_fit", "fit_transform", "fit_predict")
FUNCTIONS: dict[str, Callable[[Any, np.ndarray], Any]] = {
    "make_objective": lambda X, y: hg.make_objective(X, y, hg.Squared(), hg.L2(0.1)).value(np.zeros(6), np.zeros(1)),
    "enet_path": lambda X, y: hg.enet_path(X, y, alphas=3)[1],
    "lasso_path": lambda X, y: hg.lasso_path(X, y, alphas=3)[1],
    "RBF": lambda X, y: hg.kernels.RBF(1.0)(X, X),
    "Polynomial": lambda X, y: hg.kernels.Polynomial(2)(X, X),
    "Linear": lambda X, y: hg.Linear()(X, X),
    "Laplacian": lambda X, y: hg.kernels.Laplacian(1.0)(X, X),
    "check_psd": lambda X, y: hg.kernels.check_psd(hg.kernels.RBF(1.0), X),
    "hard_margin": lambda X, y: hg.solvers.hard_margin(X, np.sign(y)),
    "separating_direction": lambda X, y: hg.separating_direction(X, np.sign(y)),
    "learning_curve": lambda X, y: hg.learning_curve(hg.Ridge(), X, y, cv=3).test_scores,
    "tune": lambda X, y: hg.tune(hg.Ridge(), X, y, grid=3, cv=3).scores,
    "measure_drift": lambda X, y: hg.measure_drift(X, X).auc,
    "permutation_importance": lambda X, y: hg.permutation_importance(model("Ridge"), X, y).importances_mean,
    "query": lambda X, y: hg.active.query(model("LogisticRegression"), X),
    "empirical_risk": lambda X, y: hg.empirical_risk(model("Ridge"), X, y, hg.Squared()),
    "diagnose": lambda X, y: hg.diagnose(hg.Ridge(), X, y, cv=3, repeats=2) and None,
    "ridge_moments": lambda X, y: hg.ridge_moments(X, np.ones(6)).bias,
}  # fmt: skip


def entries() -> list[str]:
    found = [f"hg.{name}" for name in FUNCTIONS]
    for name, estimator in estimators().items():
        for method in sorted(set(dir(type(estimator))) - SKIPPED):
            call = None if method.startswith("_") else getattr(type(estimator), method, None)
            if callable(call) and "X" in inspect.signature(call).parameters:
                found.append(f"{name}.{method}")
    return found


def cases() -> Iterator[str]:
    """One breakage in seven at every entry, another at the next; all at the entries that others are made of."""
    kinds = [*BROKEN, *ODD]
    for i, entry in enumerate(entries()):
        every = entry in ("Ridge.fit", "Ridge.predict", "hg.kernels.RBF", "RandomForestRegressor.fit", "SVC.fit")
        yield from (f"{entry}|{kind}" for j, kind in enumerate(kinds) if every or (i + j) % 7 == 0)


def random(seed: int) -> str:
    rng = np.random.default_rng(seed)
    return f"{rng.choice(entries())}|{rng.choice([*BROKEN, *ODD])}"


def call(entry: str, X: Any) -> Any:
    owner, _, method = entry.partition(".")
    if owner == "hg":
        return FUNCTIONS[method](X, data("Ridge")[1])
    y = data(owner)[1]
    fresh = method in FITS
    target = clone(estimators()[owner]) if fresh else model(owner)
    bound = getattr(target, method, None)
    if bound is None:  # available under other settings only
        raise NotImplementedError(f"{owner} has no {method} here")
    parameters = inspect.signature(bound).parameters
    arguments: dict[str, Any] = {"X": X}
    if "y" in parameters:
        arguments["y"] = y
    if "random_state" in parameters:
        arguments["random_state"] = 0
    if method == "partial_fit" and "classes" in parameters:
        arguments["classes"] = np.unique(y)
    result = bound(**arguments)
    if isinstance(result, Iterator):
        result = list(result)
    if fresh and method in ("fit", "partial_fit"):
        return _coefficients(result)
    return result


def _coefficients(model: Any) -> Any:
    """Something numeric about a fit, for comparisons."""
    for attribute in ("coef_", "feature_importances_", "scale_", "means_", "theta_", "feature_log_prob_"):
        if (value := getattr(model, attribute, None)) is not None:
            return value
    return None


def numbers(value: Any) -> np.ndarray | None:
    value = value.toarray() if sp.issparse(value) else value
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return None


def run(case: str) -> None:
    entry, _, kind = case.partition("|")
    X = data("Ridge" if entry.startswith("hg.") else entry.partition(".")[0])[0]
    if kind in BROKEN:
        call(entry, BROKEN[kind](X))
        raise AssertionError("a broken matrix was accepted")
    plain, odd = numbers(call(entry, X)), numbers(call(entry, ODD[kind](X)))
    if plain is not None and odd is not None:
        scale = max(1.0, float(np.abs(plain[np.isfinite(plain)]).max(initial=0.0)))
        np.testing.assert_allclose(odd, plain, rtol=0, atol=1e-5 * scale)


GROUP = Group("sparse", cases, run, random)
