"""Several outputs without shared losses or penalties, solved one after the other.

Problem     min Σ_k [ Σ cᵢ ℓ(yᵢₖ, zᵢₖ) + Ω(w_k) ],   z = Xw + b, one column of w and b for each output k
Returns     the columns of the single problems, and their dual variables; iterations are those of the longest
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from hinge.problem.objective import Array, Objective
from hinge.solvers.base import Need, Solution, Solver, Status, Stop


class OneByOne(Solver):
    """Solves every output with the solver chosen for it."""

    name: ClassVar[str] = "one-by-one"
    needs: ClassVar[tuple[Need, ...]] = (Need.SINGLE_SCORES, Need.SEPARABLE, Need.SEVERAL_OUTPUTS)

    def run(self, objective: Objective, w: Array, b: Array, stop: Stop) -> Solution:
        from hinge.solvers.run import solve  # which imports this module

        parts = []
        for y in objective.y.T:
            single = replace(objective, y=np.ascontiguousarray(y), outputs=1)
            found = solve(single, tol=stop.tol, random_state=stop.random_state, warn=False)
            parts.append(found.solution)
        w, b = np.stack([part.w for part in parts], axis=1), np.concatenate([part.b for part in parts])
        iterations = max(part.iterations for part in parts)
        done = all(part.status is Status.CONVERGED for part in parts)
        duals = [part.dual for part in parts if part.dual is not None]
        dual = np.stack(duals, axis=1) if len(duals) == len(parts) else None
        if stop.report(iterations, objective.value(w, b), w=w, b=b):
            return Solution(w, b, Status.STOPPED, iterations, dual)
        return Solution(w, b, Status.CONVERGED if done else Status.STALLED, iterations, dual)
