"""Trees and ensembles take what scikit-learn's of the same name take, and refuse what those refuse."""

import numpy as np
import pytest
import scipy.sparse
import sklearn
import sklearn.ensemble as peer
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.random_projection import GaussianRandomProjection

import hinge as hg
from hinge.models.trees.boosting_history import stops_by_reference

FORESTS = ["RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor"]
HIST = ["HistGradientBoostingClassifier", "HistGradientBoostingRegressor"]


def table(rng, n=80):
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(int)


# -- infinite values


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", HIST)
def test_infinities_are_values_beyond_all_others(name, dtype, rng):
    """A monotone map of the columns changes nothing, wherever it sends the ends."""
    X = rng.integers(-3, 4, size=(300, 2)).astype(dtype)
    y = (X[:, 0] + X[:, 1] > 1).astype(int)
    ends = X.copy()
    ends[X == 3], ends[X == -3] = np.inf, -np.inf
    wide, far = (getattr(hg, name)(max_iter=5, min_samples_leaf=5).fit(T, y) for T in (X, ends))
    np.testing.assert_allclose(far.predict(ends), wide.predict(X))
    missing = ends.copy()
    missing[rng.random(X.shape) < 0.2] = np.nan
    theirs = getattr(peer, name)(max_iter=5, min_samples_leaf=5).fit(missing, y)
    ours = getattr(hg, name)(max_iter=5, min_samples_leaf=5).fit(missing, y)
    assert ours.score(missing, y) > theirs.score(missing, y) - 0.05


@pytest.mark.parametrize("name", ["GradientBoostingRegressor", "DecisionTreeRegressor", "RandomForestRegressor"])
def test_infinities_are_refused_where_scikit_learn_refuses_them(name):
    with pytest.raises(ValueError, match="infinity"):
        getattr(hg, name)().fit([[0.0], [np.inf]], [0.0, 1.0])


# -- bagging


def test_members_decide_about_infinite_values(rng):
    X, y = table(rng)
    X[:5, 0], X[5:9, 1] = np.inf, np.nan
    finite = FunctionTransformer(np.nan_to_num, kw_args={"posinf": 9.0})
    model = hg.BaggingClassifier(make_pipeline(finite, hg.LogisticRegression()), random_state=0).fit(X, y)
    assert set(model.predict(X)) == {0, 1}
    with pytest.raises(ValueError, match="infinity"):
        hg.BaggingClassifier().fit(X, y)


def test_bagging_of_several_targets(rng):
    X, _ = table(rng)
    Y = np.column_stack([X[:, 0], X[:, 1] - X[:, 2], np.ones(len(X))])
    model = hg.BaggingRegressor(n_estimators=50, oob_score=True, random_state=0).fit(X, Y)
    assert model.predict(X).shape == model.oob_prediction_.shape == Y.shape
    assert 0.5 < model.oob_score_ < 1
    mean = np.mean([m.predict(X) for m in model.estimators_], axis=0)
    np.testing.assert_allclose(model.predict(X), mean)


def test_members_are_reproduced_from_their_samples(rng):
    """Also those with a random step inside."""
    X, y = table(rng)
    base = make_pipeline(GaussianRandomProjection(n_components=2), hg.LogisticRegression())
    model = hg.BaggingClassifier(base, n_estimators=3, random_state=0).fit(X, y)
    seeds = {m.get_params()["gaussianrandomprojection__random_state"] for m in model.estimators_}
    assert len(seeds) == 3
    for member, rows in zip(model.estimators_, model.estimators_samples_):
        before = member[-1].coef_.copy()
        np.testing.assert_array_equal(member.fit(X[rows], y[rows])[-1].coef_, before)


@pytest.mark.parametrize(
    "name", ["BaggingClassifier", "BaggingRegressor", "RandomForestClassifier", "RandomForestRegressor"]
)
def test_out_of_bag_scores_belong_to_the_members_there_are(name, rng):
    X, y = table(rng)
    model = getattr(hg, name)(n_estimators=20, oob_score=True, random_state=0).fit(X, y)
    assert hasattr(model, "oob_score_")
    model.set_params(warm_start=True, oob_score=False, n_estimators=25).fit(X, y)
    assert not any(hasattr(model, a) for a in ("oob_score_", "oob_prediction_", "oob_decision_function_"))


@pytest.mark.parametrize("name", FORESTS)
def test_out_of_bag_scores_without_new_trees(name, rng):
    X, y = table(rng)
    whole = getattr(hg, name)(n_estimators=30, bootstrap=True, oob_score=True, random_state=0).fit(X, y)
    grown = getattr(hg, name)(n_estimators=30, bootstrap=True, warm_start=True, random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match="adds no trees"):
        grown.set_params(oob_score=True).fit(X, y)
    assert grown.oob_score_ == whole.oob_score_


class Marked(ClassifierMixin, BaseEstimator):
    """Records what it is given."""

    def __init__(self, seen=None):
        self.seen = seen

    def __sklearn_clone__(self):
        copy = Marked(self.seen)
        copy._metadata_request = self.get_metadata_routing()
        return copy

    def fit(self, X, y, mark=None):
        self.classes_ = np.unique(y)
        self.seen.append(("fit", X[:, 0], mark))
        return self

    def predict(self, X, mark=None):
        self.seen.append(("predict", X[:, 0], mark))
        return np.full(len(X), self.classes_[0])


def test_members_get_the_arguments_that_they_requested(rng):
    X, y = table(rng)
    seen = []
    with sklearn.config_context(enable_metadata_routing=True):
        base = Marked(seen).set_fit_request(mark=True).set_predict_request(mark=True)
        model = hg.BaggingClassifier(base, n_estimators=2, random_state=0).fit(X, y, mark=X[:, 0])
        for caller in (model.predict, model.predict_proba, model.predict_log_proba):
            caller(X, mark=X[:, 0])
        with pytest.raises(TypeError, match="other"):
            model.predict(X, other=1)
    assert [kind for kind, _, _ in seen] == ["fit"] * 2 + ["predict"] * 6
    for _, rows, mark in seen:
        np.testing.assert_array_equal(rows, mark)  # cut like the rows
    with pytest.raises(ValueError, match="metadata"):
        model.predict(X, mark=X[:, 0])


def test_log_probabilities_of_bagging(rng):
    X, y = table(rng)
    for base in (None, hg.LogisticRegression(), hg.LinearSVC(), hg.GaussianNB()):
        model = hg.BaggingClassifier(base, random_state=0).fit(X, y)
        with np.errstate(divide="ignore"):
            wanted = np.log(model.predict_proba(X))
        np.testing.assert_allclose(model.predict_log_proba(X), wanted, atol=1e-12)


# -- AdaBoost


class Unweighted(RegressorMixin, BaseEstimator):
    """The mean of y; ``fit`` takes no weights and returns nothing."""

    def fit(self, X, y):
        self.mean_, self.kind_ = float(np.mean(y)), type(X)

    def predict(self, X):
        return np.full(X.shape[0], self.mean_)


class Recording(ClassifierMixin, BaseEstimator):
    """The majority; records the type of X."""

    def fit(self, X, y, sample_weight=None):
        self.kind_, self.classes_ = type(X), np.unique(y)
        self.best_ = np.argmax(np.bincount(y, weights=sample_weight))
        return self

    def predict(self, X):
        return np.full(X.shape[0], self.best_)


def test_learners_without_weights_get_rows_drawn_by_them(rng):
    X, _ = table(rng)
    y = rng.gamma(1.0, size=len(X))
    model = hg.AdaBoostRegressor(Unweighted(), n_estimators=8, random_state=0).fit(X, y)
    again = hg.AdaBoostRegressor(Unweighted(), n_estimators=8, random_state=0).fit(X, y)
    assert len({m.mean_ for m in model.estimators_}) == len(model.estimators_) > 1
    np.testing.assert_array_equal(model.predict(X), again.predict(X))
    with pytest.raises(ValueError, match="doesn't support sample_weight"):
        hg.AdaBoostClassifier(make_pipeline(hg.LogisticRegression())).fit(X, y > 1)


@pytest.mark.parametrize("make", [scipy.sparse.csc_array, scipy.sparse.csr_array, scipy.sparse.csc_matrix])
def test_members_see_the_format_of_the_table(make, rng):
    X, y = table(rng)
    y[:60] = 1
    model = hg.AdaBoostClassifier(Recording(), n_estimators=1).fit(make(X), y)
    assert all(issubclass(m.kind_, make) for m in model.estimators_)


def test_a_first_member_no_better_than_chance_is_refused():
    X, y = np.ones((4, 2)), ["a", "b", "c", "d"]
    with pytest.raises(ValueError, match="worse than random"):
        hg.AdaBoostClassifier().fit(X, y)
    corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    with pytest.raises(ValueError, match="worse than random"):
        hg.AdaBoostClassifier().fit(corners, [0, 1, 1, 0])
    assert (
        hg.AdaBoostClassifier(hg.DecisionTreeClassifier(max_depth=2))
        .fit(corners, [0, 1, 1, 0])
        .score(corners, [0, 1, 1, 0])
    )


def test_members_may_take_arrays_of_more_dimensions(rng):
    X, y = rng.normal(size=(40, 3, 2)), np.repeat([0, 1], [10, 30])
    assert set(hg.AdaBoostClassifier(Recording(), n_estimators=2).fit(X, y).predict(X)) == {1}
    with pytest.raises(ValueError, match="dim"):
        hg.AdaBoostClassifier().fit(X, y)


# -- boosting


def test_validation_data_come_in_pairs_and_are_for_early_stopping(rng):
    X, y = table(rng)
    for name in HIST:
        model = getattr(hg, name)
        with pytest.raises(ValueError, match="X_val is provided, but y_val"):
            model().fit(X, y, X_val=X)
        with pytest.raises(ValueError, match="y_val is provided, but X_val"):
            model().fit(X, y, y_val=y)
        with pytest.raises(ValueError, match="early_stopping=False"):
            model(early_stopping=False).fit(X, y, X_val=X, y_val=y)


@pytest.mark.parametrize("scoring", [None, "loss"])
@pytest.mark.parametrize("name", HIST)
def test_a_fit_that_stopped_early_is_continued_by_the_same_rule(name, scoring, rng):
    X, y = table(rng, 400)
    model = getattr(hg, name)(
        max_iter=1000, early_stopping=True, n_iter_no_change=5, tol=1e-3, warm_start=True, scoring=scoring
    ).fit(X, y)
    first = model.n_iter_
    assert first < 1000
    model.fit(X, y)
    losses = model.validation_score_ if scoring == "loss" else -model.validation_score_
    stops = [stops_by_reference(list(losses[:t]), 5, 1e-3) for t in range(first, model.n_iter_ + 1)]
    assert model.n_iter_ > first
    assert len(losses) == model.n_iter_
    assert stops == [True, *[False] * (len(stops) - 2), True]


def test_rounds_in_two_fits_stop_where_they_would_in_one(rng):
    X, y = table(rng, 400)
    given = {"early_stopping": True, "n_iter_no_change": 5, "tol": 1e-3}
    once = hg.HistGradientBoostingClassifier(max_iter=500, **given).fit(X, y)
    twice = hg.HistGradientBoostingClassifier(max_iter=once.n_iter_ // 2, warm_start=True, **given).fit(X, y)
    twice.set_params(max_iter=500).fit(X, y)
    assert twice.n_iter_ == once.n_iter_
    np.testing.assert_allclose(twice.validation_score_, once.validation_score_)
    np.testing.assert_allclose(twice.decision_function(X), once.decision_function(X))


@pytest.mark.parametrize("name", ["GradientBoostingClassifier", "GradientBoostingRegressor"])
def test_members_have_the_limits_of_the_fit_that_grew_them(name, rng):
    X, y = table(rng)
    model = getattr(hg, name)(n_estimators=4, max_depth=1, warm_start=True).fit(X, y)
    model.set_params(n_estimators=6, max_depth=2).fit(X, y)
    assert [m.max_depth for m in model.estimators_[:, 0]] == [1, 1, 1, 1, 2, 2]
    assert len(model) == 6
    assert model[5, 0].get_depth() <= 2
    assert [row[0].max_depth for row in model] == [1, 1, 1, 1, 2, 2]


@pytest.mark.parametrize("name", [*HIST, "DecisionTreeClassifier", "RandomForestRegressor"])
def test_categories_have_no_order_to_be_monotone_in(name, rng):
    X, y = table(rng)
    X[:, 1] = rng.integers(0, 4, len(X))
    with pytest.raises(ValueError, match="Categorical features cannot have monotonic constraints"):
        getattr(hg, name)(categorical_features=[1], monotonic_cst=[0, 1, 0]).fit(X, y)
    getattr(hg, name)(categorical_features=[1], monotonic_cst=[1, 0, 0]).fit(X, y)


@pytest.mark.parametrize("name", [*HIST, "DecisionTreeRegressor"])
def test_codes_below_zero_are_missing_categories(name, rng):
    X = np.column_stack([rng.random(400), rng.integers(-1, 4, 400)])
    y = (X[:, 1] % 2 == 0).astype(int)
    missing = X.copy()
    missing[X[:, 1] < 0, 1] = np.nan
    a, b = (getattr(hg, name)(categorical_features=[1]).fit(T, y) for T in (X, missing))
    np.testing.assert_array_equal(a.predict(X), b.predict(missing))
    new = np.column_stack([np.zeros(3), [-1.0, np.nan, 30.0]])
    assert len(np.unique(a.predict(new))) == 1


# -- trees


def test_a_missing_value_that_training_did_not_see_goes_where_most_rows_went():
    X, y = np.arange(8.0)[:, None], np.repeat([1.0, 2.0], 4)
    for criterion in ("squared_error", "absolute_error", "poisson"):
        tree = hg.DecisionTreeRegressor(max_depth=1, criterion=criterion)
        assert tree.fit(X, y).predict([[np.nan]]) == 2.0  # as many on both sides: right, as in scikit-learn
        assert tree.fit(X[:7], y[:7]).predict([[np.nan]]) == 1.0
        assert tree.fit(X[1:], y[1:]).predict([[np.nan]]) == 2.0


def test_a_tree_that_sees_all_features_does_not_depend_on_the_seed(rng):
    X = np.repeat(rng.normal(size=(40, 1)), 3, axis=1)  # every split ties
    y = rng.normal(size=40)
    trees = [hg.DecisionTreeRegressor(random_state=seed).fit(X, y).tree_ for seed in range(5)]
    assert all(np.array_equal(t.feature, trees[0].feature) for t in trees)
    assert set(trees[0].feature) == {-2, 0}


def test_a_huge_limit_is_none(rng):
    X, y = table(rng)
    free = hg.DecisionTreeClassifier().fit(X, y)
    for limits in ({"max_leaf_nodes": 2**63 - 1}, {"max_depth": 2**40}):
        bound = hg.DecisionTreeClassifier(**limits).fit(X, y)
        assert bound.tree_.node_count == free.tree_.node_count


@pytest.mark.parametrize("name", ["DecisionTreeRegressor", "RandomForestRegressor", "ExtraTreesRegressor"])
def test_counts_are_not_negative_and_not_all_zero(name):
    for y, message in (([-1, 1, 3], "negative"), ([0, 0, 0], "Sum of y")):
        with pytest.raises(ValueError, match=f"{message}.*Poisson"):
            getattr(hg, name)(criterion="poisson").fit(np.arange(3.0)[:, None], y)


@pytest.mark.parametrize("name", FORESTS)
def test_sparse_targets_are_refused_by_name(name, rng):
    with pytest.raises(ValueError, match="sparse multilabel-indicator"):
        getattr(hg, name)().fit([[1, 2, 3]], scipy.sparse.csr_array([[4, 5, 6]]))


@pytest.mark.parametrize("name", ["DecisionTreeClassifier", "RandomForestClassifier", "DecisionTreeRegressor"])
def test_constraints_need_one_score(name, rng):
    X, _ = table(rng)
    with pytest.raises(ValueError, match="not supported with multiple output"):
        getattr(hg, name)(monotonic_cst=[1, 0, 0]).fit(X, rng.integers(0, 2, (len(X), 2)))
    if "Classifier" in name:
        with pytest.raises(ValueError, match="not supported with multiclass"):
            getattr(hg, name)(monotonic_cst=[1, 0, 0]).fit(X, rng.integers(0, 3, len(X)))


def test_a_tree_is_drawn_only_when_fitted():
    with pytest.raises(NotFittedError):
        hg.plots.plot_tree(hg.DecisionTreeRegressor())
