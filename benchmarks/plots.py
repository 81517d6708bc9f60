"""Figures of the harness: how much faster hinge is than the fastest peer, task by task.

    python -m benchmarks plot results.json figure.png

The results are those that ``--json`` wrote. The tables of the documentation, which were taken with the same harness, are drawn
by the page of benchmarks.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AHEAD, BEHIND = "#2f6fed", "#e4572e"
TABLE = re.compile(r"^\| task \| hinge s \| best peer s \|.*\n\|[-|]+\n((?:\|.*\n)+)", re.MULTILINE)


@dataclass(frozen=True)
class Bar:
    """One task: the seconds of the fastest peer over those of hinge, and who that peer is."""

    task: str
    ratio: float
    peer: str
    bound: bool = False  # the peer was stopped, so that the ratio is larger than this


def of_page(text: str) -> list[Bar]:
    """The tables "task, hinge s, best peer s, peer" of a Markdown page."""
    bars = []
    for body in TABLE.findall(text):
        for line in body.splitlines():
            task, ours, theirs, peer = (cell.strip() for cell in line.strip("|").split("|")[:4])
            found = re.search(r"[\d.]+", theirs)
            if found:
                bars.append(Bar(task.replace("`", ""), float(found[0]) / float(ours), peer, theirs.startswith("over")))
    return bars


def of_results(record: dict[str, Any]) -> tuple[list[Bar], str]:
    """The bars of a file of results, and what they were taken with."""
    bars = [
        Bar(task["task"], task["ratio"], task["best_peer"]) for task in record["tasks"] if task["ratio"] is not None
    ]
    machine = record["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    return bars, f"{machine['cpu']}, {machine['threads']} threads, {record['taken'][:10]}\n{versions}"


def draw(bars: Sequence[Bar], title: str, taken: str = "") -> Figure:
    """Ratios on a logarithmic axis, the first task at the top; the line at 1 is the fastest peer."""
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(8, 1.1 + 0.27 * len(bars)), layout="constrained")
    places = range(len(bars))
    ratios = [bar.ratio for bar in bars]
    colors = [AHEAD if ratio >= 1 else BEHIND for ratio in ratios]
    ax.barh(places, [ratio - 1 for ratio in ratios], left=1, color=colors, height=0.62)
    for place, bar in zip(places, bars):
        number = f"{bar.ratio:.1f}" if bar.ratio < 10 else f"{bar.ratio:.0f}"
        ax.text(max(bar.ratio, 1), place, f" {'>' if bar.bound else ''}{number}× {bar.peer}", va="center", fontsize=8)
    ax.set_xscale("log")
    ax.set_xlim(min(0.8, *ratios) * 0.9, max(ratios) * 6)
    ax.axvline(1, color="black", linewidth=0.8)
    ax.set_yticks(places, [bar.task for bar in bars], fontsize=8)
    ax.invert_yaxis()
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_title(title, loc="left", fontsize=10)
    ax.set_xlabel("seconds of the fastest peer / seconds of hinge" + (f"\n{taken}" if taken else ""), fontsize=8)
    return fig


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 2:
        print("python -m benchmarks plot results.json figure.png", file=sys.stderr)
        return 2
    bars, taken = of_results(json.loads(Path(arguments[0]).read_text()))
    if not bars:
        print(f"{arguments[0]} has no task that hinge and a peer have finished", file=sys.stderr)
        return 1
    draw(bars, "Fit, to the same quality", taken).savefig(arguments[1], dpi=120)
    return 0
