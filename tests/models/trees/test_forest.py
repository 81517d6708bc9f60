"""Forests and single trees: threads, memory, drawing, messages."""

from __future__ import annotations

import numpy as np
import pytest

import hinge as hg
from kit.threads import assert_same_bits


@pytest.mark.mission("T4")
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")  # few members, on purpose
def test_same_bits_for_any_number_of_threads(rng):
    X = rng.normal(size=(3000, 6))
    y = X[:, 0] + rng.normal(size=3000)

    def arrays():
        forest = hg.RandomForestRegressor(6, max_features=0.5, oob_score=True, random_state=0).fit(X, y)
        extra = hg.ExtraTreesClassifier(6, random_state=0).fit(X, y > 0)
        tree = hg.DecisionTreeRegressor(random_state=0).fit(X, y)
        return forest.predict(X), forest.oob_prediction_, extra.predict_proba(X), tree.predict(X)

    assert_same_bits(arrays)


@pytest.mark.mission("T4")
def test_a_stored_forest_takes_less_than_half_of_scikit_learns_memory(rng):
    from sklearn.ensemble import RandomForestClassifier

    X = rng.normal(size=(2000, 5))
    y = (X[:, 0] + rng.normal(size=2000) > 0).astype(int)
    ours = hg.RandomForestClassifier(10, random_state=0).fit(X, y).trees_
    theirs = RandomForestClassifier(10, random_state=0).fit(X, y).estimators_
    node = np.mean([t.tree_.__getstate__()["nodes"].nbytes + t.tree_.value.nbytes for t in theirs]) / np.mean(
        [t.tree_.node_count for t in theirs]
    )
    assert ours.nbytes / ours.node_count < 0.5 * node


def test_trees_agree_with_scikit_learn(rng):
    from sklearn import tree

    X = rng.normal(size=(400, 4))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=400)
    ours = hg.DecisionTreeRegressor(max_depth=5).fit(X, y)
    theirs = tree.DecisionTreeRegressor(max_depth=5, random_state=0).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-9)
    path = ours.cost_complexity_pruning_path(X, y)
    reference = theirs.cost_complexity_pruning_path(X, y)
    np.testing.assert_allclose(path.ccp_alphas[-10:], reference.ccp_alphas[-10:], rtol=1e-6)
    labels = np.digitize(y, [-1, 1])
    ours = hg.DecisionTreeClassifier(max_leaf_nodes=12, criterion="entropy").fit(X, labels)
    theirs = tree.DecisionTreeClassifier(max_leaf_nodes=12, criterion="entropy", random_state=0).fit(X, labels)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-9)


@pytest.mark.mission("T2")
def test_drawn_and_printed(rng):
    import matplotlib as mpl

    mpl.use("Agg")
    X = rng.normal(size=(200, 3))
    X[:20, 1] = np.nan
    y = np.where(np.nan_to_num(X[:, 1]) + X[:, 0] > 0, "up", "down")
    tree = hg.DecisionTreeClassifier(max_depth=3).fit(X, y)
    text = tree.rules(["a", "b", "c"])
    assert text.count("rows)") + text.count("row)") == tree.get_n_leaves()
    ax = tree.plot()
    assert len(ax.texts) == tree.trees_.node_count + 2 * int(np.sum(tree.trees_.feature >= 0))
    ada = hg.AdaBoostClassifier(n_estimators=5).fit(np.nan_to_num(X), y)
    assert ada.plot_margins(np.nan_to_num(X), y).lines
    mpl.pyplot.close("all")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (hg.DecisionTreeClassifier(criterion="squared_error"), "criterion"),
        (hg.DecisionTreeClassifier(max_features="many"), "max_features"),
        (hg.DecisionTreeClassifier(splitter="worst"), "splitter"),
        (hg.DecisionTreeClassifier(ccp_alpha=-1.0), "ccp_alpha"),
        (hg.DecisionTreeClassifier(min_samples_leaf=0), "min_samples_leaf"),
        (hg.DecisionTreeClassifier(categorical_features="all"), "categorical_features"),
        (hg.RandomForestClassifier(0), "n_estimators"),
        (hg.RandomForestClassifier(max_samples=0.0), "max_samples"),
        (hg.ExtraTreesClassifier(oob_score=True), "bootstrap"),
    ],
)
def test_errors_name_the_wrong_setting(model, message, rng):
    with pytest.raises(ValueError, match=message):
        model.fit(rng.normal(size=(20, 2)), np.arange(20) % 2)


@pytest.mark.mission("T4", "T7")
@pytest.mark.parametrize("space", [hg.Tree(max_leaf_nodes=8), hg.Forest(hg.Tree(max_leaf_nodes=16), 10),
                                   hg.Boosted(hg.Tree(max_depth=3), 30), hg.Stagewise(10)], ids=repr)  # fmt: skip
@pytest.mark.parametrize("loss", [hg.Squared(), hg.Absolute(), hg.Logistic(), hg.Hinge()], ids=repr)
def test_spaces_of_the_learner_with_any_loss(space, loss, rng):
    X = rng.normal(size=(300, 3))
    y = X[:, 0] + 0.5 * np.sin(3 * X[:, 1])
    if loss.target.is_classes:
        y = y > 0
    assert hg.Learner(space, loss).fit(X, y).score(X, y) > 0.5
    weighted = hg.Learner(space, loss).fit(X, y, sample_weight=np.full(300, 2.0))
    assert weighted.score(X, y) > 0.5


def test_softmax_over_trees_and_l2_on_leaves(rng):
    X = rng.normal(size=(300, 3))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    boosted = hg.Boosted(hg.Tree(max_leaf_nodes=8), 20, 0.3)
    assert hg.Learner(boosted, hg.Softmax()).fit(X, y).score(X, y) > 0.95
    free = hg.Learner(hg.Tree(max_leaf_nodes=8), hg.Squared()).fit(X, X[:, 0])
    held = hg.Learner(hg.Tree(max_leaf_nodes=8), hg.Squared(), hg.L2(10.0)).fit(X, X[:, 0])
    assert np.std(held.predict(X)) < 0.2 * np.std(free.predict(X))
    with pytest.raises(ValueError, match="penalty"):
        hg.Learner(hg.Tree(), hg.Squared(), hg.L1(1.0)).fit(X, X[:, 0])


def test_rules_round_numbers_for_readers():
    X, y = np.arange(40.0)[:, None] * 1000, np.repeat([0.0123456, 54321.0], 20)
    text = hg.DecisionTreeRegressor().fit(X, y).rules(["x"], decimals=0)
    assert text.splitlines() == ["x <= 19500", "  0.01  (20 rows)", "x > 19500", "  54321  (20 rows)"]
