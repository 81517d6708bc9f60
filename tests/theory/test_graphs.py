"""S6: belief propagation on graphs of labels against the sum and the maximum over all labellings."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp

import hinge as hg

GRAPHS = {
    "alone": (3, []),
    "chain": (6, [(0, 1), (2, 1), (2, 3), (3, 4), (5, 4)]),
    "star": (6, [(0, j) for j in range(1, 6)]),
    "two trees": (7, [(0, 1), (1, 2), (3, 4), (4, 5), (4, 6)]),
    "cycle": (5, [(i, (i + 1) % 5) for i in range(5)]),
    "grid": (6, [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)]),
    "complete": (5, list(itertools.combinations(range(5), 2))),
    "cycle and tree": (7, [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5)]),
}
FORESTS = ("alone", "chain", "star", "two trees")
LOOPY = tuple(name for name in GRAPHS if name not in FORESTS)


def model(rng, name, k, strength=1.0, shared=False):
    n, edges = GRAPHS[name]
    pairs = strength * rng.normal(size=(k, k) if shared else (len(edges), k, k))
    return rng.normal(size=(n, k)), np.array(edges, dtype=int).reshape(-1, 2), pairs


def brute(unary, edges, pairs):
    """Scores of all labellings, and the labellings."""
    n, k = unary.shape
    every = np.array(list(itertools.product(range(k), repeat=n)))
    pairs = np.broadcast_to(pairs, (len(edges), k, k))
    scores = unary[np.arange(n), every].sum(axis=1)
    for (i, j), p in zip(edges, pairs):
        scores = scores + p[every[:, i], every[:, j]]
    return scores, every


def true_marginals(scores, every, k):
    p = np.exp(scores - logsumexp(scores))
    return np.stack([[p[every[:, i] == a].sum() for a in range(k)] for i in range(every.shape[1])])


@pytest.mark.mission("S6")
@pytest.mark.parametrize("name", FORESTS)
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("shared", [False, True])
def test_forests_are_exact(name, k, shared, rng):
    unary, edges, pairs = model(rng, name, k, 2.0, shared)
    scores, every = brute(unary, edges, pairs)
    found = hg.structured.graph_marginals(unary, edges, pairs)
    assert found.exact
    assert found.converged
    assert found.iterations <= len(unary) + 1  # messages cross the tree once
    assert found.log_partition == found.lower == found.upper == pytest.approx(logsumexp(scores))
    np.testing.assert_allclose(found.marginals, true_marginals(scores, every, k), atol=1e-9)
    p = np.exp(scores - logsumexp(scores))
    for (i, j), joint in zip(edges, found.pair_marginals):
        truth = [[p[(every[:, i] == a) & (every[:, j] == b)].sum() for b in range(k)] for a in range(k)]
        np.testing.assert_allclose(joint, truth, atol=1e-9)
    best = hg.structured.graph_labelling(unary, edges, pairs)
    assert best.labels.tolist() == every[scores.argmax()].tolist()
    assert best.score == best.upper == pytest.approx(scores.max())
    assert best.gap == 0.0


@pytest.mark.mission("S6")
@pytest.mark.parametrize("name", LOOPY)
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("strength", [0.1, 0.7, 3.0])
def test_the_bounds_hold_on_graphs_with_cycles(name, k, strength, rng):
    """lower ≤ log Z ≤ upper; score ≤ the best score ≤ upper; the bounds meet as the pairs grow weak."""
    unary, edges, pairs = model(rng, name, k, strength)
    scores, every = brute(unary, edges, pairs)
    truth = logsumexp(scores)
    found = hg.structured.graph_marginals(unary, edges, pairs)
    assert not found.exact
    assert found.lower <= truth + 1e-9
    assert found.upper >= truth - 1e-7
    np.testing.assert_allclose(found.marginals.sum(axis=1), 1.0)
    if strength == 0.1:
        assert found.converged
        assert found.upper - found.lower <= 0.1 * len(edges) * strength
        np.testing.assert_allclose(found.marginals, true_marginals(scores, every, k), atol=0.02)
    best = hg.structured.graph_labelling(unary, edges, pairs)
    assert best.score == pytest.approx(scores[(every == best.labels).all(axis=1)][0])
    assert best.score <= scores.max() + 1e-9 <= best.upper + 2e-9
    assert best.gap == pytest.approx(best.upper - best.score)


@pytest.mark.mission("S6")
@pytest.mark.parametrize("name", LOOPY)
@pytest.mark.parametrize("strength", [0.2, 1.0, 2.5])
def test_where_two_labels_attract_bethe_is_a_lower_bound(name, strength, rng):
    n, edges = GRAPHS[name]
    unary = rng.normal(size=(n, 2))
    pairs = strength * rng.random(len(edges))[:, None, None] * np.eye(2)
    scores, _ = brute(unary, edges, pairs)
    found = hg.structured.graph_marginals(unary, edges, pairs, max_iter=5000)
    if found.converged:
        assert found.log_partition <= logsumexp(scores) + 1e-9
        assert found.lower >= found.log_partition
    best = hg.structured.graph_labelling(unary, edges, pairs, max_iter=2000)
    assert best.upper >= scores.max() - 1e-9


@pytest.mark.mission("S6")
@pytest.mark.parametrize("name", LOOPY)
@pytest.mark.parametrize("k", [2, 3])
def test_weak_pairs_contract_and_converge(name, k, rng):
    """Mooij & Kappen: a spectral radius below one means convergence; scaled to 0.9 it is seen, without damping too."""
    unary, edges, pairs = model(rng, name, k)
    scale = 1.0
    while hg.structured.graph_marginals(unary, edges, scale * pairs, max_iter=1).contraction > 0.9:
        scale *= 0.8
    found = [hg.structured.graph_marginals(unary, edges, scale * pairs, damping=d, max_iter=5000) for d in (0.0, 0.5)]
    assert found[0].converged
    assert found[1].converged
    np.testing.assert_allclose(found[0].marginals, found[1].marginals, atol=1e-6)


@pytest.mark.mission("S6")
def test_the_contraction_of_a_cycle_is_the_mean_strength():
    """Two labels with θ = J y y', y = ±1, round a cycle: every edge has the strength tanh |J|, and so has the cycle."""
    _, edges = GRAPHS["cycle"]
    spins = np.array([1.0, -1.0])
    found = hg.structured.graph_marginals(np.zeros((5, 2)), edges, 0.6 * np.outer(spins, spins))
    assert found.contraction == pytest.approx(np.tanh(0.6))
    np.testing.assert_allclose(found.marginals, 0.5, atol=1e-9)
    assert hg.structured.graph_marginals(np.zeros((6, 2)), GRAPHS["chain"][1], np.eye(2)).contraction == 0.0


@pytest.mark.mission("S6")
def test_a_frustrated_cycle_has_a_gap_that_is_known():
    """Three nodes that want to differ with two labels: the relaxation reaches 3, a labelling 2, and the gap shows it."""
    found = hg.structured.graph_labelling(np.zeros((3, 2)), [[0, 1], [1, 2], [2, 0]], 1.0 - np.eye(2))
    assert found.score == 2.0
    assert found.upper == pytest.approx(3.0)
    assert found.gap == pytest.approx(1.0)


@pytest.mark.mission("S6")
def test_the_chain_is_that_of_the_chain_model(rng):
    """The same numbers as the forward–backward pass of a fitted ChainCRF."""
    X = [[["a"], ["b"], ["a", "c"], ["c"]], [["b"], ["c"], ["a"]]]
    y = [["x", "y", "x", "z"], ["y", "z", "x"]]
    crf = hg.ChainCRF(alpha=0.1).fit(X, y)
    tokens = X[0]
    names = crf.attributes_
    unary = np.array([sum(crf.coef_.toarray()[names.index(a)] for a in token) for token in tokens])
    found = hg.structured.graph_marginals(unary, [[0, 1], [1, 2], [2, 3]], crf.transitions_)
    labels = hg.structured.graph_labelling(unary, [[0, 1], [1, 2], [2, 3]], crf.transitions_).labels
    assert crf.classes_[labels].tolist() == crf.predict(X[:1])[0]
    np.testing.assert_allclose(found.marginals, crf.predict_marginals(X[:1])[0], atol=1e-8)


@pytest.mark.parametrize(
    ("unary", "edges", "pairs", "match"),
    [
        (np.zeros(3), [[0, 1]], np.eye(2), "shape"),
        (np.zeros((3, 2)), [[0, 3]], np.eye(2), "nodes 0 to 2"),
        (np.zeros((3, 2)), [[1, 1]], np.eye(2), "different nodes"),
        (np.zeros((3, 2)), [[0, 1], [1, 0]], np.eye(2), "twice"),
        (np.zeros((3, 2)), [[0, 1]], np.eye(3), "pairwise must have the shape"),
        (np.full((3, 2), np.nan), [[0, 1]], np.eye(2), "finite"),
    ],
)
def test_bad_graphs_are_refused(unary, edges, pairs, match):
    for function in (hg.structured.graph_marginals, hg.structured.graph_labelling):
        with pytest.raises(ValueError, match=match):
            function(unary, edges, pairs)
