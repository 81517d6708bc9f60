"""PyTorch on the CPU: a plain training loop over shuffled slices of one tensor, the quickest way to write it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.harness import Contender, Problem


def layers(sizes: list[int]) -> nn.Sequential:
    parts: list[nn.Module] = []
    for fan_in, fan_out in itertools.pairwise(sizes):
        parts += [nn.Linear(fan_in, fan_out), nn.ReLU()]
    return nn.Sequential(*parts[:-1])


def tensors(problem: Problem) -> tuple[Problem, torch.Tensor, torch.Tensor]:
    y = torch.from_numpy(problem.y)
    return problem, torch.from_numpy(problem.X), y if problem.kind == "mlp_classes" else y.float()[:, None]


def fit(fused: bool, prepared: tuple[Problem, torch.Tensor, torch.Tensor], tol: None) -> nn.Sequential:
    problem, X, y = prepared
    torch.manual_seed(0)
    outputs = int(y.max()) + 1 if problem.kind == "mlp_classes" else 1
    net = layers([X.shape[1], *problem.params["hidden"], outputs])
    loss = nn.CrossEntropyLoss() if problem.kind == "mlp_classes" else nn.MSELoss()
    optimiser = torch.optim.Adam(net.parameters(), lr=problem.params["rate"], fused=fused)
    for _ in range(problem.params["epochs"]):
        for rows in torch.randperm(len(X)).split(problem.params["batch"]):
            optimiser.zero_grad(set_to_none=True)
            loss(net(X[rows]), y[rows]).backward()
            optimiser.step()
    return net


def scores(net: nn.Sequential, X: Any) -> torch.Tensor:
    with torch.inference_mode():
        return net(torch.from_numpy(X))


def contenders(**readers: Any) -> Iterator[Contender]:
    """Adam as PyTorch chooses it, and its fused kernel."""
    for fused in (False, True):
        label = "fused Adam" if fused else "Adam"
        yield Contender("torch", label, partial(fit, fused), prepare=tensors, jit=True, **readers)


def classes(problem: Problem) -> Iterator[Contender]:
    return contenders(
        predict=lambda net, X: scores(net, X).argmax(dim=1).numpy(),
        probability=lambda net, X: torch.softmax(scores(net, X), dim=1).numpy(),
    )


def regression(problem: Problem) -> Iterator[Contender]:
    return contenders(predict=lambda net, X: np.asarray(scores(net, X))[:, 0])


OFFERS = {"mlp_classes": classes, "mlp_regression": regression}


def set_threads(count: int) -> None:
    torch.set_num_threads(count)
