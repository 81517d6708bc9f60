"""The examples in docstrings give the results shown, and every parameter is described."""

from __future__ import annotations

import doctest
import enum
import importlib
import inspect
import pkgutil
import re
from operator import attrgetter

import matplotlib
import pytest

import docstrings
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


def is_called(thing):
    """True for public functions and classes; enumerations are not made by calling them."""
    return inspect.isroutine(thing) or (inspect.isclass(thing) and not issubclass(thing, enum.Enum))


NAMES = [name for name in docstrings.public_names() if is_called(attrgetter(name)(hinge))]


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_is_described(name):
    """By a sentence of its own or one that it shares, here or where the docstring points to."""
    found = docstrings.described(name)
    names = set(docstrings.parameters(attrgetter(name)(hinge)))
    assert [parameter for parameter in names if not found.get(parameter) or not found[parameter].text] == []
    assert not [
        entry.text for entry in found.values() if re.match(r"As (in|for) ", entry.text) and len(entry.text) < 40
    ]


@pytest.mark.parametrize("name", NAMES)
def test_no_docstring_describes_a_parameter_that_is_not_there(name):
    thing = attrgetter(name)(hinge)
    lines = inspect.cleandoc(thing.__doc__ or "").splitlines()
    assert set(docstrings.entries(lines, "Parameters")) <= set(docstrings.parameters(thing))


def test_pointers_are_followed_to_what_they_mean():
    """Through two steps: an extremely randomised forest to a forest, and that to a tree."""
    tree, forest = docstrings.described("DecisionTreeClassifier"), docstrings.described("ExtraTreesClassifier")
    assert forest["max_depth"].text.startswith(tree["max_depth"].text)
    assert forest["max_depth"].text.endswith("``bootstrap=False``.")
    assert forest["max_depth"].kind == tree["max_depth"].kind


def test_the_reference_has_an_entry_and_a_default_for_every_parameter():
    lines = inspect.cleandoc(hinge.NuSVR.__doc__).splitlines()
    text = "\n".join(docstrings.written_out("NuSVR", lines))
    for parameter, value in docstrings.parameters(hinge.NuSVR).items():
        assert re.search(rf"^{parameter} : .*default={re.escape(repr(value.default))}$", text, re.MULTILINE), parameter
    assert "As for" not in text[: text.index("Attributes\n")]
    assert re.search(r"^dual_coef_\n    As for :class:`SVC`.$", text, re.MULTILINE)
    assert text.count("Examples\n--------") == 1
