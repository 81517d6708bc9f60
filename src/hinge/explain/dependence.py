"""Partial dependence: predictions as a function of one or two columns, averaged over the other columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.stats
from sklearn.base import is_classifier

from hinge._native import check_indices
from hinge.explain.plots.axes import pyplot
from hinge.models.linear.base import LinearRegressor
from hinge.models.meta import final_step, row_count, take_rows
from hinge.models.trees.arrays import Trees
from hinge.tables.frames import column_values, with_column

Array = np.ndarray
# Rows predicted at a time for the values of the grid.
BLOCK = 200_000


@dataclass(frozen=True, eq=False)
class PartialDependence:
    """Predictions averaged over the data with one or two columns set to the values of a grid.

    Attributes
    ----------
    features : tuple of column numbers
        The columns that were varied, one or two.
    names : tuple of str
        Their names.
    grid_values : list of arrays, one per column
        The values each was set to.
    average : array of the shape of the grid
        The mean prediction (of the probability of the chosen class, for classifiers).
    individual : array of rows × grid, or None
        The prediction for every row: the lines of an ICE plot.
    """

    features: tuple[int, ...]
    names: tuple[str, ...]
    grid_values: list[Array]
    average: Array
    individual: Array | None


def partial_dependence(
    estimator: Any,
    X: Any,
    features: Any,
    *,
    grid_resolution: int = 100,
    percentiles: tuple[float, float] = (0.05, 0.95),
    kind: str = "average",
    target: Any = None,
    grid: Sequence[Any] | None = None,
) -> PartialDependence:
    """f̄(v) = (1/n) Σ f(xᵢ with the chosen columns set to v).

    Linear regressors are evaluated in closed form, trees once between adjacent thresholds, where they are constant.

    Parameters
    ----------
    estimator : fitted estimator
        Any classifier or regressor that has been fitted.
    X : data
        The rows to average over.
    features : column number or name, or a pair of them
        One column, or two to vary together.
    grid_resolution : int
        Values per column; columns with fewer distinct ones are taken at all of those.
    percentiles : pair of float
        Where the grid begins and ends.
    kind : {"average", "individual", "both"}
        Whether ``individual`` is kept.
    target : label, optional
        The class whose probability is averaged; the last by default. "all" gives every class, along a last axis.
    grid : sequence, optional
        The values of a single column, in place of a grid of its quantiles.

    Examples
    --------
    >>> import hinge as hg
    >>> X, y = hg.generators.LinearGaussian([2.0, -1.0]).sample(200)
    >>> found = hg.partial_dependence(hg.LinearRegression().fit(X, y), X, 0)
    >>> slope = np.diff(found.average) / np.diff(found.grid_values[0])
    >>> bool(np.allclose(slope, slope[0]))
    True
    """
    check_indices(X)
    if kind not in ("average", "individual", "both"):
        raise ValueError(f'kind must be "average", "individual" or "both", got {kind!r}.')
    if not 0 <= percentiles[0] < percentiles[1] <= 1:
        raise ValueError(f"percentiles must be two rising numbers in [0, 1], got {percentiles!r}.")
    names = [str(name) for name in getattr(X, "columns", [f"x{j}" for j in range(X.shape[1])])]
    chosen = tuple(_number(f, names) for f in (features if isinstance(features, list | tuple) else [features]))
    if not 1 <= len(chosen) <= 2:
        raise ValueError("features must be one column or a pair of columns.")
    if grid is not None and len(chosen) != 1:
        raise ValueError("grid gives the values of one column; features names two.")
    values = (
        [_grid(column_values(X, j), grid_resolution, percentiles) for j in chosen]
        if grid is None
        else [np.asarray(grid, dtype=None if isinstance(grid[0], int | float) else object)]
    )
    points = np.stack(np.meshgrid(*values, indexing="ij"), axis=-1).reshape(-1, len(chosen))
    shape = tuple(len(g) for g in values)
    each = _linear(estimator, X, chosen, points)
    if each is None:
        each = _evaluate(estimator, X, chosen, points, target)
    outputs = each.shape[2:]
    individual = each.reshape(len(each), *shape, *outputs) if kind != "average" else None
    average = each.mean(axis=0).reshape(*shape, *outputs)
    return PartialDependence(chosen, tuple(names[j] for j in chosen), values, average, individual)


def _number(feature: Any, names: list[str]) -> int:
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(f"features: there is no column {feature!r}.")
        return names.index(feature)
    if not -len(names) <= int(feature) < len(names):
        raise ValueError(f"features: there is no column {feature}; X has {len(names)}.")
    return int(feature) % len(names)


def _grid(values: Array, resolution: int, percentiles: tuple[float, float]) -> Array:
    if values.dtype.kind not in "bifu":
        return np.unique(values.astype(str))
    distinct = np.unique(values[~np.isnan(values)] if values.dtype.kind == "f" else values)
    if len(distinct) <= resolution:
        return distinct
    low, high = scipy.stats.mstats.mquantiles(values[values == values], prob=percentiles)
    return np.linspace(low, high, resolution)


def _linear(estimator: Any, X: Any, chosen: tuple[int, ...], points: Array) -> Array | None:
    """For linear regressors every row's line has the same slope: f(xᵢ) + Σ w_j (v_j − x_ij)."""
    if not isinstance(estimator, LinearRegressor) or np.ndim(estimator.coef_) != 1 or points.dtype.kind != "f":
        return None
    predicted = np.asarray(estimator.predict(X), dtype=np.float64)
    w = estimator.coef_[list(chosen)].astype(np.float64)
    contribution = np.column_stack([column_values(X, j) for j in chosen]).astype(np.float64) @ w
    return (predicted - contribution)[:, None] + (points @ w)[None, :]


def _evaluate(estimator: Any, X: Any, chosen: tuple[int, ...], points: Array, target: Any) -> Array:
    """Every row with the columns set to every point: rows × points (× classes)."""
    points, back = _distinct(estimator, chosen, points)
    n = row_count(X)
    outputs = (len(estimator.classes_),) if _every_class(estimator, target) else ()
    each = np.empty((n, len(points), *outputs))
    at_once = max(1, BLOCK // n)
    for begin in range(0, len(points), at_once):
        part = points[begin : begin + at_once]
        table = take_rows(X, np.tile(np.arange(n), len(part)))
        for c, j in enumerate(chosen):
            table = with_column(table, j, np.repeat(part[:, c], n))
        responses = _respond(estimator, table, target).reshape(len(part), n, *outputs)
        each[:, begin : begin + len(part)] = np.swapaxes(responses, 0, 1)
    return each[:, back]


def _distinct(estimator: Any, chosen: tuple[int, ...], points: Array) -> tuple[Array, Array]:
    """One representative of all points that no tree separates, and the index of each point's representative."""
    last = final_step(estimator)
    trees = getattr(last, "trees_", None)
    if last is not estimator or not isinstance(trees, Trees) or points.dtype.kind != "f" or np.any(trees.set >= 0):
        return points, np.arange(len(points))
    cells = [
        np.searchsorted(np.unique(trees.threshold[trees.feature == j]), points[:, c], side="left")
        for c, j in enumerate(chosen)
    ]
    _, first, back = np.unique(np.column_stack(cells), axis=0, return_index=True, return_inverse=True)
    return points[first], back.ravel()


def _every_class(estimator: Any, target: Any) -> bool:
    return is_classifier(estimator) and isinstance(target, str) and target == "all" and target not in estimator.classes_


def _respond(estimator: Any, X: Any, target: Any) -> Array:
    if not is_classifier(estimator):
        return np.asarray(estimator.predict(X), dtype=np.float64)
    if _every_class(estimator, target):
        return np.asarray(estimator.predict_proba(X), dtype=np.float64)
    classes = list(estimator.classes_)
    at = len(classes) - 1 if target is None else classes.index(target)
    if hasattr(estimator, "predict_proba"):
        return np.asarray(estimator.predict_proba(X), dtype=np.float64)[:, at]
    scores = np.asarray(estimator.decision_function(X), dtype=np.float64)
    return scores if scores.ndim == 1 else scores[:, at]


class PartialDependenceDisplay:
    """Partial dependence of several columns, one plot each, optionally with one line per row (ICE).

    Parameters
    ----------
    results : list of PartialDependence
        What :func:`partial_dependence` gave, one for each picture.

    Attributes
    ----------
    axes_ : array of matplotlib axes
    figure_ : matplotlib figure
    lines_ : list of lines
        The averages, for single columns.

    Examples
    --------
    >>> import hinge as hg
    >>> X, y = hg.generators.LinearGaussian([2.0, -1.0]).sample(100)
    >>> display = hg.plots.PartialDependenceDisplay.from_estimator(hg.Ridge().fit(X, y), X, [0, 1])
    >>> len(display.lines_)
    2
    """

    def __init__(self, results: Sequence[PartialDependence]) -> None:
        self.results = list(results)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, features: Sequence[Any], *, kind: str = "average", subsample: int = 200,
        random_state: int = 0, fig: Any = None, **options: Any,
    ) -> PartialDependenceDisplay:  # fmt: skip
        """Compute and draw; ``options`` are passed to :func:`partial_dependence`.

        ``subsample`` is the number of rows drawn as lines with ``kind="individual"`` or "both".
        """
        results = [
            partial_dependence(estimator, X, f, kind="average" if isinstance(f, list | tuple) else kind, **options)
            for f in features
        ]
        return cls(results).plot(fig=fig, subsample=subsample, random_state=random_state, average=kind != "individual")

    def plot(
        self, *, fig: Any = None, subsample: int = 200, random_state: int = 0, average: bool = True
    ) -> PartialDependenceDisplay:
        """Draw."""
        columns = min(3, len(self.results))
        rows = -(-len(self.results) // columns)
        self.figure_ = pyplot().figure(figsize=(4.2 * columns, 3.2 * rows)) if fig is None else fig
        self.axes_ = np.atleast_1d(self.figure_.subplots(rows, columns)).ravel()
        self.lines_ = []
        for ax in self.axes_[len(self.results) :]:
            ax.set_visible(False)
        for ax, found in zip(self.axes_, self.results):
            ax.set_xlabel(found.names[0])
            if len(found.features) == 2:
                drawn = ax.contourf(*np.meshgrid(*found.grid_values, indexing="ij"), found.average)
                self.figure_.colorbar(drawn, ax=ax)
                ax.set_ylabel(found.names[1])
                continue
            x = found.grid_values[0]
            if found.individual is not None:
                some = np.random.default_rng(random_state).permutation(len(found.individual))[:subsample]
                ax.plot(x, found.individual[some].T, color="tab:blue", alpha=0.15, linewidth=0.7)
            if average:
                self.lines_ += ax.plot(x, found.average, color="tab:orange", linewidth=2)
            ax.set_ylabel("prediction")
        self.figure_.tight_layout()
        return self
