"""Measurements of a fitted pipeline: importances, partial dependence, coefficients, learning curve."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from hinge.learn.evidence import Curve, Effect, Partial
from hinge.learn.scores import losses, predict_for, score
from hinge.learn.timeout import OutOfTime, limit

IMPORTANCE_ROWS, PARTIAL_ROWS, GRID = 3000, 300, 24
TYPICAL_ROWS = 100_000  # by which the typical values of a column are told
NORMAL_95 = 1.959964


def importances(
    model: Any, frame: Any, y: np.ndarray, task: str, classes: Any, seed: int, repeats: int = 3, seconds: float = 20.0
) -> list[Effect]:
    """How much the score rises when a column is shuffled among the rows, with 95 % intervals.

    The score is the mean loss, and for real targets its root.
    """
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(y))[:IMPORTANCE_ROWS]
    table, target = frame[np.sort(rows)], y[np.sort(rows)]
    mean = float(np.mean(target)) if classes is None else 1.0
    began = time.perf_counter()
    whole = losses(target, predict_for(model, table, task, classes), task, mean)
    cost = (time.perf_counter() - began) * frame.width * repeats
    if cost > seconds:  # fewer repeats, then fewer rows: every column gets its turn
        repeats = 1
        few = int(max(300, len(target) * min(1.0, 3 * seconds / cost)))
        table, target, whole = table[:few], target[:few], whole[:few]
    found = []
    for name in frame.columns:
        rises = []
        for _ in range(repeats):
            shuffled = table.with_columns(table[name].gather(rng.permutation(len(target))))
            rises.append(losses(target, predict_for(model, shuffled, task, classes), task, mean) - whole)
        rise = np.mean(rises, axis=0)
        mean_rise, error = float(rise.mean()), float(NORMAL_95 * np.std(rise) / np.sqrt(len(rise)))
        if task == "real":
            base, root = float(whole.mean()), float(np.sqrt(whole.mean()))
            sizes = [np.sqrt(max(base + r, 0.0)) - root for r in (mean_rise, mean_rise - error, mean_rise + error)]
        else:
            sizes = [mean_rise, mean_rise - error, mean_rise + error]
        found.append(Effect(name, *map(float, sizes)))
    return sorted(found, key=lambda e: -e.value)


def partial(model: Any, frame: Any, column: str, kind: str, task: str, classes: Any, seed: int) -> Partial | None:
    """The mean prediction over some rows as one column is set to each of its typical values."""
    import polars as pl

    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(frame.height)[:PARTIAL_ROWS])
    table, values = frame[rows], frame[column]
    if len(values) > TYPICAL_ROWS:
        values = values.gather(np.sort(rng.permutation(len(values))[:TYPICAL_ROWS]))
    values = values.drop_nulls()
    if kind == "text" or len(values) == 0:
        return None
    kind = "category" if kind == "boolean" else kind
    if kind == "category":
        places = values.value_counts(sort=True).head(10)[column].to_list()
    else:
        numbers = values.cast(pl.Float64) if kind == "number" else values.cast(pl.Int64).cast(pl.Float64)
        low, high = np.quantile(numbers.to_numpy(), [0.01, 0.99])
        distinct = np.unique(numbers.to_numpy())
        distinct = distinct[
            (distinct >= low) & (distinct <= high)
        ]  # of values, not of rows: one value may fill a column
        places = np.unique(np.quantile(distinct, np.linspace(0, 1, GRID))).tolist() if len(distinct) else []
    if len(places) < 2:
        return None
    dtype = frame.schema[column]
    stacked = pl.concat([
        table.with_columns(pl.lit(place if kind != "date" else int(place)).cast(dtype).alias(column)) for place in places
    ])  # fmt: skip
    p = predict_for(model, stacked, task, classes)
    if task == "binary":
        p = p[:, 1]
    p = p.reshape(len(places), len(rows), -1)
    means = p.mean(axis=1)
    return Partial(column, kind, places, means, np.quantile(p, 0.1, axis=1), np.quantile(p, 0.9, axis=1))


def coefficients(model: Any, names: Any, X: Any, y: np.ndarray, limit: int = 24) -> list[Effect]:
    """The weights of a linear model, largest first, with 95 % intervals by the sandwich formula.

    With slopes g and curvatures h of the loss, Cov(ŵ) ≈ H⁻¹ (Σ gᵢ² xᵢxᵢ') H⁻¹ with H = Σ hᵢ xᵢxᵢ' + nλI, the bias
    among the columns. For a lasso penalty over the weights that are not zero, as if those had been given beforehand.
    """
    w = np.asarray(getattr(model, "coef_", np.empty((0, 0))))
    if w.ndim != 1 or len(w) != len(names):
        return []
    used = np.flatnonzero(w)
    spread = np.full(len(w), np.nan)
    loss = model._loss()
    if 0 < len(used) <= 400 and loss.twice:
        columns = X[:, used]
        Z = np.column_stack([columns.toarray() if hasattr(columns, "toarray") else columns, np.ones(X.shape[0])])
        s = Z @ np.append(w[used], model.intercept_)
        g, h = loss.gradient(y, s), loss.hessian(y, s)
        H = (Z * h[:, None]).T @ Z
        H[np.arange(len(used)), np.arange(len(used))] += len(y) * _curvature(model.penalty)
        meat = (Z * (g**2)[:, None]).T @ Z
        inverse = np.linalg.pinv(H)
        spread[used] = np.sqrt(np.maximum(np.diag(inverse @ meat @ inverse)[:-1], 0.0))
    order = np.argsort(-np.abs(w))[:limit]
    width = NORMAL_95 * spread
    return [Effect(str(names[j]), float(w[j]), float(w[j] - width[j]), float(w[j] + width[j])) for j in order if w[j]]


def _curvature(penalty: Any) -> float:
    return float(penalty.lam) if type(penalty).__name__ == "L2" else 0.0


def learning_curve(
    fit: Callable[[np.ndarray], Any], frame: Any, y: np.ndarray, train: np.ndarray, test: np.ndarray, task: str,
    classes: Any, seed: int, seconds: float,
) -> Curve | None:  # fmt: skip
    """Scores after fits on growing numbers of training rows; the largest that time allows."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(train)
    sizes = np.unique(np.geomspace(max(40, len(train) // 32), len(train), 6).astype(int))
    sizes = sizes[sizes <= len(train)]
    rows: list[int] = []
    scores: list[tuple[float, float, float]] = []
    began, last = time.perf_counter(), 0.0
    mean = float(np.mean(y)) if classes is None else 1.0
    for size in sizes:
        spent = time.perf_counter() - began
        if spent + last * 2 > seconds and len(rows) >= 2:
            break
        start = time.perf_counter()
        part = np.sort(order[:size])
        if classes is not None and len(np.unique(y[part])) < 2:
            continue
        try:
            with limit(seconds - spent if len(rows) >= 2 else np.inf):
                model = fit(part)
        except OutOfTime:
            break
        seen = part[:: max(1, len(part) // 5000)]
        inside = score(losses(y[seen], predict_for(model, frame[seen], task, classes), task, mean), task)
        outside = score(losses(y[test], predict_for(model, frame[test], task, classes), task, mean), task)
        rows.append(int(size))
        scores.append((inside.value, outside.value, outside.error))
        last = time.perf_counter() - start
    if len(rows) < 2:
        return None
    return Curve(rows, [s[0] for s in scores], [s[1] for s in scores], [s[2] for s in scores])
