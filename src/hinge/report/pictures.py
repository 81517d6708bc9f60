"""The charts of a report."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np

from hinge.problem.numerics import Z95
from hinge.report.charts import Chart, intervals, matrix
from hinge.report.evidence import Evidence, Partial
from hinge.tables.number_formats import format_number

MAX_POINTS = 700
MAX_LINES = 6


def target_chart(e: Evidence) -> str:
    """The distribution of the target."""
    if e.classes:
        counts = np.bincount(e.target_values.astype(np.int64), minlength=len(e.classes))
        order = np.argsort(-counts)[:24]
        rows = [(e.classes[k], float(counts[k]), np.nan, np.nan) for k in order]
        return intervals(f"Rows by {e.target}", rows, f"rows of {len(e.target_values)}")
    y = e.target_values
    low, high = np.quantile(y, [0.0, 0.995])
    integral = bool(np.all(y == np.round(y))) and high - low <= 40
    edges = np.arange(low - 0.5, high + 1.5) if integral else np.linspace(low, high if high > low else low + 1, 33)
    counts, _ = np.histogram(y, edges)
    chart = Chart((edges[0], edges[-1]), (0, counts.max() * 1.05), (e.target, "rows"))
    hover = [f"{format_number(a)} to {format_number(b)}: {c} rows" for a, b, c in zip(edges, edges[1:], counts)]
    chart.bars(edges, counts, 0, hover)
    return chart.svg(f"Spread of {e.target}" + ("" if y.max() <= high else " (up to the 99.5 % quantile)"))


def comparison(e: Evidence) -> str:
    """Scores of the models with one standard error."""
    rows = [(r.name, r.score, r.score - r.error, r.score + r.error) for r in e.board if r.state == "done"]
    return intervals(f"Cross-validated {e.metric} ± one standard error (less is better)", rows, e.metric)


def learning(e: Evidence) -> str:
    """Scores against the number of training rows."""
    c = e.curve
    assert c is not None
    test, error = np.array(c.test), np.array(c.error)
    high = max(*c.train, *(test + error))
    low = min(0.0 if e.task != "real" else np.inf, *c.train, *(test - error))
    chart = Chart((c.rows[0], c.rows[-1]), (low, high * 1.02), ("training rows", e.metric), log="x")
    chart.band(c.rows, test - error, test + error, 0)
    chart.line(c.rows, c.test, "held out", 0, dots=True, hover=[
        f"{n} rows: held out {format_number(t)} ± {format_number(s)}" for n, t, s in zip(c.rows, c.test, c.error)
    ])  # fmt: skip
    chart.line(c.rows, c.train, "training", 1, dots=True)
    return chart.svg("Learning curve")


def convergence(e: Evidence) -> str:
    """The gap between the objective and its proved bound, against time."""
    everything = [p for points in e.convergence.values() for p in points]
    times, gaps = [1e3 * t for t, _ in everything], [g for _, g in everything]
    chart = Chart(
        (min(times), max(times)), (min(gaps) / 2, max(gaps) * 2),
        ("milliseconds", "objective − proved lower bound"), log="xy" if max(times) > 50 * min(times) else "y",
    )  # fmt: skip
    for k, (name, points) in enumerate(e.convergence.items()):
        chart.line(
            [1e3 * t for t, _ in points], [g for _, g in points], name, k, dots=True,
            hover=[f"{name}, iteration {i + 1}: at most {g:.1e} above the optimum" for i, (_, g) in enumerate(points)],
        )  # fmt: skip
    return chart.svg("Distance from the optimum against time")


# --- classes ---


def confusion(e: Evidence) -> str:
    """The confusion matrix."""
    k = len(e.classes)
    guess = np.argmax(e.prediction, axis=1)
    counts = np.zeros((k, k), dtype=np.int64)
    np.add.at(counts, (e.y.astype(np.int64), guess), 1)
    keep = np.argsort(-counts.sum(axis=1))[:12] if k > 12 else np.arange(k)
    title = "Confusion matrix" + (" (the twelve most frequent classes)" if k > 12 else "")
    return matrix(title, counts[np.ix_(keep, keep)], [e.classes[c] for c in keep])


def _hits(e: Evidence) -> tuple[np.ndarray, np.ndarray]:
    """Indicators of the positive class, and its predicted probabilities."""
    return (e.y == e.positive).astype(np.int64), e.prediction[:, e.positive]


def roc(e: Evidence) -> str:
    """The ROC curve, with a bootstrap band for two classes."""
    from sklearn.metrics import roc_auc_score, roc_curve

    chart = Chart((0, 1), (0, 1), ("false positive rate", "true positive rate"))
    chart.line([0, 1], [0, 1], "", 5, dash=True)
    grid = np.linspace(0, 1, 101)
    if e.task == "binary":
        y, p = _hits(e)
        low, high = _band(lambda rows: np.interp(grid, *roc_curve(y[rows], p[rows])[:2]), y)
        chart.band(grid, low, high, 0)
        fpr, tpr, cut = roc_curve(y, p)
        _hover_curve(chart, fpr, tpr, cut, ("false positives", "true positives"), 0)
        return chart.svg(f"ROC curve (area {roc_auc_score(y, p):.3f}; band: 95 %, resampled)")
    for k, c in enumerate(shown_classes(e)):
        truth = e.y == c
        fpr, tpr, _ = roc_curve(truth, e.prediction[:, c])
        area = roc_auc_score(truth, e.prediction[:, c])
        chart.line(grid, np.interp(grid, fpr, tpr), f"{e.classes[c]} ({area:.3f})", k)
    return chart.svg("ROC curves, one class against the rest (area)")


def precision_recall(e: Evidence) -> str:
    """Precision against recall."""
    from sklearn.metrics import average_precision_score, precision_recall_curve

    chart = Chart((0, 1), (0, 1.01), ("recall", "precision"))
    if e.task == "binary":
        y, p = _hits(e)
        share = float(np.mean(y))
        chart.line([0, 1], [share, share], "", 5, dash=True)
        precision, recall, cut = precision_recall_curve(y, p)
        _hover_curve(chart, recall[:-1], precision[:-1], cut, ("recall", "precision"), 0)
        return chart.svg(
            f"Precision and recall of “{e.classes[e.positive]}” (average precision {average_precision_score(y, p):.3f})"
        )
    for k, c in enumerate(shown_classes(e)):
        precision, recall, _ = precision_recall_curve(e.y == c, e.prediction[:, c])
        thin = np.unique(np.linspace(0, len(recall) - 1, 150).astype(int))
        chart.line(recall[thin], precision[thin], e.classes[c], k)
    return chart.svg("Precision and recall, one class against the rest")


def calibration(e: Evidence) -> str:
    """Observed frequencies against predicted probabilities, with binomial intervals."""
    binary = e.task == "binary"
    p = e.prediction[:, e.positive] if binary else e.prediction.max(axis=1)
    hit = e.y == e.positive if binary else np.argmax(e.prediction, axis=1) == e.y
    edges = np.unique(np.quantile(p, np.linspace(0, 1, min(11, max(3, len(p) // 30) + 1))))
    cell = np.clip(np.searchsorted(edges, p, side="right") - 1, 0, max(len(edges) - 2, 0))
    what = f"“{e.classes[e.positive]}”" if binary else "its best guess"
    chart = Chart((0, 1), (0, 1), (f"predicted probability of {what}", "observed share"))
    chart.line([0, 1], [0, 1], "", 5, dash=True)
    xs, ys, hover = [], [], []
    for k in range(max(len(edges) - 1, 1)):
        inside = cell == k
        if inside.sum() < 3:
            continue
        mean, share, n = float(p[inside].mean()), float(hit[inside].mean()), int(inside.sum())
        low, high = wilson(share, n)
        chart.whisker(mean, low, high)
        xs.append(mean)
        ys.append(share)
        hover.append(f"predicted {mean:.2f}, observed {share:.2f} ({low:.2f} to {high:.2f}), {n} rows")
    chart.line(xs, ys, "", 0, dots=True, hover=hover)
    error = sum(abs(a - b) for a, b in zip(xs, ys)) / max(len(xs), 1)
    return chart.svg(f"Calibration (mean deviation {error:.3f})")


def wilson(share: float, n: int, z: float = Z95) -> tuple[float, float]:
    """The Wilson interval of a share."""
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return float(max(centre - half, 0.0)), float(min(centre + half, 1.0))


def shown_classes(e: Evidence) -> list[int]:
    """The classes that get a line, the most frequent first; each has the same colour in every chart."""
    counts = np.bincount(e.y.astype(np.int64), minlength=len(e.classes))
    return [int(c) for c in np.argsort(-counts)[:MAX_LINES] if 0 < counts[c] < len(e.y)]


def _band(curve: Any, y: np.ndarray, draws: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    n = len(y)
    curves = []
    for _ in range(draws):
        rows = rng.integers(0, n, min(n, 5000))
        if 0 < np.sum(y[rows]) < len(rows):
            curves.append(curve(rows))
    low, high = np.quantile(curves, [0.025, 0.975], axis=0)
    return low, high


def _hover_curve(chart: Chart, xs: Any, ys: Any, cuts: Any, names: tuple[str, str], colour: int) -> None:
    thin = np.unique(np.linspace(0, len(xs) - 1, 120).astype(int))
    texts = [f"threshold {cuts[i]:.3f}: {names[0]} {xs[i]:.3f}, {names[1]} {ys[i]:.3f}" for i in thin]
    chart.line(np.asarray(xs)[thin], np.asarray(ys)[thin], "", colour, hover=texts)


# --- numbers ---


def predicted_actual(e: Evidence) -> str:
    """Predictions against the truth."""
    rows = np.random.default_rng(0).permutation(len(e.y))[:MAX_POINTS]
    y, p = e.y[rows], e.prediction[rows]
    low, high = float(min(y.min(), p.min())), float(max(y.max(), p.max()))
    chart = Chart((low, high), (low, high), (f"predicted {e.target}", f"true {e.target}"))
    chart.points(p, y, 0, [f"predicted {format_number(a)}, true {format_number(b)}" for a, b in zip(p, y)])
    chart.line([low, high], [low, high], "", 5, dash=True)
    return chart.svg("Predicted and true" + (f" ({MAX_POINTS} rows)" if len(e.y) > MAX_POINTS else ""))


def residuals(e: Evidence) -> str:
    """Errors against predictions, with their running mean and spread."""
    rows = np.random.default_rng(1).permutation(len(e.y))[:MAX_POINTS]
    p, r = e.prediction, e.y - e.prediction
    low, high = np.quantile(r, [0.002, 0.998])
    chart = Chart(
        (float(p.min()), float(p.max())), (float(low), float(high)), (f"predicted {e.target}", "true − predicted")
    )
    chart.points(
        p[rows],
        r[rows],
        0,
        [f"predicted {format_number(a)}, off by {format_number(b)}" for a, b in zip(p[rows], r[rows])],
    )
    edges = np.unique(np.quantile(p, np.linspace(0, 1, 13)))
    if len(edges) > 3:
        cell = np.clip(np.searchsorted(edges, p, side="right") - 1, 0, len(edges) - 2)
        used = [k for k in range(len(edges) - 1) if np.sum(cell == k) > 4]
        mids = [float(p[cell == k].mean()) for k in used]
        chart.line(mids, [float(r[cell == k].mean()) for k in used], "", 1, dots=True, hover=[
            f"around {format_number(m)}: mean error {format_number(float(r[cell == k].mean()))}" for m, k in zip(mids, used)
        ])  # fmt: skip
    chart.line([float(p.min()), float(p.max())], [0, 0], "", 5, dash=True)
    return chart.svg("Errors (line: their mean)")


def error_spread(e: Evidence) -> str:
    """The histogram of the errors."""
    r = e.y - e.prediction
    low, high = np.quantile(r, [0.005, 0.995])
    edges = np.linspace(low, high if high > low else low + 1, 41)
    counts, _ = np.histogram(r, edges)
    chart = Chart((low, high), (0, counts.max() * 1.05), ("true − predicted", "rows"))
    chart.bars(
        edges,
        counts,
        0,
        [f"{format_number(a)} to {format_number(b)}: {c} rows" for a, b, c in zip(edges, edges[1:], counts)],
    )
    half = np.quantile(np.abs(r), 0.5)
    return chart.svg(f"Spread of errors (half are within ±{format_number(float(half))})")


def error_curve(e: Evidence) -> str:
    """The distribution function of the absolute error, beside that of the best constant."""
    errors = {"the model": np.abs(e.y - e.prediction), "always the median": np.abs(e.y - np.median(e.target_values))}
    most = float(np.quantile(errors["always the median"], 0.95)) or 1.0
    grid = np.linspace(0, most, 81)
    chart = Chart((0, most), (0, 1.01), ("off by at most", "share of rows"))
    for colour, (name, size) in enumerate(errors.items()):
        shares = np.searchsorted(np.sort(size), grid, side="right") / len(size)
        hover = [
            f"{name}: {100 * s:.0f} % of rows are off by {format_number(x, 3)} at most" for x, s in zip(grid, shares)
        ]
        chart.line(grid, shares, name, colour, hover=hover)
    return chart.svg("Distribution of absolute errors")


def count_calibration(e: Evidence) -> str:
    """Mean counts, predicted and true, by tenths of the predictions."""
    p = e.prediction
    edges = np.unique(np.quantile(p, np.linspace(0, 1, 11)))
    cell = np.clip(np.searchsorted(edges, p, side="right") - 1, 0, max(len(edges) - 2, 0))
    predicted = [float(p[cell == k].mean()) for k in np.unique(cell)]
    observed = [float(e.y[cell == k].mean()) for k in np.unique(cell)]
    error = [float(e.y[cell == k].std() / np.sqrt(np.sum(cell == k))) for k in np.unique(cell)]
    top = max(*predicted, *(c + s for c, s in zip(observed, error)))
    chart = Chart((0, max(predicted)), (0, top), ("mean predicted count", "mean true count"))
    chart.line([0, top], [0, top], "", 5, dash=True)
    for s, c, d in zip(predicted, observed, error):
        chart.whisker(s, c - 2 * d, c + 2 * d)
    chart.line(predicted, observed, "", 0, dots=True, hover=[
        f"predicted {format_number(s)}, observed {format_number(c)} ± {format_number(d)}" for s, c, d in zip(predicted, observed, error)
    ])  # fmt: skip
    return chart.svg("Calibration by tenths of the predictions")


# --- what matters ---


def importance(e: Evidence) -> str:
    rows = [(i.name, i.value, i.low, i.high) for i in e.importances[:18]]
    return intervals(f"Rise of the {e.metric} when a column is shuffled (95 % interval)", rows, e.metric, 2)


def words(e: Evidence) -> str:
    rows = [(w.name, w.value, w.low, w.high) for w in e.words]
    title = f"Rise of the {_loss(e)} of a text when a word is removed from it (95 % interval)"
    return intervals(title, rows, "", 2)


def _loss(e: Evidence) -> str:
    return "squared error" if e.metric == "RMSE" else e.metric


def weights(e: Evidence) -> str:
    rows = [(c.name, c.value, c.low, c.high) for c in e.coefficients]
    unit = {"binary": f"log odds of “{e.classes[-1]}”" if e.classes else "", "count": f"log of the mean {e.target}"}
    what = unit.get(e.task, f"standard deviations of {e.target}")
    sure = "; 95 % intervals" if np.all(np.isfinite([c.low for c in e.coefficients])) else ""
    return intervals(f"Weights, in {what} (numbers scaled to unit spread{sure})", rows, "", 0)


def partial(e: Evidence, p: Partial) -> str:
    """The mean prediction against one column."""
    names = e.outputs or [""]
    shown = shown_classes(e) if e.outputs else [0]
    band = len(shown) == 1
    low = float(p.low.min() if band else p.means[:, shown].min())
    high = float(p.high.max() if band else p.means[:, shown].max())
    low, high = low - 0.04 * (high - low), high + 0.04 * (high - low)  # margins, so that no mark is on the axis
    what = (
        f"probability of {e.classes[1]}" if e.task == "binary" else "probability" if e.classes else f"mean {e.target}"
    )
    if p.kind == "category":
        chart = Chart((-0.5, len(p.places) - 0.5), (low, high), (p.column, what), names=[str(v) for v in p.places])
        places: list[float] = list(range(len(p.places)))
        words = [str(v) for v in p.places]
    else:
        chart = Chart((p.places[0], p.places[-1]), (low, high), (p.column, what))
        places = p.places
        words = [format_number(v) for v in p.places]
        if p.kind == "date":
            words = [str(datetime.datetime.fromtimestamp(v / 1e6, datetime.UTC).date()) for v in p.places]
            chart = Chart((0, len(places) - 1), (low, high), (p.column, what), names=[])
            places = list(range(len(words)))
            some = np.unique(np.linspace(0, len(words) - 1, 5).astype(int))
            chart.names = [words[k] if k in some else "" for k in range(len(words))]
    for colour, k in enumerate(shown):
        hover = [f"{w}: {format_number(float(v))}" for w, v in zip(words, p.means[:, k])]
        if band and p.kind != "category":
            chart.band(places, p.low[:, 0], p.high[:, 0], 0)
        if p.kind == "category":
            for x, a, b in zip(places, p.low[:, k], p.high[:, k]) if band else ():
                chart.whisker(x, a, b)
            chart.points(places, p.means[:, k], colour, hover, 5)
            if names[k]:
                chart.legend.append((names[k], colour))
        else:
            chart.line(places, p.means[:, k], names[k], colour, dots=True, hover=hover)
    return chart.svg(p.column)
