# Written by tools/stubs.py.

from hinge.models.bayes.conjugate import (
    BetaBernoulli as BetaBernoulli,
    DirichletCategorical as DirichletCategorical,
    GammaPoisson as GammaPoisson,
    NormalInverseGamma as NormalInverseGamma,
    NormalNormal as NormalNormal,
)

__all__: list[str]
_PUBLIC: dict[str, tuple[str, ...]]
