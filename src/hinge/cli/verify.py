"""``hinge verify``: checks that a model file is unaltered and that its certificate holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hinge.cli.inspect import core_of
from hinge.errors import MODEL, UserError
from hinge.learning.model_inputs import load_any, load_fitted, read_for

AGREE = 1e-6


def run(path: Path, file: Path | None) -> tuple[dict[str, Any], list[str]]:
    """Check the checksum and the structure; with the training data also recompute the objective and its bound."""
    model, _card = load_any(path)
    certificate = getattr(core_of(model), "certificate_", None)
    lines = [f"{path}: complete and unaltered (SHA-256 agrees), {type(core_of(model)).__name__}"]
    data: dict[str, Any] = {"file": str(path), "checksum": True, "certificate": None}
    if certificate is not None:
        data["certificate"] = bool(certificate.converged)
        lines.append(f"certificate as stored: {certificate.explain()}")
    else:
        lines.append("no certificate: the problem is not convex.")
    if file is not None:
        recomputed = recompute(path, file)
        data["recomputed"] = recomputed and {
            "primal": recomputed.primal,
            "error": recomputed.error,
            "converged": recomputed.converged,
        }
        if recomputed is None:
            lines.append("the certificate can be recomputed for linear models only.")
        else:
            lines.append(f"recomputed from {file}: {recomputed.explain()}")
            if certificate is not None and not np.isclose(recomputed.primal, certificate.primal, rtol=AGREE):
                raise UserError(
                    f"{path}: on {file} the objective is {recomputed.primal:.8g}, the file has {certificate.primal:.8g}; "
                    "these are not the rows it was trained on, or the model was altered.",
                    MODEL,
                )
    return data, lines


def recompute(path: Path, file: Path) -> Any:
    """The certificate of a linear model on its training rows, from weights and data alone; None for other models."""
    import hinge as hg

    fitted = load_fitted(path)
    core = core_of(fitted.pipeline)
    if not isinstance(core, hg.Learner) or not hasattr(core, "coef_"):
        return None
    frame, y, _, _ = read_for(fitted, file, with_target=True)
    assert y is not None
    X = fitted.pipeline.named_steps["prep"].transform(frame)
    outer = fitted.pipeline.named_steps["model"]
    if fitted.task == "real":
        y = outer.standardised(y)
    if fitted.task == "binary":
        y = 2 * y - 1
    classes = len(fitted.card["classes"]) if fitted.task == "multiclass" else None
    objective = hg.make_objective(X, y, core.loss, core.penalty, classes=classes)
    w = np.asarray(core.coef_, dtype=np.float64).T
    return hg.certificate(
        objective, w, np.atleast_1d(np.asarray(core.intercept_, dtype=np.float64)), tol=core.tol, exact=True
    )
