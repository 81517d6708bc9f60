"""The part of the risk that is due to a solver that stopped early."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hinge.models.meta import final_step
from hinge.select.estimate import Estimate
from hinge.select.resample import set_final

# Above this relative gap a fit may be far enough from its optimum to affect predictions.
LOOSE = 1e-3

NO_SOLVER = "The model has no solver that could stop early."


@dataclass(frozen=True)
class Optimisation:
    """The state of the solver at the end of a fit.

    Attributes
    ----------
    converged : bool or None
        Whether the optimum was reached; None if the model does not say.
    proof : {"gap", "stationarity", "iterations", "none"}
        What that rests on.
    error : float
        The relative duality gap or the stationarity residual; nan without a certificate.
    iterations, max_iter : int or None
    gain : Estimate or None
        How much the held-out risk falls with far more iterations; measured only if the fit fell short.
    sentence : str
    """

    converged: bool | None
    proof: str
    error: float
    iterations: int | None
    max_iter: int | None
    gain: Estimate | None
    sentence: str


def read_optimisation(model: Any) -> Optimisation:
    """The optimisation state of a fitted model."""
    last = final_step(model)
    proof = getattr(last, "certificate_", None)
    most = last.get_params(deep=False).get("max_iter")
    most = int(most) if isinstance(most, int | float) and most > 0 else None
    done = getattr(last, "n_iter_", None)
    iterations = int(np.max(done)) if done is not None and np.size(done) else None
    if proof is not None:
        error = float(proof.error)
        reached = bool(proof.converged or error <= LOOSE)
        return Optimisation(reached, proof.kind, error, proof.iterations or iterations, most, None, proof.explain())
    if most is None or iterations is None or _rounds_are_capacity(last):
        return Optimisation(None, "none", np.nan, iterations, None, None, NO_SOLVER)
    reached = iterations < most
    sentence = (
        f"It stopped by itself after {iterations} of at most {most} iterations."
        if reached
        else f"It was stopped at its limit of {most} iterations; there is no certificate to say how far it had come."
    )
    return Optimisation(reached, "iterations", np.nan, iterations, most, None, sentence)


def _rounds_are_capacity(last: Any) -> bool:
    """Whether iterations add terms to the model (boosting), so that more of them change the class, not the accuracy."""
    return any(hasattr(last, name) for name in ("trees_", "_predictors", "estimators_"))


def harder(model: Any, least: float = 1e-6) -> Any | None:
    """A copy with 100 times the iterations and a tolerance of ``least``; None if it has neither parameter."""
    settings = final_step(model).get_params(deep=False)
    changes: dict[str, Any] = {}
    most = settings.get("max_iter")
    if isinstance(most, int | float) and most > 0:
        changes["max_iter"] = max(int(100 * most), 1000)
    tol = settings.get("tol")
    if isinstance(tol, float) and tol > least:
        changes["tol"] = least
    return set_final(model, **changes) if changes else None
