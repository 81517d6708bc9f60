"""Learning-rate schedules: the rate of every step as a function of the progress of training.

Named schedules, with p = (steps done) / (steps planned) in [0, 1):

==============  ==================================================================================================
``constant``    η
``invscaling``  η / (t + 1)^power_t, t = examples seen at the start of the epoch (scikit-learn's)
``adaptive``    η, divided by 5 whenever the loss has stopped falling; training ends below 1e-6 (scikit-learn's)
``plateau``     η, divided by 2 whenever the loss has not fallen for n_iter_no_change / 2 epochs
``step``        η divided by 10 at p = 1/2 and again at p = 3/4
``cosine``      η (1 + cos πp) / 2
``one_cycle``   from η/25 up to η over the first 30 % of the steps, then by a cosine down to η/10⁴
==============  ==================================================================================================

Any function p → factor is also accepted.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Shape = Callable[[np.ndarray], np.ndarray]

# scikit-learn applies these to SGD only; with Adam the rate is constant.
SGD_ONLY = ("invscaling", "adaptive")
WARM_UP = 0.3


def _step(p: np.ndarray) -> np.ndarray:
    return np.where(p < 0.5, 1.0, np.where(p < 0.75, 0.1, 0.01))


def _cosine(p: np.ndarray) -> np.ndarray:
    return 0.5 * (1.0 + np.cos(np.pi * p))


def _one_cycle(p: np.ndarray) -> np.ndarray:
    rise = 0.04 + 0.96 * _cosine(1.0 - np.minimum(p / WARM_UP, 1.0))
    fall = 1e-4 + (1.0 - 1e-4) * _cosine(np.maximum(p - WARM_UP, 0.0) / (1.0 - WARM_UP))
    return np.where(p < WARM_UP, rise, fall)


SHAPES: dict[str, Shape] = {"step": _step, "cosine": _cosine, "one_cycle": _one_cycle}
NAMES = ("constant", "invscaling", "adaptive", "plateau", *SHAPES)


class LearningRate:
    """The rates of one training run, with the reductions made so far."""

    def __init__(
        self, name: str | Callable[[float], float], rate: float, *, power_t: float, epochs: int, steps: int
    ) -> None:
        self.name, self.rate, self.power_t = name, rate, power_t
        self.planned = max(epochs * steps, 1)
        self.steps = steps

    def epoch(self, number: int, examples: int) -> np.ndarray:
        """The rate of each step of epoch ``number`` (from 0); ``examples`` were used before it."""
        if self.name == "invscaling":
            return np.full(self.steps, self.rate / (examples + 1) ** self.power_t)
        progress = np.minimum((number * self.steps + np.arange(self.steps)) / self.planned, 1.0)
        if callable(self.name):
            try:
                factors = np.array([float(self.name(float(p))) for p in progress])
            except (TypeError, ValueError) as error:
                raise type(error)(f"learning_rate as a function of the progress, 0 to 1, failed: {error}") from error
            if not np.all(np.isfinite(factors)) or np.any(factors < 0):
                raise ValueError("learning_rate as a function must return finite factors, zero or more.")
            return self.rate * factors
        shape = SHAPES.get(self.name)
        return np.full(self.steps, self.rate) if shape is None else self.rate * shape(progress)

    def reduce(self, factor: float) -> None:
        self.rate /= factor
