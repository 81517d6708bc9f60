"""Weights and bias as one vector, for methods that treat them alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hinge.problem.objective import Array, Objective


@dataclass(frozen=True)
class Flat:
    """x = (w, b/κ) of an objective as one long vector, where κ is the unit of the bias; without a bias x = w."""

    objective: Objective
    bias_unit: float = 1.0

    def pack(self, w: Array, b: Array) -> Array:
        return np.concatenate([w.ravel(), b / self.bias_unit]) if self.objective.fit_intercept else w.ravel().copy()

    def unpack(self, x: Array) -> tuple[Array, Array]:
        o = self.objective
        w = x[: o.d * o.outputs]
        w = w if o.outputs == 1 else w.reshape(o.d, o.outputs)
        return w, x[o.d * o.outputs :] * self.bias_unit if o.fit_intercept else np.zeros(o.outputs)

    def risk_gradient(self, x: Array) -> tuple[float, Array]:
        """The empirical risk and its gradient; infinite where the loss overflows."""
        with np.errstate(over="ignore", invalid="ignore"):
            value, gw, gb = self.objective.risk_gradient(*self.unpack(x))
        return (value if np.isfinite(value) else np.inf), self.pack(gw, gb * self.bias_unit**2)

    def value_gradient(self, x: Array) -> tuple[float, Array]:
        """The objective and its gradient, for differentiable penalties."""
        value, g = self.risk_gradient(x)
        w, _ = self.unpack(x)
        gradient = self.objective.penalty.gradient(w).ravel()
        g[: gradient.size] += gradient
        return value + self.objective.penalty.value(w), g

    def value(self, x: Array) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            value = self.objective.value(*self.unpack(x))
        return value if np.isfinite(value) else np.inf

    def prox(self, x: Array, step: float) -> Array:
        """The penalty's proximal operator on the weights; the bias is unchanged."""
        w, b = self.unpack(x)
        return self.pack(self.objective.penalty.prox(w, step), b)

    def curvature_bound(self) -> float:
        """A Lipschitz constant of the gradient of the objective, for differentiable penalties."""
        coordinates = self.objective.penalty.coordinates(self.objective.d)
        ridge = 0.0 if coordinates is None else float(np.max(coordinates.l2, initial=0.0))
        return self.objective.curvature_bound(self.bias_unit) + ridge
