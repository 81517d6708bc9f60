"""Public names of hinge, where one that is still to come is a skip and not a failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

import hinge
from benchmarks.harness import Contender, Problem
from benchmarks.libraries import HOME, Missing
from benchmarks.libraries._common import estimator, ladder

LADDER = ladder(2, 9)  # ``tol`` is the relative duality gap throughout, so one ladder does for all


def public(name: str) -> Any:
    """``hinge.<name>``."""
    try:
        return attrgetter(name)(hinge)
    except AttributeError as error:
        raise Missing(f"{HOME}.{name}") from error


def named(name: str, parameters: Callable[[Problem], dict[str, Any]], tolerances: tuple = LADDER):
    """An offer of one estimator: its public name, and its parameters as a function of the problem."""

    def offer(problem: Problem) -> Iterator[Contender]:
        make = public(name)

        def construct(p: Problem, tol: Any) -> Any:
            return make(**parameters(p), **({} if tol is None else {"tol": tol}))

        yield estimator(HOME, name, construct, ladder=tolerances)

    return offer
