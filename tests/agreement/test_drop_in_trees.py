"""Trees where code written for scikit-learn takes them: several targets under every criterion, medians in order."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn import ensemble, tree

import hinge as hg


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error", "poisson"])
def test_several_numbers_under_every_criterion(rng, criterion, weighted):
    """The same tree as scikit-learn's: impurities and values are those of the targets together."""
    X = rng.normal(size=(80, 3))
    Y = np.exp(X[:, :2] + 0.3 * rng.normal(size=(80, 2)))
    s = rng.integers(1, 4, size=80).astype(float) if weighted else None
    # scikit-learn's min_samples_leaf counts rows, ours the weight that stands for repetitions.
    options = {"criterion": criterion, "max_depth": 4, "random_state": 0, "min_samples_leaf": 1 if weighted else 3}
    ours = hg.DecisionTreeRegressor(**options).fit(X, Y, sample_weight=s)
    theirs = tree.DecisionTreeRegressor(**options).fit(X, Y, sample_weight=s)
    np.testing.assert_allclose(ours.tree_.impurity[0], theirs.tree_.impurity[0])
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-6)


@pytest.mark.parametrize("criterion", ["gini", "entropy", "log_loss"])
def test_several_labels_under_every_criterion(rng, criterion):
    X = rng.normal(size=(120, 3))
    Y = np.column_stack([np.digitize(X[:, 0], [-0.5, 0.5]), X[:, 1] > 0.3])
    Y = np.where(rng.random(Y.shape) < 0.1, 0, Y)
    options = {"criterion": criterion, "max_depth": 3, "random_state": 0}
    ours = hg.DecisionTreeClassifier(**options).fit(X, Y)
    theirs = tree.DecisionTreeClassifier(**options).fit(X, Y)
    np.testing.assert_allclose(ours.tree_.impurity[0], theirs.tree_.impurity[0])
    for a, b in zip(ours.predict_proba(X), theirs.predict_proba(X)):
        np.testing.assert_allclose(a, b, atol=1e-12)
    assert hg.RandomForestClassifier(n_estimators=5, criterion=criterion).fit(X, Y).predict(X).shape == Y.shape


@pytest.mark.parametrize("estimator", [hg.DecisionTreeRegressor, hg.ExtraTreeRegressor, hg.RandomForestRegressor])
@pytest.mark.parametrize("direction", [-1, 1])
@pytest.mark.parametrize("missing", [False, True])
def test_medians_of_leaves_keep_the_order_of_a_monotone_feature(rng, estimator, direction, missing):
    """The values of an absolute-error tree are medians: these, not the means, must rise or fall with the feature."""
    X = rng.normal(size=(200, 2))
    y = direction * X[:, 0] + rng.standard_t(2, size=200)
    model = estimator(criterion="absolute_error", monotonic_cst=[direction, 0], min_samples_leaf=2)
    if missing:
        X = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    model.fit(X, y)
    grid = np.linspace(-3, 3, 200)
    for other in (-1.0, 0.0, 1.0):
        z = model.predict(np.column_stack([grid, np.full(200, other)]))
        assert np.all(direction * np.diff(z) >= -1e-12)


@pytest.mark.parametrize("kind", [scipy.sparse.csr_matrix, scipy.sparse.csc_array, scipy.sparse.coo_matrix])
def test_the_view_of_a_tree_reads_sparse_rows(rng, kind):
    X = np.where(rng.random((60, 5)) < 0.6, 0.0, rng.normal(size=(60, 5)))
    model = hg.DecisionTreeRegressor().fit(kind(X), X @ rng.normal(size=5))
    dense = X.astype(np.float32)
    np.testing.assert_array_equal(model.tree_.apply(kind(dense)), model.tree_.apply(dense))
    paths = [model.tree_.decision_path(rows).toarray() for rows in (kind(dense), dense)]
    np.testing.assert_array_equal(*paths)


@pytest.mark.parametrize("criterion", ["absolute_error", "poisson"])
def test_forests_of_several_numbers(rng, criterion):
    X = rng.normal(size=(100, 3))
    Y = np.exp(X[:, :2])
    ours = hg.RandomForestRegressor(20, criterion=criterion, random_state=0).fit(X, Y)
    theirs = ensemble.RandomForestRegressor(20, criterion=criterion, random_state=0).fit(X, Y)
    assert ours.score(X, Y) > theirs.score(X, Y) - 0.1
