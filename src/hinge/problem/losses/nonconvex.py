"""A smooth nonconvex surrogate of the 0-1 loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.special

from hinge.problem.losses.base import Array, Target


@dataclass(frozen=True)
class SigmoidLoss:
    """ℓ(y, s) = 2/(1 + exp(sharpness · ys)): smooth, bounded, at least the 0-1 loss, and nonconvex.

    An example far on the wrong side has a loss of at most 2, so outliers influence the fit less than under convex losses,
    which are unbounded. In return there are local minima, and the certificate is a stationarity residual instead of a gap.
    As the sharpness grows the loss tends to twice the 0-1 loss.

    Parameters
    ----------
    sharpness : float
        How steep the loss is at the margin 0; above zero.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0], [-4.0]])
    >>> y = np.array([0, 0, 1, 1, 1])
    >>> model = hg.Learner(loss=hg.SigmoidLoss(), penalty=hg.L2(1e-3)).fit(X, y)
    >>> int((model.predict(X) != y).sum())
    1
    """

    sharpness: float = 1.0
    target: ClassVar[Target] = Target.SIGN
    convex: ClassVar[bool] = False
    smooth: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.sharpness > 0:
            raise ValueError(f"sharpness must be greater than zero; got {self.sharpness}.")

    def value(self, y: Array, s: Array) -> Array:
        return 2.0 * scipy.special.expit(-self.sharpness * y * s)

    def gradient(self, y: Array, s: Array) -> Array:
        p = scipy.special.expit(-self.sharpness * y * s)
        return -2.0 * self.sharpness * y * p * (1.0 - p)

    @property
    def curvature(self) -> float:
        """max |ℓ''| = 2 k² max p(1 − p)|1 − 2p| = k²/(3√3)."""
        return self.sharpness**2 / (3.0 * np.sqrt(3.0))
