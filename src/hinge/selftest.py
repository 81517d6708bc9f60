"""Half a minute of checks on this machine: ``python -m hinge.selftest``.

The checks compare certificates with closed forms, fits with other numbers of threads, models with their files, and one model of
every family with the best constant. They need no further packages.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import hinge as hg
from hinge.environment import versions

Check = Callable[[], str]


def data(n: int = 300, d: int = 6, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, real targets and labels 0 and 1 with signal in both."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X @ np.arange(1.0, d + 1) / d + 0.5 * rng.normal(size=n)
    return X, score, (score > 0).astype(int)


def require(condition: Any, text: str) -> None:
    """Raise an error with this message unless the condition holds."""
    if not condition:
        raise AssertionError(text)


def ridge_closed_form() -> str:
    """Ridge weights against the normal equations, and the gap against the true distance to the optimum."""
    X, y, _ = data()
    n, d = X.shape
    exact = np.linalg.solve(X.T @ X / n + 0.1 * np.eye(d), X.T @ y / n)
    space = hg.Linear(fit_intercept=False)
    fit = hg.Learner(space, hg.Squared(), hg.L2(0.1), tol=1e-10).fit(X, y)
    require(np.allclose(fit.coef_, exact, atol=1e-6), "ridge weights differ from the normal equations")
    objective = hg.make_objective(X, y, hg.Squared(), hg.L2(0.1), fit_intercept=False)
    best = hg.certificate(objective, exact, np.zeros(1)).primal
    for scale in (0.0, 0.5, 0.9, 1.0):
        certificate = hg.certificate(objective, scale * exact, np.zeros(1))
        require(
            certificate.gap >= certificate.primal - best - 1e-12, "a gap is smaller than the distance to the optimum"
        )
    proof = hg.certificate(objective, fit.coef_, np.zeros(1))
    return f"gap {proof.gap:.1e}"


def lasso_closed_form() -> str:
    """Lasso weights on orthonormal columns are the soft-thresholded least-squares ones."""
    X, y, _ = data(64, 8, 1)
    Q = np.linalg.qr(X)[0] * np.sqrt(len(X))
    ordinary = Q.T @ y / len(y)
    exact = np.sign(ordinary) * np.maximum(np.abs(ordinary) - 0.2, 0.0)
    fit = hg.Lasso(alpha=0.2, fit_intercept=False, tol=1e-12).fit(Q, y)
    require(np.allclose(fit.coef_, exact, atol=1e-6), "lasso weights differ from the soft threshold")
    require(np.array_equal(fit.coef_ == 0, exact == 0), "the lasso has other zeros than the soft threshold")
    return f"{np.count_nonzero(exact)} of 8 weights"


def logistic_stationarity() -> str:
    """The gradient of the logistic objective, computed here, at the returned weights."""
    X, _, label = data()
    y, n = 2.0 * label - 1.0, len(X)
    fit = hg.LogisticRegression(C=1.0, tol=1e-12).fit(X, label)
    w, b = fit.coef_[0], fit.intercept_[0]
    pull = -y / (1 + np.exp(y * (X @ w + b))) / n
    largest = max(np.abs(X.T @ pull + w / n).max(), abs(pull.sum()))
    require(largest < 1e-5, f"the gradient at the logistic optimum is {largest:.1e}")
    return f"gradient {largest:.0e}"


THREADED: dict[str, Callable[[], Any]] = {
    "logistic": lambda: hg.LogisticRegression(),
    "lasso": lambda: hg.Lasso(alpha=0.01),
    "boosting": lambda: hg.HistGradientBoostingRegressor(max_iter=20),
    "forest": lambda: hg.RandomForestRegressor(20),
    "SVC": lambda: hg.SVC(),
    "network": lambda: hg.MLPRegressor(hidden_layer_sizes=(16,), learning_rate_init=0.01, tol=1e-2, random_state=0),
}


def thread_counts() -> str:
    """Fits with 1, 2, 3 and 8 threads have the same bits."""
    X, _, y = data(4000, 10)
    before = hg.num_threads()
    try:
        for name, make in THREADED.items():
            hashes = set()
            for count in (1, 2, 3, 8):
                hg.set_num_threads(count)
                model = make().fit(X, y)
                scores = getattr(model, "decision_function", model.predict)(X)
                hashes.add(hashlib.sha256(np.ascontiguousarray(scores).tobytes()).hexdigest())
            require(len(hashes) == 1, f"{name}: {len(hashes)} different results for 1, 2, 3 and 8 threads")
    finally:
        hg.set_num_threads(before)
    return f"{len(THREADED)} models, one result each"


CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "linear": lambda: hg.LogisticRegression(),
    "linear SVM": lambda: hg.LinearSVC(),
    "kernel": lambda: hg.SVC(),
    "Gaussian process": lambda: hg.GaussianProcessClassifier(),
    "naive Bayes": lambda: hg.GaussianNB(),
    "discriminant": lambda: hg.LinearDiscriminantAnalysis(),
    "tree": lambda: hg.DecisionTreeClassifier(max_depth=4),
    "forest": lambda: hg.RandomForestClassifier(30),
    "boosting": lambda: hg.HistGradientBoostingClassifier(max_iter=30),
    "AdaBoost": lambda: hg.AdaBoostClassifier(n_estimators=30),
    "network": lambda: hg.MLPClassifier((16,), learning_rate_init=0.01, max_iter=400, tol=1e-3, random_state=0),
    "stochastic": lambda: hg.SGDClassifier(),
}
REGRESSORS: dict[str, Callable[[], Any]] = {
    "ridge": lambda: hg.Ridge(),
    "lasso": lambda: hg.Lasso(alpha=0.01),
    "quantile": lambda: hg.QuantileRegressor(alpha=0.0),
    "Huber": lambda: hg.HuberRegressor(),
    "SVR": lambda: hg.SVR(),
    "kernel ridge": lambda: hg.KernelRidge(kernel="rbf"),
    "Bayesian ridge": lambda: hg.BayesianRidge(),
    "boosting": lambda: hg.HistGradientBoostingRegressor(max_iter=60),
    "any loss": lambda: hg.Learner(loss=hg.LogCosh(), penalty=hg.L1(0.01)),
}


def families() -> str:
    """One model of each family predicts new rows better than the best constant."""
    X, real, label = data(600)
    for makers, y, least in ((CLASSIFIERS, label, 0.75), (REGRESSORS, real, 0.5)):
        for name, make in makers.items():
            score = make().fit(X[:400], y[:400]).score(X[400:], y[400:])
            require(score > least, f"{name}: score {score:.3f} on new rows")
    words = [["the", "dog", "barks"], ["a", "cat", "sleeps"]] * 3
    tagger = hg.ChainCRF(features=hg.structured.TextFeatures()).fit(words, [["D", "N", "V"]] * 6)
    require(tagger.predict([["a", "dog", "sleeps"]]) == [["D", "N", "V"]], "the tagger is wrong")
    return f"{len(CLASSIFIERS) + len(REGRESSORS) + 1} models"


def files() -> str:
    """Models come back from their files with the same predictions; an altered file is refused."""
    X, real, label = data(200)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.hinge"
        for makers, y in ((CLASSIFIERS, label), (REGRESSORS, real)):
            for name, make in makers.items():
                model = make().fit(X, y)
                hg.save(model, path)
                require(np.array_equal(hg.load(path).predict(X), model.predict(X)), f"{name} changed in its file")
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)
        try:
            hg.load(path)
        except ValueError:
            return f"{len(CLASSIFIERS) + len(REGRESSORS)} models"
    raise AssertionError("an altered model file was accepted")


CHECKS: dict[str, Check] = {
    "ridge against the normal equations": ridge_closed_form,
    "lasso against the soft threshold": lasso_closed_form,
    "logistic regression: the gradient is zero": logistic_stationarity,
    "the same bits for any number of threads": thread_counts,
    "a model of every family": families,
    "model files": files,
}


def main() -> int:
    """Run all checks; the number of those that failed is the exit code."""
    for name, version in versions().items():
        print(f"{name:<14s} {version}")
    failed = 0
    for name, check in CHECKS.items():
        began = time.perf_counter()
        try:
            result, mark = check(), "ok"
        except Exception as error:
            failed += 1
            mark, result = "FAILED", f"{type(error).__name__}: {error}"
            if not isinstance(error, AssertionError):
                traceback.print_exc()
        print(f"{mark:<6s} {name}: {result} ({time.perf_counter() - began:.1f} s)", flush=True)
    print("All checks passed." if not failed else f"{failed} of {len(CHECKS)} checks failed; please report it.")
    return failed


if __name__ == "__main__":
    sys.exit(main())
