"""A report as one figure with six plots."""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge.explain.diagnosis.report import Learning, RiskReport
from hinge.explain.diagnosis.report_text import term_rows
from hinge.explain.plots.axes import new_figure
from hinge.problem.numerics import Z95


def draw_report(report: RiskReport, fig: Any = None) -> Any:
    """The parts of the risk, the learning curve, rivals, bias and variance, calibration or residuals, drift."""
    fig = new_figure(figsize=(13, 7)) if fig is None else fig
    axes = fig.subplots(2, 3).ravel()
    draw_terms(report, axes[0])
    if report.learning is not None:
        draw_learning(report.learning, axes[1], report.measure)
    draw_rivals(report, axes[2])
    draw_parts(report, axes[3])
    if report.reliability is not None:
        draw_reliability(report.reliability, axes[4])
    elif report.predictions[1].ndim == 1 and report.predictions[1].dtype.kind == "f":
        y, predicted = report.predictions
        axes[4].plot(predicted, y - predicted, ".", markersize=3, alpha=0.5)
        axes[4].axhline(0.0, color="black", linewidth=0.8)
        axes[4].set(xlabel="held-out prediction", ylabel="residual", title="Residuals on rows not seen")
    if report.drift is not None:
        worst = report.drift.columns[:10][::-1]
        axes[5].barh([c.name for c in worst], [c.statistic for c in worst])
        axes[5].set(xlabel="distance (KS, Cramér's V)", title=f"Drift: AUC {report.drift.auc:.2f}")
    for ax in axes:
        ax.set_visible(bool(ax.has_data()))
    fig.tight_layout()
    return fig


def draw_terms(report: RiskReport, ax: Any) -> None:
    """One bar per part of the held-out risk."""
    rows = list(term_rows(report))[::-1]
    ax.barh([name for name, *_ in rows], [value for _, value, *_ in rows])
    ax.set(xlabel=report.measure, title="Where the held-out risk comes from")


def draw_learning(learning: Learning, ax: Any, measure: str) -> None:
    """Training and held-out risk against the number of examples, and the law extrapolated to ten times as many."""
    n = learning.sizes
    for values, name in ((learning.train, "training"), (learning.held_out, "held out")):
        error = values.std(axis=1, ddof=1) / np.sqrt(values.shape[1]) if values.shape[1] > 1 else None
        ax.errorbar(n, values.mean(axis=1), None if error is None else Z95 * error, fmt="o-", capsize=2, label=name)
    further = np.geomspace(n[0], 10.0 * n[-1], 100)
    ax.plot(further, [learning.law(m) for m in further], "--", label="law")
    ax.axhline(learning.law.limit, color="grey", linewidth=0.8, label="limit")
    ax.set_xscale("log")
    ax.set(xlabel="training examples", ylabel=measure, title="Learning curve")
    ax.legend()


def draw_rivals(report: RiskReport, ax: Any) -> None:
    """Held-out risks of the model and its rivals."""
    rows = [("this model", report.held_out_risk), *((r.name, r.risk) for r in report.rivals)][::-1]
    ax.errorbar([e.value for _, e in rows], range(len(rows)), xerr=[Z95 * e.standard_error for _, e in rows], fmt="o")
    ax.set_yticks(range(len(rows)), [name for name, _ in rows])
    ax.set(xlabel=report.measure, title="The same folds, other classes")


def draw_parts(report: RiskReport, ax: Any) -> None:
    """Variance, and bias² with noise."""
    parts = report.bias_variance
    if parts is None:
        return
    values = (parts.variance, parts.bias2_plus_noise)
    ax.bar(["variance", "bias² + noise"], [v.value for v in values], yerr=[Z95 * v.standard_error for v in values])
    ax.set(ylabel=report.measure, title="Bias and variance (bootstrap)")


def draw_reliability(reliability: Any, ax: Any) -> None:
    """Observed frequencies against predicted probabilities."""
    ax.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
    ax.plot(reliability.predicted, reliability.observed, "o-")
    ax.set(xlabel="predicted probability", ylabel="observed frequency", title=f"Calibration: ECE {reliability.ece:.3f}")
