"""The paper's table: every row can be made and measured in both libraries."""

from __future__ import annotations

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


def test_a_run_is_resumed_where_the_last_one_ended(tmp_path, monkeypatch):
    """Fits in the file are not repeated; those that a budget left out are done by the next run."""
    tried = []

    def measured(row, library, seed, data):
        tried.append((row.name, library, seed))
        return {"accuracy": 0.5, "seconds": 1.0, "cpu": 1.0}

    monkeypatch.setattr(fashion, "measure", measured)
    settings, path = {"threads": 1}, tmp_path / "fits.json"
    rows = fashion.TABLE[:2]
    assert not fashion.run(rows, ["hinge"], 2, None, fashion.Notebook(path, settings), budget=0.0)
    assert tried == []
    assert fashion.run(rows[:1], ["hinge"], 2, None, fashion.Notebook(path, settings), budget=np.inf)
    assert fashion.run(rows, ["hinge"], 2, None, fashion.Notebook(path, settings), budget=np.inf)
    assert tried == [(row.name, "hinge", seed) for row in rows for seed in (0, 1)]
    with pytest.raises(SystemExit, match="other settings"):
        fashion.Notebook(path, {"threads": 2})
