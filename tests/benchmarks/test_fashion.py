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
    found = fashion.measure(row, library, 1, (X, y, X, y))
    assert found["accuracy"] > 0.5
    assert found["seconds"] > 0


def test_the_table_has_the_published_figures_in_the_papers_order():
    published = [row.published for row in fashion.TABLE]
    assert published == sorted(published, reverse=True)
    results = {row.name: {"hinge": {"accuracy": 0.5, "seconds": 1.25}} for row in fashion.TABLE[:2]}
    lines = list(fashion.markdown(results, ["hinge", "scikit-learn"]))
    assert lines[2] == "| SVC rbf C=10 | 0.897 | 0.500, 1.25 | – |"
    assert len(lines) == 4
