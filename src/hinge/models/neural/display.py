"""Displays of a network: progress during training, its curves afterwards, and a table of its layers."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any, TextIO

import numpy as np


class Progress:
    """One line, rewritten after every epoch, with the epoch and the remaining time."""

    def __init__(self, epochs: int, stream: TextIO | None = None) -> None:
        self.epochs, self.stream = epochs, sys.stdout if stream is None else stream
        self.start = self.last = time.perf_counter()
        self.rewrites = self.stream.isatty()

    def show(self, epoch: int, history: Any) -> None:
        now = time.perf_counter()
        if self.rewrites and now - self.last < 0.1 and epoch < self.epochs:
            return
        self.last = now
        left = (now - self.start) / epoch * (self.epochs - epoch)
        text = f"Iteration {epoch}/{self.epochs}, loss = {history.loss[-1]:.8f}"
        if history.validation_score:
            text += f", validation score = {history.validation_score[-1]:.6f}"
        text += f", {now - self.start:.1f} s, at most {left:.1f} s left"
        self.stream.write(f"\r{text:<100}" if self.rewrites else f"{text}\n")
        self.stream.flush()

    def close(self) -> None:
        if self.rewrites:
            self.stream.write("\n")
            self.stream.flush()


def plot_curves(history: Any, ax: Any = None) -> Any:
    """Loss against epochs and, with validation, its loss and score on a second axis."""
    if ax is None:
        from matplotlib.figure import Figure

        ax = Figure(layout="constrained").subplots()
    epochs = np.arange(1, len(history.loss) + 1)
    ax.plot(epochs, history.loss, label="training loss")
    ax.set(xlabel="epoch", ylabel="loss")
    if history.validation_loss:
        ax.plot(epochs, history.validation_loss, label="validation loss")
        right = ax.twinx()
        right.plot(epochs, history.validation_score, color="C2", label="validation score")
        right.axvline(int(np.argmax(history.validation_score)) + 1, color="0.7", linestyle=":")
        right.set_ylabel("score")
        right.legend(loc="center right")
    ax.legend(loc="upper right")
    return ax


def summary(weights: Sequence[np.ndarray], activation: str, output: str, dropout: float = 0.0) -> str:
    """A table of the layers: shape, activation, number of parameters."""
    lines = [f"{'layer':<8}{'inputs':>8}{'units':>8}  {'activation':<24}{'parameters':>12}"]
    total = 0
    for number, W in enumerate(weights, 1):
        last = number == len(weights)
        what = output if last else activation + (f", dropout {dropout:g}" if dropout else "")
        count = W.size + W.shape[1]
        total += count
        lines.append(f"{'output' if last else number:<8}{W.shape[0]:>8}{W.shape[1]:>8}  {what:<24}{count:>12,}")
    lines.append(f"{'total':<50}{total:>12,}  ({total * weights[0].itemsize / 2**20:.2f} MiB, {weights[0].dtype})")
    return "\n".join(lines)
