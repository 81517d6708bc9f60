"""The examples in docstrings do what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import matplotlib
import pytest

import hinge

matplotlib.use("agg")
MODULES = [
    module.name
    for module in pkgutil.walk_packages(hinge.__path__, "hinge.")
    if not module.name.endswith(("__main__", "._core"))
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(name)
    results = doctest.testmod(module)
    assert results.failed == 0


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    found = [test for name in MODULES for test in finder.find(importlib.import_module(name)) if test.examples]
    assert len(found) > 100
