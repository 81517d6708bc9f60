"""Computations that the fits of one learner on one fold share.

A subclass of :class:`Sharing` declares the parameters it can vary in one pass (``varies``) and yields, for every value of them, an
estimator for the scorer: a fitted model, or stored predictions.

    lasso, elastic net   one warm-started path over α
    ridge                one factorisation for all α; exact leave-one-out
    kernel ridge         one Gram matrix for all folds, one factorisation per fold for all α; exact leave-one-out
    SVC, SVR             one matrix of distances (or kernel values) for all folds and C; multipliers carried from C to C
    boosting             one run for all numbers of rounds, one table of bins for all settings
    other linear models  warm starts from strong to weak penalties
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import clone

from hinge._native import Design
from hinge.models.kernel.ridge import KernelRidge
from hinge.models.kernel.svm import SVC, SVR
from hinge.models.linear.base import LinearModel
from hinge.models.linear.lasso import ElasticNet
from hinge.models.linear.least_squares import Ridge
from hinge.models.trees.boosting import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from hinge.problem.losses import Squared
from hinge.problem.objective import make_objective
from hinge.select.path import path_weights
from hinge.select.precomputed import PrecomputedClassifier, PrecomputedRegressor
from hinge.select.sharing_base import Fold, Separately, Sharing, Values, matmul
from hinge.select.sharing_kernels import KernelRidgeFactor, SupportVectors
from hinge.solvers.ridge_path import RidgePath


class PenaltyPath(Sharing):
    """Lasso and elastic net: one warm-started path over all α."""

    varies = ("alpha",)
    serial = True

    def suits(self, learner: Any, values: Values) -> bool:
        return all(v.get("alpha", learner.alpha) > 0 for v in values)

    def run(self, learner: Any, values: Values, fold: Fold) -> Iterator[tuple[int, Any]]:
        model = clone(learner)
        X, y, weights = model._check(fold.X, fold.y, fold.options().get("sample_weight"))
        penalty = model.set_params(alpha=1.0)._penalty()
        objective = make_objective(X, y, Squared(), penalty, sample_weight=weights, fit_intercept=learner.fit_intercept)
        alphas = np.array([float(v.get("alpha", learner.alpha)) for v in values])
        order = np.argsort(-alphas, kind="stable")
        W, b = path_weights(objective, alphas[order], tol=learner.tol, max_iter=learner.max_iter, solver=learner.solver)
        predictions = matmul(fold.X_test, W) + b
        for position, k in enumerate(order):
            yield int(k), PrecomputedRegressor(predictions[:, position])


class RidgeFactor(Sharing):
    """Ridge: one factorisation for all α and all leave-one-out predictions."""

    varies = ("alpha",)

    def suits(self, learner: Any, values: Values) -> bool:
        alphas = [v.get("alpha", learner.alpha) for v in values]
        return not learner.positive and all(np.ndim(a) == 0 and a > 0 for a in alphas)

    def _path(self, learner: Any, fold: Fold) -> tuple[RidgePath, np.ndarray]:
        X, y, weights = clone(learner)._check(fold.X, fold.y, fold.options().get("sample_weight"), several=True)
        weights = np.ones(len(y)) if weights is None else weights
        used = weights > 0
        return RidgePath(Design(X[used]), y[used], weights[used], learner.fit_intercept), used

    def run(self, learner: Any, values: Values, fold: Fold) -> Iterator[tuple[int, Any]]:
        path = self._path(learner, fold)[0]
        for k, value in enumerate(values):
            W, b = path.coef(float(value.get("alpha", learner.alpha)))
            yield k, PrecomputedRegressor(matmul(fold.X_test, W) + b)

    def leave_one_out(self, learner: Any, values: Values, fold: Fold) -> np.ndarray | None:
        path, used = self._path(learner, fold)
        if not used.all() or (fold.weight is not None and np.any(fold.weight != 1)) or np.ndim(fold.y) != 1:
            return None
        alphas = np.array([float(v.get("alpha", learner.alpha)) for v in values])
        return np.asarray(fold.y, dtype=np.float64) - path.leave_one_out(alphas)[:, 0, :].T


class BoostedRounds(Sharing):
    """Boosting: the first r rounds of a long run are the run of r rounds; bins are shared by all settings."""

    varies = ("max_iter", "n_estimators")
    serial = True

    def suits(self, learner: Any, values: Values) -> bool:
        return not learner.warm_start

    def run(self, learner: Any, values: Values, fold: Fold) -> Iterator[tuple[int, Any]]:
        rounds = np.array([clone(learner).set_params(**v).rounds for v in values])
        model = clone(learner).set_params(**values[int(np.argmax(rounds))])
        model.fit_sharing(fold.X, fold.y, **fold.options(), bins=fold.remember("bins", dict, across=False))
        order = np.argsort(rounds, kind="stable")
        for i, s in zip(order, model.scores_by_round(fold.X_test, rounds[order])):
            if isinstance(model, HistGradientBoostingRegressor):
                yield int(i), PrecomputedRegressor(model.predictions_at(s))
            else:
                shown = s[:, 0] if s.shape[1] == 1 else s
                p = model.probabilities_at(s) if model.probabilistic else None
                yield int(i), PrecomputedClassifier(model.classes_, model.predictions_at(s), shown, p)


class WarmStarts(Sharing):
    """Linear models with ``warm_start``: from strong to weak penalties, each fit started at the last weights."""

    def __init__(self, name: str) -> None:
        self.varies = (name,)

    def suits(self, learner: Any, values: Values) -> bool:
        name = self.varies[0]
        return all(np.ndim(v.get(name, 1.0)) == 0 and np.isfinite(v.get(name, 1.0)) for v in values)

    def run(self, learner: Any, values: Values, fold: Fold) -> Iterator[tuple[int, Any]]:
        name = self.varies[0]
        strengths = np.array([float(v.get(name, getattr(learner, name))) for v in values])
        model = clone(learner).set_params(warm_start=True)
        for k in np.argsort(strengths if name == "C" else -strengths, kind="stable"):
            yield int(k), model.set_params(**values[k]).fit(fold.X, fold.y, **fold.options())


def sharing_for(learner: Any) -> Sharing:
    """The sharing of a learner; :class:`Separately` if there is none."""
    if isinstance(learner, (HistGradientBoostingClassifier, HistGradientBoostingRegressor)):
        return BoostedRounds()
    if type(learner) in (SVC, SVR):
        return SupportVectors()
    if type(learner) is KernelRidge:
        return KernelRidgeFactor()
    if type(learner) is Ridge:
        return RidgeFactor()
    if isinstance(learner, ElasticNet):
        return PenaltyPath()
    if isinstance(learner, LinearModel) and hasattr(learner, "warm_start"):
        name = next((n for n in ("C", "alpha") if n in learner.get_params(deep=False)), None)
        if name is not None:
            return WarmStarts(name)
    return Separately()


def alike(learner: Any, values: Values) -> list[list[int]]:
    """Groups of candidates that are fitted together, since they differ only in parameters that the sharing varies."""
    varies = sharing_for(learner).varies
    groups: dict[str, list[int]] = {}
    for k, value in enumerate(values):
        rest = {name: v for name, v in sorted(value.items()) if name not in varies}
        groups.setdefault(repr(rest), []).append(k)
    return list(groups.values())


def run_shared(learner: Any, values: Values, fold: Fold) -> Iterator[tuple[int, Any]]:
    """Yield the estimators of all candidates on a fold, with shared computations."""
    sharing = sharing_for(learner)
    for members in alike(learner, values):
        part = [values[k] for k in members]
        common = clone(learner).set_params(**{n: v for n, v in part[0].items() if n not in sharing.varies})
        varying = [{n: v for n, v in p.items() if n in sharing.varies} for p in part]
        way = sharing if sharing.suits(common, varying) else Separately()
        for position, model in way.run(common, varying, fold):
            yield members[position], model
