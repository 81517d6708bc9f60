"""What a user who installs the library meets: names, versions, settings, the self-test, promises that are kept."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import hinge as hg
import hinge_learn
from hinge import selftest
from hinge.environment import DEPENDENCIES, versions

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_distribution_has_another_name_than_the_module():
    assert PROJECT["name"] == "hinge-learn"
    assert PROJECT["scripts"] == {"hinge": "hinge_learn:main"}


def test_the_version_is_written_once():
    assert "version" in PROJECT["dynamic"]
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited is not None
    assert cited[1] == hg.__version__
    assert re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1] == hg.__version__


def test_installing_the_library_brings_no_more_than_it_needs():
    names = {re.split(r"[>=\[]", requirement)[0] for requirement in PROJECT["dependencies"]}
    assert names == set(DEPENDENCIES)


@pytest.mark.parametrize("kind", ["package", "module", "broken", "rest", "none"])
def test_another_module_of_that_name_is_noticed(tmp_path, kind):
    """The command explains which module was found and how to remove it, instead of an import error."""
    if kind == "package":
        (tmp_path / "hinge").mkdir()
        (tmp_path / "hinge" / "__init__.py").write_text("")
    elif kind == "module":
        (tmp_path / "hinge.py").write_text("")
    elif kind == "broken":
        (tmp_path / "hinge.py").write_text("import a_package_that_is_not_there")
    elif kind == "rest":  # what uninstalling the other distribution leaves of this one
        (tmp_path / "hinge").mkdir()
        (tmp_path / "hinge" / "files.py").write_text("")
    (tmp_path / "hinge_learn").symlink_to(Path(hinge_learn.__file__).parent)
    code = "import sys; sys.path.insert(0, sys.argv[1]); sys.argv = ['hinge']; import runpy; runpy.run_module('hinge_learn', run_name='__main__')"
    answer = subprocess.run([sys.executable, "-S", "-c", code, str(tmp_path)], capture_output=True, text=True)
    assert answer.returncode == 1
    assert "pip install" in answer.stderr
    assert (str(tmp_path) in answer.stderr) == (kind != "none")
    assert ("no file __init__.py" in answer.stderr) == (kind == "rest")


def test_the_imported_hinge_is_recognised():
    assert hinge_learn.check() is None


def test_installed_after_the_other_distribution_this_one_works():
    """Its files replace those of the same name; a folder of the other one must not hide a module of this one."""
    modules = {path.stem for path in Path(hg.__file__).parent.glob("*.py")}
    assert not modules & {"config", "dbt", "frontends", "kernel", "stages"}


def test_versions_name_everything_a_report_needs(capsys):
    hg.show_versions()
    printed = capsys.readouterr().out
    for name in ("hinge", "python", "machine", "threads", *DEPENDENCIES):
        assert re.search(rf"^{name} +\S", printed, re.MULTILINE)
    assert versions()["hinge"].startswith(hg.__version__)
    assert "missing" not in versions().values()


@pytest.mark.parametrize("name", list(selftest.CHECKS))
def test_the_checks_of_the_self_test_pass(name):
    assert selftest.CHECKS[name]()


def test_the_self_test_counts_failures(monkeypatch, capsys):
    def wrong():
        selftest.require(np.isnan(1.0), "one is a number")

    monkeypatch.setattr(selftest, "CHECKS", {"good": lambda: "fine", "bad": wrong})
    assert selftest.main() == 1
    printed = capsys.readouterr().out
    assert re.search(r"^ok +good: fine", printed, re.MULTILINE)
    assert re.search(r"^FAILED +bad: AssertionError: one is a number", printed, re.MULTILINE)


def shown_in_notebooks():
    X, _, y = selftest.data(60)
    return {
        "certificate": hg.LogisticRegression().fit(X, y).certificate_,
        "profile": hg.profile({"a": list(X[:, 0]), "y": list(y)}, target="y"),
        "diagnosis": hg.diagnose(hg.Ridge(), X, X[:, 0], repeats=2),
        "search": hg.tune(hg.Ridge(), X, X[:, 0], {"alpha": [0.1, 1.0], "solver": ["auto", "cholesky"]}, refit=False),
    }


def test_the_display_setting_switches_between_html_and_text():
    for name, value in shown_in_notebooks().items():
        assert value._repr_html_().startswith("<"), name
        with hg.config_context(display="text"):
            assert value._repr_html_() is None, name


def test_a_certificate_escapes_what_it_shows():
    from dataclasses import replace

    judged = replace(hg.Ridge().fit([[0.0], [1.0], [2.0]], [0, 1, 3]).certificate_, solver="<b>", note="<i>")
    assert "<b>" not in judged._repr_html_()
    assert "<i>" not in judged._repr_html_()


def test_a_search_is_a_table_with_the_best_candidates_first():
    X, y, _ = selftest.data(60)
    found = hg.tune(
        hg.Lasso(), X, y, {"alpha": list(np.geomspace(1e-3, 1e2, 15)), "selection": ["cyclic"]}, refit=False
    )
    shown = found._repr_html_()
    scores = [float(score) for score in re.findall(r"&#x27;cyclic&#x27;</td><td>([-\d.]+)", shown)]
    assert len(scores) == 10 < len(found.candidates)
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == pytest.approx(found.mean.max(), rel=1e-5)


def test_the_progress_setting_is_the_default_of_tune(capsys):
    X, y, _ = selftest.data(60)
    with hg.config_context(progress=True):
        hg.tune(hg.Lasso(), X, y, {"alpha": [0.1, 0.2]})
    assert "tune" in capsys.readouterr().err
    hg.tune(hg.Lasso(), X, y, {"alpha": [0.1, 0.2]})
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("name", "value"), [("progress", "yes"), ("display", "latex")])
def test_unknown_settings_are_refused(name, value):
    before = hg.get_config()
    with pytest.raises(ValueError, match=name):
        hg.set_config(**{name: value})
    assert hg.get_config() == before


def test_experimental_names_are_public():
    text = (ROOT / "docs" / "promises.md").read_text()
    part = text[text.index("## Experimental") : text.index("## Supported")]
    for name in re.findall(r"`hg\.(\w+)`", part):
        assert name in hg.__all__


@pytest.mark.parametrize(
    "name",
    ["CODE_OF_CONDUCT.md", "SECURITY.md", "CONTRIBUTING.md", "CITATION.cff", ".github/PULL_REQUEST_TEMPLATE.md"],
)
def test_the_files_that_a_project_promises_exist(name):
    assert (ROOT / name).stat().st_size > 300
