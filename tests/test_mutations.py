"""The mutation runner itself: every edit is small, at the place it names, and leaves a program."""

from __future__ import annotations

import ast
import textwrap

import pytest

import mutants
from known_mutations import KNOWN
from mutations import mutations

TEXT = textwrap.dedent(
    '''
    def f(x: float = 0.5, weight=None, flag: bool = True) -> float:
        """Not 1 + 1, but x."""
        if not flag and len(x) < 3:
            raise ValueError(f"{x + 1} is too few")
        total = weight * -x  # 7 + 7
        total += min(x, 2 ** 3) - 1e-12
        return score(total, sample_weight=weight, copy=False, stacklevel=2).reshape(-1)
    '''
)


def shown(kind):
    return {(m.old, m.new) for m in mutations(TEXT) if m.kind == kind}


def test_what_is_changed_and_what_is_left_alone():
    assert shown("compare") == {("<", ">="), ("<", "<=")}
    assert shown("logic") == {("and", "or")}
    assert shown("negation") == {("not", ""), ("-", "")}
    assert shown("arithmetic") == {("*", "/"), ("+=", "-="), ("**", "*")}
    assert shown("constant") == {("0.5", "1.0"), ("True", "False"), ("3", "4"), ("2", "3")}
    assert shown("extreme") == {("min", "max")}
    assert shown("weight") == {("weight * -x", "-x"), ("weight", "None")}


@pytest.mark.parametrize(
    "line",
    [
        "x = a if b <= 1e-12 * (1.0 + abs(c)) else d",
        "x = a if b <= NOISE * abs(c) / n else d",
        "x = a if b <= np.finfo(float).eps * c else d",
        "x = a / (b + 1e-300) if b <= c else d",
        "x = rng.integers(2**31 - 1) if b <= c else d",
        "x = a[: 1 << 20] if b <= c else d",
        "x = a if 0.5 * b <= min(tol, 1e-12) * c else d",
        "x = a if size <= NOISE * c else d",
    ],
)
def test_tolerances_of_rounding_and_sizes_are_left_alone(line):
    """The comparison is changed, and a quotient; no scale of a tolerance is."""
    found = {(m.old, m.new) for m in mutations("NOISE = 1e-9\nTRIALS = 5\n" + line)}
    assert found - {("/", "*")} == {("<=", ">")}


def test_the_sign_beside_a_tolerance_is_changed():
    """A factor of the other side is one of the tolerance; a sign is not, nor is a factor beside an ordinary number."""
    line = "x = a if -0.5 * b <= {} else d"
    assert {(m.old, m.new) for m in mutations(line.format("1e-12 * c"))} == {("<=", ">"), ("-", "")}
    assert {("0.5", "1.0"), ("*", "/")} < {(m.old, m.new) for m in mutations(line.format("c"))}


def test_whole_numbers_are_compared_at_the_boundary():
    assert {("<=", ">"), ("<=", "<")} == {(m.old, m.new) for m in mutations("x.size <= y")}
    assert {("<=", ">")} == {(m.old, m.new) for m in mutations("size <= y")}  # a norm


def test_loops_that_end_by_themselves_are_not_counted():
    loop = "for _ in range(20):\n    x = f(x)\n    if g(x):\n        {end}\n"
    assert mutations(loop.format(end="break")) == []
    assert {(m.old, m.new) for m in mutations(loop.format(end="pass"))} == {("20", "21")}
    assert {(m.old, m.new) for m in mutations(loop.replace("_", "k").format(end="break"))} == {("20", "21")}


CODE = """
LEAST = 0.5

def outer(x, y=1):
    def inner(z):
        return z + 1
    return inner(x) * y

class A:
    def method(self, x):
        return x - 2
"""


@pytest.mark.parametrize(
    ("old", "new", "functions"),
    [
        ("z + 1", "z - 1", {"outer.<locals>.inner"}), ("x - 2", "x + 2", {"A.method"}), ("* y", "/ y", {"outer"}),
        ("y=1", "y=2", None), ("0.5", "1.0", None),
    ],
)  # fmt: skip
def test_functions_are_changed_in_place_and_what_runs_at_import_is_not(old, new, functions):
    found = mutants.changed_functions(CODE, CODE.replace(old, new), "a.py")
    assert (None if found is None else {name for name, _ in found}) == functions


def test_a_patched_function_runs_the_changed_code(tmp_path, monkeypatch):
    import sys
    import types

    package = types.ModuleType("hinge.patched")
    package.__file__ = str(tmp_path / "patched.py")
    exec(compile(CODE, package.__file__, "exec"), package.__dict__)
    monkeypatch.setitem(sys.modules, "hinge.patched", package)
    method, outer = package.A().method, package.outer
    mutants.patch("patched.py", CODE, CODE.replace("z + 1", "z - 1").replace("x - 2", "x + 2"))
    assert (method(5), outer(5)) == (7, 4)


@pytest.mark.parametrize("path", mutants.sources()[::9], ids=lambda path: path.name)
def test_every_mutant_parses_and_differs(path):
    text = path.read_text(encoding="utf-8")
    for mutation in mutations(text)[::15]:
        changed = mutation.apply(text)
        assert changed != text
        assert text.encode()[mutation.begin : mutation.end].decode() == mutation.old
        ast.parse(changed)


def test_the_copy_of_the_package_has_one_file_replaced(tmp_path):
    path = mutants.sources()[-1]
    file = path.relative_to(mutants.SOURCE)
    mutants.overlay(tmp_path, str(file), "changed")
    assert (tmp_path / "hinge" / file).read_text() == "changed"
    assert path.read_text() != "changed"
    assert (tmp_path / "hinge" / "models").resolve() == mutants.SOURCE / "models"
    for beside in path.parent.glob("*.py"):
        if beside != path:
            assert (tmp_path / "hinge" / file.parent / beside.name).resolve() == beside


def test_the_sample_is_drawn_by_seed_and_grows_by_adding():
    small, large = mutants.chosen(5, 0, None), mutants.chosen(9, 0, None)
    assert large[:5] == small
    assert mutants.chosen(5, 1, None) != small


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.about)
def test_known_mutations_can_be_made(known):
    """Each edits one place of a program that exists; ``tools/mutants.py --known`` shows that its tests fail."""
    text = (mutants.SOURCE / known.file).read_text(encoding="utf-8")
    assert known.apply(text) != text
    ast.parse(known.apply(text))
    file, *names = known.tests.split("::")
    tests = (mutants.ROOT / "tests" / file).read_text(encoding="utf-8")
    assert all(f"def {name}(" in tests or f"class {name}:" in tests for name in names)
