"""Distributions of unknown quantities, and the best action under a loss."""

from hinge.problem.decisions.actions import bayes_action, in_units_of_target, posterior_risk
from hinge.problem.decisions.costs import cost_threshold, least_cost
from hinge.problem.decisions.discrete import Bernoulli, Categorical, Dirichlet, Empirical, NegativeBinomial
from hinge.problem.decisions.distributions import Beta, Distribution, Gamma, InverseGamma, Normal, StudentT

__all__ = [
    "Bernoulli",
    "Beta",
    "Categorical",
    "Dirichlet",
    "Distribution",
    "Empirical",
    "Gamma",
    "InverseGamma",
    "NegativeBinomial",
    "Normal",
    "StudentT",
    "bayes_action",
    "cost_threshold",
    "in_units_of_target",
    "least_cost",
    "posterior_risk",
]
