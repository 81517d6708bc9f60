"""The workflow files: their commands are targets of the Makefile, and releases are published without passwords."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[1].split())


def test_every_phony_target_is_defined():
    for target in TARGETS:
        assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE), target


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_run_targets_that_exist(path):
    for line in re.findall(r"\bmake ((?:[a-z-]+ ?)+)", re.sub(r"#.*", "", path.read_text())):
        assert set(line.split()) <= TARGETS, line


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_have_the_least_rights(path):
    text = path.read_text()
    assert re.search(r"^permissions:\n  contents: read$", text, re.MULTILINE)
    assert "secrets." not in text
    assert text.count("persist-credentials: false") == text.count("actions/checkout@")


def test_a_release_is_published_with_attestations_by_a_trusted_workflow():
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    assert "attestations: true" in text
    assert "password" not in re.sub(r"#.*", "", text)
    assert text.count("id-token: write") == 1


def test_the_demo_installs_no_tools_of_the_documentation():
    """`make demo` is the first thing anybody runs."""
    rules = dict(re.findall(r"^([\w$().-]+|\$\(VENV\)/\.\w+): ?(.*)$", MAKEFILE, re.MULTILINE))
    needed, found = ["demo"], set()
    while needed:
        name = needed.pop()
        found.add(name)
        needed += [part for part in rules.get(name, "").split() if part in rules and part not in found]
    assert "build" in found
    assert not found & {"$(VENV)/.docs", "$(VENV)/.installed", "$(VENV)/.bench", "docs", "ready"}
