"""The parameters of a network: weights in NumPy arrays, which the native core updates."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from hinge._native import core
from hinge.problem.losses import Loss
from hinge.problem.losses.native import native_loss

ACTIVATIONS = ("identity", "logistic", "tanh", "relu", "gelu")
Arrays = list[np.ndarray]


def initial_weights(sizes: Sequence[int], activation: str, rng: np.random.RandomState, dtype: Any) -> tuple:
    """Weights uniform in ±√(6/(in + out)) (2 for logistic; Glorot & Bengio 2010), drawn in scikit-learn's order.

    Without a hidden layer the problem is convex, and symmetry need not be broken: weights start at zero.
    """
    if len(sizes) == 2:
        return [np.zeros((sizes[0], sizes[1]), dtype=dtype)], [np.zeros(sizes[1], dtype=dtype)]
    weights, biases = [], []
    for fan_in, fan_out in itertools.pairwise(sizes):
        bound = np.sqrt((2.0 if activation == "logistic" else 6.0) / (fan_in + fan_out))
        weights.append(rng.uniform(-bound, bound, (fan_in, fan_out)).astype(dtype))
        biases.append(rng.uniform(-bound, bound, fan_out).astype(dtype))
    return weights, biases


def _bits(dtype: Any) -> str:
    return "32" if np.dtype(dtype) == np.float32 else "64"


def examples(X: Any, dtype: Any) -> Any:
    """X in the form the core reads: dense rows or CSR, in its own precision. Other storages are copied."""
    if scipy.sparse.issparse(X):
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        make = getattr(core, f"network_sparse{_bits(dtype)}")
        return make(X.data, X.indices, X.indptr, *X.shape)
    return getattr(core, f"network_dense{_bits(dtype)}")(np.ascontiguousarray(X))


def criterion(loss: Loss, y: np.ndarray, weight: np.ndarray, outputs: int, dtype: Any) -> Any:
    """The loss with its targets (codes for losses over classes, otherwise one column per output) and weights."""
    if loss.outputs == "classes":
        return getattr(core, f"network_softmax{_bits(dtype)}")(np.ascontiguousarray(y, np.float64), weight, outputs)
    y = np.ascontiguousarray(y.reshape(len(y), -1), dtype=np.float64)
    return getattr(core, f"network_outputs{_bits(dtype)}")(native_loss(loss), y, weight)


def own_arrays(arrays: Iterable[np.ndarray], dtype: Any) -> Arrays:
    """The arrays themselves if they are writable, otherwise copies (memory-mapped files)."""
    return [np.require(a, dtype=dtype, requirements=["C", "W"]) for a in arrays]


def network(activation: str, weights: Arrays, biases: Arrays) -> Any:
    """The core's view of these arrays, which it updates in place (copies if they are read-only)."""
    same = own_arrays((*weights, *biases), weights[0].dtype)
    make = getattr(core, f"Network{_bits(weights[0].dtype)}")
    return make(ACTIVATIONS.index(activation), same[: len(weights)], same[len(weights) :])


def scores(activation: str, weights: Arrays, biases: Arrays, X: Any) -> np.ndarray:
    """f(x) for every row of X, in float64, one column per output."""
    net = network(activation, weights, biases)
    return net.scores(examples(X, weights[0].dtype)).astype(np.float64)


def unpack(flat: np.ndarray, weights: Arrays) -> tuple[Arrays, Arrays]:
    """A flat vector W₁, b₁, W₂, b₂, … as two lists of arrays (views)."""
    matrices, vectors, at = [], [], 0
    for W in weights:
        matrices.append(flat[at : at + W.size].reshape(W.shape))
        vectors.append(flat[at + W.size : at + W.size + W.shape[1]])
        at += W.size + W.shape[1]
    return matrices, vectors


def pack(weights: Arrays, biases: Arrays) -> np.ndarray:
    """W₁, b₁, W₂, b₂, … in one vector."""
    return np.concatenate([part.ravel() for pair in zip(weights, biases) for part in pair])


@dataclass(frozen=True)
class Rule:
    """The optimiser and its parameters, except the learning rate."""

    solver: str = "adam"
    momentum: float = 0.9
    nesterov: bool = True
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-8
    l2: float = 0.0
    weight_decay: float = 0.0
    clip_norm: float | None = None
    dropout: float = 0.0

    def native(self) -> Any:
        adam = self.solver != "sgd"
        return core.NetworkRecipe(
            adam=adam,
            momentum=float(self.beta_1 if adam else self.momentum),
            nesterov=bool(self.nesterov and self.momentum > 0),
            beta2=float(self.beta_2),
            epsilon=float(self.epsilon),
            l2=float(self.l2),
            decay=float(self.weight_decay),
            clip=float(self.clip_norm or 0.0),
            dropout=float(self.dropout),
        )


@dataclass
class Engine:
    """A network in training: its weights, the optimiser's moments and the number of steps taken.

    It has plain arrays and numbers only, so it can be pickled and training can continue.
    """

    activation: str
    weights: Arrays
    biases: Arrays
    rule: Rule
    seed: int
    steps: int = 0
    epochs: int = 0
    moments: Arrays = field(default_factory=list)

    _net: ClassVar[Any] = None  # the core's view, created when first needed and never saved

    def __post_init__(self) -> None:
        if not self.moments:
            size = sum(W.size + b.size for W, b in zip(self.weights, self.biases))
            count = 1 if self.rule.solver == "sgd" else 2
            self.moments = [np.zeros(size, dtype=self.dtype) for _ in range(count)]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_net"}

    @property
    def dtype(self) -> np.dtype:
        return self.weights[0].dtype

    def net(self) -> Any:
        if self._net is None:
            self.weights, self.biases, self.moments = (
                own_arrays(arrays, self.dtype) for arrays in (self.weights, self.biases, self.moments)
            )
            self.__dict__["_net"] = network(self.activation, self.weights, self.biases)
        return self._net

    def epoch(self, x: Any, loss: Any, batch: int, rates: np.ndarray, *, shuffle: bool) -> float:
        """One pass over the examples; returns the mean loss, each batch at the weights before its step."""
        value = self.net().epoch(
            x, loss, batch, rates, self.rule.native(), shuffle, self.seed, self.epochs, self.steps + 1, *self.moments
        )
        self.steps += len(rates)
        self.epochs += 1
        return value

    def squared_norm(self) -> float:
        return sum(float(np.vdot(W, W)) for W in self.weights)

    def copy_weights(self) -> tuple[Arrays, Arrays]:
        return [W.copy() for W in self.weights], [b.copy() for b in self.biases]

    def restore(self, weights: Arrays, biases: Arrays) -> None:
        """Restore earlier values in place."""
        for now, then in zip((*self.weights, *self.biases), (*weights, *biases)):
            now[...] = then
