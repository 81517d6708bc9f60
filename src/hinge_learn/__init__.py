"""The distribution hinge-learn: where the command begins, and where another module named ``hinge`` is noticed.

The module is called ``hinge``. Another distribution has that name and installs a module of it; where it was installed
last, its file is the one that ``import hinge`` finds.
"""

from __future__ import annotations

import importlib.util
import sys


def check() -> str | None:
    """What is wrong with the module that ``import hinge`` finds, and the remedy; None if it is this library's."""
    found = importlib.util.find_spec("hinge")
    if found is None:
        return "The module hinge is not installed.\nRemedy: pip install --force-reinstall --no-deps hinge-learn"
    if found.origin is None:
        return (
            f"The module hinge has no file __init__.py in {', '.join(found.submodule_search_locations or [])}.\n"
            "Uninstalling the distribution 'hinge', another project, removes that file of this one.\n"
            "Remedy: pip install --force-reinstall --no-deps hinge-learn"
        )
    try:
        import hinge

        ours = hasattr(hinge, "_PUBLIC") and hasattr(hinge, "NAMESPACES")
    except Exception:  # the other project's own errors, such as a package that it needs and does not find
        ours = False
    if ours:
        return None
    return (
        f"`import hinge` finds another project's module, {found.origin}.\n"
        "The distribution 'hinge' is not this library; this one is called 'hinge-learn'.\n"
        "Remedy: pip uninstall hinge hinge-learn, then pip install hinge-learn"
    )


def main() -> None:
    """The command ``hinge``."""
    wrong = check()
    if wrong is not None:
        print(wrong, file=sys.stderr)
        raise SystemExit(1)
    from hinge.cli.main import main as command

    command()
