"""Other models on the same folds: a constant, richer classes, and the same class with a stronger or weaker penalty."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, clone, is_classifier

from hinge.models.kernel.approximate import Nystroem
from hinge.models.linear.least_squares import LinearRegression
from hinge.models.linear.logistic import LogisticRegression
from hinge.models.meta import final_step, row_count
from hinge.models.trees.boosting import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from hinge.select.estimate import Estimate
from hinge.select.resample import HeldOut, Resampler, set_final, with_final_step
from hinge.select.ridge import RidgeCV

Array = np.ndarray
# Trees search every column at every split, which takes too long for a comparison on wider tables (text).
MAX_COLUMNS = 5000
# Parameters that regularise a model, and whether a larger value regularises more.
STRENGTHS = {"alpha": True, "C": False, "min_samples_leaf": True, "l2_regularization": True}


@dataclass(frozen=True)
class Rival:
    """Another class of functions on the same folds.

    Attributes
    ----------
    name : str
    risk : Estimate
        Its held-out risk.
    advantage : Estimate
        How much lower that is than the model's, example by example.
    """

    name: str
    risk: Estimate
    advantage: Estimate


@dataclass(frozen=True)
class Probe:
    """The model with one setting changed.

    Attributes
    ----------
    parameter : str
    value, tried : float
        The setting, and the one that was tried.
    more : bool
        Whether that holds the model back more.
    gain : Estimate
        How much the held-out risk falls (below zero: rises).
    """

    parameter: str
    value: float
    tried: float
    more: bool
    gain: Estimate


class KernelRival(BaseEstimator):
    """A penalised linear model on Nyström features of an RBF kernel over standardised columns: a very rich class."""

    def __init__(self, inner: Any, components: int = 200) -> None:
        self.inner = inner
        self.components = components

    def fit(self, X: Any, y: Any) -> KernelRival:
        A = np.asarray(X, dtype=np.float64)
        self.mean_, scale = A.mean(axis=0), A.std(axis=0)
        self.scale_ = np.where(scale > 0, scale, 1.0)
        size = min(self.components, max(1, len(A) // 2))
        self.map_ = Nystroem(gamma=1.0 / A.shape[1], n_components=size, random_state=0).fit(self._scaled(A))
        self.inner_ = clone(self.inner).fit(self._features(A), y)
        return self

    def _scaled(self, X: Any) -> Array:
        return (np.asarray(X, dtype=np.float64) - self.mean_) / self.scale_

    def _features(self, X: Any) -> Array:
        return self.map_.transform(self._scaled(X))

    def predict(self, X: Any) -> Array:
        return self.inner_.predict(self._features(X))

    def predict_proba(self, X: Any) -> Array:
        return self.inner_.predict_proba(self._features(X))

    @property
    def classes_(self) -> Array:
        return self.inner_.classes_


def richer_models(model: Any, X: Any) -> dict[str, Any]:
    """Classes that contain almost any function, except the model's own class."""
    last, classify = final_step(model), is_classifier(model)
    parameters = set(last.get_params(deep=False)) if hasattr(last, "get_params") else set()
    found: dict[str, Any] = {}
    wide = hasattr(X, "shape") and X.shape[1] > MAX_COLUMNS
    several_trees = "max_depth" in parameters and parameters & {"n_estimators", "max_iter"}
    if not wide and not several_trees:
        kind = HistGradientBoostingClassifier if classify else HistGradientBoostingRegressor
        small = row_count(X) < 1000
        found["boosted trees"] = kind(
            max_iter=100, max_leaf_nodes=8 if small else 31, min_samples_leaf=10 if small else 20, early_stopping=False,
            random_state=0,
        )  # fmt: skip
    if "kernel" not in parameters:
        inner: Any = LogisticRegression(C=10.0) if classify else RidgeCV(alphas=np.geomspace(1e-3, 1e2, 11))
        found["an RBF kernel"] = KernelRival(inner)
    return {name: with_final_step(model, rival) for name, rival in found.items()}


def measure_rivals(data: Resampler, model: Any, held: HeldOut) -> tuple[Rival, ...]:
    """The constant and the richer classes, smallest risk first; classes that do not support the inputs are skipped."""
    constant = constant_held(data)
    found = [Rival("a constant", constant.risk, held.minus(constant))]
    for name, rival in richer_models(model, data.X).items():
        if isinstance(final_step(rival), KernelRival) and not _is_dense_numbers(data.X, rival is final_step(rival)):
            continue
        try:
            other = data.held_out(rival)
        except (ValueError, TypeError):
            continue  # the class does not support such inputs (text, missing values)
        found.append(Rival(name, other.risk, held.minus(other)))
    return tuple(sorted(found, key=lambda r: r.risk.value))


def _is_dense_numbers(X: Any, raw: bool) -> bool:
    if not raw:
        return True
    if scipy.sparse.issparse(X):
        return False
    A = np.asarray(X)
    return A.dtype.kind in "bifu" and bool(np.all(np.isfinite(A)))


def constant_held(data: Resampler) -> HeldOut:
    """The best constant of every fold: class frequencies, the most frequent label, or the mean."""
    measure = data.measure
    losses, rows, fold, train, output = [], [], [], [], []
    for k, (learn, test) in enumerate(data.folds):
        y = data.targets[learn]
        if measure.classes is None:
            guess = np.mean(y) if measure.squared else np.median(y)
        else:
            guess = np.bincount(y, minlength=len(measure.classes)) / len(y)
            guess = guess if measure.probabilities else np.argmax(guess)
        constant_output = np.repeat(np.asarray(guess)[None], len(test), axis=0)
        losses.append(measure.pointwise(data.targets[test], constant_output))
        train.append(float(np.mean(measure.pointwise(y, np.repeat(np.asarray(guess)[None], len(y), axis=0)))))
        rows.append(test)
        fold.append(np.full(len(test), k))
        output.append(constant_output)
    return HeldOut.join(rows, losses, fold, output, train)


def depends_on_scale(model: Any) -> bool:
    """Whether the units of columns matter: a penalty on weights or a kernel, without a preceding step that could scale."""
    last = final_step(model)
    if last is not model or any(hasattr(last, name) for name in ("trees_", "estimators_")):
        return False
    penalties = [change.value for change in strength_changes(model) if change.parameter in ("alpha", "C", "lam")]
    return any(0 < value < np.inf for value in penalties)  # alpha = 0 and C = ∞ are no penalty


@dataclass(frozen=True, eq=False)
class Change:
    """A copy of the model with a stronger or weaker penalty, and the change of its parameter."""

    copy: Any
    parameter: str
    value: float
    tried: float
    more: bool


def strength_changes(model: Any, factors: tuple[float, ...] = (10.0, 0.1)) -> list[Change]:
    """Copies with the penalty multiplied by the factors; none for models without such a setting."""
    last = final_step(model)
    if type(last) is LinearRegression and not last.positive:
        ridge = RidgeCV(alphas=np.geomspace(1e-3, 1e5, 17), fit_intercept=last.fit_intercept)
        return [Change(with_final_step(model, ridge), "alpha", 0.0, np.nan, True)]
    penalty = getattr(last, "penalty", None)
    lam = getattr(penalty, "lam", None)
    if dataclasses.is_dataclass(penalty) and not isinstance(penalty, type) and isinstance(lam, float) and lam > 0:
        copies = [(set_final(model, penalty=dataclasses.replace(penalty, lam=lam * f)), lam * f) for f in factors]
        return [Change(copy, "lam", lam, tried, tried > lam) for copy, tried in copies]
    settings = last.get_params(deep=False)
    if "n_estimators" in settings:
        settings.pop("alpha", None)  # in boosting it is the level of a quantile or of the Huber loss, not a penalty
    for name, up in STRENGTHS.items():
        value = settings.get(name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            continue
        if value <= 0 or not np.isfinite(value):
            none_at_all = value == (0.0 if up else np.inf)
            if none_at_all and name in ("alpha", "C"):
                return [Change(set_final(model, **{name: 1.0}), name, float(value), 1.0, True)]
            continue
        integer = name == "min_samples_leaf" and isinstance(value, int)
        scaled = [value * (f if up else 1.0 / f) for f in factors]
        tried_values = [max(1, round(t)) if integer else t for t in scaled]
        return [
            Change(set_final(model, **{name: t}), name, float(value), float(t), (t > value) == up)
            for t in tried_values
            if t != value
        ]
    return []


def measure_probes(data: Resampler, model: Any, held: HeldOut) -> tuple[Probe, ...]:
    """Whether a stronger or weaker penalty decreases the held-out risk; much stronger ones are tried if it over-fits."""

    def probe(change: Change) -> Probe:
        tried = change.tried
        if np.isnan(tried):
            tried = float(final_step(data.fit(change.copy, np.arange(row_count(data.X)))).alpha_)
        gain = held.minus(data.held_out(change.copy))
        return Probe(change.parameter, change.value, tried, change.more, gain)

    found = [probe(change) for change in strength_changes(model)]
    wide = held.train_risk.value < 0.8 * held.risk.value
    scalable = bool(found) and found[0].value > 0 and found[0].parameter != "min_samples_leaf"
    further = [1e3, 1e5] if wide and scalable else []
    for factor in further:
        if any(p.more and p.gain.clear and p.gain.value > 0.05 * held.risk.value for p in found):
            break
        found += [probe(change) for change in strength_changes(model, (factor,))]
    return tuple(found)
