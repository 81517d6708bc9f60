"""Predictive checks: whether the data could have come from the model.

Problem     T(y) of the data against T(y_rep), y_rep ~ p(y_rep) before fitting, ~ p(y_rep | y) after
Measure     P(T(y_rep) > T(y)) + ½P(T(y_rep) = T(y)), by draws of whole data sets: near 0 or 1 the model does not make
            data like these. After fitting to the same data it is closer to ½ than a p-value would be.
Reference   Gelman et al. (2013), Bayesian Data Analysis, chapter 6; Box (1980) for the prior
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.models.bayes.conjugate import ConjugateModel
from hinge.models.bayes.process import GaussianProcessRegressor

Array = NDArray[np.float64]

STATISTICS: dict[str, Callable[[Array], Any]] = {"mean": np.mean, "std": np.std, "min": np.min, "max": np.max}


@dataclass(frozen=True)
class PredictiveCheck:
    """Statistics of data and of data drawn from a model.

    Attributes
    ----------
    y : array of n
        The data; labels as 0 and 1.
    draws : array of shape (n, draws)
        Data sets from the model.
    observed : dict
        Every statistic of y.
    replicated : dict
        Every statistic of every draw.
    tail : dict
        P(T(y_rep) > T(y)), ties counting half.
    fitted : bool
        Whether the draws are from the posterior predictive distribution, or from the prior one.
    """

    y: Array
    draws: Array
    observed: dict[str, float]
    replicated: dict[str, Array]
    tail: dict[str, float]
    fitted: bool

    def __str__(self) -> str:
        kind = "posterior" if self.fitted else "prior"
        lines = [f"{kind} predictive check, {self.draws.shape[1]} draws of {len(self.y)} observations"]
        for name, value in self.observed.items():
            low, high = np.quantile(self.replicated[name], [0.05, 0.95])
            lines.append(
                f"{name:>8}: data {value:.4g}, model {low:.4g} to {high:.4g} (90 %), tail {self.tail[name]:.3f}"
            )
        return "\n".join(lines)

    def plot(self, axes: Any = None) -> Any:
        """Draw the data over data sets of the model, and every statistic with its position; returns the axes."""
        import matplotlib.pyplot as plt

        if axes is None:
            count = 1 + len(self.observed)
            axes = plt.subplots(1, count, figsize=(3 * count, 2.8), layout="constrained")[1]
        axes = np.atleast_1d(axes)
        some = self.draws[:, : min(50, self.draws.shape[1])]
        edges = np.histogram_bin_edges(np.concatenate([self.y, some.ravel()]), 30)
        for column in some.T:
            axes[0].stairs(np.histogram(column, edges, density=True)[0], edges, color="C0", alpha=0.15)
        axes[0].stairs(np.histogram(self.y, edges, density=True)[0], edges, color="black")
        axes[0].set(title="data (black) and draws", xlabel="y", yticks=[])
        for ax, (name, value) in zip(axes[1:], self.observed.items()):
            ax.hist(self.replicated[name], 30, color="C0", alpha=0.6)
            ax.axvline(value, color="black")
            ax.set(title=f"{name}, tail {self.tail[name]:.2f}", yticks=[])
        return axes


def predictive_check(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    statistics: Mapping[str, Callable[[Array], Any]] | None = None,
    n_draws: int = 1000,
    intercept: float | None = None,
    random_state: Any = 0,
) -> PredictiveCheck:
    """Compare data with data sets drawn from a Bayesian model: from its prior if it is not fitted, else from its posterior.

    Parameters
    ----------
    model : BayesianLinearRegression, BayesianLogisticRegression, GaussianProcessRegressor or a conjugate pair
        A model whose prior, or posterior if it is fitted, data are drawn from.
    X : inputs
        For a conjugate pair, the data themselves, and no y.
    y : array
        The data.
    statistics : dict of functions of an array, optional
        What to compare; by default mean, standard deviation, least and greatest value (for labels, the mean).
    n_draws : int
        How many data sets.
    intercept : float, optional
        Where the bias is held before fitting: its prior is flat.
    random_state : int
        Seed of the draws.

    Returns
    -------
    PredictiveCheck
        ``print`` it, or ``plot()`` it.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> counts = np.array([0, 0, 0, 0, 9, 0, 0, 12, 0, 0, 0, 8])  # more zeros than any Poisson law has
    >>> check = hg.predictive_check(
    ...     hg.conjugate.GammaPoisson(1.0, 1.0).update(counts), counts, statistics={"zeros": lambda y: np.mean(y == 0)}
    ... )
    >>> check.tail["zeros"] < 0.01
    True
    """
    if isinstance(model, ConjugateModel):
        if y is not None:
            raise ValueError("A conjugate pair has no inputs: pass the data in place of X, and no y.")
        data = np.asarray(X, dtype=np.float64).ravel()
        draws, fitted, labels = model.sample_y(len(data), n_draws, random_state), model.prior is not None, False
    elif y is None:
        raise ValueError("y is missing: the data that the model is compared with.")
    elif not hasattr(model, "sample_y"):
        raise TypeError(f"{type(model).__name__} has no sample_y: it draws no data.")
    else:
        data, draws, fitted, labels = _conditional(model, X, np.asarray(y), n_draws, intercept, random_state)
    if statistics is None:
        statistics = {"mean": np.mean} if labels else STATISTICS
    observed = {name: float(t(data)) for name, t in statistics.items()}
    replicated = {name: np.array([float(t(column)) for column in draws.T]) for name, t in statistics.items()}
    tail = {
        name: float(np.mean(values > observed[name]) + 0.5 * np.mean(values == observed[name]))
        for name, values in replicated.items()
    }
    return PredictiveCheck(data, draws, observed, replicated, tail, fitted)


def _conditional(
    model: Any, X: Any, y: NDArray[Any], n_draws: int, intercept: float | None, random_state: Any
) -> tuple[Array, Array, bool, bool]:
    """Data and draws for models of y given x; labels become 0 and 1."""
    if isinstance(model, GaussianProcessRegressor):
        draws = model.sample_y(X, n_draws, random_state, noise=True)
        if draws.ndim == 3:
            raise ValueError("predictive_check compares one target at a time.")
        return y.astype(np.float64), draws, hasattr(model, "L_"), False
    draws = model.sample_y(X, n_draws, random_state, intercept=intercept)
    fitted = hasattr(model, "coef_")
    if not hasattr(model, "predict_proba"):
        return y.astype(np.float64), draws, fitted, False
    classes = model.classes_ if fitted else np.unique(y)
    if len(classes) != 2:
        raise ValueError(f"y must have two classes, got {len(classes)}.")
    drawn = draws == classes[1] if fitted else draws
    return (y == classes[1]).astype(np.float64), drawn.astype(np.float64), fitted, True
