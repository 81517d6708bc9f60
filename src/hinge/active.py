"""Which examples to label next, and which experiments to make next."""

from __future__ import annotations

from hinge._lazy import lazy_names

_PUBLIC: dict[str, tuple[str, ...]] = {
    "hinge.select.active": ("active_curves", "query"),
    "hinge.select.design": ("BallDomain", "BoxDomain", "SequentialDesign"),
}  # fmt: skip

__getattr__, __dir__, __all__ = lazy_names(__name__, _PUBLIC)
