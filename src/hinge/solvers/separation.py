"""Whether the objective has a minimiser, and if not, a direction along which it decreases without end.

A loss may decrease without end in one direction of its score without reaching its infimum (``Loss.falling``): the
logistic loss towards the side of its label, a Poisson likelihood of y = 0 towards −∞. With sᵢ = ±1 for those directions
and 0 for examples whose loss rises at both ends, the objective has no minimiser if and only if some direction (v, t)
that costs no penalty has

    sᵢ(⟨v, xᵢ⟩ + t) ≥ 0 where sᵢ ≠ 0,    ⟨v, xᵢ⟩ + t = 0 where sᵢ = 0,    and at least one of them is > 0

(Albert & Anderson 1984 for two classes). All strict: separable. Some zero: quasi-separable. With mᵢ = sᵢ(⟨v, xᵢ⟩ + t),
two linear programs answer for two classes,

    max t      subject to   mᵢ ≥ t,  |v_j| ≤ 1      which is above 0 exactly if the classes are separable,
    max Σ mᵢ   subject to   0 ≤ mᵢ ≤ 1              which is above 0 exactly if they are at least quasi-separable,

and the second one, with mᵢ = 0 where sᵢ = 0, for all losses. The softmax loss of k classes is the same problem over pairs
of an example and a wrong class, with margins ⟨v_y − v_j, x⟩ + t_y − t_j.

``find_separation`` tests a fit in three stages. First it checks the scores: weights that have not gone far in a falling
direction show that there is none, which settles an ordinary fit. Then it compares the curvature along every direction
with the mean curvature; only if some direction has hardly any left does it solve a linear program.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.sparse

from hinge._native import check_indices
from hinge.problem.objective import Array, Objective
from hinge.problem.penalties import L0

# Entries of the constraint matrix up to which the linear program is solved.
LIMIT = 20_000_000
FAR = 1e-3  # a gradient of the loss below this share of the largest one shows that the score has gone far
FLAT = 1e-4  # a curvature below this share of the mean one suggests a direction of separation
MOST_COLUMNS = 1500  # largest order of the matrix whose eigenvalues are computed


@dataclass(frozen=True)
class Separation:
    """A direction along which no example is on the wrong side, and at least one is on the right side.

    Attributes
    ----------
    direction, bias : array and float
        All margins yᵢ(⟨direction, xᵢ⟩ + bias) are ≥ 0.
    complete : bool
        Whether all margins are > 0 (separable) or some are 0 (quasi-separable).
    classes : bool
        Whether the targets are classes; otherwise counts or amounts, whose zeros are separated from the rest.
    """

    direction: np.ndarray
    bias: float | np.ndarray
    complete: bool
    classes: bool = True  # whether the targets are classes

    def __str__(self) -> str:
        size = np.abs(self.direction) if self.direction.ndim == 1 else np.abs(self.direction).max(axis=1)
        lead = [j for j in np.argsort(-size, kind="stable")[:3] if size[j] > 1e-9 * size.max()]
        if self.direction.ndim == 1:
            terms = ", ".join(f"{self.direction[j]:+.3g}·x{j}" for j in lead)
        else:
            terms = "of " + ", ".join(f"x{j}" for j in lead) if lead else ""
        word = "completely" if self.complete else "partly (quasi-separation)"
        what = "the classes are separated" if self.classes else "the targets are separated"
        return f"{what} {word} along the direction {terms or 'of the bias'}"

    def warning(self) -> str:
        """One sentence for the user: the problem, where it is, and the remedy."""
        return (
            f"There is no best fit without a penalty: {self}, so the loss falls for ever as the weights grow, and the "
            "weights and their standard errors mean nothing; add a penalty such as hg.L2(1e-3) (C or alpha in the named "
            "estimators), or drop or merge the features named."
        )


def check_direction(X: Any, signs: np.ndarray, w: np.ndarray, b: float) -> Separation | None:
    """The direction (w, b) as a :class:`Separation`, if it is one."""
    scores = X @ w
    size = np.max(np.abs(scores), initial=0.0) + abs(b)
    margins = signs * (scores + b)
    slack = 1e-9 * max(size, 1e-300)
    if np.any(margins < -slack) or not np.any(margins > 1e-6 * size):
        return None
    return Separation(np.asarray(w), float(b), bool(np.all(margins > slack)))


def separating_direction(X: Any, signs: np.ndarray, *, fit_intercept: bool = True) -> Separation | None:
    """A separating or quasi-separating direction for labels −1/+1, or None if there is none.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        The inputs.
    signs : array of −1 and +1
        The classes.
    fit_intercept : bool
        Whether the hyperplane may miss the origin.
    """
    check_indices(X)
    X = X.tocsr() if scipy.sparse.issparse(X) else X
    d = X.shape[1]
    scale = _column_scale(X)
    if scipy.sparse.issparse(X):
        rows = scipy.sparse.diags_array(signs) @ scipy.sparse.csr_array(X) @ scipy.sparse.diags_array(1.0 / scale)
        rows = scipy.sparse.hstack([rows, signs[:, None]]).tocsr() if fit_intercept else rows
    else:
        rows = signs[:, None] * (np.asarray(X, dtype=np.float64) / scale)
        rows = np.column_stack([rows, signs]) if fit_intercept else rows
    found = _strict(rows)
    if found is None:
        found = _weak(rows)
    if found is None:
        return None
    return check_direction(X, signs, found[:d] / scale, float(found[d]) if fit_intercept else 0.0)


def _strict(rows: Any) -> np.ndarray | None:
    """The direction in the unit box with the largest smallest margin, if that is positive."""
    n, d = rows.shape
    column = np.ones((n, 1))
    sparse = scipy.sparse.issparse(rows)
    A = scipy.sparse.hstack([-rows, column]).tocsr() if sparse else np.hstack([-rows, column])
    # The length of a direction is free, so the bias may share the box of the weights.
    bounds = [(-1.0, 1.0)] * d + [(None, 1.0)]
    program = scipy.optimize.linprog(
        np.append(np.zeros(d), -1.0), A_ub=A, b_ub=np.zeros(n), bounds=bounds, method="highs"
    )
    return program.x[:d] if program.status == 0 and program.x[d] > 1e-9 else None


def _weak(rows: Any) -> np.ndarray | None:
    """A direction with margins in [0, 1] and the largest sum."""
    n = rows.shape[0]
    stacked = scipy.sparse.vstack([rows, -rows]).tocsr() if scipy.sparse.issparse(rows) else np.vstack([rows, -rows])
    program = scipy.optimize.linprog(
        -np.asarray(rows.sum(axis=0)).ravel(), A_ub=stacked, b_ub=np.append(np.ones(n), np.zeros(n)),
        bounds=(None, None), method="highs",
    )  # fmt: skip
    return program.x if program.status == 0 else None


def _column_scale(X: Any) -> np.ndarray:
    if scipy.sparse.issparse(X) and not X.has_canonical_format:
        X = X.copy()  # summing duplicate entries works in place
        X.sum_duplicates()
    largest = np.asarray(abs(X).max(axis=0).todense()).ravel() if scipy.sparse.issparse(X) else np.abs(X).max(axis=0)
    return np.where(largest > 0, largest, 1.0).astype(np.float64)


# ------------------------------------------------------------------------------------------------ of a fitted objective


def find_separation(objective: Objective, w: Array, b: Array, *, converged: bool = True) -> Separation | None:
    """A direction along which the objective decreases without end, if the fit (w, b) indicates one and there is one."""
    o = objective
    if o.outputs > 1 and o.loss.outputs == "one":
        singles = [replace(o, y=np.ascontiguousarray(y), outputs=1) for y in o.y.T]
        for single, v, t in zip(singles, w.T, b):
            one = find_separation(single, v, np.array([t]), converged=converged)
            if one is not None:
                return one
        return None
    side = o.loss.falling(o.y)
    if side is None:
        return None
    free = _free_features(o)
    if not (o.fit_intercept or np.any(free)):
        return None
    used = o.c > 0
    classes = o.loss.target.is_classes or bool(np.all(np.abs(side[used]) == 1))
    if not np.any(free):
        return _by_the_bias(o, side[used], classes)
    z = o.scores(w, b)
    u = np.abs(o.gradient_of_scores(z))
    u = u if u.ndim == 1 else u.max(axis=1)
    far = used & (side != 0) & (u <= FAR * max(float(np.max(u[used])), np.finfo(float).tiny))
    if converged and not (np.any(far) or np.max(u[used]) <= FAR):
        return None
    margins = _Margins(o, side, free, z)
    found = margins.check(w, b)
    if found is None and margins.suspicious(converged):
        found = margins.search()
    if found is None:
        return None
    size = float(max(np.max(np.abs(found[0]), initial=0.0), np.max(np.abs(found[1]), initial=0.0)))
    return Separation(found[0] / size, found[1] / size, found[2], classes)


def _free_features(o: Objective) -> np.ndarray:
    """Which weights may grow without limit in some direction at a bounded penalty."""
    if isinstance(o.penalty, L0):
        return np.ones(o.d, dtype=bool)
    parts = o.penalty.coordinates(o.d)
    if parts is None:
        return np.zeros(o.d, dtype=bool)
    return (parts.l1 == 0) & (parts.l2 == 0) & (np.isinf(parts.lower) | np.isinf(parts.upper))


def _by_the_bias(o: Objective, side: np.ndarray, classes: bool) -> Separation | None:
    """The case in which only the bias is free: it separates if all losses fall in the same direction."""
    if o.outputs > 1:
        absent = len(np.unique(o.y[o.c > 0])) < o.outputs
        bias = np.isin(np.arange(o.outputs), o.y[o.c > 0]).astype(float)
        return (
            Separation(np.zeros((o.d, o.outputs)), bias, len(np.unique(o.y[o.c > 0])) == 1, classes) if absent else None
        )
    if side[0] == 0 or np.any(side != side[0]):
        return None
    return Separation(np.zeros(o.d), float(side[0]), True, classes)


class _Margins:
    """The margins sᵢ(⟨v, xᵢ⟩ + t) as a matrix times (v, t), with v over the free features, in units of the columns."""

    def __init__(self, o: Objective, side: np.ndarray, free: np.ndarray, z: Array) -> None:
        self.o, self.free = o, np.flatnonzero(free)
        self.used = np.flatnonzero(o.c > 0)
        self.side = side[self.used]
        self.size = len(self.used) * (len(self.free) + 1) * (o.outputs if o.outputs == 1 else o.outputs**2)
        self._z = z[self.used]
        self._rows: Any = None

    def check(self, w: Array, b: Array) -> tuple[Array, Any, bool] | None:
        """The direction of the fit itself, if it uses free weights only."""
        fixed = np.delete(w, self.free, axis=0)
        if np.any(fixed):
            return None
        o, rows = self.o, self.used
        scores = (o.design.matmul(w) + (b if o.outputs > 1 else b[0] * o.fit_intercept))[rows]
        return self._checked(w, b if o.outputs > 1 else float(b[0]), scores)

    def _checked(self, v: Array, t: Any, scores: Array) -> tuple[Array, Any, bool] | None:
        size = float(np.max(np.abs(scores), initial=0.0))
        if self.o.outputs > 1:
            codes, index = self.o.y[self.used].astype(np.intp), np.arange(len(self.used))
            own = scores[index, codes].copy()
            others = scores.copy()
            others[index, codes] = -np.inf
            margins, most = own - others.max(axis=1), own - scores.min(axis=1)
            still = np.zeros(0)
        else:
            margins = (self.side * scores)[self.side != 0]
            most, still = margins, scores[self.side == 0]
        slack = 1e-9 * max(size, 1e-300)
        bad = np.any(margins < -slack) or np.any(np.abs(still) > slack) or not np.any(most > 1e-6 * size)
        return None if bad else (v, t, len(still) == 0 and bool(np.all(margins > slack)))

    def suspicious(self, converged: bool) -> bool:
        """Whether some direction has hardly any curvature at the fit, compared with the mean curvature."""
        if self.size > LIMIT:
            return False
        R = self.rows()
        m = R.shape[1]
        if m > MOST_COLUMNS:
            return not converged
        h, c = self._curvature()
        mean = float(c @ h) / float(c.sum())
        plain, bent = _gram(R, c), _gram(R, c * h)
        values, vectors = scipy.linalg.eigh(plain)
        kept = values > 1e-10 * values[-1]
        if not np.any(kept):  # all rows are zero, and no direction changes a score
            return False
        whitened = vectors[:, kept] / np.sqrt(values[kept])
        least = scipy.linalg.eigvalsh(whitened.T @ bent @ whitened)[0]
        return bool(least <= FLAT * mean) or not np.isfinite(least)

    def _curvature(self) -> tuple[Array, Array]:
        """ℓ'' and the weights of the rows."""
        o = self.o
        c = o.c[self.used]
        if o.outputs == 1:
            return np.nan_to_num(o.loss.hessian(o.y[self.used], self._z)), c
        p = o.loss.inverse_link(self._z)
        codes, k = o.y[self.used].astype(np.intp), o.outputs
        own = p[np.arange(len(c)), codes]
        pairs = own[:, None] * p
        others = np.arange(k)[None, :] != codes[:, None]
        return pairs[others], np.repeat(c, k - 1)

    def rows(self) -> Any:
        """The matrix of the margins: one row for each example, or for each pair of an example and a wrong class."""
        if self._rows is None:
            self._rows = self._expand() if self.o.outputs > 1 else self._plain()
        return self._rows

    def _columns(self) -> Any:
        source = self.o.design.source
        X: Any = self.o.design.columns(self.free)[self.used] if not scipy.sparse.issparse(source) else None
        X = source.tocsr()[self.used].tocsc()[:, self.free] if X is None else X
        self._scale = _column_scale(X)
        if scipy.sparse.issparse(X):
            X = (scipy.sparse.csr_array(X) @ scipy.sparse.diags_array(1.0 / self._scale)).tocsr()
            return scipy.sparse.hstack([X, np.ones((X.shape[0], 1))]).tocsr() if self.o.fit_intercept else X
        X = np.asarray(X, dtype=np.float64) / self._scale
        return np.column_stack([X, np.ones(len(X))]) if self.o.fit_intercept else X

    def _plain(self) -> Any:
        sign = np.where(self.side == 0, 1.0, self.side)
        A = self._columns()
        return (scipy.sparse.diags_array(sign) @ A).tocsr() if scipy.sparse.issparse(A) else sign[:, None] * A

    def _expand(self) -> np.ndarray:
        A = self._columns()
        A = A.toarray() if scipy.sparse.issparse(A) else A
        n, m, k = A.shape[0], A.shape[1], self.o.outputs
        codes = self.o.y[self.used].astype(np.intp)
        R = np.zeros((n, k - 1, m, k))
        index, wrong = np.arange(n), np.arange(k - 1)
        others = wrong[None, :] + (wrong[None, :] >= codes[:, None])
        R[index, :, :, codes] = A[:, None, :]
        R[index[:, None], wrong[None, :], :, others] = -A[:, None, :]
        return R.reshape(n * (k - 1), m * k)

    def search(self) -> tuple[Array, Any, bool] | None:
        """The second linear program, with equations for examples whose score must not change."""
        o, R = self.o, self.rows()
        moves = self.side != 0 if o.outputs == 1 else np.ones(R.shape[0], dtype=bool)
        up, still = R[moves], R[~moves]
        stack = scipy.sparse.vstack if scipy.sparse.issparse(R) else np.vstack
        equal = {"A_eq": still, "b_eq": np.zeros(still.shape[0])} if still.shape[0] else {}
        program = scipy.optimize.linprog(
            -np.asarray(up.sum(axis=0)).ravel(), A_ub=stack([up, -up]),
            b_ub=np.append(np.ones(up.shape[0]), np.zeros(up.shape[0])), bounds=self._bounds(), method="highs", **equal,
        )  # fmt: skip
        if program.status != 0 or not -program.fun > 1e-7:
            return None
        k, m = o.outputs, len(self.free)
        x = program.x.reshape(-1, k) if k > 1 else program.x
        v = np.zeros((o.d, k) if k > 1 else o.d)
        v[self.free] = x[:m] / (self._scale[:, None] if k > 1 else self._scale)
        t = (x[m] if k > 1 else float(x[m])) if o.fit_intercept else (np.zeros(k) if k > 1 else 0.0)
        return self._checked(v, t, (o.design.matmul(v) + t)[self.used])

    def _bounds(self) -> Any:
        parts = self.o.penalty.coordinates(self.o.d)
        if parts is None or (np.isinf(parts.lower).all() and np.isinf(parts.upper).all()):
            return (None, None)
        ends = [
            (None if np.isinf(lo) else 0.0, None if np.isinf(hi) else 0.0) for lo, hi in zip(parts.lower, parts.upper)
        ]
        ends = [ends[j] for j in self.free for _ in range(self.o.outputs)]
        return ends + [(None, None)] * (self.o.outputs * int(self.o.fit_intercept))


def _gram(R: Any, c: Array) -> np.ndarray:
    """R' diag(c) R."""
    if scipy.sparse.issparse(R):
        return np.asarray((R.T @ scipy.sparse.diags_array(c) @ R).todense())
    return (R * c[:, None]).T @ R
