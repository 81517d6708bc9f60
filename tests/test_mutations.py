"""The mutation runner itself: every edit is small, at the place it names, and leaves a program."""

from __future__ import annotations

import ast
import textwrap

import pytest

import mutants
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
    assert shown("arithmetic") == {("*", "/"), ("+=", "-="), ("-", "+"), ("**", "*")}
    assert shown("constant") == {("0.5", "1.0"), ("True", "False"), ("3", "4"), ("2", "3")}
    assert shown("extreme") == {("min", "max")}
    assert shown("weight") == {("weight * -x", "-x"), ("weight", "None")}


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
