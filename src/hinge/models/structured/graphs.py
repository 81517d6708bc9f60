"""Inference on graphs of labels: loopy belief propagation, with bounds on its error.

Model       p(y) = exp(Σ_i θ_i(y_i) + Σ_{ij ∈ E} θ_ij(y_i, y_j)) / Z,   y_i ∈ {0, …, k−1}
Messages    log M_{t→s}(b) = log Σ_a exp(θ_st(a, b)/ρ_st + h_t(a) − log M_{s→t}(a)),   h_t = θ_t + Σ_v ρ_vt log M_{v→t}
Beliefs     b_s ∝ exp(h_s);  the entropy of the beliefs is taken to be Σ_s H(b_s) − Σ_e ρ_e I_e(b)
Bethe       ρ = 1: exact on forests; elsewhere an estimate of log Z, from below if there are two labels and all pairs
            attract (Ruozzi 2012)
Upper       ρ_e the probability of edge e in a random spanning forest: log Z is at most the value at the fixed point
            (Wainwright, Jaakkola & Willsky 2005)
Lower       Σ ⟨θ, q⟩ + H(q) of independent labels q (mean field): at most log Z for every q
Uniqueness  the messages contract, to one fixed point from any start, if the spectral radius of the matrix of the
            edges' strengths over non-returning steps is below one (Mooij & Kappen 2007)
Best        a labelling bounds max_y score(y) from below, and for all messages λ
            Σ_i max(θ_i + Σ_e λ_ei) + Σ_e max(θ_ij − λ_ei − λ_ej) from above (the dual of the linear relaxation, lowered
            edge by edge: Globerson & Jaakkola 2007, MPLP)
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, xlogy

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True)
class GraphMarginals:
    """Marginals and log Z of a graph of labels, with bounds.

    Attributes
    ----------
    marginals : array of shape (n, k)
        The probability of every label at every node.
    pair_marginals : array of shape (edges, k, k)
        The probability of every pair of labels at the ends of every edge.
    log_partition : float
        Bethe's log Z; exact where ``exact`` is true.
    lower, upper : float
        log Z lies between these. The upper one is infinite if the messages it comes from did not converge.
    exact : bool
        Whether the graph is a forest.
    converged : bool
        Whether the messages reached a fixed point; if not, the marginals are those of the last messages.
    iterations : int
        Passes over the edges.
    contraction : float
        Below one: there is one fixed point, and the messages converge to it from any start.
    """

    marginals: Array
    pair_marginals: Array
    log_partition: float
    lower: float
    upper: float
    exact: bool
    converged: bool
    iterations: int
    contraction: float


@dataclass(frozen=True)
class GraphLabelling:
    """A labelling of a graph with an upper bound on the best score.

    Attributes
    ----------
    labels : array of n labels
        The label of every node.
    score : float
        The score of this labelling.
    upper : float
        No labelling has a higher score than this.
    gap : float
        upper − score: zero (but for rounding) means that no labelling is better.
    iterations : int
        Passes over the edges.
    """

    labels: Index
    score: float
    upper: float
    gap: float
    iterations: int


def graph_marginals(
    unary: ArrayLike,
    edges: ArrayLike,
    pairwise: ArrayLike,
    *,
    max_iter: int = 1000,
    tol: float = 1e-9,
    damping: float = 0.3,
) -> GraphMarginals:
    """Marginal probabilities and log Z of a graph of labels, by belief propagation.

    Parameters
    ----------
    unary : array of shape (n, k)
        θ_i(a), the score of label a at node i.
    edges : array of shape (m, 2)
        Pairs of nodes i ≠ j, each at most once.
    pairwise : array of shape (k, k) or (m, k, k)
        θ_ij(a, b) of label a at the first node of an edge and b at the second, the same for all edges or one for each.
    max_iter : int
        Rounds of messages over all edges.
    tol : float
        The largest change of a message that counts as none.
    damping : float
        The share of the old message that is kept, in [0, 1); forests need none and have none.

    Returns
    -------
    GraphMarginals

    Examples
    --------
    A cycle of three nodes that would like to be alike: Bethe's estimate and two bounds of log Z.

    >>> import numpy as np, hinge as hg
    >>> unary = np.array([[0.5, 0.0], [0.0, 0.0], [0.0, 0.0]])
    >>> found = hg.structured.graph_marginals(unary, [[0, 1], [1, 2], [2, 0]], 0.4 * np.eye(2))
    >>> found.converged, found.exact
    (True, False)
    >>> bool(found.lower <= found.log_partition <= found.upper)
    True
    """
    graph = _Graph(unary, edges, pairwise)
    if not 0 <= damping < 1:
        raise ValueError(f"damping must lie in [0, 1), got {damping!r}.")
    if max_iter < 1:
        raise ValueError(f"max_iter must be at least 1, got {max_iter!r}.")
    one = np.ones(graph.m)
    state = _propagate(graph, one, max_iter, tol, 0.0 if graph.forest else damping)
    value = _free_energy(graph, one, state)
    lower = upper = value
    if not graph.forest:
        weights = graph.edge_probabilities()
        reweighted = _propagate(graph, weights, max_iter, tol, max(damping, 0.3))
        upper = _free_energy(graph, weights, reweighted) if reweighted.converged else np.inf
        lower = _mean_field(graph, state.nodes)
        if graph.k == 2 and state.converged and graph.attractive():
            lower = max(lower, value)
    return GraphMarginals(
        state.nodes, state.pairs, value, lower, upper, graph.forest, state.converged, state.iterations,
        graph.contraction(),
    )  # fmt: skip


def graph_labelling(
    unary: ArrayLike, edges: ArrayLike, pairwise: ArrayLike, *, max_iter: int = 300, tol: float = 1e-9
) -> GraphLabelling:
    """The best labelling of a graph, or a good labelling with an upper bound on the best score.

    Exact on forests, by dynamic programming. On other graphs, coordinate descent over the edges decreases the dual of the
    linear relaxation; its value is an upper bound on every labelling's score, whether or not it has converged.

    Parameters
    ----------
    unary, edges, pairwise : arrays
        As for :func:`hinge.structured.graph_marginals`.
    max_iter : int
        Rounds over all edges.
    tol : float
        Stop when the gap, or the fall of the bound in a round, is at most this much of the score's size.

    Returns
    -------
    GraphLabelling

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> unary = np.array([[2.0, 0.0], [0.0, 0.5], [0.0, 0.1]])
    >>> found = hg.structured.graph_labelling(unary, [[0, 1], [1, 2], [2, 0]], np.eye(2))
    >>> found.labels.tolist(), round(found.score, 6), bool(found.gap < 1e-6)
    ([0, 0, 0], 5.0, True)
    """
    graph = _Graph(unary, edges, pairwise)
    if graph.forest:
        labels = _forest_labels(graph)
        score = graph.score(labels)
        return GraphLabelling(labels, score, score, 0.0, 1)
    inward = np.zeros((2, graph.m, graph.k))  # λ of every edge to its first and its second node
    best, upper, k = _improved(graph, np.argmax(graph.unary, axis=1)), np.inf, 0
    score = graph.score(best)
    while k < max_iter:
        k += 1
        before = upper
        upper = min(upper, _lower_dual(graph, inward))
        found = _improved(graph, np.argmax(_totals(graph, inward), axis=1))
        if graph.score(found) > score:
            best, score = found, graph.score(found)
        size = tol * max(abs(score), 1.0)
        if upper - score <= size or before - upper <= size:
            break
    return GraphLabelling(best, score, max(upper, score), max(upper - score, 0.0), k)


class _Graph:
    """Checked arrays of a pairwise model. Directed edge e goes from ``ends[e, 0]`` to ``ends[e, 1]``, edge m + e back."""

    def __init__(self, unary: ArrayLike, edges: ArrayLike, pairwise: ArrayLike) -> None:
        self.unary = np.array(unary, dtype=np.float64)
        if self.unary.ndim != 2 or 0 in self.unary.shape:
            raise ValueError(f"unary must have the shape (nodes, labels), got {self.unary.shape}.")
        self.n, self.k = self.unary.shape
        self.ends: Index = np.array(edges, dtype=np.intp).reshape(-1, 2)
        self.m = len(self.ends)
        if self.m and (self.ends.min() < 0 or self.ends.max() >= self.n):
            raise ValueError(f"edges must name nodes 0 to {self.n - 1}.")
        if np.any(self.ends[:, 0] == self.ends[:, 1]):
            raise ValueError("edges must join two different nodes.")
        if len(np.unique(np.sort(self.ends, axis=1), axis=0)) < self.m:
            raise ValueError("edges has a pair of nodes twice; add their pairwise scores and give it once.")
        scores = np.asarray(pairwise, dtype=np.float64)
        if scores.shape not in ((self.k, self.k), (self.m, self.k, self.k)):
            raise ValueError(
                f"pairwise must have the shape {(self.k, self.k)} or {(self.m, self.k, self.k)}, got {scores.shape}."
            )
        self.pairs: Array = np.broadcast_to(scores, (self.m, self.k, self.k))
        if not (np.isfinite(self.unary).all() and np.isfinite(self.pairs).all()):
            raise ValueError("unary and pairwise must be finite; write a forbidden label as a large negative number.")
        self.source = np.concatenate([self.ends[:, 0], self.ends[:, 1]])
        self.target = np.concatenate([self.ends[:, 1], self.ends[:, 0]])
        links = scipy.sparse.csr_array((np.ones(self.m), tuple(self.ends.T)), shape=(self.n, self.n))
        self.parts, self.part = scipy.sparse.csgraph.connected_components(links, directed=False)
        self.forest = self.m == self.n - self.parts

    def score(self, labels: Index) -> float:
        a, b = labels[self.ends[:, 0]], labels[self.ends[:, 1]]
        return float(self.unary[np.arange(self.n), labels].sum() + self.pairs[np.arange(self.m), a, b].sum())

    def directed(self) -> Array:
        """θ_st(a, b), a at the source, of every directed edge."""
        return np.concatenate([self.pairs, self.pairs.transpose(0, 2, 1)])

    def attractive(self) -> bool:
        """Whether there are two labels and every edge prefers equal ones."""
        p = self.pairs
        return bool(np.all(p[:, 0, 0] + p[:, 1, 1] >= p[:, 0, 1] + p[:, 1, 0]))

    def edge_probabilities(self) -> Array:
        """The probability of each edge in a uniform random spanning forest: its effective resistance (Kirchhoff)."""
        L = np.zeros((self.n, self.n))
        np.add.at(L, (self.source, self.target), -1.0)
        L[np.diag_indices(self.n)] = -L.sum(axis=1)
        G = np.linalg.pinv(L, hermitian=True)
        i, j = self.ends.T
        return np.clip(G[i, i] + G[j, j] - 2.0 * G[i, j], 1e-12, 1.0)

    def contraction(self) -> float:
        """The spectral radius of the strengths tanh(¼ max |θ(a,b) + θ(a',b') − θ(a',b) − θ(a,b')|) over steps s→t→v, v ≠ s."""
        if not self.m or self.forest:
            return 0.0
        p = self.pairs
        cross = p[:, :, None, :, None] + p[:, None, :, None, :] - p[:, None, :, :, None] - p[:, :, None, None, :]
        strength = np.tile(np.tanh(np.abs(cross).max(axis=(1, 2, 3, 4)) / 4.0), 2)
        follows = (self.target[:, None] == self.source[None, :]) & (self.source[:, None] != self.target[None, :])
        return float(np.max(np.abs(np.linalg.eigvals(follows * strength[None, :]))))


@dataclass(frozen=True)
class _State:
    nodes: Array
    pairs: Array
    converged: bool
    iterations: int


def _propagate(graph: _Graph, weights: Array, max_iter: int, tol: float, damping: float) -> _State:
    """Parallel message passing until convergence, and the beliefs; ``weights`` are the ρ of the edges."""
    rho, m = np.tile(weights, 2), graph.m
    scores = graph.directed() / rho[:, None, None]
    back = np.concatenate([np.arange(m, 2 * m), np.arange(m)])
    messages, converged, k = np.zeros((2 * m, graph.k)), m == 0, 0

    def gathered() -> Array:
        h = graph.unary.copy()
        np.add.at(h, graph.target, rho[:, None] * messages)
        return h

    while not converged and k < max_iter:
        k += 1
        h = gathered()[graph.source] - messages[back]
        new = logsumexp(scores + h[:, :, None], axis=1)
        new = (1.0 - damping) * (new - logsumexp(new, axis=1, keepdims=True)) + damping * messages
        converged = float(np.max(np.abs(new - messages))) <= tol * (1.0 - damping)
        messages = new
    h = gathered()
    nodes = np.exp(h - logsumexp(h, axis=1, keepdims=True))
    i, j = graph.ends.T
    joint = scores[:m] + (h[i] - messages[m:])[:, :, None] + (h[j] - messages[:m])[:, None, :]
    pairs = np.exp(joint - logsumexp(joint, axis=(1, 2), keepdims=True)) if m else np.zeros((0, graph.k, graph.k))
    return _State(nodes, pairs, converged, k)


def _free_energy(graph: _Graph, weights: Array, state: _State) -> float:
    """Σ ⟨θ, b⟩ + Σ_s H(b_s) − Σ_e ρ_e I_e(b)."""
    b, p = state.nodes, state.pairs
    energy = float(np.sum(graph.unary * b) + np.sum(graph.pairs * p))
    product = p.sum(axis=2, keepdims=True) * p.sum(axis=1, keepdims=True)
    information = np.sum(xlogy(p, p) - xlogy(p, np.where(product > 0, product, 1.0)), axis=(1, 2))
    return energy - float(np.sum(xlogy(b, b))) - float(weights @ information)


def _mean_field(graph: _Graph, start: Array, rounds: int = 50) -> float:
    """The largest bound Σ ⟨θ, q⟩ + H(q) found over independent labels, by coordinate ascent from the beliefs."""
    q, scores = start.copy(), graph.directed()
    arriving = [np.flatnonzero(graph.target == i) for i in range(graph.n)]

    def value() -> float:
        i, j = graph.ends.T
        pairs = np.einsum("ea,eab,eb->", q[i], graph.pairs, q[j])
        return float(np.sum(graph.unary * q) + pairs - np.sum(xlogy(q, q)))

    best = value()
    for _ in range(rounds):
        for i, e in enumerate(arriving):
            h = graph.unary[i] + np.einsum("ea,eab->b", q[graph.source[e]], scores[e])
            q[i] = np.exp(h - logsumexp(h))
        before, best = best, max(best, value())
        if best - before <= 1e-12 * max(abs(best), 1.0):
            break
    return best


def _forest_labels(graph: _Graph) -> Index:
    """Max-product from the leaves to the roots, then labels from the roots to the leaves."""
    neighbours: list[list[tuple[int, Array]]] = [[] for _ in range(graph.n)]
    for (i, j), scores in zip(graph.ends, graph.pairs):
        neighbours[i].append((int(j), scores))
        neighbours[j].append((int(i), scores.T))
    order: list[tuple[int, int, Any]] = []  # node, parent, scores with the parent first
    visited = np.zeros(graph.n, dtype=bool)
    for root in range(graph.n):
        waiting: deque[tuple[int, int, Any]] = deque() if visited[root] else deque([(root, -1, None)])
        while waiting:
            node, parent, scores = waiting.popleft()
            visited[node] = True
            order.append((node, parent, scores))
            waiting.extend((child, node, s) for child, s in neighbours[node] if child != parent)
    value, choice = graph.unary.copy(), np.zeros((graph.n, graph.k), dtype=np.intp)
    for node, parent, scores in reversed(order):
        if parent >= 0:
            reached = scores + value[node]
            choice[node] = np.argmax(reached, axis=1)
            value[parent] += np.max(reached, axis=1)
    labels = np.zeros(graph.n, dtype=np.intp)
    for node, parent, _ in order:
        labels[node] = np.argmax(value[node]) if parent < 0 else choice[node, labels[parent]]
    return labels


def _totals(graph: _Graph, inward: Array) -> Array:
    """θ_i + Σ_e λ_ei."""
    total = graph.unary.copy()
    for side in (0, 1):
        np.add.at(total, graph.ends[:, side], inward[side])
    return total


def _lower_dual(graph: _Graph, inward: Array) -> float:
    """One round of MPLP over all edges, in place; returns the bound after it."""
    total = _totals(graph, inward)
    for e, (i, j) in enumerate(graph.ends):
        here, there = total[i] - inward[0, e], total[j] - inward[1, e]
        joint = graph.pairs[e] + here[:, None] + there[None, :]
        inward[0, e] = 0.5 * joint.max(axis=1) - here
        inward[1, e] = 0.5 * joint.max(axis=0) - there
        total[i], total[j] = here + inward[0, e], there + inward[1, e]
    left = graph.pairs - inward[0][:, :, None] - inward[1][:, None, :]
    return float(total.max(axis=1).sum() + (left.max(axis=(1, 2)).sum() if graph.m else 0.0))


def _improved(graph: _Graph, labels: Index) -> Index:
    """Changes the labels of single nodes while that increases the score."""
    scores = graph.directed()
    arriving = [np.flatnonzero(graph.target == i) for i in range(graph.n)]
    changed = True
    while changed:
        changed = False
        for i, e in enumerate(arriving):
            h = graph.unary[i] + scores[e, labels[graph.source[e]]].sum(axis=0)
            new = int(np.argmax(h))
            if h[new] > h[labels[i]] + 1e-12 * (1.0 + abs(h[new])):
                labels[i], changed = new, True
    return labels
