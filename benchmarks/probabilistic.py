"""Likelihoods, generative models and Bayesian methods."""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp

from benchmarks import data
from benchmarks.harness import Outcome, Problem, Score, Task
from benchmarks.linear import gram, read, read_several
from benchmarks.machine import Work
from benchmarks.scores import ACCURACY, RMSE

# ------------------------------------------------------------------------------------------------------------- GLMs


def glm(family: str) -> Problem:
    X = data.dense(200_000, 100, seed=40)
    w = data.weights(100, seed=41)
    z = X @ w
    mean = np.exp(0.5 * z / z.std())
    rng = np.random.default_rng(42)
    y = rng.poisson(mean).astype(np.float64) if family == "poisson" else rng.gamma(2.0, mean / 2.0)
    return Problem(f"{family}_glm", X, y, {"alpha": 0.0, "intercept": True}, X, y)


def categorical_poisson() -> Problem:
    import pandas

    rng = np.random.default_rng(43)
    n, levels = 1_000_000, 1_000
    codes = rng.integers(levels, size=(n, 2))
    x = rng.standard_normal((n, 3))
    effects = 0.3 * rng.standard_normal((2, levels))
    mean = np.exp(-1.0 + 0.2 * x.sum(axis=1) + effects[0, codes[:, 0]] + effects[1, codes[:, 1]])
    frame = pandas.DataFrame(x, columns=["a", "b", "c"])
    for column, name in enumerate(("u", "v")):
        frame[name] = pandas.Categorical.from_codes(codes[:, column], [f"{name}{level}" for level in range(levels)])
    return Problem("categorical_poisson_glm", frame, rng.poisson(mean).astype(np.float64), {}, frame)


# ------------------------------------------------------------------------------------------------------- generative


def gaussian_classes() -> Problem:
    rng = np.random.default_rng(44)
    n, d, k = 1_000_000, 50, 5
    y = rng.integers(k, size=n)
    X = rng.standard_normal((n, d)) * rng.uniform(0.5, 1.5, (k, d))[y] + 0.35 * rng.standard_normal((k, d))[y]
    return Problem("gaussian_nb", X, y, {}, X, y)


def word_counts() -> Problem:
    """Documents of 20 topics: half of each row's words come from its topic's favourites."""
    rng = np.random.default_rng(45)
    n, d, k, words = 200_000, 50_000, 20, 60
    y = rng.integers(k, size=n)
    X = data.sparse_rows(n, d, words, seed=46, normalise=False)
    favourite = rng.integers(d // k, size=(n, words // 10)) + (y * (d // k))[:, None]
    rows = np.repeat(np.arange(n), words // 10)
    X = sp.csr_matrix(X + sp.csr_matrix((np.ones(rows.size), (rows, favourite.ravel())), shape=(n, d)))
    X.data = np.ceil(X.data)
    return Problem("multinomial_nb", X, y, {}, X, y)


def mixture() -> Problem:
    """Ten overlapping Gaussians, and a start that everybody is given."""
    rng = np.random.default_rng(47)
    n, d, k = 100_000, 20, 10
    means = 2.0 * rng.standard_normal((k, d))
    factors = rng.standard_normal((k, d, d)) / np.sqrt(d) + np.eye(d)
    y = rng.integers(k, size=n)
    X = np.einsum("nij,nj->ni", factors[y], rng.standard_normal((n, d))) + means[y]
    start = {
        "weights_init": np.full(k, 1.0 / k),
        "means_init": X[rng.permutation(n)[:k]].copy(),
        "precisions_init": np.stack([np.eye(d)] * k),
    }
    return Problem("gaussian_mixture", X, None, {"components": k, "steps": 50, **start}, X)


def mixture_likelihood(problem: Problem, outcome: Outcome) -> float:
    """Mean log density of the rows; the answer is (weights, means, covariances)."""
    weights, means, covariances = outcome.answer
    n, d = problem.shape
    densities = np.empty((n, len(weights)))
    for k, (mean, covariance) in enumerate(zip(means, covariances)):
        factor = np.linalg.cholesky(covariance)
        z = np.linalg.solve(factor, (problem.X - mean).T)
        densities[:, k] = -0.5 * np.square(z).sum(axis=0) - np.log(np.diag(factor)).sum() + np.log(weights[k])
    return float(logsumexp(densities, axis=1).mean()) - 0.5 * d * np.log(2 * np.pi)


def em_work(problem: Problem) -> Work:
    """Every step whitens all rows for every component and forms as many weighted second moments."""
    n, d = problem.shape
    flops = problem.params["steps"] * problem.params["components"] * 2.0 * float(n) * d * d
    return Work(problem.params["steps"] * problem.X.nbytes, flops, "one read and two n·d² products a component a step")


# --------------------------------------------------------------------------------------------------------- Bayesian


def regression(kind: str, n: int, d: int, test: int = 2_000) -> Problem:
    X = data.dense(n + test, d, seed=48)
    y = data.linear_response(X, data.weights(d, seed=49), seed=50, snr=1.0)
    X, y, X_test, y_test = data.split(X, (y - y.mean()) / y.std(), test)
    return Problem(kind, X, y, {}, X_test, y_test)


def gp() -> Problem:
    from benchmarks.kernel import wavy

    X, f = wavy(5_000, 50, seed=51)
    y = f + 0.3 * np.random.default_rng(52).standard_normal(f.size)
    X, y, X_test, y_test = data.split(X, y, 2_000)
    return Problem("gaussian_process", X, y, {}, X_test, y_test)


GLM = "α=0, log link, intercept; predict the 200k rows"

TASKS = [
    Task("poisson-glm", GLM, partial(glm, "poisson"), work=read_several, goal=3),
    Task("gamma-glm", GLM, partial(glm, "gamma"), work=read_several, goal=3),
    Task("poisson-categorical", "two 1000-level columns, unpenalised, log link", categorical_poisson, goal=1.5),
    Task("gaussian-nb", "5 classes; predict all rows", gaussian_classes, (ACCURACY,), margin=1e-3, work=read, goal=2),
    Task("multinomial-nb", "20 classes, CSR; predict all", word_counts, (ACCURACY,), margin=1e-3, work=read, goal=1.5),
    Task(
        "gaussian-mixture",
        "10 full covariances, 50 EM steps from one start; predict = responsibilities of all rows",
        mixture,
        (Score("log-likelihood", mixture_likelihood),),
        margin=1e-3,
        work=em_work,
        goal=8,
    ),
    Task(
        "bayesian-ridge",
        "defaults; predict 2k rows",
        partial(regression, "bayesian_ridge", 100_000, 100),
        (RMSE,),
        margin=1e-4,
        work=gram,
        goal=3,
    ),
    Task("gp-3k", "RBF + noise fitted by marginal likelihood; predict 2k", gp, (RMSE,), margin=0.01, goal=4),
]
