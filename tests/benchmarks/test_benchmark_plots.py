"""The figures of the benchmarks: read from the tables of the pages, and from a file of results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import plots

PAGE = """
| task | hinge s | best peer s | which | ratio |
|---|---|---|---|---|
| `Lasso`, small | 0.5 | 2.0 | skglm | 4.0× |
| large | 3 | over 16.5 ◦ | scikit-learn | over 5× |
| alone | 1 | – | | |

| rows | 10k |
|---|---|
| `Ridge` | 0.0035 |
"""


def test_tables_of_a_page_become_bars():
    assert plots.of_page(PAGE) == [
        plots.Bar("Lasso, small", 4.0, "skglm"),
        plots.Bar("large", 5.5, "scikit-learn", bound=True),
    ]


@pytest.mark.parametrize("page", ["linear", "glm", "kernels", "trees", "networks", "generative", "bayes"])
def test_the_ratios_of_the_pages_are_those_of_their_seconds(page):
    """The printed ratio agrees with the two columns of seconds to its last digit."""
    text = (Path(__file__).parents[2] / "docs" / f"{page}.md").read_text(encoding="utf-8")
    printed = [line.split("|")[5] for body in plots.TABLE.findall(text) for line in body.splitlines()]
    bars = plots.of_page(text)
    assert len(bars) == len(printed) > 0
    for bar, cell in zip(bars, printed):
        value = cell.strip().removeprefix("over ").removesuffix("×")
        if not bar.bound:
            assert bar.ratio == pytest.approx(float(value), rel=0.05), bar.task


def test_results_are_drawn_with_machine_versions_and_date(tmp_path):
    import matplotlib.pyplot as plt

    record = {
        "taken": "2026-11-18T10:00:00+00:00",
        "machine": {"cpu": "a processor", "threads": 2},
        "versions": {"hinge": "0.2.0", "skglm": "0.5"},
        "tasks": [
            {"task": "lasso", "ratio": 2.5, "best_peer": "skglm"},
            {"task": "slow", "ratio": 0.5, "best_peer": "skglm"},
            {"task": "alone", "ratio": None, "best_peer": None},
        ],
    }
    bars, taken = plots.of_results(record)
    assert [bar.task for bar in bars] == ["lasso", "slow"]
    assert taken == "a processor, 2 threads, 2026-11-18\nhinge 0.2.0, skglm 0.5"
    figure = plots.draw(bars, "Fit", taken)
    ax = figure.axes[0]
    assert [text.get_text().strip() for text in ax.texts] == ["2.5× skglm", "0.5× skglm"]
    assert taken in ax.get_xlabel()
    assert ax.patches[0].get_facecolor() != ax.patches[1].get_facecolor()
    source, target = tmp_path / "results.json", tmp_path / "figure.png"
    source.write_text(json.dumps(record))
    assert command.main(["plot", str(source), str(target)]) == 0
    assert target.stat().st_size > 1000
    source.write_text(json.dumps(record | {"tasks": record["tasks"][2:]}))
    assert command.main(["plot", str(source), str(target)]) == 1
    plt.close("all")
