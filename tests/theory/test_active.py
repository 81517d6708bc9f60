"""A — active learning: the next measurement, and labels saved."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

import hinge as hg
from hinge.select.active import informativeness
from hinge.select.design import largest_on_ball


def lifted(x, intercept=True):
    x = np.atleast_2d(x)
    return np.column_stack([np.ones(len(x)), x]) if intercept else x


def inverse(points, ridge, intercept=True):
    V = lifted(np.array(points), intercept)
    return np.linalg.inv(ridge * np.eye(V.shape[1]) + V.T @ V)


@pytest.mark.mission("A1")
@pytest.mark.parametrize("intercept", [True, False])
def test_the_criterion_is_the_fall_of_the_trace(intercept, rng):
    """v'AAv / (1 + v'Av) = tr A − tr A_after, recomputed from scratch for every candidate, at every step."""
    pool = rng.normal(size=(40, 3))
    design = hg.active.SequentialDesign(pool, ridge=0.1, intercept=intercept)
    for _ in range(12):
        falls = []
        for x in pool:
            after = inverse([*design.points_, x], 0.1, intercept)
            falls.append(design.trace_ - np.trace(after))
        np.testing.assert_allclose(design.criterion_at(pool), falls, rtol=1e-7, atol=1e-10)
        np.testing.assert_allclose(design._values(), falls, rtol=1e-7, atol=1e-10)
        left = np.setdiff1d(np.arange(len(pool)), design.indices_)
        best = left[np.argmax(np.array(falls)[left])]
        np.testing.assert_array_equal(design.ask(1)[0], pool[best])
        np.testing.assert_allclose(design.A_, inverse(design.points_, 0.1, intercept), rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(design.gains_[-1], max(np.array(falls)[left]), rtol=1e-7)


@pytest.mark.mission("A1")
def test_the_variance_criterion_is_the_variance_of_a_prediction(rng):
    """σ²v'Av is the spread of ⟨θ̂, v⟩ over repeated measurements, and the design measures where it is largest."""
    pool = rng.normal(size=(60, 2))
    design = hg.active.SequentialDesign(pool, criterion="variance", ridge=1e-9).add_index([0, 1, 2, 3, 4, 5])
    V = lifted(pool[:6])
    noise = rng.normal(size=(6, 200_000))
    spread = np.var(lifted(pool) @ (np.linalg.pinv(V) @ noise), axis=1)
    np.testing.assert_allclose(design.criterion_at(pool), spread, rtol=0.03)
    left = np.arange(6, 60)
    expected = left[np.argmax(design.criterion_at(pool)[left])]
    design.ask(1)
    assert design.indices_[-1] == expected


@pytest.mark.mission("A1")
@pytest.mark.parametrize("criterion", ["trace", "variance"])
def test_on_an_interval_the_ends_alternate(criterion):
    box = hg.active.SequentialDesign(hg.active.BoxDomain(-1.0, 1.0), criterion=criterion, ridge=1e-3)
    x = box.ask(10)[:, 0]
    assert set(x) == {-1.0, 1.0}
    assert np.all(x[1:] == -x[:-1])
    pool = hg.active.SequentialDesign(np.linspace(-1, 1, 41)[:, None], criterion=criterion, ridge=1e-3, replace=True)
    x = pool.ask(10)[:, 0]
    assert set(x) == {-1.0, 1.0}
    assert np.all(x[1:] == -x[:-1])


@pytest.mark.mission("A1")
@pytest.mark.parametrize("criterion", ["trace", "variance"])
def test_in_the_ball_the_best_point_is_the_top_eigenvector(criterion, rng):
    d, radius = 4, 1.7
    design = hg.active.SequentialDesign(
        hg.active.BallDomain(d, radius), criterion=criterion, intercept=False, ridge=0.3
    )
    design.add(rng.normal(size=(6, d)))
    directions = rng.normal(size=(20_000, d))
    directions *= radius * rng.random((20_000, 1)) ** 0.2 / np.linalg.norm(directions, axis=1, keepdims=True)
    for _ in range(6):
        values, vectors = np.linalg.eigh(design.A_)
        anything = design.criterion_at(directions).max()
        x = design.ask(1)[0]
        assert abs(x @ vectors[:, -1]) == pytest.approx(radius)
        expected = radius**2 * values[-1]
        if criterion == "trace":
            expected = expected * values[-1] / (1 + expected)
        assert design.gains_[-1] == pytest.approx(expected)
        assert design.gains_[-1] >= anything


@pytest.mark.mission("A1")
@pytest.mark.parametrize("criterion", ["trace", "variance"])
@pytest.mark.parametrize("region", ["ball", "box"])
def test_no_point_of_the_region_is_better_than_the_one_chosen(criterion, region, rng):
    d = 3
    domain = hg.active.BallDomain(d, 1.3) if region == "ball" else hg.active.BoxDomain(-np.ones(d), [1.0, 2.0, 0.5])
    design = hg.active.SequentialDesign(domain, criterion=criterion, ridge=0.05)
    X = rng.uniform(-1, 1, size=(40_000, d))
    if region == "ball":
        X = 1.3 * X[np.linalg.norm(X, axis=1) <= 1]
        X = np.vstack([X, 1.3 * X / np.linalg.norm(X, axis=1, keepdims=True)])
    else:
        X = np.where(X > 0, X * [1.0, 2.0, 0.5], X)
    for _ in range(12):
        best = design.criterion_at(X).max()
        x = design.ask(1)[0]
        assert design.gains_[-1] >= best * (1 - 1e-9)
        if region == "ball":
            assert np.linalg.norm(x) <= 1.3 * (1 + 1e-9)
        else:
            assert np.all(x >= -1)
            assert np.all(x <= [1.0, 2.0, 0.5])


def test_quadratics_on_a_ball_in_every_case(rng):
    """Definite, indefinite, the hard case, and a solution inside."""
    for case in range(60):
        d = 1 + case % 4
        Q = rng.normal(size=(d, d))
        Q = Q + Q.T
        if case % 3 == 0:
            Q = -Q @ Q.T  # may be largest inside
        g = rng.normal(size=d) * (case % 5 > 0)
        if case % 5 == 2:  # nothing along the top eigenvector
            top = np.linalg.eigh(Q)[1][:, -1]
            g -= (g @ top) * top
        x = largest_on_ball(Q, g, 1.5)
        assert np.linalg.norm(x) <= 1.5 * (1 + 1e-9)
        others = rng.normal(size=(20_000, d))
        others *= 1.5 * rng.random((20_000, 1)) ** (1 / d) / np.linalg.norm(others, axis=1, keepdims=True)
        edge = 1.5 * others / np.linalg.norm(others, axis=1, keepdims=True)
        others = np.vstack([others, edge])
        value = x @ Q @ x + 2 * g @ x
        assert value >= np.max(np.einsum("ij,jk,ik->i", others, Q, others) + 2 * others @ g) - 1e-8 * max(1, abs(value))


@pytest.mark.mission("A1")
def test_a_batch_is_the_same_as_one_by_one(rng):
    pool = rng.normal(size=(50, 3))
    for criterion in ("trace", "variance"):
        one = hg.active.SequentialDesign(pool, criterion=criterion)
        for _ in range(9):
            one.ask(1)
        batch = hg.active.SequentialDesign(pool, criterion=criterion)
        batch.ask(9)
        assert one.indices_ == batch.indices_
        assert len(set(batch.indices_)) == 9
    with pytest.raises(ValueError, match=r"41 candidates left; 42"):
        batch.ask(42)


def test_designs_refuse_what_they_cannot_do(rng):
    with pytest.raises(ValueError, match="criterion must be"):
        hg.active.SequentialDesign(hg.active.BallDomain(2), criterion="D")
    with pytest.raises(ValueError, match="ridge must be greater than 0"):
        hg.active.SequentialDesign(hg.active.BallDomain(2), ridge=0.0)
    with pytest.raises(ValueError, match="features need a pool"):
        hg.active.SequentialDesign(hg.active.BallDomain(2), features=np.square)
    with pytest.raises(ValueError, match="low < high"):
        hg.active.SequentialDesign(hg.active.BoxDomain(1.0, -1.0))
    with pytest.raises(ValueError, match="shape"):
        hg.active.SequentialDesign(np.zeros(3))


def labels_for(error, labels, target):
    """The first number of labels from which the error stays at or below the target."""
    good = np.flip(np.logical_and.accumulate(np.flip(error <= target)))
    return labels[np.argmax(good)] if good.any() else np.inf


@pytest.mark.mission("A1")
@pytest.mark.parametrize(
    ("name", "target", "random_labels"), [("medical_insurance", "charges", 80), ("bike_sharing_hour", "cnt", 120)]
)
def test_sequential_design_needs_fewer_labels_on_a_real_pool(name, target, random_labels, real_data):
    """What random choice reaches with so many labels, the A-optimal design reaches with two thirds of them or fewer."""
    pl = pytest.importorskip("polars")
    with gzip.open(real_data(f"{name}.csv.gz"), "rb") as f:
        table = pl.read_csv(f.read()).drop("casual", "registered", strict=False)
    rows = np.random.default_rng(0).permutation(len(table))
    half = min(len(table) // 2, 3000)
    pool, test = table[rows[:half]], table[rows[half:]]
    prep = hg.TablePrep(sparse=False).fit(pool.drop(target))
    X, X_test = prep.transform(pool.drop(target)), prep.transform(test.drop(target))
    y, y_test = pool[target].to_numpy(), test[target].to_numpy()
    labels = np.arange(30, random_labels + 1, 10)

    def errors(order):
        fits = [hg.Ridge(1.0).fit(X[order[:m]], y[order[:m]]) for m in labels]
        return np.array([np.mean((model.predict(X_test) - y_test) ** 2) for model in fits])

    design = hg.active.SequentialDesign(X, ridge=1.0)
    design.ask(int(labels[-1]))
    ours = errors(design.indices_)
    random = np.mean([errors(np.random.default_rng(k).permutation(half)) for k in range(20)], axis=0)
    enough = np.flip(np.logical_and.accumulate(np.flip(ours <= random[-1])))
    assert enough.any()
    assert labels[np.argmax(enough)] <= random_labels * 2 / 3
    assert np.mean(ours < random) >= 0.8


@pytest.mark.mission("A2")
def test_the_named_criteria():
    P = np.array([[0.5, 0.3, 0.2], [0.45, 0.45, 0.1], [1 / 3, 1 / 3, 1 / 3], [1.0, 0.0, 0.0]])

    class GivenProbabilities:
        classes_ = np.arange(3)

        def __init__(self, P):
            self.P = P

        def predict_proba(self, X):
            return self.P

        def predict(self, X):
            return self.classes_[self.P.argmax(axis=1)]

    np.testing.assert_allclose(informativeness(GivenProbabilities(P), P, "uncertainty"), [0.5, 0.55, 2 / 3, 0.0])
    np.testing.assert_allclose(informativeness(GivenProbabilities(P), P, "margin"), [-0.2, 0.0, 0.0, -1.0], atol=1e-15)
    entropy = informativeness(GivenProbabilities(P), P, "entropy")
    np.testing.assert_allclose(entropy[[2, 3]], [np.log(3), 0.0], atol=1e-12)
    other = np.roll(P, 1, axis=1)
    disagreement = informativeness([GivenProbabilities(P), GivenProbabilities(other)], P, "committee")
    np.testing.assert_allclose(disagreement, np.where(P.argmax(1) == other.argmax(1), 0.0, np.log(2)), atol=1e-15)
    assert hg.active.query(GivenProbabilities(P), P, "entropy", batch=2).tolist() == [2, 0]
    with pytest.raises(ValueError, match="list of fitted"):
        hg.active.query(GivenProbabilities(P), P, "committee")
    with pytest.raises(ValueError, match="strategy must be one of"):
        hg.active.query(GivenProbabilities(P), P, "best")
    svm = hg.SVC(kernel="linear").fit([[-1.0], [1.0]], [0, 1])
    assert hg.active.query(svm, [[-3.0], [0.2], [4.0]], "margin").tolist() == [1]
    with pytest.raises(ValueError, match="entropy needs probabilities"):
        hg.active.query(svm, [[0.0]], "entropy")
    assert hg.active.query(svm, [[0.0], [1.0], [9.0]], lambda model, X: np.abs(np.ravel(X)), batch=1).tolist() == [2]


@pytest.mark.mission("A2")
def test_active_learning_on_a_line_is_bisection():
    """A threshold among 1000 points: asking next to the border finds it in a few labels, random choice in hundreds."""
    x = np.sort(np.random.default_rng(0).uniform(-1, 1, size=1000))[:, None]
    y = (x[:, 0] > 0.137).astype(int)
    learner = hg.SVC(kernel="linear", C=1e6)
    curves = hg.active.active_curves(learner, x, y, x, y, strategies=["margin"], start=4, budget=20, repeats=3)
    assert curves.curves["margin"].mean[-1] > 0.998
    assert curves.curves["margin"].mean[-1] > curves.curves["random"].mean[-1]
    for chosen in curves.curves["margin"].chosen:
        assert len(set(chosen)) == len(chosen) == 20


@pytest.mark.mission("A2")
@pytest.mark.parametrize("strategy", ["uncertainty", "margin", "entropy", "committee"])
def test_labels_are_saved_on_real_digits(strategy, real_data):
    with gzip.open(real_data("optdigits.csv.gz"), "rt") as f:
        table = np.genfromtxt(f, delimiter=",", skip_header=1)
    kept = np.isin(table[:, -1], (3, 8, 9))
    X, y = table[kept, :-1] / 16, table[kept, -1].astype(int)
    half = len(y) // 2
    curves = hg.active.active_curves(
        hg.LogisticRegression(C=1.0, tol=1e-3), X[:half], y[:half], X[half:], y[half:],
        strategies=[strategy], start=20, batch=20, budget=140, repeats=8,
    )  # fmt: skip
    needed, saved = curves.labels_saved(strategy)
    assert saved[np.argmax(needed)] >= 0.2
    assert curves.curves[strategy].mean[-1] >= curves.curves["random"].mean[-1]


def test_curves_are_repeatable_and_drawn(rng):
    import matplotlib

    matplotlib.use("agg")
    X = rng.normal(size=(120, 3))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    options = {"strategies": ["margin", "committee"], "start": 5, "batch": 7, "budget": 40, "repeats": 2}
    one = hg.active.active_curves(hg.LogisticRegression(), X, y, X, y, **options)
    two = hg.active.active_curves(hg.LogisticRegression(), X, y, X, y, **options)
    for name in ("random", "margin", "committee"):
        np.testing.assert_array_equal(one.curves[name].scores, two.curves[name].scores)
        assert one.curves[name].labels[-1] == 40
    assert len(hg.plots.plot_labels(one).lines) == 3
    with pytest.raises(ValueError, match="start < budget"):
        hg.active.active_curves(hg.LogisticRegression(), X, y, X, y, budget=500)
    with pytest.raises(ValueError, match="only one class"):
        hg.active.active_curves(hg.LogisticRegression(), X, np.zeros(120), X, y)


@pytest.mark.mission("A1")
@pytest.mark.parametrize("kind", ["probabilities", "scores"])
def test_the_margin_of_several_classes_is_first_less_second(kind, rng):
    """Not first less third, nor the distance to the mean: rows are chosen where the two best classes are close."""
    table = rng.normal(size=(30, 4))
    if kind == "probabilities":
        table = np.exp(table) / np.exp(table).sum(axis=1, keepdims=True)

    class Scores:
        def decision_function(self, X):
            return table

    class Probabilities:
        def predict_proba(self, X):
            return table

    model = Scores() if kind == "scores" else Probabilities()
    expected = np.array([sorted(row)[-2] - sorted(row)[-1] for row in table])
    np.testing.assert_allclose(informativeness(model, table, "margin"), expected, atol=1e-15)
    assert hg.active.query(model, table, "margin", batch=3).tolist() == np.argsort(-expected)[:3].tolist()
