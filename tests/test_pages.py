"""The README, the contributors' guide and the documentation run as printed, and the site has every page and no dead link."""

from __future__ import annotations

import inspect
import itertools
import os
import re
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest
from sklearn.utils.estimator_checks import check_estimator

import pages
import reference
from kit.browser import Chrome, browser, visit

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
DOCS = ROOT / "docs"


@pytest.fixture(autouse=True)
def no_windows(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")


def test_the_readme_has_five_examples_that_run():
    text = README.read_text()
    assert len(pages.blocks(text)) == 5
    assert text.index("make demo") < text.index("make test") < text.index("```python")
    printed = pages.run_page(text, "README.md")[1]
    assert "gap" in printed[0].text


@pytest.mark.parametrize("path", [path for path in pages.PAGES if pages.blocks(path.read_text())], ids=lambda p: p.name)
def test_the_blocks_of_a_page_run(path, tmp_path):
    text = path.read_text(encoding="utf-8")
    outputs = pages.run_page(text, str(path))[1]
    assert any(output.text or output.figures for output in outputs)
    shown = pages.with_outputs(text, outputs, tmp_path / "figures", path.stem)
    images = sum(len(output.figures) for output in outputs)
    assert len(list((tmp_path / "figures").glob("*.png"))) == images == shown.count("](figures/")


def test_the_estimator_of_the_guide_passes_scikit_learns_checks(monkeypatch):
    names, _ = pages.run_page((DOCS / "how_to_add.md").read_text(), "how_to_add.md")
    page = types.ModuleType("page")  # pickle looks for the class there
    vars(page).update(names)
    monkeypatch.setitem(sys.modules, "page", page)
    failed = [r for r in check_estimator(names["RobustRegressor"](), on_skip=None) if r["status"] == "failed"]
    assert not failed


def test_every_file_that_pages_mention_exists():
    for path in (README, *pages.PAGES):
        for target in re.findall(r"\]\(([\w/.]+\.md)[)#]", path.read_text()):
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


def test_every_page_is_in_one_table_of_contents():
    """Sphinx warns of pages in none; a page in two would have two places in the menus."""
    listed: list[str] = []
    for path in DOCS.glob("*.md"):
        for block in re.findall(r"```\{toctree\}\n(.*?)```", path.read_text(), re.DOTALL):
            listed += [line for line in block.splitlines() if line and not line.startswith(":")]
    assert sorted(listed) == sorted({path.stem for path in DOCS.glob("*.md")} - {"index"} | {"reference/index"})


def test_the_reference_shows_the_ranges_of_parameters():
    shown = reference.entry("Ridge")
    assert "``tol``" in shown
    assert "[0.0, inf)" in shown
    assert "Ranges" not in reference.entry("Huber")


def test_the_reference_has_every_public_name_once():
    import hinge as hg

    names = [name for name in hg.__all__ if name not in (*hg.NAMESPACES, "__version__")]
    names += [f"{space}.{name}" for space in hg.NAMESPACES for name in getattr(hg, space).__all__]
    assert sorted(name for page in reference.groups().values() for name in page) == sorted(names)


@pytest.mark.parametrize("name", [name for group in reference.groups().values() for name in group])
def test_docstrings_are_laid_out_for_readers(name):
    """Sections begin at the margin and no line ends in a stray backslash: editors and Sphinx read them alike."""
    import hinge as hg

    thing = hg
    for part in name.split("."):
        thing = getattr(thing, part)
    lines = (inspect.getdoc(thing) or "").splitlines()
    for heading, rule in itertools.pairwise(lines):
        if set(rule.strip()) == {"-"} and heading.strip() in reference.TERMS | {"Examples", "Notes"}:
            assert heading == heading.strip()
            assert rule == "-" * len(heading)
    assert not any(line.endswith("\\") for line in lines)


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The site without the output of blocks, which other tests run. Warnings (dead links, markup) are errors."""
    folder = tmp_path_factory.mktemp("site")
    shown = ["index", "getting_started", "tree_theory", "search", "reference/losses"]
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d", str(folder / "doctrees"), str(DOCS), str(folder / "html")]  # fmt: skip
    result = subprocess.run(command, env=os.environ | {"HINGE_DOCS_RUN": "0"}, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-4000:]
    assert all((folder / "html" / f"{name}.html").exists() for name in shown)
    return folder / "html"


def test_the_site_has_a_page_for_every_page(site):
    for path in DOCS.glob("*.md"):
        assert "</h1>" in (site / f"{path.stem}.html").read_text(encoding="utf-8")
    assert 'id="hinge.Ridge"' in (site / "reference" / "linear.html").read_text(encoding="utf-8")


def test_every_link_of_the_site_leads_somewhere(site):
    """Files and anchors, of every page."""
    anchors: dict[Path, set[str]] = {}
    for page in site.rglob("*.html"):
        anchors[page.resolve()] = set(re.findall(r'\bid="([^"]+)"', page.read_text(encoding="utf-8")))
    for page in anchors:
        for href in set(re.findall(r'<a [^>]*href="([^"]+)"', page.read_text(encoding="utf-8"))):
            if re.match(r"https?:|mailto:|javascript:", href):
                continue
            path, _, anchor = href.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.exists(), f"{page.name}: {href}"
            if anchor and anchor != "" and target in anchors:
                assert anchor in anchors[target], f"{page.name}: {href}"


def test_the_site_loads_nothing_from_elsewhere(site):
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.findall(r'(?:src|<link[^>]*href)="(?:https?:)?//[^"]*"', text), page.name


@pytest.mark.parametrize("name", ["index", "getting_started", "tree_theory", "reference/losses"])
def test_pages_of_the_site_in_chromium(site, name):
    if browser() is None:
        pytest.skip("no Chromium on this machine (apt-get install chromium)")
    for width in (1200, 390):
        seen = visit(site / f"{name}.html", width=width)
        assert [line for line in seen.console if not line.startswith("[PST]: ")] == []
        assert all(request.startswith("file:") for request in seen.requests)
        assert not seen.wide


def test_the_search_of_the_site_works_from_a_folder(site):
    program = browser()
    if program is None:
        pytest.skip("no Chromium on this machine (apt-get install chromium)")
    with Chrome(program) as chrome:
        chrome.ask("Page.navigate", url=f"{(site / 'search.html').as_uri()}?q=lasso")
        chrome.wait("Page.loadEventFired")
        links = "Array.from(document.querySelectorAll('#search-results a'), a => a.getAttribute('href')).join(' ')"
        end = time.monotonic() + 120.0
        while "from_glmnet.html" not in (found := chrome.value(links) or "") and time.monotonic() < end:
            time.sleep(0.2)
        assert "from_glmnet.html" in found
