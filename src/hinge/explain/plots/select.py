"""Plots of model selection: scores against a parameter, and scores against the number of labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge.explain.plots.axes import axes_or_new


def plot_tuning(result: Any, parameter: str | None = None, ax: Any = None) -> Any:
    """Draw mean scores, with one standard error, against one parameter; each combination of the others is a line.

    Parameters
    ----------
    result : TuneResult
        From :func:`hinge.tune`.
    parameter : str, optional
        The horizontal axis; by default the number with most values.
    ax : matplotlib axes, optional
        Where to draw; new axes by default.

    Returns
    -------
    matplotlib axes
    """
    ax = axes_or_new(ax)
    names = sorted({name for c in result.candidates for name in c})
    if parameter is None:
        parameter = max(names, key=lambda n: len({c.get(n) for c in result.candidates if _is_number(c.get(n))}))
    if parameter not in names:
        raise ValueError(f"parameter must be one of {', '.join(map(repr, names))}; got {parameter!r}.")
    lines: dict[str, list[int]] = {}
    for k, candidate in enumerate(result.candidates):
        if _is_number(candidate.get(parameter)) and np.isfinite(result.mean[k]):
            label = ", ".join(f"{n}={_short(v)}" for n, v in candidate.items() if n != parameter)
            lines.setdefault(label, []).append(k)
    for label, members in lines.items():
        members = sorted(members, key=lambda k: result.candidates[k][parameter])
        x = np.array([result.candidates[k][parameter] for k in members], dtype=float)
        y, error = result.mean[members], np.nan_to_num(result.standard_error[members])
        line = ax.plot(x, y, marker=".", label=label or None)[0]
        ax.fill_between(x, y - error, y + error, color=line.get_color(), alpha=0.15, linewidth=0)
    values = np.array([c[parameter] for c in result.candidates if _is_number(c.get(parameter))], dtype=float)
    if values.min() > 0 and values.max() > 30 * values.min():
        ax.set_xscale("log")
    for k, text, style in ((result.best_index, "best", ":"), (result.index, "chosen", "-")):
        if _is_number(result.candidates[k].get(parameter)):
            ax.axvline(result.candidates[k][parameter], color="0.4", linestyle=style, linewidth=1, label=text)
    ax.set_xlabel(parameter)
    ax.set_ylabel("mean score over folds")
    ax.legend(frameon=False, fontsize="small")
    return ax


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def plot_labels(curves: Any, ax: Any = None) -> Any:
    """Draw scores against the number of labels, one line per strategy, with one standard error.

    Parameters
    ----------
    curves : LabelCurves
        From :func:`hinge.active.active_curves`.
    ax : matplotlib axes, optional
        Where to draw; new axes by default.

    Returns
    -------
    matplotlib axes
    """
    ax = axes_or_new(ax)
    for name, curve in curves.curves.items():
        style = {"color": "0.5", "linestyle": "--"} if name == "random" else {}
        line = ax.plot(curve.labels, curve.mean, label=name, **style)[0]
        error = curve.scores.std(axis=0) / np.sqrt(max(len(curve.scores) - 1, 1))
        ax.fill_between(
            curve.labels, curve.mean - error, curve.mean + error, color=line.get_color(), alpha=0.15, linewidth=0
        )
    ax.set_xlabel("labels")
    ax.set_ylabel(curves.metric)
    ax.legend(frameon=False)
    return ax
