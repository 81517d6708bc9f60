"""Columns that leak the target."""

from __future__ import annotations

from typing import Any

import numpy as np

SUSPICIOUS = 0.99  # a correlation, AUC or accuracy above this gets a note


def find_leak(column: Any, kind: str, targets: np.ndarray, task: str) -> tuple[str, float]:
    """A description of how a column determines the target ("" if it does not), and a score of its prediction (at most 1)."""
    present = column.is_not_null().to_numpy()
    if kind in ("text", "date") or len(column) < 20 or present.mean() < 0.5:
        return "", 0.0
    t = targets[present]
    if len(np.unique(t)) < 2:
        return "", 0.0
    if kind == "number":
        return _monotone(column.drop_nulls().to_numpy().astype(np.float64), t, task)
    return _explains(np.unique(column.drop_nulls().to_numpy().astype(str), return_inverse=True)[1], t, task)


def _monotone(x: np.ndarray, t: np.ndarray, task: str) -> tuple[str, float]:
    """How a number determines the target by a monotone function ("" if it does not), and its correlation or AUC."""
    if task in ("real", "count"):
        if np.allclose(x, t, rtol=1e-9, atol=1e-12):
            return "the same values", 1.0
        r = _correlation(x, t)
        if abs(r) > 1 - 1e-9:
            return "a linear function of it", 1.0
        order = _correlation(ranks(x), ranks(t))
        if abs(order) > 0.9999 and len(np.unique(x)) > 20:
            return "the same order", 1.0
        return "", max(abs(r), 0.0)
    if len(np.unique(x)) <= 50:
        return _explains(np.unique(x, return_inverse=True)[1], t, task)
    if task == "binary":
        rank = ranks(x)
        n1 = float(np.sum(t == t.max()))
        auc = (rank[t == t.max()].sum() - n1 * (n1 + 1) / 2) / (n1 * (len(t) - n1))
        auc = max(auc, 1 - auc)
        return ("it separates the classes without error", 1.0) if auc == 1.0 else ("", auc)
    return "", 0.0


def _explains(x: np.ndarray, t: np.ndarray, task: str) -> tuple[str, float]:
    """The score of the levels of a column: accuracy, or the explained share of the variance."""
    cells = np.bincount(x)
    if len(cells) > 0.2 * len(t):
        return "", 0.0
    if task in ("real", "count"):
        means = np.bincount(x, t) / np.maximum(cells, 1)
        share = 1 - np.mean((t - means[x]) ** 2) / np.var(t)
        return ("one value of it for each", 1.0) if share > 1 - 1e-12 and len(cells) > 2 else ("", share)
    _, t = np.unique(t, return_inverse=True)
    table = np.zeros((t.max() + 1, len(cells)), dtype=np.int64)
    np.add.at(table, (t, x), 1)
    right = table.max(axis=0).sum() / len(t)
    enough = np.min(np.bincount(t)) >= 5
    return ("a recoding of it", 1.0) if right == 1.0 and enough else ("", right if enough else 0.0)


def ranks(x: np.ndarray) -> np.ndarray:
    """Ranks from 1; ties have their mean rank."""
    _, place, counts = np.unique(x, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    a, b = a - a.mean(), b - b.mean()
    scale = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / scale) if scale > 0 else 0.0


def summands(numbers: list[Any], y: np.ndarray, task: str) -> list[str]:
    """Columns of which the target is an exact linear combination."""
    if task not in ("real", "count") or len(numbers) < 2:
        return []
    n = min(len(y), 5000)
    rows = np.linspace(0, len(y) - 1, n).astype(int)
    X = np.column_stack([s.to_numpy()[rows].astype(np.float64) for s in numbers])
    scale = X.std(axis=0)
    use = scale > 0
    if n < 4 * use.sum() or not use.any():
        return []
    Z = np.column_stack([(X[:, use] - X[:, use].mean(axis=0)) / scale[use], np.ones(n)])
    w, *_ = np.linalg.lstsq(Z, y[rows], rcond=None)
    error = np.max(np.abs(Z @ w - y[rows])) / max(np.std(y[rows]), 1e-300)
    if error > 1e-8:
        return []
    names = [s.name for s, u in zip(numbers, use) if u]
    return [name for name, weight in zip(names, w) if abs(weight) > 1e-6 * np.max(np.abs(w[:-1]))]
