"""T1–T8 and the out-of-bag part of L5: trees, ensembles and boosting agree with the theory."""

from __future__ import annotations

import gzip
import itertools

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin

import hinge as hg
from hinge._native import core
from hinge.models.trees.anyboost import any_boost, line_search, stagewise
from hinge.models.trees.arrays import Trees
from hinge.models.trees.boosting_loss import BoostedLoss
from hinge.models.trees.pruning import node_risks, prune_trees, pruning_path
from zoo import LOSSES, targets


def weighted_median(y, w):
    order = np.argsort(y)
    return y[order][np.searchsorted(np.cumsum(w[order]), 0.5 * w.sum())]


def total_impurity(criterion, y, w):
    """W·Q of a node, straight from the definition."""
    if len(y) == 0:
        return 0.0
    W = w.sum()
    if criterion == "squared_error":
        return float(w @ (y - w @ y / W) ** 2)
    if criterion == "absolute_error":
        return float(w @ np.abs(y - weighted_median(y, w)))
    if criterion == "poisson":
        mean = w @ y / W
        return (
            0.0 if mean == 0 else float(sum(wi * (yi * np.log(yi / mean) if yi > 0 else 0.0) for wi, yi in zip(w, y)))
        )
    p = np.array([w[y == c].sum() for c in np.unique(y)]) / W
    return float(W * {"gini": 1 - p @ p, "entropy": -(p @ np.log2(p)), "misclassification": 1 - p.max()}[criterion])


def brute_force_gain(criterion, X, y, w):
    """The largest fall of W·Q over all midpoints of all features, missing values on either side."""
    whole, best = total_impurity(criterion, y, w), -np.inf
    for j in range(X.shape[1]):
        x = X[:, j]
        values = np.unique(x[~np.isnan(x)])
        for t in [*(0.5 * (values[1:] + values[:-1])), *([np.inf] if np.isnan(x).any() else [])]:
            for missing_left in (False, True) if np.isnan(x).any() else (False,):
                left = (x <= t) | (np.isnan(x) & missing_left)
                if left.all() or not left.any():
                    continue
                if criterion == "poisson" and min(y[left].sum(), y[~left].sum()) == 0:
                    continue  # a mean of zero gives any event an infinite deviance
                parts = sum(total_impurity(criterion, y[m], w[m]) for m in (left, ~left))
                best = max(best, whole - parts)
    return best


def make(criterion, **options):
    classes = criterion in ("gini", "entropy", "misclassification")
    kind = hg.DecisionTreeClassifier if classes else hg.DecisionTreeRegressor
    return kind(criterion=criterion, **options)


CRITERIA = ["gini", "entropy", "misclassification", "squared_error", "absolute_error", "poisson"]


@pytest.mark.mission("T1")
@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
@pytest.mark.parametrize("max_features", [None, 3])
def test_the_search_in_one_pass_finds_the_splits_of_the_general_one(criterion, max_features, rng):
    # Halves for weights are no counts, so with leaves of two rows they take the general search; scores are then exactly
    # half as large.
    X = rng.normal(size=(3000, 20)).round(2)
    y = X[:, 0] * X[:, 1] + rng.normal(size=3000)
    y = y > 0 if criterion == "gini" else y
    one, general = (
        make(criterion, splitter="hist", max_features=max_features, min_samples_leaf=2, random_state=0).fit(
            X, y, sample_weight=w
        )
        for w in (None, np.full(3000, 0.5))
    )
    assert one.get_n_leaves() > 200
    for name in ("feature", "threshold", "value"):
        np.testing.assert_array_equal(getattr(one.trees_, name), getattr(general.trees_, name))


@pytest.mark.mission("T1")
@pytest.mark.parametrize("splitter", ["best", "hist"])
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("missing", [False, True])
def test_the_split_is_the_best_of_all_midpoints(criterion, splitter, missing, rng):
    for _ in range(8):
        n = int(rng.integers(6, 30))
        X = rng.integers(0, 6, size=(n, 3)).astype(float)  # many ties
        y = rng.integers(0, 3, size=n).astype(float)
        y[:2] = [0.0, 1.0]
        w = rng.integers(1, 4, size=n) * 0.5
        if missing:
            X[rng.random(X.shape) < 0.2] = np.nan
        expected = brute_force_gain(criterion, X, y, w)
        tree = make(criterion, max_depth=1, splitter=splitter).fit(X, y, sample_weight=w).trees_
        if expected > 1e-9:
            assert tree.gain[0] == pytest.approx(expected, rel=1e-9)
        assert tree.weight[0] * tree.impurity[0] == pytest.approx(total_impurity(criterion, y, w), abs=1e-9)


@pytest.mark.mission("T1")
@pytest.mark.parametrize(("criterion", "classes"), [("gini", 2), ("entropy", 2), ("squared_error", 0), ("gini", 4)])
def test_two_set_splits_of_categories_are_the_best_of_all_subsets(criterion, classes, rng):
    for _ in range(6):
        x = rng.integers(0, 6, size=40)
        y = rng.integers(0, classes, size=40).astype(float) if classes else rng.normal(size=40)
        w = np.ones(40)
        whole, present = total_impurity(criterion, y, w), np.unique(x)
        best = max(
            whole - total_impurity(criterion, y[m], w[m]) - total_impurity(criterion, y[~m], w[~m])
            for r in range(1, len(present))
            for subset in itertools.combinations(present, r)
            for m in [np.isin(x, subset)]
        )
        tree = make(criterion, max_depth=1, categorical_features=[0]).fit(x[:, None].astype(float), y)
        assert tree.trees_.gain[0] == pytest.approx(best, rel=1e-9)


@pytest.mark.mission("T1")
def test_thresholds_are_midpoints_and_the_tree_interpolates(rng):
    X, y = rng.normal(size=(200, 3)), rng.normal(size=200)
    model = hg.DecisionTreeRegressor().fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, rtol=1e-12)
    tree, root = model.trees_, 0
    column = X[:, tree.feature[root]]
    below, above = column[column <= tree.threshold[root]].max(), column[column > tree.threshold[root]].min()
    assert tree.threshold[root] == pytest.approx(0.5 * (below + above), rel=1e-12)


@pytest.mark.mission("T2")
def test_limits_hold(rng):
    X, y = rng.normal(size=(300, 4)), rng.integers(0, 3, size=300)
    for splitter in ("best", "hist", "random"):
        fit = lambda **o: hg.DecisionTreeClassifier(splitter=splitter, random_state=0, **o).fit(X, y)  # noqa: B023, E731
        assert fit(max_depth=3).get_depth() == 3
        assert fit(max_leaf_nodes=7).get_n_leaves() == 7
        leaf = fit(min_samples_leaf=11).trees_
        assert leaf.count[leaf.feature < 0].min() >= 11
        split = fit(min_samples_split=40).trees_
        assert split.count[split.feature >= 0].min() >= 40
        decrease = fit(min_impurity_decrease=0.01).trees_
        assert np.all(decrease.gain[decrease.feature >= 0] / 300 >= 0.01 - 1e-12)


def subtrees(tree, node=0):
    """All prunings below a node, as sets of leaves."""
    found = [frozenset([node])]
    if tree.feature[node] >= 0:
        left = int(tree.left[node])
        found += [a | b for a in subtrees(tree, left) for b in subtrees(tree, left + 1)]
    return found


@pytest.mark.mission("T2")
@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_the_pruning_path_is_the_best_of_all_subtrees(criterion, rng):
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(float)
    tree = make(criterion, max_depth=4).fit(X, y).trees_
    path, risk = pruning_path(tree), node_risks(tree)
    every = subtrees(tree)
    for alpha in [0.0, *(0.5 * (path.ccp_alphas[1:] + path.ccp_alphas[:-1])), path.ccp_alphas[-1] * 2 + 0.01]:
        best = min(sum(risk[list(leaves)]) + alpha * len(leaves) for leaves in every)
        pruned = prune_trees(tree, alpha)
        at = pruned.feature < 0
        assert node_risks(pruned)[at].sum() + alpha * at.sum() == pytest.approx(best, rel=1e-10)
    assert path.leaves[-1] == 1
    assert np.all(np.diff(path.ccp_alphas) > 0)


@pytest.mark.mission("T2")
def test_pruning_by_cross_validation_cuts_a_tree_that_fits_noise(rng):
    X = rng.normal(size=(400, 5))
    y = (X[:, 0] > 0) ^ (rng.random(400) < 0.2)
    full = hg.DecisionTreeClassifier(random_state=0).fit(X, y)
    pruned = full.prune(X=X, y=y, cv=5)
    assert pruned.get_n_leaves() < full.get_n_leaves() / 5
    test = rng.normal(size=(4000, 5))
    truth = test[:, 0] > 0
    assert np.mean(pruned.predict(test) == truth) > np.mean(full.predict(test) == truth) + 0.05
    text = pruned.rules(feature_names=list("abcde"))
    assert text.startswith("a <= ")
    assert "rows)" in text


@pytest.mark.mission("T3")
def test_a_bootstrap_holds_63_percent_of_the_rows():
    n = 20_000
    order = np.arange(n, dtype=np.uint32)
    shares = [np.mean(core.bootstrap(order, None, n, 0, t) > 0) for t in range(20)]
    expected, spread = 1 - (1 - 1 / n) ** n, np.sqrt(np.exp(-1) * (1 - 2 * np.exp(-1)) / n)
    assert np.all(np.abs(np.array(shares) - expected) < 5 * spread)


@pytest.mark.mission("T3")
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")  # few members, on purpose
def test_bagging_any_learner_and_its_out_of_bag_predictions(rng):
    from sklearn.neighbors import KNeighborsRegressor  # takes no weights: rows are repeated

    X = rng.normal(size=(300, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=300)
    bag = hg.BaggingRegressor(KNeighborsRegressor(3), n_estimators=20, oob_score=True, random_state=0).fit(X, y)
    np.testing.assert_allclose(bag.predict(X), np.mean([m.predict(X) for m in bag.estimators_], axis=0))
    for row in (0, 17):
        out = [m for m, rows in zip(bag.estimators_, bag.bags_) if row not in rows]
        assert bag.oob_prediction_[row] == pytest.approx(np.mean([m.predict(X[[row]])[0] for m in out]))
    assert bag.oob_score_ > 0.8


@pytest.mark.mission("T3", "T4")
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_forest_that_sees_all_features_is_bagging(task, rng):
    X = rng.integers(0, 40, size=(150, 4)).astype(float)  # fewer values than bins: binning loses nothing
    y = rng.integers(0, 3, size=150) if task == "classification" else rng.normal(size=150)
    if task == "classification":
        forest = hg.RandomForestClassifier(7, max_features=None, random_state=3).fit(X, y)
        bagged = hg.BaggingClassifier(n_estimators=7, random_state=3).fit(X, y)
        np.testing.assert_allclose(forest.predict_proba(X), bagged.predict_proba(X), rtol=1e-12)
    else:
        forest = hg.RandomForestRegressor(7, max_features=None, random_state=3).fit(X, y)
        bagged = hg.BaggingRegressor(n_estimators=7, random_state=3).fit(X, y)
        np.testing.assert_allclose(forest.predict(X), bagged.predict(X), rtol=1e-9)


@pytest.mark.mission("T4")
def test_importances_find_the_features_that_matter(rng):
    X = rng.normal(size=(1500, 10))
    y = X[:, 2] + 0.7 * X[:, 5] + 0.1 * rng.normal(size=1500)
    forest = hg.RandomForestRegressor(30, max_features=0.4, random_state=0, keep_leaves=True).fit(X[:1000], y[:1000])
    assert set(np.argsort(forest.feature_importances_)[-2:]) == {2, 5}
    falls = hg.permutation_importance(forest, X[1000:], y[1000:], random_state=0).importances_mean
    assert set(np.argsort(falls)[-2:]) == {2, 5}
    assert np.all(np.abs(np.delete(falls, [2, 5])) < 0.05)
    quantiles = forest.predict_quantiles(X[1000:], [0.1, 0.5, 0.9])
    assert np.all(np.diff(quantiles, axis=1) >= 0)
    assert 0.7 < np.mean((y[1000:] >= quantiles[:, 0]) & (y[1000:] <= quantiles[:, 2])) <= 1.0


@pytest.mark.mission("T4", "L5")
@pytest.mark.parametrize("name", ["spambase.csv.gz", "pendigits.csv.gz", "optdigits.csv.gz"])
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")  # few members, on purpose
def test_out_of_bag_error_is_an_unbiased_estimate(name, real_data, rng):
    with gzip.open(real_data(name), "rt") as file:
        table = np.array([line.strip().split(",") for line in file][1:])
    X, y = table[:, :-1].astype(float), table[:, -1]
    order = rng.permutation(len(y))
    train, test = order[: len(y) // 2], order[len(y) // 2 :]
    forest = hg.RandomForestClassifier(60, oob_score=True, random_state=0).fit(X[train], y[train])
    held_out = forest.score(X[test], y[test])
    noise = np.sqrt(held_out * (1 - held_out) * (1 / len(train) + 1 / len(test)))
    assert abs(forest.oob_score_ - held_out) < 4 * noise + 0.004  # the forest behind an OOB vote has fewer trees


@pytest.mark.mission("T5", "T6")
def test_adaboost_is_stagewise_fitting_of_the_exponential_loss(rng):
    X = rng.normal(size=(120, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.3 * rng.normal(size=120) > 0, 1.0, -1.0)
    rounds = 25
    base = hg.DecisionTreeClassifier(max_depth=1, criterion="misclassification")
    ada = hg.AdaBoostClassifier(base, n_estimators=rounds).fit(X, y)
    stages = stagewise(X, y, hg.Exponential(), rounds=rounds, max_thresholds=10**6, start=np.zeros(1))
    np.testing.assert_allclose(ada.estimator_weights_ / 2, [abs(v) for v, _, _ in stages.members], rtol=1e-6)
    np.testing.assert_allclose(ada.decision_function(X), stages.scores(X), atol=1e-6)
    np.testing.assert_allclose(ada.exponential_loss_, stages.history, rtol=1e-9)
    errors = ada.estimator_errors_
    np.testing.assert_allclose(ada.estimator_weights_, np.log((1 - errors) / errors), rtol=1e-12)
    # The textbook's bound: each round multiplies the loss by 2 √(ε(1 − ε)) ≤ 1.
    np.testing.assert_allclose(ada.exponential_loss_, np.cumprod(2 * np.sqrt(errors * (1 - errors))), rtol=1e-9)
    assert np.all(np.diff(ada.exponential_loss_) <= 1e-12)
    assert np.mean(ada.predict(X) != y) <= ada.exponential_loss_[-1]


@pytest.mark.mission("T5")
def test_adaboost_margins_and_other_learners(rng):
    X = rng.normal(size=(300, 4))
    y = np.array(["no", "yes"])[(X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int)]
    ada = hg.AdaBoostClassifier(n_estimators=40).fit(X, y)
    margins = ada.margins(X, y)
    assert np.all(np.abs(margins) <= 1 + 1e-12)
    np.testing.assert_array_equal(margins > 0, ada.predict(X) == y)
    more = hg.AdaBoostClassifier(n_estimators=200).fit(X, y)
    for model in (ada, more):  # few margins are small: Schapire, Freund, Bartlett & Lee (1998), theorem 5
        e = model.estimator_errors_
        for theta in (0.0, 0.05, 0.1, 0.2):
            bound = np.prod(2 * np.sqrt(e ** (1 - theta) * (1 - e) ** (1 + theta)))
            assert np.mean(model.margins(X, y) <= theta) <= bound + 1e-12
    from sklearn.naive_bayes import GaussianNB

    three = np.digitize(X[:, 0], [-0.5, 0.5])
    nb = hg.AdaBoostClassifier(GaussianNB(), n_estimators=5).fit(X, three)
    assert nb.score(X, three) > 0.8
    trees = hg.AdaBoostClassifier(n_estimators=30).fit(X, three)
    assert trees.score(X, three) > 0.9
    np.testing.assert_allclose(trees.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.mission("T6")
@pytest.mark.parametrize("loss", [hg.Squared(), hg.Logistic(), hg.Absolute(), hg.Hinge(), hg.Huber(0.5)], ids=repr)
def test_stagewise_modelling_lowers_any_loss(loss, rng):
    X, y = rng.normal(size=(80, 2)), targets(loss, 80, rng)
    model = stagewise(X, y, loss, rounds=15)
    assert np.all(np.diff(model.history) <= 1e-12)
    assert model.history[-1] <= np.mean(loss.value(y, np.full(80, model.start[0]))) + 1e-12


class Recorder(RegressorMixin, BaseEstimator):
    """A base learner that keeps the targets of its fit."""

    seen: list = []  # noqa: RUF012

    def fit(self, X, y):
        Recorder.seen.append(y)
        return self

    def predict(self, X):
        return Recorder.seen[-1]


@pytest.mark.mission("T7")
@pytest.mark.parametrize("loss", [l for l in LOSSES if not isinstance(l, hg.ZeroOne)], ids=repr)
def test_pseudo_residuals_are_minus_the_gradient(loss, rng):
    X, y = rng.normal(size=(40, 2)), targets(loss, 40, rng)
    Recorder.seen = []
    model = any_boost(X, y, loss, Recorder(), rounds=2, learning_rate=0.1)
    start = BoostedLoss(loss, 1).start(y, None)
    np.testing.assert_allclose(Recorder.seen[0], -loss.gradient(y, np.full(40, start[0])), rtol=1e-12)
    # After one step the residuals are taken at the new scores, and the step was the best along the direction.
    step = model.members[0][0]
    scores = start[0] + step * Recorder.seen[0]
    np.testing.assert_allclose(Recorder.seen[1], -loss.gradient(y, scores), rtol=1e-10, atol=1e-12)
    v = step / 0.1
    along = [np.mean(loss.value(y, start[0] + u * Recorder.seen[0])) for u in (v, 0.9 * v, 1.1 * v)]
    assert along[0] <= min(along[1:]) + 1e-12


@pytest.mark.mission("T7")
def test_full_trees_and_squared_loss_interpolate(rng):
    X, y = rng.normal(size=(100, 2)), rng.normal(size=100)
    slow = hg.AnyBoost(estimator=hg.DecisionTreeRegressor(), n_estimators=1, learning_rate=1.0).fit(X, y)
    np.testing.assert_allclose(slow.predict(X), y, atol=1e-9)
    fast = hg.HistGradientBoostingRegressor(
        max_iter=3, learning_rate=1.0, max_leaf_nodes=100, min_samples_leaf=1, early_stopping=False
    ).fit(X, y)
    np.testing.assert_allclose(fast.predict(X), y, atol=1e-7)
    # One tree with step 1 is CART; the start is the mean.
    one = hg.HistGradientBoostingRegressor(max_iter=1, learning_rate=1.0, max_leaf_nodes=6, min_samples_leaf=1).fit(
        X, y
    )
    cart = hg.DecisionTreeRegressor(max_leaf_nodes=6).fit(X, y)
    np.testing.assert_allclose(one.predict(X), cart.predict(X), atol=1e-9)
    assert one.baseline_[0] == pytest.approx(y.mean())


@pytest.mark.mission("T7")
def test_shrinkage_and_subsampling_help_on_noise(rng):
    X = rng.normal(size=(400, 5))
    f = np.sin(2 * X[:, 0]) + X[:, 1]
    y, test = f + rng.normal(size=400), rng.normal(size=(2000, 5))
    truth = np.sin(2 * test[:, 0]) + test[:, 1]
    error = lambda m: np.mean((m.fit(X, y).predict(test) - truth) ** 2)  # noqa: E731
    base = hg.DecisionTreeRegressor(max_depth=3)
    plain = error(hg.AnyBoost(estimator=base, n_estimators=60, learning_rate=1.0))
    shrunk = error(hg.AnyBoost(estimator=base, n_estimators=60, learning_rate=0.1))
    both = error(hg.AnyBoost(estimator=base, n_estimators=60, learning_rate=0.1, subsample=0.5))
    assert shrunk < 0.7 * plain
    assert both < 0.7 * plain


@pytest.mark.mission("T7", "T8")
@pytest.mark.parametrize(
    "loss", [hg.Absolute(), hg.Quantile(0.8), hg.EpsilonInsensitive(0.1), hg.Hinge(), hg.RelativeError()], ids=repr
)
def test_leaves_of_kinked_losses_are_exact_minimisers(loss, rng):
    X, y = rng.normal(size=(200, 3)), targets(loss, 200, rng)
    w = rng.integers(1, 4, size=200) * 0.5
    for weight in (None, w):
        fit = hg.Learner(hg.Tree(max_leaf_nodes=5, min_samples_leaf=5), loss).fit(X, y, sample_weight=weight)
        scores = fit.function_.scores(X)
        leaves = fit.trees_.leaves(X)[:, 0]
        assert len(np.unique(leaves)) > 1
        labels = y if loss.target is not hg.Target.SIGN else np.where(y > 0, 1.0, -1.0)
        for leaf in np.unique(leaves):
            at = leaves == leaf
            c = np.ones(at.sum()) if weight is None else weight[at]
            value = lambda v: c @ loss.value(labels[at], np.full(at.sum(), v))  # noqa: B023, E731
            here = scores[at][0]
            grid = np.concatenate([np.unique(labels[at]), here + np.linspace(-1, 1, 41)])
            assert value(here) <= min(value(v) for v in grid) + 1e-8


@pytest.mark.mission("T8")
def test_line_search_is_exact(rng):
    y, f, H = rng.choice([-1.0, 1.0], size=50), rng.normal(size=50), rng.normal(size=(50, 4))
    c = np.full(50, 0.02)
    v = line_search(hg.Logistic(), y, f, H, c)
    slopes = [(c * hg.Logistic().gradient(y, f + v[j] * H[:, j])) @ H[:, j] for j in range(4)]
    np.testing.assert_allclose(slopes, 0.0, atol=1e-10)


@pytest.mark.mission("T8")
def test_additivity_of_tree_shap(rng):
    X = rng.normal(size=(300, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.nan_to_num(X[:, 0]) * np.nan_to_num(X[:, 1]) + np.nan_to_num(X[:, 2])
    model = hg.HistGradientBoostingRegressor(max_iter=10, max_leaf_nodes=8).fit(X, y)
    phi, base = model.shap_values(X[:20])
    np.testing.assert_allclose(phi.sum(axis=1) + base, model.predict(X[:20]), atol=1e-9)
    # Against the definition: the sum over all subsets of features, for one tree.
    tree = Trees.stack([_single(model.trees_, 0)], 1, additive=True)
    from hinge.models.trees.shap import shap_values

    phi, _ = shap_values(tree, X[:5])
    for i in range(5):
        np.testing.assert_allclose(phi[i, :, 0], _shapley(tree, X[i], 4), atol=1e-10)


def _single(trees, t):
    at = trees.nodes(t)
    names = ("feature", "threshold", "left", "missing_left", "set", "value", "weight", "gain", "count")
    return {n: getattr(trees, n)[at] for n in names} | {"sets": trees.sets}


def _expectation(tree, x, known, node=0):
    """E[f | x_known] as TreeSHAP defines it: unknown features split by the training weights."""
    if tree.feature[node] < 0:
        return tree.value[node, 0]
    left, j = int(tree.left[node]), int(tree.feature[node])
    if j in known:
        goes = bool(tree.missing_left[node]) if np.isnan(x[j]) else x[j] <= tree.threshold[node]
        return _expectation(tree, x, known, left if goes else left + 1)
    a, b = tree.weight[left], tree.weight[left + 1]
    return (a * _expectation(tree, x, known, left) + b * _expectation(tree, x, known, left + 1)) / (a + b)


def _shapley(tree, x, d):
    from math import factorial

    phi = np.zeros(d)
    for j in range(d):
        others = [k for k in range(d) if k != j]
        for r in range(d):
            for s in itertools.combinations(others, r):
                weight = factorial(r) * factorial(d - r - 1) / factorial(d)
                phi[j] += weight * (_expectation(tree, x, {*s, j}) - _expectation(tree, x, set(s)))
    return phi
