"""The distribution hinge-learn: where the command begins, and where another module named ``hinge`` is noticed.

The module is called ``hinge``. Another distribution has that name and installs a module of it; where it was installed
last, its file is the one that ``import hinge`` finds.
"""

from __future__ import annotations

import sys


def check() -> str | None:
    """What is wrong with the module that ``import hinge`` finds, and the remedy; None if it is this library's."""
    try:
        import hinge
    except ImportError:
        return "The module hinge is not installed.\nRemedy: pip install --force-reinstall --no-deps hinge-learn"
    if hasattr(hinge, "_PUBLIC") and hasattr(hinge, "NAMESPACES"):
        return None
    if getattr(hinge, "__file__", None) is None:
        return (
            f"The module hinge has no file __init__.py in {', '.join(hinge.__path__)}.\n"
            "Uninstalling the distribution 'hinge', another project, removes that file of this one.\n"
            "Remedy: pip install --force-reinstall --no-deps hinge-learn"
        )
    return (
        f"`import hinge` finds another project's module, {getattr(hinge, '__file__', None)}.\n"
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
