"""Small things that code written for scikit-learn relies on: shapes, limits of zero, members, warnings."""

from __future__ import annotations

import io

import numpy as np
import pytest
import scipy.sparse
from sklearn import ensemble, gaussian_process, linear_model, mixture, preprocessing
from sklearn.covariance import LedoitWolf
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction import text

import hinge as hg


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("classes", [2, 3])
def test_no_iterations_leave_the_weights_at_zero(rng, classes, fit_intercept):
    X, y = rng.normal(size=(40, 3)), np.arange(40) % classes
    with pytest.warns(ConvergenceWarning):
        model = hg.LogisticRegression(max_iter=0, fit_intercept=fit_intercept).fit(X, y)
    np.testing.assert_array_equal(model.n_iter_, [0])
    np.testing.assert_array_equal(model.coef_, 0.0)
    np.testing.assert_allclose(model.predict_proba(X), 1.0 / classes)


@pytest.mark.parametrize("classes", [2, 3])
def test_iterations_of_every_fold(rng, classes):
    X, y = rng.normal(size=(60, 3)), np.arange(60) % classes
    options = {"Cs": 4, "l1_ratios": (0.0, 0.5), "cv": 2}
    ours = hg.LogisticRegressionCV(**options).fit(X, y)
    assert ours.n_iter_.shape == (2, 2, 4)
    theirs = linear_model.LogisticRegressionCV(
        **options, solver="saga", tol=1e-1, use_legacy_attributes=False, scoring="neg_log_loss"
    ).fit(X, y)
    assert ours.n_iter_.shape == theirs.n_iter_.shape


@pytest.mark.parametrize("columns", [None, 1, 3])
@pytest.mark.parametrize("normalize_y", [False, True])
def test_one_column_of_targets_of_a_process_is_a_vector(rng, columns, normalize_y):
    X, Z = rng.normal(size=(9, 4)), rng.normal(size=(7, 4))
    y = rng.normal(size=9 if columns is None else (9, columns))
    ours = hg.GaussianProcessRegressor(normalize_y=normalize_y).fit(X, y)
    theirs = gaussian_process.GaussianProcessRegressor(normalize_y=normalize_y).fit(X, y)
    for option in ({"return_std": True}, {"return_cov": True}):
        assert [a.shape for a in ours.predict(Z, **option)] == [b.shape for b in theirs.predict(Z, **option)]
    assert ours.sample_y(Z, 5).shape == theirs.sample_y(Z, 5).shape


def test_a_process_counts_its_targets(rng):
    with pytest.raises(ValueError, match="number of targets seen"):
        hg.GaussianProcessRegressor(n_targets=1).fit(rng.normal(size=(9, 2)), rng.normal(size=(9, 2)))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # a start may have idle components
@pytest.mark.parametrize("init", ["kmeans", "random", "k-means++"])
def test_a_mixture_without_steps_is_its_start(rng, init):
    X = rng.normal(size=(50, 2))
    model = hg.GaussianMixture(3, max_iter=0, init_params=init, random_state=0).fit(X)
    assert model.n_iter_ == 0
    assert not model.converged_
    assert model.means_.shape == (3, 2)
    means = rng.normal(size=(3, 2))
    given = {"max_iter": 0, "means_init": means, "random_state": 0}
    np.testing.assert_allclose(
        hg.GaussianMixture(3, **given).fit(X).means_, mixture.GaussianMixture(3, **given).fit(X).means_
    )


class Silent(LedoitWolf):
    """An estimator of covariances whose fit returns nothing."""

    def fit(self, X, y=None):
        super().fit(X)


@pytest.mark.parametrize("name", ["LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis"])
def test_covariance_estimators_need_not_return_themselves(rng, name):
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 3
    solver = {"solver": "lsqr"} if name.startswith("Linear") else {"solver": "eigen"}
    fits = [
        getattr(hg, name)(**solver, covariance_estimator=kind()).fit(X, y).predict_proba(X)
        for kind in (Silent, LedoitWolf)
    ]
    np.testing.assert_array_equal(*fits)
    with pytest.raises(ValueError, match="covariance_ attribute"):
        getattr(hg, name)(**solver, covariance_estimator=hg.StandardScaler()).fit(X, y)


@pytest.mark.parametrize("name", ["RandomForestClassifier", "ExtraTreesClassifier"])
def test_several_labels_out_of_the_bag(rng, name):
    X = rng.normal(size=(150, 4))
    Y = (X[:, :3] > 0).astype(int)
    options = {"n_estimators": 40, "bootstrap": True, "oob_score": True, "random_state": 0}
    ours, theirs = getattr(hg, name)(**options).fit(X, Y), getattr(ensemble, name)(**options).fit(X, Y)
    assert ours.oob_decision_function_.shape == theirs.oob_decision_function_.shape
    assert ours.oob_score_ == pytest.approx(theirs.oob_score_, abs=0.15)
    right = np.all(ours.oob_decision_function_.argmax(axis=1) == Y, axis=1)
    assert ours.oob_score_ == pytest.approx(right.mean())
    with pytest.raises(ValueError, match="cannot be used to compute OOB"):
        getattr(hg, name)(**options).fit(X, np.column_stack([Y[:, 0], np.arange(150) % 3]))


@pytest.mark.parametrize("average", [0.0, 1e-10, 1.0, 1e10])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
def test_nearly_constant_columns_are_left_alone_or_scaled_alike(average, dtype, kind):
    """The bound is that of the rounding errors of a variance in double precision."""
    scales = np.array([10.0**i for i in range(-30, 19)], dtype=dtype)
    X = np.vstack([np.tile(average + s * scales, (10, 1)) for s in (-1, 1)]).astype(dtype)
    ours = hg.StandardScaler(with_mean=False).fit(kind(X))
    theirs = preprocessing.StandardScaler(with_mean=False).fit(kind(X))
    sure = scales > 1e-19  # the squares of smaller ones underflow in scikit-learn's sums of float32
    np.testing.assert_allclose(ours.scale_[sure], theirs.scale_[sure], rtol=1e-3 if dtype == np.float32 else 1e-6)


TEXTS = ["the red car", "a Blue car", "the blue sky"]


@pytest.mark.parametrize("name", ["CountVectorizer", "TfidfVectorizer"])
def test_inverse_transform_gives_the_terms(name):
    ours, theirs = getattr(hg, name)(), getattr(text, name)()
    Z = ours.fit_transform(TEXTS)
    for a, b in zip(ours.inverse_transform(Z), theirs.fit(TEXTS).inverse_transform(theirs.transform(TEXTS))):
        assert sorted(a) == sorted(b)
    assert not ours.fixed_vocabulary_
    given = getattr(hg, name)(vocabulary={"red", "blue"})
    assert list(given.get_feature_names_out()) == ["blue", "red"]
    assert given.fixed_vocabulary_
    with pytest.raises(ValueError, match="empty vocabulary"):
        getattr(hg, name)(vocabulary=[]).fit(TEXTS)


@pytest.mark.parametrize("analyzer", ["word", "char", "char_wb"])
def test_analyzers_read_what_the_vectorizer_reads(analyzer):
    options = {"analyzer": analyzer, "ngram_range": (1, 2)}
    ours, theirs = hg.CountVectorizer(**options), text.CountVectorizer(**options)
    for document in (TEXTS[1], TEXTS[1].encode()):
        assert sorted(ours.build_analyzer()(document)) == sorted(theirs.build_analyzer()(document))
    files = (hg.CountVectorizer(input="file", **options), text.CountVectorizer(input="file", **options))
    terms = [sorted(v.build_analyzer()(io.StringIO(TEXTS[1]))) for v in files]
    assert terms[0] == terms[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stop_words": ["a"], "analyzer": "char"}, "'stop_words' will not be used since 'analyzer' != 'word'"),
        ({"tokenizer": str.split, "analyzer": "char"}, "'tokenizer' will not be used"),
        ({"token_pattern": r"\w+", "tokenizer": str.split}, "'token_pattern' will not be used since 'tokenizer'"),
        ({"ngram_range": (1, 2), "analyzer": str.split}, "'ngram_range' will not be used since 'analyzer' is callable"),
        ({"preprocessor": str.upper, "analyzer": str.split}, "'preprocessor' will not be used"),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["CountVectorizer", "TfidfVectorizer", "HashingVectorizer"])
def test_idle_parameters_are_named(name, options, message):
    with pytest.warns(UserWarning, match=message):
        getattr(hg, name)(**options).fit(TEXTS)


FORESTS = ["RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor"]


@pytest.mark.parametrize("name", FORESTS)
def test_samples_of_forests(rng, name):
    """More draws than rows; no sample without bootstrap; a tree before the fit; rows that are in every bag."""
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    forest = getattr(hg, name)
    assert forest(10, bootstrap=True, max_samples=1.5).fit(X, y).score(X, y) > 0
    assert forest(10, bootstrap=True, max_samples=90).fit(X, y).score(X, y) > 0
    assert isinstance(forest().estimator, getattr(hg, type(forest().estimator_).__name__))
    with pytest.raises(ValueError, match="bootstrap=False"):
        forest(bootstrap=False, max_samples=0.5).fit(X, y)
    with pytest.warns(UserWarning, match="Some inputs do not have OOB scores"):
        forest(1, bootstrap=True, oob_score=True).fit(X, y)


@pytest.mark.parametrize("name", ["BaggingClassifier", "BaggingRegressor"])
def test_samples_of_bags(rng, name):
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    bag = getattr(hg, name)
    assert len(bag(n_estimators=3, max_samples=90).fit(X, y).estimators_samples_[0]) == 90
    with pytest.raises(ValueError, match="max_samples must be at most 60"):
        bag(n_estimators=3, max_samples=90, bootstrap=False).fit(X, y)
    with pytest.warns(UserWarning, match="Some inputs do not have OOB scores"):
        bag(n_estimators=1, oob_score=True).fit(X, y)


@pytest.mark.parametrize("alpha", [0.0, 1e-3, 1.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_multi_task_net_without_norms_of_rows_is_ridge(rng, alpha, fit_intercept):
    """l1_ratio=0:  ‖Y − XW − b‖²/(2n) + α/2·‖W‖² is ridge regression of strength nα."""
    X, Y = rng.normal(size=(40, 3)), rng.normal(size=(40, 2))
    net = hg.MultiTaskElasticNet(alpha, l1_ratio=0, fit_intercept=fit_intercept, tol=1e-10).fit(X, Y)
    ridge = linear_model.Ridge(40 * alpha, fit_intercept=fit_intercept).fit(X, Y)
    np.testing.assert_allclose(net.coef_, ridge.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(net.intercept_, ridge.intercept_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_monotone_sequences_keep_their_precision(rng, dtype):
    assert hg.isotonic_regression(rng.normal(size=9).astype(dtype), y_min=-1.0).dtype == dtype


@pytest.mark.parametrize("name", ["BayesianRidge", "ARDRegression"])
def test_covariances_keep_their_precision(rng, name):
    X = rng.normal(size=(40, 3)).astype(np.float32)
    model = getattr(hg, name)().fit(X, X[:, 0])
    assert {a.dtype for a in (model.coef_, model.sigma_, model.predict(X))} == {np.dtype(np.float32)}
