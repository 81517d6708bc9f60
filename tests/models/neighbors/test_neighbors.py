"""Nearest neighbours: the search is exact, its ties are settled, and predictions are those of scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import sklearn.neighbors as theirs
from scipy.spatial.distance import cdist

import hinge as hg

METRICS = {
    "euclidean": {"metric": "euclidean"},
    "manhattan": {"metric": "manhattan"},
    "chebyshev": {"metric": "chebyshev"},
    "cosine": {"metric": "cosine"},
    "minkowski": {"p": 1.5},
    "p=inf": {"p": np.inf},
}
every_metric = pytest.mark.parametrize("parameters", METRICS.values(), ids=METRICS)
every_search = pytest.mark.parametrize("algorithm", ["brute", "kd_tree", "ball_tree", "auto"])


def distances(Q, X, parameters):
    metric = parameters.get("metric", "minkowski")
    if metric == "minkowski" and np.isinf(parameters["p"]):
        metric = "chebyshev"
    names = {"manhattan": "cityblock"}
    return cdist(Q, X, names.get(metric, metric), **({"p": parameters["p"]} if metric == "minkowski" else {}))


@every_metric
@every_search
@pytest.mark.parametrize("d", [1, 3, 40])
def test_the_nearest_are_the_nearest(parameters, algorithm, d, rng):
    X, Q = rng.normal(size=(3000, d)) + 5.0, rng.normal(size=(301, d)) + 5.0
    model = hg.KNeighborsRegressor(7, algorithm=algorithm, leaf_size=9, **parameters).fit(X, X[:, 0])
    found, indices = model.kneighbors(Q)
    wanted = distances(Q, X, parameters)
    np.testing.assert_allclose(found, np.sort(wanted, axis=1)[:, :7], rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(found, np.take_along_axis(wanted, indices, axis=1), rtol=1e-7, atol=1e-12)


@every_metric
def test_every_search_gives_the_same_bits(parameters, rng):
    for dtype in (np.float64, np.float32):
        X = np.round(rng.normal(size=(2000, 4)), 1).astype(dtype)  # many ties
        models = [
            hg.KNeighborsClassifier(9, algorithm=a, **parameters).fit(X, np.arange(2000) % 3)
            for a in ("brute", "kd_tree", "auto")
        ]
        for Q in (None, X[:100], rng.normal(size=(100, 4)).astype(dtype)):
            first, *others = [model.kneighbors(Q) for model in models]
            for other in others:
                np.testing.assert_array_equal(first[0], other[0])
                np.testing.assert_array_equal(first[1], other[1])


@every_search
def test_ties_go_to_the_smaller_index(algorithm, rng):
    X = rng.integers(0, 3, size=(500, 2)).astype(float)
    Q = rng.integers(0, 3, size=(50, 2)).astype(float)
    _, indices = hg.KNeighborsClassifier(20, algorithm=algorithm).fit(X, X[:, 0] > 0).kneighbors(Q)
    wanted = np.argsort(cdist(Q, X, "sqeuclidean"), axis=1, kind="stable")[:, :20]
    np.testing.assert_array_equal(indices, wanted)


@every_search
def test_no_example_is_its_own_neighbour(algorithm, rng):
    X = np.repeat(rng.normal(size=(150, 3)), 2, axis=0)  # every example twice
    model = hg.KNeighborsClassifier(1, algorithm=algorithm).fit(X, np.arange(300) % 2)
    found, indices = model.kneighbors()
    np.testing.assert_array_equal(indices[:, 0], np.arange(300) ^ 1)
    assert not found.any()


@pytest.mark.parametrize("shift", [0.0, 1e3, 1e7])
def test_a_common_shift_costs_no_digits(shift, rng):
    """Squared distances by products lose the digits that the shift takes; the search rules out with a margin."""
    X = rng.integers(-1000, 1000, size=(2000, 20)) / 64.0
    plain = hg.KNeighborsRegressor(5).fit(X, X[:, 0]).kneighbors(X[:200])
    shifted = hg.KNeighborsRegressor(5).fit(X + shift, X[:, 0]).kneighbors(X[:200] + shift)
    np.testing.assert_array_equal(plain[1], shifted[1])
    np.testing.assert_array_equal(plain[0], shifted[0])


@pytest.mark.parametrize("scale", [1e-100, 1e-30, 1e30, 1e100])
def test_neighbours_do_not_depend_on_the_unit(scale, rng):
    X = rng.normal(size=(600, 12))
    scale = 2.0 ** np.round(np.log2(scale))
    plain, scaled = (hg.KNeighborsRegressor(4).fit(s * X, X[:, 0]).kneighbors() for s in (1.0, scale))
    np.testing.assert_array_equal(plain[1], scaled[1])
    np.testing.assert_array_equal(plain[0] * scale, scaled[0])


def test_a_query_beyond_the_range_of_float_is_searched(rng):
    X = rng.normal(size=(300, 5))
    Q = np.vstack([X[:5], 1e60 * np.ones(5)])
    found, _ = hg.KNeighborsRegressor(3).fit(X, X[:, 0]).kneighbors(Q)
    np.testing.assert_allclose(found, np.sort(cdist(Q, X), axis=1)[:, :3])


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_and_dense_agree(metric, dtype, rng):
    X = scipy.sparse.random_array((800, 300), density=0.03, rng=rng, format="csr", dtype=dtype)
    X = scipy.sparse.vstack([X, X[:0], scipy.sparse.csr_array((1, 300), dtype=dtype)], format="csr")[-800:]
    y = rng.normal(size=800)
    sparse = hg.KNeighborsRegressor(6, metric=metric).fit(X, y)
    dense = hg.KNeighborsRegressor(6, metric=metric).fit(X.toarray(), y)
    for Q in (None, X[:50]):
        one, two = sparse.kneighbors(Q)[0], dense.kneighbors(None if Q is None else Q.toarray())[0]
        np.testing.assert_allclose(one, two, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(sparse.kneighbors(X[:50])[0], sparse.kneighbors(X[:50].toarray())[0])
    np.testing.assert_allclose(sparse.kneighbors(X[:50])[0], dense.kneighbors(X[:50])[0], rtol=1e-6, atol=1e-7)


def test_sparse_inputs_of_other_metrics_are_refused():
    with pytest.raises(ValueError, match=r"manhattan.*toarray"):
        hg.KNeighborsClassifier(1, metric="manhattan").fit(scipy.sparse.eye_array(4, format="csr"), [0, 1, 0, 1])


def test_cosine_distances_of_zeros_are_one():
    X = np.array([[1.0, 0.0], [0.0, 0.0], [-1.0, 0.0], [1.0, 1.0]])
    found, indices = hg.KNeighborsRegressor(4, metric="cosine").fit(X, np.arange(4.0)).kneighbors([[2.0, 0.0], [0, 0]])
    np.testing.assert_allclose(found[0], [0.0, 1 - np.sqrt(0.5), 1.0, 2.0])
    np.testing.assert_array_equal(indices[0], [0, 3, 1, 2])
    np.testing.assert_array_equal(found[1], 1.0)


def reciprocal(distance):
    return 1.0 / (1.0 + distance)


@pytest.mark.parametrize("weights", ["uniform", "distance", reciprocal, None])
@every_metric
@pytest.mark.parametrize("outputs", [1, 2])
def test_predictions_are_those_of_scikit_learn(weights, parameters, outputs, rng):
    X, Q = rng.normal(size=(400, 5)), rng.normal(size=(80, 5))
    Q[:10] = X[:10]  # at distance zero
    signal = X[:, :outputs] if outputs > 1 else X[:, 0]
    pair = [module.KNeighborsRegressor(6, weights=weights, **parameters).fit(X, signal) for module in (hg, theirs)]
    np.testing.assert_allclose(pair[0].predict(Q), pair[1].predict(Q), atol=1e-6)
    labels = np.array(["low", "middle", "high"])[np.digitize(signal, [-0.5, 0.5])]
    mine, other = (
        module.KNeighborsClassifier(6, weights=weights, **parameters).fit(X, labels) for module in (hg, theirs)
    )
    np.testing.assert_allclose(mine.predict_proba(Q), other.predict_proba(Q), atol=1e-6)
    if weights in ("uniform", None):
        np.testing.assert_array_equal(mine.predict(Q), other.predict(Q))
    assert mine.effective_metric_ == other.effective_metric_
    assert mine.outputs_2d_ == other.outputs_2d_


@pytest.mark.parametrize("mode", ["connectivity", "distance"])
def test_the_graph_is_that_of_scikit_learn(mode, rng):
    X = rng.normal(size=(120, 3))
    graphs = [m.KNeighborsClassifier(4).fit(X, X[:, 0] > 0).kneighbors_graph(mode=mode) for m in (hg, theirs)]
    np.testing.assert_allclose(graphs[0].toarray(), graphs[1].toarray())
    assert graphs[0].diagonal().sum() == 0


def test_the_same_bits_for_any_number_of_threads(rng):
    tables = [rng.normal(size=(5000, 3)), rng.normal(size=(1500, 30))]
    for X in tables:
        results = []
        try:
            for threads in (1, 2, 5):
                hg.set_num_threads(threads)
                results.append(hg.KNeighborsRegressor(5).fit(X, X[:, 0]).kneighbors(X[:1000]))
        finally:
            hg.set_num_threads(None)
        for distance, index in results[1:]:
            np.testing.assert_array_equal(distance, results[0][0])
            np.testing.assert_array_equal(index, results[0][1])


def test_a_query_alone_is_answered_as_among_others(rng):
    X = rng.normal(size=(2000, 30))
    model = hg.KNeighborsRegressor(5).fit(X, X[:, 0])
    together = model.kneighbors(X[:40])
    for i in range(40):
        alone = model.kneighbors(X[i : i + 1])
        np.testing.assert_array_equal(alone[0][0], together[0][i])
        np.testing.assert_array_equal(alone[1][0], together[1][i])


def test_float32_points_and_float64_queries(rng):
    X = rng.normal(size=(300, 20)).astype(np.float32)
    Q = rng.normal(size=(20, 20))
    found, _ = hg.KNeighborsRegressor(3).fit(X, X[:, 0]).kneighbors(Q)
    np.testing.assert_allclose(found, np.sort(cdist(Q, X.astype(float)), axis=1)[:, :3], rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda m: m.kneighbors(n_neighbors=10), "n_neighbors < n_samples_fit"),
        (lambda m: m.kneighbors([[0.0]], n_neighbors=11), "n_neighbors <= n_samples_fit"),
        (lambda m: m.kneighbors([[0.0]], n_neighbors=0), "n_neighbors > 0"),
        (lambda m: m.kneighbors_graph(mode="weights"), "mode"),
        (lambda m: m.set_params(weights=lambda d: d[:, :1]).predict([[0.0]]), "one weight per distance"),
        (lambda m: m.set_params(weights=np.zeros_like).predict([[0.0]]), "must not all be zero"),
        (lambda m: m.set_params(metric_params={"V": 1}).fit([[0.0], [1.0]], [0, 1]), "'p' only"),
    ],
)
def test_errors_name_the_remedy(call, match):
    model = hg.KNeighborsClassifier(3).fit(np.arange(10.0)[:, None], np.arange(10) % 2)
    with pytest.raises(ValueError, match=match):
        call(model)
