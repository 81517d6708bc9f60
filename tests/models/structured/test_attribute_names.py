"""Names of attributes: any string is one, and two are the same if their characters are."""

from __future__ import annotations

import pytest

import hinge as hg
from hinge._native import core

NAMES = [
    "",
    "a",
    "ä",
    "ключ",
    "名",
    "😀",
    "a\0b",
    "a\0c",
    "\ud800",
    "\udfff",
    "x\ud800y",
    "ÿ",
    "Ā",
    "a" * 1000,
    "a" * 999 + "b",
]


def encode(index, tokens, grow):
    encoder = core.ChainEncoder(index, grow)
    encoder.add([tokens])
    return encoder.rows()


def test_every_string_is_a_name_of_its_own():
    index = core.AttributeIndex()
    columns = encode(index, [NAMES, NAMES[::-1]], True)[2]
    assert len(index) == len(NAMES)
    assert index.names() == NAMES
    assert columns.tolist() == [*range(len(NAMES)), *reversed(range(len(NAMES)))]


@pytest.mark.parametrize("name", NAMES, ids=[ascii(name)[:12] for name in NAMES])
def test_equal_strings_are_one_name(name):
    """The characters decide, not the object; an index made from its own names is the same."""
    index = core.AttributeIndex()
    index.extend(NAMES)
    copy = "".join([*name, "!"])[:-1]
    assert encode(index, [[copy], {copy: 2.0}], False)[2].tolist() == [NAMES.index(name)] * 2
    assert encode(index, [[copy + "?"]], False)[2].tolist() == []


def test_tokens_may_be_tuples_lists_and_generators_of_names():
    index = core.AttributeIndex()
    rows = encode(index, (("a", "b"), ["a"], (name for name in "ab")), True)
    assert rows[2].tolist() == [0, 1, 0, 0, 1]


def test_a_tagger_takes_such_names(tmp_path):
    words = [[{name: 1.0} for name in NAMES[1:5]]] * 3
    tagger = hg.ChainCRF().fit(words, [["A", "B", "A", "B"]] * 3)
    hg.save(tagger, tmp_path / "t.hinge")
    assert hg.load(tmp_path / "t.hinge").predict(words) == tagger.predict(words)
