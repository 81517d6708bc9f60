"""Plots of Bayesian learning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hinge.models.bayes.linear import BayesianLinearRegression


def plot_posterior_contraction(
    points: Sequence[int] = (0, 1, 2, 20),
    *,
    weights: tuple[float, float] = (-0.3, 0.5),
    noise: float = 0.2,
    prior_variance: float = 0.5,
    functions: int = 6,
    random_state: Any = 0,
) -> Any:
    """Draw the posterior of y = w₀ + w₁x + ε for growing numbers of examples, and functions drawn from it.

    Inputs are uniform on [−1, 1], ε ~ N(0, noise²) and w ~ N(0, prior_variance·I). One row per number of examples:
    on the left the density of w, the true w marked by a cross; on the right lines drawn from it, with the examples.

    Parameters
    ----------
    points : sequence of int
        After how many examples to draw; 0 is the prior.
    weights : (float, float)
        The true w₀ and w₁.
    noise : float
        The standard deviation of ε.
    prior_variance : float
        The variance of the prior of each weight.
    functions : int
        How many lines.
    random_state : int
        Seed of the examples and of the lines.

    Returns
    -------
    matplotlib figure
        With ``models``, the fitted model of each row, as an attribute.

    Examples
    --------
    >>> import hinge as hg
    >>> figure = hg.plots.plot_posterior_contraction()
    >>> areas = [float(model.covariance_.trace()) for model in figure.models]
    >>> areas == sorted(areas, reverse=True)
    True
    """
    import matplotlib.pyplot as plt

    rng = np.random.default_rng(random_state)
    most = max(points)
    x = rng.uniform(-1.0, 1.0, most)
    y = weights[0] + weights[1] * x + noise * rng.standard_normal(most)
    figure, axes = plt.subplots(len(points), 2, figsize=(7, 3 * len(points)), squeeze=False)
    grid = np.linspace(-1.0, 1.0, 201)
    lines = np.column_stack([np.ones(2), [-1.0, 1.0]])
    models: list[Any] = []
    for (left, right), n in zip(axes, points):
        model = BayesianLinearRegression(prior_variance, noise**2, fit_intercept=False)
        model.partial_fit(np.column_stack([np.ones(n), x[:n]]), y[:n])
        models.append(model)
        u, v = np.meshgrid(grid, grid)
        away = np.stack([u, v], axis=-1) - np.asarray(model.coef_, dtype=np.float64)
        square = np.einsum("abi,ij,abj->ab", away, np.linalg.inv(model.covariance_), away)
        left.contourf(u, v, np.exp(-0.5 * square), levels=12, cmap="viridis")
        left.plot(*weights, "w+", markersize=10)
        left.set(xlabel="$w_0$", ylabel="$w_1$", title="prior" if n == 0 else f"posterior, n = {n}")
        right.plot([-1.0, 1.0], model.sample_functions(lines, functions, random_state=n), "C0", alpha=0.7)
        right.plot(x[:n], y[:n], "ko", fillstyle="none")
        right.set(xlabel="$x$", ylabel="$y$", xlim=(-1, 1), ylim=(-2, 2), title="functions drawn from it")
    figure.tight_layout()
    figure.models = models  # type: ignore[attr-defined]
    return figure
