"""scikit-learn's names of solvers, and the solvers of this library that they run."""

from __future__ import annotations

from hinge.problem.objective import Objective
from hinge.solvers.base import Solver
from hinge.solvers.run import get_solver

# Name in scikit-learn → names here, in order of preference. An empty row has no counterpart: the choice is automatic.
COUNTERPARTS: dict[str, tuple[str, ...]] = {
    "cholesky": ("closed-form",),
    "highs": ("interior-point",),
    "highs-ds": ("interior-point",),
    "highs-ipm": ("interior-point",),
    "interior-point": ("interior-point",),
    "lbfgs": ("lbfgs",),
    "liblinear": (),
    "lsqr": ("closed-form",),
    "newton-cd": ("proximal-newton",),
    "newton-cd-gram": ("proximal-newton",),
    "newton-cg": ("newton-cg", "multinomial-newton-cg"),
    "newton-cholesky": ("newton", "multinomial-newton"),
    "revised simplex": (),
    "sag": (),
    "saga": (),
    "simplex": (),
    "sparse_cg": ("closed-form",),
    "svd": ("closed-form",),
}


def counterpart(solver: str | Solver, objective: Objective) -> str | Solver:
    """The solver to run for the ``solver`` parameter of an estimator that scikit-learn also has.

    A scikit-learn name becomes the first solver of its row that can take the objective, "auto" if none can; every other
    value is returned unchanged.
    """
    if not isinstance(solver, str) or solver not in COUNTERPARTS:
        return solver
    return next((name for name in COUNTERPARTS[solver] if not get_solver(name).missing(objective)), "auto")
