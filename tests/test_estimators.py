"""The laws every public estimator obeys. A new one is held to them by being public; see tests/kit/estimators.py."""

from __future__ import annotations

import copy
import pickle
import random
import time
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import PredefinedSplit
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import hinge as hg
from kit.estimators import (
    assert_close,
    assert_same,
    first_of_each_family,
    fitted,
    make_data,
    name,
    not_applicable,
    outputs,
    public_estimators,
    takes_weights,
)
from kit.rough import Child

ALL = public_estimators()
TABLES = [e for e in ALL if get_tags(e).input_tags.two_d_array]
FAMILIES = first_of_each_family(TABLES)

every = pytest.mark.parametrize("estimator", TABLES, ids=name)
every_weighted = pytest.mark.parametrize("estimator", [e for e in TABLES if takes_weights(e)], ids=name)
every_sparse = pytest.mark.parametrize("estimator", [e for e in TABLES if get_tags(e).input_tags.sparse], ids=name)
every_iterative = pytest.mark.parametrize("estimator", [e for e in TABLES if hasattr(e, "set_callbacks")], ids=name)
# Long ones: one estimator per family by default, the others with `make test-all`.
every_in_child = pytest.mark.parametrize(
    "index",
    [
        pytest.param(i, id=name(e), marks=() if any(e is f for f in FAMILIES) else pytest.mark.slow)
        for i, e in enumerate(ALL)
        if any(e is t for t in TABLES)
    ],
)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # the checks fit hopeless data too
@parametrize_with_checks(TABLES, expected_failed_checks=not_applicable)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@every_weighted
def test_a_weight_is_a_repetition(estimator):
    X, y = make_data(estimator)
    weight = np.random.default_rng(1).integers(0, 4, size=len(y))
    one, many = clone(estimator), clone(estimator)
    if "cv" in estimator.get_params(deep=False):  # copies of an example must fall in the same fold
        fold = np.arange(len(y)) % 3
        one.set_params(cv=PredefinedSplit(fold))
        many.set_params(cv=PredefinedSplit(np.repeat(fold, weight)))
    meaning = getattr(estimator, "weight_semantics", "repetition")
    weighted = fitted(one, X, y, sample_weight=weight)
    if meaning == "step":
        _weights_scale_steps(estimator, X, y, weight, weighted)
        return
    repeated = fitted(many, np.repeat(X, weight, axis=0), np.repeat(y, weight, axis=0))
    if meaning == "repetition":
        assert_close(outputs(weighted, X), outputs(repeated, X), 1e-3)
    else:
        # Drawn at random: the two are draws from one distribution, so neither beats the other by much.
        assert abs(weighted.score(X, y) - repeated.score(X, y)) < 0.15


def _weights_scale_steps(estimator, X, y, weight, weighted):
    """Zero is absent and one is no weight, bit for bit; counts lead to about as good a fit as copies."""
    there = weight > 0
    assert_same(outputs(weighted, X), outputs(fitted(estimator, X[there], y[there], sample_weight=weight[there]), X))
    assert_same(outputs(fitted(estimator, X, y, sample_weight=np.ones(len(y))), X), outputs(fitted(estimator, X, y), X))
    absent = fitted(estimator, X, y, sample_weight=there.astype(float))
    assert_same(outputs(absent, X), outputs(fitted(estimator, X[there], y[there]), X))
    repeated = fitted(estimator, np.repeat(X, weight, axis=0), np.repeat(y, weight, axis=0))
    assert abs(weighted.score(X, y, weight) - repeated.score(X, y, weight)) < 0.15


@every_weighted
def test_all_zero_weights_are_refused(estimator):
    X, y = make_data(estimator)
    with pytest.raises(ValueError, match=r"(?i)sample_weight|sample weights"):
        fitted(estimator, X, y, sample_weight=np.zeros(len(y)))


@every
def test_float32(estimator):
    """The same numbers in either precision give the same fit; linear models answer in the precision of the input."""
    X, y = make_data(estimator)
    X32 = X.astype(np.float32)
    single, double = fitted(estimator, X32, y), fitted(estimator, X, y)
    assert_close(outputs(single, X32), outputs(double, X), 1e-3)
    if hasattr(single, "coef_"):
        assert single.coef_.dtype == np.float32
        for method, value in outputs(single, X32).items():
            assert value.dtype.kind != "f" or value.dtype == np.float32, method


@every
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_dataframes(estimator, library):
    X, y = make_data(estimator)
    columns = [f"feature {j}" for j in range(X.shape[1])]
    frame = pytest.importorskip(library).DataFrame({column: X[:, j] for j, column in enumerate(columns)})
    model = fitted(estimator, frame, y)
    assert list(model.feature_names_in_) == columns
    assert_close(outputs(model, frame), outputs(fitted(estimator, X, y), X), 1e-6)


@every_sparse
def test_sparse_and_dense_agree(estimator):
    X, y = make_data(estimator)
    X[np.random.default_rng(2).random(X.shape) < 0.5] = 0.0
    dense = outputs(fitted(estimator, X, y), X)
    for make in (scipy.sparse.csr_array, scipy.sparse.csc_array, scipy.sparse.csr_matrix):
        S = make(X)
        assert_close(outputs(fitted(estimator, S, y), S), dense, 1e-3)


@every
def test_memory_order_does_not_matter(estimator):
    X, y = make_data(estimator)
    model = fitted(estimator, X, y)
    columns = np.asfortranarray(X)
    strided = np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2]
    for other in (columns, strided):
        assert_close(outputs(fitted(estimator, other, y), other), outputs(model, X), 1e-3)


@every
def test_same_bits_for_any_number_of_threads(estimator):
    cubic = type(estimator).__name__ in ("GaussianProcessClassifier", "GaussianProcessRegressor", "ForwardStagewise")
    X, y = make_data(estimator, n=300 if cubic else 1500)
    results = []
    try:
        for threads in (1, 2, 3, 7, 16):
            hg.set_num_threads(threads)
            results.append(outputs(fitted(estimator, X, y), X))
    finally:
        hg.set_num_threads(None)
    for other in results[1:]:
        assert_same(results[0], other)


@every
def test_fitting_twice_is_the_same(estimator):
    X, y = make_data(estimator)
    model = fitted(estimator, X, y)
    first = outputs(model, X)
    assert_same(first, outputs(model.fit(X, y), X))
    assert_same(first, outputs(fitted(estimator, X, y), X))


@every
def test_pickle_and_copy(estimator):
    X, y = make_data(estimator)
    model = fitted(estimator, X, y)
    before = outputs(model, X)
    assert_same(outputs(pickle.loads(pickle.dumps(model)), X), before)
    assert_same(outputs(copy.deepcopy(model), X), before)
    assert not [key for key in vars(clone(model)) if key.endswith("_")]


@every
def test_save_and_load(estimator, tmp_path):
    X, y = make_data(estimator)
    for model in (clone(estimator), fitted(estimator, X, y)):
        hg.save(model, tmp_path / "model.hinge")
        loaded = hg.load(tmp_path / "model.hinge")
        assert type(loaded) is type(model)
        assert repr(loaded) == repr(model)
        assert vars(loaded).keys() == vars(model).keys()
    assert_same(outputs(loaded, X), outputs(model, X))
    assert [p.name for p in tmp_path.iterdir()] == ["model.hinge"]


@every
def test_inputs_are_left_alone(estimator):
    X, y = make_data(estimator)
    w = np.random.default_rng(3).random(len(y)) if takes_weights(estimator) else None
    before = [copy.deepcopy(a) for a in (X, y, w)]
    parameters = pickle.dumps(estimator.get_params())
    model = clone(estimator)
    arguments = {} if w is None else {"sample_weight": w}
    outputs(model.fit(X, y, **arguments), X)
    for a, b in zip((X, y, w), before, strict=True):
        np.testing.assert_array_equal(a, b)
    assert pickle.dumps(clone(model).get_params()) == parameters


@every_sparse
def test_a_sparse_input_with_repeated_entries_is_left_alone(estimator):
    X, y = make_data(estimator)
    S = scipy.sparse.csr_array(X)
    halves = scipy.sparse.csr_array((np.repeat(S.data / 2, 2), np.repeat(S.indices, 2), 2 * S.indptr), shape=S.shape)
    model = fitted(estimator, halves, y)
    assert_close(outputs(model, halves), outputs(fitted(estimator, S, y), S), 1e-6)
    assert halves.nnz == 2 * S.nnz


@every_sparse
@pytest.mark.parametrize("make", [scipy.sparse.csr_array, scipy.sparse.csc_array], ids=["csr", "csc"])
def test_a_broken_sparse_matrix_is_refused(estimator, make):
    """Indices outside the matrix, where compiled code would write: refused in fit and after it, whatever the weights."""
    X, y = make_data(estimator, n=60)
    X[np.random.default_rng(2).random(X.shape) < 0.5] = 0.0
    model = fitted(estimator, make(X), y)
    weights = [None, np.append(0.0, np.ones(len(y) - 1))] if takes_weights(estimator) else [None]
    for part, value in (("indices", 10_000), ("indices", -1), ("indptr", 10_000_000)):
        broken = make(X)
        getattr(broken, part)[3] = value
        for weight in weights:
            with pytest.raises(ValueError, match="broken sparse matrix"):
                fitted(estimator, broken, y, sample_weight=weight)
        with pytest.raises(ValueError, match="broken sparse matrix"):
            outputs(model, broken)


@pytest.mark.parametrize("estimator", [e for e in TABLES if get_tags(e).estimator_type == "classifier"], ids=name)
def test_labels_of_any_kind(estimator):
    """The least and largest integers of a type, booleans, bytes in either order; what cannot be ordered is refused."""
    X, y = make_data(estimator, n=60, classes=2)
    second = y == np.unique(y)[1]
    wanted = fitted(estimator, X, second.astype(int)).predict(X)
    for kind in ("int8", "uint8", "int64", "uint64"):
        low, high = np.iinfo(kind).min, np.iinfo(kind).max
        model = fitted(estimator, X, np.where(second, np.array(high, kind), np.array(low, kind)))
        assert model.classes_.tolist() == [low, high]
        assert np.array_equal(model.predict(X) == model.classes_[1], wanted)
    near = fitted(estimator, X, np.where(second, np.uint64(2**63 + 5), np.uint64(2**63)))
    assert near.classes_.tolist() == [2**63, 2**63 + 5]
    for labels in (second, second.astype(">i4"), np.where(second, "b", "a").astype(">U1")):
        model = fitted(estimator, X, labels)
        assert np.array_equal(model.predict(X) == model.classes_[1], wanted)
    with pytest.raises(ValueError, match=r"cannot be put in order|label|missing|NaN|None|y "):
        fitted(estimator, X, np.where(second, "a", None).astype(object))


@every
def test_read_only_and_memory_mapped_inputs(estimator, tmp_path):
    X, y = make_data(estimator)
    before = outputs(fitted(estimator, X, y), X)
    X.setflags(write=False)
    y.setflags(write=False)
    assert_same(outputs(fitted(estimator, X, y), X), before)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert_same(outputs(fitted(estimator, mapped, y), mapped), before)


def _fit_or_clear_error(estimator, X, y):
    """Either finite answers or a ValueError with a message; anything else is a bug."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if np.abs(X).max() > 1e150:
            warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's, of the overflow that is then refused
        try:
            found = outputs(fitted(estimator, X, y), X)
        except ValueError as error:
            if len(str(error)) < 15:
                raise
            return
    for method, value in found.items():
        assert value.dtype.kind != "f" or np.all(np.isfinite(value)), method


@every
def test_bad_numbers_are_refused_by_name(estimator):
    X, y = make_data(estimator)
    for bad in (np.nan, np.inf):
        if np.isnan(bad) and get_tags(estimator).input_tags.allow_nan:
            continue
        broken = X.copy()
        broken[3, 1] = bad
        if getattr(estimator, "_takes_infinity", False):  # only its order matters
            found = outputs(fitted(estimator, broken, y), broken).values()
            assert all(v.dtype.kind != "f" or np.all(np.isfinite(v)) for v in found)
        else:
            with pytest.raises(ValueError, match=r"(?i)input X|X contains|X has"):
                fitted(estimator, broken, y)
        if y.dtype.kind == "f" and get_tags(estimator).target_tags.required:
            target = y.copy()
            target[3] = bad
            with pytest.raises(ValueError, match=r"(?i)y contains|input y"):
                fitted(estimator, X, target)
    with pytest.raises(ValueError, match="sample"):
        fitted(estimator, X[:0], y[:0])


@every
@pytest.mark.parametrize(
    "trouble",
    [
        "one sample",
        "two samples",
        "one class",
        "constant",
        "huge",
        "overflowing",
        "one overflowing",
        "tiny",
        "duplicate",
    ],
)
def test_extremes_give_finite_answers_or_a_clear_error(estimator, trouble):
    X, y = make_data(estimator, n=60)
    match trouble:
        case "one sample":
            X, y = X[:1], y[:1]
        case "two samples":
            X, y = X[:2], y[:2]
        case "one class":
            y = np.repeat(y[:1], len(y), axis=0)
        case "constant":
            X[:, 1:] = 1.0
        case "huge":
            X = X * 1e100
        case "overflowing":
            X = X * 1e300
        case "one overflowing":
            X[0, 0] = 1e308
        case "tiny":
            X = X * 1e-200
        case "duplicate":
            X[:, 1:] = X[:, :1]
    _fit_or_clear_error(estimator, X, y)


class Watcher:
    """A callback that counts, and stops after some iterations."""

    def __init__(self, stop_after: int = 10**9) -> None:
        self.stop_after, self.iterations, self.begun, self.ended = stop_after, 0, 0, 0

    def setup(self, estimator, context):
        self.begun += 1

    def teardown(self, estimator, context):
        self.ended += 1

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        if context.parent is not None:
            self.iterations += 1
            return self.iterations >= self.stop_after


@every_iterative
def test_callbacks_see_iterations_and_may_stop_them(estimator):
    X, y = make_data(estimator)
    free, once = Watcher(), Watcher(stop_after=1)
    plain = fitted(estimator, X, y)
    watched = clone(estimator).set_callbacks(free).fit(X, y)
    assert_same(outputs(watched, X), outputs(plain, X))
    assert free.iterations >= 1
    stopped = clone(estimator).set_callbacks(once).fit(X, y)
    assert once.iterations == 1
    outputs(stopped, X)
    for watcher in (free, once):
        assert watcher.begun == watcher.ended == 1


@every_iterative
def test_progress_bar(estimator, capsys):
    callback = pytest.importorskip("sklearn.callback", reason="callbacks came with scikit-learn 1.9")
    X, y = make_data(estimator)
    clone(estimator).set_callbacks(callback.ProgressBar()).fit(X, y)
    assert type(estimator).__name__ in capsys.readouterr().out


@pytest.mark.parametrize("estimator", [e for e in TABLES if "max_iter" in e.get_params(deep=False)], ids=name)
def test_iterative_estimators_take_callbacks(estimator):
    pytest.importorskip("sklearn.callback", reason="callbacks came with scikit-learn 1.9")
    assert hasattr(estimator, "set_callbacks")


@pytest.fixture(scope="module")
def nursery():
    """The child process, started again if a test had to kill it."""
    children: list[Child] = []

    def child() -> Child:
        if not children or children[-1].process.poll() is not None:
            children.append(Child())
        return children[-1]

    yield child
    for old in children:
        old.close()


@every_in_child
def test_ctrl_c_interrupts_a_long_fit(index, nursery):
    """KeyboardInterrupt arrives within a second (and a margin for a busy machine), and the next fit works."""
    child = nursery()
    delays = random.Random(index)
    for _ in range(2):
        assert child.ask("endless", index=index) == "started"
        time.sleep(delays.uniform(0.0, 0.4))
        sent = time.perf_counter()
        child.interrupt()
        assert child.hear() == "KeyboardInterrupt"
        assert time.perf_counter() - sent < 3.0
        assert child.ask("small", index=index) == "fitted"


@every_in_child
def test_fit_fork_fit(index, nursery):
    assert nursery().ask("fork", index=index) == 0


@every_in_child
def test_memory_stays_flat(index, nursery):
    """For as many fits as go into a few seconds; a leak of one small table per fit shows in fewer."""
    growth = nursery().ask("weigh", index=index, fits=500, seconds=4.0)
    assert max(growth) < 4e6, f"the process grew by {growth} bytes in the two halves"


@pytest.mark.slow
@every_in_child
def test_memory_stays_flat_over_500_fits(index, nursery):
    growth = nursery().ask("weigh", index=index, fits=500, seconds=100.0)
    assert max(growth) < 4e6, f"the process grew by {growth} bytes in the two halves of 500 fits"
