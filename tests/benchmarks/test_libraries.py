"""Every installed library, hinge included, on a small problem of every kind it offers to solve.

An adapter that translated a parameter wrongly would not arrive at the objective that the others reach.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.harness import Problem, Settings, Task
from benchmarks.judges import OBJECTIVES
from benchmarks.race import run_task
from benchmarks.scores import ACCURACY, LOGLOSS, R2
from benchmarks.structured import TOKENS, sentences

from benchmarks import data, libraries

X = data.dense(300, 6, seed=0)
RESPONSE = data.linear_response(X, data.weights(6, seed=1), seed=2)
SIGNS = data.noisy_signs(X, data.weights(6, seed=1), seed=2)
CLASSES = np.digitize(RESPONSE, np.quantile(RESPONSE, [0.3, 0.6]))
WIDE = np.asfortranarray(X)


def problem(kind: str, y: np.ndarray, design: object = X, **params) -> Problem:
    return Problem(kind, design, y, params, design, y)


def path() -> Problem:
    top = float(np.abs(WIDE.T @ RESPONSE).max()) / RESPONSE.size / 0.5
    return problem("elastic_net_path", RESPONSE, WIDE, alphas=top * np.logspace(0, -2, 10), l1_ratio=0.5)


def categories() -> Problem:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    codes = rng.integers(4, size=(500, 2))
    frame = pandas.DataFrame({"a": rng.standard_normal(500)})
    for j, name in enumerate("uv"):
        frame[name] = pandas.Categorical.from_codes(codes[:, j], [f"{name}{level}" for level in range(4)])
    y = rng.poisson(np.exp(0.2 * frame["a"] + 0.3 * codes[:, 0])).astype(float)
    return Problem("categorical_poisson_glm", frame, y, {}, frame, y)


CONVEX = [
    problem("ridge", RESPONSE, alpha=1.0, intercept=True),
    problem("lasso", RESPONSE, WIDE, alpha=0.1),
    problem("lasso", RESPONSE, sp.csc_matrix(WIDE), alpha=0.1),
    path(),
    problem("logistic_l2", SIGNS, C=1.0),
    problem("logistic_l2", SIGNS, C=1.0, intercept=True),
    problem("logistic_l1", SIGNS, WIDE, alpha=0.02),
    problem("multinomial_l2", CLASSES, C=1.0),
    problem("linear_svm", SIGNS, C=0.1, loss="hinge"),
    problem("linear_svm", SIGNS, C=0.1, loss="squared_hinge"),
    problem("huber", RESPONSE, epsilon=1.35, alpha=1e-4, intercept=True),
    problem("quantile", RESPONSE, quantile=0.7, alpha=0.0, intercept=True),
    problem("quantile", RESPONSE, quantile=0.7, alpha=0.01, intercept=True),
    problem("poisson_glm", np.floor(np.exp(0.5 * X[:, 0])), alpha=0.0, intercept=True),
    problem("gamma_glm", np.exp(0.5 * RESPONSE / RESPONSE.std()), alpha=0.0, intercept=True),
    categories(),
    problem("multiclass_svm", CLASSES, C=0.1),
    problem("one_vs_rest_svm", CLASSES, C=1.0, loss="squared_hinge"),
    problem("svc", SIGNS, C=1.0, gamma=0.2),
    problem("svr", RESPONSE, C=1.0, gamma=0.2, epsilon=0.1),
]


def run(task: Task):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers warn at loose tolerances
        result = run_task(task, libraries.enter, Settings(repeats=1), None)
    assert not [row.note for row in result.rows if row.note.startswith("failed")]
    return result


@pytest.mark.slow
@pytest.mark.parametrize("small", CONVEX, ids=lambda p: p.kind)
def test_all_reach_the_same_objective(small):
    assert small.kind in OBJECTIVES
    rows = run(Task(small.kind, "", lambda: small)).rows
    assert rows
    # QuantReg's iteration stalls, LIBLINEAR's dual solvers too; both stay near, which a wrong parameter would not.
    assert all(row.suboptimality < 1e-3 for row in rows), [(row.name, row.suboptimality) for row in rows]
    assert sum(row.reached for row in rows) >= 1


SPARSE = sp.csr_matrix(np.abs(np.round(X)))

SCORED = [
    (problem("sgd", SIGNS, SPARSE, loss="hinge", alpha=1e-4), ACCURACY),
    (problem("sgd", SIGNS, SPARSE, loss="log_loss", alpha=1e-4, average=True), ACCURACY),
    (problem("perceptron", SIGNS, SPARSE), ACCURACY),
    (problem("gaussian_nb", CLASSES), LOGLOSS),
    (problem("multinomial_nb", CLASSES, SPARSE), ACCURACY),
    (problem("kernel_ridge", RESPONSE, alpha=1.0, gamma=0.2), R2),
    (problem("large_kernel_regression", RESPONSE, alpha=1.0, gamma=0.2, centres=50), R2),
    (problem("bayesian_ridge", RESPONSE), R2),
    (problem("gaussian_process", RESPONSE), R2),
]


@pytest.mark.slow
@pytest.mark.parametrize(("small", "score"), SCORED, ids=lambda item: getattr(item, "kind", ""))
def test_all_fit_predict_and_are_scored(small, score):
    rows = run(Task(small.kind, "", lambda: small, (score,), margin=0.2)).rows
    assert rows
    assert all(np.isfinite(row.scores[score.name]) and row.predict is not None for row in rows)


@pytest.mark.slow
def test_mixtures_from_one_start_end_alike():
    from benchmarks.probabilistic import TASKS

    likelihood = next(task for task in TASKS if task.name == "gaussian-mixture").scores[0]
    start = {"weights_init": np.full(2, 0.5), "means_init": X[:2], "precisions_init": np.stack([np.eye(6)] * 2)}
    small = Problem("gaussian_mixture", X, None, {"components": 2, "steps": 10, **start}, X)
    rows = run(Task("mixture", "", lambda: small, (likelihood,), margin=1e-2)).rows
    assert all(row.reached for row in rows), [(row.name, row.scores) for row in rows]


@pytest.mark.slow
def test_taggers_learn_the_chain():
    words, labels = sentences(60, 3, 8, 6, seed=1)
    small = Problem("chain_crf", words, labels, {"l2": 1.0, "iterations": 30}, words, labels)
    rows = run(Task("crf", "", lambda: small, (TOKENS,), target=1e-2)).rows
    assert all(row.reached and row.scores[TOKENS.name] > 0.8 for row in rows)
