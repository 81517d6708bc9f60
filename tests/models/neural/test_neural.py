"""The network estimators as estimators: scikit-learn's contract, determinism, continuing, errors, displays."""

from __future__ import annotations

import inspect
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn import neural_network
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

import hinge as hg

QUIET = {
    "max_iter": 30,
    "learning_rate": "cosine",
    "learning_rate_init": 0.01,
}  # a schedule of fixed length never warns


# tests/test_estimators.py holds the stochastic solvers to the same checks.
@parametrize_with_checks([hg.MLPClassifier(10, "tanh", solver="lbfgs", alpha=1.0, tol=1e-2, max_iter=5000)])
def test_scikit_learn_contract(estimator: object, check: object) -> None:
    check(estimator)


@pytest.mark.parametrize("kind", ["MLPClassifier", "MLPRegressor"])
def test_parameters_and_defaults_are_scikit_learns(kind: str) -> None:
    ours = inspect.signature(getattr(hg, kind)).parameters
    theirs = inspect.signature(getattr(neural_network, kind)).parameters
    assert [p for p in theirs if p not in ours] == []
    assert all(ours[name].default == theirs[name].default for name in theirs)
    positional = [n for n, p in theirs.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert [n for n, p in ours.items() if p.kind is p.POSITIONAL_OR_KEYWORD] == positional


def blobs(n: int = 400, d: int = 6, k: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    centres = 2.0 * rng.normal(size=(k, d))
    y = rng.integers(k, size=n)
    return centres[y] + rng.normal(size=(n, d)), y


@pytest.mark.parametrize("solver", ["adam", "sgd", "lbfgs"])
def test_same_start_and_objective_as_scikit_learn(solver: str) -> None:
    """Same initial weights, full batches: the same path as scikit-learn's, so the same weights."""
    X, y = blobs(100)
    settings = {
        "hidden_layer_sizes": (7, 5), "activation": "tanh", "solver": solver, "max_iter": 15, "random_state": 0,
        "alpha": 0.3, "learning_rate_init": 0.01,
    }  # fmt: skip
    with pytest.warns(ConvergenceWarning):
        ours = hg.MLPClassifier(**settings).fit(X, y)
    with pytest.warns(ConvergenceWarning):
        theirs = neural_network.MLPClassifier(**settings).fit(X, y)
    rtol = 1e-4 if solver == "lbfgs" else 1e-8
    for a, b in zip(ours.coefs_ + ours.intercepts_, theirs.coefs_ + theirs.intercepts_):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-6 if solver == "lbfgs" else 1e-9)
    assert ours.loss_ == pytest.approx(theirs.loss_, rel=0.05)
    assert ours.out_activation_ == theirs.out_activation_ == "softmax"
    assert ours.n_layers_ == theirs.n_layers_


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("extras", [{}, {"dropout": 0.3, "clip_norm": 1.0, "activation": "gelu"}])
def test_same_bits_for_any_number_of_threads(extras: dict, sparse: bool) -> None:
    X, y = blobs(1000, 40)
    X = scipy.sparse.csr_array(np.where(np.abs(X) > 1, X, 0.0)) if sparse else X
    fits = []
    try:
        for threads in (1, 2, 3):
            hg.set_num_threads(threads)
            fits.append(hg.MLPClassifier((150, 120), batch_size=128, max_iter=3, random_state=0, tol=0.0,
                                         learning_rate="step", **extras).fit(X, y))  # fmt: skip
    finally:
        hg.set_num_threads(None)
    for other in fits[1:]:
        for a, b in zip(fits[0].coefs_ + fits[0].intercepts_, other.coefs_ + other.intercepts_):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(fits[0].predict_proba(X), other.predict_proba(X))
    assert fits[0].coefs_[0].dtype == np.float32


@pytest.mark.parametrize("width", [1, 7, 16, 33, 48, 100])
def test_single_precision_agrees_with_double(width: int) -> None:
    """Widths that are and are not multiples of a vector, dense and sparse."""
    X, y = blobs(200, 13)
    fits = {
        (precision, sparse): hg.MLPClassifier(
            (width, width), batch_size=50, precision=precision, solver="sgd", random_state=0, max_iter=3,
            learning_rate="step",
        ).fit(scipy.sparse.csr_array(X) if sparse else X, y)
        for precision in ("float32", "float64")
        for sparse in (False, True)
    }  # fmt: skip
    reference = fits["float64", False].predict_proba(X)
    for (precision, _), fit in fits.items():
        np.testing.assert_allclose(fit.predict_proba(X), reference, atol=1e-4 if precision == "float32" else 1e-10)


def test_data_types_give_the_same_network() -> None:
    import pandas as pd

    pl = pytest.importorskip("polars")
    X, y = blobs(300, 5)
    X = X.astype(np.float32)
    labels = np.array(["a", "b", "c"])[y]
    frame = {f"x{j}": X[:, j] for j in range(5)}
    kinds = [X, X.astype(np.float64), np.asfortranarray(X), pd.DataFrame(frame), pl.DataFrame(frame),
             scipy.sparse.csr_matrix(X), scipy.sparse.csc_array(X), np.repeat(X, 2, axis=0)[::2]]  # fmt: skip
    fits = [hg.MLPClassifier(20, random_state=1, **QUIET).fit(kind, labels) for kind in kinds]
    for fit, kind in zip(fits, kinds):
        np.testing.assert_allclose(fit.predict_proba(kind), fits[0].predict_proba(X), atol=1e-5)
        assert set(fit.classes_) == {"a", "b", "c"}


@pytest.mark.parametrize("solver", ["adam", "sgd", "lbfgs"])
def test_weights_are_repetitions_when_a_batch_holds_all_data(solver: str) -> None:
    X, y = blobs(30)
    weight = np.random.default_rng(0).integers(0, 4, 30)
    settings = {"hidden_layer_sizes": 10, "solver": solver, "alpha": 0.5, "random_state": 0, "max_iter": 40}
    settings |= {} if solver == "lbfgs" else {"learning_rate": "cosine"}
    if solver == "lbfgs":
        settings |= {"max_iter": 1000, "tol": 1e-3}
    weighted = hg.MLPClassifier(**settings).fit(X, y, sample_weight=weight)
    repeated = hg.MLPClassifier(**settings).fit(X.repeat(weight, axis=0), y.repeat(weight))
    np.testing.assert_allclose(
        weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-3 * (solver == "lbfgs") + 1e-8
    )


def test_class_weight_is_sample_weight() -> None:
    X, y = blobs(200)
    by_class = {0: 1.0, 1: 3.0, 2: 0.5}
    a = hg.MLPClassifier(10, class_weight=by_class, random_state=0, **QUIET).fit(X, y)
    b = hg.MLPClassifier(10, random_state=0, **QUIET).fit(X, y, sample_weight=np.array([1.0, 3.0, 0.5])[y])
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))
    hg.MLPClassifier(10, class_weight="balanced", random_state=0, **QUIET).fit(X, y)


def test_partial_fit_goes_on_exactly_where_fit_would() -> None:
    X, y = blobs(300)
    settings = {"hidden_layer_sizes": 12, "random_state": 0, "dropout": 0.2}
    together = hg.MLPClassifier(max_iter=4, n_iter_no_change=9, **settings)
    with pytest.warns(ConvergenceWarning):
        together.fit(X, y)
    apart = hg.MLPClassifier(**settings)
    for _ in range(4):
        apart = pickle.loads(pickle.dumps(apart.partial_fit(X, y, classes=[0, 1, 2])))
    for a, b in zip(together.coefs_, apart.coefs_):
        np.testing.assert_array_equal(a, b)
    assert apart.n_iter_ == 4
    assert apart.loss_curve_ == together.loss_curve_
    with pytest.raises(ValueError, match="not among the classes"):
        apart.partial_fit(X, y + 1)
    with pytest.raises(ValueError, match="classes must be given"):
        hg.MLPClassifier().partial_fit(X, y)


def test_warm_start_continues_and_checks_the_shape() -> None:
    X, y = blobs(300)
    net = hg.MLPClassifier(12, warm_start=True, random_state=0, **QUIET).fit(X, y)
    first = net.loss_
    assert net.fit(X, y).loss_curve_[0] < 1.3 * first
    cold = hg.MLPClassifier(12, random_state=0, **QUIET).fit(X, y)
    assert cold.loss_curve_[0] > 2 * first
    with pytest.raises(ValueError, match="warm_start"):
        net.set_params(hidden_layer_sizes=13).fit(X, y)


def test_several_labels_and_several_targets() -> None:
    X, _ = blobs(400, 6)
    labels = (X[:, :3] > 0).astype(int)
    net = hg.MLPClassifier(30, random_state=0, max_iter=60, learning_rate="cosine", learning_rate_init=0.01)
    net.fit(X, labels)
    assert net.predict(X).shape == labels.shape
    assert (net.predict(X) == labels).mean() > 0.95
    assert net.predict_proba(X).shape == labels.shape
    assert net.out_activation_ == "logistic"
    Y = np.column_stack([X[:, 0] ** 2, X[:, 1] * X[:, 2]]) / 4
    regressor = hg.MLPRegressor(
        hidden_layer_sizes=(40, 40), random_state=0, max_iter=150, learning_rate="one_cycle", learning_rate_init=0.01
    ).fit(X, Y)
    assert regressor.score(X, Y) > 0.95
    assert regressor.predict(X).shape == Y.shape


def test_margin_losses_have_scores_but_no_probabilities() -> None:
    X, y = blobs(300)
    net = hg.MLPClassifier(20, loss=hg.Hinge(), random_state=0, **QUIET).fit(X, y)
    assert net.decision_function(X).shape == (300, 3)
    assert net.score(X, y) > 0.8
    assert not hasattr(net, "predict_proba")
    assert hasattr(hg.MLPClassifier(), "predict_proba")


def test_regression_losses_estimate_what_they_should(capfd) -> None:
    """Constant inputs: the quantile loss learns the quantile, the Poisson loss the mean."""
    rng = np.random.default_rng(0)
    X, y = np.ones((2000, 1)), rng.poisson(3.0, 2000).astype(float)
    settings = {"hidden_layer_sizes": (), "random_state": 0, "learning_rate": "cosine", "learning_rate_init": 0.3}
    noisy = y + rng.uniform(-0.5, 0.5, 2000)
    upper = hg.MLPRegressor(hg.Quantile(0.9), max_iter=50, **settings).fit(X, noisy)
    assert np.mean(noisy <= upper.predict(X)) == pytest.approx(0.9, abs=0.02)
    mean = hg.MLPRegressor("poisson", (), solver="lbfgs", alpha=0.0, tol=1e-8).fit(X, y)
    assert mean.predict(X[:1])[0] == pytest.approx(y.mean(), rel=1e-6)
    assert mean.out_activation_ == "exp"
    assert "illegal" not in capfd.readouterr().out  # BLAS reports it there, and skips the product


def test_a_loss_written_in_python() -> None:
    class Pinball:
        def value(self, y: np.ndarray, s: np.ndarray) -> np.ndarray:
            return np.log(np.cosh(s - y))

        def gradient(self, y: np.ndarray, s: np.ndarray) -> np.ndarray:
            return np.tanh(s - y)

    X, _ = blobs(250)
    y = X[:, 0]
    ours = hg.MLPRegressor(hg.LogCosh(), 10, random_state=0, **QUIET).fit(X, y)
    theirs = hg.MLPRegressor(Pinball(), 10, random_state=0, **QUIET).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-3)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"activation": "step"}, "'activation' parameter"),
        ({"solver": "newton"}, "'solver' parameter"),
        ({"learning_rate": "fast"}, "'learning_rate' parameter"),
        ({"hidden_layer_sizes": (5, 0)}, "hidden_layer_sizes"),
        ({"alpha": -1.0}, "alpha"),
        ({"dropout": 1.0}, "dropout"),
        ({"batch_size": 0}, "batch_size"),
        ({"max_iter": 0}, "max_iter"),
        ({"momentum": 2.0}, "momentum"),
        ({"clip_norm": 0.0}, "clip_norm"),
        ({"precision": "half"}, "precision"),
        ({"solver": "lbfgs", "dropout": 0.5}, "dropout"),
        ({"loss": hg.Squared()}, "MLPClassifier needs a loss for classes"),
    ],
)
def test_wrong_parameters_are_named(settings: dict, words: str) -> None:
    X, y = blobs(20)
    with pytest.raises(ValueError, match=words):
        hg.MLPClassifier(**settings).fit(X, y)


def test_wrong_data_is_explained() -> None:
    X, y = blobs(20)
    with pytest.raises(ValueError, match="out of range"):
        hg.MLPRegressor("poisson").fit(X, -np.ones(20))
    with pytest.raises(ValueError, match="'loss' parameter"):
        hg.MLPRegressor("hinge").fit(X, y)
    with pytest.raises(ValueError, match="use MLPClassifier"):
        hg.MLPRegressor(hg.Hinge()).fit(X, y)
    with pytest.raises(ValueError, match="zero"):
        hg.MLPClassifier().fit(X, y, sample_weight=np.zeros(20))
    with pytest.raises(ValueError, match="diverged"):
        hg.MLPRegressor(solver="sgd", learning_rate_init=1e6, max_iter=50).fit(1e3 * X, y)
    with pytest.raises(TypeError, match=r"takes hg\.L2"):
        hg.Learner(hg.Network(), penalty=hg.L1(0.1)).fit(X, y)


@pytest.mark.parametrize(
    "wrong", [{"activation": "step"}, {"dropout": 1.0}, {"batch_size": 0}, {"batch_size": 1.5}, {"learning_rate": 0.0}]
)
def test_settings_of_a_space_outside_their_range_are_named(wrong, rng):
    (name,) = wrong
    with pytest.raises(
        ValueError, match=f"The '{name}' parameter of Network must be .* Got {next(iter(wrong.values()))!r}"
    ):
        hg.Learner(hg.Network((3,), **wrong)).fit(rng.normal(size=(20, 2)), rng.normal(size=20))


def test_a_space_names_its_solvers(rng):
    with pytest.raises(ValueError, match=r"The 'solver' parameter of Network must be .*'adam'.* Got 'newton'"):
        hg.Learner(hg.Network((3,)), solver="newton").fit(rng.normal(size=(20, 2)), rng.normal(size=20))


def test_displays(capsys: pytest.CaptureFixture) -> None:
    import matplotlib.pyplot as plt

    X, y = blobs(200)
    net = hg.MLPClassifier(
        (20, 10), early_stopping=True, dropout=0.1, verbose=True, random_state=0, max_iter=5, learning_rate="cosine"
    ).fit(X, y)
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 5
    assert shown[-1].startswith("Iteration 5/5, loss = ")
    assert "validation score" in shown[-1]
    lines = net.summary().splitlines()
    assert lines[1].split() == ["1", "6", "20", "relu,", "dropout", "0.1", "140"]
    assert lines[3].split() == ["output", "10", "3", "softmax", "33"]
    assert lines[4].split()[:2] == ["total", "383"]
    ax = net.plot_history()
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), net.loss_curve_)
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), net.history_.validation_loss)
    figure, given = plt.subplots()
    assert hg.MLPClassifier(5, random_state=0, **QUIET).fit(X, y).plot_history(given) is given
    plt.close(figure)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", [hg.MLPRegressor(max_iter=300), hg.Learner(hg.Network((8,)), hg.Squared())])
def test_columns_far_from_zero_are_named(model, rng):
    X = rng.normal(size=(200, 3))
    y = X @ np.ones(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        clone(model).fit(X + np.array([50.0, 0.0, 0.0]), y)
        clone(model).fit(np.column_stack([X, np.full(200, 1e6)]), y)  # a constant column says nothing, far or near
        seldom = 1e3 + 1e-3 * X[:, 0]
        seldom[1::3] -= 1e3  # what a few rows make of it may be wrong: the sentence is about all rows
        clone(model).fit(np.column_stack([X, seldom]), y)
    with pytest.warns(UserWarning, match=r"The mean of column 1 is .* times its deviation: networks learn little"):
        clone(model).fit(X + np.array([0.0, 1000.0, 0.0]), y)


def test_training_that_ends_above_the_loss_of_a_constant_is_reported(rng):
    """With targets of 1e-6 every loss is below tol: training ends at the random weights it began with."""
    X = rng.normal(size=(300, 3))
    y = X @ np.ones(3)
    model = hg.MLPRegressor(random_state=0)
    with pytest.warns(ConvergenceWarning, match="the best constant has"):
        model.fit(X, 1e-6 * y)
    assert model.score(X, 1e-6 * y) < 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(model).set_params(tol=1e-2).fit(X, y)
