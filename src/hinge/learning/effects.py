"""Effects of the columns of a table on the predictions of a model, and its learning curve."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC
from typing import Any

import numpy as np

from hinge.explain.dependence import partial_dependence
from hinge.explain.importance import Importances, importance_of_stacked_copies, permutation_importance
from hinge.learning.timeout import OutOfTime, limit
from hinge.problem.numerics import Z95
from hinge.report.evidence import Curve, Effect, Partial
from hinge.select.measure import Measure
from hinge.select.resample import growing_fits

IMPORTANCE_ROWS, PARTIAL_ROWS, GRID, CATEGORIES = 3000, 300, 24, 10
TYPICAL_ROWS = 100_000  # rows that the typical values of a column are computed from
STACKED_ROWS = 200  # rows per column when many columns are predicted together
CURVE_ROWS = 5000  # training rows that the training score of a learning curve is computed on


def importances(
    model: Any, frame: Any, targets: np.ndarray, measure: Measure, seed: int, repeats: int = 3, seconds: float = 20.0
) -> list[Effect]:
    """The rise of the score when a column is shuffled, with 95 % intervals; the most important column first.

    ``targets`` are coded (:meth:`Measure.code`).
    """
    rows = np.sort(np.random.default_rng(seed).permutation(len(targets))[:IMPORTANCE_ROWS])
    began = time.perf_counter()
    measure.output(model, frame[rows[:STACKED_ROWS]])
    if (time.perf_counter() - began) * frame.width > seconds:
        few = rows[:STACKED_ROWS]
        found = importance_of_stacked_copies(model, frame[few], targets[few], measure=measure, random_state=seed)
        return _effects(found, measure)
    labels = targets[rows] if measure.classes is None else measure.classes[targets[rows].astype(np.int64)]
    found = permutation_importance(
        model, frame[rows], labels, measure=measure, n_repeats=repeats, random_state=seed, seconds=seconds
    )
    return _effects(found, measure)


def _effects(found: Importances, measure: Measure) -> list[Effect]:
    """Rises of the mean loss as rises of the score, with 95 % intervals; the largest first."""
    assert found.standard_error is not None
    effects = []
    for name, rise, error in zip(found.names, found.importances_mean, Z95 * found.standard_error):
        sizes = np.array([rise, rise - error, rise + error])
        if measure.root:
            sizes = np.sqrt(np.maximum(found.baseline + sizes, 0.0)) - np.sqrt(found.baseline)
        effects.append(Effect(name, *map(float, sizes)))
    return sorted(effects, key=lambda effect: -effect.value)


def partials(
    model: Any, frame: Any, effects: list[Effect], kinds: dict[str, str], task: str, seed: int, most: int = 6
) -> Iterator[Partial]:
    """The partial dependence of the most important columns that matter."""
    for effect in effects[:most]:
        if effect.high > 0:
            found = partial(model, frame, effect.name, kinds[effect.name], task, seed)
            if found is not None:
                yield found


def partial(model: Any, frame: Any, column: str, kind: str, task: str, seed: int) -> Partial | None:
    """The mean prediction over some rows as one column takes each of its typical values; None if it has one value."""
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(frame.height)[:PARTIAL_ROWS])
    values = frame[column]
    if len(values) > TYPICAL_ROWS:
        values = values.gather(np.sort(rng.permutation(len(values))[:TYPICAL_ROWS]))
    grid = typical_values(values.drop_nulls(), kind)
    if len(grid) < 2:
        return None
    target = "all" if task == "multiclass" else None
    found = partial_dependence(model, frame[rows], column, grid=grid, kind="individual", target=target)
    assert found.individual is not None
    each = found.individual.reshape(len(rows), len(grid), -1)
    low, high = np.quantile(each, [0.1, 0.9], axis=0)
    places = [int(1e6 * v.replace(tzinfo=UTC).timestamp()) for v in grid] if kind == "date" else list(grid)
    return Partial(column, "category" if kind == "boolean" else kind, places, each.mean(axis=0), low, high)


def typical_values(values: Any, kind: str) -> list[Any]:
    """The commonest categories; quantiles of the distinct numbers or dates between their 1st and 99th percentile."""
    if kind == "text" or len(values) == 0:
        return []
    if kind in ("boolean", "category"):
        return values.value_counts(sort=True).head(CATEGORIES)[values.name].to_list()
    # Quantiles of the distinct values, not of the rows, since one value may fill most of a column.
    distinct = values.filter(values.is_between(values.quantile(0.01, "lower"), values.quantile(0.99, "higher")))
    distinct = distinct.unique().sort()
    if kind == "date":
        return distinct.gather(np.unique(np.linspace(0, len(distinct) - 1, GRID).astype(int))).to_list()
    return np.unique(np.quantile(distinct.to_numpy().astype(np.float64), np.linspace(0, 1, GRID))).tolist()


def coefficients(model: Any, names: Any, X: Any, y: np.ndarray, limit: int = 24) -> list[Effect]:
    """The weights of a linear model, largest first, with 95 % intervals by the sandwich formula.

    With derivatives g and curvatures h of the loss, Cov(ŵ) ≈ H⁻¹ (Σ gᵢ² xᵢxᵢ') H⁻¹ with H = Σ hᵢ xᵢxᵢ' + nλI, the bias
    among the columns. With a lasso penalty only the nonzero weights enter, as if their support had been fixed in advance.
    """
    w = np.asarray(getattr(model, "coef_", np.empty((0, 0))))
    if w.ndim != 1 or len(w) != len(names):
        return []
    used = np.flatnonzero(w)
    spread = np.full(len(w), np.nan)
    loss = model.loss
    if 0 < len(used) <= 400 and loss.twice_differentiable:
        columns = X[:, used]
        Z = np.column_stack([columns.toarray() if hasattr(columns, "toarray") else columns, np.ones(X.shape[0])])
        s = Z @ np.append(w[used], model.intercept_)
        g, h = loss.gradient(y, s), loss.hessian(y, s)
        H = (Z * h[:, None]).T @ Z
        H[np.arange(len(used)), np.arange(len(used))] += len(y) * model.penalty.coordinates(len(w)).l2[used]
        meat = (Z * (g**2)[:, None]).T @ Z
        inverse = np.linalg.pinv(H)
        spread[used] = np.sqrt(np.maximum(np.diag(inverse @ meat @ inverse)[:-1], 0.0))
    order = np.argsort(-np.abs(w))[:limit]
    width = Z95 * spread
    return [Effect(str(names[j]), float(w[j]), float(w[j] - width[j]), float(w[j] + width[j])) for j in order if w[j]]


def learning_curve(
    fit: Callable[[np.ndarray], Any], frame: Any, targets: np.ndarray, train: np.ndarray, test: np.ndarray,
    measure: Measure, seed: int, seconds: float,
) -> Curve | None:  # fmt: skip
    """Scores after fits on growing numbers of training rows, up to the largest that time allows."""
    order = np.random.default_rng(seed).permutation(train)
    sizes = np.unique(np.geomspace(max(40, len(train) // 32), len(train), 6).astype(int))
    sizes = sizes[sizes <= len(train)]
    if measure.classes is not None:
        sizes = sizes[[len(np.unique(targets[order[:size]])) > 1 for size in sizes]]
    scores: list[tuple[int, float, float, float]] = []

    def fitted(rows: np.ndarray) -> Any:
        try:
            return fit(np.sort(rows))
        except ValueError:  # a class with one row, or fewer rows than early stopping needs
            return None

    try:
        with limit(1.3 * seconds):
            for _, part, model, _ in growing_fits(fitted, order, sizes, seconds):
                if model is None:
                    continue
                some = np.sort(part)[:: max(1, len(part) // CURVE_ROWS)]
                inside = measure.estimate(measure.losses(model, frame[some], targets[some]))
                outside = measure.estimate(measure.losses(model, frame[test], targets[test]))
                scores.append((len(part), inside.value, outside.value, outside.standard_error))
    except OutOfTime:
        pass
    if len(scores) < 2:
        return None
    return Curve(*(list(column) for column in zip(*scores)))
