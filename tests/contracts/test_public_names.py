"""The public names are a reviewed list: none is added or removed by accident.

`python tests/contracts/test_public_names.py` writes public_names.txt again. A new flat name is an estimator, a loss, a penalty,
a space or a verb; other names go into a namespace.
"""

from __future__ import annotations

from pathlib import Path

import hinge as hg

LIST = Path(__file__).with_name("public_names.txt")


def public_names() -> list[str]:
    """The flat names, and those of the namespaces with a prefix, such as solvers.Pegasos."""
    inside = (f"{space}.{name}" for space in hg.NAMESPACES for name in getattr(hg, space).__all__)
    return sorted([*hg.__all__, *inside])


def test_the_public_names_are_those_of_the_reviewed_list():
    assert public_names() == LIST.read_text().split()


if __name__ == "__main__":
    LIST.write_text("\n".join(public_names()) + "\n")
