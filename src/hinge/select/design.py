"""Sequential experimental design for linear regression: which input to measure next.

Model       y = ⟨θ, v⟩ + noise of variance σ²,  v = φ(x) (with a leading 1 if there is a bias)
Precision   after inputs v₁ … v_m:  A⁻¹ = λI + Σ vᵢvᵢ',  Cov(θ̂) = σ²A (for λ → 0),  Var of a prediction at v is σ² v'Av
Update      A ← A − Avv'A / (1 + v'Av)                                                   (Sherman–Morrison)
Criteria    trace      v'AAv / (1 + v'Av): how much measuring v lowers tr A, the mean squared error of θ̂ (A-optimal)
            variance   v'Av: the input whose prediction is least certain

Neither depends on y, so a batch chosen one by one is the same as one chosen with measurements in between.

In a ball without a bias both are largest at the longest eigenvector of A with the largest eigenvalue a: in the
eigenbasis the trace criterion is R²Σpᵢaᵢ²/(1 + R²Σpᵢaᵢ) with Σp = 1, a ratio of linear functions, so largest at a
corner, where it is R²a²/(1 + R²a), which grows with a. With a bias the best point of the ball is found through
quadratics on a ball (the trust-region problem, solved exactly by its secular equation; the ratio by Dinkelbach's
method); in a box, by exact line searches along coordinates from the corners.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize

CRITERIA = ("trace", "variance")
CORNERS = 10  # up to this many features all corners of the box are tried


@dataclass(frozen=True)
class BoxDomain:
    """All x with low ≤ x ≤ high, coordinate by coordinate.

    Parameters
    ----------
    low, high : array of d
        The lower and the upper corner.
    """

    low: Any
    high: Any

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        low, high = np.broadcast_arrays(np.atleast_1d(np.asarray(self.low, float)), np.atleast_1d(self.high))
        if np.any(~np.isfinite(low)) or np.any(~np.isfinite(high)) or np.any(low >= high):
            raise ValueError("A box needs finite numbers low < high in every coordinate.")
        return low.astype(float), high.astype(float)


@dataclass(frozen=True)
class BallDomain:
    """All x of d coordinates with ‖x‖ ≤ radius.

    Parameters
    ----------
    d : int
        The number of coordinates.
    radius : float
        The length of the longest x; above zero.
    """

    d: int
    radius: float = 1.0


class SequentialDesign:
    """Chooses inputs to measure, one at a time, for a linear regression.

    Parameters
    ----------
    domain : array of shape (n, d), BoxDomain or BallDomain
        A pool of candidates, or a region.
    criterion : {"trace", "variance"}
        Lower tr A most (A-optimal), or measure where the prediction is least certain.
    ridge : float
        λ > 0: the precision before any measurement. A = (λI + Σ vv')⁻¹.
    intercept : bool
        Whether v begins with a 1.
    features : function, optional
        From an array of inputs to an array of features, for pools: a polynomial, say.
    replace : bool
        Whether an input of the pool may be measured again.

    Attributes
    ----------
    A_ : array
        The matrix A now.
    points_ : list of arrays
        The inputs measured so far.
    indices_ : list of int
        Their rows in the pool.
    gains_ : list of float
        The value of the criterion at each when it was chosen.

    Examples
    --------
    >>> import hinge as hg
    >>> design = hg.active.SequentialDesign(hg.active.BoxDomain(-1.0, 1.0), ridge=1e-3)
    >>> [float(x[0]) for x in design.ask(4)]
    [-1.0, 1.0, -1.0, 1.0]
    """

    def __init__(
        self,
        domain: Any,
        *,
        criterion: str = "trace",
        ridge: float = 1e-3,
        intercept: bool = True,
        features: Callable[[np.ndarray], np.ndarray] | None = None,
        replace: bool = False,
    ) -> None:
        if criterion not in CRITERIA:
            raise ValueError(f"criterion must be 'trace' or 'variance', got {criterion!r}.")
        if not ridge > 0:
            raise ValueError(f"ridge must be greater than 0 (before any measurement nothing is known), got {ridge!r}.")
        self.criterion, self.ridge, self.intercept, self.replace = criterion, float(ridge), intercept, replace
        self.domain, self.features = domain, features
        self.points_: list[np.ndarray] = []
        self.indices_: list[int] = []
        self.gains_: list[float] = []
        self._pool = None
        if isinstance(domain, BallDomain):
            d = domain.d
        elif isinstance(domain, BoxDomain):
            d = len(domain.bounds()[0])
        else:
            self.domain = np.asarray(domain, dtype=np.float64)
            if self.domain.ndim != 2 or len(self.domain) == 0:
                raise ValueError(f"A pool must have shape (n, d) with n > 0, got {self.domain.shape}.")
            self._pool = self._lift(self.domain if features is None else np.asarray(features(self.domain), float))
            d = self._pool.shape[1] - int(intercept)
        if features is not None and self._pool is None:
            raise ValueError("features need a pool of candidates: in a box or ball their best point is not known.")
        size = d + int(intercept)
        self.A_ = np.eye(size) / self.ridge
        if self._pool is not None:
            self._variance = np.einsum("ij,ij->i", self._pool, self._pool) / self.ridge  # v'Av
            self._reduction = self._variance / self.ridge  # v'AAv
            self._free = np.ones(len(self._pool), dtype=bool)

    @property
    def trace_(self) -> float:
        """tr A: the mean squared error of the weights, in units of the noise."""
        return float(np.trace(self.A_))

    def criterion_at(self, x: Any) -> np.ndarray:
        """The criterion at any inputs."""
        X = np.atleast_2d(np.asarray(x, dtype=np.float64))
        V = self._lift(X if self.features is None else np.asarray(self.features(X), float))
        P = V @ self.A_
        variance = np.einsum("ij,ij->i", P, V)
        return variance if self.criterion == "variance" else np.einsum("ij,ij->i", P, P) / (1.0 + variance)

    def ask(self, batch: int = 1) -> np.ndarray:
        """The next ``batch`` inputs, best first; they are recorded as measured."""
        if self._pool is not None and not self.replace and batch > int(self._free.sum()):
            raise ValueError(f"The pool has {int(self._free.sum())} candidates left; {batch} were requested.")
        return np.array([self._take() for _ in range(batch)])

    def add(self, X: Any) -> SequentialDesign:
        """Record inputs as measured that were chosen in another way."""
        X = np.atleast_2d(np.asarray(X, dtype=np.float64))
        for v in self._lift(X if self.features is None else np.asarray(self.features(X), float)):
            self._update(v)
        return self

    def add_index(self, rows: Any) -> SequentialDesign:
        """The same for rows of the pool, which are then removed from the candidates."""
        if self._pool is None:
            raise ValueError("Only a pool has rows; use add(x).")
        for i in np.atleast_1d(rows):
            self._record(int(i))
        return self

    def _lift(self, X: np.ndarray) -> np.ndarray:
        return np.column_stack([np.ones(len(X)), X]) if self.intercept else X

    def _take(self) -> np.ndarray:
        if self._pool is not None:
            values = np.where(self._free, self._values(), -np.inf)
            top = float(values.max())
            # The first of those that are equal up to rounding.
            return self._record(int(np.argmax(values >= top - 1e-9 * abs(top))))
        if isinstance(self.domain, BallDomain):
            x = _best_in_ball(self.A_, self.criterion, self.intercept, float(self.domain.radius))
        else:
            x = _best_in_box(self.A_, self.criterion, self.intercept, *self.domain.bounds())
        self.gains_.append(float(self.criterion_at(x)[0]))
        self._update(self._lift(x[None])[0])
        self.points_.append(x)
        return x

    def _values(self) -> np.ndarray:
        return self._variance if self.criterion == "variance" else self._reduction / (1.0 + self._variance)

    def _record(self, i: int) -> np.ndarray:
        assert self._pool is not None
        self.gains_.append(float(self._values()[i]))
        self.indices_.append(i)
        self.points_.append(self.domain[i])
        self._free[i] = self.replace
        self._update(self._pool[i])
        return self.domain[i]

    def _update(self, v: np.ndarray) -> None:
        """A and, for a pool, v'Av and v'AAv of all candidates after measuring v: two products with the pool."""
        u = self.A_ @ v
        s = 1.0 + float(v @ u)
        if self._pool is not None:
            c, g = self._pool @ u, self._pool @ (self.A_ @ u)
            self._reduction += -2.0 * c * g / s + c**2 * (float(u @ u) / s**2)
            self._variance -= c**2 / s
        self.A_ -= np.outer(u, u) / s


def _split(M: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """v'Mv with v = (1, x) as x'Qx + 2g'x + c."""
    return M[1:, 1:], M[1:, 0], float(M[0, 0])


def _best_in_ball(A: np.ndarray, criterion: str, intercept: bool, radius: float) -> np.ndarray:
    if not intercept:
        return radius * scipy.linalg.eigh(A)[1][:, -1]
    if criterion == "variance":
        Q, g, _ = _split(A)
        return largest_on_ball(Q, g, radius)
    numerator, denominator = _split(A @ A), _split(A)
    x, ratio = largest_on_ball(*_split(A)[:2], radius), -np.inf
    for _ in range(100):  # Dinkelbach: the best ratio is the root of max N − ratio·(1 + D)
        top = float(x @ numerator[0] @ x + 2 * numerator[1] @ x) + numerator[2]
        bottom = 1.0 + float(x @ denominator[0] @ x + 2 * denominator[1] @ x) + denominator[2]
        if top / bottom <= ratio * (1 + 1e-14):
            break
        ratio = top / bottom
        x = largest_on_ball(numerator[0] - ratio * denominator[0], numerator[1] - ratio * denominator[1], radius)
    return x


def largest_on_ball(Q: np.ndarray, g: np.ndarray, radius: float) -> np.ndarray:
    """The maximiser of x'Qx + 2g'x over ‖x‖ ≤ radius, for any symmetric Q.

    Optimality: (μI − Q)x = g with μI − Q positive semidefinite, μ ≥ 0 and μ(‖x‖ − radius) = 0.
    """
    values, vectors = scipy.linalg.eigh(Q)
    b = vectors.T @ g
    top = values[-1]

    def at(mu: float) -> np.ndarray:
        gaps = mu - values
        return np.where(np.abs(b) > 0, b / np.where(gaps > 0, gaps, np.inf), 0.0)

    if top < 0 and np.linalg.norm(at(0.0)) <= radius:
        return vectors @ at(0.0)
    floor = max(top, 0.0)
    size = max(abs(top), float(np.linalg.norm(g)) / radius, 1e-300)
    easy = np.abs(b) > 1e-14 * max(float(np.linalg.norm(b)), 1e-300)
    lowest = floor + 1e-13 * size
    if not np.any(easy) or np.linalg.norm(at(lowest)) < radius:
        # The hard case: g is orthogonal to the top eigenvector, which supplies the missing length.
        inside = np.where(values < top - 1e-12 * size, at(lowest), 0.0)
        inside[-1] = np.sqrt(max(radius**2 - float(inside[:-1] @ inside[:-1]), 0.0)) * (1.0 if b[-1] >= 0 else -1.0)
        return vectors @ inside
    highest = floor + float(np.linalg.norm(g)) / radius + size
    mu = scipy.optimize.brentq(lambda m: np.linalg.norm(at(m)) - radius, lowest, highest, xtol=1e-15 * size, rtol=1e-15)
    x = vectors @ at(mu)
    return x * (radius / np.linalg.norm(x))


def _best_in_box(A: np.ndarray, criterion: str, intercept: bool, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Exact line searches by coordinate from the best corners (all corners for few features)."""
    d = len(low)
    middle, half = (low + high) / 2, (high - low) / 2
    if d <= CORNERS:
        corners = np.array(list(product((-1.0, 1.0), repeat=d)))
    else:
        rng = np.random.default_rng(0)
        eigen = np.sign(scipy.linalg.eigh(A)[1][int(intercept) :, -3:].T)
        corners = np.vstack([np.where(eigen == 0, 1.0, eigen), rng.choice([-1.0, 1.0], size=(61, d))])
    X = middle + half * corners
    V = np.column_stack([np.ones(len(X)), X]) if intercept else X
    P = V @ A
    variance = np.einsum("ij,ij->i", P, V)
    values = variance if criterion == "variance" else np.einsum("ij,ij->i", P, P) / (1.0 + variance)
    order = np.argsort(-values.round(12), kind="stable")[: 1 if d <= CORNERS and criterion == "variance" else 8]
    found = [_climb(A, criterion, V[k].copy(), int(intercept), low, high) for k in order]
    best = max(range(len(found)), key=lambda k: round(found[k][1], 12))
    return found[best][0][int(intercept) :]


def _climb(
    A: np.ndarray, criterion: str, v: np.ndarray, skip: int, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, float]:
    B = A @ A
    value = _value(A, B, v, criterion)
    for _ in range(50):
        before = value
        for j in range(skip, len(v)):
            ends = [low[j - skip], high[j - skip]]
            # v'Av is convex, so its maximum is at an end.
            inner: Any = _stationary(A, B, v, j) if criterion == "trace" else []
            for t in (*ends, *(t for t in inner if ends[0] < t < ends[1])):
                trial = v.copy()
                trial[j] = t
                if (new := _value(A, B, trial, criterion)) > value * (1 + 1e-12):
                    v, value = trial, new
        if value <= before * (1 + 1e-12):
            break
    return v, value


def _value(A: np.ndarray, B: np.ndarray, v: np.ndarray, criterion: str) -> float:
    variance = float(v @ A @ v)
    return variance if criterion == "variance" else float(v @ B @ v) / (1.0 + variance)


def _stationary(A: np.ndarray, B: np.ndarray, v: np.ndarray, j: int) -> np.ndarray:
    """The stationary points of the ratio of the two quadratics in coordinate j: roots of a quadratic."""
    others = v.copy()
    others[j] = 0.0
    n = (B[j, j], 2.0 * B[j] @ others, others @ B @ others)
    m = (A[j, j], 2.0 * A[j] @ others, 1.0 + others @ A @ others)
    roots = np.roots([n[0] * m[1] - n[1] * m[0], 2 * (n[0] * m[2] - n[2] * m[0]), n[1] * m[2] - n[2] * m[1]])
    return np.real(roots[np.abs(np.imag(roots)) < 1e-12])
