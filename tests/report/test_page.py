"""The report in a real browser, and on its own."""

from __future__ import annotations

import re

import numpy as np
import pytest

from hinge.explain.diagnosis.findings import CODES
from hinge.report.causes import CAUSES
from hinge.report.charts import Chart, intervals, log_ticks, matrix, ticks
from hinge.tables.number_formats import format_number
from kit.browser import visit

TASKS = ["binary", "multiclass", "real", "count"]


@pytest.mark.parametrize("task", TASKS)
def test_the_report_is_complete_in_itself(models, task):
    page = (models[task][1] / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)\s*=\s*["'](https?:)?//""", page)
    assert not re.search(r"@import|url\(|<link(?! rel=\"icon\" href=\"data:,\")|fetch\(|XMLHttp", page)
    for part in (
        "The problem",
        "The data",
        "The models",
        "How good it is",
        "What matters",
        "The proof",
        "Reproduce it",
    ):
        assert f">{part}</h2>" in page
    for chart in ("Learning curve", "when a column is shuffled", "Distance from the optimum"):
        assert chart in page
    assert {"binary": "ROC curve", "multiclass": "Confusion matrix", "real": "Predicted and true",
            "count": "Calibration by tenths"}[task] in page  # fmt: skip
    assert "nan" not in re.sub(r"[a-z]*nan[a-z]+|[a-z]+nan", "", page.lower())


def test_the_browser_reports_errors_of_a_page(tmp_path):
    page = tmp_path / "bad.html"
    page.write_text(
        '<p id="tip"></p><img src="file:///not/there.png"><div style="width:3000px">wide</div>'
        "<p id='here' onmousemove='document.getElementById(\"tip\").innerText=\"felt\"'>here</p>"
        "<script>console.log('said'); undefined_function()</script>"
    )
    seen = visit(page, hover="#here")
    assert "said" in seen.console
    assert any("undefined_function is not defined" in line for line in seen.console)
    assert seen.requests == [page.as_uri(), "file:///not/there.png"]
    assert seen.tip == "felt"
    assert seen.wide


@pytest.mark.parametrize("task", TASKS)
def test_the_report_in_chromium(models, task, tmp_path):
    report = models[task][1] / "report.html"
    wide = visit(report, tmp_path / "wide.png", hover="rect[data-t]")
    assert wide.console == []
    assert wide.requests == [report.resolve().as_uri()]  # the page itself, and nothing else
    assert wide.tip
    assert not wide.wide
    assert (tmp_path / "wide.png").stat().st_size > 50_000
    narrow = visit(report, tmp_path / "narrow.png", width=390, height=800)
    assert narrow.console == []
    assert not narrow.wide  # nothing sticks out on a phone


def test_a_class_has_one_colour_in_all_charts(models):
    page = (models["multiclass"][1] / "report.html").read_text(encoding="utf-8")
    keys = re.findall(r'class="key f(\d)"></i>(low|middle|high)\b', page)
    assert len(keys) >= 9  # ROC, precision and recall, and columns
    assert len(set(keys)) == 3


def test_turned_names_of_a_matrix_stay_clear_of_its_title():
    names = [f"a long name {k}" for k in range(6)]
    page = matrix("t", np.eye(6, dtype=int), names)
    baseline = min(float(y) for y in re.findall(r'y="([\d.]+)" transform="rotate', page))
    assert baseline - len(names[0]) * 7 * np.sin(np.radians(35)) > 14  # the title stands at 14


def test_findings_are_explained_on_the_page(models):
    assert set(CAUSES) == set(CODES)
    for task in TASKS:
        page = (models[task][1] / "report.html").read_text(encoding="utf-8")
        linked = set(re.findall(r'class="code" href="#(\w+)"', page))
        assert linked <= set(re.findall(r'<dt id="(\w+)"', page))
        assert "What was measured" in page
        assert "is due to the solver" in page
        assert re.search(r"Learning curve: R\(n\) = .* n<sup>−", page)


def test_hostile_names_stay_text(tmp_path, hinge):
    rng = np.random.default_rng(0)
    rows = ['<script>alert(1)</script>,"a&b\'",y']
    rows += [
        f"{rng.normal():.3f},{rng.choice(['<b>x</b>', '</svg>'])},{rng.choice(['<i>0</i>', '1'])}" for _ in range(120)
    ]
    data = tmp_path / "h.csv"
    data.write_text("\n".join(rows))
    code, _, err = hinge("fit", data, "-t", "y", "-o", tmp_path / "o", "--models", "linear", "--time", "600")
    assert code == 0, err
    page = (tmp_path / "o" / "report.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "<b>x</b>" not in page
    seen = visit(tmp_path / "o" / "report.html")
    assert seen.console == []


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.12345, "0.123"), (1234567.0, "1\u202f234\u202f567"), (1.5e9, "1.5·10⁹"), (2e-7, "2·10⁻⁷"), (-3.0, "-3"),
     (float("nan"), "–"), (100.0, "100"), (999.6, "1000")],
)  # fmt: skip
def test_numbers_are_rounded_for_readers(value, text):
    assert format_number(value) == text


def test_ticks_are_round_and_inside(rng):
    for _ in range(200):
        low = rng.normal() * 10.0 ** rng.integers(-5, 6)
        high = low + abs(rng.normal()) * 10.0 ** rng.integers(-5, 6) + 1e-9 * max(1, abs(low))
        marks = ticks(low, high)
        span = high - low
        assert all(low - 1e-6 * span <= m <= high + 1e-6 * span for m in marks)
        assert 2 <= len(marks) <= 12
    assert log_ticks(0.5, 2000) == [1, 10, 100, 1000]
    assert log_ticks(40, 900) == [50, 100, 200, 500]


def test_charts_map_their_ranges_to_their_corners():
    chart = Chart((0, 10), (1, 100), ("x", "y"), log="y")
    assert chart.at_x(0) < chart.at_x(10)
    assert chart.at_y(1) > chart.at_y(100)
    assert chart.at_y(10) == pytest.approx((chart.at_y(1) + chart.at_y(100)) / 2)
    chart.line([0, 10], [1, 100], "a<b", 0, dots=True)
    assert "a&lt;b" in chart.svg("t<1")


def test_odd_values_do_not_break_a_chart():
    assert "NaN" not in intervals("t", [("a", 0.0, np.nan, np.nan)], "")
    assert "nan" not in matrix("t", np.zeros((2, 2), dtype=int), ["a", "b"])
    Chart((1, 1), (2, 2), ("x", "y")).svg("flat")
