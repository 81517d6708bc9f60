"""One adapter per library: how it fits each kind of problem it can.

An adapter module has ``NAME`` (as shown), ``DISTRIBUTION`` (whose version is recorded) and ``OFFERS``: kind of
problem → function of the problem that gives its contenders; optionally ``set_threads(count)``. It imports its library at the top, so that a missing one
is an ImportError here and is skipped by name.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import pkgutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

HOME = "hinge"


class Missing(Exception):
    """A library is there but lacks the named thing, say an estimator that is still to come."""


@dataclass(frozen=True)
class Skip:
    """Who did not take part, and why."""

    name: str
    reason: str


def adapters() -> list[str]:
    """Names of the adapter modules, hinge first: it settles soonest what the best objective is."""
    names = [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]
    return sorted(names, key=lambda name: (name != HOME, name))


def load() -> Iterator[ModuleType | Skip]:
    """Every adapter whose library is installed; a skip for the others."""
    for name in adapters():
        try:
            yield importlib.import_module(f"{__name__}.{name}")
        except ImportError as error:
            yield Skip(name.replace("_", "-"), f"not installed ({error})")


def enter(problem: Any, libraries: Sequence[str] = ()) -> tuple[list[Any], list[Skip]]:
    """The contenders for a problem and the libraries skipped; ``libraries`` restricts to some, by name."""
    contenders: list[Any] = []
    skipped: list[Skip] = []
    for adapter in load():
        name = adapter.name if isinstance(adapter, Skip) else adapter.NAME
        if libraries and name not in libraries:
            continue
        if isinstance(adapter, Skip):
            skipped.append(adapter)
            continue
        offer = adapter.OFFERS.get(problem.kind)
        if offer is None:
            continue
        try:
            contenders += offer(problem)
        except Missing as missing:
            skipped.append(Skip(str(missing), "not in this version"))
    return contenders, skipped


def versions() -> dict[str, str]:
    """Version of every installed library, and of NumPy and SciPy under them."""
    distributions = {"numpy": "numpy", "scipy": "scipy"}
    for adapter in load():
        if not isinstance(adapter, Skip):
            distributions[adapter.NAME] = adapter.DISTRIBUTION
    return {name: importlib.metadata.version(distribution) for name, distribution in distributions.items()}


def set_threads(count: int) -> None:
    """Tell the libraries that have their own way of being told."""
    for adapter in load():
        tell = getattr(adapter, "set_threads", None)
        if tell is not None:
            tell(count)
