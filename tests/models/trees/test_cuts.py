"""The cut of a node is the best one there is, in every form of a table; random ones lie inside the node's values."""

import itertools

import numpy as np
import pytest
import scipy.sparse

import hinge as hg


def gini_score(y, w, classes):
    """W Q of a side, by its definition."""
    if not len(y):
        return 0.0
    shares = np.bincount(y, w, minlength=classes) / w.sum()
    return w.sum() * (1 - np.sum(shares**2))


def largest_fall(X, y, w, classes):
    """The fall of W Q at the best cut of all, missing values on either side."""
    best, whole = 0.0, gini_score(y, w, classes)
    for column in X.T:
        absent = np.isnan(column)
        for t, missing_left in itertools.product([*np.unique(column[~absent])], [False, True]):
            left = np.where(absent, missing_left, column <= t)
            if left.any() and not left.all():
                fall = whole - gini_score(y[left], w[left], classes) - gini_score(y[~left], w[~left], classes)
                best = max(best, fall)
    return best


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("form", ["best", "hist", "sparse"])
@pytest.mark.parametrize("classes", [3, 12])
@pytest.mark.parametrize("rows", [7, 60, 300])
def test_the_root_of_a_tree_of_several_classes_is_the_best_cut(rows, classes, form, missing, rng):
    X = np.round(rng.normal(size=(rows, 4)), 1) * (rng.random((rows, 4)) < 0.6)
    y = rng.integers(0, classes, rows)
    y[:classes] = np.arange(classes)[:rows]
    w = rng.uniform(0.1, 3.0, rows)
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    table = scipy.sparse.csr_matrix(X) if form == "sparse" else X
    kinds = len(np.unique(y))
    codes = np.unique(y, return_inverse=True)[1]
    tree = hg.DecisionTreeClassifier(max_depth=1, splitter="hist" if form == "hist" else "best").fit(table, y, w)
    assert tree.trees_.gain[0] == pytest.approx(largest_fall(X, codes, w, kinds), rel=1e-9)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "model", [hg.ExtraTreeClassifier, hg.ExtraTreesClassifier, hg.ExtraTreeRegressor, hg.ExtraTreesRegressor]
)
def test_random_thresholds_part_the_rows_of_every_node(model, sparse, rng):
    X = np.abs(rng.normal(size=(80, 6))) * (rng.random((80, 6)) < 0.5)
    y = rng.integers(0, 5, 80)
    options = {"n_estimators": 3} if "Trees" in model.__name__ else {}
    fit = model(**options, random_state=0).fit(scipy.sparse.csr_matrix(X) if sparse else X, y)
    trees = fit.trees_
    for t in range(len(trees)):
        nodes = trees.nodes(t)
        feature, left, threshold = (np.asarray(a)[nodes] for a in (trees.feature, trees.left, trees.threshold))
        members = {0: np.arange(80)}
        for node in range(len(feature)):
            if feature[node] < 0:
                rows = members[node]  # grown until the leaves are pure, or no feature separates their rows
                assert len(np.unique(y[rows])) == 1 or len(np.unique(X[rows], axis=0)) == 1
                continue
            below = X[members[node], feature[node]] <= threshold[node]
            assert 0 < below.sum() < len(below)
            members[left[node]], members[left[node] + 1] = members[node][below], members[node][~below]


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(
    "model",
    [
        hg.DecisionTreeRegressor(criterion="absolute_error", max_depth=1, categorical_features=[0]),
        hg.DecisionTreeRegressor(criterion="absolute_error", max_depth=1, categorical_features=[0], splitter="hist"),
        hg.RandomForestRegressor(5, criterion="absolute_error", max_depth=1, categorical_features=[0], bootstrap=False),
    ],
    ids=lambda m: f"{type(m).__name__}-{getattr(m, 'splitter', '')}",
)
def test_categories_by_absolute_error_are_parted_by_their_medians(model, missing, rng):
    """Two sets of categories with a constant each, and outliers that move their means but not their medians."""
    category = rng.permutation(np.repeat(np.arange(6.0), 9))
    high = np.isin(category, [0, 3, 4])
    y = np.where(high, 5.0, 1.0)
    for c in (1.0, 2.0):
        y[np.flatnonzero(category == c)[0]] = 1e3
    X = category[:, None].copy()
    if missing:
        X = np.concatenate([X, np.full((4, 1), np.nan)])
        y, high = np.append(y, np.full(4, 5.0)), np.append(high, np.full(4, True))
    np.testing.assert_allclose(model.fit(X, y).predict(X), np.where(high, 5.0, 1.0))


@pytest.mark.mission("T1")
@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error"])
@pytest.mark.parametrize("missing", [False, True])
def test_extra_trees_send_each_category_to_either_side_by_a_fair_coin(criterion, missing, rng):
    """Geurts et al. (2006) draw a subset of the categories in a node, whatever the targets are."""
    k, trees = 5, 3000
    X = np.repeat(np.arange(float(k)), 4)[:, None]
    y = 10.0 * X[:, 0] + rng.normal(size=len(X))
    if missing:
        X, y = np.vstack([X, np.full((4, 1), np.nan)]), np.append(y, rng.normal(size=4))
    fit = hg.ExtraTreesRegressor(
        trees, criterion=criterion, max_depth=1, categorical_features=[0], random_state=int(rng.integers(2**31))
    ).fit(X, y)
    left = np.zeros((trees, k), dtype=bool)
    for t in range(trees):
        left[t, fit.trees_.categories(fit.trees_.start[t])] = True
    sizes = np.bincount(left.sum(axis=1), minlength=k + 1)
    assert sizes[0] == 0
    assert (sizes[k] > 0) == missing  # only missing values can be on the right by themselves
    # A coin per category; a draw with an empty side becomes one with a single category there.
    expected = 0.5 + (1 / k * 2.0**-k if missing else 0.0)
    np.testing.assert_allclose(left.mean(axis=0), expected, atol=5.5 * 0.5 / np.sqrt(trees))
    together = np.mean(left[:, 0] == left[:, 1])
    assert abs(together - 0.5) < 2 * 2.0**-k + 5.5 * 0.5 / np.sqrt(trees)


@pytest.mark.mission("T1", "T9")
def test_extra_trees_on_categories_differ_even_if_every_feature_is_a_candidate(rng):
    """Splits of categories that were the best ones made all trees alike: their mean was no better than one of them."""
    C = rng.integers(0, 8, size=(600, 4))
    effect = rng.normal(size=(4, 8))
    y = effect[np.arange(4), C].sum(axis=1) + rng.normal(size=600)
    fit = hg.ExtraTreesRegressor(
        60, max_features=1.0, categorical_features=[0, 1, 2, 3], random_state=int(rng.integers(2**31))
    ).fit(C[:300].astype(float), y[:300])
    each = np.stack([member.predict(C[300:].astype(float)) for member in fit.estimators_])
    single = np.mean((each - y[300:]) ** 2)
    together = np.mean((each.mean(axis=0) - y[300:]) ** 2)
    spread = np.mean(each.var(axis=0))
    np.testing.assert_allclose(together, single - spread, rtol=1e-9)  # the ambiguity decomposition
    assert spread > 0.3


@pytest.mark.parametrize("weighted", [None, "counts", "shares"])
@pytest.mark.parametrize("cls", [hg.DecisionTreeClassifier, hg.DecisionTreeRegressor])
@pytest.mark.parametrize(("n", "most"), [(40, {}), (900, {}), (900, {"max_leaf_nodes": 12})])
def test_tables_of_zeros_and_ones_are_cut_as_their_sorted_columns(rng, cls, weighted, n, most):
    """Zeros and ones are counted in bins (trees/scan.cpp, Ones), zeros and twos sorted: two ways to the same tree."""
    X = np.column_stack([np.eye(20)[rng.integers(0, 20, n)], rng.integers(0, 2, size=(n, 13))])
    y = X @ rng.normal(size=X.shape[1]) + rng.normal(size=n)
    y = (y > 0).astype(int) if cls is hg.DecisionTreeClassifier else y
    weight = {None: None, "counts": rng.integers(1, 4, n).astype(float), "shares": rng.uniform(0.5, 2.0, n)}[weighted]
    binned, in_order = (cls(random_state=0, **most).fit(c * X, y, weight).tree_ for c in (1.0, 2.0))
    np.testing.assert_array_equal(binned.feature, in_order.feature)
    np.testing.assert_array_equal(binned.children_left, in_order.children_left)
    np.testing.assert_array_equal(binned.n_node_samples, in_order.n_node_samples)
    inner = binned.feature >= 0
    np.testing.assert_array_equal(2.0 * binned.threshold[inner], in_order.threshold[inner])
    np.testing.assert_allclose(binned.value, in_order.value, rtol=1e-9, atol=1e-12)
