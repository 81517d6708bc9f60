"""Solvers: how an objective is minimised. ``hg.solve(objective)`` chooses one, runs it and certifies the result."""

from __future__ import annotations

from hinge._lazy import lazy_names

_PUBLIC: dict[str, tuple[str, ...]] = {
    "hinge.solvers.admm": ("ADMM",),
    "hinge.solvers.base": ("Record", "Solution", "Solver", "Status"),
    "hinge.solvers.block_descent": ("BlockCoordinateDescent",),
    "hinge.solvers.closed_form": ("ClosedForm",),
    "hinge.solvers.coordinate_descent": ("CoordinateDescent",),
    "hinge.solvers.dual_coordinate": ("DualCoordinateDescent",),
    "hinge.solvers.gradient_descent": ("GradientDescent",),
    "hinge.solvers.interior_point": ("InteriorPoint",),
    "hinge.solvers.lbfgs": ("LBFGS",),
    "hinge.solvers.multinomial_newton": ("MultinomialNewton", "MultinomialNewtonCG"),
    "hinge.solvers.newton": ("FisherScoring", "Newton"),
    "hinge.solvers.newton_cg": ("NewtonCG",),
    "hinge.solvers.projected_gradient": ("ProjectedGradient",),
    "hinge.solvers.proximal_gradient": ("ProximalGradient",),
    "hinge.solvers.proximal_newton": ("ProximalNewton",),
    "hinge.solvers.quadratic_program": ("QuadraticProgram", "hard_margin"),
    "hinge.solvers.run": ("Result", "solve"),
    "hinge.solvers.schedules": ("Fixed", "InverseSqrt", "InverseTime", "ReduceOnPlateau", "Schedule"),
    "hinge.solvers.stochastic": ("SGD", "minibatch_gradient"),
    "hinge.solvers.stopping": ("GradientNorm", "HeldOutLoss", "ObjectiveChange", "ParameterChange", "Rule"),
    "hinge.solvers.subgradient": ("Pegasos", "Subgradient", "optimality_distance"),
}  # fmt: skip

__getattr__, __dir__, __all__ = lazy_names(__name__, _PUBLIC)
