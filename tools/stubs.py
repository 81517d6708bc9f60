"""Writes stubs of the modules whose names are loaded when first used, so that type checkers and editors see them.

python tools/stubs.py    (`make format` does it)
"""

from __future__ import annotations

import importlib
from pathlib import Path

import hinge

SOURCE = Path(__file__).resolve().parents[1] / "src" / "hinge"


def stubs() -> dict[Path, str]:
    """The text of every stub."""
    found = {SOURCE / "__init__.pyi": stub(hinge)}
    for name in hinge.NAMESPACES:
        module = importlib.import_module(f"hinge.{name}")
        assert module.__file__ is not None
        found[Path(module.__file__).with_suffix(".pyi")] = stub(module)
    return found


def stub(module: object) -> str:
    """The text of one stub, from the table of public names of a module."""
    lines = ["# Written by tools/stubs.py.", ""]
    if module is hinge:
        lines += [
            "from typing import Any",
            "",
            f"from hinge import {', '.join(f'{n} as {n}' for n in hinge.NAMESPACES)}",
        ]
    for home, names in sorted(module._PUBLIC.items()):  # type: ignore[attr-defined]
        lines.append(f"from {home} import (")
        lines.extend(f"    {name} as {name}," for name in sorted(names))
        lines.append(")")
    lines += ["", "__all__: list[str]", "_PUBLIC: dict[str, tuple[str, ...]]"]
    if module is hinge:
        lines += ["__version__: str", "NAMESPACES: tuple[str, ...]", "_core: Any"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for path, text in stubs().items():
        path.write_text(text)
