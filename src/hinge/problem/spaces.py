"""Hypothesis spaces: the kinds of functions that are learned.

A space is a small immutable description. ``family`` names the module that minimises a loss and a penalty over it (the
module registers itself with :func:`hinge.models.learner.minimise` when imported), so new spaces need no change to the
Learner.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hinge.problem.parameters import Parametrised


@dataclass(frozen=True)
class Space(Parametrised):
    """Base class of hypothesis spaces."""

    family: ClassVar[str] = ""
    # The options of Learner, besides loss and penalty, that minimising over the space uses.
    uses: ClassVar[frozenset[str]] = frozenset({"solver", "tol", "max_iter", "random_state", "history"})
    tabular: ClassVar[bool] = True  # inputs are rows of a table, targets one value per row

    @property
    def takes_objects(self) -> bool:
        """Whether inputs are objects (strings, graphs), one per target, rather than rows of a table."""
        return False


@dataclass(frozen=True)
class Linear(Space):
    """f(x) = ⟨w, x⟩ + b.

    Parameters
    ----------
    fit_intercept : bool
        Whether there is a bias b. It is never penalised.
    """

    fit_intercept: bool = True

    family: ClassVar[str] = "hinge.models.linear.space"


@dataclass(frozen=True)
class Network(Space):
    """f(x) = h(… h(xW₁ + b₁) …)W_L + b_L: a feed-forward network. A penalty acts on all W_l, never on biases.

    Parameters
    ----------
    hidden : tuple of int
        The widths of the hidden layers; () is a linear function.
    activation : {"identity", "logistic", "tanh", "relu", "gelu"}
        The function h.
    dropout : float
        The probability that a hidden unit is silent in a training step.
    batch_size : int
        Examples per step of the stochastic solvers.
    learning_rate : float
        The largest step of the stochastic solvers; it falls to zero along a cosine.
    """

    hidden: tuple[int, ...] = (100,)
    activation: str = "relu"
    dropout: float = 0.0
    batch_size: int = 200
    learning_rate: float = 0.003

    family: ClassVar[str] = "hinge.models.neural.space"
    uses: ClassVar[frozenset[str]] = frozenset({"solver", "tol", "max_iter", "random_state"})


@dataclass(frozen=True)
class Chain(Space):
    """Sequences of labels: score(x, y) = Σ_t Σ_a x_ta U[a, y_t] + Σ_t T[y_{t−1}, y_t] (+ Σ_t R[y_{t−2}, y_{t−1}, y_t]).

    X is a list of sequences of tokens, y a list of lists of labels. For the losses ``StructuredLogistic`` (a conditional
    random field), ``StructuredHinge`` (a structured SVM) and ``StructuredPerceptronLoss``.

    Parameters
    ----------
    features : callable, optional
        From a sequence to its tokens' attributes, such as ``TextFeatures()``.
    constraints : {"bio", "bioes"} or callable, optional
        Which label may follow which.
    min_count : int
        Attributes seen fewer times than this are dropped.
    order : {1, 2}
        2: label triples have weights R too.
    """

    features: Any = None
    constraints: Any = None
    min_count: int = 1
    order: int = 1

    family: ClassVar[str] = "hinge.models.structured.space"
    uses: ClassVar[frozenset[str]] = frozenset({"tol", "max_iter", "random_state"})
    tabular: ClassVar[bool] = False


@dataclass(frozen=True)
class TreeOutput(Chain):
    """Trees of labels: as :class:`Chain`, with T[y_parent(t), y_t] for every token t that is not a root.

    X is a list of pairs (tokens, parents), where parents[t] is the position of the parent of t, −1 for a root.

    Parameters
    ----------
    features, constraints, min_count, order
        As for :class:`Chain`; the label before is that of the parent.
    """


@dataclass(frozen=True)
class RKHS(Space):
    """f = Σⱼ αⱼ k(xⱼ, ·) + b: functions in the reproducing kernel Hilbert space of a kernel, penalised by their norm.

    Parameters
    ----------
    kernel : Kernel or function
        Such as ``hg.kernels.RBF(1.0) + hg.Linear()``.
    fit_intercept : bool
        Whether there is a bias b. It is never penalised.
    centres : int, optional
        Expand over this many examples chosen at random instead of all of them, for data whose n × n kernel matrix
        is too large. Needs a loss with two derivatives.
    cache_size : float
        With ``centres``: megabytes for kernel values that are kept instead of computed again.
    """

    kernel: Any = None
    fit_intercept: bool = True
    centres: int | None = None
    cache_size: float = 2000.0

    family: ClassVar[str] = "hinge.models.kernel.space"

    @property
    def takes_objects(self) -> bool:
        return getattr(self.kernel, "takes", "vectors") == "objects"
