"""P2–P5: generative models count what they should, obey Bayes' rule, and EM never steps down."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm
from sklearn.exceptions import ConvergenceWarning

import hinge as hg
from hinge._native import Design
from hinge.models.generative.mixture.components import SHAPES, Components, Prior, m_step
from hinge.models.generative.mixture.em import expectation_maximisation


def blobs(rng, n=300, d=3, k=3):
    """Classes with means and spreads of their own, far from zero."""
    y = rng.integers(k, size=n)
    return 50.0 + 2.0 * rng.normal(size=(k, d))[y] + rng.uniform(0.5, 1.5, (k, d))[y] * rng.normal(size=(n, d)), y


def slope(f, theta, step=1e-5):
    """The gradient by central differences."""
    theta = np.asarray(theta, dtype=float)
    g = np.empty(theta.size)
    for i in range(theta.size):
        e = np.zeros(theta.size)
        e[i] = step
        g[i] = (f(theta + e.reshape(theta.shape)) - f(theta - e.reshape(theta.shape))) / (2 * step)
    return g


# ------------------------------------------------------------------------------------------------------ naive Bayes


@pytest.mark.mission("P2")
def test_gaussian_estimates_are_counts_and_the_gradient_vanishes_there(rng):
    X, y = blobs(rng)
    w = rng.integers(1, 4, size=len(y)).astype(float)
    model = hg.GaussianNB(var_smoothing=0.0).fit(X, y, sample_weight=w)
    for c in range(3):
        rows = y == c
        mean = w[rows] @ X[rows] / w[rows].sum()
        np.testing.assert_allclose(model.theta_[c], mean, rtol=1e-13)
        np.testing.assert_allclose(model.var_[c], w[rows] @ (X[rows] - mean) ** 2 / w[rows].sum(), rtol=1e-11)
        np.testing.assert_allclose(model.class_prior_[c], w[rows].sum() / w.sum(), rtol=1e-13)

        def likelihood(theta, rows=rows):
            return w[rows] @ norm.logpdf(X[rows], theta[0], np.exp(0.5 * theta[1])).sum(axis=1) / w.sum()

        at = np.array([model.theta_[c], np.log(model.var_[c])])
        assert np.abs(slope(likelihood, at)).max() < 1e-6


@pytest.mark.mission("P2")
def test_discrete_estimates_are_counts_and_the_gradient_vanishes_there(rng):
    counts, y = rng.poisson(1.5, size=(200, 4)), rng.integers(3, size=200)
    multinomial = hg.MultinomialNB(alpha=0.0).fit(counts, y)
    bernoulli = hg.BernoulliNB(alpha=0.0).fit(counts, y)
    categorical = hg.CategoricalNB(alpha=0.0).fit(counts, y)
    for c in range(3):
        mine = counts[y == c]
        p = np.exp(multinomial.feature_log_prob_[c])
        np.testing.assert_allclose(p, mine.sum(axis=0) / mine.sum(), rtol=1e-12)
        # Along the simplex (softmax coordinates) the multinomial likelihood is flat at the estimate.
        flat = slope(lambda t, mine=mine: mine.sum(axis=0) @ (t - logsumexp(t)) / mine.sum(), np.log(p))
        assert np.abs(flat).max() < 1e-8
        q = np.exp(bernoulli.feature_log_prob_[c])
        np.testing.assert_allclose(q, (mine > 0).mean(axis=0), rtol=1e-12)
        there = (mine > 0).mean(axis=0)
        flat = slope(lambda t, b=there: np.sum(b * t - np.logaddexp(0, t)), np.log(q / (1 - q)))
        assert np.abs(flat).max() < 1e-8
        for j in range(4):
            share = np.bincount(mine[:, j], minlength=counts[:, j].max() + 1) / len(mine)
            np.testing.assert_allclose(np.exp(categorical.feature_log_prob_[j][c]), share, rtol=1e-12)


@pytest.mark.mission("P2")
@pytest.mark.parametrize("alpha", [0.0, 0.5, 2.0])
def test_smoothing_is_that_many_more_observations(rng, alpha):
    X, y = rng.integers(0, 3, size=(60, 3)), rng.integers(2, size=60)
    model = hg.CategoricalNB(alpha=alpha, fit_prior=False).fit(X, y)
    extra = np.array(list(itertools.product(range(3), repeat=3)))  # every category of every column nine times
    more = np.concatenate([X, extra, extra])
    w = np.concatenate([np.ones(60), np.full(54, alpha / 9)])
    padded = hg.CategoricalNB(alpha=0.0, fit_prior=False).fit(more, np.append(y, np.repeat([0, 1], 27)), w)
    for one, two in zip(model.category_count_, padded.category_count_):
        np.testing.assert_allclose(one + alpha, two, rtol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X), padded.predict_proba(X), atol=1e-12)


@pytest.mark.mission("P2")
def test_bayes_rule_by_brute_force(rng):
    X, y = blobs(rng, n=90)
    model = hg.GaussianNB(priors=[0.2, 0.5, 0.3]).fit(X, y)
    for x, p in zip(X[:20], model.predict_proba(X[:20])):
        density = [np.prod(norm.pdf(x, model.theta_[c], np.sqrt(model.var_[c]))) for c in range(3)]
        joint = np.array([0.2, 0.5, 0.3]) * density
        np.testing.assert_allclose(p, joint / joint.sum(), atol=1e-12)
    B = (X > 50).astype(float)
    model = hg.BernoulliNB().fit(B, y)
    p1 = np.array([(B[y == c].sum(axis=0) + 1) / (np.sum(y == c) + 2) for c in range(3)])
    joint = np.array([np.mean(y == c) * np.prod(np.where(B[:, None] > 0, p1, 1 - p1)[:, c], axis=1) for c in range(3)])
    np.testing.assert_allclose(model.predict_proba(B), (joint / joint.sum(axis=0)).T, atol=1e-12)


@pytest.mark.mission("P2")
def test_a_large_offset_costs_no_digits(rng):
    X, y = blobs(rng)
    for shift in (0.0, 1e7):
        var = hg.GaussianNB(var_smoothing=0.0).fit(X + shift, y).var_
        exact = np.array([np.var((X + shift)[y == c], axis=0) for c in range(3)])
        np.testing.assert_allclose(var, exact, rtol=1e-8)


@pytest.mark.mission("P2")
@pytest.mark.parametrize(
    "model", [hg.GaussianNB(), hg.GaussianNB(shared_variance=True), hg.MultinomialNB(), hg.ComplementNB(),
              hg.BernoulliNB(binarize=1.0), hg.CategoricalNB()], ids=repr,
)  # fmt: skip
def test_partial_fits_in_any_pieces_are_one_fit(rng, model):
    X, y = rng.integers(0, 4, size=(130, 5)), rng.integers(4, size=130)
    w = rng.random(130)
    whole = type(model)(**model.get_params()).fit(X, y, w)
    for cut in ([1, 2, 50], [64]):
        parts = type(model)(**model.get_params())
        for rows in np.split(np.arange(130), cut):
            parts.partial_fit(X[rows], y[rows], classes=np.arange(4), sample_weight=w[rows])
        np.testing.assert_allclose(parts.predict_proba(X), whole.predict_proba(X), atol=1e-11)


@pytest.mark.mission("P2")
@pytest.mark.parametrize("k", [2, 3, 7, 20, 40])
def test_all_storages_count_and_score_alike(rng, k):
    X, y = rng.poisson(0.4, size=(500, 60)).astype(float), rng.permutation(np.arange(500) % k)
    w = rng.random(500)
    for make in (hg.MultinomialNB, hg.BernoulliNB, hg.GaussianNB):
        dense = make().fit(X, y, w)
        expected = dense.predict_joint_log_proba(X)
        for other in (np.asfortranarray(X), X.astype(np.float32), scipy.sparse.csr_array(X), scipy.sparse.csc_array(X),
                      np.asfortranarray(X.astype(np.float32))):  # fmt: skip
            model = make().fit(other, y, w)
            np.testing.assert_allclose(model.predict_joint_log_proba(other), expected, rtol=1e-9, atol=1e-9)
            assert np.mean(model.predict(other) == dense.predict(X)) > 0.99


@pytest.mark.mission("P2")
def test_mixed_columns_are_the_sum_of_their_parts(rng):
    n = 200
    y = rng.integers(2, size=n)
    frame = pd.DataFrame({
        "height": rng.normal(size=n) + y,
        "colour": rng.choice(["red", "green", "blue"], size=n),
        "smoker": rng.random(n) < 0.3 + 0.4 * y,
        "width": rng.normal(size=n),
    })  # fmt: skip
    model = hg.MixedNB().fit(frame, y)
    assert model.distributions_ == ["gaussian", "categorical", "bernoulli", "gaussian"]
    flat = {"class_prior": [0.5, 0.5]}
    numbers = frame[["height", "width"]].to_numpy()
    colours = np.unique(frame["colour"], return_inverse=True)[1][:, None]
    smoker = frame[["smoker"]].to_numpy().astype(float)
    parts = [
        hg.GaussianNB(priors=[0.5, 0.5]).fit(numbers, y).predict_joint_log_proba(numbers),
        hg.CategoricalNB(**flat).fit(colours, y).predict_joint_log_proba(colours),
        hg.BernoulliNB(**flat).fit(smoker, y).predict_joint_log_proba(smoker),
    ]
    joint = np.log(np.bincount(y) / n) + sum(parts) - 3 * np.log(0.5)
    np.testing.assert_allclose(model.predict_joint_log_proba(frame), joint, atol=1e-10)
    strange = frame.assign(colour="purple")  # never seen: the column is left out
    without = hg.MixedNB().fit(frame.drop(columns="colour"), y).predict_proba(frame.drop(columns="colour"))
    np.testing.assert_allclose(model.predict_proba(strange), without, atol=1e-12)
    chosen = hg.MixedNB({"smoker": "categorical", "width": "gaussian"}).fit(frame, y)
    np.testing.assert_allclose(chosen.predict_proba(frame), model.predict_proba(frame), atol=1e-12)
    with pytest.raises(ValueError, match="distributions"):
        hg.MixedNB({"nobody": "gaussian"}).fit(frame, y)


@pytest.mark.mission("P2")
def test_mixed_columns_in_pieces_are_the_same_counts(rng):
    n = 240
    y, s = rng.integers(3, size=n), rng.integers(1, 4, size=n)
    frame = pd.DataFrame({
        "height": rng.normal(size=n) + y,
        "colour": np.where(np.arange(n) < 80, "red", rng.choice(["red", "blue", "amber"], size=n)),
        "smoker": rng.random(n) < 0.3 + 0.2 * y,
        "size": rng.integers(4, size=n),
    })  # fmt: skip
    kinds = {"size": "categorical", "smoker": "bernoulli"}
    whole, pieces = hg.MixedNB(kinds).fit(frame, y, s), hg.MixedNB(kinds)
    for rows in np.array_split(np.arange(n), 3):  # blue and amber are met in the second piece only
        pieces.partial_fit(frame.iloc[rows], y[rows], classes=[0, 1, 2], sample_weight=s[rows])
    np.testing.assert_allclose(
        pieces.predict_joint_log_proba(frame), whole.predict_joint_log_proba(frame), rtol=1e-7, atol=1e-7
    )
    np.testing.assert_array_equal(pieces.class_count_, whole.class_count_)
    with pytest.raises(ValueError, match="not in classes"):
        pieces.partial_fit(frame, y + 1)


def test_mistakes_are_named(rng):
    X, y = rng.normal(size=(20, 2)), np.arange(20) % 2
    with pytest.raises(ValueError, match="Negative values"):
        hg.MultinomialNB().fit(X, y)
    with pytest.raises(ValueError, match="class_prior"):
        hg.MultinomialNB(class_prior=[1.0]).fit(np.abs(X), y)
    with pytest.raises(ValueError, match="min_categories"):
        hg.CategoricalNB().fit([[0], [1]], [0, 1]).predict([[2]])
    with pytest.raises(ValueError, match="shared_variance"):
        hg.GaussianNB().fit(X, y).as_linear()
    with pytest.raises(ValueError, match="not in classes"):
        hg.GaussianNB().partial_fit(X, y + 5, classes=[0, 1])
    with pytest.raises(ValueError, match="shrinkage"):
        hg.LinearDiscriminantAnalysis(shrinkage="much").fit(X, y)
    with pytest.raises(ValueError, match="n_components"):
        hg.GaussianMixture("many").fit(X)
    with pytest.raises(ValueError, match="prior_observations"):
        hg.GaussianMixture(2, prior_observations=0, reg_covar=0, means_init=[[0, 0], [9, 9]]).fit(
            np.concatenate([X, [[9.0, 9.0]]])
        )


# ----------------------------------------------------------------------------------------------------- discriminants


@pytest.mark.mission("P3")
@pytest.mark.parametrize("k", [2, 4])
def test_discriminants_are_bayes_rule_for_gaussians(rng, k):
    X, y = blobs(rng, k=k)
    means = np.array([X[y == c].mean(axis=0) for c in range(k)])
    covariances = np.array([np.cov(X[y == c].T, bias=True) for c in range(k)])
    share = np.bincount(y) / len(y)
    pooled = np.einsum("c,cij->ij", share, covariances)
    for model, S in (
        (hg.QuadraticDiscriminantAnalysis(), covariances),
        (hg.LinearDiscriminantAnalysis(), [pooled] * k),
        (hg.QuadraticDiscriminantAnalysis(reg_param=0.3), 0.7 * covariances + 0.3 * np.eye(3)),
        (
            hg.LinearDiscriminantAnalysis(shrinkage=0.4, solver="lsqr"),
            [0.6 * pooled + 0.4 * np.trace(pooled) / 3 * np.eye(3)] * k,
        ),
    ):
        joint = np.column_stack([np.log(share[c]) + multivariate_normal(means[c], S[c]).logpdf(X) for c in range(k)])
        p = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        np.testing.assert_allclose(model.fit(X, y).predict_proba(X), p, atol=1e-9)


@pytest.mark.mission("P3")
@pytest.mark.parametrize("make", [lambda: hg.GaussianNB(shared_variance=True), hg.LinearDiscriminantAnalysis])
def test_shared_covariance_is_the_logistic_form(rng, make):
    X, y = blobs(rng, k=2)
    model = make().fit(X, y)
    form = model.as_linear()
    w, b = form.coef[0], form.intercept[0]
    if isinstance(model, hg.GaussianNB):
        var = model.var_[0]
        np.testing.assert_allclose(w, (model.theta_[1] - model.theta_[0]) / var, rtol=1e-12)
        middle = 0.5 * np.sum((model.theta_[1] ** 2 - model.theta_[0] ** 2) / var)
        np.testing.assert_allclose(b, np.log(model.class_prior_[1] / model.class_prior_[0]) - middle, rtol=1e-10)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-(X @ w + b))), atol=1e-10)
    np.testing.assert_allclose(form.decision_function(X), X @ w + b, atol=1e-9)
    # With more classes, the softmax of one linear score each.
    X, y = blobs(rng, k=4)
    model = make().fit(X, y)
    z = model.as_linear().decision_function(X)
    np.testing.assert_allclose(model.predict_log_proba(X), z - logsumexp(z, axis=1, keepdims=True), atol=1e-8)


@pytest.mark.mission("P3")
def test_discriminant_directions(rng):
    """Within-class covariance 1, and the ratio of between- to within-class variance is as large as can be."""
    X, y = blobs(rng, d=5, k=3)
    model = hg.LinearDiscriminantAnalysis().fit(X, y)
    Z = model.transform(X)
    within = sum(np.cov(Z[y == c].T, bias=True) * np.mean(y == c) for c in range(3))
    np.testing.assert_allclose(within, np.eye(2), atol=1e-10)

    def ratio(v):
        z = X @ v
        return np.var(np.array([z[y == c].mean() for c in range(3)])[y]) / np.mean(
            [(z[i] - z[y == y[i]].mean()) ** 2 for i in range(len(z))]
        )

    best = ratio(model.scalings_[:, 0])
    assert all(ratio(v) <= best * (1 + 1e-9) for v in rng.normal(size=(30, 5)))
    assert model.explained_variance_ratio_.sum() == pytest.approx(1.0)


@pytest.mark.mission("P3")
def test_shrinkage_by_ledoit_and_wolf_helps_with_few_examples(rng):
    """The chosen share minimises the expected error where it is known, and the classifier gains by it."""
    d, n = 40, 30
    means = np.stack([np.zeros(d), np.full(d, 0.4)])
    y, y_new = np.arange(2 * n) % 2, np.arange(2000) % 2
    X, X_new = (means[c] + rng.normal(size=(len(c), d)) for c in (y, y_new))
    plain, shrunk = (
        hg.LinearDiscriminantAnalysis("lsqr", shrinkage).fit(X, y).score(X_new, y_new) for shrinkage in (None, "auto")
    )
    assert shrunk > plain + 0.05


def test_a_flat_class_is_reported(rng):
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    X[:, 2] = X[:, 0]
    with pytest.warns(ConvergenceWarning, match="reg_param"):
        model = hg.QuadraticDiscriminantAnalysis().fit(X, y)
    assert np.all(np.isfinite(model.predict_proba(X)))
    hg.QuadraticDiscriminantAnalysis(reg_param=0.1).fit(X, y)


# --------------------------------------------------------------------------------------------------------- mixtures


def cloud(rng, n=400, d=3, k=3):
    y = rng.integers(k, size=n)
    shape = rng.normal(size=(k, d, d)) / np.sqrt(d) + np.eye(d)
    return 20.0 + 3.0 * rng.normal(size=(k, d))[y] + np.einsum("nij,nj->ni", shape[y], rng.normal(size=(n, d)))


def rough_start(kind, X, k, rng):
    d = X.shape[1]
    var = X.var()
    covariances = {"full": np.stack([var * np.eye(d)] * k), "tied": var * np.eye(d), "diag": np.full((k, d), var),
                   "spherical": np.full(k, var)}  # fmt: skip
    return Components(kind, np.full(k, 1 / k), X[rng.permutation(len(X))[:k]].copy(), covariances[kind])


def dense_covariances(model):
    k, d = model.means.shape
    return {"full": lambda: model.covariances, "tied": lambda: np.stack([model.covariances] * k),
            "diag": lambda: np.stack([np.diag(c) for c in model.covariances]),
            "spherical": lambda: np.stack([c * np.eye(d) for c in model.covariances])}[model.kind]()  # fmt: skip


@pytest.mark.mission("P5")
@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("nu", [0.0, 0.1, 5.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_penalised_likelihood_never_falls(rng, kind, nu, weighted):
    X = cloud(rng)
    w = rng.random(len(X)) if weighted else None
    prior = Prior(nu, nu * X.var(axis=0))
    for k in (1, 4 if nu else 2):  # without a prior, more components may collapse
        run = expectation_maximisation(Design(X), w, rough_start(kind, X, k, rng), prior, tol=0.0, max_iter=60)
        assert len(run.bounds) == 61 or run.converged
        assert np.diff(run.bounds).min() > -1e-12
        # The objective equals its formula.
        with np.errstate(divide="ignore"):  # a component may have lost all its weight
            log_weights = np.log(run.components.weights)
        densities = np.stack([
            p + multivariate_normal(m, S).logpdf(X)
            for p, m, S in zip(log_weights, run.components.means, dense_covariances(run.components))
        ])  # fmt: skip
        each = 1 if kind == "tied" else k
        penalty = -0.5 * sum(
            nu * np.linalg.slogdet(S)[1] + np.trace(np.diag(prior.scatter) @ np.linalg.inv(S))
            for S in dense_covariances(run.components)[:each]
        )
        s = np.ones(len(X)) if w is None else w
        assert run.bound == pytest.approx((s @ logsumexp(densities, axis=0) + penalty) / s.sum(), rel=1e-10)


@pytest.mark.mission("P5")
@pytest.mark.parametrize("kind", SHAPES)
def test_an_m_step_divides_by_the_weight_of_the_component(rng, kind):
    """Weights, means and covariances from responsibilities written out; N_c below, not n."""
    X, k = cloud(rng), 3
    d, s = X.shape[1], rng.random(len(X))
    old = rough_start(kind, X, k, rng)
    prior = Prior(2.0, np.array([1.0, 2.0, 3.0]))
    joint = np.stack([
        np.log(p) + multivariate_normal(m, S).logpdf(X)
        for p, m, S in zip(old.weights, old.means, dense_covariances(old))
    ])  # fmt: skip
    r = s * np.exp(joint - logsumexp(joint, axis=0))
    N = r.sum(axis=1)
    new = m_step(old, old.moments(Design(X), s), prior)
    means = r @ X / N[:, None]
    scatters = np.array([(r[c, :, None] * (X - means[c])).T @ (X - means[c]) for c in range(k)])
    psi = np.diag(prior.scatter)
    expected = {
        "full": (scatters + psi) / (N + 2.0)[:, None, None],
        "tied": (scatters.sum(axis=0) + psi) / (N.sum() + 2.0),
        "diag": (np.diagonal(scatters, axis1=1, axis2=2) + np.diag(psi)) / (N + 2.0)[:, None],
        "spherical": (np.trace(scatters, axis1=1, axis2=2) + 6.0) / (d * (N + 2.0)),
    }[kind]
    np.testing.assert_allclose(new.weights, N / s.sum(), rtol=1e-10)
    np.testing.assert_allclose(new.means, means, rtol=1e-10)
    np.testing.assert_allclose(new.covariances, expected, rtol=1e-8)


@pytest.mark.mission("P5")
@pytest.mark.parametrize("kind", SHAPES)
def test_the_gradient_vanishes_at_the_estimate(rng, kind):
    X = cloud(rng, n=200, d=2, k=2)
    model = hg.GaussianMixture(2, covariance_type=kind, tol=1e-14, max_iter=5000, prior_observations=0, reg_covar=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a tolerance this small may not be reached
        model.fit(X)

    def likelihood(theta):
        means, t = theta[:4].reshape(2, 2), theta[4]
        S = (1 + t) * dense_covariances(Components(kind, model.weights_, model.means_, model.covariances_))
        joint = np.stack([np.log(p) + multivariate_normal(m, V).logpdf(X) for p, m, V in zip(model.weights_, means, S)])
        return logsumexp(joint, axis=0).mean()

    assert np.abs(slope(likelihood, np.append(model.means_.ravel(), 0.0))).max() < 1e-5


@pytest.mark.mission("P5")
@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_a_component_on_one_point_does_not_blow_up_and_the_message_says_why(rng, kind):
    X = np.concatenate([rng.normal(size=(100, 2)), [[40.0, 40.0]]])
    start = {"means_init": [[0.0, 0.0], [40.0, 40.0]], "weights_init": [0.99, 0.01]}
    model = hg.GaussianMixture(2, covariance_type=kind, **start)
    with pytest.warns(ConvergenceWarning, match=r"Components \[1\].*grows without bound.*prior"):
        model.fit(X)
    assert model.held_by_prior_.tolist() == [False, True]
    assert np.all(np.isfinite(model.predict_proba(X)))
    assert np.all(np.isfinite(model.covariances_))
    assert model.lower_bound_ < 10
    assert np.diff(model.lower_bounds_).min(initial=0.0) > -1e-12
    with pytest.raises(ValueError, match="singular"):
        hg.GaussianMixture(2, covariance_type=kind, prior_observations=0, reg_covar=0, **start).fit(X)


@pytest.mark.mission("P5")
@pytest.mark.parametrize("kind", SHAPES)
def test_scikit_learn_cannot_improve_on_the_estimate(rng, kind):
    """From our estimate its EM goes nowhere; from the same start both reach the same likelihood."""
    from sklearn.mixture import GaussianMixture

    X = cloud(rng)
    shared = {"n_components": 3, "covariance_type": kind, "tol": 1e-10, "max_iter": 3000, "reg_covar": 0.0}
    means = X[:3] + 0.1
    mine = hg.GaussianMixture(prior_observations=0, means_init=means, **shared).fit(X)
    theirs = GaussianMixture(
        means_init=mine.means_, weights_init=mine.weights_, precisions_init=mine.precisions_, **shared
    ).fit(X)
    assert mine.score(X) == pytest.approx(theirs.score(X), abs=1e-6)
    assert mine.bic(X) == pytest.approx(theirs.bic(X), rel=1e-6)
    assert mine.aic(X) == pytest.approx(theirs.aic(X), rel=1e-6)
    np.testing.assert_allclose(mine.predict_proba(X), theirs.predict_proba(X), atol=1e-3)
    np.testing.assert_allclose(mine.score_samples(X), theirs.score_samples(X), atol=1e-3)


@pytest.mark.mission("P5")
@pytest.mark.parametrize("d", [1, 2, 5, 19, 70])
def test_densities_of_any_dimension(rng, d):
    """Small triangles are whitened in registers, large ones by BLAS; the densities are those of the definition."""
    X = cloud(rng, n=333, d=d, k=2)
    model = hg.GaussianMixture(2, prior_observations=1.0).fit(X)
    joint = np.stack([
        np.log(p) + multivariate_normal(m, S).logpdf(X)
        for p, m, S in zip(model.weights_, model.means_, model.covariances_)
    ])  # fmt: skip
    np.testing.assert_allclose(model.score_samples(X), logsumexp(joint, axis=0), rtol=1e-9)


@pytest.mark.mission("P5")
def test_the_number_of_components_is_found(rng):
    X = np.concatenate([rng.normal(size=(150, 2)) + c for c in ([0, 0], [9, 0], [0, 9])])
    for how in ("bic", "heldout"):
        model = hg.GaussianMixture(how, max_components=6, n_init=3).fit(X)
        assert min(model.choice_, key=model.choice_.get) == model.n_components_
        # Held-out rows hardly punish superfluous components, so they only exclude fewer than three.
        assert model.n_components_ == 3 if how == "bic" else model.n_components_ >= 3
        assert model.choice_[3] - min(model.choice_.values()) < 0.1 * (model.choice_[2] - model.choice_[3])
    drawn, labels = hg.GaussianMixture(3).fit(X).sample(6000)
    assert drawn.shape == (6000, 2)
    assert np.allclose(np.bincount(labels) / 6000, 1 / 3, atol=0.03)


@pytest.mark.mission("P5")
def test_starts_and_restarts(rng):
    X = cloud(rng, k=4)
    shared = {"n_components": 4, "tol": 1e-5, "max_iter": 2000}
    once = hg.GaussianMixture(**shared).fit(X)
    assert hg.GaussianMixture(n_init=4, **shared).fit(X).lower_bound_ >= once.lower_bound_
    again = hg.GaussianMixture(warm_start=True, **shared).fit(X)
    bound = again.lower_bound_
    assert again.fit(X).n_iter_ <= 2
    assert again.lower_bound_ == pytest.approx(bound, abs=1e-4)
    for start in ("k-means++", "random", "random_from_data"):
        assert np.isfinite(hg.GaussianMixture(init_params=start, **shared).fit(X).lower_bound_)


@pytest.mark.mission("P5")
def test_mixtures_within_classes_are_bayes_rule(rng):
    centres = np.array([[0, 0], [4, 4], [0, 4], [4, 0]])
    which = rng.integers(4, size=800)
    X, y = centres[which] + 0.7 * rng.normal(size=(800, 2)), which // 2  # exclusive or: no line will do
    model = hg.MixtureDiscriminant(2).fit(X, y)
    assert model.score(X, y) > 0.95
    assert hg.LinearDiscriminantAnalysis().fit(X, y).score(X, y) < 0.7
    joint = np.log(model.priors_) + np.column_stack([m.score_samples(X) for m in model.mixtures_])
    np.testing.assert_allclose(
        model.predict_proba(X), np.exp(joint - logsumexp(joint, axis=1, keepdims=True)), atol=1e-12
    )
    one = hg.MixtureDiscriminant(1, covariance_type="full", prior_observations=0, reg_covar=0).fit(X, y)
    np.testing.assert_allclose(
        one.predict_proba(X), hg.QuadraticDiscriminantAnalysis().fit(X, y).predict_proba(X), atol=1e-9
    )


@pytest.mark.mission("P5")
def test_mixtures_of_regressions(rng):
    n = 400
    X = rng.uniform(-2, 2, size=(n, 2))
    which = rng.integers(2, size=n)
    truth = np.array([[2.0, -1.0], [-2.0, 0.5]])
    y = np.sum(truth[which] * X, axis=1) + np.array([1.0, -1.0])[which] + 0.2 * rng.normal(size=n)
    model = hg.MixtureOfRegressions(2, tol=1e-10).fit(X, y)
    order = np.argsort(-model.coef_[:, 0])
    np.testing.assert_allclose(model.coef_[order], truth, atol=0.1)
    np.testing.assert_allclose(model.intercept_[order], [1.0, -1.0], atol=0.1)
    assert np.diff(model.lower_bounds_).min() > -1e-12
    # Each regression is least squares weighted by its responsibilities (up to the small ridge).
    r = model.responsibilities(X, y)
    A = np.column_stack([X, np.ones(n)])
    for c in range(2):
        beta = np.append(model.coef_[c], model.intercept_[c])
        assert np.abs(A.T @ (r[:, c] * (y - A @ beta))).max() / n < 1e-4
        squares = r[:, c] @ (y - A @ beta) ** 2
        assert model.variances_[c] == pytest.approx(squares / r[:, c].sum(), rel=0.3)
    assert np.mean((r[:, order[1]] > 0.5) == which) > 0.9
    joint = norm.logpdf(y[:, None], model.predict_components(X), np.sqrt(model.variances_)) + np.log(model.weights_)
    np.testing.assert_allclose(model.log_likelihood(X, y), logsumexp(joint, axis=1), atol=1e-10)
    np.testing.assert_allclose(model.predict(X), model.predict_components(X) @ model.weights_)
    one = hg.MixtureOfRegressions(1, alpha=1e-9).fit(X, y)
    np.testing.assert_allclose(one.coef_[0], hg.LinearRegression().fit(X, y).coef_, atol=1e-6)


# -------------------------------------------------------------------------------- generative against discriminative


def error_curves(X, y, sizes, repeats, generative, rng):
    """Mean test errors of a generative model and of logistic regression, by training size."""
    curves = []
    for m in sizes:
        errors: list[tuple[float, float]] = []
        while len(errors) < repeats:
            order = rng.permutation(len(y))
            a, b = order[:m], order[m : m + 2000]
            if np.unique(y[a]).size == 2:
                pair = (generative(), hg.LogisticRegression(C=1e3, tol=1e-4))
                errors.append(tuple(np.mean(model.fit(X[a], y[a]).predict(X[b]) != y[b]) for model in pair))
        curves.append(np.mean(errors, axis=0))
    return np.array(curves)


def real_table(path):
    table = pd.read_csv(path)
    y = table.iloc[:, -1]
    return table.iloc[:, :-1], (y == y.iloc[0]).to_numpy().astype(int)


@pytest.mark.mission("P4")
@pytest.mark.parametrize("name", ["adult_train.csv.gz", "spambase.csv.gz", "pima_diabetes.csv.gz"])
def test_learning_curves_cross_on_real_data(real_data, rng, name):
    """Naive Bayes ahead on few examples, logistic regression on many (Ng & Jordan 2002)."""
    table, y = real_table(real_data(name))
    if name.startswith("pima"):
        X = table.to_numpy(float)
        X, generative = (X - X.mean(axis=0)) / X.std(axis=0), lambda: hg.GaussianNB(shared_variance=True)
    elif name.startswith("adult"):
        X = pd.get_dummies(table.select_dtypes(exclude="number").iloc[:6000]).to_numpy(float)
        y, generative = y[:6000], hg.BernoulliNB
    else:
        X, generative = (table.to_numpy(float)[:, :54] > 0).astype(float), hg.BernoulliNB
    few, many = error_curves(
        X, y, (20 if "adult" in name or "pima" in name else 40, min(1280, len(y) // 2)), 30, generative, rng
    )
    assert few[0] < few[1], "naive Bayes should be ahead on few examples"
    assert many[1] < many[0], "logistic regression should be ahead on many"


@pytest.mark.mission("P2")
def test_a_spam_filter(real_data):
    from sklearn.feature_extraction.text import CountVectorizer

    table = pd.read_csv(real_data("sms_spam.csv.gz"))
    words = CountVectorizer().fit_transform(table["text"])
    spam = (table["label"] == "spam").to_numpy()
    train = np.arange(len(spam)) % 3 != 0
    for make in (hg.MultinomialNB, hg.BernoulliNB, hg.ComplementNB):
        model = make().fit(words[train], spam[train])
        assert model.score(words[~train], spam[~train]) > 0.96


@pytest.mark.mission("P2")
@pytest.mark.parametrize("make", [hg.QuadraticDiscriminantAnalysis, hg.MixtureDiscriminant, hg.GaussianNB])
def test_so_far_out_that_every_density_is_zero_the_prior_is_what_is_known(make, rng):
    X = rng.normal(size=(90, 3))
    y = np.arange(90) % 3 == 0
    model = make().fit(X, y)
    far = np.array([[1e300, 0.0, -1e300], [1e160, 1e160, 1e160], [0.0, 0.0, 0.0]])
    p = model.predict_proba(far)
    np.testing.assert_allclose(p[:2], [[2 / 3, 1 / 3]] * 2, rtol=1e-12)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(model.predict_log_proba(far), np.log(p), rtol=1e-9)


def test_responsibilities_so_far_out_are_the_shares_of_the_components(rng):
    X = np.concatenate([rng.normal(size=(60, 2)), rng.normal(8.0, 1.0, size=(30, 2))])
    for shape in ("full", "tied", "diag", "spherical"):
        model = hg.GaussianMixture(2, covariance_type=shape, random_state=0).fit(X)
        np.testing.assert_allclose(model.predict_proba([[1e300, -1e300]]), [model.weights_], rtol=1e-12)


@pytest.mark.mission("P3")
@pytest.mark.parametrize("weighted", [False, True])
def test_the_share_of_ledoit_and_wolf(weighted, rng):
    """share = min(b, δ)/δ with δ = ‖R − μI‖² and b = Σᵢ ‖zᵢzᵢ' − R‖²/n², R the correlation, on correlated columns."""
    n, d = 25, 4
    mixing = rng.normal(size=(d, d))
    X = rng.normal(size=(2 * n, d)) @ mixing * np.array([1.0, 10.0, 0.1, 3.0])
    y = np.arange(2 * n) % 2
    weight = rng.integers(1, 4, size=2 * n).astype(float) if weighted else None
    model = hg.QuadraticDiscriminantAnalysis(shrinkage="auto", store_covariance=True).fit(X, y, sample_weight=weight)
    for c in range(2):
        rows = np.flatnonzero(y == c)
        times = np.ones(n, dtype=int) if weight is None else weight[rows].astype(int)
        Z = np.repeat(X[rows], times, axis=0)
        Z = Z - Z.mean(axis=0)
        deviation = Z.std(axis=0)
        Z = Z / deviation
        R = Z.T @ Z / len(Z)
        mu = np.trace(R) / d
        delta = np.sum((R - mu * np.eye(d)) ** 2)
        b = sum(np.sum((np.outer(z, z) - R) ** 2) for z in Z) / len(Z) ** 2
        share = min(b, delta) / delta
        assert 0 < share < 1
        expected = ((1 - share) * R + share * mu * np.eye(d)) * np.outer(deviation, deviation)
        np.testing.assert_allclose(model.covariance_[c], expected, rtol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_discriminants_of_fewer_rows_than_columns_agree_with_those_of_their_copies(rng, weighted, dtype):
    """n × n inner products give what the d × d covariance of the same rows, each repeated, gives."""
    X = (rng.normal(size=(24, 40)) * rng.uniform(0.1, 10.0, 40) + 1.0).astype(dtype)
    X[:, 5] = 2.0  # without spread
    y = np.arange(24) % 3
    s = rng.uniform(0.5, 2.0, 24) if weighted else None
    wide = hg.LinearDiscriminantAnalysis().fit(X, y, sample_weight=s)
    copies = None if s is None else np.tile(s, 2)
    tall = hg.LinearDiscriminantAnalysis().fit(np.tile(X, (2, 1)), np.tile(y, 2), sample_weight=copies)
    accuracy = {"rtol": 1e-6, "atol": 1e-8} if dtype == np.float64 else {"rtol": 1e-3, "atol": 1e-4}
    assert wide.coef_.dtype == dtype
    assert np.abs(wide.coef_[:, 5]).max() < 1e-6 * np.abs(wide.coef_).max()
    np.testing.assert_allclose(wide.coef_, tall.coef_, **accuracy)
    np.testing.assert_allclose(wide.intercept_, tall.intercept_, **accuracy)
    np.testing.assert_allclose(wide.explained_variance_ratio_, tall.explained_variance_ratio_, **accuracy)
