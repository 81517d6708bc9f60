"""What hinge needs from elsewhere, one requirement a line, read from pyproject.toml.

python tools/dependencies.py [EXTRA …]
python tools/dependencies.py --build
python tools/dependencies.py --oldest      (what is needed at run time, in the oldest versions allowed)
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def needed(extras: list[str], project: dict[str, Any]) -> list[str]:
    """Requirements at run time and of the extras; an extra may name others, as in "hinge-learn[plot,cli]"."""
    found = list(project["dependencies"])
    for extra in extras:
        for requirement in project["optional-dependencies"][extra]:
            own = re.fullmatch(rf"{project['name']}\[(.*)\]", requirement)
            found += needed(own[1].split(","), project) if own else [requirement]
    return list(dict.fromkeys(found))


def main() -> None:
    content = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    if sys.argv[1:] == ["--build"]:
        found = [*content["build-system"]["requires"], "cmake", "ninja"]
    elif sys.argv[1:] == ["--oldest"]:
        found = [f"{requirement.replace('>=', '==')}.*" for requirement in content["project"]["dependencies"]]
    else:
        found = needed(sys.argv[1:], content["project"])
    print("\n".join(found))


if __name__ == "__main__":
    main()
