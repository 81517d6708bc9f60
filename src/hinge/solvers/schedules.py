"""Step lengths of stochastic methods: η_t = η₀ / (1 + decay·t)^power, t = 0, 1, 2 … counting updates.

Fixed            power 0
InverseTime      power 1     (1/t: strongly convex problems; Pegasos is η₀ = 1/(λt₀), decay = 1/t₀)
InverseSqrt      power ½     (1/√t: any convex problem)
ReduceOnPlateau  a fixed step that is multiplied by a factor when the loss stops falling
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Schedule:
    """Base class: the three numbers of a schedule, and its rule after an epoch.

    Parameters
    ----------
    step : float
        The first step η₀ > 0.
    """

    step: float = 0.1
    decay: ClassVar[float] = 0.0
    power: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        if not self.step > 0:
            raise ValueError(f"step must be greater than zero, got {self.step}.")

    def at(self, t: int) -> float:
        """η_t."""
        return self.step / (1.0 + self.decay * t) ** self.power

    def begin(self) -> Plateau:
        """A new count of epochs without improvement."""
        return Plateau(1.0, 0, 0.0)


@dataclass(frozen=True)
class Fixed(Schedule):
    """η_t = step.

    Parameters
    ----------
    step : float
        The step η > 0.
    """


@dataclass(frozen=True)
class _Decreasing(Schedule):
    """Steps that shrink with every update."""

    decay: float = 1.0  # type: ignore[misc]


@dataclass(frozen=True)
class InverseTime(_Decreasing):
    """η_t = step / (1 + decay·t).

    Parameters
    ----------
    step : float
        The first step η₀ > 0.
    decay : float
        How fast steps shrink; t counts them.
    """

    power: ClassVar[float] = 1.0


@dataclass(frozen=True)
class InverseSqrt(_Decreasing):
    """η_t = step / √(1 + decay·t).

    Parameters
    ----------
    step, decay
        As for :class:`hinge.solvers.InverseTime`.
    """

    power: ClassVar[float] = 0.5


@dataclass(frozen=True)
class ReduceOnPlateau(Schedule):
    """A fixed step, multiplied by ``factor`` whenever the loss has not fallen for ``patience`` epochs.

    Parameters
    ----------
    step : float
        The first step η₀ > 0.
    factor : float
        What the step is multiplied by, between 0 and 1.
    patience : int
        How many epochs without a fall to wait.
    min_change : float
        A fall of the loss counts if it is larger than this share of it.
    """

    factor: float = 0.5
    patience: int = 2
    min_change: float = 1e-4

    def begin(self) -> Plateau:
        return Plateau(self.factor, self.patience, self.min_change)


class Plateau:
    """Monitors the loss of the epochs; ``scale`` multiplies the step."""

    def __init__(self, factor: float, patience: int, min_change: float) -> None:
        self._factor, self._patience, self._min_change = factor, patience, min_change
        self._lowest, self._waited, self.scale = float("inf"), 0, 1.0

    def see(self, loss: float) -> None:
        if loss < self._lowest - self._min_change * abs(loss):
            self._lowest, self._waited = loss, 0
            return
        self._waited += 1
        if self._patience and self._waited >= self._patience:
            self.scale *= self._factor
            self._waited = 0
