"""Writes src/hinge/__init__.pyi from the table of public names, so that type checkers and editors see them.

python tools/stubs.py    (`make format` does it)
"""

from __future__ import annotations

from pathlib import Path

import hinge

STUB = Path(__file__).resolve().parents[1] / "src" / "hinge" / "__init__.pyi"


def stub() -> str:
    """The text of the stub."""
    lines = ["# Written by tools/stubs.py from the table in __init__.py.", "", "from typing import Any", ""]
    for module, names in sorted(hinge._PUBLIC.items()):
        lines.append(f"from {module} import (")
        lines.extend(f"    {name} as {name}," for name in sorted(names))
        lines.append(")")
    lines += [
        "",
        "__version__: str",
        "__all__: list[str]",
        "_PUBLIC: dict[str, tuple[str, ...]]",
        "_HOME: dict[str, str]",
        "_core: Any",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    STUB.write_text(stub())
