# Written by tools/stubs.py.

from hinge.problem.decisions import (
    bayes_action as bayes_action,
    cost_threshold as cost_threshold,
    least_cost as least_cost,
    posterior_risk as posterior_risk,
)

__all__: list[str]
_PUBLIC: dict[str, tuple[str, ...]]
