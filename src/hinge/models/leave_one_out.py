"""Exact leave-one-out predictions from one fit, for least squares, ridge and kernel ridge.

With A = X̃'X̃ + αI (X̃ centred if there is a bias) and hᵢ the leverage of example i, leaving i out changes the
prediction at x by −g(x, xᵢ) rᵢ / (1 − hᵢ), where g(x, xᵢ) = x̃'A⁻¹x̃ᵢ (+ 1/n with a bias). For kernels, with
G = K + αI and coefficients c = G⁻¹y, it changes by −k(x)'G⁻¹eᵢ cᵢ / (G⁻¹)ᵢᵢ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from hinge._native import Design
from hinge.models.kernel.ridge import KernelRidge
from hinge.models.meta import final_step
from hinge.problem.kernels import Kernel
from hinge.solvers.ridge_path import RidgePath

Array = np.ndarray
# Factorising a larger matrix takes longer than the result is worth.
MAX_ORDER = 2000


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """The predictions of n fits, each without one example.

    Attributes
    ----------
    residuals : array of n
        yᵢ minus the prediction at xᵢ of the fit without example i.
    reach : array of shape (inputs, n)
        g(x, xᵢ) = ⟨x̃, reach⟩ + edge.
    centre : array
        What is taken from x to make x̃.
    edge : float
    kernel : Kernel or None
        With one, x̃ holds the kernel values of x with the points.
    points : array or None
    """

    residuals: Array
    reach: Array
    centre: Array
    edge: float
    kernel: Kernel | None = None
    points: Array | None = None

    def predictions(self, model: Any, X: Any) -> Array:
        """The predictions of all n fits at new inputs, one column per fit; ``model`` is fitted to all examples."""
        x = dense(X) if self.kernel is None else self.kernel(dense(X), self.points)
        predictions = np.asarray(model.predict(X), dtype=np.float64)
        return predictions[:, None] - ((x - self.centre) @ self.reach + self.edge) * self.residuals


def leave_one_out(model: Any, X: Any, y: Any) -> LeaveOneOut | None:
    """Exact leave-one-out of a model fitted to (X, y) with equal weights; None if it has no closed form.

    A model inside a pipeline has none, because the steps before it would have to be refitted. The strength that
    ``RidgeCV`` chose is fixed.
    """
    if model is not final_step(model) or np.ndim(y) != 1:
        return None
    if isinstance(model, KernelRidge):
        return _kernel(model, np.asarray(y, dtype=np.float64))
    if _is_ridge(model):
        return _linear(model, X, np.asarray(y, dtype=np.float64))
    return None


def _is_ridge(model: Any) -> bool:
    """Whether the fit is least squares or ridge regression in closed form."""
    return getattr(model, "ridge_form", False) and not getattr(model, "positive", False)


def left_out_error(model: Any, X: Any, y: Any) -> float | None:
    """The exact leave-one-out squared error; None if it has no closed form or would take longer than refitting."""
    small = min(X.shape) if hasattr(X, "shape") else len(X)
    if isinstance(model, KernelRidge):
        small = len(y)
    if small > MAX_ORDER or model is not final_step(model) or np.ndim(y) != 1:
        return None
    if isinstance(model, KernelRidge):
        exact = leave_one_out(model, X, y)
        residuals = None if exact is None else exact.residuals
    elif _is_ridge(model):
        alpha = np.ravel(getattr(model, "alpha_", getattr(model, "alpha", 0.0)))
        design = Design(X if hasattr(X, "tocsr") else dense(X))
        path = RidgePath(design, np.asarray(y, dtype=np.float64), np.ones(len(y)), model.fit_intercept)
        residuals = path.leave_one_out(alpha)[:, 0, 0] if len(alpha) == 1 else None
    else:
        return None
    finite = residuals is not None and np.any(np.isfinite(residuals))
    return float(np.nanmean(residuals**2)) if residuals is not None and finite else None


def _linear(model: Any, X: Any, y: Array) -> LeaveOneOut | None:
    alpha = getattr(model, "alpha_", getattr(model, "alpha", 0.0))
    if np.size(alpha) != 1:
        return None
    A = dense(X)
    centre = A.mean(axis=0) if model.fit_intercept else np.zeros(A.shape[1])
    edge = 1.0 / len(y) if model.fit_intercept else 0.0
    Z = A - centre
    gram = Z.T @ Z + float(np.ravel(alpha)[0]) * np.eye(Z.shape[1])
    reach = scipy.linalg.pinvh(gram) @ Z.T  # A⁻¹x̃ᵢ, one column per example
    room = 1.0 - np.einsum("ij,ji->i", Z, reach) - edge
    residual = y - np.asarray(model.predict(X), dtype=np.float64)
    # Leverage one: without this example the fit is not determined in its direction.
    return LeaveOneOut(residual / np.where(room > 1e-10, room, np.nan), reach, centre, edge)


def _kernel(model: KernelRidge, y: Array) -> LeaveOneOut | None:
    if model.X_fit_ is None or hasattr(model.X_fit_, "toarray") or not isinstance(model.X_fit_, np.ndarray):
        return None
    points = np.asarray(model.X_fit_, dtype=np.float64)
    inverse = scipy.linalg.inv(model.kernel_(points, points) + model.alpha_ * np.eye(len(y)))
    residuals = (inverse @ y) / np.diag(inverse)
    return LeaveOneOut(residuals, inverse, np.zeros(len(y)), 0.0, model.kernel_, points)


def dense(X: Any) -> Array:
    """X as an array of doubles."""
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
