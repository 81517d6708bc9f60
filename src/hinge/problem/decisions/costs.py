"""Decisions with different costs of errors: the action with the smallest expected cost.

With a table C[a, b], the cost of deciding b if the true class is a, and probabilities p_a, the best decision is
argmin_b Σ_a p_a C[a, b]. For two classes that is a threshold on the probability of the second one,

    decide 1 if  p ≥ t,     t = (C[0,1] − C[0,0]) / ((C[0,1] − C[0,0]) + (C[1,0] − C[1,1])),

which is ½ for equal costs and small if missing a 1 is expensive.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def cost_threshold(cost: ArrayLike) -> float:
    """The probability of the second class above which deciding for it has the smaller expected cost.

    Parameters
    ----------
    cost : array of shape (2, 2)
        ``cost[a][b]``: the price of deciding b where a is true. A wrong decision must cost more than the right one.

    Examples
    --------
    Missing an ill patient costs ten times as much as a needless examination:

    >>> cost_threshold([[0, 1], [10, 0]])
    0.09090909090909091
    """
    table = _table(cost, 2)
    false_alarm, miss = table[0, 1] - table[0, 0], table[1, 0] - table[1, 1]
    return float(false_alarm / (false_alarm + miss))


def least_cost(proba: ArrayLike, cost: ArrayLike, classes: Any = None) -> np.ndarray:
    """The decision with the smallest expected cost for every row of probabilities.

    Parameters
    ----------
    proba : array of shape (n, k)
        The probability of every class, as ``predict_proba`` gives it.
    cost : array of shape (k, k)
        ``cost[a][b]``: the price of deciding b where a is true.
    classes : array of k labels, optional
        The labels, ``classes_`` of the model; 0 … k−1 if absent.

    Examples
    --------
    >>> least_cost([[0.8, 0.2], [0.95, 0.05]], [[0, 1], [10, 0]], classes=["well", "ill"])
    array(['ill', 'well'], dtype='<U4')
    """
    p = np.asarray(proba, dtype=np.float64)
    if p.ndim != 2:
        raise ValueError(f"proba has shape {p.shape}; expected (n, k), one column per class.")
    labels = np.arange(p.shape[1]) if classes is None else np.asarray(classes)
    if len(labels) != p.shape[1]:
        raise ValueError(f"classes has {len(labels)} labels; expected {p.shape[1]}, one for each column of proba.")
    return labels[np.argmin(p @ _table(cost, p.shape[1]), axis=1)]


def _table(cost: ArrayLike, k: int) -> np.ndarray:
    table = np.asarray(cost, dtype=np.float64)
    if table.shape != (k, k) or not np.all(np.isfinite(table)):
        raise ValueError(f"cost must be {k} × {k} finite numbers, one row and one column per class.")
    if np.any(table < np.diag(table)[:, None]) or np.any((table - np.diag(table)[:, None] + np.eye(k)) <= 0):
        raise ValueError("cost must be larger for a wrong decision than for the right one, in every row.")
    return table
