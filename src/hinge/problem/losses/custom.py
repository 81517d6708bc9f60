"""Losses that users write: any object with ``value(y, s)`` and ``gradient(y, s)``, optionally ``hessian(y, s)``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hinge.problem.losses.base import Array, Loss, Target


@dataclass(frozen=True, eq=False)
class CustomLoss(Loss):
    """Wraps an object that is not a :class:`Loss`.

    What it declares is believed: ``target``, ``smooth`` (True if absent), ``convex`` (False if absent, so no
    duality gap is claimed), ``curvature``, ``conjugate``. Nothing has to be registered.
    """

    definition: Any = None

    def __post_init__(self) -> None:
        d = self.definition
        missing = [name for name in ("value", "gradient") if not callable(getattr(d, name, None))]
        if missing:
            raise TypeError(
                f"loss must be a hinge loss or an object with value(y, s) and gradient(y, s); "
                f"{type(d).__name__} has no {' and no '.join(missing)}."
            )

    def _declared(self, name: str, default: Any) -> Any:
        return getattr(self.definition, name, default)

    @property
    def target(self) -> Target:  # type: ignore[override]
        return self._declared("target", Target.REAL)

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        return bool(self._declared("smooth", True))

    @property
    def convex(self) -> bool:  # type: ignore[override]
        return bool(self._declared("convex", False))

    @property
    def twice(self) -> bool:  # type: ignore[override]
        return callable(self._declared("hessian", None))

    @property
    def has_conjugate(self) -> bool:  # type: ignore[override]
        return self.convex and callable(self._declared("conjugate", None))

    @property
    def curvature(self) -> float:
        return float(self._declared("curvature", float("inf")))

    def value(self, y: Array, s: Array) -> Array:
        return self.definition.value(y, s)

    def gradient(self, y: Array, s: Array) -> Array:
        return self.definition.gradient(y, s)

    def hessian(self, y: Array, s: Array) -> Array:
        return self.definition.hessian(y, s)

    def conjugate(self, y: Array, u: Array) -> Array:
        return self.definition.conjugate(y, u)

    def inverse_link(self, s: Array) -> Array:
        link = self._declared("inverse_link", None)
        return s if link is None else link(s)

    def __repr__(self) -> str:
        return repr(self.definition)


def as_loss(loss: Any) -> Loss:
    """The loss itself, or a wrapped user-defined one."""
    return loss if isinstance(loss, Loss) else CustomLoss(loss)
