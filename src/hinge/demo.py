"""The demo: real data, several learning problems, one certificate each, and a page of pictures.

Run as ``python -m hinge.demo [folder]``, or ``make demo``.
"""

from __future__ import annotations

import base64
import html
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import hinge as hg

TEST_SHARE = 0.25


@dataclass(frozen=True)
class Row:
    """One fitted learner."""

    data: str
    learner: Any
    baseline: float
    score: float

    @property
    def what(self) -> str:
        return (
            f"{type(self.learner.loss).__name__} + {type(self.learner.penalty).__name__}({self.learner.penalty.lam:g})"
        )


def learners(data: str) -> list[Any]:
    """What to fit: the same call with other losses and penalties."""
    problems: list[tuple[hg.Loss, hg.Penalty]]
    if data == "heart":
        problems = [(loss, hg.L2(0.01)) for loss in (hg.Logistic(), hg.SquaredHinge(), hg.Exponential())]
        problems.append((hg.Logistic(), hg.L1(0.02)))
    else:
        problems = [(loss, hg.L2(0.01)) for loss in (hg.Squared(), hg.Huber(1.35), hg.LogCosh(), hg.Gamma())]
        problems.append((hg.Squared(), hg.L1(0.02)))
    return [hg.Learner(loss=loss, penalty=penalty, tol=1e-8, history=True) for loss, penalty in problems]


def fit_all(data: str) -> tuple[list[Row], tuple[str, ...]]:
    """Fit every learner on three quarters of a data set and score it on the rest."""
    dataset = hg.load_dataset(data)
    order = np.random.default_rng(0).permutation(len(dataset.y))
    cut = int(TEST_SHARE * len(order))
    test, train = order[:cut], order[cut:]
    X = (dataset.X - dataset.X[train].mean(axis=0)) / dataset.X[train].std(axis=0)
    y = dataset.y if data == "heart" else dataset.y / 10_000  # dollars by the ten thousand
    if data == "heart":
        baseline = float(max(np.mean(y[test]), 1 - np.mean(y[test])))
    else:
        baseline = 0.0  # R² of the mean
    rows = []
    for learner in learners(data):
        learner.fit(X[train], y[train])
        rows.append(Row(data, learner, baseline, learner.score(X[test], y[test])))
    return rows, dataset.features


def as_table(rows: list[Row]) -> list[list[str]]:
    """Header and one line per learner."""
    lines = [["data", "problem", "objective", "gap", "solver", "iterations", "ms", "test score", "(baseline)"]]
    for row in rows:
        c = row.learner.certificate_
        lines.append(
            [
                row.data, row.what, f"{c.primal:.8f}", f"{c.gap:.1e}", c.solver, str(c.iterations),
                f"{1e3 * c.seconds:.2f}", f"{row.score:.3f}", f"{row.baseline:.3f}",
            ]
        )  # fmt: skip
    return lines


def print_table(lines: list[list[str]]) -> None:
    widths = [max(len(line[j]) for line in lines) for j in range(len(lines[0]))]
    for i, line in enumerate(lines):
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
        if i == 0:
            print("  ".join("-" * width for width in widths))


def draw(rows: list[Row], features: dict[str, tuple[str, ...]], path: Path) -> None:
    """Losses, gap against time, and coefficients, in one picture."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 9), layout="constrained")
    (losses, gaps), (heart, insurance) = figure.subplots(2, 2)

    margin = np.linspace(-2.5, 2.5, 401)
    ones = np.ones_like(margin)
    for loss in (hg.ZeroOne(), hg.Hinge(), hg.SquaredHinge(), hg.Logistic(1 / np.log(2)), hg.Exponential()):
        losses.plot(margin, loss.value(ones, margin), label=type(loss).__name__, lw=3 if loss == hg.ZeroOne() else 1.5)
    losses.set(ylim=(-0.1, 5), xlabel="margin y·f(x)", ylabel="loss", title="Surrogates bound the 0-1 loss")
    losses.legend(frameon=False)

    for row in rows:
        c, history = row.learner.certificate_, row.learner.history_
        above = [max(record.objective - c.dual, 1e-17) for record in history]
        gaps.semilogy([1e3 * record.seconds for record in history], above, "o-", ms=3, label=f"{row.data}: {row.what}")
    gaps.set(xlabel="milliseconds", ylabel="objective − proved lower bound", title="How far from the optimum, and when")
    gaps.legend(frameon=False, fontsize=7)

    for axes, name in ((heart, "heart"), (insurance, "insurance")):
        chosen = [row for row in rows if row.data == name]
        names = features[name]
        width = 0.8 / len(chosen)
        for k, row in enumerate(chosen):
            places = np.arange(len(names)) + (k - (len(chosen) - 1) / 2) * width
            axes.barh(places, row.learner.coef_, height=width, label=row.what)
        axes.set_yticks(range(len(names)), names, fontsize=7)
        axes.axvline(0, color="black", lw=0.5)
        axes.set(title=f"{name}: weights (features scaled to unit variance)")
        axes.legend(frameon=False, fontsize=7)
        axes.invert_yaxis()
    figure.savefig(path, dpi=110)


def write_report(lines: list[list[str]], rows: list[Row], picture: Path, path: Path) -> None:
    """One page that needs nothing else."""
    cells = [
        "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in line) + "</tr>"
        for tag, line in zip(["th"] + ["td"] * len(rows), lines)
    ]
    proofs = [
        f"<li><b>{row.data}, {html.escape(row.what)}.</b> {html.escape(row.learner.certificate_.explain())}</li>"
        for row in rows
    ]
    image = base64.b64encode(picture.read_bytes()).decode()
    path.write_text(
        f"""<!doctype html><meta charset="utf-8"><title>hinge demo</title>
<style>body{{font:15px/1.5 system-ui;max-width:70rem;margin:2rem auto;padding:0 1rem}}
table{{border-collapse:collapse}}td,th{{padding:.2rem .7rem;text-align:left;border-bottom:1px solid #ddd}}
img{{max-width:100%}}</style>
<h1>hinge: the problem, the solver, the proof</h1>
<p>Each line is one learning problem: a loss, a penalty, linear functions. A certificate, computed by code no solver
owns, says how far the objective is from the optimum.</p>
<table>{"".join(cells)}</table><h2>Pictures</h2><img alt="losses, gaps, weights" src="data:image/png;base64,{image}">
<h2>What the certificates say</h2><ul>{"".join(proofs)}</ul>
""",
        encoding="utf-8",
    )


def main(folder: str = "demo_output") -> None:
    """Fit, print, draw."""
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    features: dict[str, tuple[str, ...]] = {}
    for data in ("heart", "insurance"):
        fitted, features[data] = fit_all(data)
        rows += fitted
    lines = as_table(rows)
    print_table(lines)
    print()
    print(rows[0].learner.certificate_.explain())
    model = out / "heart.hinge"
    hg.save(rows[0].learner, model)
    draw(rows, features, out / "picture.png")
    write_report(lines, rows, out / "picture.png", out / "report.html")
    print(f"\nThe model is in {model}; the report is {out / 'report.html'}; the picture is {out / 'picture.png'}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
