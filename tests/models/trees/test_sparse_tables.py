"""Trees and forests on sparse X: the same predictions, bit for bit, as on the same table made dense."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

import hinge as hg

pytestmark = pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")  # few members, on purpose

CLASSES = [
    hg.DecisionTreeClassifier(), hg.DecisionTreeClassifier(criterion="entropy"),
    hg.DecisionTreeClassifier(splitter="hist"), hg.DecisionTreeClassifier(max_leaf_nodes=7, max_features=5),
    hg.ExtraTreeClassifier(), hg.RandomForestClassifier(6, oob_score=True), hg.RandomForestClassifier(6, max_bins=4),
    hg.ExtraTreesClassifier(6), hg.AdaBoostClassifier(n_estimators=6),
    hg.AdaBoostClassifier(hg.DecisionTreeClassifier(max_depth=3), n_estimators=4),
    # Of so few features entries stay where they are (trees/drawn.cpp).
    hg.DecisionTreeClassifier(max_leaf_nodes=7, max_features=4), hg.ExtraTreesClassifier(6, max_features=3),
    hg.RandomForestClassifier(6, max_features=2), hg.ExtraTreeClassifier(max_features=1),
]  # fmt: skip
NUMBERS = [
    hg.DecisionTreeRegressor(), hg.DecisionTreeRegressor(max_depth=4), hg.DecisionTreeRegressor(splitter="hist"),
    hg.DecisionTreeRegressor(criterion="absolute_error", max_depth=4), hg.DecisionTreeRegressor(min_samples_leaf=7),
    hg.DecisionTreeRegressor(criterion="poisson"), hg.ExtraTreeRegressor(),
    hg.ExtraTreeRegressor(criterion="absolute_error", max_features=6), hg.RandomForestRegressor(6),
    hg.RandomForestRegressor(6, max_features=0.3, max_bins=5), hg.ExtraTreesRegressor(6),
    hg.DecisionTreeRegressor(criterion="absolute_error", max_depth=6, max_features=3),
    hg.RandomForestRegressor(6, max_features=3), hg.ExtraTreesRegressor(6, max_features=2),
]  # fmt: skip


def table(rng, missing=False):
    X = scipy.sparse.random_array((250, 30), density=0.15, rng=rng, format="csr")
    X.data = np.round(rng.normal(size=X.nnz), 1)  # ties, and zeros that are stored
    X = scipy.sparse.hstack([X, rng.normal(size=(250, 2)), scipy.sparse.csr_array((250, 1))], format="csr")
    if missing:
        X.data[::13] = np.nan
    return X


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("kind", ["csr_array", "csc_matrix", "coo_array"])
@pytest.mark.parametrize("model", CLASSES + NUMBERS, ids=repr)
def test_sparse_is_dense(model, kind, missing, rng):
    X = table(rng, missing)
    dense = X.toarray()
    y = np.abs(np.nansum(dense[:, :6], axis=1) + rng.normal(size=250))
    y = np.digitize(y, [0.5, 1.5]) if model in CLASSES else y
    weight = [None, rng.integers(0, 3, 250), rng.integers(1, 9, 250) / 8][rng.integers(3)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        a = clone(model).fit(dense, y, sample_weight=weight)
        b = clone(model).fit(getattr(scipy.sparse, kind)(X), y, sample_weight=weight)
    name = "predict_proba" if model in CLASSES else "predict"
    np.testing.assert_array_equal(getattr(b, name)(X), getattr(a, name)(dense))
    np.testing.assert_array_equal(getattr(b, name)(X.tocsc()), getattr(a, name)(dense))
    if hasattr(a, "apply"):
        np.testing.assert_array_equal(b.apply(X), a.apply(dense))
        np.testing.assert_allclose(b.feature_importances_, a.feature_importances_, atol=1e-9)
    if hasattr(a, "oob_decision_function_"):
        np.testing.assert_array_equal(b.oob_decision_function_, a.oob_decision_function_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_tables_are_not_made_dense(dtype, rng):
    """A dense table of 3000 × 10⁶ cells would take 24 GB: fits and predictions read its entries alone."""
    n = 3000
    X = scipy.sparse.random_array((n, 10**6), density=4e-6, rng=rng, dtype=dtype, format="csr")
    column = rng.integers(0, 2, n).astype(dtype)
    X = scipy.sparse.hstack([X, column[:, None]], format="csr", dtype=dtype)
    assert hg.DecisionTreeClassifier(max_depth=2).fit(X, column).score(X, column) == 1.0


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error", "poisson"])
def test_random_thresholds_lie_between_the_extremes(criterion, rng):
    """Every threshold of a tree with random thresholds parts the rows of its node into two sets that are not empty."""
    X = np.round(rng.normal(size=(120, 4)), 1)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.exp(rng.normal(size=120))
    tree = hg.ExtraTreeRegressor(criterion=criterion).fit(X, y)
    passes = tree.decision_path(X).toarray().astype(bool)
    nodes = tree.trees_
    for node in np.flatnonzero(nodes.feature >= 0):
        left, right = (passes[:, nodes.left[node] + k].sum() for k in (0, 1))
        assert left > 0
        assert right > 0
        values = X[passes[:, node], nodes.feature[node]]
        if len(np.unique(values[~np.isnan(values)])) > 1:
            assert np.nanmin(values) <= nodes.threshold[node] < np.nanmax(values)
    _, group, count = np.unique(np.nan_to_num(X, nan=99.0), axis=0, return_inverse=True, return_counts=True)
    alone = count[group.ravel()] == 1  # rows with the same values share a leaf
    np.testing.assert_allclose(tree.predict(X)[alone], y[alone], rtol=1e-12)


def test_random_thresholds_part_the_widest_numbers():
    """high − low overflows: the threshold still parts the two values."""
    X = np.array([[-1.7e308], [1.7e308], [-1.7e308], [1.7e308]])
    tree = hg.ExtraTreeClassifier().fit(X, [0, 1, 0, 1])
    np.testing.assert_array_equal(tree.predict(X), [0, 1, 0, 1])
