"""The limit of averaging: the variance of a mean of correlated trees.

    Var((1/T) Σ_t h_t(x)) = ρσ² + (1 − ρ)σ²/T

over training sets and the trees' own randomness, where σ² is the variance of one tree and ρ the correlation of two trees
of the same forest. More trees decrease only the second term; random samples and random candidate features decrease ρ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_consistent_length

from hinge.explain.generators import Generator
from hinge.models.meta import row_count, take_rows

Array = np.ndarray


@dataclass(frozen=True)
class EnsembleVariance:
    """The variance of an average of T members, as a limit and a term that averaging removes.

    Attributes
    ----------
    variance : float
        σ²: of one member, a mean over the inputs.
    correlation : float
        ρ: of two members fitted to the same training set, over training sets.
    measured : array of T numbers
        The variance of the average of the first 1, 2, …, T members over the training sets, as it was seen.
    repeats : int
        How many training sets.
    """

    variance: float
    correlation: float
    measured: Array
    repeats: int

    def at(self, members: Any) -> Any:
        """ρσ² + (1 − ρ)σ²/T."""
        return self.correlation * self.variance + (1.0 - self.correlation) * self.variance / np.asarray(members)

    @property
    def limit(self) -> float:
        """ρσ²: the variance that no number of members removes."""
        return self.correlation * self.variance

    def __str__(self) -> str:
        last = len(self.measured)
        return (
            f"one member: variance {self.variance:.4g}; correlation {self.correlation:.3f}; {last} members: "
            f"{float(self.at(last)):.4g}; no number of members: {self.limit:.4g}"
        )


def ensemble_variance(
    ensemble: Any,
    source: Generator | tuple[Any, Any],
    n: int,
    *,
    x: Any = None,
    repeats: int = 50,
    random_state: int = 0,
) -> EnsembleVariance:
    """Measure ρ and σ² of the members of a forest (or of bagging) over training sets.

    With P_{rt} the prediction of member t of the fit to training set r, Var_t P_{rt} within a fit estimates (1 − ρ)σ², and
    the variance of the fits' means ρσ² + (1 − ρ)σ²/T: the random-effects analysis of variance.

    Parameters
    ----------
    ensemble : estimator whose fit has ``estimators_``
        A regressor: ``hg.RandomForestRegressor()``, ``hg.BaggingRegressor()`` …
    source : Generator, or (X, y)
        Where training sets come from; rows of (X, y) are drawn without replacement.
    n : int
        Examples per training set.
    x : array, optional
        The inputs at which predictions are compared; 256 of the source by default.
    repeats : int
        Training sets.
    random_state : int
        Seed of the random numbers; the same one gives the same result.

    Examples
    --------
    >>> import hinge as hg
    >>> forest = hg.RandomForestRegressor(n_estimators=10)
    >>> found = hg.ensemble_variance(forest, hg.generators.SineCurve(), n=50, repeats=20)
    >>> bool(0 < found.correlation < 1), bool(found.limit < found.at(10) < found.variance)
    (True, True)
    """
    if repeats < 2 or n < 2:
        raise ValueError(f"repeats and n must be at least 2; got repeats={repeats} and n={n}.")
    rng = np.random.default_rng(random_state)
    if isinstance(source, Generator):
        at = source.quadrature(256) if x is None else x
    else:
        check_consistent_length(*source)
        rows = row_count(source[0])
        if n > rows:
            raise ValueError(f"n={n} examples cannot be drawn from {rows}.")
        at = take_rows(source[0], rng.permutation(rows)[:256]) if x is None else x
    fits = []
    for _ in range(repeats):
        if isinstance(source, Generator):
            X = source.inputs(n, rng)
            y = source.targets(X, rng)
        else:
            drawn = rng.permutation(rows)[:n]
            X, y = take_rows(source[0], drawn), np.asarray(source[1])[drawn]
        copy = clone(ensemble)
        if "random_state" in copy.get_params(deep=False):
            copy.set_params(random_state=int(rng.integers(2**31 - 1)))
        fits.append(_member_predictions(copy.fit(X, y), at))
    P = np.stack(fits)  # repeats × members × inputs
    T = P.shape[1]
    if T < 2:
        raise ValueError("the ensemble has one member only: there is no correlation to measure.")
    measured = np.array([P[:, :t].mean(axis=1).var(axis=0, ddof=1).mean() for t in range(1, T + 1)])
    within = float(P.var(axis=1, ddof=1).mean())  # (1 − ρ)σ²
    shared = float(measured[-1]) - within / T  # ρσ²
    variance = max(shared, 0.0) + within
    return EnsembleVariance(variance, max(shared, 0.0) / variance if variance > 0 else 0.0, measured, repeats)


def _member_predictions(fitted: Any, x: Any) -> Array:
    features = getattr(fitted, "estimators_features_", None)
    members = list(np.ravel(fitted.estimators_))
    if features is None:
        return np.array([member.predict(x) for member in members], dtype=np.float64)
    return np.array([m.predict(np.asarray(x)[:, f]) for m, f in zip(members, features)], dtype=np.float64)
