"""Exact minimisation of the 0-1 loss over linear classifiers, for few examples.

Problem     min over (w, b) of Σ cᵢ 1[yᵢ(⟨w, xᵢ⟩ + b) ≤ 0]: NP-hard in general, finite for n points in d dimensions
Method      Move the hyperplane of a best classifier, without letting a point cross it, until it passes through d points
            that span it. Points off it keep their sides; those on it are split by the classifier's restriction to the
            hyperplane, the same problem in d − 1 dimensions. So the optimum is the minimum, over all hyperplanes H
            spanned by d of the points and both orientations, of

                errors off H + optimum of the points on H,

            and tilting H slightly towards the inner solution attains it. d points in general position have no error.
Cost        n choose d hyperplanes, n scores each
Reference   Johnson & Preparata (1978), "The densest hemisphere problem"
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_X_y, column_or_1d

from hinge.problem.losses import normalise_weights

Array = np.ndarray
CHUNK = 4096
ON = 1e-9  # scores below this share of the largest one are zero


@dataclass(frozen=True)
class ZeroOneSolution:
    """A linear classifier with the fewest mistakes on the training examples.

    Attributes
    ----------
    coef : array of d weights
        w.
    intercept : float
        b.
    error : float
        The weighted share of mistakes: the least any (w, b) makes.
    classes : array of two labels
        The label of negative scores and that of the others.
    hyperplanes : int
        How many were tried.
    """

    coef: Array
    intercept: float
    error: float
    classes: Array
    hyperplanes: int

    def decision_function(self, X: Any) -> Array:
        """⟨w, x⟩ + b."""
        return np.asarray(X, dtype=np.float64) @ self.coef + self.intercept

    def predict(self, X: Any) -> Array:
        """Labels."""
        return self.classes[(self.decision_function(X) > 0).astype(int)]


def minimise_zero_one(
    X: Any, y: Any, sample_weight: Any = None, *, max_hyperplanes: int = 2_000_000
) -> ZeroOneSolution:
    """The linear classifier with the fewest mistakes, by enumeration of hyperplanes.

    Minimises  Σ cᵢ 1[yᵢ(⟨w, xᵢ⟩ + b) ≤ 0]  exactly, for points in any position. The loss of a convex surrogate is the
    difference between its error and this one.

    Parameters
    ----------
    X : array of shape (n, d)
        The inputs.
    y : array of n labels, two kinds
        Any two labels.
    sample_weight : array of n weights, optional
        How much each example counts; all the same by default.
    max_hyperplanes : int
        The largest n choose d that is tried.

    Returns
    -------
    ZeroOneSolution

    Examples
    --------
    One outlier moves the hinge loss, not the number of mistakes:

    >>> import numpy as np, hinge as hg
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0], [-60.0]])
    >>> y = np.array([0, 0, 1, 1, 1])
    >>> hg.minimise_zero_one(X, y).error
    0.2
    """
    X, y = check_X_y(X, y, dtype=np.float64)
    classes, codes = np.unique(column_or_1d(y), return_inverse=True)
    if len(classes) != 2:
        raise ValueError(f"minimise_zero_one needs two classes; y has {len(classes)}.")
    c = normalise_weights(sample_weight, len(codes))
    keep = c > 0
    search = _Search(max_hyperplanes)
    scale = np.maximum(np.abs(X[keep]).max(axis=0), 1e-300)
    w, b, error = search.best(X[keep] / scale, 2.0 * codes[keep] - 1.0, c[keep])
    return ZeroOneSolution(w / scale, b, error, classes, search.tried)


class _Search:
    """Counts hyperplanes, and raises an error if there are too many."""

    def __init__(self, most: int) -> None:
        self.most, self.tried = most, 0

    def best(self, X: Array, y: Array, c: Array) -> tuple[Array, float, float]:
        """(w, b, error) of the least error on these points; coordinates are those of X."""
        n, d = X.shape
        side = float(np.sign(c @ y)) or 1.0
        found = (np.zeros(d), side, float(c[y != side].sum()))  # a constant
        centre = X.mean(axis=0)
        values, axes = np.linalg.svd(X - centre, full_matrices=False)[1:]
        rank = int(np.sum(values > ON * max(values[0], 1e-300))) if n and values.size and values[0] > 0 else 0
        if rank == 0 or found[2] == 0.0:
            return found
        if rank < d:  # the points lie in a subspace of fewer dimensions
            w, b, error = self.best((X - centre) @ axes[:rank].T, y, c)
            w = axes[:rank].T @ w
            return w, b - float(w @ centre), error
        if math.comb(n, d) + self.tried > self.most:
            raise ValueError(
                f"{n} examples in {d} dimensions have {math.comb(n, d)} hyperplanes to try, more than max_hyperplanes="
                f"{self.most}; use fewer examples or features, or a surrogate: hg.Hinge(), hg.Logistic(), hg.SigmoidLoss()."
            )
        for normals, offsets in self._hyperplanes(X, d):
            scores = X @ normals.T + offsets  # n × hyperplanes
            on = np.abs(scores) <= ON * np.abs(scores).max(axis=0)
            wrong = c @ ((np.sign(scores) != y[:, None]) & ~on)
            other = c @ ((np.sign(scores) == y[:, None]) & ~on)
            off = np.minimum(wrong, other)
            for k in np.argsort(off, kind="stable"):
                if off[k] >= found[2] - 1e-15:
                    break
                turn = 1.0 if wrong[k] <= other[k] else -1.0
                found = self._tilted(X, y, c, turn * normals[k], turn * offsets[k], on[:, k], float(off[k]), found)
        return found

    def _hyperplanes(self, X: Array, d: int) -> Iterator[tuple[Array, Array]]:
        """Normals and offsets of the hyperplanes through all sets of d points that span one, in chunks."""
        sets = itertools.combinations(range(len(X)), d)
        while chunk := list(itertools.islice(sets, CHUNK)):
            self.tried += len(chunk)
            rows = np.concatenate([X[np.array(chunk)], np.ones((len(chunk), d, 1))], axis=2)
            _, values, axes = np.linalg.svd(rows, full_matrices=True)
            spans = values[:, -1] > 1e-10 * values[:, 0]
            yield axes[spans, -1, :d], axes[spans, -1, d]

    def _tilted(
        self, X: Array, y: Array, c: Array, w: Array, b: float, on: Array, off: float, best: tuple[Array, float, float]
    ) -> tuple[Array, float, float]:
        """The hyperplane (w, b), tilted so that the points on it are split optimally; ``best`` if that is better."""
        inner, bias, error = self.best(X[on], y[on], c[on])
        if off + error >= best[2] - 1e-15:
            return best
        if not np.any(~on):
            return inner, bias, off + error
        room = np.min(np.abs(X[~on] @ w + b))
        size = max(float(np.max(np.abs(X @ inner + bias))), 1e-300)
        step = 0.5 * room / size
        return w + step * inner, b + step * bias, off + error
