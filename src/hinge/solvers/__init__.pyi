# Written by tools/stubs.py.

from hinge.solvers.admm import (
    ADMM as ADMM,
)
from hinge.solvers.base import (
    Record as Record,
    Solution as Solution,
    Solver as Solver,
    Status as Status,
)
from hinge.solvers.block_descent import (
    BlockCoordinateDescent as BlockCoordinateDescent,
)
from hinge.solvers.closed_form import (
    ClosedForm as ClosedForm,
)
from hinge.solvers.coordinate_descent import (
    CoordinateDescent as CoordinateDescent,
)
from hinge.solvers.dual_coordinate import (
    DualCoordinateDescent as DualCoordinateDescent,
)
from hinge.solvers.gradient_descent import (
    GradientDescent as GradientDescent,
)
from hinge.solvers.interior_point import (
    InteriorPoint as InteriorPoint,
)
from hinge.solvers.lbfgs import (
    LBFGS as LBFGS,
)
from hinge.solvers.multinomial_newton import (
    MultinomialNewton as MultinomialNewton,
    MultinomialNewtonCG as MultinomialNewtonCG,
)
from hinge.solvers.newton import (
    FisherScoring as FisherScoring,
    Newton as Newton,
)
from hinge.solvers.newton_cg import (
    NewtonCG as NewtonCG,
)
from hinge.solvers.projected_gradient import (
    ProjectedGradient as ProjectedGradient,
)
from hinge.solvers.proximal_gradient import (
    ProximalGradient as ProximalGradient,
)
from hinge.solvers.proximal_newton import (
    ProximalNewton as ProximalNewton,
)
from hinge.solvers.quadratic_program import (
    QuadraticProgram as QuadraticProgram,
    hard_margin as hard_margin,
)
from hinge.solvers.run import (
    Result as Result,
    solve as solve,
)
from hinge.solvers.schedules import (
    Fixed as Fixed,
    InverseSqrt as InverseSqrt,
    InverseTime as InverseTime,
    ReduceOnPlateau as ReduceOnPlateau,
    Schedule as Schedule,
)
from hinge.solvers.stochastic import (
    SGD as SGD,
    minibatch_gradient as minibatch_gradient,
)
from hinge.solvers.stopping import (
    GradientNorm as GradientNorm,
    HeldOutLoss as HeldOutLoss,
    ObjectiveChange as ObjectiveChange,
    ParameterChange as ParameterChange,
    Rule as Rule,
)
from hinge.solvers.subgradient import (
    Pegasos as Pegasos,
    Subgradient as Subgradient,
    optimality_distance as optimality_distance,
)

__all__: list[str]
_PUBLIC: dict[str, tuple[str, ...]]
