"""Trees and forests of several targets, and what shows their nodes under scikit-learn's names."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from sklearn import ensemble, tree

import hinge as hg


@pytest.fixture
def table(rng):
    X = rng.normal(size=(160, 4))
    Y = np.column_stack([2 * X[:, 0], np.sin(X[:, 1]), X[:, 2] ** 2]) + 0.05 * rng.normal(size=(160, 3))
    labels = np.column_stack([np.digitize(Y[:, 0], [-1, 1]), Y[:, 1] > 0, np.digitize(Y[:, 2], [0.5, 1, 2])])
    return X, Y, labels.astype(int)


LIMITS = [{}, {"max_leaf_nodes": 9}, {"min_impurity_decrease": 0.02}, {"ccp_alpha": 0.01}]


@pytest.mark.mission("T1")
def test_a_split_lowers_the_mean_impurity_of_the_targets_most(table, rng):
    X, Y, labels = table
    weight = rng.integers(1, 4, size=len(X)).astype(float)
    for make, targets, impurity in (
        (hg.DecisionTreeRegressor, Y, lambda t, w: np.average((t - np.average(t, axis=0, weights=w)) ** 2, axis=0, weights=w)),
        (hg.DecisionTreeClassifier, labels, lambda t, w: [1 - np.sum((np.bincount(c, w) / w.sum()) ** 2) for c in t.T]),
    ):  # fmt: skip

        def cost(rows, t=targets, q=impurity):
            return weight[rows].sum() * np.mean(q(t[rows], weight[rows]))

        best = min(
            cost(X[:, j] <= cut) + cost(X[:, j] > cut) for j in range(4) for cut in np.unique(X[:, j])[:-1]
        )  # fmt: skip
        for splitter in ("best", "hist"):
            model = make(max_depth=1, splitter=splitter).fit(X, targets, sample_weight=weight)
            shown = model.tree_
            assert shown.impurity[0] * weight.sum() == pytest.approx(cost(np.ones(len(X), dtype=bool)))
            split = float(np.sum(shown.weighted_n_node_samples[1:] * shown.impurity[1:]))
            assert split == pytest.approx(best)
            everything = np.ones(len(X), dtype=bool)
            gain = shown.compute_feature_importances(normalize=False).sum()
            assert gain * weight.sum() == pytest.approx(cost(everything) - best)


@pytest.mark.mission("T1")
@pytest.mark.parametrize("limits", LIMITS)
def test_trees_of_several_targets_are_scikit_learns(table, limits):
    X, Y, labels = table
    ours = hg.DecisionTreeRegressor(**limits).fit(X, Y)
    theirs = tree.DecisionTreeRegressor(random_state=0, **limits).fit(X, Y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-12)
    assert ours.score(X, Y) == pytest.approx(theirs.score(X, Y))
    names = [["low", "mid", "high"], ["no", "yes"], list("abcd")]
    text = np.column_stack([np.array(n, dtype=object)[c] for n, c in zip(names, labels.T)])
    ours = hg.DecisionTreeClassifier(**limits).fit(X, text)
    theirs = tree.DecisionTreeClassifier(random_state=0, **limits).fit(X, text)
    for p, q in zip(ours.predict_proba(X), theirs.predict_proba(X), strict=True):
        np.testing.assert_allclose(p, q, atol=1e-12)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.tree_.value.shape == theirs.tree_.value.shape
    assert (ours.n_outputs_, list(ours.n_classes_)) == (theirs.n_outputs_, list(theirs.n_classes_))


@pytest.mark.mission("T4")
def test_forests_of_several_targets(table, tmp_path):
    X, Y, labels = table
    forest = hg.RandomForestRegressor(50, oob_score=True, warm_start=True).fit(X, Y)
    assert forest.predict(X).shape == forest.oob_prediction_.shape == Y.shape
    theirs = ensemble.RandomForestRegressor(50, oob_score=True, random_state=0).fit(X, Y)
    assert forest.oob_score_ == pytest.approx(theirs.oob_score_, abs=0.06)
    np.testing.assert_allclose(np.mean([t.predict(X) for t in forest], axis=0), forest.predict(X))
    np.testing.assert_allclose(np.mean([t.feature_importances_ for t in forest], axis=0), forest.feature_importances_)
    longer = forest.set_params(n_estimators=55).fit(X, Y)
    np.testing.assert_array_equal(longer.predict(X), hg.RandomForestRegressor(55).fit(X, Y).predict(X))
    with pytest.raises(ValueError, match="as many targets"):
        forest.set_params(n_estimators=56).fit(X, Y[:, 0])
    classes = hg.ExtraTreesClassifier(10).fit(X, labels)
    hg.save(classes, tmp_path / "m.hinge")
    np.testing.assert_array_equal(hg.load(tmp_path / "m.hinge").predict(X), classes.predict(X))
    assert classes.predict(X).shape == labels.shape
    assert [p.shape[1] for p in classes.predict_log_proba(X)] == [3, 2, 4]
    assert isinstance(classes[0], hg.ExtraTreeClassifier)
    assert len(classes) == 10


def test_what_several_targets_cannot_do_is_an_error(table):
    X, Y, labels = table
    with pytest.raises(ValueError, match=r"criterion must be one of 'gini', 'entropy'"):
        hg.DecisionTreeClassifier(criterion="misclassification").fit(X, labels)
    with pytest.raises(ValueError, match="monotonic_cst"):
        hg.RandomForestRegressor(monotonic_cst=[1, 0, 0, 0]).fit(X, Y)
    with pytest.raises(ValueError, match="oob_score needs one column"):
        hg.RandomForestClassifier(5, oob_score=True).fit(X, labels)
    with pytest.raises(ValueError, match="1d array"):
        hg.GradientBoostingRegressor().fit(X, Y)


@pytest.mark.mission("T2")
@pytest.mark.parametrize("cuts", [[0], [-1, 1]])
def test_tree_is_scikit_learns_tree(table, rng, cuts):
    """The walk through ``tree_`` that everybody copies gives the same for both."""
    X, Y, _ = table
    y = np.digitize(Y[:, 0] + rng.normal(size=len(Y)), cuts)  # noise: no ties between splits
    limits = {"max_depth": 2, "min_samples_leaf": 15}
    ours = hg.DecisionTreeClassifier(**limits).fit(X, y)
    theirs = tree.DecisionTreeClassifier(random_state=0, **limits).fit(X, y)

    def lines(model):
        t = model.tree_

        def walk(node):
            if t.feature[node] == -2:
                assert t.children_left[node] == t.children_right[node] == -1
                return [(t.n_node_samples[node], t.value[node].round(9).tolist(), round(t.impurity[node], 9))]
            return [
                (t.feature[node], round(t.threshold[node], 5)),
                *walk(t.children_left[node]),
                *walk(t.children_right[node]),
            ]

        return walk(0)

    assert lines(ours) == lines(theirs)
    assert (ours.tree_.max_depth, ours.tree_.n_leaves) == (theirs.tree_.max_depth, theirs.tree_.n_leaves)
    table32 = X.astype(np.float32)
    np.testing.assert_allclose(ours.tree_.predict(table32), theirs.tree_.predict(table32), atol=1e-12)
    for options in (
        {},
        {"show_weights": True, "decimals": 1},
        {"max_depth": 1, "spacing": 2, "feature_names": list("abcd")},
    ):
        assert hg.export_text(ours, **options) == tree.export_text(theirs, **options)
    mpl.use("Agg")
    drawn = [
        [a.get_text().replace(".0", "") for a in plot(t)]
        for plot, t in ((hg.plots.plot_tree, ours), (tree.plot_tree, theirs))
    ]
    assert drawn[0] == drawn[1]


def test_a_tree_of_a_forest_is_drawn_without_counts(table):
    X, Y, _ = table
    member = hg.RandomForestRegressor(3, max_depth=2).fit(X, Y[:, 0])[1]
    assert "rows" not in member.rules()
    with pytest.raises(AttributeError, match="not kept in ensembles"):
        hg.plots.plot_tree(member)
    coloured = hg.DecisionTreeRegressor(categorical_features=[0]).fit(np.arange(12)[:, None] % 3, np.arange(12) % 3)
    assert "feature_0 in {0.0}" in hg.export_text(coloured)
    with pytest.raises(ValueError, match=r"plot\(\)"):
        hg.plots.plot_tree(coloured)


@pytest.mark.mission("T4")
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")  # few members, on purpose
def test_classes_are_balanced_within_every_bag(rng):
    """In a stump of one bag both classes weigh the same, whatever was drawn."""
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] + rng.normal(size=200) > 1.5).astype(int)
    forest = hg.RandomForestClassifier(5, max_depth=1, class_weight="balanced_subsample", max_features=None).fit(X, y)
    for t, member in enumerate(forest):
        drawn = hg.RandomForestClassifier(t + 1, max_depth=1, max_features=None, oob_score=True)
        bag = _bag(drawn.fit(X, y), X, y, t)
        weight = bag / np.array([bag[y == 0].sum(), bag[y == 1].sum()])[y]
        alone = hg.DecisionTreeClassifier(max_depth=1, splitter="hist").fit(X, y, sample_weight=weight)
        np.testing.assert_allclose(member.predict_proba(X), alone.predict_proba(X), rtol=1e-9)


def _bag(forest, X, y, t):
    """How often each row was drawn for tree t."""
    from hinge._native import core

    return core.bootstrap(core.order_by_content(X, y.astype(float)), None, len(X), forest._seed, t + 1)
