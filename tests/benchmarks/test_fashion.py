"""The paper's table: every row can be made and measured in both libraries."""

from __future__ import annotations

import time

import numpy as np
import pytest

from benchmarks import fashion


@pytest.mark.parametrize("library", ["hinge", "scikit-learn"])
@pytest.mark.parametrize("row", fashion.TABLE, ids=lambda row: row.name)
def test_a_row_is_measured(row, library, rng):
    centres = 3 * np.eye(3, 8)
    y = np.arange(45) % 3
    X = (centres[y] + rng.normal(size=(45, 8))).astype(np.float32)
    if "boosting" in row.name or "forest" in row.name:
        row = fashion.Row(row.name, row.module, row.cls, row.published, row.options | {"n_estimators": 5})
    found = fashion.measure(row, library, 0, (X, y, X, y))
    assert found["accuracy"] > 0.5
    assert found["seconds"] > 0


def test_the_table_has_the_published_figures_in_the_papers_order():
    published = [row.published for row in fashion.TABLE]
    assert published == sorted(published, reverse=True)
    fits = {"0": {"accuracy": 0.4, "seconds": 1.25}, "1": {"accuracy": 0.6, "seconds": 1.25}}
    results = {row.name: {"hinge": fits} for row in fashion.TABLE[:2]}
    lines = list(fashion.markdown(results, ["hinge", "scikit-learn"]))
    assert lines[2] == "| SVC rbf C=10 | 0.897 | 0.500, 1.25 | – |"
    assert len(lines) == 4


def runs(path, *, seeds=2, rows=2, libraries=("hinge",), limit=np.inf, budget=np.inf, slow=(), settings=None):
    """The fits that a run does, where those of the rows ``slow`` take longer than the limit, and its outcome."""
    tried = []

    def fit(row, library, seed):
        tried.append((row.name, library, seed))
        return {"over": limit} if row.name in slow else {"accuracy": 0.5, "seconds": 1.0, "cpu": 1.0}

    notebook = fashion.Notebook(path, settings or {"threads": 1})
    outcome = fashion.run(fashion.TABLE[:rows], list(libraries), seeds, fit, notebook, limit, budget)
    return tried, outcome, notebook


def test_a_run_is_resumed_where_the_last_one_ended(tmp_path):
    """Fits in the file are not repeated; those that a budget left out are done by the next run."""
    path = tmp_path / "fits.json"
    tried, outcome, _ = runs(path, budget=0.0)
    assert tried == []
    assert not outcome.finished
    first, outcome, _ = runs(path, rows=1)
    second, outcome, _ = runs(path)
    assert outcome.finished
    assert first + second == [(row.name, "hinge", seed) for row in fashion.TABLE[:2] for seed in (0, 1)]
    with pytest.raises(SystemExit, match="other settings"):
        runs(path, settings={"threads": 2})


def test_a_fit_that_was_ended_is_tried_again_with_a_larger_limit_only(tmp_path):
    path, slow = tmp_path / "fits.json", fashion.TABLE[0].name
    tried, _, notebook = runs(path, rows=1, limit=10.0, slow=[slow])
    assert tried == [(slow, "hinge", 0)]  # no other seed of a row that takes too long
    assert list(fashion.markdown(notebook.fits, ["hinge"]))[2] == "| SVC rbf C=10 | 0.897 | > 10 s |"
    assert runs(path, rows=1, limit=5.0)[0] == []
    tried, _, notebook = runs(path, rows=1, limit=20.0)
    assert tried == [(slow, "hinge", 0), (slow, "hinge", 1)]
    assert "0.500, 1" in list(fashion.markdown(notebook.fits, ["hinge"]))[2]


def test_scikit_learn_intelex_runs_the_rows_it_has(tmp_path):
    tried, _, _ = runs(None, seeds=1, rows=13, libraries=["scikit-learn-intelex"])
    assert [name for name, _, _ in tried] == [row.name for row in fashion.TABLE if row.intelex]
    assert 0 < len(tried) < len(fashion.TABLE)


def stuck(row, library, seed, data):
    time.sleep(60)


def broken(row, library, seed, data):
    raise ValueError("no such penalty")


@pytest.mark.parametrize(("measure", "expected"), [(stuck, {"over": 0.2}), (broken, "ValueError: no such penalty")])
def test_a_process_that_takes_too_long_is_ended_and_errors_are_reported(measure, expected, monkeypatch):
    """In a forked process here, so that it inherits the stand-ins for the images and the fit."""
    few = np.zeros((2, 3), np.float32), np.zeros(2, np.int64)
    monkeypatch.setattr(fashion, "images", lambda part: few)
    monkeypatch.setattr(fashion, "measure", measure)
    monkeypatch.setattr(fashion, "START", "fork")
    assert fashion.limited(fashion.TABLE[0], "hinge", 0, None, 1, 0.2 if measure is stuck else np.inf) == expected
