"""The files of `make test-sklearn`: known reasons, documented differences, modules that exist."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from sklearn_suite import deselection

HERE = Path(deselection.__file__).parent
DOCS = (HERE.parents[1] / "docs" / "from_sklearn.md").read_text()


def test_every_line_has_a_known_reason():
    assert set(deselection.read().values()) == set(deselection.REASONS)


def test_every_difference_of_ours_is_documented():
    for line in deselection.PATH.read_text().splitlines():
        if line.startswith("ours "):
            assert line.split("docs/from_sklearn.md: ")[1] in DOCS, line


@pytest.mark.parametrize(
    "line",
    ["later a.py::test", "ours a.py::test", "wording a.py::test\nwording a.py::test"],
    ids=["reason", "link", "twice"],
)
def test_other_lines_are_refused(line, tmp_path):
    path = tmp_path / "deselected.txt"
    path.write_text(line + "\n")
    with pytest.raises(ValueError, match=r"deselected\.txt:"):
        deselection.read(path)


def test_modules_exist():
    names = [line for line in (HERE / "modules.txt").read_text().splitlines() if not line.startswith("#")]
    assert len(names) > 50
    assert all(importlib.util.find_spec(name.rpartition(".")[0]) for name in names)
    tests = {name.removeprefix("sklearn.").replace(".", "/") + ".py" for name in names}
    assert {test.split("::")[0] for test in deselection.read()} <= tests
