"""The contents of a certificate, and its explanation in words."""

from __future__ import annotations

import html
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hinge.settings import shows_html


@dataclass(frozen=True)
class Certificate:
    """What is known about the accuracy of a fit.

    Attributes
    ----------
    primal : float
        The objective at the returned weights.
    dual : float
        A lower bound of the optimum; −inf if none is known.
    gap : float
        primal − dual: the objective is at most this much above the optimum.
    relative_gap : float
        gap / |primal|.
    residual : float
        The stationarity residual, relative (nan where the gap says more).
    kind : {"gap", "stationarity"}
        Which of the two ``error`` is.
    tol : float
        The tolerance of the fit.
    weight_error : float
        A bound of ‖w − w*‖₂ from strong convexity; inf if the objective is not strongly convex.
    solver, iterations, seconds, status
        How the weights were found.
    note : str
        What is not established about a user's loss.
    exact : bool
        False if a tighter bound may exist that would cost more than a tenth of the fit; ``certificate(…, exact=True)``
        and ``estimator.certify(X, y)`` compute it.
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float
    residual: float
    kind: str
    tol: float
    weight_error: float = np.inf
    solver: str = ""
    iterations: int = 0
    seconds: float = 0.0
    status: str = ""
    note: str = ""
    exact: bool = True

    @classmethod
    def of_gap(cls, primal: float, gap: float, *, tol: float, convexity: float = 0.0, **how: Any) -> Certificate:
        """The certificate of an objective and its duality gap; ``convexity`` is a modulus of strong convexity."""
        return cls(
            primal=primal,
            dual=primal - gap,
            gap=gap,
            relative_gap=gap / max(abs(primal), np.finfo(float).tiny),
            residual=np.nan,
            kind="gap",
            tol=tol,
            weight_error=float(np.sqrt(2.0 * gap / convexity)) if convexity > 0 else np.inf,
            **how,
        )

    @property
    def error(self) -> float:
        """The number that is compared with ``tol``."""
        return self.relative_gap if self.kind == "gap" else self.residual

    @property
    def converged(self) -> bool:
        return bool(self.error <= self.tol)

    def explain(self) -> str:
        """One paragraph: the meaning of the numbers and, if the tolerance was not met, what to change."""
        if self.kind == "gap":
            meaning = (
                f"The objective is {self.primal:.6g}, and no weights can bring it below {self.dual:.6g}: "
                f"it is within {100 * self.relative_gap:.2g} % of the optimum."
            )
            if np.isfinite(self.weight_error):
                meaning += f" The weights are within {self.weight_error:.2g} of the optimal ones (Euclidean distance)."
        else:
            bound = (
                f"The lower bound these weights give, {self.dual:.6g}, is too low to judge by"
                if np.isfinite(self.dual)
                else "No lower bound is known for this problem"
            )
            meaning = (
                f"The objective is {self.primal:.6g}. {bound}; "
                f"the stationarity residual is {self.residual:.2g} of the gradient at zero weights."
            )
        if self.note:
            meaning += f" About the loss: {self.note}."
        if self.converged:
            end = f" {self.status}" if self.status.startswith("The objective has no minimiser") else ""
            return f"{meaning} The tolerance of {self.tol:.1g} is met.{end}"
        missed = "is not met" if self.exact else "is not proved at this cost"
        return f"{meaning} The tolerance of {self.tol:.1g} {missed}: {self.status or 'raise max_iter.'}"

    def __str__(self) -> str:
        measure = f"gap {self.gap:.1e}" if self.kind == "gap" else f"residual {self.residual:.1e}"
        how = f", {self.iterations} iterations, {self.solver}, {self.seconds:.2g} s" if self.solver else ""
        return f"objective {self.primal:.6g}, {measure}{how}"

    def _repr_html_(self) -> str | None:
        if not shows_html():
            return None
        mark = "✓" if self.converged else "✗"
        how = f"{html.escape(self.solver)}, {self.iterations} iterations, {self.seconds:.2g} s" if self.solver else ""
        rows = {
            "objective": f"{self.primal:.8g}",
            "lower bound": f"{self.dual:.8g}" if np.isfinite(self.dual) else "not known",
            "relative gap" if self.kind == "gap" else "stationarity residual": f"{self.error:.2g}",
            "tolerance": f"{self.tol:.2g} {mark}",
            "found by": how,
        }
        cells = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in rows.items() if value)
        return f"<table>{cells}</table><p>{html.escape(self.explain())}</p>"


def with_run(certified: Certificate, *, solver: str, iterations: int, seconds: float, status: str) -> Certificate:
    """The certificate with a record of the run that found the weights."""
    return replace(certified, solver=solver, iterations=iterations, seconds=seconds, status=status)
