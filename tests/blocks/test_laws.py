"""The laws of fits over blocks, for every estimator that takes a source."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from cases import CASES, data
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import hinge as hg
from hinge.models.blocks.fit import INSTEAD, fitter_of, takers
from kit.frames import in_library

EVERY = pytest.mark.parametrize("case", CASES, ids=repr)
BLOCK = 97


@pytest.fixture(autouse=True)
def small_samples(monkeypatch):
    """Samples of a quarter of the rows, so that fits begin away from the optimum; coded blocks that are not joined."""
    monkeypatch.setattr("hinge.blocks.survey.SAMPLE_ROWS", 150)
    monkeypatch.setattr("hinge.models.blocks.boosting.STATE_SHARE", 0.0)


def outputs(model, X):
    """What a fitted model gives for rows."""
    for name in ("decision_function", "predict_proba", "transform", "predict"):
        if hasattr(model, name):
            return np.asarray(getattr(model, name)(X))
    raise AssertionError(type(model).__name__)


def parts_of(model):
    """Fitted numbers of a model, for comparing bits."""
    numbers = {**vars(model), **{f"{name}_": value for name, value in vars(getattr(model, "trees_", object)).items()}}
    return {
        name: np.asarray(value)
        for name, value in numbers.items()
        if name.endswith("_") and isinstance(value, np.ndarray | float) and name not in ("feature_names_in_",)
    }


def assert_same_bits(one, two):
    first, second = parts_of(one), parts_of(two)
    assert first.keys() == second.keys()
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name], err_msg=name)


def fitted(case, source):
    with warnings.catch_warnings():
        if case.local:
            warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(case.model).fit(source)


def in_memory(case, X, y, weights=None):
    model = clone(case.model)
    with warnings.catch_warnings():
        if case.local:
            warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y, sample_weight=weights)


def assert_same_model(case, one, two, X):
    """Equal to rounding for closed forms; otherwise both objectives lie within the tolerance of the optimum."""
    if case.exact:
        np.testing.assert_allclose(outputs(one, X), outputs(two, X), rtol=1e-8, atol=1e-9)
        return
    if case.local:
        a, b = outputs(one, X), outputs(two, X)
        assert a.shape == b.shape
        if not hasattr(one, "certificate_"):
            assert one.lower_bound_ == pytest.approx(two.lower_bound_, abs=1e-3)
        return
    judged = one.certificate_, two.certificate_
    assert all(c.converged for c in judged)
    assert all(c.kind == "gap" for c in judged)
    tol = sum(c.tol * abs(c.primal) for c in judged) + 1e-12
    if one.coef_.shape[0] == 1 or one.coef_.ndim == 1 or not hasattr(one, "certificates_"):
        assert abs(judged[0].primal - judged[1].primal) <= tol
    error = sum(c.weight_error for c in judged)
    if np.isfinite(error):
        assert np.linalg.norm(one.coef_ - two.coef_) <= 1.01 * error + 1e-9
    scale = np.abs(outputs(one, X)).max()
    np.testing.assert_allclose(outputs(one, X), outputs(two, X), atol=0.03 * scale)


def test_every_estimator_that_takes_a_source_has_a_case():
    tables = {"CountVectorizer", "TfidfVectorizer", "TablePrep"}  # test_texts.py, test_block_tables.py
    assert {type(case.model).__name__ for case in CASES} | tables == set(takers())


@EVERY
@pytest.mark.parametrize("workers", [2, 7])
def test_any_number_of_workers_gives_the_same_bits(case, workers, rng):
    X, y, s = data(case, rng)
    one, many = (
        fitted(case, hg.scan(X, target=y, weight=s, block_rows=BLOCK, executor=executor))
        for executor in (None, workers)
    )
    assert_same_bits(one, many)


@EVERY
@pytest.mark.parametrize("rows", [1000, 211])
def test_in_memory_and_over_blocks(case, rows, rng):
    X, y, s = data(case, rng)
    blocks = fitted(case, hg.scan(X, target=y, weight=s, block_rows=rows))
    assert_same_model(case, in_memory(case, X, y, s), blocks, X)
    assert blocks.n_features_in_ == 4
    assert blocks.reading_.passes >= 1
    assert blocks.reading_.rows % len(X) == 0


@EVERY
def test_another_cut_into_blocks(case, rng):
    X, y, s = data(case, rng)
    sizes = [1, 300, 17, 90]

    def unequal():
        start = 0
        yield X[:0], None if y is None else y[:0], s[:0]
        for size in [*sizes, len(X) - sum(sizes)]:
            rows = slice(start, start + size)
            yield X[rows], None if y is None else y[rows], s[rows]
            start += size

    one = fitted(case, hg.scan(X, target=y, weight=s, block_rows=BLOCK))
    two = fitted(case, hg.scan(unequal))
    assert_same_model(case, one, two, X)
    if case.bits:
        assert_same_bits(one, two)


@EVERY
def test_classes_that_appear_late_and_blocks_of_one_class(case, rng):
    X, y, s = data(case, rng)
    order = np.argsort(X[:, 0] if y is None else y if y.ndim == 1 else y[:, 0], kind="stable")
    X, y, s = X[order], None if y is None else y[order], s[order]
    assert_same_model(case, in_memory(case, X, y, s), fitted(case, hg.scan(X, target=y, weight=s, block_rows=50)), X)


@EVERY
def test_rows_of_weight_zero_count_for_nothing(case, rng):
    X, y, s = data(case, rng)
    kept = s > 0
    with_zeros = hg.scan(X, target=y, weight=s, block_rows=BLOCK)
    without = hg.scan(X[kept], target=None if y is None else y[kept], weight=s[kept], block_rows=BLOCK)
    one, two = fitted(case, with_zeros), fitted(case, without)
    assert_same_model(case, one, two, X)


@EVERY
def test_missing_values_are_refused_and_named_or_taken(case, rng):
    X, y, _ = data(case, rng)
    X[431, 2] = np.nan
    source = hg.scan(X, target=y, block_rows=BLOCK)
    if case.missing:
        np.testing.assert_allclose(outputs(fitted(case, source), X), outputs(in_memory(case, X, y), X), rtol=1e-8)
        return
    with pytest.raises(ValueError, match=r"NaN.* row 43 of rows 388–484, block 0, column 2"):
        fitted(case, source)


@EVERY
def test_predictions_of_a_source_are_those_of_its_rows(case, rng, tmp_path):
    X, y, s = data(case, rng)
    source = hg.scan(X, target=y, weight=s, block_rows=BLOCK)
    model = fitted(case, source)
    name = "transform" if hasattr(model, "transform") and not hasattr(model, "predict") else "predict"
    expected = getattr(model, name)(X)
    np.testing.assert_array_equal(getattr(model, name)(source), expected)
    np.testing.assert_array_equal(getattr(model, name)(hg.scan(X, block_rows=100, executor=3)), expected)
    path = getattr(model, name)(source, to=tmp_path / "p.parquet")
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    found = np.column_stack([table[column].to_pylist() for column in table.column_names])
    np.testing.assert_array_equal(found.reshape(np.shape(expected)), expected)
    assert [p.name for p in tmp_path.iterdir()] == ["p.parquet"]


@EVERY
def test_scores_of_a_source_are_those_of_its_rows(case, rng):
    if not hasattr(case.model, "score"):
        pytest.skip("has no score")
    X, y, s = data(case, rng)
    model = fitted(case, hg.scan(X, target=y, weight=s, block_rows=BLOCK))
    if isinstance(case.model, hg.GaussianMixture):
        assert model.score(hg.scan(X, block_rows=BLOCK)) == pytest.approx(model.score(X), rel=1e-12)
        return
    weighted = hg.scan(X, target=y, weight=s, block_rows=BLOCK)
    assert model.score(weighted) == pytest.approx(model.score(X, y, sample_weight=s), rel=1e-9)


@EVERY
def test_fits_over_blocks_travel(case, rng):
    X, y, s = data(case, rng)
    model = fitted(case, hg.scan(X, target=y, weight=s, block_rows=BLOCK))
    np.testing.assert_array_equal(outputs(pickle.loads(pickle.dumps(model)), X), outputs(model, X))


@EVERY
def test_names_of_columns_are_kept(case, rng):
    import pandas as pd

    X, y, s = data(case, rng)
    names = ["a", "b", "c", "d"]
    frame = pd.DataFrame(X, columns=names).assign(s=s)
    targets = [] if y is None else ["y"] if y.ndim == 1 else ["y0", "y1"]
    for j, name in enumerate(targets):
        frame[name] = y if y.ndim == 1 else y[:, j]
    target = None if not targets else targets[0] if len(targets) == 1 else targets
    model = fitted(case, hg.scan(frame, target=target, weight="s", block_rows=BLOCK))
    assert model.feature_names_in_.tolist() == names
    shuffled = hg.scan(frame[["d", *targets, "a", "c", "s", "b"]], block_rows=BLOCK)
    method = model.predict if hasattr(model, "predict") else model.transform
    expected = method(frame[names])
    np.testing.assert_array_equal(method(shuffled), expected)


def test_offsets_reach_generalised_linear_models(rng):
    X = rng.normal(size=(600, 3))
    offset = rng.normal(size=600)
    y = rng.poisson(np.exp(0.3 * X[:, 0] + offset)).astype(float)
    one = hg.PoissonRegressor(alpha=0.0, tol=1e-10).fit(X, y, offset=offset)
    two = hg.PoissonRegressor(alpha=0.0, tol=1e-10).fit(hg.scan(X, target=y, offset=offset, block_rows=BLOCK))
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-4, atol=1e-6)
    source = hg.scan(X, target=y, offset=offset, block_rows=BLOCK)
    np.testing.assert_allclose(two.predict(source), two.predict(X, offset=offset), rtol=1e-12)


@pytest.mark.parametrize("name", sorted(INSTEAD))
def test_what_cannot_be_done_over_blocks_names_what_can(name, rng):
    model = getattr(hg, name)()
    assert fitter_of(type(model)) is None
    with pytest.raises(TypeError, match=r"cannot be fitted over blocks\. Use"):
        model.fit(hg.scan(rng.normal(size=(20, 2)), target=rng.integers(0, 2, 20)))


@pytest.mark.parametrize("case", [c for c in CASES if c.target != "none"], ids=repr)
def test_a_target_is_needed(case, rng):
    with pytest.raises(ValueError, match="needs a target"):
        clone(case.model).fit(hg.scan(data(case, rng)[0]))


@pytest.mark.parametrize("case", [c for c in CASES if c.target in ("labels", "three")], ids=repr)
def test_missing_labels_are_refused(case, rng):
    X, y, _ = data(case, rng)
    y = y.astype(object)
    y[500] = None
    with pytest.raises(ValueError, match="y has missing values in rows 485–581"):
        clone(case.model).fit(hg.scan(X, target=y, block_rows=BLOCK))


@pytest.mark.parametrize("case", [c for c in CASES if c.target in ("real", "count", "positive")], ids=repr)
def test_missing_targets_are_refused(case, rng):
    X, y, _ = data(case, rng)
    y[500] = np.nan
    with pytest.raises(ValueError, match="y has missing or infinite values in rows 485–581"):
        clone(case.model).fit(hg.scan(X, target=y, block_rows=BLOCK))


def test_a_source_with_targets_takes_no_other_y(rng):
    X, y = rng.normal(size=(50, 2)), rng.normal(size=50)
    source = hg.scan(X, target=y)
    with pytest.raises(TypeError, match="carries its own targets"):
        hg.Ridge().fit(source, y)


def test_lazy_tables_are_sources_without_a_scan(rng, tmp_path):
    pl = pytest.importorskip("polars")
    da = pytest.importorskip("dask.array")
    X, y = rng.normal(size=(300, 3)), rng.normal(size=300)
    expected = hg.Ridge().fit(X, y).coef_
    np.testing.assert_allclose(hg.Ridge().fit(da.from_array(X, chunks=100), da.from_array(y)).coef_, expected)
    frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y}).lazy()
    np.testing.assert_allclose(hg.Ridge().fit(frame, "y").coef_, expected)


def test_too_many_weights_are_refused_with_advice(rng):
    source = hg.scan(rng.normal(size=(10, 4100)), target=np.arange(10) % 2)
    with pytest.raises(ValueError, match="SGDClassifier"):
        hg.LogisticRegression().fit(source)


@pytest.mark.parametrize("kept", [300, 1000])
def test_kinked_losses_close_the_gap_whatever_is_kept(kept, rng, monkeypatch):
    """Fewer rows than there are near the kinks: more passes, the same optimum."""
    monkeypatch.setattr("hinge.blocks.kinks.KEPT_BYTES", 8 * (3 + 4) * kept)
    monkeypatch.setattr("hinge.blocks.kinks.LEAST_KEPT", kept)
    X = rng.normal(size=(3000, 3))
    y = X @ [1.0, -1.0, 0.5] + rng.standard_t(3, size=3000)
    whole = hg.LeastAbsoluteDeviations().fit(X, y)
    blocks = hg.LeastAbsoluteDeviations(tol=1e-5).fit(hg.scan(X, target=y, block_rows=500))
    assert blocks.certificate_.converged
    assert blocks.certificate_.dual <= whole.certificate_.primal * (1 + 1e-9)
    assert blocks.certificate_.primal >= whole.certificate_.dual * (1 - 1e-9)


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_categories_of_generalised_linear_models(library, alpha, rng):
    """Levels that first appear in the last block count as in memory."""
    import pandas as pd

    n = 500
    x, city = rng.normal(size=n), rng.choice(["Rome", "Oslo", "Bern"], n).astype(object)
    city[-40:] = rng.choice(["Rome", "Lima"], 40)
    y = rng.poisson(np.exp(0.3 * x + 0.4 * (city == "Oslo") - 0.5 * (city == "Lima"))).astype(float)
    frame = pd.DataFrame({"x": x, "city": city, "y": y})
    model = hg.PoissonRegressor(alpha=alpha, categorical_features="from_dtype", inference=False, tol=1e-10)
    whole = clone(model).fit(frame[["x", "city"]], y)
    source = hg.scan(in_library(frame, library), target="y", block_rows=60)
    blocks = clone(model).fit(source)
    assert blocks.coef_names_ == whole.coef_names_
    np.testing.assert_allclose(blocks.coef_, whole.coef_, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(blocks.predict(source), blocks.predict(frame[["x", "city"]]), rtol=1e-12)


def test_categories_that_are_numbers(rng):
    n = 400
    X = np.column_stack([rng.normal(size=n), rng.integers(0, 3, n), rng.normal(size=n)])
    X[-30:, 1] = 7.0
    y = rng.poisson(np.exp(0.3 * X[:, 0] + 0.2 * X[:, 1] / 3)).astype(float)
    model = hg.PoissonRegressor(alpha=0.1, categorical_features=[1], inference=False, tol=1e-10)
    whole, blocks = clone(model).fit(X, y), clone(model).fit(hg.scan(X, target=y, block_rows=50))
    assert blocks.coef_names_ == whole.coef_names_
    np.testing.assert_allclose(blocks.coef_, whole.coef_, rtol=1e-3, atol=1e-5)


@pytest.mark.mission("P1")
@pytest.mark.parametrize("with_offset", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("name", ["gaussian", "poisson", "gamma", "bernoulli"])
def test_inference_from_sums_over_blocks(name, intercept, with_offset, rng):
    """Standard errors, deviances and likelihoods are those of the fit in memory."""
    n = 900
    X, s = rng.normal(size=(n, 3)), rng.integers(0, 3, n).astype(float)
    offset = 0.3 * rng.normal(size=n) if with_offset else None
    mean = np.exp(0.3 * X[:, 0] + (0.0 if offset is None else offset))
    y = {
        "gaussian": lambda: X @ [1.0, 2.0, 0.0] + rng.normal(size=n),
        "poisson": lambda: rng.negative_binomial(2, 2 / (2 + mean)).astype(float),
        "gamma": lambda: rng.gamma(2.0, mean),
        "bernoulli": lambda: (rng.random(n) < mean / (1 + mean)).astype(float),
    }[name]()
    model = hg.GLM(name, link="log" if name == "gamma" else None, fit_intercept=intercept, tol=1e-11)
    whole = clone(model).fit(X, y, s, offset=offset).inference_
    blocks = clone(model).fit(hg.scan(X, target=y, weight=s, offset=offset, block_rows=BLOCK)).inference_
    assert blocks.names == whole.names
    assert (blocks.rank, blocks.parameters, blocks.dispersion_estimated) == (
        whole.rank, whole.parameters, whole.dispersion_estimated,
    )  # fmt: skip
    np.testing.assert_allclose(blocks.standard_error, whole.standard_error, rtol=1e-5)
    for part in ("total", "deviance", "null_deviance", "pearson", "log_likelihood", "dispersion", "aic"):
        assert getattr(blocks, part) == pytest.approx(getattr(whole, part), rel=1e-5), part
    assert [note[:14] for note in blocks.notes] == [note[:14] for note in whole.notes]


@pytest.mark.mission("P1")
def test_inference_with_categories_that_appear_late(rng):
    import pandas as pd

    n = 600
    city = rng.choice(["Rome", "Oslo"], n).astype(object)
    city[-50:] = rng.choice(["Rome", "Lima"], 50)
    frame = pd.DataFrame({"x": rng.normal(size=n), "city": city})
    y = rng.poisson(np.exp(0.3 * frame["x"] - 0.5 * (city == "Lima"))).astype(float)
    model = hg.GLM("poisson", categorical_features="from_dtype", tol=1e-11)
    whole = clone(model).fit(frame, y).inference_
    blocks = clone(model).fit(hg.scan(frame.assign(y=y), target="y", block_rows=70)).inference_
    assert blocks.names == whole.names
    np.testing.assert_allclose(blocks.standard_error, whole.standard_error, rtol=1e-5)
    assert blocks.wald("city").p == pytest.approx(whole.wald("city").p, rel=1e-4)


@EVERY
def test_fits_over_blocks_are_saved_and_loaded(case, rng, tmp_path):
    X, y, s = data(case, rng)
    model = fitted(case, hg.scan(X, target=y, weight=s, block_rows=BLOCK))
    hg.save(model, tmp_path / "m.hinge")
    np.testing.assert_array_equal(outputs(hg.load(tmp_path / "m.hinge"), X), outputs(model, X))


@pytest.mark.parametrize("executor", [None, 3])
def test_an_interrupt_ends_a_fit_and_its_threads(executor, rng):
    import signal
    import threading

    X, y = rng.normal(size=(4000, 3)), rng.integers(0, 2, 4000)
    calls = []

    def blocks():
        for k in range(100):
            calls.append(k)
            if len(calls) == 130:
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            yield X[40 * k : 40 * k + 40], y[40 * k : 40 * k + 40]

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background ignores the signal
    try:
        with pytest.raises(KeyboardInterrupt):
            hg.LogisticRegression().fit(hg.scan(blocks, executor=executor))
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(calls) < 250
    # An interrupt that meets the pool while it starts a thread leaves that thread to end by itself.
    for thread in [t for t in threading.enumerate() if t.name.startswith("hinge-")]:
        thread.join(timeout=30.0)
        assert not thread.is_alive()


def test_callbacks_see_the_iterations_and_can_stop(rng, monkeypatch):
    from hinge.blocks.newton import minimise_over_blocks

    X, y = rng.normal(size=(2000, 3)), rng.integers(0, 2, 2000)
    seen = []

    def watched(problem, start, **options):
        options["callback"] = lambda record: bool(seen.append(record)) or len(seen) == 1
        return minimise_over_blocks(problem, (start[0] + 1.0, start[1]), **options)

    monkeypatch.setattr("hinge.models.blocks.linear.minimise_over_blocks", watched)
    model = hg.LogisticRegression().fit(hg.scan(X, target=y, block_rows=500))
    assert len(seen) == 1
    assert "callback" in model.certificate_.status


@pytest.mark.mission("W4")
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("alpha", [1e-4, 30.0])
def test_the_scale_of_huber_is_the_best_one(intercept, alpha, rng):
    """F(w, b, σ) is no lower at the minimiser that scipy finds from there."""
    import scipy.optimize

    n = 500
    X, s = rng.normal(size=(n, 2)), rng.integers(0, 3, n).astype(float)
    y = X @ [1.0, -2.0] + 0.5 + rng.standard_t(2, size=n)
    model = hg.HuberRegressor(alpha=alpha, fit_intercept=intercept)
    model.fit(hg.scan(X, target=y, weight=s, block_rows=BLOCK))

    def value(p):
        w, b, scale = p[:2], p[2] if intercept else 0.0, np.exp(p[3])
        z = np.abs(y - X @ w - b) / scale
        return s @ (scale + scale * np.where(z <= 1.35, z**2, 2.7 * z - 1.35**2)) + alpha * w @ w

    found = np.array([*model.coef_, model.intercept_, np.log(model.scale_)])
    best = scipy.optimize.minimize(value, found + 0.1, method="BFGS", options={"gtol": 1e-9})
    assert value(found) <= best.fun * (1 + 1e-10)
    assert model.scale_ == pytest.approx(np.exp(best.x[3]), rel=1e-4)
    assert model.scale is None
    assert not hasattr(model, "outliers_")


def test_the_parameters_of_huber_stay_as_they_are_during_a_fit(rng):
    X, model, seen = rng.normal(size=(400, 2)), hg.HuberRegressor(), []
    y = X[:, 0] + rng.standard_t(3, size=400)

    def blocks():
        seen.append(model.scale)
        for start in range(0, 400, 100):
            yield X[start : start + 100], y[start : start + 100]

    model.fit(hg.scan(blocks))
    assert len(seen) > 3
    assert set(seen) == {None}
    assert model.scale_ > 0


def test_huber_with_an_l1_penalty_needs_its_scale_over_blocks(rng):
    with pytest.raises(ValueError, match="scale="):
        hg.HuberRegressor(l1_ratio=0.5).fit(hg.scan(rng.normal(size=(50, 2)), target=rng.normal(size=50)))


def test_fits_do_not_change_parameters(rng):
    """Not even while they run: another thread that reads the estimator sees scale=None."""
    X, y = rng.normal(size=(200, 3)), rng.standard_t(3, size=200)
    model, seen = hg.HuberRegressor(), []

    def blocks():
        for part in np.array_split(np.arange(200), 4):
            seen.append(model.scale)
            yield X[part], y[part]

    model.fit(hg.scan(blocks))
    assert len(seen) >= 12
    assert set(seen) == {None}
    assert model.scale is None
    assert model.scale_ > 0
    assert model.certificate_.converged


def test_mixed_columns_with_categories_that_appear_late(rng):
    import pandas as pd

    n = 600
    city = rng.choice(["Rome", "Oslo"], n).astype(object)
    city[-60:] = rng.choice(["Rome", "Lima"], 60)
    frame = pd.DataFrame({"x": rng.normal(size=n), "city": city, "flag": rng.integers(0, 2, n).astype(bool)})
    y = np.where(frame["x"] + 2.0 * (city == "Lima") + rng.normal(size=n) > 0, "yes", "no")
    whole = hg.MixedNB().fit(frame, y)
    blocks = hg.MixedNB().fit(hg.scan(frame.assign(y=y), target="y", block_rows=100))
    np.testing.assert_allclose(blocks.predict_proba(frame), whole.predict_proba(frame), rtol=1e-9)
