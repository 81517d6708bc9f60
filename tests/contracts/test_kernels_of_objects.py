"""Kernels of strings and graphs by counting, and what is known about Gram matrices."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest

import hinge as hg
from hinge.problem.kernels.check import Definiteness, _is_definite, check_psd, definiteness, refuse_indefinite
from hinge.problem.kernels.strings import Mismatch, Spectrum, code_letters, common_neighbours, windows

K = hg.kernels
pytestmark = pytest.mark.mission("K1")


# --- Strings --------------------------------------------------------------------------------------------------------

TEXTS = ["abba", "", "b", "abcabca", "aaaa", "cab"]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_words_are_counted(size):
    counts = [Counter(t[i : i + size] for i in range(len(t) - size + 1)) for t in TEXTS]
    expected = [[sum(a[w] * b[w] for w in a) for b in counts] for a in counts]
    kernel, texts = Spectrum(size), np.array(TEXTS, dtype=object)
    np.testing.assert_array_equal(kernel(texts), expected)
    np.testing.assert_array_equal(kernel(texts[:2], texts[2:]), np.array(expected)[:2, 2:])
    np.testing.assert_array_equal(kernel.diagonal(texts), np.diagonal(expected))
    phi = kernel.features(texts)
    np.testing.assert_array_equal((phi @ phi.T).toarray(), expected)


@pytest.mark.parametrize(("size", "mistakes"), [(1, 0), (2, 0), (2, 1), (3, 1), (3, 2)])
@pytest.mark.parametrize("alphabet", ["abc", "cabd"])
def test_words_with_mistakes_are_counted(size, mistakes, alphabet):
    def counts(text):
        found = Counter()
        for i in range(len(text) - size + 1):
            for word in product(alphabet, repeat=size):
                found[word] += sum(a != b for a, b in zip(word, text[i : i + size])) <= mistakes
        return found

    each = [counts(t) for t in TEXTS]
    expected = [[sum(a[w] * b[w] for w in a) for b in each] for a in each]
    kernel, texts = Mismatch(size, mistakes, alphabet), np.array(TEXTS, dtype=object)
    np.testing.assert_allclose(kernel(texts), expected)
    np.testing.assert_allclose(kernel(texts[:2], texts[2:]), np.array(expected)[:2, 2:])
    np.testing.assert_allclose(kernel.diagonal(texts), np.diagonal(expected))
    phi = kernel.features(texts)
    np.testing.assert_allclose((phi @ phi.T).toarray(), expected)
    assert kernel(np.array(["", ""], dtype=object)) == pytest.approx(np.zeros((2, 2)))
    for wrong in ("abe", "é", "ab!"):
        with pytest.raises(ValueError, match="not in alphabet"):
            kernel(np.array([wrong], dtype=object))


def test_common_neighbours_of_two_words():
    for base, size, mistakes in ((1, 2, 1), (2, 3, 1), (3, 3, 2), (4, 2, 0)):
        terms = common_neighbours(base, size, mistakes)
        for agree in range(size + 1):
            if base == 1 and agree < size:
                continue
            one, two = (0,) * size, (0,) * agree + (1,) * (size - agree)
            near = sum(
                all(sum(a != b for a, b in zip(word, w)) <= mistakes for w in (one, two))
                for word in product(range(base), repeat=size)
            )
            assert sum(a * math.comb(agree, k) for k, a in enumerate(terms)) == near


def test_letters_are_code_points_and_words_are_numbers():
    letters, starts, base = code_letters(["ab", "", "ß€"])
    assert list(letters) == [97, 98, 223, 8364]
    assert list(starts) == [0, 2, 2, 4]
    assert base == 8365
    assert code_letters(["", ""])[2] == 1
    rows, words = windows(np.array([1, 0, 2, 1]), np.array([0, 3, 4]), 3, 2)
    assert (list(rows), list(words)) == ([0, 0], [3, 2])
    for text in ([], [1], [1, 2]):
        rows, words = windows(np.array(text, dtype=np.int64), np.array([0, len(text)]), 3, 3)
        assert (len(rows), len(words)) == (0, 0)
    wide = windows(np.array([5, 9, 5, 9, 7]), np.array([0, 5]), 2**40, 2)  # recoded: the letters are 5, 7, 9
    assert list(wide[1]) == [2, 6, 2, 7]
    last = windows(np.array([1, 0]), np.array([0, 2]), 2**31, 2)  # 2⁶² words can be numbered
    assert list(last[1]) == [2**31]
    with pytest.raises(ValueError, match="too many"):
        windows(np.arange(4), np.array([0, 4]), 2**40, 32)


# --- Graphs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_labels_of_neighbourhoods_are_counted(rounds):
    graphs = [
        K.Graph(["a", "b", "a"], [(0, 1), (1, 2)]), K.Graph(["a", "b"], [(0, 1)]), K.Graph(["c"], []),
        K.Graph(["a", "a", "b", "b"], [(0, 1), (1, 2), (2, 3), (3, 0)]),
    ]  # fmt: skip

    def counts(graph):
        now, found = list(graph.labels), Counter(("label", x) for x in graph.labels)
        for r in range(rounds):
            near = [sorted(map(repr, (now[b] for b in others))) for others in graph.neighbours()]
            now = [(label, tuple(others)) for label, others in zip(now, near)]
            found.update((r, x) for x in now)
        return found

    each = [counts(g) for g in graphs]
    expected = np.array([[sum(a[k] * b[k] for k in a) for b in each] for a in each])
    held, kernel = np.empty(4, dtype=object), K.WeisfeilerLehman(rounds)
    held[:] = graphs
    np.testing.assert_array_equal(kernel(held), expected)
    np.testing.assert_array_equal(kernel(held[:1], held[1:]), expected[:1, 1:])
    np.testing.assert_array_equal(kernel.diagonal(held), np.diagonal(expected))
    phi = kernel.features(held)
    np.testing.assert_array_equal((phi @ phi.T).toarray(), expected)


# --- Checks ---------------------------------------------------------------------------------------------------------


def gram(low, n=6, seed=0):
    """A symmetric matrix with eigenvalues from low to 1."""
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]
    return Q @ np.diag(np.linspace(low, 1.0, n)) @ Q.T


def test_matrices_that_are_gram_matrices():
    for low in (0.5, 0.0, -0.9e-8):
        assert check_psd(gram(low)) == pytest.approx(gram(low))
    with pytest.raises(ValueError, match="not positive semidefinite"):
        check_psd(gram(-1.1e-8))
    check_psd(gram(-1.1e-8), tol=2e-8)
    one = np.eye(3)
    one[0, 1] = 0.9e-8
    check_psd(one)
    one[0, 1] = 1.1e-8
    with pytest.raises(ValueError, match=r"entry \(0, 1\)"):
        check_psd(one)
    check_psd(1e9 * np.eye(2) + [[0.0, 1.0], [0.0, 0.0]])
    assert check_psd(np.zeros((0, 0))).shape == (0, 0)
    check_psd(np.zeros((2, 2)))
    for wrong, message in (
        (np.ones(3), "square"),
        (np.ones((2, 3)), "square"),
        (np.full((2, 2), np.nan), "not finite"),
    ):
        with pytest.raises(ValueError, match=message):
            check_psd(wrong)
    X = np.random.default_rng(1).normal(size=(5, 2))
    assert check_psd(K.RBF(), X) == pytest.approx(K.RBF()(X))
    with pytest.raises(ValueError, match="Sigmoid"):
        check_psd(K.Sigmoid(1.0, -3.0), X)


def test_what_is_known_about_a_kernel(monkeypatch):
    """Declared, or a factorisation of K + δI, δ = 10⁻⁹ trace K; part of the points can only refute."""
    from hinge.problem.kernels import check

    assert definiteness(K.RBF(), None) is Definiteness.PROVEN
    pre = K.Precomputed()
    trace = np.trace(gram(0.0))
    for low, known in (
        (0.1, "PROVEN"),
        (-0.5e-9 * trace, "PROVEN"),
        (-2e-9 * trace, "INDEFINITE"),
        (-0.1, "INDEFINITE"),
    ):
        assert definiteness(pre, gram(low)).name == known
        assert definiteness(K.Sigmoid(), None, gram(low)).name == known
    single = gram(-1e-8 * trace).astype(np.float32)
    assert definiteness(pre, single).name == "PROVEN"
    assert definiteness(pre, single.astype(float)).name == "INDEFINITE"
    assert definiteness(pre, np.full((2, 2), np.nan)).name == "UNKNOWN"
    skew = gram(0.5)
    skew[0, 1] += 1e-3
    with pytest.raises(ValueError, match="not symmetric"):
        definiteness(pre, skew)
    skew[0, 1] -= 1e-3 - 1e-6 * np.abs(skew).max()
    assert definiteness(pre, skew).name == "PROVEN"
    monkeypatch.setattr(check, "CHECK_ROWS", 3)
    assert definiteness(pre, gram(0.1)).name == "UNKNOWN"
    assert definiteness(pre, gram(0.1, n=3)).name == "PROVEN"
    wrong = np.eye(7)
    wrong[3, 3] = -1.0  # rows 0, 3 and 6 are looked at
    assert definiteness(pre, wrong).name == "INDEFINITE"
    assert _is_definite(np.zeros((2, 2)), 1e-9)
    assert not _is_definite(np.array([[0.0, 1.0], [1.0, 0.0]]), 1e-9)
    assert not _is_definite(np.array([[-1.0]]), 1e-9)
    X = np.random.default_rng(1).normal(size=(3, 2))
    refuse_indefinite(K.RBF(), X)
    with pytest.raises(ValueError, match="Gaussian process"):
        refuse_indefinite(K.Sigmoid(1.0, -3.0), X)
