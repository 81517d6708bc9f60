"""Bias and variance of a learner, measured by repeated fits.

    E (f̂(x) − y)² = (E f̂(x) − f*(x))² + Var f̂(x) + Var(y | x)        risk = bias² + variance + noise

With a generator all three are known (the noise in closed form); with resampled data bias² and noise are one number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hinge.explain.generators import Generator
from hinge.models.meta import row_count, take_rows
from hinge.select.estimate import Estimate, mean_of
from hinge.select.measure import make_measure
from hinge.select.resample import Resampler, fit_quietly

Array = np.ndarray


@dataclass(frozen=True)
class BiasVariance:
    """risk = bias² + variance + noise.

    Attributes
    ----------
    risk : Estimate
        The mean loss of one fit on new examples.
    variance : Estimate
        How far one fit is from the average fit.
    bias2 : Estimate or None
        How far the average fit is from the truth; None where only the sum with the noise can be seen.
    noise : float or None
        What no predictor can avoid.
    bias2_plus_noise : Estimate
        The risk of the average fit, corrected for the number of fits in the average.
    repeats : int
        How many fits.
    """

    risk: Estimate
    variance: Estimate
    bias2: Estimate | None
    noise: float | None
    bias2_plus_noise: Estimate
    repeats: int

    def __str__(self) -> str:
        if self.bias2 is None:
            return f"risk {self.risk} = variance {self.variance} + (bias² and noise) {self.bias2_plus_noise}"
        return f"risk {self.risk} = variance {self.variance} + bias² {self.bias2} + noise {self.noise:.4g}"


def bias_variance(
    learner: Any,
    source: Generator | tuple[Any, Any],
    n: int | None = None,
    *,
    repeats: int = 50,
    x: Any = None,
    noise_only: bool = False,
    random_state: int = 0,
) -> BiasVariance:
    """Measure the bias and variance of a learner.

    Parameters
    ----------
    learner : estimator
        A regressor, or a classifier with ``predict_proba`` (then judged by the Brier score).
    source : Generator or (X, y)
        A generator gives fresh training sets and the truth. Data are resampled: every fit is on a bootstrap sample and
        is judged on the rows left out of it, so a fit sees about 63 % of the rows.
    n : int
        How many examples a training set has (generators only).
    repeats : int
        How many fits.
    x : array, optional
        Inputs at which the fits are compared; 1000 draws of the generator by default.
    noise_only : bool
        Draw the inputs once and only new targets after that: the fixed-design setting of the closed forms for least
        squares and ridge (:func:`ridge_moments`).
    random_state : int
        Seed of the random numbers; the same one gives the same result.

    Examples
    --------
    >>> import hinge as hg
    >>> line = hg.generators.LinearGaussian([1.0, 2.0], noise=0.5)
    >>> parts = hg.bias_variance(hg.LinearRegression(), line, n=50, repeats=40)
    >>> bool(parts.bias2.value < 0.01), parts.noise
    (True, 0.25)
    """
    if repeats < 2:
        raise ValueError(f"repeats must be at least 2, to see any variance; got {repeats}.")
    if not isinstance(source, Generator):
        X, y = source
        measure = make_measure(learner, y)
        if not measure.squared:
            raise ValueError("bias and variance are parts of a squared error: a classifier needs predict_proba.")
        return bootstrap_parts(Resampler(X, y, measure.code(y), measure, (), random_state), learner, repeats)
    if n is None:
        raise ValueError("n, the number of examples per training set, is needed with a generator.")
    rng = np.random.default_rng(random_state)
    x = source.inputs(1000, rng) if x is None else np.asarray(x, dtype=np.float64)
    fixed = source.inputs(n, rng) if noise_only else None
    outputs = []
    for _ in range(repeats):
        X = source.inputs(n, rng) if fixed is None else fixed
        fitted = fit_quietly(learner, X, source.targets(X, rng))
        outputs.append(source.mean_of(fitted, x))
    return _from_outputs(np.array(outputs), source, x)


def _from_outputs(outputs: Array, source: Generator, x: Array) -> BiasVariance:
    m = len(outputs)
    mean, noise = source.mean(x), float(np.mean(source.variance(x)))
    average = outputs.mean(axis=0)
    variance = outputs.var(axis=0, ddof=1)
    # (average − mean)² overestimates bias² by the variance of an average of m fits.
    bias2 = (average - mean) ** 2 - variance / m
    distance = ((outputs - mean) ** 2).mean(axis=1)  # one per fit: fits are independent, inputs are shared
    risk = Estimate(float(distance.mean()) + noise, mean_of(distance).standard_error)
    around = ((outputs - average) ** 2).mean(axis=1) * m / (m - 1)
    slant = 2.0 * ((outputs - average) * (average - mean)).mean(axis=1)
    bias = Estimate(float(np.mean(bias2)), mean_of(slant).standard_error)
    return BiasVariance(
        risk, Estimate(float(np.mean(variance)), mean_of(around).standard_error), bias, noise,
        Estimate(bias.value + noise, bias.standard_error), m,
    )  # fmt: skip


def bootstrap_parts(data: Resampler, learner: Any, repeats: int) -> BiasVariance:
    """Bias² + noise and variance from fits to bootstrap samples, evaluated on out-of-bag rows."""
    n = row_count(data.X)
    rng = np.random.default_rng([data.random_state, 1])
    count, total, square = np.zeros(n), None, None
    loss = np.zeros(n)
    targets = _as_numbers(data)
    for _ in range(repeats):
        drawn = rng.integers(0, n, size=n)
        out = np.setdiff1d(np.arange(n), drawn)
        if data.measure.classes is not None and len(np.unique(data.targets[drawn])) < 2:
            continue
        fitted = fit_quietly(learner, take_rows(data.X, drawn), take_rows(data.y, drawn))
        predicted = _columns(data.measure.output(fitted, take_rows(data.X, out)))
        if total is None or square is None:
            total, square = np.zeros((n, predicted.shape[1])), np.zeros((n, predicted.shape[1]))
        total[out] += predicted
        square[out] += predicted**2
        count[out] += 1
        loss[out] += _distance(predicted, targets[out])
    repeated = count >= 2
    if total is None or square is None or not np.any(repeated):
        raise ValueError("too few repeats, or too few examples, to see every example left out twice.")
    m = count[repeated]
    average = total[repeated] / m[:, None]
    variance = _weigh((square[repeated] - m[:, None] * average**2) / (m[:, None] - 1), targets)
    bias_and_noise = _distance(average, targets[repeated]) - variance / m
    return BiasVariance(mean_of(loss[repeated] / m), mean_of(variance), None, None, mean_of(bias_and_noise), repeats)


def _columns(predicted: Array) -> Array:
    return predicted[:, None] if predicted.ndim == 1 else predicted


def _as_numbers(data: Resampler) -> Array:
    """Targets as a column, or labels as one 0/1 column per class."""
    classes = data.measure.classes
    return data.targets[:, None] if classes is None else np.eye(len(classes))[data.targets]


def _weigh(values: Array, targets: Array) -> Array:
    """Half the sum over classes, as in the Brier score; a single column unchanged."""
    return values[:, 0] if targets.shape[1] == 1 else 0.5 * values.sum(axis=1)


def _distance(predicted: Array, targets: Array) -> Array:
    return _weigh((predicted - targets) ** 2, targets)
