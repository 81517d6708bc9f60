"""Writes docs/remarks.md from the list of remarks: ``python tools/remarks.py``."""

from __future__ import annotations

from pathlib import Path

from hinge.errors import in_shell
from hinge.tables.notes import DIAGNOSES

HEAD = """# Remarks on data

The remarks of `hinge fit` and `hg.profile` on a table, with causes and remedies. The reports link here; findings about a
fitted model (H…) are on the page [diagnoses](diagnoses.md).
"""


def main() -> None:
    """Write the page."""
    with in_shell():
        parts = [f"\n## {code} {d.title}\n\n{d.cause}\n\n**Remedy.** {d.cure}\n" for code, d in DIAGNOSES.items()]
    (Path(__file__).parents[1] / "docs" / "remarks.md").write_text(HEAD + "".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
