"""Quadratic programs solved by Clarabel, an interior-point solver: the independent reference.

Problem     min_{w,b,ξ} Σ cᵢ (ξᵢ or (h/2) ξᵢ²) + Σ_j λ₁ a_j + (λ₂/2) w_j²
            subject to  α_k sᵢ + β_k ≤ ξᵢ for every straight piece k of the loss, sᵢ = xᵢ'w + b,  ±w_j ≤ a_j,  bounds
            (the lasso: ξᵢ = sᵢ − yᵢ;  the soft-margin SVM: 1 − yᵢsᵢ ≤ ξᵢ, 0 ≤ ξᵢ;  the hard margin: ξ = 0)
Dual        uᵢ = Σ_k multiplier_k α_k / cᵢ;  for the SVM αᵢ = −yᵢuᵢcᵢ/λ solves
            max Σα − ½ Σ αᵢαⱼyᵢyⱼxᵢ'xⱼ  subject to  0 ≤ αᵢ ≤ cᵢ/λ,  Σ αᵢyᵢ = 0
Optimality  the six relations of margins and α: α = 0 ⇒ m ≥ 1, 0 < α < c/λ ⇒ m = 1, α = c/λ ⇒ m ≤ 1, and back
Returns     the optimum to about 1e-9, with its dual variables. For thousands of examples, not millions
Reference   Boyd & Vandenberghe (2004), chapter 4; Goulart & Chen (2024) for Clarabel
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from hinge._native import check_indices
from hinge.problem.losses import Huber
from hinge.problem.objective import Array, Objective
from hinge.solvers.base import Need, Solution, Solver, Status, Stop


@dataclass(frozen=True)
class QuadraticProgram(Solver):
    """The problem as a quadratic program in standard form, solved by Clarabel (``pip install hinge-learn[qp]``).

    Parameters
    ----------
    form : {"primal", "dual"}
        "dual" is the SVM's dual over α, for the hinge loss with an L2 penalty.
    """

    form: str = "primal"

    name: ClassVar[str] = "quadratic-program"
    needs: ClassVar[tuple[Need, ...]] = (Need.QUADRATIC, Need.PROJECTION, Need.ONE_OUTPUT)

    def __post_init__(self) -> None:
        if self.form not in ("primal", "dual"):
            raise ValueError(f"form must be 'primal' or 'dual', got {self.form!r}.")

    def missing(self, objective: Objective) -> list[Need]:
        if self.form == "primal":
            return super().missing(objective)
        needs = (Need.HINGE, Need.RIDGE, Need.STRONGLY_CONVEX, Need.ONE_OUTPUT)
        return [need for need in needs if not need.met_by(objective)]

    def run(self, objective: Objective, w: Array, b: Array, stop: Stop) -> Solution:
        w, b, u, iterations, solved = _dual(objective) if self.form == "dual" else _primal(objective)
        value = objective.value(w, b)
        stop.report(iterations, value, w=w, b=b)
        return Solution(w, b, Status.CONVERGED if solved else Status.STALLED, iterations, u)


class _Program:
    """min ½x'Px + q'x subject to Ax + slack = bound, built block by block."""

    def __init__(self, sizes: dict[str, int]) -> None:
        ends = np.cumsum(list(sizes.values()))
        self.at = {name: slice(end - size, end) for (name, size), end in zip(sizes.items(), ends)}
        self.size = int(ends[-1])
        self.P, self.q = np.zeros(self.size), np.zeros(self.size)
        self._rows: dict[str, list[tuple[Any, Array]]] = {"equal": [], "less": [], "cone": []}

    def add(self, kind: str, bound: Array, **blocks: Any) -> slice:
        """Adds rows Σ block·x = bound, ≤ bound, or (bound − Σ block·x) in a cone; returns their slice."""
        rows = len(bound)
        parts = [blocks.get(name) for name in self.at]
        widths = [s.stop - s.start for s in self.at.values()]
        A = sp.hstack([sp.csc_matrix((rows, m)) if p is None else sp.csc_matrix(p) for p, m in zip(parts, widths)])
        begin = sum(len(known) for _, known in self._rows[kind])
        self._rows[kind].append((A, bound))
        return slice(begin, begin + rows)

    def solve(self, P: Any = None) -> tuple[Array, dict[str, Array], int, bool]:
        clarabel = import_clarabel()
        order = ("equal", "less", "cone")
        groups = {kind: self._rows[kind] for kind in order}
        A = sp.vstack([A for kind in order for A, _ in groups[kind]], format="csc")
        bound = np.concatenate([known for kind in order for _, known in groups[kind]])
        counts = {kind: sum(len(known) for _, known in groups[kind]) for kind in order}
        cones = [clarabel.ZeroConeT(counts["equal"])] if counts["equal"] else []
        cones += [clarabel.NonnegativeConeT(counts["less"])] if counts["less"] else []
        cones += [clarabel.SecondOrderConeT(len(known)) for _, known in groups["cone"]]
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
        P = sp.diags_array(self.P, format="csc") if P is None else P
        result = clarabel.DefaultSolver(sp.triu(P, format="csc"), self.q, A, bound, cones, settings).solve()
        z = np.asarray(result.z)
        ends = np.cumsum([counts[kind] for kind in order])
        multipliers = {kind: z[end - counts[kind] : end] for kind, end in zip(order, ends)}
        ok = str(result.status) in ("Solved", "AlmostSolved")
        return np.asarray(result.x), multipliers, int(result.iterations), ok


def import_clarabel() -> Any:
    try:
        import clarabel
    except ImportError:
        raise ImportError(
            "solver='quadratic-program' needs the package clarabel; install it with: pip install 'hinge-learn[qp]'"
        ) from None
    return clarabel


def _matrix(objective: Objective) -> Any:
    """X with a column of ones if there is a bias."""
    X = objective.design.source
    return sp.csc_matrix(X) if sp.issparse(X) else np.asarray(X, dtype=np.float64)


def _primal(o: Objective) -> tuple[Array, Array, Array | None, int, bool]:
    n, d, X = o.n, o.d, _matrix(o)
    quadratic, huber = o.loss.constant_curvature or isinstance(o.loss, Huber), isinstance(o.loss, Huber)
    program = _Program({"w": d, "b": 1, "a": d, "xi": n, "t": n if huber else 0, "e": n if huber else 0})
    shift = np.zeros(n) if o.offset is None else o.offset
    ones, eye_n, eye_d = np.ones((n, 1)), sp.eye_array(n), sp.eye_array(d)
    if not o.fit_intercept:
        program.add("equal", np.zeros(1), b=np.ones((1, 1)))
    lines = None
    if quadratic:
        # ξ = s − y, or s − y − t with |t| ≤ e for Huber's tails.
        extra = {"t": -eye_n} if huber else {}
        program.add("equal", o.y - shift, w=X, b=ones, xi=-eye_n, **extra)
        program.P[program.at["xi"]] = o.c * (1.0 if huber else o.loss.curvature)
        if huber:
            program.add("less", np.zeros(n), t=eye_n, e=-eye_n)
            program.add("less", np.zeros(n), t=-eye_n, e=-eye_n)
            program.q[program.at["e"]] = o.c * o.loss.delta  # type: ignore[attr-defined]
    else:
        lines = o.loss.pieces(o.y)
        places = []
        for slope, start in zip(lines.slope, lines.start):
            S = sp.diags_array(slope)
            places.append(
                program.add("less", -start - slope * shift, w=sp.csc_matrix(S @ X), b=slope[:, None], xi=-eye_n)
            )
        if lines.square:
            program.P[program.at["xi"]] = o.c * lines.square
        else:
            program.q[program.at["xi"]] = o.c
    stops = _add_penalty(program, o, eye_d)
    x, multipliers, iterations, ok = program.solve()
    w, b = x[program.at["w"]].copy(), x[program.at["b"]].copy() if o.fit_intercept else np.zeros(1)
    w = _feasible(o, w, stops, multipliers["less"])
    u = None
    if lines is not None:
        pull = sum(multipliers["less"][place] * slope for place, slope in zip(places, lines.slope))
        u = np.divide(pull, o.c, out=np.zeros(n), where=o.c > 0)
    return w, b, u, iterations, ok


def _add_penalty(program: _Program, o: Objective, eye: Any) -> list[tuple[Array, np.ndarray, slice]]:
    """Adds the penalty; returns its bounds as (bound, features, place of the multipliers)."""
    d, coordinates = o.d, o.penalty.coordinates(o.d)
    stops = []
    if coordinates is not None:
        program.P[program.at["w"]] = coordinates.l2
        program.q[program.at["a"]] = coordinates.l1
        for sign, limit in ((1.0, coordinates.upper), (-1.0, coordinates.lower)):
            finite = np.flatnonzero(np.isfinite(limit))
            if len(finite):
                place = program.add("less", sign * limit[finite], w=sign * eye.tocsr()[finite])
                stops.append((limit[finite], finite, place))
    radius = getattr(o.penalty, "radius", 0.0)
    if o.penalty.ball == "l2":
        program.add("cone", np.append(radius, np.zeros(d)), w=sp.vstack([sp.csc_matrix((1, d)), -eye]))
    program.add("less", np.zeros(d), w=eye, a=-eye)
    program.add("less", np.zeros(d), w=-eye, a=-eye)
    if o.penalty.ball == "l1":
        program.add("less", np.array([radius]), a=np.ones((1, d)))
    elif coordinates is None or not np.any(coordinates.l1):
        program.q[program.at["a"]] += 1e-9  # a ≥ |w| only; a tiny cost keeps it from growing
    return stops


def _feasible(o: Objective, w: Array, stops: list[tuple[Array, np.ndarray, slice]], multipliers: Array) -> Array:
    """Interior points stay slightly away from bounds: puts weights whose bound has the larger multiplier on it."""
    if o.penalty.coordinates(o.d) is None:
        return o.penalty.prox(w, 1.0)
    for limit, which, place in stops:
        w[which] = np.where(np.abs(w[which] - limit) < multipliers[place], limit, w[which])
    return w


def _dual(o: Objective) -> tuple[Array, Array, Array, int, bool]:
    coordinates = o.penalty.coordinates(o.d)
    assert coordinates is not None
    X = _matrix(o)
    X = X.toarray() if sp.issparse(X) else X
    shift = np.zeros(o.n) if o.offset is None else o.offset
    # In the variables p = −yu ∈ [0, 1] weighted by c: w = Σ cᵢ pᵢ yᵢ xᵢ / λ.
    program = _Program({"p": o.n})
    program.q = -(1.0 - o.y * shift)
    eye = sp.eye_array(o.n)
    balance = program.add("equal", np.zeros(1), p=o.y[None, :]) if o.fit_intercept else None
    program.add("less", o.c, p=eye)
    program.add("less", np.zeros(o.n), p=-eye)
    scaled = (o.y[:, None] * X) / np.sqrt(coordinates.l2)
    x, multipliers, iterations, ok = program.solve(sp.csc_matrix(scaled @ scaled.T))
    p = np.clip(x, 0.0, o.c)
    w = X.T @ (p * o.y) / coordinates.l2
    b = np.array([multipliers["equal"][balance][0]]) if balance is not None else np.zeros(1)
    return w, b, -o.y * np.divide(p, o.c, out=np.zeros(o.n), where=o.c > 0), iterations, ok


class HardMargin(NamedTuple):
    """The maximum-margin separator: w, b with yᵢ(xᵢ'w + b) ≥ 1 and ‖w‖ smallest, and the multipliers α."""

    w: Array
    b: float
    alpha: Array

    @property
    def margin(self) -> float:
        """The geometric margin 1/‖w‖."""
        return 1.0 / float(np.linalg.norm(self.w))


def hard_margin(X: Any, y: Array) -> HardMargin:
    """min ½‖w‖² subject to yᵢ(xᵢ'w + b) ≥ 1, as a quadratic program.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        The inputs.
    y : array of −1 and +1
        The classes.

    Raises
    ------
    ValueError
        If no hyperplane separates the classes.
    """
    check_indices(X)
    X = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    n, d = X.shape
    program = _Program({"w": d, "b": 1})
    program.P[program.at["w"]] = 1.0
    place = program.add("less", -np.ones(n), w=-y[:, None] * X, b=-y[:, None])
    x, multipliers, _, ok = program.solve()
    if not ok or np.min(y * (X @ x[:d] + x[d])) < 1.0 - 1e-4:
        raise ValueError(
            "The classes cannot be separated by a hyperplane, so there is no hard margin; "
            "use a soft margin (the Hinge loss with an L2 penalty)."
        )
    return HardMargin(x[:d], float(x[d]), multipliers["less"][place])
