"""Laws that every penalty obeys."""

from __future__ import annotations

import numpy as np
import pytest

import hinge as hg
import zoo
from hinge.problem.penalties import as_penalty

D = 6
every_penalty = pytest.mark.parametrize("penalty", zoo.penalties(D), ids=zoo.name)
convex_penalty = pytest.mark.parametrize("penalty", [p for p in zoo.penalties(D) if p.convex], ids=zoo.name)


def test_zoo_is_complete():
    public = {n for n in hg.__all__ if isinstance(getattr(hg, n), type) and issubclass(getattr(hg, n), hg.Penalty)}
    assert public - {"Penalty"} == {type(p).__name__ for p in zoo.penalties(D)}


@pytest.mark.mission("R5")
@pytest.mark.parametrize(
    ("penalty", "expected"),
    [
        (hg.NoPenalty(), 0.0),
        (hg.L2(2.0), 25.0),
        (hg.L1(2.0), 14.0),
        (hg.Elastic(2.0, 0.5), 7.0 + 12.5),
        (hg.L1(1.0, weights=[2.0, 0.5]), 8.0),
        (hg.MaxNorm(0.5), 2.0),
        (hg.GroupNorm(1.0, groups=[0, 0], weights=[1.0]), 5.0),
        (hg.L0(3.0), 6.0),
        (hg.Lq(1.0, 0.5), np.sqrt(3.0) + 2.0),
        (hg.L1Ball(7.0), 0.0),
        (hg.L1Ball(6.9), np.inf),
        (hg.L2Ball(5.0), 0.0),
        (hg.L2Ball(4.9), np.inf),
        (hg.Box(-4, 4), 0.0),
        (hg.Box(), np.inf),
    ],
    ids=zoo.name,
)
def test_value_by_hand(penalty, expected):
    assert penalty.value(np.array([3.0, -4.0])) == pytest.approx(expected)


@pytest.mark.mission("R5", "O4")
@every_penalty
def test_prox_is_the_minimiser(penalty, rng):
    """No random competitor, near or far, beats the prox; for convex penalties this is a proof in the limit."""
    for step in (0.3, 2.0):
        v = rng.normal(size=D)
        p = penalty.prox(v, step)

        def objective(w, v=v, step=step):
            return 0.5 * np.sum((w - v) ** 2) + step * penalty.value(w)

        best = objective(p)
        assert np.isfinite(best)
        for scale in (1e-4, 1e-2, 1.0):
            for _ in range(300):
                assert objective(p + scale * rng.normal(size=D) * (rng.random(D) < 0.5)) >= best - 1e-10
        for j in range(D):  # single coordinates on a fine grid, zero included
            for t in np.append(np.linspace(-3, 3, 301), 0.0):
                w = p.copy()
                w[j] = t
                assert objective(w) >= best - 1e-10


@convex_penalty
def test_prox_step_lies_in_the_subdifferential(penalty, rng):
    """(v − prox)/step ∈ ∂Ω(prox): the subgradient inequality against random points."""
    v, step = rng.normal(size=D), 0.7
    p = penalty.prox(v, step)
    g = (v - p) / step
    for _ in range(500):
        w = penalty.prox(rng.normal(size=D) * 2, 0.5)  # a point where Ω is finite
        assert penalty.value(w) >= penalty.value(p) + g @ (w - p) - 1e-9
    assert np.max(penalty.subdifferential_distance(p, -g)) <= 1e-9


@every_penalty
def test_subdifferential_distance_is_positive_elsewhere(penalty, rng):
    v = rng.normal(size=D) + 3.0
    p = penalty.prox(v, 0.5)
    distance = penalty.subdifferential_distance(p, -(v - p) / 0.5 + 0.05)
    assert np.all(distance >= 0)
    assert np.max(distance) > 0 or isinstance(penalty, hg.L1Ball | hg.L2Ball | hg.Box)


@pytest.mark.mission("O8")
@convex_penalty
def test_conjugate(penalty, rng):
    """Fenchel–Young with equality at subgradients, and finiteness after ``dual_scale``."""
    v = rng.normal(size=D)
    p = penalty.prox(v, 1.0)
    g = v - p
    # prox points satisfy g ∈ ∂Ω(p), so Ω(p) + Ω*(g) = ⟨p, g⟩.
    scale = penalty.dual_scale(g)
    if isinstance(penalty, hg.NoPenalty):
        assert np.allclose(g, 0)
        assert penalty.dual_scale(np.ones(D)) == 0.0
        return
    assert scale == pytest.approx(1.0)
    assert penalty.value(p) + penalty.conjugate(scale * g) == pytest.approx(p @ g, abs=1e-9)
    wild = rng.normal(size=D) * 10
    c = penalty.dual_scale(wild)
    if np.isfinite(penalty.conjugate(c * wild)):
        for _ in range(200):
            w = penalty.prox(rng.normal(size=D) * 2, 0.5)
            assert penalty.value(w) + penalty.conjugate(c * wild) >= c * (w @ wild) - 1e-9
    else:
        assert c == 0.0
    if 0.0 < c < 1.0:
        assert np.isinf(penalty.conjugate(1.01 * c * wild))


@convex_penalty
def test_convex_along_chords(penalty, rng):
    for _ in range(200):
        a, b = (penalty.prox(rng.normal(size=D) * 3, 0.2) for _ in range(2))
        t = rng.random()
        assert penalty.value(t * a + (1 - t) * b) <= t * penalty.value(a) + (1 - t) * penalty.value(b) + 1e-9


@pytest.mark.mission("R5")
def test_nonconvex_penalties_declare_it(rng):
    for penalty in (hg.Lq(0.3, 0.5), hg.L0(0.2)):
        assert not penalty.convex
        assert not penalty.has_conjugate
        e = np.eye(D)
        assert penalty.value(0.5 * (e[0] + e[1])) > 0.5 * (penalty.value(e[0]) + penalty.value(e[1])) - 1e-12


@every_penalty
def test_lambda_max_is_the_threshold(penalty, rng):
    """Zero is stationary at λ_max and not just below it."""
    g = rng.normal(size=D)
    top = penalty.lambda_max(g)
    if not np.isfinite(top) or top == 0.0 or not penalty.convex:
        return
    zero = np.zeros(D)
    assert np.max(penalty.with_strength(top * 1.000001).subdifferential_distance(zero, g)) <= 1e-12
    assert np.max(penalty.with_strength(top * 0.99).subdifferential_distance(zero, g)) > 0


def test_several_outputs(rng):
    """Penalties of matrices: per-feature weights act on rows, the group lasso on whole rows."""
    w = rng.normal(size=(D, 3))
    weights = np.arange(1.0, D + 1)
    assert hg.L1(2.0, weights=weights).value(w) == pytest.approx(2.0 * np.sum(weights[:, None] * np.abs(w)))
    assert hg.GroupNorm(2.0).value(w) == pytest.approx(2.0 * np.linalg.norm(w, axis=1).sum())
    assert hg.GroupNorm(1e3).prox(w, 1.0) == pytest.approx(np.zeros((D, 3)))


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: hg.L1(-1.0), "lam"),
        (lambda: hg.L2(np.nan), "lam"),
        (lambda: hg.Elastic(1.0, 1.5), "l1_ratio"),
        (lambda: hg.Box(1.0, 2.0), "zero"),
        (lambda: hg.L2Ball(-1.0), "radius"),
        (lambda: hg.Lq(1.0, 1.0), "q must"),
        (lambda: hg.L1(1.0, weights=[1.0]).value(np.zeros(2)), "weights"),
        (lambda: hg.GroupNorm(1.0, groups=[0]).value(np.zeros(2)), "groups"),
        (lambda: as_penalty("l1"), "value"),
    ],
)
def test_bad_parameters_are_named(make, word):
    with pytest.raises((ValueError, TypeError), match=word):
        make()


@convex_penalty
def test_conjugates_along_a_ray(penalty, rng):
    if not penalty.has_conjugate:
        return
    g = 0.3 * rng.normal(size=D)
    along = penalty.conjugate_along(g)
    for s in (0.0, 0.01, 0.5, 1.0):
        assert along(s) == pytest.approx(penalty.conjugate(s * g), rel=1e-14, abs=1e-300)


@pytest.mark.mission("R5")
def test_groups_count_by_the_root_of_their_size(rng):
    """Ω = λ Σ_G √|G| ‖w_G‖₂ by default; given factors replace √|G|, in the order of the sorted labels."""
    groups = np.array(["b", "a", "b", "c", "b", "a"])
    w = rng.normal(size=6)
    norms = {label: np.linalg.norm(w[groups == label]) for label in "abc"}
    plain = hg.GroupNorm(0.3, groups=groups)
    assert plain.value(w) == pytest.approx(0.3 * sum(np.sqrt(np.sum(groups == k)) * norms[k] for k in "abc"))
    given = hg.GroupNorm(0.3, groups=groups, weights=[0.5, 2.0, 3.0])
    assert given.value(w) == pytest.approx(0.3 * (0.5 * norms["a"] + 2.0 * norms["b"] + 3.0 * norms["c"]))
    for penalty, factors in ((plain, np.sqrt([2.0, 3.0, 1.0])), (given, np.array([0.5, 2.0, 3.0]))):
        shrunk = penalty.prox(w, 0.7)
        for label, factor in zip("abc", factors):
            rows = groups == label
            expected = w[rows] * max(0.0, 1 - 0.7 * 0.3 * factor / norms[label])
            assert shrunk[rows] == pytest.approx(expected)
        entries = [np.linalg.norm(w[groups == k]) / f for k, f in zip("abc", factors)]
        assert penalty.lambda_max(w) == pytest.approx(max(entries))
