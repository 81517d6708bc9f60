"""What fits of one learner on one fold have in common, computed once.

A way of sharing says which parameters it can vary in one pass (``varies``) and gives, for every value of them, an
estimator that a scorer can judge: a fitted model, or predictions that are known already.

    lasso, elastic net   one warm-started path over α
    ridge                one factorisation for all α; exact leave-one-out
    kernel ridge         one Gram matrix for all folds, one factorisation per fold for all α; exact leave-one-out
    SVC, SVR             one matrix of distances (or kernel values) for all folds and C; multipliers carried from C to C
    boosting             one run for all numbers of rounds, one table of bins for all settings
    other linear models  warm starts from strong to weak penalties
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, clone

from hinge._native import Design
from hinge.models.base import code_labels
from hinge.models.kernel.expansion import check_kernel_fit, is_precomputed, named_kernel, takes_objects
from hinge.models.kernel.machines import Machines
from hinge.models.kernel.ridge import KernelRidge, ridge_path
from hinge.models.kernel.svm import SVC, SVR
from hinge.models.kernel.svm_base import ones_or
from hinge.models.linear.base import LinearModel
from hinge.models.linear.lasso import ElasticNet
from hinge.models.linear.least_squares import Ridge
from hinge.models.trees.boosting import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from hinge.models.trees.inputs import predict_table
from hinge.problem.certificates.kernel_machine import Dual, classification, regression
from hinge.problem.kernels import RBF, Kernel, full_gram
from hinge.problem.losses import Squared
from hinge.problem.objective import make_objective
from hinge.select.path import path_weights
from hinge.select.precomputed import PrecomputedClassifier, PrecomputedRegressor
from hinge.solvers.decomposition import solve_dual
from hinge.solvers.ridge_path import RidgePath

Values = list[dict[str, Any]]
GRAM_BYTES = 1e9


@dataclass
class Fold:
    """Training and test rows. ``full`` is all rows, where folds are rows of it; ``memory`` is common to all folds."""

    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    X_test: Any
    full: Any = None
    train: np.ndarray | None = None
    test: np.ndarray | None = None
    memory: dict[Any, Any] = field(default_factory=dict)
    lock: Any = field(default_factory=threading.Lock)
    own: dict[Any, Any] = field(default_factory=dict)

    def options(self) -> dict[str, Any]:
        return {} if self.weight is None else {"sample_weight": self.weight}

    def remember(self, key: Any, make: Any, across: bool = True) -> Any:
        """The value of a key, made once: for all folds, or (``across=False``) for this one.

        Arrays are kept while they have no more than 1 GB together.
        """
        store = self.memory if across else self.own
        with self.lock:
            if key in store:
                return store[key]
            value = make()
            held = sum(kept.nbytes for kept in store.values() if isinstance(kept, np.ndarray))
            if held + getattr(value, "nbytes", 0) <= GRAM_BYTES:
                store[key] = value
            return value


class Sharing:
    """How candidates that differ in ``varies`` only are fitted together.

    ``serial`` says that a fit on few rows keeps one thread busy, in the core: several folds are then run at a time.
    """

    varies: tuple[str, ...] = ()
    serial = False

    def suits(self, learner: BaseEstimator, values: Values) -> bool:
        return True

    def run(self, learner: BaseEstimator, values: Values, fold: Fold) -> Iterator[tuple[int, Any]]:
        raise NotImplementedError

    def leave_one_out(self, learner: BaseEstimator, values: Values, fold: Fold) -> np.ndarray | None:
        """Left-out predictions, one row per candidate, by a shortcut that is exact; None where there is none."""
        return None


class Separately(Sharing):
    """Every candidate is fitted from scratch."""

    def run(self, learner: BaseEstimator, values: Values, fold: Fold) -> Iterator[tuple[int, Any]]:
        for k, value in enumerate(values):
            yield k, clone(learner).set_params(**value).fit(fold.X, fold.y, **fold.options())


class PenaltyPath(Sharing):
    """Lasso and elastic net: all α along one warm-started path."""

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
        predictions = _matmul(fold.X_test, W) + b
        for position, k in enumerate(order):
            yield int(k), PrecomputedRegressor(predictions[:, position])


class RidgeFactor(Sharing):
    """Ridge: all α, and all left-out predictions, from one factorisation."""

    varies = ("alpha",)

    def suits(self, learner: Any, values: Values) -> bool:
        alphas = [v.get("alpha", learner.alpha) for v in values]
        return not getattr(learner, "positive", False) and all(np.ndim(a) == 0 and a > 0 for a in alphas)

    def _path(self, learner: Any, fold: Fold) -> tuple[RidgePath, np.ndarray]:
        X, y, weights = clone(learner)._check(fold.X, fold.y, fold.options().get("sample_weight"), several=True)
        weights = np.ones(len(y)) if weights is None else weights
        used = weights > 0
        return RidgePath(Design(X[used]), y[used], weights[used], learner.fit_intercept), used

    def run(self, learner: Any, values: Values, fold: Fold) -> Iterator[tuple[int, Any]]:
        path = self._path(learner, fold)[0]
        for k, value in enumerate(values):
            W, b = path.coef(float(value.get("alpha", learner.alpha)))
            yield k, PrecomputedRegressor(_matmul(fold.X_test, W) + b)

    def leave_one_out(self, learner: Any, values: Values, fold: Fold) -> np.ndarray | None:
        path, used = self._path(learner, fold)
        if not used.all() or (fold.weight is not None and np.any(fold.weight != 1)) or np.ndim(fold.y) != 1:
            return None
        alphas = np.array([float(v.get("alpha", learner.alpha)) for v in values])
        return np.asarray(fold.y, dtype=np.float64) - path.leave_one_out(alphas)[:, 0, :].T


class KernelSharing(Sharing):
    """One matrix of kernel values for all folds."""

    def suits(self, learner: Any, values: Values) -> bool:
        if is_precomputed(learner.kernel) or takes_objects(learner.kernel):
            return False
        # An indefinite kernel has many stationary points: which one is found depends on the start.
        return named_kernel(learner.kernel, learner.gamma, learner.degree, learner.coef0).psd

    def gram(self, learner: Any, kernel: Kernel, X: Any, fold: Fold) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Kernel values, and the rows of them that are training and test points; no more memory than 1 GB."""
        resolved = kernel.resolve(X, fold.weight)
        if fold.full is None:
            both = _stack(X, _points(fold.X_test))
            n = X.shape[0]
            values = fold.remember(repr(resolved), lambda: _values(resolved, both, fold, across=False), across=False)
            return values, np.arange(n), np.arange(n, both.shape[0])
        full = fold.remember("points", lambda: _points(fold.full))
        values = fold.remember(repr(resolved), lambda: _values(resolved, full, fold, across=True))
        return values, fold.train, fold.test  # type: ignore[return-value]


def _fits(fold: Fold, copies: int = 1) -> bool:
    rows = fold.full.shape[0] if fold.full is not None else fold.X.shape[0] + fold.X_test.shape[0]
    return 8.0 * copies * rows**2 <= GRAM_BYTES


def _values(kernel: Kernel, points: Any, fold: Fold, across: bool) -> np.ndarray:
    if not isinstance(kernel, RBF) or scipy.sparse.issparse(points):
        return np.ascontiguousarray(full_gram(kernel, points))
    store = fold.memory if across else fold.own  # the caller holds the lock
    if "distances" not in store:
        store["distances"] = _square_distances(points)
    return np.exp(-kernel.rate * store["distances"])


def _square_distances(X: np.ndarray) -> np.ndarray:
    X = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
    squares = np.einsum("ij,ij->i", X, X)
    D = Design(X).matmul(np.ascontiguousarray(X.T))
    D *= -2.0
    D += squares[:, None]
    D += squares
    np.maximum(D, 0.0, out=D)
    np.fill_diagonal(D, 0.0)
    return D


class KernelRidgeFactor(KernelSharing):
    """Kernel ridge: one eigendecomposition per fold for all α."""

    varies = ("alpha",)

    def suits(self, learner: Any, values: Values) -> bool:
        numbers = all(np.ndim(v.get("alpha", learner.alpha)) == 0 for v in values)
        return numbers and learner.alphas is None and super().suits(learner, values)

    def run(self, learner: Any, values: Values, fold: Fold) -> Iterator[tuple[int, Any]]:
        if not _fits(fold):
            yield from Separately().run(learner, values, fold)
            return
        kernel = named_kernel(learner.kernel, learner.gamma, learner.degree, learner.coef0)
        X, y, weights = check_kernel_fit(
            clone(learner), kernel, fold.X, fold.y, fold.weight, multi_output=True, y_numeric=True
        )
        K, train, test = self.gram(learner, kernel, X, fold)
        alphas = np.array([float(v.get("alpha", learner.alpha)) for v in values])
        path = ridge_path(K[np.ix_(train, train)], np.asarray(y, dtype=np.float64), alphas, weights)
        across = K[np.ix_(test, train)]
        for k in range(len(values)):
            yield k, PrecomputedRegressor(across @ path.dual_coef[k])

    def leave_one_out(self, learner: Any, values: Values, fold: Fold) -> np.ndarray | None:
        if fold.weight is not None or np.ndim(fold.y) != 1:
            return None
        kernel = named_kernel(learner.kernel, learner.gamma, learner.degree, learner.coef0)
        if kernel.resolve(fold.X[:-1]).program() != kernel.resolve(fold.X).program():
            return None  # a width that is learned from the inputs changes when one is left out
        model = clone(learner).set_params(loo=True)
        return np.stack([model.set_params(**v).fit(fold.X, fold.y).loo_predictions_ for v in values])


class SupportVectors(KernelSharing):
    """SVC and SVR: kernel values for all folds and C; for every C the multipliers start at those of the C below."""

    varies = ("C",)
    serial = True

    def suits(self, learner: Any, values: Values) -> bool:
        finite = all(np.isfinite(v.get("C", learner.C)) and v.get("C", learner.C) > 0 for v in values)
        return super().suits(learner, values) and finite and not getattr(learner, "probability", False)

    def run(self, learner: Any, values: Values, fold: Fold) -> Iterator[tuple[int, Any]]:
        if not _fits(fold, copies=3):  # machines, one against one, have twice as many pairs together
            yield from Separately().run(learner, values, fold)
            return
        model = clone(learner)
        kernel = model._kernel()
        regresses = isinstance(learner, SVR)
        X, y, weights = check_kernel_fit(model, kernel, fold.X, fold.y, fold.weight, y_numeric=regresses)
        if regresses:
            machines: list[tuple[np.ndarray, np.ndarray]] = [(np.arange(len(y)), np.asarray(y, dtype=np.float64))]
        else:
            codes = code_labels(model, y)
            model._set_class_weights(y, codes, weights)
            weights = ones_or(weights, len(y)) * model.class_weight_[codes]
            machines = _machines(model, codes)
        K, train, test = self.gram(learner, kernel, X, fold)
        ones = ones_or(weights, len(y))
        Cs = np.array([float(v.get("C", learner.C)) for v in values])
        starts: list[np.ndarray | None] = [None] * len(machines)
        last = None
        grams = [_part(K, train[rows], train[rows]) for rows, _ in machines]
        across = _part(K, test, train)
        for k in np.argsort(Cs, kind="stable"):
            model.set_params(**values[k])
            model._validate_params()
            scores = np.empty((len(test), len(machines)))
            for m, (rows, target) in enumerate(machines):
                upper = Cs[k] * ones[rows]
                dual = regression(target, float(model.epsilon), upper) if regresses else classification(target, upper)
                start = starts[m]
                if start is not None:
                    dual = replace(dual, start=_stretched(start, dual, Cs[k] / last))
                solution = solve_dual(
                    kernel, None, dual, tol=model.tol, cache_bytes=1e6 * model.cache_size, max_iter=model.max_iter,
                    shrinking=model.shrinking, gram=grams[m], polish=False,
                )  # fmt: skip
                starts[m] = np.stack(
                    [solution.alpha, dual.sign * np.tile(solution.scores, len(dual.sign) // len(rows))]
                )
                spread = np.zeros(len(train))
                spread[rows] = solution.coefficients
                # Not BLAS: its threads would go on spinning beside the solver.
                scores[:, m] = np.einsum("ij,j->i", across, spread) + solution.bias
            last = Cs[k]
            yield int(k), _from_scores(model, scores, regresses)


def _part(K: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    return K[rows].take(columns, axis=1)  # whole rows are copied: only columns are looked up one by one


def _stretched(start: np.ndarray, dual: Dual, ratio: float) -> np.ndarray:
    """α·r with the best r in [1, ratio]: along this line the dual is r·Σ s t α − r²/2·αQα."""
    alpha, signed_scores = start
    square = float(alpha @ signed_scores)
    gain = float((dual.sign * dual.target) @ alpha)
    r = float(np.clip(gain / square, 1.0, ratio)) if square > 0 else 1.0
    return np.minimum(alpha * r, dual.upper)


def _machines(model: SVC, codes: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The rows and signs of every machine."""
    machines = Machines.of(codes, len(model.classes_), model.multi_class)
    return [(machines.part(m), machines.signs[m, : machines.lengths[m]]) for m in range(len(machines))]


def _from_scores(model: Any, scores: np.ndarray, regresses: bool) -> Any:
    if regresses:
        return PrecomputedRegressor(scores[:, 0])
    if len(model.classes_) == 2:
        return PrecomputedClassifier(model.classes_, model.classes_[(scores[:, 0] > 0).astype(int)], scores[:, 0])
    votes = scores if model.multi_class == "ovr" else model._votes(scores)
    shown = scores if model.decision_function_shape == "ovo" else votes
    return PrecomputedClassifier(model.classes_, model.classes_[np.argmax(votes, axis=1)], shown)


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
        X = predict_table(model, fold.X_test, model._coder)
        k = model._loss.outputs
        scores, done = model._start(X), 0
        for i in np.argsort(rounds, kind="stable"):
            until = min(int(rounds[i]), model.n_iter_)
            if until > done:
                scores = model.trees_.add(X, scores, k * done, k * until)
                done = until
            yield int(i), self._precomputed(model, scores.copy())

    def _precomputed(self, model: Any, s: np.ndarray) -> Any:
        if isinstance(model, HistGradientBoostingRegressor):
            return PrecomputedRegressor(model._loss_link(s[:, 0]))
        shown = s[:, 0] if model._loss.outputs == 1 else s
        p = model._probabilities(s) if model._loss.probabilistic else None
        return PrecomputedClassifier(model.classes_, model._labels(s), shown, p)


class WarmStarts(Sharing):
    """Linear models with ``warm_start``: from strong to weak penalties, each fit begun at the last weights."""

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
    """The way of sharing for a learner; :class:`Separately` if there is none."""
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
    """Candidates in groups that are fitted together: those that differ in what the learner's sharing varies only."""
    varies = sharing_for(learner).varies
    groups: dict[str, list[int]] = {}
    for k, value in enumerate(values):
        rest = {name: v for name, v in sorted(value.items()) if name not in varies}
        groups.setdefault(repr(rest), []).append(k)
    return list(groups.values())


def run_shared(learner: Any, values: Values, fold: Fold) -> Iterator[tuple[int, Any]]:
    """Estimators for all candidates on a fold, sharing what can be shared."""
    sharing = sharing_for(learner)
    for members in alike(learner, values):
        part = [values[k] for k in members]
        common = clone(learner).set_params(**{n: v for n, v in part[0].items() if n not in sharing.varies})
        varying = [{n: v for n, v in p.items() if n in sharing.varies} for p in part]
        way = sharing if sharing.suits(common, varying) else Separately()
        for position, model in way.run(common, varying, fold):
            yield members[position], model


def _points(X: Any) -> Any:
    from hinge.problem.kernels import evaluate

    return evaluate.matrix(X if scipy.sparse.issparse(X) else np.asarray(X))


def _stack(a: Any, b: Any) -> Any:
    return scipy.sparse.vstack([a, b], format="csr") if scipy.sparse.issparse(a) else np.vstack([a, b])


def _matmul(X: Any, W: np.ndarray) -> np.ndarray:
    return X @ W if scipy.sparse.issparse(X) else np.asarray(X) @ W
