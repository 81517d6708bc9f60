"""F — features: monomials and kernels, saturation, buckets, text."""

from __future__ import annotations

import gzip
from itertools import product
from math import comb

import numpy as np
import pytest
import scipy.sparse
import sklearn.feature_extraction.text as reference_text
import sklearn.preprocessing as reference
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import hinge as hg

SHAPES = [(1, 3), (2, 2), (3, 3), (5, 2), (4, 4), (6, 1), (3, 0)]


@pytest.mark.mission("F1")
@pytest.mark.parametrize(("d", "M"), SHAPES)
def test_there_are_d_plus_m_over_m_monomials(d, M, rng):
    phi = hg.PolynomialFeatures(M).fit(rng.normal(size=(2, d)))
    powers = phi.powers_
    assert phi.n_output_features_ == len(powers) == comb(d + M, M)
    assert {tuple(a) for a in powers} == {a for a in product(range(M + 1), repeat=d) if sum(a) <= M}
    X = rng.normal(size=(7, d))
    np.testing.assert_allclose(phi.transform(X), np.prod(X[:, None, :] ** powers, axis=2), rtol=1e-13)


@pytest.mark.mission("F1")
@pytest.mark.parametrize(("d", "M"), SHAPES)
@pytest.mark.parametrize("c", [1.0, 0.3])
def test_weighted_monomials_give_the_polynomial_kernel(d, M, c, rng):
    X = rng.normal(size=(9, d))
    Z = hg.PolynomialFeatures(M, kernel_weights=True, coef0=c).fit_transform(X)
    np.testing.assert_allclose(Z @ Z.T, (c + X @ X.T) ** M, rtol=1e-11, atol=1e-12)
    if M > 0:
        np.testing.assert_allclose(Z @ Z.T, hg.kernels.Polynomial(M, gamma=1.0, coef0=c)(X), rtol=1e-11, atol=1e-12)


@pytest.mark.mission("F1")
def test_polynomial_regression_in_both_forms(rng):
    """Ridge on weighted monomials is kernel ridge with the polynomial kernel."""
    X = rng.normal(size=(40, 3))
    y = X[:, 0] ** 2 - X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=40)
    primal = make_pipeline(hg.PolynomialFeatures(3, kernel_weights=True), hg.Ridge(0.5, fit_intercept=False)).fit(X, y)
    dual = hg.KernelRidge(0.5, kernel=hg.kernels.Polynomial(3, gamma=1.0, coef0=1.0)).fit(X, y)
    new = rng.normal(size=(11, 3))
    np.testing.assert_allclose(primal.predict(new), dual.predict(new), rtol=1e-7, atol=1e-8)


@pytest.mark.mission("F1")
@pytest.mark.parametrize("degree", [1, 2, 3, 4, (2, 3), (0, 2)])
@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("include_bias", [False, True])
def test_monomials_agree_with_scikit_learn_sparse_and_dense(degree, interaction_only, include_bias, rng):
    X = rng.normal(size=(13, 4)) * (rng.random((13, 4)) < 0.6)
    options = {"interaction_only": interaction_only, "include_bias": include_bias}
    theirs = reference.PolynomialFeatures(degree, **options).fit(X)
    ours = hg.PolynomialFeatures(degree, **options).fit(X)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), rtol=1e-14)
    np.testing.assert_array_equal(ours.powers_, theirs.powers_)
    assert list(ours.get_feature_names_out()) == list(theirs.get_feature_names_out())
    for kind in (scipy.sparse.csr_array, scipy.sparse.csc_matrix):
        S = ours.transform(kind(X))
        assert type(S) is kind
        np.testing.assert_allclose(S.toarray(), ours.transform(X), rtol=1e-14)
    weighted = hg.PolynomialFeatures(degree, kernel_weights=True, coef0=2.0, **options).fit(X)
    np.testing.assert_allclose(
        weighted.transform(scipy.sparse.csr_array(X)).toarray(), weighted.transform(X), rtol=1e-14
    )


def test_wide_sparse_monomials():
    rng = np.random.default_rng(0)
    X = scipy.sparse.random_array((50, 5000), density=0.002, rng=rng, format="csr")
    Z = hg.PolynomialFeatures(2, kernel_weights=True).fit_transform(X)
    assert Z.shape == (50, comb(5002, 2))
    np.testing.assert_allclose((Z @ Z.T).toarray(), (1 + (X @ X.T).toarray()) ** 2, rtol=1e-12)
    with pytest.raises(ValueError, match=r"more than can be indexed. Use a polynomial kernel"):
        hg.PolynomialFeatures(5).fit(X)
    with pytest.raises(ValueError, match="takes more than"):  # 41 products, made from 10¹¹ of lower degrees
        hg.PolynomialFeatures((39, 40), interaction_only=True).fit(np.ones((2, 40)))


def test_monomials_of_high_degree():
    """Factors beyond 170! are computed in logarithms, and names from those of the degree below."""
    x, z = np.array([[0.3, 0.2]]), np.array([[0.1, 0.4]])
    phi = hg.PolynomialFeatures(400, kernel_weights=True).fit(x)
    assert (phi.transform(x) @ phi.transform(z).T).item() == pytest.approx(1.11**400, rel=1e-11)
    sparse = phi.transform(scipy.sparse.csr_array(x)) @ phi.transform(scipy.sparse.csr_array(z)).T
    assert sparse.toarray().item() == pytest.approx(1.11**400, rel=1e-11)
    names, (left, right) = phi.get_feature_names_out(["u", "v"]), phi.powers_.T
    assert names[-1] == "v^400"
    assert names[1] == "u"
    assert "u^399 v" in names
    assert [name.count("u") for name in names] == (left > 0).tolist()
    assert [name.count("v") for name in names] == (right > 0).tolist()
    with pytest.raises(ValueError, match="degree=10001 is too large"):
        hg.PolynomialFeatures(10_001).fit(x)


def test_a_map_of_eight_million_outputs_is_saved_loaded_named_and_used(tmp_path):
    X = scipy.sparse.random_array((20, 4000), density=0.002, rng=np.random.default_rng(0), format="csr")
    phi = hg.PolynomialFeatures(2).fit(X)
    hg.save(phi, tmp_path / "phi.hinge")
    loaded = hg.load(tmp_path / "phi.hinge")
    assert (loaded.transform(X) != phi.transform(X)).nnz == 0
    assert loaded.transform(X).shape == (20, comb(4002, 2))
    assert loaded.get_feature_names_out()[-1] == "x3999^2"


@pytest.mark.mission("F2")
def test_non_monotone_saturating_and_interacting_effects_become_linear(rng):
    """The three troubles of linear models, each cured by its features and by nothing less."""
    n = 2000
    temperature = rng.uniform(30, 45, size=n)  # healthy in the middle
    health = np.where(np.abs(temperature - 37) < 1, 1.0, 0.0) + 0.05 * rng.normal(size=n)
    x = temperature[:, None]
    assert hg.LinearRegression().fit(x, health).score(x, health) < 0.3
    bucketed = make_pipeline(hg.Buckets(40, strategy="uniform"), hg.Ridge(1e-3)).fit(x, health)
    assert bucketed.score(x, health) > 0.9
    edges = make_pipeline(hg.Buckets(edges=[36.0, 38.0], strategy="given"), hg.Ridge(1e-3)).fit(x, health)
    tree = make_pipeline(hg.Buckets(3, strategy="tree"), hg.Ridge(1e-3)).fit(x, health)
    assert min(edges.score(x, health), tree.score(x, health)) > 0.96

    views = rng.lognormal(4, 2, size=(n, 1))
    worth = np.log1p(views[:, 0]) + 0.05 * rng.normal(size=n)
    assert hg.LinearRegression().fit(views, worth).score(views, worth) < 0.5
    assert make_pipeline(hg.Log1p(), hg.LinearRegression()).fit(views, worth).score(views, worth) > 0.99

    body = rng.normal(size=(n, 2))
    z = body[:, 0] * body[:, 1] + body[:, 0] ** 2
    assert hg.LinearRegression().fit(body, z).score(body, z) < 0.1
    assert make_pipeline(hg.PolynomialFeatures(2), hg.Ridge(1e-9)).fit(body, z).score(body, z) > 0.999


@pytest.mark.mission("F2")
@pytest.mark.parametrize("shape", ["log1p", "sqrt", "ratio", "tanh"])
@pytest.mark.parametrize("scale", [0.7, "median"])
def test_saturation_is_odd_concave_and_invertible(shape, scale, rng):
    X = rng.normal(size=(200, 3))
    transform = hg.Saturate(shape, scale=scale).fit(X)
    Z = transform.transform(X)
    np.testing.assert_allclose(transform.inverse_transform(Z), X, rtol=1e-9)
    np.testing.assert_allclose(transform.transform(-X), -Z)
    u = np.repeat(np.linspace(0, 5, 300)[:, None], 3, axis=1)
    slopes = np.diff(transform.transform(u), axis=0)
    assert np.all(slopes > 0)
    assert np.all(np.diff(slopes, axis=0) < 1e-12)
    if scale == "median":
        np.testing.assert_allclose(transform.scale_, np.median(np.abs(X), axis=0))
    sparse = scipy.sparse.csr_array(X * (X > 0))
    np.testing.assert_allclose(transform.transform(sparse).toarray(), transform.transform(X * (X > 0)))


@pytest.mark.mission("F2")
def test_buckets_by_every_strategy(rng):
    X = rng.normal(size=(500, 2))
    for strategy in ("uniform", "quantile"):
        theirs = reference.KBinsDiscretizer(
            6, encode="ordinal", strategy=strategy, **({"quantile_method": "linear"} if strategy == "quantile" else {})
        ).fit(X)
        ours = hg.Buckets(6, encode="ordinal", strategy=strategy).fit(X)
        np.testing.assert_allclose(np.stack(ours.bin_edges_), np.stack(theirs.bin_edges_))
        np.testing.assert_array_equal(ours.transform(X), theirs.transform(X))
    counts = hg.Buckets(5, strategy="quantile").fit_transform(X).sum(axis=0)
    np.testing.assert_array_equal(counts, 100)
    thermometer = hg.Buckets(4, encode="thermometer").fit(X)
    ordinal = hg.Buckets(4, encode="ordinal").fit_transform(X)
    np.testing.assert_array_equal(thermometer.transform(X)[:, :3].sum(axis=1), ordinal[:, 0])
    one_hot = hg.Buckets(4, encode="onehot-dense").fit(X)
    np.testing.assert_array_equal(np.argmax(one_hot.transform(X)[:, :4], axis=1), ordinal[:, 0])
    assert len(one_hot.get_feature_names_out()) == 8
    assert np.all(one_hot.transform(np.array([[-1e9, 1e9]])) == [[1, 0, 0, 0, 0, 0, 0, 1]])


@pytest.mark.mission("F2")
def test_supervised_buckets_are_the_leaves_of_a_tree(rng):
    x = rng.normal(size=(400, 1))
    y = np.sin(3 * x[:, 0]) + 0.1 * rng.normal(size=400)
    tree = DecisionTreeRegressor(max_leaf_nodes=7).fit(x, y).tree_
    ours = hg.Buckets(7, strategy="tree").fit(x, y).bin_edges_[0][1:-1]
    np.testing.assert_allclose(ours, np.sort(tree.threshold[tree.feature >= 0]), rtol=1e-6)
    labels = np.array(["a", "b", "c"])[np.digitize(y, [-0.5, 0.5])]
    tree = DecisionTreeClassifier(max_leaf_nodes=5).fit(x, labels).tree_
    ours = hg.Buckets(5, strategy="tree").fit(x, labels).bin_edges_[0][1:-1]
    np.testing.assert_allclose(ours, np.sort(tree.threshold[tree.feature >= 0]), rtol=1e-6)


TEXTS = [
    "The quick brown fox jumps over the lazy dog",
    "the the THE naïve café — numéro 5, x y z2",
    "",
    "dog eats dog",
    "日本語 テキスト and some English",
]


@pytest.mark.mission("F3")
@pytest.mark.parametrize(
    "options",
    [
        {}, {"binary": True}, {"ngram_range": (1, 3)}, {"lowercase": False}, {"min_df": 2}, {"max_df": 0.3},
        {"max_features": 4}, {"analyzer": "char", "ngram_range": (2, 3)}, {"analyzer": "char_wb", "ngram_range": (2, 5)},
        {"stop_words": ["the"]}, {"vocabulary": ["dog", "the"]}, {"stop_words": "english"},
        {"strip_accents": "unicode"}, {"strip_accents": "ascii"}, {"strip_accents": str.swapcase, "lowercase": False},
        {"preprocessor": str.upper, "stop_words": ["THE"]}, {"tokenizer": str.split, "token_pattern": None},
        {"analyzer": str.split}, {"analyzer": "char", "strip_accents": "ascii"},
    ],
    ids=str,
)  # fmt: skip
def test_bags_of_words_agree_with_scikit_learn(options):
    for ours, theirs in (
        (hg.CountVectorizer(**options), reference_text.CountVectorizer(**options)),
        (hg.TfidfVectorizer(**options), reference_text.TfidfVectorizer(**options)),
        (hg.TfidfVectorizer(sublinear_tf=True, norm="l1", **options),
         reference_text.TfidfVectorizer(sublinear_tf=True, norm="l1", **options)),
    ):  # fmt: skip
        Z, R = ours.fit_transform(TEXTS), theirs.fit_transform(TEXTS)
        assert scipy.sparse.issparse(Z)
        assert list(ours.get_feature_names_out()) == list(theirs.get_feature_names_out())
        np.testing.assert_allclose(Z.toarray(), R.toarray(), rtol=1e-12)
        new = ["unseen dog words", "THE dog"]
        np.testing.assert_allclose(ours.transform(new).toarray(), theirs.transform(new).toarray(), rtol=1e-12)


@pytest.mark.mission("F3")
def test_hashing_keeps_inner_products_and_needs_no_vocabulary():
    counts = hg.CountVectorizer().fit_transform(TEXTS)
    hashed = hg.HashingVectorizer(n_features=2**18, norm=None).transform(TEXTS)
    np.testing.assert_allclose((hashed @ hashed.T).toarray(), (counts @ counts.T).toarray())
    one_by_one = scipy.sparse.vstack([hg.HashingVectorizer(n_features=2**18, norm=None).transform([t]) for t in TEXTS])
    assert (hashed != one_by_one).nnz == 0
    # With few columns words collide; over many words the signs make up for it in the mean.
    words = [f"word{i}" for i in range(3000)]
    crowded = hg.HashingVectorizer(n_features=64, norm=None).transform([" ".join(words[:1500]), " ".join(words[1500:])])
    plain = hg.HashingVectorizer(n_features=64, norm=None, alternate_sign=False)
    biased = plain.transform([" ".join(words[:1500]), " ".join(words[1500:])])
    inner = [abs(float((Z[[0]] @ Z[[1]].T).toarray()[0, 0])) for Z in (crowded, biased)]
    assert inner[0] < 0.05 * inner[1]


@pytest.mark.mission("F3")
def test_spam(real_data, tmp_path):
    """Text messages, raw, to a spam filter; sparse throughout, and kept in a file."""
    pl = pytest.importorskip("polars")
    with gzip.open(real_data("sms_spam.csv.gz"), "rb") as f:
        table = pl.read_csv(f.read())
    label, texts = table[:, 0].to_numpy(), table[:, 1].to_list()
    fold = np.arange(len(texts)) % 5 == 0
    for bag in (hg.TfidfVectorizer(ngram_range=(1, 2), min_df=2), hg.HashingVectorizer(n_features=2**16)):
        model = make_pipeline(bag, hg.LogisticRegression(C=30.0))
        model.fit([t for t, test in zip(texts, fold) if not test], label[~fold])
        held_out = [t for t, test in zip(texts, fold) if test]
        assert model.score(held_out, label[fold]) > 0.97
        hg.save(model, tmp_path / "spam.hinge")
        again = hg.load(tmp_path / "spam.hinge").predict_proba(held_out)
        np.testing.assert_array_equal(again, model.predict_proba(held_out))


@pytest.mark.mission("F4")
def test_images_are_vectors(rng):
    images = rng.integers(0, 256, size=(5, 6, 8), dtype=np.uint8)
    Z = hg.ImageVectors().fit_transform(images)
    np.testing.assert_allclose(Z, images.reshape(5, -1) / 255)
    pooled = hg.ImageVectors(pool=2).fit(images)
    np.testing.assert_allclose(pooled.transform(images)[0, 0], images[0, :2, :2].mean() / 255)
    assert pooled.get_feature_names_out()[-1] == "pixel(2,3)"
    colour = hg.ImageVectors().fit(rng.random((2, 3, 3, 3)))
    assert len(colour.get_feature_names_out()) == 27
    with pytest.raises(ValueError, match="training had"):
        pooled.transform(images[:, :4])
    with pytest.raises(ValueError, match=r"\(n, h, w\)"):
        pooled.fit(images[0])


@pytest.mark.parametrize("nan", [False, True])
def test_scaling_agrees_with_scikit_learn(nan, rng):
    X = rng.normal(3, 2, size=(50, 4))
    if nan:
        X[::7, 1] = np.nan
    w = rng.random(50)
    for weight in (None, w):
        ours, theirs = hg.StandardScaler().fit(X, sample_weight=weight), reference.StandardScaler().fit(X, None, weight)
        for name in ("mean_", "var_", "scale_"):
            np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(ours.transform(X), theirs.transform(X), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(ours.inverse_transform(ours.transform(X)), X)
    S = np.where(rng.random(X.shape) < 0.5, X, 0.0)
    for kind in (scipy.sparse.csr_array, scipy.sparse.csc_matrix):
        ours = hg.StandardScaler(with_mean=False).fit(kind(S), sample_weight=w)
        theirs = reference.StandardScaler(with_mean=False).fit(scipy.sparse.csr_array(S), None, w)
        np.testing.assert_allclose(ours.var_, theirs.var_, rtol=1e-10)
        np.testing.assert_allclose(ours.transform(kind(S)).toarray(), theirs.transform(S), rtol=1e-10)


def test_constant_features_are_not_blown_up(rng):
    X = np.column_stack([np.full(50, 0.1), rng.normal(size=50)])
    np.testing.assert_allclose(hg.StandardScaler().fit_transform(X)[:, 0], 0.0, atol=1e-15)


def test_large_means_cost_no_digits():
    x = 1e9 + np.arange(8.0)[:, None]
    np.testing.assert_allclose(hg.StandardScaler().fit(x).var_, np.var(np.arange(8.0)), rtol=1e-12)


def test_both_scalers_can_be_in_one_file(tmp_path, rng):
    """hinge's and scikit-learn's classes of the same name are distinguished."""
    X = rng.normal(size=(20, 3))
    pipeline = make_pipeline(reference.StandardScaler(), hg.StandardScaler(), reference.PolynomialFeatures(),
                             hg.PolynomialFeatures(), hg.Ridge()).fit(X, X[:, 0])  # fmt: skip
    hg.save(pipeline, tmp_path / "both.hinge")
    loaded = hg.load(tmp_path / "both.hinge")
    assert [type(step) for step in loaded] == [type(step) for step in pipeline]
    np.testing.assert_array_equal(loaded.predict(X), pipeline.predict(X))


@pytest.mark.mission("F3")
def test_texts_may_be_bytes_or_files(tmp_path):
    paths = [tmp_path / f"{k}.txt" for k in range(len(TEXTS))]
    for path, text in zip(paths, TEXTS, strict=True):
        path.write_bytes(text.encode("utf-16"))
    wanted = hg.TfidfVectorizer().fit_transform(TEXTS).toarray()
    raw = [path.read_bytes() for path in paths]
    np.testing.assert_array_equal(hg.TfidfVectorizer(encoding="utf-16").fit_transform(raw).toarray(), wanted)
    named = hg.TfidfVectorizer(input="filename", encoding="utf-16")
    np.testing.assert_array_equal(named.fit_transform(paths).toarray(), wanted)
    opened = [path.open(encoding="utf-16") for path in paths]
    np.testing.assert_array_equal(hg.TfidfVectorizer(input="file").fit_transform(opened).toarray(), wanted)
    for file in opened:
        file.close()
    bad = b"caf\xe9"
    with pytest.raises(UnicodeDecodeError):
        hg.CountVectorizer().fit([bad])
    assert list(hg.CountVectorizer(decode_error="ignore").fit([bad]).get_feature_names_out()) == ["caf"]


@pytest.mark.mission("F2")
@pytest.mark.parametrize("kind", ["dense", "missing", "sparse"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_scaler_may_see_its_rows_in_pieces(rng, kind, weighted):
    X = rng.normal(size=(90, 4)) * [1.0, 10.0, 1e-3, 0.0] + [0.0, 1e6, 5.0, 3.0]
    s = rng.integers(0, 3, size=90).astype(float) if weighted else None
    if s is not None:
        s[40] = 2.0  # alone in its piece: a piece whose weights are all zero is refused
    if kind == "missing":
        X[rng.random(X.shape) < 0.2] = np.nan
        X[:40, 1] = np.nan  # a whole piece without a value
    if kind == "sparse":
        X = scipy.sparse.csr_array(np.where(rng.random(X.shape) < 0.5, 0.0, X))
    whole = hg.StandardScaler(with_mean=kind != "sparse").fit(X, sample_weight=s)
    pieces = hg.StandardScaler(with_mean=kind != "sparse")
    for part in (slice(0, 40), slice(40, 41), slice(41, 90)):
        pieces.partial_fit(X[part], sample_weight=None if s is None else s[part])
    for name in ("mean_", "var_", "scale_", "n_samples_seen_"):
        np.testing.assert_allclose(getattr(pieces, name), getattr(whole, name), rtol=1e-9, err_msg=name)
    assert np.shape(pieces.n_samples_seen_) == np.shape(whole.n_samples_seen_)
    assert hg.StandardScaler().fit([[1.0], [3.0]]).fit([[5.0], [7.0]]).mean_.tolist() == [6.0]


@pytest.mark.mission("F2")
@pytest.mark.parametrize("strategy", ["uniform", "quantile", "tree", "given"])
def test_an_edge_belongs_to_the_bucket_on_its_right(strategy, rng):
    """Bucket i is [eᵢ, eᵢ₊₁): in every encoding, for the edge itself and for the number just below it."""
    x = np.round(rng.normal(size=(60, 1)), 1)
    options = {"strategy": strategy, "edges": [-0.4, 0.1, 0.7] if strategy == "given" else None}
    y = np.digitize(x[:, 0], [-0.4, 0.1, 0.7]).astype(float) * 1.5
    models = {
        encode: hg.Buckets(4, encode=encode, **options).fit(x, y)
        for encode in ("ordinal", "onehot", "onehot-dense", "thermometer")
    }
    edges = models["ordinal"].bin_edges_[0][1:-1]
    assert len(edges) == 3
    for points, shift in ((edges, 1), (np.nextafter(edges, -np.inf), 0)):
        out = {encode: model.transform(points[:, None]) for encode, model in models.items()}
        at = np.arange(3) + shift
        np.testing.assert_array_equal(out["ordinal"][:, 0], at)
        np.testing.assert_array_equal(out["onehot-dense"], np.eye(4)[at])
        np.testing.assert_array_equal(out["onehot"].toarray(), np.eye(4)[at])
        np.testing.assert_array_equal(out["thermometer"], np.arange(3) < at[:, None])
