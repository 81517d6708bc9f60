"""The objective: data, loss and penalty.

    J(w, b) = Σᵢ cᵢ ℓ(yᵢ, zᵢ) + Ω(w),     z = Xw + b + offset,     cᵢ = sᵢ / Σ s

The bias is never penalised. With k outputs w is d × k, b has k entries and z is n × k.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hinge._cached import cached_property
from hinge._native import Design, core
from hinge.problem.losses import CustomLoss, Loss, Softmax, as_loss, normalise_weights
from hinge.problem.losses.native import native_loss
from hinge.problem.numerics import largest_eigenvalue, weighted_sum
from hinge.problem.penalties import Penalty, as_penalty

Array = NDArray[np.float64]


FAR = 30.0  # a larger score may overflow an exponential


@dataclass(frozen=True, eq=False)
class Objective:
    """A regularised empirical risk, ready to be minimised. Build one with :func:`make_objective`.

    Attributes
    ----------
    design : Design
        The inputs X, dense or sparse, where they are.
    y : array
        Targets, coded as the loss wants them.
    c : array of n
        Sample weights, divided by their sum.
    loss : Loss
        ℓ.
    penalty : Penalty
        λΩ.
    fit_intercept : bool
        Whether there is a bias; it is not penalised.
    outputs : int
        Scores per example: the number of classes or targets.
    offset : array, optional
        Added to the scores, with no weight to be learned.
    weight_sum : float
        Σ sᵢ before the division, to translate between C, alpha and λ.
    """

    design: Design
    y: Array
    c: Array  # normalised sample weights
    loss: Loss
    penalty: Penalty
    fit_intercept: bool = True
    outputs: int = 1
    offset: Array | None = None
    weight_sum: float = 1.0  # Σ s, for translating between C, alpha and λ

    @property
    def n(self) -> int:
        return self.design.shape[0]

    @property
    def d(self) -> int:
        return self.design.shape[1]

    @cached_property
    def native(self) -> Any:
        """The compiled version of the loss."""
        return native_loss(self.loss)

    @cached_property
    def square_sums(self) -> Array:
        """Σᵢ cᵢ xᵢⱼ² for every column j."""
        return np.diag(self.moments)[: self.d].copy() if self.has_moments else self.design.square_sums(self.c)

    @cached_property
    def moments(self) -> Array:
        """[X 1 y]'C[X 1 y] for one target minus its offset: the sufficient statistics of least squares."""
        return self.design.moments(self.c, self.y if self.offset is None else self.y - self.offset)

    @property
    def has_moments(self) -> bool:
        """Whether X'X and X'y have been computed."""
        return "moments" in vars(self)

    def zero(self) -> tuple[Array, Array]:
        """w = 0 and b = 0 in the shapes of this problem (b is an array with one entry per output)."""
        shape = (self.d,) if self.outputs == 1 else (self.d, self.outputs)
        return np.zeros(shape), np.zeros(self.outputs)

    def start(self) -> tuple[Array, Array]:
        """Zero weights and the best constant score: the solvers' starting point."""
        w, b = self.zero()
        # The best constant is computed for convex losses, likelihoods and user-defined losses.
        has_baseline = self.loss.convex or getattr(self.loss, "fisher", False) or isinstance(self.loss, CustomLoss)
        if self.fit_intercept and self.outputs == 1 and has_baseline and self.loss.smooth and self.y.ndim == 1:
            best = self.loss.baseline(self.y, self.c)
            # A class of weight zero has no effect on the constant, but its loss there may be 0 · ∞.
            far = abs(best) > FAR and not np.isfinite(self.risk_of_scores(np.full(self.n, best)))
            b[0] = best if np.isfinite(best) and not far else 0.0
        return w, b

    def best_constant(self) -> float:
        """The constant score of smallest risk, for one output."""
        return self.loss.baseline(self.y, self.c)

    def scores(self, w: Array, b: Array) -> Array:
        return self._shifted(self.design.matmul(w), b)

    def scores_and_adjoint(self, w: Array, b: Array, u: Array) -> tuple[Array, Array]:
        """The scores and X'(c∘u) of one output, in one pass over X."""
        z, g = self.design.matvec_and_rmatvec(w, self.c * u)
        return self._shifted(z, b), g

    def _shifted(self, z: Array, b: Array) -> Array:
        if self.fit_intercept:
            z += b if self.outputs > 1 else b[0]
        return z if self.offset is None else z + self.offset

    def risk_of_scores(self, z: Array) -> float:
        """Σ cᵢ ℓ(yᵢ, zᵢ)."""
        if z.ndim == 1:
            return float(self.native.value(self.y, z, self.c))
        if isinstance(self.loss, Softmax):
            return float(core.softmax_gradient(self.y, np.ascontiguousarray(z), self.c)[0])
        return float(np.sum(weighted_sum(self.c, self.loss.value(self.y, z))))

    def gradient_of_scores(self, z: Array) -> Array:
        """uᵢ = ∂ℓ/∂s at the scores."""
        if z.ndim == 1:
            return self.native.gradients(self.y, z)
        return self.loss.gradient(self.y, z)

    def conjugate_sum(self, u: Array) -> float:
        """Σ cᵢ ℓ*(yᵢ, uᵢ)."""
        if u.ndim == 1:
            return float(self.native.conjugate(self.y, self.c * u, self.c))
        return float(np.sum(weighted_sum(self.c, self.loss.conjugate(self.y, u))))

    def risk(self, w: Array, b: Array) -> float:
        return self.risk_of_scores(self.scores(w, b))

    def value(self, w: Array, b: Array) -> float:
        return self.risk(w, b) + self.penalty.value(w)

    def risk_gradient(self, w: Array, b: Array) -> tuple[float, Array, Array]:
        """The empirical risk, its gradient in w, and in b (zero when there is no bias)."""
        if self.outputs == 1:
            value, _, cu, g = self.evaluate(w, b)
            return value, g, np.array([cu.sum()]) if self.fit_intercept else np.zeros(1)
        z = self.scores(w, b)
        if isinstance(self.loss, Softmax):
            value, cu = core.softmax_gradient(self.y, z, self.c)
        else:
            value, cu = self.risk_of_scores(z), self.weighted(self.loss.gradient(self.y, z))
        gb = np.atleast_1d(cu.sum(axis=0)) if self.fit_intercept else np.zeros(self.outputs)
        return value, self.design.rmatmul(cu), gb

    def evaluate(self, w: Array, b: Array) -> tuple[float, Array, Array, Array]:
        """The risk, the scores z, the weighted gradients c∘ℓ'(z) and X'(c∘ℓ'(z)) of one output, in one pass over X."""
        w = np.ascontiguousarray(w, dtype=np.float64)
        bias = float(b[0]) if self.fit_intercept else 0.0
        return core.evaluate(self.design.native, self.native, self.y, self.c, self.offset, w, bias)

    def weighted(self, u: Array) -> Array:
        """cᵢ uᵢ, for one or several outputs."""
        return self.c * u if u.ndim == 1 else self.c[:, None] * u

    def curvature_bound(self, bias_unit: float = 1.0) -> float:
        """An upper bound L of the second derivative of the risk in (w, b/κ), (sup ℓ'')·λ_max([X κ]' C [X κ]), κ = ``bias_unit``.

        Computed by Lanczos as an upper bound within 0.1 %; infinity if ℓ'' is unbounded.
        """
        if not np.isfinite(self.loss.curvature):
            return np.inf

        def apply(v: Array) -> Array:
            z = self.design.matmul(v[: self.d]) + (bias_unit * v[self.d] if self.fit_intercept else 0.0)
            cz = self.c * z
            return (
                np.append(self.design.rmatmul(cz), bias_unit * cz.sum())
                if self.fit_intercept
                else self.design.rmatmul(cz)
            )

        return self.loss.curvature * largest_eigenvalue(apply, self.d + int(self.fit_intercept))

    def with_penalty(self, penalty: Penalty) -> Objective:
        """The same data and loss under another penalty."""
        return replace(self, penalty=penalty)


def make_objective(
    X: Any,
    y: ArrayLike,
    loss: Any,
    penalty: Any = None,
    *,
    sample_weight: ArrayLike | None = None,
    fit_intercept: bool = True,
    offset: ArrayLike | None = None,
    classes: int | None = None,
) -> Objective:
    """An objective of data, loss and penalty.

    y must already be coded as the loss wants it (−1/+1, or 0…k−1 with ``classes=k``). X is used where it is.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        The inputs; they are not copied.
    y : array of n targets, or n × k
        Finite numbers that the loss admits.
    loss : Loss
        A loss of this library, or any object with ``value`` and ``gradient``.
    penalty : Penalty, optional
        None by default: maximum likelihood, least squares.
    sample_weight : array of n weights, optional
        How much each example counts; all the same by default.
    fit_intercept : bool
        Whether there is a bias; it is not penalised.
    offset : array of n, optional
        Added to the scores, such as the logarithm of an exposure.
    classes : int, optional
        The number of classes, for losses over classes; the largest target plus one by default.
    """
    penalty, design = as_penalty(penalty), Design(X)
    targets = np.ascontiguousarray(y, dtype=np.float64)
    loss = loss if isinstance(loss, CustomLoss) else as_loss(loss, targets)
    if len(targets) != design.shape[0]:
        raise ValueError(f"X has {design.shape[0]} rows but y has {len(targets)} entries.")
    if not np.all(np.isfinite(targets)):
        raise ValueError("y has missing or infinite values; drop those examples, or replace the values.")
    if not loss.target.admits(targets):
        raise ValueError(f"y does not suit {type(loss).__name__}: it must hold {loss.target.value}.")
    outputs = int(classes or targets.max() + 1) if loss.outputs == "classes" else 1
    if targets.ndim == 2:
        outputs = targets.shape[1]
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    c = normalise_weights(weight, len(targets))
    total = float(len(targets)) if weight is None else float(weight.sum())
    shift = None if offset is None else np.ascontiguousarray(offset, dtype=np.float64)
    if shift is not None and not np.all(np.isfinite(shift)):
        raise ValueError("offset has missing or infinite values; drop those examples, or replace the values.")
    return Objective(design, targets, c, loss, penalty, fit_intercept, outputs, shift, total)
