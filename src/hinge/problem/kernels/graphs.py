"""A kernel on graphs: Weisfeiler–Lehman subtrees."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from hinge.problem.kernels import evaluate
from hinge.problem.kernels.base import Kernel
from hinge.problem.kernels.inner_products import LinearKernel

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Graph:
    """An undirected graph with labelled nodes.

    Parameters
    ----------
    labels : sequence
        One label per node, anything hashable.
    edges : sequence of pairs
        Node numbers.
    """

    labels: tuple[Hashable, ...]
    edges: tuple[tuple[int, int], ...]

    def __init__(self, labels: Sequence[Hashable], edges: Sequence[tuple[int, int]]) -> None:
        pairs = tuple((int(a), int(b)) for a, b in edges)
        if pairs and not all(0 <= node < len(labels) for pair in pairs for node in pair):
            raise ValueError(f"edges must join nodes 0 … {len(labels) - 1}.")
        object.__setattr__(self, "labels", tuple(labels))
        object.__setattr__(self, "edges", pairs)

    def neighbours(self) -> list[list[int]]:
        lists: list[list[int]] = [[] for _ in self.labels]
        for a, b in self.edges:
            lists[a].append(b)
            lists[b].append(a)
        return lists


@dataclass(frozen=True, eq=False)
class WeisfeilerLehman(Kernel):
    """Σ over rounds h = 0 … H and labels of #label(G)·#label(G'), where a round replaces every node's label by
    the pair of its label and the sorted labels of its neighbours (Shervashidze et al. 2011).

    Isomorphic graphs cannot be told apart. Inputs are :class:`Graph` objects.

    Parameters
    ----------
    rounds : int
        H ≥ 0: how many steps away two nodes may look different.
    """

    rounds: int = 3
    takes: ClassVar[str] = "objects"
    psd: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if int(self.rounds) != self.rounds or self.rounds < 0:
            raise ValueError(f"rounds must be a whole number ≥ 0, got {self.rounds!r}.")

    def block(self, A: Any, B: Any) -> Array:
        names: dict[Hashable, int] = {}
        left = self._counts(A, names)
        right = left if B is A else self._counts(B, names)
        for counts in (left, right):
            counts.resize((counts.shape[0], max(len(names), 1)))
        return evaluate.gram(LinearKernel().program(), left, right)

    def features(self, X: Any) -> Any:
        return self._counts(evaluate.objects(X), {})

    def _counts(self, graphs: Any, names: dict[Hashable, int]) -> Any:
        rows: list[int] = []
        columns: list[int] = []
        for i, graph in enumerate(graphs):
            for label in self._labels(_as_graph(graph), names):
                rows.append(i)
                columns.append(label)
        shape = (len(graphs), max(len(names), 1))
        return scipy.sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)

    def _labels(self, graph: Graph, names: dict[Hashable, int]) -> list[int]:
        """The labels of all nodes in all rounds, as integers shared by all graphs."""
        now = [names.setdefault(("label", label), len(names)) for label in graph.labels]
        found, lists = list(now), graph.neighbours()
        for _ in range(int(self.rounds)):
            now = [
                names.setdefault((label, tuple(sorted(now[other] for other in near))), len(names))
                for label, near in zip(now, lists, strict=True)
            ]
            found += now
        return found


def _as_graph(graph: Any) -> Graph:
    if isinstance(graph, Graph):
        return graph
    if isinstance(graph, Mapping) and {"labels", "edges"} <= set(graph):
        return Graph(graph["labels"], graph["edges"])
    raise TypeError(f"Graph kernels compare hg.kernels.Graph objects; got {type(graph).__name__}.")
