"""The README, the contributors' guide and the documentation run as printed."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest
from sklearn.utils.estimator_checks import check_estimator

import pages
import reference
from kit.browser import browser, visit

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"


@pytest.fixture(autouse=True)
def no_windows(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")


def test_the_readme_has_five_examples_that_run():
    text = README.read_text()
    assert len(pages.blocks(text)) == 5
    assert text.index("make demo") < text.index("make test") < text.index("```python")
    printed = pages.run_page(text, "README.md")[1]
    assert "gap" in printed[0]


@pytest.mark.parametrize("path", pages.PAGES, ids=lambda path: path.name)
def test_the_documentation_builds(path, tmp_path):
    text = pages.render(path)
    assert "</h1>" in text
    if browser():
        place = tmp_path / f"{path.stem}.html"
        place.write_text(text, encoding="utf-8")
        seen = visit(place, width=390)
        assert seen.console == []
        assert seen.requests == [place.as_uri()]
        assert not seen.wide


def test_the_estimator_of_the_guide_passes_scikit_learns_checks(monkeypatch):
    names, _ = pages.run_page((ROOT / "docs" / "how_to_add.md").read_text(), "how_to_add.md")
    page = types.ModuleType("page")  # pickle looks for the class there
    vars(page).update(names)
    monkeypatch.setitem(sys.modules, "page", page)
    failed = [r for r in check_estimator(names["RobustRegressor"](), on_skip=None) if r["status"] == "failed"]
    assert not failed


def test_every_file_that_pages_mention_exists():
    for path in (README, *pages.PAGES):
        for target in re.findall(r"\]\(([\w/]+\.md)\)", path.read_text()):
            assert (path.parent / target).exists() or (ROOT / target).exists(), f"{path.name} links to {target}"


def test_the_files_of_follow_a_fit_exist():
    """Each row of the table in CONTRIBUTING.md names files by their path, or by their name in the folder before it."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    table = text[text.index("### Follow a fit") : text.index("## Adding a loss")]
    most = {"Ridge": 8, "SVC": 10, "DecisionTree": 10, "hinge fit": 12}
    for row in (line for line in table.splitlines() if ".py`" in line):
        folder, files = ROOT, re.findall(r"`([\w/]+\.(?:py|[ch]pp))`", row)
        for name in files:
            place = ROOT / name if name.startswith("native/") else ROOT / "src" / "hinge" / name
            place = place if "/" in name else folder / name
            assert place.exists(), f"{name} in {row[:40]}"
            folder = place.parent
        assert len(files) <= next(count for call, count in most.items() if call in row)


def test_the_reference_shows_the_ranges_of_parameters():
    shown = reference.entry("Ridge")
    assert "<td><code>tol</code></td>" in shown
    assert "[0.0, inf)" in shown
    assert "Ranges" not in reference.entry("Huber")


def test_the_reference_has_every_public_name():
    import hinge as hg

    page = reference.reference()
    names = [name for name in hg.__all__ if name not in (*hg.NAMESPACES, "__version__")]
    names += [f"{space}.{name}" for space in hg.NAMESPACES for name in getattr(hg, space).__all__]
    for name in names:
        assert f'id="{name}"' in page


@pytest.mark.parametrize("stem", ["index", "getting_started", "reference"])
def test_the_pages_in_chromium(tmp_path, stem):
    place = tmp_path / f"{stem}.html"
    body = reference.reference() if stem == "reference" else None
    text = pages.frame(stem, "Reference", body) if body else pages.render(ROOT / "docs" / f"{stem}.md")
    place.write_text(text, encoding="utf-8")
    for width in (1200, 390):
        picture = None if stem == "reference" else tmp_path / "page.png"  # the reference is too long for a picture
        seen = visit(place, picture, width=width)
        assert seen.console == []
        assert seen.requests == [place.as_uri()]
        assert not seen.wide
