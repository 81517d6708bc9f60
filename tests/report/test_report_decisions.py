"""Figures by class, thresholds and their costs, lift, headlines, single rows: each against its definition."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from sklearn import metrics

import hinge as hg
from hinge.learning.rows import column_pictures, shapley_values
from hinge.report.decisions import class_table, lift, steps, threshold_chooser
from hinge.report.document import document
from hinge.report.headline import headline
from hinge.tables.notes import Note

pl = pytest.importorskip("polars", reason="tables need the [cli] extra")


@pytest.fixture(scope="module")
def learned():
    rng = np.random.default_rng(0)
    n = 400
    x, c = rng.normal(size=n), rng.choice(["red", "blue"], n)
    sick = x + (c == "red") + 0.7 * rng.normal(size=n) > 0.8
    frame = pl.DataFrame({"x": x, "colour": c, "noise": rng.normal(size=n), "state": np.where(sick, "sick", "well")})
    return hg.learn(frame, "state", models="linear", seconds=600.0, positive="sick")


@pytest.fixture
def e(learned):
    return learned.evidence


def test_thresholds_count_hits_and_false_alarms(e):
    cuts, hits, alarms = steps(e)
    hit, p = e.y == e.positive, e.prediction[:, e.positive]
    assert e.positive == 0
    assert np.all(np.diff(cuts) < 0)
    for k in (0, len(cuts) // 2, len(cuts) - 1):
        assert hits[k] == np.sum(hit & (p >= cuts[k]))
        assert alarms[k] == np.sum(~hit & (p >= cuts[k]))
    assert (hits[-1], alarms[-1]) == (hit.sum(), (~hit).sum())


def test_the_page_has_what_the_chooser_needs(e):
    page = document(e)
    data = json.loads(re.search(r"id='cuts'>(.*?)</script>", page).group(1))
    assert data["positive"] == int(np.sum(e.y == 0))
    assert data["rows"] == len(e.y)
    assert "Which threshold?" in page
    assert threshold_chooser(e) in page
    # A row of the table of thresholds: flagged, precision, recall, false alarms, misses.
    hit, flagged = e.y == 0, e.prediction[:, 0] >= 0.3
    cells = [
        f"{100 * flagged.mean():.1f} %", f"{100 * hit[flagged].mean():.1f} %", f"{100 * flagged[hit].mean():.1f} %",
        str(int(np.sum(flagged & ~hit))), str(int(np.sum(hit & ~flagged))),
    ]  # fmt: skip
    assert re.sub("<[^>]*>", " ", page).split().count("0.3") >= 1
    assert "".join(f"<td class='num'>{cell}</td>" for cell in ["0.3", *cells]) in page


def test_figures_by_class_are_scikit_learns(e):
    precision, recall, f1, rows = metrics.precision_recall_fscore_support(e.y, np.argmax(e.prediction, axis=1))
    text = class_table(e)
    for k in (0, 1):
        line = next(part for part in text.split("<tr>") if f">{e.classes[k]}<" in part)
        assert f"<td class='num'>{rows[k]}</td>" in line
        assert f">{precision[k]:.2f} <" in line
        assert f">{recall[k]:.2f} <" in line
        assert f">{f1[k]:.3f}<" in line


def test_lift_of_the_top_tenth(e):
    order = np.argsort(-e.prediction[:, 0])[: len(e.y) // 10]
    share = np.sum(e.y[order] == 0) / np.sum(e.y == 0)
    assert f"the top tenth of rows holds {100 * share:.0f} %" in lift(e)


def test_the_headline_compares_with_the_commonest_class(e):
    right = 100 * np.mean(np.argmax(e.prediction, axis=1) == e.y)
    always = 100 * max(np.mean(e.y == 0), np.mean(e.y == 1))
    sentences = headline(e)
    assert (
        f"about {right:.0f} get the right “state”; always answering “well” would be right for {always:.0f}."
        in sentences[0]
    )
    assert "“x” and “colour”" in sentences[1]
    notes, e.notes = e.notes, [*e.notes, Note("D15", "", "")]
    assert headline(e)[0].startswith("The columns do not predict")
    e.notes = [*notes, Note("D20", "x", "")]
    assert "Read the notes on “x”" in headline(e)[-1]
    e.notes = notes


def test_the_worst_rows_are_those_with_the_greatest_losses(e, learned):
    loss = learned.search.measure.pointwise(e.y, e.prediction)
    numbers = learned.profile.rows
    assert [row.row for row in e.worst] == numbers[np.argsort(-loss, kind="stable")[:10]].tolist()
    first = int(np.argmax(loss))
    assert e.worst[0].truth == e.classes[e.y[first]]
    assert dict(e.worst[0].values)["colour"] == learned.profile.frame["colour"][first]
    assert "The rows with the largest losses" in document(e)


def test_shares_of_a_row_add_up_to_its_prediction(e):
    assert len(e.explained_rows) == 3
    for row in e.explained_rows:
        assert sum(share for _, _, share in row.shares) == pytest.approx(row.prediction - row.mean, abs=1e-9)
    assert e.explained_rows[0].prediction == pytest.approx(e.prediction[:, 0].min(), abs=0.02)


def test_shapley_values_of_a_linear_function(rng):
    frame = pl.DataFrame({name: rng.normal(size=300) for name in "abc"})
    w = np.array([2.0, -1.0, 0.0])
    shares, mean, value = shapley_values(lambda table: table.to_numpy() @ w, frame, 7, 0, orders=600)
    assert value == pytest.approx(frame.to_numpy()[7] @ w)
    assert shares.sum() == pytest.approx(value - mean)
    np.testing.assert_allclose(shares, w * (frame.to_numpy()[7] - frame.to_numpy().mean(axis=0)), atol=0.3)
    assert shares[2] == pytest.approx(0.0, abs=1e-12)


def test_pictures_of_columns(rng):
    x = np.append(rng.uniform(size=999), 1e9)  # one value far out does not flatten the rest
    frame = pl.DataFrame({"x": x, "c": ["a"] * 600 + ["b"] * 300 + [None] * 100})
    y = np.append(np.repeat([1.0, 2.0, 4.0], [600, 300, 100]), [])
    found = {p.name: p for p in column_pictures(frame, y, {"x": "number", "c": "category"}, ["c"], None)}
    assert found["c"].labels == ["a", "b", "(missing)"]
    assert found["c"].counts == [600, 300, 100]
    assert found["c"].means == [1.0, 2.0, 4.0]
    assert found["x"].edges[-1] < 2
    assert sum(found["x"].counts) >= 985
    shares = column_pictures(frame, np.repeat([1, 0], 500), {"c": "category"}, [], 1)
    assert next(p for p in shares if p.name == "c").means == pytest.approx([5 / 6, 0.0, 0.0])
