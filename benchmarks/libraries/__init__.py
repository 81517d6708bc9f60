"""One adapter per library: how it fits each kind of problem it can.

A module here is named after its library's distribution, dashes as underscores. It has ``OFFERS`` (kind of problem →
function of the problem that gives its contenders) and, if its library needs telling, ``set_threads(count)``. It imports
its library at the top, so that a missing one is an ImportError here and is skipped by name.
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


def adapters(only: Sequence[str] = ()) -> list[str]:
    """Names of the libraries with an adapter, hinge first: it settles soonest what the best objective is."""
    modules = [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]
    names = [module.replace("_", "-") for module in modules]
    return sorted((name for name in names if not only or name in only), key=lambda name: (name != HOME, name))


def load(only: Sequence[str] = ()) -> Iterator[tuple[str, ModuleType | Skip]]:
    """Every adapter whose library is installed; a skip for the others."""
    for name in adapters(only):
        try:
            yield name, importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
        except ImportError as error:
            yield name, Skip(name, f"not installed ({error})")


def enter(problem: Any, only: Sequence[str] = ()) -> tuple[list[Any], list[Skip]]:
    """The contenders for a problem and the libraries skipped; ``only`` restricts to some, by name."""
    contenders: list[Any] = []
    skipped: list[Skip] = []
    for _, adapter in load(only):
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


def versions(only: Sequence[str] = ()) -> dict[str, str]:
    """Version of every installed library, and of NumPy and SciPy under them."""
    names = ["numpy", "scipy", *(name for name, adapter in load(only) if not isinstance(adapter, Skip))]
    return {name: importlib.metadata.version(name) for name in names}


def set_threads(count: int, only: Sequence[str] = ()) -> None:
    """Set the number of threads of the libraries that have a function for it."""
    for _, adapter in load(only):
        setter = getattr(adapter, "set_threads", None)
        if setter is not None:
            setter(count)
