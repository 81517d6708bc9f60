"""hinge's ``tune``, and its learners under scikit-learn's grid search."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.harness import Contender, Problem
from benchmarks.libraries import HOME
from benchmarks.libraries._common import grid_search
from benchmarks.libraries.hinge._public import public


def offer(name: str, problem: Problem, **fixed: object) -> Iterator[Contender]:
    learner, tune = public(name)(**fixed), public("tune")
    yield Contender(
        HOME,
        f"tune({name})",
        lambda p, tol: tune(learner, p.X, p.y, p.params["grid"], cv=5),
        answer=lambda found: found.score,
    )
    yield grid_search(HOME, f"{name} in GridSearchCV", learner)


OFFERS = {
    "tune_lasso": partial(offer, "Lasso"),
    "tune_svc": partial(offer, "SVC"),
    "tune_boost": partial(offer, "HistGradientBoostingRegressor", early_stopping=False),
}
