"""The benchmark of awkward shapes, without its timings."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks.shapes import SHAPES, Cell, data_for, line, pairs, parse, seconds, summary

import hinge as hg


def test_estimators_are_those_that_scikit_learn_has_too():
    found = pairs()
    assert len(found) > 50
    assert all(
        ours.__module__.startswith("hinge") and theirs.__module__.startswith("sklearn")
        for ours, theirs in found.values()
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "cls", [hg.Ridge, hg.LogisticRegression, hg.GammaRegressor, hg.MultinomialNB], ids=lambda c: c.__name__
)
def test_data_suit_the_estimator(cls, shape):
    data = data_for(cls, shape)
    if data is None:
        assert SHAPES[shape].targets > 1 or SHAPES[shape].classes > 2
        return
    X, y = data
    assert X.shape[0] == len(y)
    if cls is hg.LogisticRegression:
        assert len(np.unique(y)) == SHAPES[shape].classes
    if cls is hg.GammaRegressor:
        assert y.min() > 0
    if cls is hg.MultinomialNB:
        assert X.min() >= 0


def test_a_fit_is_timed_in_a_child_process():
    took, note = seconds(hg.Ridge, "tiny", 20.0)
    assert 0 <= took < math.inf
    assert note == ""


def test_what_fails_is_shown_and_not_counted():
    table = [
        Cell("A", "tiny", 0.4, 0.1), Cell("A", "wide", 0.1, 0.1), Cell("B", "tiny", 0.01, 0.5),
        Cell("B", "wide", math.nan, 0.1, "scikit-learn: ValueError"), Cell("C", "wide", 0.1, math.inf),
    ]  # fmt: skip
    text = summary(table)
    assert f"geometric mean {(4 * 1 * 0.02) ** (1 / 3):.2f}×" in text
    assert "2 slower than scikit-learn" in text
    assert "ValueError" in line(table[3])


def test_patterns_choose_estimators_and_shapes():
    options = parse(["--only", "Ridge*", "--shape", "tiny"])
    assert options.only == ["Ridge*"]
    assert options.shape == ["tiny"]
