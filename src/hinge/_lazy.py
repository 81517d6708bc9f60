"""Modules whose public names are loaded when first used."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(
    module: str, table: Mapping[str, tuple[str, ...]], others: tuple[str, ...] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a module, from the home of each of its names.

    ``others`` are further public names: submodules and names that the module defines itself.
    """
    home = {name: place for place, names in table.items() for name in names}
    public = sorted([*home, *others])

    def getattribute(name: str) -> Any:
        if name in home:
            # Import sklearn.base here, where the stack is shallow: deep inside nested imports CPython 3.11 may allocate and
            # free a chunk of its stack at every call.
            if home[name].startswith(("hinge.models.", "hinge.select.")):
                import sklearn.base  # noqa: F401
            value = getattr(importlib.import_module(home[name]), name)
        elif name in others:
            value = importlib.import_module(f"{module}.{name}")
        else:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        setattr(sys.modules[module], name, value)
        return value

    return getattribute, lambda: public, public
