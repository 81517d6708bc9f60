"""A default is part of the API: none changes by accident.

`python tests/contracts/test_defaults.py` writes defaults.json again, for new names and for changes that are meant.
"""

from __future__ import annotations

import inspect
import json
import operator
from pathlib import Path

import pytest

import hinge as hg
from hinge.problem.distributions import as_distribution

KEPT = Path(__file__).with_name("defaults.json")


def defaults(name: str) -> dict[str, str]:
    """The parameters of a public class or function that have a default, and that default as text."""
    try:
        parameters = inspect.signature(operator.attrgetter(name)(hg)).parameters.values()
    except (TypeError, ValueError):
        return {}
    return {p.name: repr(p.default) for p in parameters if p.default is not p.empty and " at 0x" not in repr(p.default)}


def public() -> list[str]:
    """The names of the package and of its namespaces, such as solvers.Pegasos."""
    names = [*hg.__all__, *(f"{space}.{name}" for space in hg.NAMESPACES for name in getattr(hg, space).__all__)]
    return sorted(name for name in names if callable(operator.attrgetter(name)(hg)))


RECORDED: dict[str, dict[str, str]] = json.loads(KEPT.read_text()) if KEPT.exists() else {}


@pytest.mark.parametrize("name", sorted(set(RECORDED) & set(public())))
def test_defaults_are_as_they_were(name):
    now = defaults(name)
    assert {k: v for k, v in now.items() if k in RECORDED[name]} == {
        k: v for k, v in RECORDED[name].items() if k in now
    }


def test_names_of_distributions_have_the_parameters_they_had():
    assert as_distribution("negative-binomial").alpha == 1.0
    assert as_distribution("inverse-gaussian").power == 3.0
    assert as_distribution("tweedie").power == 1.5


if __name__ == "__main__":
    KEPT.write_text(json.dumps({n: defaults(n) for n in public() if defaults(n)}, indent=1, ensure_ascii=False) + "\n")
