"""Public names of hinge, where one that is still to come is a skip and not a failure."""

from __future__ import annotations

from typing import Any

import hinge
from benchmarks.libraries import HOME, Missing


def public(name: str) -> Any:
    """``hinge.<name>``."""
    try:
        return getattr(hinge, name)
    except AttributeError as error:
        raise Missing(f"{HOME}.{name}") from error
