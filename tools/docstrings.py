"""Parameters as docstrings describe them: read for tests, and written out in full for the reference.

A docstring describes a parameter by itself, in a group (``eta0, power_t : float``), or by pointing to another public name
that does: ``As for :class:`SVC```. In the reference every parameter has an entry of its own, with its default.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import hinge

POINTER = re.compile(r"As (?:in|for) :(?:class|func):`(?:hinge\.)?([\w.]+)`[.,;:]? ?(?:but |with )?(.*)", re.DOTALL)


@dataclass(frozen=True)
class Entry:
    """What a docstring has on one parameter: its kind (what is right of the colon) and its meaning."""

    kind: str
    text: str


def public_names() -> list[str]:
    """Every public name, those of namespaces with a dot."""
    plain = [name for name in hinge.__all__ if name not in hinge.NAMESPACES]
    return plain + [f"{space}.{name}" for space in hinge.NAMESPACES for name in getattr(hinge, space).__all__]


def parameters(thing: Any) -> dict[str, inspect.Parameter]:
    """The parameters of a function or constructor by name."""
    return {name: value for name, value in inspect.signature(thing).parameters.items() if name != "self"}


def _section(lines: list[str], title: str) -> tuple[int, int] | None:
    """Where the body of a section begins and ends."""
    heads = [k for k in range(len(lines) - 1) if lines[k] and re.fullmatch("-{3,}", lines[k + 1].strip())]
    for k, after in zip(heads, [*heads[1:], len(lines)]):
        if lines[k].strip() == title:
            return k + 2, after
    return None


def entries(lines: list[str], title: str) -> dict[str, Entry]:
    """The entries of one section, those of a group one by one."""
    place = _section(lines, title)
    found: dict[str, Entry] = {}
    names: list[str] = []
    head = ""
    for line in lines[slice(*place)] if place else ():
        if line.startswith(" "):
            for name in names:
                found[name] = replace(found[name], text=f"{found[name].text} {line.strip()}".strip())
        elif line:
            head = f"{head} {line}".strip()
            if not head.endswith(","):  # a list of names may go on in the next line
                listed, _, kind = head.partition(" :")
                names = [name.strip().lstrip("*") for name in listed.split(",")]
                found.update(dict.fromkeys(names, Entry(kind.strip(), "")))
                head = ""
    return found


def described(name: str) -> dict[str, Entry]:
    """The entries of a public name by parameter; pointers are followed, and what they add is added."""
    thing = _public(name)
    lines = inspect.cleandoc(thing.__doc__ or "").splitlines()
    found = entries(lines, "Attributes") | entries(lines, "Parameters")  # fields of a result are attributes
    return {parameter: _followed(parameter, found[parameter]) for parameter in parameters(thing) if parameter in found}


def _public(name: str) -> Any:
    """A public object by the name that docstrings use, which leaves the namespace out."""
    for space in ("", *(f"{space}." for space in hinge.NAMESPACES)):
        try:
            return attrgetter(space + name)(hinge)
        except AttributeError:
            continue
    raise LookupError(f"a docstring points to {name}, which is no public name")


def _followed(parameter: str, entry: Entry) -> Entry:
    pointer = POINTER.match(entry.text)
    if pointer is None:
        return entry
    there = described(pointer[1]).get(parameter)
    if there is None or not there.text:
        raise LookupError(f"a docstring points to {pointer[1]} for {parameter}, which has no entry there")
    added = f"{pointer[2][0].upper()}{pointer[2][1:]}" if pointer[2] else ""
    return Entry(entry.kind or there.kind, f"{there.text} {added}".strip())


def written_out(name: str, lines: list[str]) -> list[str]:
    """The docstring of a public name, with an entry for every parameter, in the order of the signature, and attribute."""
    found, signature = described(name), parameters(_public(name))
    listed = (
        _entry(parameter, found[parameter], value) for parameter, value in signature.items() if parameter in found
    )
    lines = _replaced(lines, "Parameters", listed)
    return _replaced(lines, "Attributes", (_entry(*item) for item in entries(lines, "Attributes").items()))


def _replaced(lines: list[str], title: str, listed: Iterable[tuple[str, ...]]) -> list[str]:
    """The docstring with other entries in a section, if it has that."""
    if (place := _section(lines, title)) is None:
        return lines
    return [*lines[: place[0]], *(line for entry in listed for line in entry), "", *lines[place[1] :]]


def _entry(name: str, entry: Entry, value: inspect.Parameter | None = None) -> tuple[str, ...]:
    """The lines of an entry; with a parameter, its default."""
    kind, stars = entry.kind, ""
    if value is not None:
        stars = {value.VAR_POSITIONAL: "*", value.VAR_KEYWORD: "**"}.get(value.kind, "")
        if value.default is not value.empty:
            kind = kind.removesuffix(", optional")
            kind += f"{', ' if kind else ''}default={value.default!r}"
    head = f"{stars}{name} : {kind}" if kind else f"{stars}{name}"
    return (head, f"    {entry.text}") if entry.text else (head,)
