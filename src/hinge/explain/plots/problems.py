"""Plots of losses, penalties and solver runs. Matplotlib is imported when the first one is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hinge.explain.plots.axes import axes_or_new
from hinge.problem.losses import Loss
from hinge.problem.losses.base import Target
from hinge.problem.objective import make_objective
from hinge.problem.penalties import L1Ball, L2Ball, NoPenalty
from hinge.solvers.base import Record
from hinge.solvers.run import solve


def history_of(run: Any) -> tuple[Record, ...]:
    """The records of a fitted model, a result of ``solve``, a solution, or a sequence of records."""
    for path in (("history_",), ("solution", "history"), ("history",)):
        found = run
        for name in path:
            found = getattr(found, name, None)
        if isinstance(found, Sequence):
            run = found
            break
    if not isinstance(run, Sequence) or not all(isinstance(r, Record) for r in run):
        raise TypeError("plot_history needs a model or result that was made with history=True.")
    if not run:
        raise ValueError("The history is empty: fit with history=True to record one.")
    return tuple(run)


def plot_history(run: Any, *, against: str = "iteration", best: float | None = None, ax: Any = None) -> Any:
    """Draw the progress of a solver: the objective minus its lowest value, and the gap where it was computed.

    Parameters
    ----------
    run : fitted model, result of ``solve``, or sequence of records
        Made with ``history=True``.
    against : {"iteration", "seconds"}
        The horizontal axis.
    best : float, optional
        The optimum; by default the lowest objective of the history.
    ax : matplotlib axes, optional
        Where to draw; new axes by default.

    Returns
    -------
    matplotlib axes
    """
    if against not in ("iteration", "seconds"):
        raise ValueError(f"against must be 'iteration' or 'seconds', got {against!r}.")
    records = history_of(run)
    ax = axes_or_new(ax)
    x = [getattr(r, against) for r in records]
    value = np.array([r.objective for r in records])
    lowest = np.nanmin(value) if best is None else best
    excess = value - lowest
    ax.plot(x, np.where(excess > 0, excess, np.nan), label="objective − lowest")
    gap = np.array([r.gap for r in records])
    positive = np.isfinite(gap) & (gap > 0)
    if np.any(positive):
        ax.plot(np.array(x)[positive], gap[positive], "o-", label="relative gap")
    if np.any(excess > 0) or np.any(positive):
        ax.set_yscale("log")
    ax.set_xlabel(against)
    ax.legend()
    return ax


def plot_losses(losses: Sequence[Loss], *, limit: float = 3.0, ax: Any = None) -> Any:
    """Draw losses: against the margin m = ys if they are for two classes, against the residual r = y − s if not.

    Parameters
    ----------
    losses : sequence of Loss
        All of margins, or all of residuals; each is labelled by its expression.
    limit : float
        The picture goes from −limit to limit.
    ax : matplotlib axes, optional
        Where to draw; new axes by default.
    """
    ax = axes_or_new(ax)
    t = np.linspace(-limit, limit, 601)
    kinds = {loss.target is Target.SIGN for loss in losses}
    if len(kinds) > 1:
        raise ValueError("draw losses of margins and losses of residuals in pictures of their own.")
    for loss in losses:
        if loss.target is Target.SIGN:
            ax.plot(t, loss.value(np.ones_like(t), t), label=repr(loss))
        else:
            y = np.ones_like(t)  # a target that every regression loss allows
            ax.plot(t, loss.value(y, y - t), label=repr(loss))
    ax.set_xlabel("margin ys" if True in kinds else "residual y − s")
    ax.set_ylabel("loss")
    ax.legend()
    return ax


def plot_norm_contours(norms: Sequence[float] = (0.5, 1.0, 2.0, np.inf), *, radius: float = 1.0, ax: Any = None) -> Any:
    """Draw ‖w‖_q = radius in the plane for several q: the diamond is q = 1, the circle 2, the square infinity.

    Parameters
    ----------
    norms : sequence of float
        The exponents q > 0; below 1 the balls are not convex.
    radius : float
        The norm of the points that are drawn.
    ax : matplotlib axes, optional
        Where to draw; new axes by default.
    """
    ax = axes_or_new(ax)
    angle = np.linspace(0.0, 2.0 * np.pi, 1441)
    direction = np.array([np.cos(angle), np.sin(angle)])
    for q in norms:
        w = radius * direction / _norm(direction, q)
        ax.plot(*w, label=f"q = {q:g}")
    ax.set_aspect("equal")
    ax.set_xlabel("$w_1$")
    ax.set_ylabel("$w_2$")
    ax.legend()
    return ax


def _norm(w: np.ndarray, q: float) -> np.ndarray:
    size = np.abs(w)
    return size.max(axis=0) if np.isinf(q) else (size**q).sum(axis=0) ** (1.0 / q)


def plot_risk_contours(
    X: Any, y: Any, loss: Loss, *, norm: str = "l1", radius: float = 1.0, levels: int = 8, ax: Any = None
) -> Any:
    """Draw the contours of the risk over two weights and the ball that they touch: the diamond or the circle.

    The constrained optimum is where the lowest contour meets the ball; with the diamond that is often a corner, where
    one weight is zero. No bias is fitted.

    Parameters
    ----------
    X, y : arrays
        Examples with two columns, the targets coded as the loss wants them.
    loss : Loss
        What the risk is the mean of.
    norm : {"l1", "l2"}
        Whether the ball is the diamond or the circle.
    radius : float
        The radius of the ball.
    levels : int
        How many contours are drawn, besides the one that touches the ball.
    ax : matplotlib axes, optional
        Where to draw; new axes by default.

    Returns
    -------
    matplotlib axes
        With the unconstrained optimum (+) and the constrained one (•) marked.
    """
    if norm not in ("l1", "l2"):
        raise ValueError(f"norm must be 'l1' or 'l2', got {norm!r}.")
    objective = make_objective(X, y, loss, NoPenalty(), fit_intercept=False)
    if objective.d != 2:
        raise ValueError(f"X has {objective.d} columns; the picture is of two weights.")
    ax = axes_or_new(ax)
    free = solve(objective, tol=1e-8)
    bound = solve(objective.with_penalty((L1Ball if norm == "l1" else L2Ball)(radius)), tol=1e-8)
    reach = 1.3 * max(radius, float(np.max(np.abs(free.w))))
    grid = np.linspace(-reach, reach, 101)
    none = np.zeros(1)
    risk = np.array([[objective.risk(np.array([a, b]), none) for a in grid] for b in grid])
    touching = objective.risk(bound.w, none)
    marks = np.unique(np.append(np.quantile(risk, np.linspace(0.02, 0.8, levels)), touching))
    ax.contour(grid, grid, risk, levels=marks, linewidths=0.8)
    plot_norm_contours((1.0 if norm == "l1" else 2.0,), radius=radius, ax=ax)
    ax.plot(*free.w, "k+", markersize=10, label="least risk")
    ax.plot(*bound.w, "ko", label="least risk in the ball")
    ax.legend()
    return ax
