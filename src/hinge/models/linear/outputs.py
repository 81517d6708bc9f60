"""Several targets without a shared penalty, solved one by one and certified together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hinge.models.linear.base import worst
from hinge.problem.certificates.certificate import with_run
from hinge.problem.certificates.linear import certificate
from hinge.problem.objective import Objective
from hinge.solvers.base import Solution, Status
from hinge.solvers.run import Result


def each_output(objective: Objective, run: Callable[[Objective], Result]) -> list[Result]:
    """Solve several outputs without a shared penalty one by one."""
    return [
        run(replace(objective, y=np.ascontiguousarray(objective.y[:, j]), outputs=1)) for j in range(objective.outputs)
    ]


def solve_each_output(objective: Objective, run: Callable[[Objective], Result]) -> Result:
    """Solve several outputs without a shared penalty one by one, and certify them together."""
    return together(objective, each_output(objective, run))


def together(objective: Objective, results: list[Result]) -> Result:
    """One result, with one certificate, of outputs that were solved one by one."""
    w, b = np.stack([r.w for r in results], axis=1), np.array([r.b[0] for r in results])
    iterations = max(r.solution.iterations for r in results)
    last = results[-1].certificate
    certified = certificate(objective, w, b, tol=last.tol)
    certified = with_run(
        certified, solver=last.solver, iterations=iterations, seconds=sum(r.certificate.seconds for r in results),
        status=worst(results).status,
    )  # fmt: skip
    return Result(Solution(w, b, Status.CONVERGED if certified.converged else Status.STALLED, iterations), certified)
