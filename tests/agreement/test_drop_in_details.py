"""Small things that scikit-learn's users rely on, of kernel machines, networks, naive Bayes, scalers and isotonic fits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError

import hinge as hg


@pytest.fixture
def table(rng):
    y = np.arange(60) % 3
    return rng.normal(size=(60, 3)) + 2.0 * np.eye(3)[y], y


@pytest.mark.parametrize("cls", [hg.SVC, hg.NuSVC])
def test_ties_between_classes(cls, table, rng):
    """Votes alone decide by default, and the first class wins a tie; ``break_ties`` takes the highest score."""
    X, y = table
    Z = rng.normal(size=(500, 3))
    broken = cls(break_ties=True).fit(X, y)
    np.testing.assert_array_equal(broken.predict(Z), np.argmax(broken.decision_function(Z), axis=1))
    plain = cls().fit(X, y)
    pairs = cls(decision_function_shape="ovo").fit(X, y).decision_function(Z)
    votes = np.zeros((500, 3))
    for column, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
        votes[:, i] += pairs[:, column] > 0
        votes[:, j] += pairs[:, column] <= 0
    np.testing.assert_array_equal(plain.predict(Z), np.argmax(votes, axis=1))
    with pytest.raises(ValueError, match="break_ties must be False"):
        cls(break_ties=True, decision_function_shape="ovo").fit(X, y).predict(Z)


def test_probabilities_need_a_fit_with_them(table):
    X, y = table
    model = hg.SVC().fit(X, y)
    model.probability = True
    with pytest.raises(NotFittedError, match="probability=False"):
        model.predict_proba(X)


@pytest.mark.parametrize("storage", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("cls", [hg.SVC, hg.NuSVC, hg.SVR, hg.NuSVR, hg.OneClassSVM])
def test_weights_of_a_kernel_machine_are_read_only(cls, storage, table):
    X, y = table
    w = cls(kernel="linear").fit(storage(X), y).coef_
    with pytest.raises(ValueError, match="read-only"):
        (w.data if scipy.sparse.issparse(w) else w)[...] = 0.0


def test_networks(table):
    X, y = table
    options = {"solver": "lbfgs", "max_iter": 5, "tol": 1.0}
    model = hg.MLPClassifier(4, warm_start=True, **options).fit(X, y)
    with pytest.raises(ValueError, match="same classes"):
        model.fit(X, y % 2)
    with pytest.raises(ValueError, match="validation set is too small"):
        hg.MLPRegressor(early_stopping=True).fit(X[:3], y[:3])
    step = {"hidden_layer_sizes": 3, "solver": "sgd", "batch_size": 60, "random_state": 0}  # a whole number is a rate
    one, same = (hg.MLPRegressor(learning_rate_init=rate, **step).partial_fit(X, y / 100) for rate in (1, 1.0))
    np.testing.assert_array_equal(one.coefs_[0], same.coefs_[0])


def test_a_smoothing_that_is_raised_is_reported():
    X, y = np.array([[1, 0], [1, 1]]), [0, 1]
    with pytest.warns(UserWarning, match="setting alpha = 1.0e-10"):
        hg.BernoulliNB(alpha=0.0, force_alpha=False).fit(X, y)
    hg.BernoulliNB(alpha=1e-3, force_alpha=False).fit(X, y)


def test_half_precision_stays(rng):
    X = rng.normal(1000.0, 1.0, size=(50, 2)).astype(np.float16)
    scaler = hg.StandardScaler().fit(X)
    Z = scaler.transform(X)
    assert Z.dtype == np.float16
    np.testing.assert_allclose(Z, (X.astype(float) - scaler.mean_) / scaler.scale_, atol=2e-3)
    assert scaler.inverse_transform(Z).dtype == np.float16


def test_isotonic_lines_of_infinite_slope():
    model = hg.IsotonicRegression().fit([0.0, 4.1e-320, 4.4e-314, 1.0], [0.42, 0.42, 0.44, 0.44])
    f = model.predict([0.0, 2.1e-319, 2.2e-314, 1e-10])
    np.testing.assert_allclose(f, [0.42, 0.42, 0.43, 0.44], rtol=1e-6)
