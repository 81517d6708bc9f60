"""Backpropagation step by step: the input, the output and the error of every unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hinge.models.neural.engine import Arrays, criterion, examples, network, unpack
from hinge.problem.losses import Loss


@dataclass(frozen=True)
class BackpropTrace:
    """One forward and one backward pass for n examples through L layers; list entry l − 1 belongs to layer l.

    Attributes
    ----------
    loss : float
        The mean loss of the examples.
    inputs : array of shape (n, d)
        z₀ = x.
    preactivations : list of arrays
        a_l = z_{l−1} W_l + b_l, the last of which are the scores.
    activations : list of arrays
        z_l = h(a_l); the last equals the scores.
    deltas : list of arrays
        δ_l = ∂loss/∂a_l = (δ_{l+1} W_{l+1}′) ∘ h′(a_l), one number per example and unit.
    weight_gradients, bias_gradients : lists of arrays
        ∂loss/∂W_l = z_{l−1}′ δ_l and ∂loss/∂b_l, the column sums of δ_l.
    """

    loss: float
    inputs: np.ndarray
    preactivations: Arrays
    activations: Arrays
    deltas: Arrays
    weight_gradients: Arrays
    bias_gradients: Arrays


def backprop_trace(
    activation: str, weights: Arrays, biases: Arrays, X: Any, y: np.ndarray, weight: np.ndarray, loss: Loss
) -> BackpropTrace:
    """Trace the network on these examples, in float64 and without dropout."""
    weights = [np.asarray(W, dtype=np.float64) for W in weights]
    biases = [np.asarray(b, dtype=np.float64) for b in biases]
    net = network(activation, weights, biases)
    bound = criterion(loss, y, weight, biases[-1].size, np.float64)
    value, z, deltas, flat = net.trace(examples(X, np.float64), bound)
    inputs = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    below = [inputs, *z[:-1]]
    preactivations = [h @ W + b for h, W, b in zip(below, weights, biases)]
    return BackpropTrace(value, inputs, preactivations, z, deltas, *unpack(flat, weights))
