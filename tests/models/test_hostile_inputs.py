"""Tables in odd forms give the fit of the plain one; what cannot be fitted is refused in words that name the cause."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning

import hinge as hg

MODELS = [
    hg.LinearRegression(), hg.Ridge(), hg.RidgeCV(), hg.ElasticNetCV(alphas=5), hg.HuberRegressor(), hg.QuantileRegressor(),
    hg.LogisticRegression(), hg.LinearSVC(), hg.RidgeClassifier(), hg.SGDClassifier(random_state=0), hg.Perceptron(),
    hg.DecisionTreeClassifier(), hg.ExtraTreesRegressor(5), hg.RandomForestClassifier(5), hg.BaggingRegressor(n_estimators=3),
    hg.AdaBoostRegressor(n_estimators=3), hg.GradientBoostingRegressor(max_iter=3),
]  # fmt: skip
every = pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)


@pytest.fixture
def table():
    """Whole numbers, so that every type of number holds them; zeros among them."""
    rng = np.random.default_rng(0)
    X = np.round(4 * rng.normal(size=(60, 4)))
    return X, X[:, 0] - 2 * X[:, 1] + rng.normal(size=60)


def scores(model, X, y, **options):
    fitted = clone(model).fit(X, y > 0 if is_classifier(model) else y, **options)
    return np.asarray(fitted.decision_function(X) if hasattr(fitted, "decision_function") else fitted.predict(X), float)


def odd_forms(X):
    n, d = X.shape
    rows = np.arange(0, n * d + 1, d)
    columns = np.tile(np.arange(d), n)
    halves = np.repeat(X / 2, 2, axis=1).ravel()
    wide = np.zeros((n, 2 * d))
    wide[:, ::2] = X
    backwards = sp.csr_array((X[:, ::-1].ravel(), np.tile(np.arange(d)[::-1], n), rows), shape=X.shape)
    long = sp.csr_array(X)
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    return {
        "int8": X.astype(np.int8),
        "float16": X.astype(np.float16),
        "longdouble": X.astype(np.longdouble),
        "objects": X.astype(object),
        "numbers as text": X.astype(str).astype(object),
        "strided": wide[:, ::2],
        "mixed frame": pd.DataFrame({"a": X[:, 0].astype(np.int16), "b": X[:, 1].astype("f4"), "c": X[:, 2], "d": X[:, 3]}),
        "unsorted": backwards,
        "repeated entries": sp.csr_array((halves, np.repeat(columns, 2), 2 * rows), shape=X.shape),
        "explicit zeros": sp.csr_array((X.ravel(), columns, rows), shape=X.shape),
        "long indices": long,
        "coo": sp.coo_array(X),
    }  # fmt: skip


@every
def test_odd_forms_of_a_table_are_the_table(model, table):
    X, y = table
    plain = scores(model, X, y)
    for name, odd in odd_forms(X).items():
        np.testing.assert_allclose(scores(model, odd, y), plain, atol=1e-6 * np.abs(plain).max(), err_msg=name)
    bytes_ = (20 * np.abs(X)).astype(np.uint8)  # sums and products of them do not fit into a byte
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stochastic steps diverge on columns of this size
        narrow, wide = scores(model, bytes_, y), scores(model, bytes_.astype(float), y)
    np.testing.assert_allclose(narrow, wide, rtol=1e-5, atol=1e-6)


@every
def test_bad_weights_are_refused_and_tiny_ones_are_weights(model, table):
    X, y = table
    ones = np.ones(len(y))
    for bad in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match=r"(?i)weight"):
            scores(model, X, y, sample_weight=np.append(ones[1:], bad))
    for bad in (ones[1:], np.ones((len(y), 2))):
        with pytest.raises(ValueError, match=r"(?i)weight"):
            scores(model, X, y, sample_weight=bad)
    if isinstance(model, hg.Perceptron):  # its steps are as long as the weights
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # with sums of losses the penalty is then all there is
        assert np.all(np.isfinite(scores(model, X, y, sample_weight=1e-300 * ones)))


@every
@pytest.mark.parametrize("trouble", ["X", "y", "single precision"])
def test_overflow_is_reported_in_plain_words(model, table, trouble):
    """Either a finite fit, perhaps with a warning that its proof is missing, or an error that says what to rescale."""
    X, y = table
    if trouble == "X":
        X = X * 1e300
    elif trouble == "y":
        y = y * 1e300
    else:
        X = (X * 1e30).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if isinstance(model, hg.SGDClassifier):
            warnings.simplefilter("ignore", RuntimeWarning)  # its scores leave the range of single precision
        try:
            found = scores(model, X, y)
        except ValueError as error:
            assert "overflow" in str(error) or "too large" in str(error), error  # noqa: PT017
        else:
            assert np.all(np.isfinite(found)) or isinstance(model, hg.SGDClassifier)


@every
def test_masked_entries_are_refused(model, table):
    X, y = table
    labels = y > 0 if is_classifier(model) else y
    with pytest.raises(ValueError, match=r"X has masked entries.*X\.filled"):
        clone(model).fit(np.ma.masked_less(X, 0), labels)
    with pytest.raises(ValueError, match=r"y has masked entries"):
        clone(model).fit(X, np.ma.array(labels, mask=np.arange(len(y)) < 2))
    np.testing.assert_array_equal(scores(model, np.ma.array(X), y), scores(model, X, y))


@pytest.mark.parametrize("model", [hg.Ridge(), hg.SVC(), hg.GaussianNB(), hg.StandardScaler()], ids=repr)
def test_objects_that_are_no_numbers_are_refused_by_the_name_of_their_column(model):
    frame = pd.DataFrame({"a": [1.0, 2.0], "when": pd.date_range("2020", periods=2), "text": ["x", "y"]})
    with pytest.raises(TypeError, match=r"X must hold numbers.*Timestamp.*column 'when'.*TablePrep"):
        model.fit(frame, [0, 1])
    with pytest.raises(TypeError, match=r"X must hold numbers.*dict"):
        model.fit(np.array([[{}], [{}]], dtype=object), [0, 1])
