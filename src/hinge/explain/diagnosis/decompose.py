"""The decomposition of the excess risk of a learner on data from a known distribution.

    R(f̃) − R(f*) = [R(f̃) − R(f̂)] + [R(f̂) − R(f_F)] + [R(f_F) − R(f*)]
                     optimisation     estimation        approximation

f̃ is the learner's result, f̂ the exact minimiser of its objective, f_F what it would learn from the whole population,
and f* the Bayes predictor of the loss: argmin_a E[ℓ(y, a) | x].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from hinge.explain.diagnosis.optimisation import harder
from hinge.explain.generators import Generator
from hinge.explain.plots.axes import axes_or_new
from hinge.models.meta import final_step
from hinge.problem.losses import Loss, Squared, Target, as_loss
from hinge.select.estimate import Estimate, mean_of
from hinge.select.measure import own_loss
from hinge.select.resample import fit_quietly

Array = np.ndarray
LEVELS, POPULATION = 64, 1024  # quantiles of y, and inputs, for f_F under losses other than the squared one
PARTS = ("bayes", "approximation", "estimation", "optimisation")


@dataclass(frozen=True)
class RiskDecomposition:
    """risk = bayes + approximation + estimation + optimisation, over training sets of n examples.

    Attributes
    ----------
    n : int
        Examples in a training set.
    risk : Estimate
        E R(f̃).
    optimisation, estimation : Estimate
        Their standard errors are over the training sets.
    approximation : float
        R(f_F) − R(f*): no training set is involved.
    bayes : float
        R(f*).
    risks : array of shape (repeats, 4)
        R(f̃), R(f̂), R(f_F), R(f*) for every training set.
    """

    n: int
    risk: Estimate
    optimisation: Estimate
    estimation: Estimate
    approximation: float
    bayes: float
    risks: Array

    @property
    def excess(self) -> float:
        """R(f̃) − R(f*)."""
        return self.risk.value - self.bayes

    def __str__(self) -> str:
        return (
            f"n = {self.n}: excess risk {self.excess:.4g} = optimisation {self.optimisation} + estimation "
            f"{self.estimation} + approximation {self.approximation:.4g} (Bayes risk {self.bayes:.4g})"
        )


def decompose_risk(
    generator: Generator,
    learner: Any,
    n: int,
    *,
    loss: Any = None,
    repeats: int = 20,
    points: int = 8192,
    random_state: int = 0,
) -> RiskDecomposition:
    """Decompose the risk of a learner on data from a known distribution.

    Parameters
    ----------
    generator : Generator
        Where examples come from, with its Bayes predictor.
    learner : estimator
        A regressor, or a classifier with ``predict_proba`` for generators of labels.
    n : int
        Examples per training set.
    loss : Loss, optional
        What risk is the mean of, and so what the Bayes predictor f* is: the mean of y given x for ``hg.Squared()``, its
        median for ``hg.Absolute()``, its τ-quantile for ``hg.Quantile(τ)``, the mode for ``hg.ZeroOne()``. By default the
        loss the learner minimises if that is known; otherwise (y − f)² for numbers and the log loss for labels.
    repeats : int
        Training sets to average over.
    points : int
        How many inputs stand for the distribution of x. f_F is fitted to all of them at once, with the true law of y.
    random_state : int
        Seed of the random numbers; the same one gives the same result.

    Examples
    --------
    A line cannot follow a step, however many examples there are:

    >>> import hinge as hg
    >>> parts = hg.decompose_risk(hg.generators.StepCurve(), hg.LinearRegression(), n=50)
    >>> bool(parts.approximation > parts.estimation.value > 0), parts.optimisation.value
    (True, 0.0)
    """
    if n < 2 or repeats < 1:
        raise ValueError(f"n must be at least 2 and repeats at least 1, got n={n} and repeats={repeats}.")
    grid = generator.quadrature(points)
    risk_loss = _risk_loss(generator, learner, loss)

    def risk(model: Any) -> float:
        return generator.risk(generator.output_of(model, grid, risk_loss), grid, risk_loss)

    exact = harder(learner, 1e-10)
    limit = risk(fit_population(generator, learner if exact is None else exact, grid, risk_loss))
    bayes = generator.risk(generator.bayes(grid, risk_loss), grid, risk_loss)
    risks = np.empty((repeats, 4))
    for r in range(repeats):
        rng = np.random.default_rng([random_state, r])
        X = generator.inputs(n, rng)
        y = generator.targets(X, rng)
        found = risk(fit_quietly(learner, X, y))
        risks[r] = found, found if exact is None else risk(fit_quietly(exact, X, y)), limit, bayes
    steps = -np.diff(risks, axis=1)
    return RiskDecomposition(
        n, mean_of(risks[:, 0]), mean_of(steps[:, 0]), mean_of(steps[:, 1]), limit - bayes, bayes, risks
    )


def _risk_loss(generator: Generator, learner: Any, loss: Any) -> Loss | None:
    """The loss of the risk; None for the squared error of numbers and the log loss of labels."""
    if loss is None:
        learner_loss = None if generator.labels else own_loss(learner)
        return None if isinstance(learner_loss, Squared) else learner_loss
    loss = as_loss(loss)
    if generator.labels and loss.target is not Target.SIGN:
        raise ValueError(f"{loss!r} is no loss of labels; a loss of margins such as hg.Hinge(), or hg.ZeroOne(), is.")
    if not generator.labels and loss.target is not Target.REAL:
        raise ValueError(f"{loss!r} needs {loss.target.value}, and the generator draws real numbers.")
    return loss


def fit_population(generator: Generator, learner: Any, grid: Array, loss: Loss | None = None) -> Any:
    """The learner fitted to all inputs of the grid with the distribution of y given x.

    Under squared loss the noise adds a constant, so E[y | x] replaces y. Under other losses every input of a smaller grid
    is paired with ``LEVELS`` equiprobable quantiles of y. For labels, every input is paired with both labels, weighted by
    their probabilities.
    """
    if not generator.labels:
        if loss is None or isinstance(loss, Squared):
            return fit_quietly(learner, grid, generator.mean(grid))
        inputs = generator.quadrature(min(len(grid), POPULATION))
        law = generator.law(inputs)
        y = [np.asarray(law.quantile((k + 0.5) / LEVELS), dtype=np.float64) for k in range(LEVELS)]
        return fit_quietly(learner, np.tile(inputs, (LEVELS, 1)), np.concatenate(y))
    if not has_fit_parameter(final_step(learner), "sample_weight") or final_step(learner) is not learner:
        raise ValueError(f"{type(learner).__name__} takes no sample_weight, which labels with probabilities need.")
    p = generator.mean(grid)
    labels = np.repeat([0, 1], len(grid))
    return fit_quietly(learner, np.vstack([grid, grid]), labels, sample_weight=np.concatenate([1.0 - p, p]))


def plot_decomposition(
    parts: Sequence[RiskDecomposition], x: Sequence[Any] | None = None, *, xlabel: str = "examples", ax: Any = None
) -> Any:
    """Draw the stacked terms as n grows or as the class grows.

    Parameters
    ----------
    parts : sequence of RiskDecomposition
        What :func:`decompose_risk` gave, from left to right.
    x : sequence, optional
        Where on the horizontal axis; the numbers of examples by default.
    xlabel : str
        The name of the horizontal axis.
    ax : matplotlib axes, optional
        Where to draw; new axes by default.

    Returns
    -------
    matplotlib axes
        With one filled band per term, in the order Bayes risk, approximation, estimation, optimisation.
    """
    ax = axes_or_new(ax)
    places = np.asarray([p.n for p in parts] if x is None else x)
    values = [[getattr(p, name) for p in parts] for name in PARTS]
    heights = np.array([[v.value if isinstance(v, Estimate) else v for v in row] for row in values])
    edges = np.vstack([np.zeros(len(parts)), np.cumsum(heights, axis=0)])
    for low, high, name in zip(edges, edges[1:], PARTS):
        ax.fill_between(places, low, high, alpha=0.7, label="Bayes risk" if name == "bayes" else name)
    ax.plot(places, edges[-1], "k.-", label="risk")
    ax.set_xlabel(xlabel)
    ax.set_ylabel("risk")
    ax.legend()
    return ax
