"""docs/how_to_add.md in a copy of the package: every recipe touches few files, and its member keeps the contracts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from hinge._native import core

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "how_to_add.md").read_text(encoding="utf-8")
# A block, and the words before it that name its file (and, for a line, the table it goes into).
STEP = re.compile(
    r"(?:A new file,\s+`(?P<new>[\w/.]+)`|A line in `(?P<table>\w+)` of `(?P<old>[\w/.]+)`):\n\n```\w+\n(?P<block>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
# pytest of the copy: finders of editable installs would give the original.
RUN = """
import sys
sys.meta_path[:] = [f for f in sys.meta_path if "hinge" not in getattr(f, "known_source_files", ())]
import pytest
raise SystemExit(pytest.main(sys.argv[1:]))
"""


@dataclass
class Recipe:
    kind: str
    files: int  # how many it may touch
    member: str
    tests: list[str]
    least: int  # how many contract tests must have run

    def steps(self) -> list[re.Match[str]]:
        section = re.search(rf"^## Adding an? {self.kind}$(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL)
        assert section is not None
        return list(STEP.finditer(section[1]))


RECIPES = [
    Recipe("loss", 3, "PseudoHuber", ["tests/contracts/test_losses.py", "tests/contracts/test_proofs.py"], 12),
    Recipe("penalty", 3, "Cubic", ["tests/contracts/test_penalties.py"], 7),
    Recipe("kernel", 2, "ArcCosine", ["tests/contracts/test_kernel_laws.py"], 8),
    Recipe("estimator", 2, "RobustRegressor", ["tests/test_estimators.py", "tests/contracts/test_parameters.py"], 60),
]


def make_copy(place: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(ROOT / "src" / "hinge", place / "src" / "hinge", ignore=ignored)
    compiled = Path(core.__file__)
    (place / "src" / "hinge" / compiled.name).symlink_to(compiled)
    (place / "tests").mkdir()
    for part in ("conftest.py", "zoo.py", "test_estimators.py", "kit", "contracts"):
        copy = shutil.copytree if (ROOT / "tests" / part).is_dir() else shutil.copy
        copy(ROOT / "tests" / part, place / "tests" / part)
    shutil.copy(ROOT / "pyproject.toml", place)


def apply(step: re.Match[str], place: Path) -> str:
    """Write a step's file, or its line into a table; returns the file."""
    if step["new"]:
        assert not (place / step["new"]).exists()
        (place / step["new"]).write_text(step["block"], encoding="utf-8")
        return step["new"]
    lines = (place / step["old"]).read_text(encoding="utf-8").splitlines(keepends=True)
    named = next(i for i, line in enumerate(lines) if re.match(rf"(def )?{step['table']}\b", line))
    opening = next(i for i in range(named, len(lines)) if lines[i].rstrip().endswith(("{", "[")))
    lines.insert(opening + 1, step["block"])
    (place / step["old"]).write_text("".join(lines), encoding="utf-8")
    return step["old"]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.kind)
def test_a_member_added_by_the_page_keeps_the_contracts(recipe, tmp_path):
    make_copy(tmp_path)
    touched = {apply(step, tmp_path) for step in recipe.steps()}
    assert len(touched) == recipe.files
    tests = [test for test in recipe.tests if (tmp_path / test).exists()]
    assert tests == recipe.tests
    done = subprocess.run(
        [sys.executable, "-c", RUN, "-q", "-p", "no:cacheprovider", "-m", "not slow", "-k", f"{recipe.member} or complete", *tests],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": f"{tmp_path / 'src'}{os.pathsep}{tmp_path / 'tests'}"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= recipe.least
