"""Linear models: the rows of PEERS.md, cost against n, and three real data sets."""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.sparse as sp

from benchmarks import data
from benchmarks.harness import Problem, Task
from benchmarks.machine import Work
from benchmarks.scores import ACCURACY, R2


def size(X: object) -> float:
    """Bytes of a matrix as stored."""
    return float(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) if sp.issparse(X) else float(X.nbytes)


def read(problem: Problem) -> Work:
    """Whatever the method, X is read once."""
    return Work(size(problem.X))


def read_several(problem: Problem, passes: int = 5) -> Work:
    """A smooth fit by Newton-like steps: a handful of fused passes and one weighted XᵀX."""
    n, d = problem.shape
    gram = 0.0 if sp.issparse(problem.X) else float(n) * d * d
    note = f"{passes} fused passes over X" + (" and one XᵀWX" if gram else "")
    return Work(passes * size(problem.X), gram, note)


def gram(problem: Problem) -> Work:
    """The normal equations: half of XᵀX at gemm's rate, or one read where iterations could do without it."""
    n, d = problem.shape
    return Work(size(problem.X), float(n) * d * d, "read X once and form half of XᵀX") if d <= 500 else read(problem)


# ------------------------------------------------------------------------------------------------ synthetic problems


def ridge(n: int, d: int) -> Problem:
    X = data.dense(n + 5_000, d, seed=1)
    y = data.linear_response(X, data.weights(d, seed=2), seed=3)
    X, y, X_test, y_test = data.split(X, y, 5_000)
    return Problem("ridge", X, y, {"alpha": 1.0, "intercept": True}, X_test, y_test)


def dense_regression(n: int, d: int, nonzero: int) -> tuple[np.ndarray, np.ndarray]:
    X = data.dense(n, d, seed=4, correlation=0.0, order="F")
    return X, data.linear_response(X, data.weights(d, seed=5, nonzero=nonzero), seed=6)


def alpha_max(X: object, y: np.ndarray) -> float:
    """Least α at which the lasso's solution is zero."""
    return float(np.abs(X.T @ y).max()) / y.size


def lasso_dense(fraction: float) -> Problem:
    X, y = dense_regression(1_000, 20_000, 100)
    return Problem("lasso", X, y, {"alpha": alpha_max(X, y) / fraction})


def lasso_sparse(fraction: float) -> Problem:
    """Word counts; 200 of the 5000 heaviest columns matter, each about as much as any other."""
    X = data.sparse_rows(20_000, 100_000, 100, seed=7, normalise=False).tocsc()
    squares = np.asarray(X.multiply(X).sum(axis=0)).ravel()
    heavy = np.random.default_rng(8).permutation(np.argsort(-squares)[:5_000])[:200]
    w = np.zeros(100_000)
    w[heavy] = data.weights(200, seed=8) / np.sqrt(squares[heavy])
    y = data.linear_response(X, w, seed=9)
    return Problem("lasso", X, y, {"alpha": alpha_max(X, y) / fraction})


def path(l1_ratio: float) -> Problem:
    X, y = dense_regression(1_000, 5_000, 100)
    top = alpha_max(X, y) / l1_ratio
    return Problem("elastic_net_path", X, y, {"alphas": top * np.logspace(0, -2, 100), "l1_ratio": l1_ratio})


def classes_dense(n: int, d: int, nonzero: int | None = None, order: str = "C", test: int = 5_000) -> tuple:
    X = data.dense(n + test, d, seed=10, order=order)
    y = data.noisy_signs(X, data.weights(d, seed=11, nonzero=nonzero), seed=12)
    X, y, X_test, y_test = data.split(X, y, test)
    return np.asarray(X, order=order), y, X_test, y_test


def classes_sparse() -> tuple:
    X = data.sparse_rows(105_000, 50_000, 100, seed=13)
    y = data.noisy_signs(X, data.weights(50_000, seed=14), seed=15)
    return data.split(X, y, 5_000)


def logistic_l2_dense(n: int = 200_000, d: int = 100) -> Problem:
    X, y, X_test, y_test = classes_dense(n, d)
    return Problem("logistic_l2", X, y, {"C": 1.0}, X_test, y_test)


def logistic_l2_sparse() -> Problem:
    X, y, X_test, y_test = classes_sparse()
    return Problem("logistic_l2", X, y, {"C": 1.0}, X_test, y_test)


def logistic_l1(X: object, y: np.ndarray, fraction: float) -> Problem:
    return Problem("logistic_l1", X, y, {"alpha": alpha_max(X, y) / 2.0 / fraction})


def logistic_l1_dense(fraction: float) -> Problem:
    X, y, _, _ = classes_dense(2_000, 10_000, nonzero=100, order="F", test=10)
    return logistic_l1(X, y, fraction)


def logistic_l1_sparse(fraction: float) -> Problem:
    X, y, _, _ = classes_sparse()
    return logistic_l1(X.tocsc(), y, fraction)


def multinomial() -> Problem:
    X, y = data.images(70_000, 10, seed=16)
    X, y, X_test, y_test = data.split(X, y, 10_000)
    return Problem("multinomial_l2", X, y, {"C": 1.0}, X_test, y_test)


def svm_dense(loss: str, C: float, n: int = 100_000) -> Problem:
    X, y, X_test, y_test = classes_dense(n, 100)
    return Problem("linear_svm", X, y, {"C": C, "loss": loss}, X_test, y_test)


def svm_sparse(loss: str) -> Problem:
    X, y, X_test, y_test = classes_sparse()
    return Problem("linear_svm", X, y, {"C": 1.0, "loss": loss}, X_test, y_test)


def robust(kind: str, params: dict) -> Problem:
    X = data.dense(105_000, 50, seed=17)
    y = data.linear_response(X, data.weights(50, seed=18), seed=19, heavy_tails=True) + 3.0
    X, y, X_test, y_test = data.split(X, y, 5_000)
    return Problem(kind, X, y, params, X_test, y_test)


def online(kind: str, params: dict) -> Problem:
    X = data.sparse_rows(520_000, 100_000, 50, seed=20)
    y = data.noisy_signs(X, data.weights(100_000, seed=21), seed=22, strength=4.0)
    X, y, X_test, y_test = data.split(X, y, 20_000)
    return Problem(kind, X, y, params, X_test, y_test)


# ------------------------------------------------------------------------------------------------------ real problems


def a9a(kind: str, params: dict) -> Problem:
    X, y = data.svmlight("a9a", 123)
    X_test, y_test = data.svmlight("a9a.t", 123)
    return Problem(kind, X, y, params, X_test, y_test)


def a9a_l1() -> Problem:
    return a9a("logistic_l1", {"alpha": 1e-3})


def adult() -> Problem:
    X, y, X_test, y_test = data.adult()
    return Problem("logistic_l2", X, y, {"C": 1.0, "intercept": True}, X_test, y_test)


def california(kind: str, alpha: float) -> Problem:
    X, y, X_test, y_test = data.california()
    return Problem(kind, X, y, {"alpha": alpha, "intercept": True}, X_test, y_test)


LASSO = "‖y−Xw‖²/2n + λ‖w‖₁, no intercept"
LOGISTIC = "C·Σlogloss + ‖w‖²/2, C=1, no intercept"
SVM = "C·Σloss + ‖w‖²/2, no intercept"
PATH = "100 λs, λmax … λmax/100, objective summed over the path"

TASKS = [
    Task("ridge-100k-200", "α=1, intercept", partial(ridge, 100_000, 200), (R2,), work=gram, goal=1.2),
    Task("ridge-20k-2000", "α=1, intercept", partial(ridge, 20_000, 2_000), (R2,), work=gram, goal=1.2),
    Task("lasso-dense-20", f"λmax/20: {LASSO}", partial(lasso_dense, 20.0), work=read, goal=2),
    Task("lasso-dense-100", f"λmax/100: {LASSO}", partial(lasso_dense, 100.0), work=read, goal=2),
    Task("lasso-sparse-20", f"λmax/20: {LASSO}", partial(lasso_sparse, 20.0), work=read, goal=1.5),
    Task("lasso-sparse-100", f"λmax/100: {LASSO}", partial(lasso_sparse, 100.0), work=read, goal=1.5),
    Task("lasso-path", PATH, partial(path, 1.0), work=read, goal=3),
    Task("enet-path", f"l1_ratio=0.5, {PATH}", partial(path, 0.5), work=read, goal=3),
    Task("logistic-l2-dense", LOGISTIC, logistic_l2_dense, (ACCURACY,), work=read_several, goal=3),
    Task("logistic-l2-sparse", LOGISTIC, logistic_l2_sparse, (ACCURACY,), work=read_several, goal=2),
    Task("logistic-l1-dense-20", "λmax/20: mean logloss + λ‖w‖₁", partial(logistic_l1_dense, 20.0), work=read, goal=2),
    Task("logistic-l1-sparse-20", "λmax/20, as dense, CSC", partial(logistic_l1_sparse, 20.0), work=read, goal=2),
    Task("logistic-l1-sparse-100", "λmax/100, as dense, CSC", partial(logistic_l1_sparse, 100.0), work=read, goal=2),
    Task("multinomial", "C=1, no intercept, 10 classes", multinomial, (ACCURACY,), work=read, goal=3),
    Task("svm-hinge-dense-C0.01", f"C=0.01: {SVM}", partial(svm_dense, "hinge", 0.01), (ACCURACY,), work=read, goal=3),
    Task("svm-hinge-dense-C1", f"C=1: {SVM}", partial(svm_dense, "hinge", 1.0), (ACCURACY,), work=read, goal=20),
    Task("svm-squared-dense", f"C=1: {SVM}", partial(svm_dense, "squared_hinge", 1.0), (ACCURACY,), work=read, goal=2),
    Task("svm-hinge-sparse", f"C=1: {SVM}", partial(svm_sparse, "hinge"), (ACCURACY,), work=read, goal=1.5),
    Task("svm-squared-sparse", f"C=1: {SVM}", partial(svm_sparse, "squared_hinge"), (ACCURACY,), work=read, goal=1.5),
    Task(
        "huber",
        "ε=1.35, α=1e-4, scale estimated, intercept; Student-t noise",
        partial(robust, "huber", {"epsilon": 1.35, "alpha": 1e-4, "intercept": True}),
        (R2,),
        work=read_several,
        goal=5,
    ),
    *(
        Task(
            name,
            f"q=0.7: mean pinball + {alpha:g}‖w‖₁, intercept; Student-t noise",
            partial(robust, "quantile", {"quantile": 0.7, "alpha": alpha, "intercept": True}),
            work=read,
            goal=5,
        )
        for name, alpha in (("quantile", 0.0), ("quantile-l1", 1e-3))
    ),
    *(
        Task(
            name,
            "one epoch, 50 entries a row; predict 20k rows",
            partial(online, kind, params),
            (ACCURACY,),
            margin=0.02,
            work=read,
            goal=1.5,
        )
        for name, kind, params in (
            ("sgd-hinge", "sgd", {"loss": "hinge", "alpha": 1e-6}),
            ("sgd-log", "sgd", {"loss": "log_loss", "alpha": 1e-6}),
            ("sgd-log-averaged", "sgd", {"loss": "log_loss", "alpha": 1e-6, "average": True}),
            ("perceptron", "perceptron", {}),
        )
    ),
    *(
        Task(f"growth-{name}-{n // 1000}k", f"{setting}, d=100", partial(build, n=n), work=work, growth=(name, n))
        for name, setting, build, work in (
            ("ridge", "α=1, intercept", partial(ridge, d=100), gram),
            ("logistic", LOGISTIC, logistic_l2_dense, read_several),
            ("svm", f"hinge, C=0.01: {SVM}", partial(svm_dense, "hinge", 0.01), read),
        )
        for n in (10_000, 100_000, 1_000_000)
    ),
    Task("a9a-logistic", f"a9a (CSR): {LOGISTIC}", partial(a9a, "logistic_l2", {"C": 1.0}), (ACCURACY,), work=read),
    Task("a9a-logistic-l1", "a9a (CSR): mean logloss + 0.001‖w‖₁, no intercept", a9a_l1, (ACCURACY,), work=read),
    Task(
        "a9a-svm",
        f"a9a (CSR), hinge, C=1: {SVM}",
        partial(a9a, "linear_svm", {"C": 1.0, "loss": "hinge"}),
        (ACCURACY,),
        work=read,
    ),
    Task("adult-logistic", "Adult one-hot, C=1, intercept", adult, (ACCURACY,), work=read),
    Task("california-ridge", "California, α=1, intercept", partial(california, "ridge", 1.0), (R2,), work=read),
    Task(
        "california-lasso",
        "California, α=0.01, intercept",
        partial(california, "lasso", 0.01),
        (R2,),
        work=read,
    ),
]
