"""Histogram boosting: what it takes in, what it honours, and that threads do not matter."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone

import hinge as hg
from hinge.models.trees.inputs import Binned, Coder


def make(rng, n=600, d=5):
    X = rng.normal(size=(n, d))
    return X, X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + 0.1 * rng.normal(size=n)


@pytest.fixture
def threads():
    yield hg.set_num_threads
    hg.set_num_threads(None)


@pytest.mark.mission("T8")
@pytest.mark.parametrize("n", [3000, 40_000])
def test_same_bits_for_any_number_of_threads(n, rng, threads):
    X, y = make(rng, n, 20)
    labels = np.digitize(y, [-0.5, 0.5])
    found = []
    for count in (1, 2, 3, 7, 16):
        threads(count)
        a = hg.HistGradientBoostingRegressor(max_iter=5, random_state=0, subsample=0.8, early_stopping=False).fit(X, y)
        b = hg.HistGradientBoostingClassifier(max_iter=3, random_state=0, early_stopping=False).fit(X, labels)
        found.append((a.predict(X), b.predict_proba(X)))
    for other in found[1:]:
        np.testing.assert_array_equal(found[0][0], other[0])
        np.testing.assert_array_equal(found[0][1], other[1])


@pytest.mark.mission("T8")
@pytest.mark.parametrize("n", [20_000, 40_000])  # a root of narrow cells, and one of wide cells
@pytest.mark.parametrize("classes", [3, 7])
def test_roots_counted_together_are_those_counted_alone(n, classes, rng):
    X, y = make(rng, n, 20)
    X[rng.random(n) < 0.1, 3] = np.nan
    labels = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    found = []
    for share in (1.0, 1 - 1e-12):  # a sample that is all rows
        model = hg.HistGradientBoostingClassifier(max_iter=3, subsample=share, early_stopping=False).fit(X, labels)
        found.append(model.decision_function(X))
    np.testing.assert_array_equal(*found)


@pytest.mark.mission("T8")
def test_rounded_gradients_are_as_good_as_exact_ones(rng):
    """Rounding changes the held-out loss no more than other rows would: the spread is that of fits without a tenth."""
    X, y = make(rng, 60_000, 6)
    labels = y > 0
    test = slice(40_000, None)

    def loss(rows, quantize):
        model = hg.HistGradientBoostingClassifier(max_iter=40, quantize=quantize, random_state=0, early_stopping=False)
        p = model.fit(X[rows], labels[rows]).predict_proba(X[test])[np.arange(20_000), labels[test].astype(int)]
        return -np.mean(np.log(p))

    parts = np.array_split(rng.permutation(40_000), 12)
    exact = [loss(np.setdiff1d(np.arange(40_000), part), False) for part in parts]
    assert abs(loss(np.arange(40_000), True) - np.mean(exact)) <= 6 * np.std(exact, ddof=1)


@pytest.mark.mission("T8")
@pytest.mark.parametrize("n", [2000, 20_000])
def test_columns_that_never_meet_share_bytes_and_change_nothing(n, rng):
    levels, other = rng.integers(8, size=n), rng.integers(7, size=n)
    side = rng.integers(3, size=n)
    sparse = rng.integers(1, 13, size=n)
    X = np.column_stack(
        [levels[:, None] == np.arange(8), other[:, None] == np.arange(7), np.where(side == 1, sparse, 0),
         np.where(side == 2, sparse, 0), rng.normal(size=n)]
    ).astype(float)  # fmt: skip
    y = np.sin(levels) + (other == 3) * sparse + (side == 2) * np.sqrt(sparse) + X[:, -1] + 0.1 * rng.normal(size=n)
    # Shifted so that zero is a rare value, the same columns are kept apart: same order, so the same trees.
    shift = np.array([1.0] * 15 + [7.0, 7.0, 0.0])
    together, apart = (Binned(Z, Coder([]), None).native.slots for Z in (X, X - shift))
    assert (together, apart) == (4, 18)
    options = {"max_iter": 20, "random_state": 0, "early_stopping": False}
    for make_model, target in (
        (hg.HistGradientBoostingRegressor, y),
        (hg.HistGradientBoostingClassifier, y > y.mean()),
    ):
        a, b = (make_model(**options).fit(Z, target) for Z in (X, X - shift))
        np.testing.assert_array_equal(a.predict(X), b.predict(X - shift))


@pytest.mark.mission("T8")
def test_rare_classes_do_not_overshoot(rng):
    X = rng.normal(size=(4000, 3))
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=4000), [-3.0, 0.0, 2.9])
    assert np.bincount(y).min() < 20
    model = hg.HistGradientBoostingClassifier(learning_rate=0.3, max_iter=30, early_stopping=False).fit(X, y)
    losses = [-np.log(p[np.arange(4000), y]).mean() for p in model.staged_predict_proba(X)]
    assert all(np.diff(losses) < 0)  # Newton steps of 1/p raise it from the second round on


@pytest.mark.mission("T8")
@pytest.mark.parametrize("loss", ["squared_error", "poisson", hg.Absolute(), hg.Huber(0.5), hg.LogCosh()], ids=str)
def test_whole_number_weights_are_repetitions(loss, rng):
    X, y = make(rng, 200)
    y = np.abs(y) + 0.1
    w = rng.integers(0, 4, size=200)
    options = {"max_iter": 10, "min_samples_leaf": 7}
    a = hg.HistGradientBoostingRegressor(loss, **options).fit(X, y, sample_weight=w)
    b = hg.HistGradientBoostingRegressor(loss, **options).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(a.predict(X), b.predict(X), rtol=1e-9)


@pytest.mark.mission("T8")
def test_missing_values_carry_information(rng):
    X = rng.normal(size=(2000, 3))
    gone = rng.random(2000) < 0.3
    y = np.where(gone, 2.0, X[:, 0])
    X[gone, 0] = np.nan
    model = hg.HistGradientBoostingRegressor(max_iter=100).fit(X, y)
    assert model.score(X, y) > 0.99
    assert model.predict([[np.nan, 0.0, 0.0]])[0] == pytest.approx(2.0, abs=0.1)


@pytest.mark.mission("T8")
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_categories_are_read_from_dataframes(library, rng):
    frames = pytest.importorskip(library)
    names = np.array([f"c{k:02d}" for k in range(30)])
    effect = rng.normal(size=30)
    codes = rng.integers(0, 30, size=3000)
    columns = {"x": rng.normal(size=3000), "c": names[codes]}
    frame = frames.DataFrame(columns)
    frame = (
        frame.assign(c=frame["c"].astype("category"))
        if library == "pandas"
        else frame.with_columns(frame["c"].cast(frames.Categorical))
    )
    y = effect[codes] + columns["x"]
    model = hg.HistGradientBoostingRegressor(max_iter=100).fit(frame, y)
    assert model.score(frame, y) > 0.97
    tree = hg.DecisionTreeRegressor(max_leaf_nodes=40).fit(frame, y)
    assert tree.score(frame, y) > 0.7
    assert "c in {" in tree.rules()
    unknown = frames.DataFrame({"x": [0.0], "c": ["never seen"]})
    assert np.isfinite(model.predict(unknown)).all()


@pytest.mark.mission("T8")
def test_more_categories_than_bins(rng):
    codes = rng.integers(0, 1000, size=5000)
    y = (codes % 2).astype(float)
    y[codes > 300] = 0.5
    model = hg.HistGradientBoostingRegressor(categorical_features=[0], max_iter=20, min_samples_leaf=1)
    assert np.isfinite(model.fit(codes[:, None].astype(float), y).predict([[5.0], [999.0], [-1.0]])).all()


@pytest.mark.mission("T8")
@pytest.mark.parametrize("sign", [1, -1])
def test_monotone_constraints_hold_everywhere(sign, rng):
    X = rng.uniform(-2, 2, size=(1500, 3))
    y = sign * X[:, 0] + np.sin(4 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=1500)
    grid = np.linspace(-2, 2, 200)
    models = [
        hg.HistGradientBoostingRegressor(monotonic_cst=[sign, 0, 0], max_iter=60).fit(X, y),
        hg.DecisionTreeRegressor(monotonic_cst=[sign, 0, 0], max_depth=8).fit(X, y),
        hg.RandomForestRegressor(10, monotonic_cst=[sign, 0, 0], max_depth=8, random_state=0).fit(X, y),
    ]
    for model in models:
        for rest in rng.uniform(-2, 2, size=(20, 2)):
            line = np.column_stack([grid, np.tile(rest, (200, 1))])
            assert np.all(sign * np.diff(model.predict(line)) >= -1e-10)
        assert model.score(X, y) > 0.5


@pytest.mark.mission("T8")
def test_interaction_constraints_hold_on_every_path(rng):
    X, y = make(rng, 2000)
    model = hg.HistGradientBoostingRegressor(interaction_cst=[[0, 1], [2]], max_iter=20).fit(X, y)
    trees = model.trees_
    for t in range(len(trees)):
        begin = int(trees.start[t])
        used = {0: frozenset()}
        for node, _ in trees.walk(t):
            f = int(trees.feature[begin + node])
            if f < 0:
                assert used[node] <= {0, 1} or len(used[node]) <= 1
                continue
            left = int(trees.left[begin + node])
            used[left] = used[left + 1] = used[node] | {f}


@pytest.mark.mission("T8")
def test_quantile_predictions_cover_their_share(rng):
    X = rng.uniform(size=(4000, 1))
    y = X[:, 0] + (0.2 + X[:, 0]) * rng.normal(size=4000)
    for level in (0.1, 0.9):
        model = hg.HistGradientBoostingRegressor("quantile", quantile=level, max_iter=100, max_leaf_nodes=8).fit(X, y)
        assert np.mean(y <= model.predict(X)) == pytest.approx(level, abs=0.02)


@pytest.mark.mission("T8")
@pytest.mark.parametrize("loss", [hg.Poisson(), hg.Gamma(), hg.Tweedie(1.5)], ids=repr)
def test_likelihoods_satisfy_their_score_equation(loss, rng):
    X = rng.normal(size=(3000, 3))
    mean = np.exp(0.5 * X[:, 0])
    y = rng.gamma(2.0, mean / 2.0) if isinstance(loss, hg.Gamma) else rng.poisson(mean).astype(float)
    model = hg.HistGradientBoostingRegressor(loss, max_iter=50, max_leaf_nodes=4).fit(X, y)
    # The start is the best constant and every leaf is a Newton step, so the slopes keep adding up to nearly zero.
    assert abs(np.mean(loss.gradient(y, np.log(model.predict(X))))) < 0.01
    assert np.corrcoef(model.predict(X), mean)[0, 1] > 0.85


class Cubic:
    """A loss that is not registered."""

    convex = True

    def value(self, y, s):
        return np.abs(s - y) ** 3

    def gradient(self, y, s):
        return 3 * np.sign(s - y) * (s - y) ** 2

    def hessian(self, y, s):
        return 6 * np.abs(s - y) + 1e-6


@pytest.mark.mission("T8")
def test_a_users_loss_is_boosted(rng):
    X, y = make(rng)
    assert hg.HistGradientBoostingRegressor(Cubic(), max_iter=200).fit(X, y).score(X, y) > 0.9

    class Broken(Cubic):
        def gradient(self, y, s):
            raise RuntimeError("my loss fails")

    with pytest.raises(RuntimeError, match="my loss fails"):
        hg.HistGradientBoostingRegressor(Broken()).fit(X, y)


@pytest.mark.mission("T8")
def test_early_stopping_stops_and_staged_predictions_agree(rng):
    X, y = make(rng, 1500)
    y = y + rng.normal(size=1500)
    model = hg.HistGradientBoostingRegressor(max_iter=500, early_stopping=True, learning_rate=0.3, random_state=0)
    model.fit(X, y)
    assert model.n_iter_ < 200
    assert len(model.validation_score_) == model.n_iter_
    staged = list(model.staged_predict(X))
    assert len(staged) == model.n_iter_
    np.testing.assert_allclose(staged[-1], model.predict(X), rtol=1e-12)
    given = hg.HistGradientBoostingRegressor(max_iter=500, early_stopping=True, learning_rate=0.3)
    assert given.fit(X[:1000], y[:1000], X_val=X[1000:], y_val=y[1000:]).n_iter_ < 200


@pytest.mark.mission("T8")
def test_early_stopping_by_a_score_and_its_display(rng, capsys):
    X, y = make(rng, 400)
    labels = np.where(y > 0, "high", "low")
    held = {"X_val": X[300:], "y_val": labels[300:]}
    options = {"max_iter": 60, "early_stopping": True, "n_iter_no_change": 5, "verbose": 1}
    for scoring, score in (("roc_auc", roc_auc), (None, lambda m: np.mean(m.predict(X[300:]) == labels[300:]))):
        model = hg.HistGradientBoostingClassifier(scoring=scoring, **options).fit(X[:300], labels[:300], **held)
        assert model.validation_score_[-1] == pytest.approx(score(model, *([X[300:], labels[300:]] if scoring else [])))
        score_path = model.validation_score_
        assert model.n_iter_ == 60 or score_path[-5:].max() <= score_path[-6] + model.tol
        assert capsys.readouterr().err.count("validation") == model.n_iter_


@pytest.mark.mission("T8")
@pytest.mark.parametrize("patience", [1, 3, 10])
@pytest.mark.parametrize("tol", [0.0, 0.05])
def test_boosting_stops_in_the_round_of_scikit_learn(rng, patience, tol):
    """Both stopping rules on random loss paths, the loss before the first round first."""
    from types import SimpleNamespace

    from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting

    from hinge.models.trees.boosting_history import stops_by_reference, stops_by_window

    settings = SimpleNamespace(n_iter_no_change=patience, tol=tol)
    for _ in range(100):
        losses = list(np.round(np.exp(-np.arange(30) / 8) + 0.1 * rng.normal(size=30), 2))  # ties happen
        window = np.full(patience, np.inf)  # as in BaseGradientBoosting._fit_stages
        for rounds in range(1, 30):
            seen = losses[: rounds + 1]
            theirs = BaseHistGradientBoosting._should_stop(settings, [-v for v in seen])
            assert stops_by_reference(seen, patience, tol) == theirs
            expected = not np.any(seen[-1] + tol < window)
            assert stops_by_window(seen, patience, tol) == expected
            window[(rounds - 1) % patience] = seen[-1]


@pytest.mark.mission("T8")
def test_early_stopping_keeps_as_many_rounds_as_scikit_learn(rng):
    """Features of few values, so that both have the same bins, and the same held-out rows."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    X = rng.integers(8, size=(600, 3)).astype(float)
    y = np.sin(X[:, 0]) + 0.3 * X[:, 1] + rng.normal(size=600)
    for patience in (1, 2, 5):
        options = {"early_stopping": True, "n_iter_no_change": patience, "max_iter": 200, "random_state": 0}
        theirs = HistGradientBoostingRegressor(**options).fit(X[:400], y[:400], X_val=X[400:], y_val=y[400:])
        ours = hg.HistGradientBoostingRegressor(**options).fit(X[:400], y[:400], X_val=X[400:], y_val=y[400:])
        assert ours.n_iter_ == theirs.n_iter_
        np.testing.assert_allclose(ours.validation_score_, -theirs.validation_score_[1:], rtol=1e-6)


def roc_auc(model, X, labels):
    from sklearn.metrics import roc_auc_score

    return roc_auc_score(labels == model.classes_[1], model.predict_proba(X)[:, 1])


@pytest.mark.mission("T8")
def test_warm_start_continues_and_init_score_starts_elsewhere(rng):
    X, y = make(rng)
    whole = hg.HistGradientBoostingRegressor(max_iter=20, random_state=0).fit(X, y)
    part = hg.HistGradientBoostingRegressor(max_iter=12, random_state=0, warm_start=True).fit(X, y)
    part.set_params(max_iter=20).fit(X, y)
    np.testing.assert_allclose(part.predict(X), whole.predict(X), rtol=1e-9)
    offset = 3.0 * X[:, 3]
    model = hg.HistGradientBoostingRegressor(max_iter=20).fit(X, y + offset, init_score=offset)
    assert np.corrcoef(model.predict(X), y)[0, 1] > 0.8


@pytest.mark.mission("T8")
def test_level_growth_limits_depth_evenly(rng):
    X, y = make(rng, 2000)
    model = hg.HistGradientBoostingRegressor(max_iter=3, grow="level", max_depth=3, max_leaf_nodes=None).fit(X, y)
    for t in range(3):
        assert model.trees_.depths(t).max() == 3


def test_pickle_float32_order_and_large_trees(rng):
    X, y = make(rng, 2000)
    model = hg.HistGradientBoostingRegressor(max_iter=10, max_leaf_nodes=200, min_samples_leaf=1).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(model.predict(X), again.predict(X))
    np.testing.assert_array_equal(model.predict(X), model.predict(np.asfortranarray(X)))
    X32 = X.astype(np.float32)
    small = hg.HistGradientBoostingRegressor(max_iter=10).fit(X32, y)
    np.testing.assert_array_equal(small.predict(X32), small.predict(X32.astype(np.float64)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_bins": 1}, "max_bins"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"monotonic_cst": [1]}, "monotonic_cst"),
        ({"loss": "nonsense"}, "loss must be"),
        ({"loss": "quantile", "quantile": 1.5}, "quantile"),
        ({"loss": hg.Logistic()}, "use the classifier"),
        ({"interaction_cst": [[0, 99]]}, "interaction_cst"),
        ({"early_stopping": "maybe"}, "early_stopping"),
    ],
)
def test_errors_name_the_wrong_setting(options, message, rng):
    X, y = make(rng, 50)
    with pytest.raises(ValueError, match=message):
        hg.HistGradientBoostingRegressor(**options).fit(X, y)


@pytest.mark.parametrize("unit", [1e-150, 1e-12, 1e-8, 1e150])
@pytest.mark.parametrize("model", [
    hg.GradientBoostingRegressor(n_estimators=20, random_state=0),
    hg.HistGradientBoostingRegressor(max_iter=20, random_state=0),
    hg.HistGradientBoostingRegressor(max_iter=20, random_state=0, min_impurity_decrease=1e-3),
])  # fmt: skip
def test_the_unit_of_the_weights_does_not_matter(model, unit, rng):
    """Limits of leaves are relative to the mean weight: tiny weights must not stop all splits."""
    X = rng.normal(size=(200, 3))
    y, weight = X[:, 0] + 0.1 * rng.normal(size=200), rng.uniform(0.5, 2.0, 200)
    expected = clone(model).fit(X, y, sample_weight=weight).predict(X)
    found = clone(model).fit(X, y, sample_weight=unit * weight).predict(X)
    assert np.std(expected) > 0.5 * np.std(y)
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_a_ridge_penalty_is_in_the_unit_of_the_weights(rng):
    """Leaves are G/(H + l2): weights and penalty multiplied alike leave them as they are."""
    X = rng.normal(size=(200, 3))
    y, weight = X[:, 0] + 0.1 * rng.normal(size=200), rng.uniform(0.5, 2.0, 200)
    model = hg.HistGradientBoostingRegressor(max_iter=20, l2_regularization=50.0)
    expected = model.fit(X, y, sample_weight=weight).predict(X)
    weak = hg.HistGradientBoostingRegressor(max_iter=20, l2_regularization=50.0 * 2.0**-40)
    np.testing.assert_allclose(weak.fit(X, y, sample_weight=2.0**-40 * weight).predict(X), expected, atol=1e-8)
