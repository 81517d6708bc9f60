"""What adapters of libraries with scikit-learn's interface share."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.harness import Contender, Problem
from benchmarks.judges import Expansion


def ladder(loosest: int, tightest: int) -> tuple[float, ...]:
    """Powers of ten, 10^−loosest down to 10^−tightest."""
    return tuple(10.0**-k for k in range(loosest, tightest + 1))


def estimator(library: str, label: str, make: Callable[[Problem, Any], Any], **options: Any) -> Contender:
    """A contender that is an estimator: ``make(problem, tolerance)`` constructs it, ``fit(X, y)`` is timed."""
    return Contender(library, label, lambda problem, tol: make(problem, tol).fit(problem.X, problem.y), **options)


def prediction(
    library: str,
    label: str,
    make: Callable[[Problem], Any],
    predict: Callable[[Any, Any], Any] = lambda model, X: model.predict(X),
) -> Contender:
    """What is timed is predicting the test rows, by a model fitted beforehand."""
    return Contender(
        library,
        label,
        lambda prepared, tol: (prepared[0], predict(prepared[0], prepared[1].X_test)),
        prepare=lambda problem: (make(problem).fit(problem.X, problem.y), problem),
        predict=lambda fitted, X: predict(fitted[0], X),
    )


def matrix(columns: Any) -> Any:
    """The coefficients of a path are the answer themselves."""
    return columns


def is_sparse(problem: Problem) -> bool:
    return sp.issparse(problem.X)


def intercept(problem: Problem) -> bool:
    """Whether the task has an unpenalised bias."""
    return bool(problem.params.get("intercept", False))


def expansion(model: Any) -> Expansion:
    """Support vectors and their coefficients of a binary machine or a regression."""
    dual = model.dual_coef_
    coef = dual.toarray() if sp.issparse(dual) else np.asarray(dual, dtype=np.float64)
    return Expansion(np.asarray(model.support_), coef.ravel())


def svc_with(library: str, make: Callable[..., Any], tolerances: tuple[float, ...], **fixed: Any) -> Contender:
    """An SVC with scikit-learn's parameters."""

    def construct(p: Problem, tol: float) -> Any:
        return make(C=p.params["C"], kernel="rbf", gamma=p.params["gamma"], tol=tol, **fixed)

    return estimator(library, "SVC", construct, ladder=tolerances, answer=expansion)


def svr_with(library: str, make: Callable[..., Any], tolerances: tuple[float, ...], **fixed: Any) -> Contender:
    """An SVR with scikit-learn's parameters."""

    def construct(p: Problem, tol: float) -> Any:
        settings = {name: p.params[name] for name in ("C", "epsilon", "gamma")}
        return make(**settings, kernel="rbf", tol=tol, **fixed)

    return estimator(library, "SVR", construct, ladder=tolerances, answer=expansion)


def mixture_with(library: str, make: Callable[..., Any]) -> Contender:
    """A Gaussian mixture with scikit-learn's parameters, from the task's start for the task's number of steps."""

    def fit(p: Problem, tol: None) -> Any:
        start = {name: p.params[name] for name in ("weights_init", "means_init", "precisions_init")}
        return make(n_components=p.params["components"], max_iter=p.params["steps"], tol=0.0, **start).fit(p.X)

    return Contender(
        library,
        "GaussianMixture",
        fit,
        answer=lambda model: (model.weights_, model.means_, model.covariances_),
        predict=lambda model, X: model.predict_proba(X),
    )


def training_means(
    library: str, label: str, make: Callable[[Problem, Any], Any], tolerances: tuple[float, ...]
) -> Contender:
    """An estimator judged by its fitted means on the training rows, since its columns are its own."""

    def fit(p: Problem, tol: float) -> tuple[Any, Any]:
        return make(p, tol).fit(p.X, p.y), p.X

    return Contender(
        library,
        label,
        fit,
        ladder=tolerances,
        answer=lambda fitted: fitted[0].predict(fitted[1]),
        predict=lambda fitted, X: fitted[0].predict(X),
    )


def mlp_with(library: str, make: Callable[..., Any]) -> Contender:
    """A multilayer perceptron with scikit-learn's parameters, for the task's number of epochs."""

    def fit(p: Problem, tol: None) -> Any:
        epochs = p.params["epochs"]
        model = make(
            hidden_layer_sizes=p.params["hidden"],
            batch_size=p.params["batch"],
            learning_rate_init=p.params["rate"],
            max_iter=epochs,
            n_iter_no_change=epochs,
            random_state=0,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # all of them say that more epochs would help
            return model.fit(p.X, p.y)

    return Contender(library, "MLP", fit)


def grid_search(library: str, label: str, learner: Any) -> Contender:
    """scikit-learn's exhaustive search, one candidate and fold after the other."""
    from sklearn.model_selection import GridSearchCV

    return Contender(
        library,
        label,
        lambda p, tol: GridSearchCV(learner, p.params["grid"], cv=5).fit(p.X, p.y),
        answer=lambda search: search.best_score_,
    )
