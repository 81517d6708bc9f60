"""The choice of a solver for a problem, and the only place that calls solvers.

``solve`` chooses from a short table of preferences, runs the solver, and certifies the result, whatever the solver
reports. A name overrides the choice; a combination that cannot work raises an error that names what is missing and
which solvers would work.
"""

from __future__ import annotations

import importlib
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from hinge.errors import callers_level
from hinge.problem.certificates.certificate import Certificate, with_run
from hinge.problem.certificates.linear import certificate
from hinge.problem.numerics import OVERFLOWED
from hinge.problem.objective import Array, Objective
from hinge.problem.penalties import NoPenalty
from hinge.solvers.base import Need, Record, Solution, Solver, Status, Stop
from hinge.solvers.constant import best_constant, no_worse_than_constant
from hinge.solvers.row_space import pays, row_space, uniform_ridge
from hinge.solvers.separation import Separation, find_separation
from hinge.solvers.shifted import Shift, shift_of

# Name → module and class. Modules are imported when a solver is first used.
SOLVERS: dict[str, tuple[str, str]] = {
    "dual-coordinate-descent": ("hinge.solvers.dual_coordinate", "DualCoordinateDescent"),
    "interior-point": ("hinge.solvers.interior_point", "InteriorPoint"),
    "newton": ("hinge.solvers.newton", "Newton"),
    "fisher-scoring": ("hinge.solvers.newton", "FisherScoring"),
    "closed-form": ("hinge.solvers.closed_form", "ClosedForm"),
    "multinomial-newton": ("hinge.solvers.multinomial_newton", "MultinomialNewton"),
    "multinomial-newton-cg": ("hinge.solvers.multinomial_newton", "MultinomialNewtonCG"),
    "newton-cg": ("hinge.solvers.newton_cg", "NewtonCG"),
    "proximal-newton": ("hinge.solvers.proximal_newton", "ProximalNewton"),
    "lbfgs": ("hinge.solvers.lbfgs", "LBFGS"),
    "gradient-descent": ("hinge.solvers.gradient_descent", "GradientDescent"),
    "block-coordinate-descent": ("hinge.solvers.block_descent", "BlockCoordinateDescent"),
    "proximal-gradient": ("hinge.solvers.proximal_gradient", "ProximalGradient"),
    "projected-gradient": ("hinge.solvers.projected_gradient", "ProjectedGradient"),
    "coordinate-descent": ("hinge.solvers.coordinate_descent", "CoordinateDescent"),
    "admm": ("hinge.solvers.admm", "ADMM"),
    "one-by-one": ("hinge.solvers.one_by_one", "OneByOne"),
    "reweighted": ("hinge.solvers.reweighted", "Reweighted"),
    "subgradient": ("hinge.solvers.subgradient", "Subgradient"),
    "pegasos": ("hinge.solvers.subgradient", "Pegasos"),
    "sgd": ("hinge.solvers.stochastic", "SGD"),
    "quadratic-program": ("hinge.solvers.quadratic_program", "QuadraticProgram"),
}


# Up to this many columns of dense doubles a Gram matrix costs less than the passes over X it saves.
MODERATE = 300

Weights = tuple[Array, Array]  # w and b


@dataclass(frozen=True)
class Result:
    """A solution and its certificate.

    Attributes
    ----------
    solution : Solution
        What the solver returned.
    certificate : Certificate
        What the judge computed from its weights.
    separation : Separation or None
        The direction along which an unpenalised objective has no minimum, if there is one.
    """

    solution: Solution
    certificate: Certificate
    separation: Separation | None = None  # a direction in which the objective decreases for ever, if found

    @property
    def w(self) -> Array:
        return self.solution.w

    @property
    def b(self) -> Array:
        return self.solution.b


def get_solver(solver: str | Solver) -> Solver:
    """The solver of that name with its default options, or the configured solver itself."""
    if isinstance(solver, Solver):
        return solver
    if solver not in SOLVERS:
        raise ValueError(
            f"solver={solver!r} is unknown; choose 'auto', one of {', '.join(sorted(SOLVERS))}, "
            "or a solver object such as hg.solvers.GradientDescent(step=0.1)."
        )
    module, cls = SOLVERS[solver]
    return getattr(importlib.import_module(module), cls)()


def admissible(objective: Objective) -> list[str]:
    """The names of all solvers whose needs this objective meets."""
    return [name for name in SOLVERS if not get_solver(name).missing(objective)]


def choose(objective: Objective) -> str:
    """The solver that is expected to be fastest."""
    for name, suits in PREFERENCES:
        if suits(objective) and not get_solver(name).missing(objective):
            return name
    raise ValueError(
        f"No solver handles {objective.loss!r} with {objective.penalty!r}. "
        "Give the loss a gradient or the penalty a prox."
    )


def _always(objective: Objective) -> bool:
    return True


def _suits_closed_form(o: Objective) -> bool:
    """Dense doubles of moderate width, several targets, more columns than rows, and singular problems."""
    small = min(o.n, o.d) <= 8000
    X = o.design.source
    moderate = o.d <= MODERATE and isinstance(X, np.ndarray) and X.dtype == np.float64
    return isinstance(o.penalty, NoPenalty) or moderate or (small and (o.outputs > 1 or o.d > o.n))


# The first match wins. The numbers are where the costs of the methods cross on a two-core machine (benchmarks/linear).
PREFERENCES: list[tuple[str, Callable[[Objective], bool]]] = [
    ("closed-form", _suits_closed_form),
    ("newton", lambda objective: objective.d <= 500 or (objective.design.coded and objective.d <= 4000)),
    ("fisher-scoring", lambda objective: not objective.loss.convex and objective.d <= 4000),
    ("multinomial-newton", lambda o: o.outputs * (o.d + 1) <= (100 if Need.STRONGLY_CONVEX.met_by(o) else 600)),
    ("multinomial-newton-cg", _always),
    ("dual-coordinate-descent", lambda objective: objective.loss.softness > 0 and objective.d >= objective.n),
    ("newton-cg", _always),
    ("one-by-one", lambda objective: not objective.loss.smooth),
    ("interior-point", lambda objective: objective.d <= 1000 or not objective.design.sparse),
    ("dual-coordinate-descent", lambda objective: objective.design.sparse),
    ("interior-point", lambda objective: objective.n <= 4000 and objective.d > objective.n),
    ("proximal-newton", _always),
    ("block-coordinate-descent", _always),
    ("lbfgs", lambda objective: objective.loss.convex),
    ("proximal-gradient", _always),
    ("reweighted", _always),
    ("admm", _always),
]


def solve(
    objective: Objective,
    *,
    solver: str | Solver = "auto",
    tol: float = 1e-6,
    max_iter: int | None = None,
    start: Weights | None = None,
    history: bool = False,
    callback: Callable[[Record], bool] | None = None,
    random_state: int = 0,
    warn: bool = True,
) -> Result:
    """Minimise the objective and certify the result.

    Parameters
    ----------
    objective : Objective
        What to minimise.
    solver : str or Solver
        "auto", the name of a solver, or a solver with options such as ``hg.solvers.GradientDescent(step=0.1)``.
    tol : float
        The relative duality gap to reach (the stationarity residual where no dual is known).
    max_iter : int, optional
        A limit on iterations; each solver has its own default. With 0 the start is returned, or zeros.
    start : (w, b), optional
        Where to begin; zero weights and the best constant if absent.
    history : bool
        Record objective, gap and time of every iteration in ``result.solution.history``.
    callback : callable, optional
        Called with a :class:`Record` after every iteration; return True to stop.
    random_state : int
        The seed of stochastic solvers.
    warn : bool
        Emit a ConvergenceWarning with the certificate's explanation if the tolerance was not met.
    """
    began = time.perf_counter()
    chosen, solution = minimise(
        objective, solver=solver, tol=tol, max_iter=max_iter, start=start, history=history, callback=callback,
        random_state=random_state,
    )  # fmt: skip
    seconds = time.perf_counter() - began
    flops = chosen.flops(objective, solution.iterations)
    certified = certificate(objective, solution.w, solution.b, dual=solution.dual, tol=tol, fit_flops=flops)
    # max(0, NaN) may hide NaN from the objective and its certificate, so the scores are checked too.
    if not np.isfinite(certified.primal) or not _finite_scores(objective, solution):
        raise ValueError(OVERFLOWED)
    stopped = solution.status in (Status.STOPPED, Status.RULE)
    separation = None
    if not stopped:
        with np.errstate(all="ignore"):
            separation = find_separation(objective, solution.w, solution.b, converged=certified.converged)
    unproved = not certified.converged and not certified.exact and solution.status is Status.CONVERGED
    status = Status.CONVERGED if certified.converged else Status.UNPROVED if unproved else solution.status
    if status is Status.CONVERGED and not certified.converged:
        status = Status.SHORT
    status = status if separation is None else Status.UNBOUNDED
    certified = with_run(
        certified, solver=chosen.name, iterations=solution.iterations, seconds=seconds, status=status.value
    )
    if warn and separation is not None:
        warnings.warn(separation.warning(), ConvergenceWarning, stacklevel=callers_level())
    elif warn and not unproved and not stopped:
        warn_unless_met(certified)
    return Result(solution, certified, separation)


def warn_unless_met(certified: Certificate) -> None:
    """Issue a ConvergenceWarning, at the line of the user's code, if the tolerance was not met."""
    if not certified.converged:
        warnings.warn(certified.explain(), ConvergenceWarning, stacklevel=callers_level())


def _finite_scores(objective: Objective, solution: Solution) -> bool:
    if objective.loss.constant_curvature:
        return True  # a score that is not finite makes the risk infinite
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(objective.scores(solution.w, solution.b)).all())


def minimise(
    objective: Objective,
    *,
    solver: str | Solver = "auto",
    tol: float = 1e-6,
    max_iter: int | None = None,
    start: Weights | None = None,
    history: bool = False,
    callback: Callable[[Record], bool] | None = None,
    random_state: int = 0,
    proved: bool = True,
) -> tuple[Solver, Solution]:
    """The solver that was used and its solution, without a certificate; parameters as in :func:`solve`.

    With ``proved=False`` a solver may stop where it estimates that ``tol`` is met, without a dual point that proves it.
    """
    automatic = isinstance(solver, str) and solver == "auto"
    if max_iter == 0:
        w, b = objective.zero() if start is None else (np.array(start[0], float), np.atleast_1d(start[1]).astype(float))
        return get_solver(choose(objective) if automatic else solver), Solution(w, b, Status.MAX_ITER, 0)
    constant = best_constant(objective, tol) if automatic and start is None else None
    if constant is not None:
        stop = Stop(tol=tol, callback=callback, keep_history=history)
        if stop.watched:
            stop.report(1, objective.value(constant.w, constant.b), w=constant.w, b=constant.b)
        return get_solver(choose(objective)), replace(constant, history=tuple(stop.records))
    if automatic and pays(objective) and choose(objective) != "closed-form":
        return _minimise_in_row_space(
            objective, start, callback=callback, tol=tol, max_iter=max_iter, history=history,
            random_state=random_state, proved=proved,
        )  # fmt: skip
    chosen = get_solver(choose(objective) if automatic else solver)
    missing = [] if automatic else chosen.missing(objective)
    if missing:
        raise ValueError(_refusal(chosen.name, missing, objective))
    shift = shift_of(objective.design) if chosen.shifts and objective.fit_intercept else None
    if shift is not None:
        return _minimise_shifted(
            shift, objective, start, callback=callback, solver=chosen, tol=tol, max_iter=max_iter, history=history,
            random_state=random_state, proved=proved,
        )  # fmt: skip
    if start is None:
        uses_start = chosen.iterative or history or callback is not None
        w, b = objective.start() if uses_start else objective.zero()
    else:
        w, b = np.array(start[0], dtype=float), np.atleast_1d(start[1]).astype(float)
    stop = Stop(tol=tol, max_iter=chosen.default_max_iter if max_iter is None else max_iter, callback=callback)
    stop.keep_history, stop.random_state, stop.proved = history, random_state, proved
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        solution = chosen.run(objective, w, b, stop)
    if not (np.all(np.isfinite(solution.w)) and np.all(np.isfinite(solution.b))):
        raise ValueError(OVERFLOWED)
    if automatic:
        solution = no_worse_than_constant(objective, solution)
    return chosen, replace(solution, history=tuple(stop.records))


def _minimise_in_row_space(objective: Objective, start: Weights | None, **options: Any) -> tuple[Solver, Solution]:
    """``minimise`` for wide matrices: see :mod:`hinge.solvers.row_space`."""
    space = row_space(objective.design)
    reduced = space.reduced(objective, uniform_ridge(objective))
    start = None if start is None else (space.project(start[0]), start[1])
    return _minimise_mapped(reduced, lambda w, b: (space.lift(w), b), start, **options)


def _minimise_shifted(
    shift: Shift, objective: Objective, start: Weights | None, **options: Any
) -> tuple[Solver, Solution]:
    """``minimise`` for columns far from zero: see :mod:`hinge.solvers.shifted`."""
    start = None if start is None else shift.forward(*start)
    return _minimise_mapped(shift.reduced(objective), shift.back, start, **options)


def _minimise_mapped(
    objective: Objective,
    back: Callable[[Array, Array], Weights],
    start: Weights | None,
    *,
    callback: Callable[[Record], bool] | None,
    **options: Any,
) -> tuple[Solver, Solution]:
    """``minimise`` for an objective in other coordinates; ``back`` returns to those of the user."""

    def report(record: Record) -> bool:
        assert callback is not None
        if record.w is None or record.b is None:
            return callback(record)
        w, b = back(record.w, record.b)
        return callback(replace(record, w=w, b=b))

    chosen, solution = minimise(objective, start=start, callback=None if callback is None else report, **options)
    w, b = back(solution.w, solution.b)
    return chosen, replace(solution, w=w, b=b)


def _refusal(name: str, missing: list[Need], objective: Objective) -> str:
    needs = " and ".join(need.value for need in missing)
    others = ", ".join(repr(other) for other in admissible(objective)) or "none of the solvers"
    return (
        f"solver={name!r} needs {needs}, which {objective.loss!r} with {objective.penalty!r} does not have. "
        f"These would work: {others}."
    )
