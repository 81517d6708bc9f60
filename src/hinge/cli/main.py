"""The entry point of the ``hinge`` command."""

from __future__ import annotations

import sys
from time import perf_counter

from hinge.cli.exits import guard
from hinge.errors import OK, USAGE, UserError


def main() -> None:
    """Run the command line and exit with a code."""
    began = perf_counter()  # before the large imports, whose time counts towards --time
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
    with guard():
        try:
            from hinge.cli.app import app
        except ImportError as error:
            missing = error.name or str(error)
            raise UserError(
                f"the command needs the package {missing}: pip install 'hinge-learn[cli]'.", USAGE
            ) from None
        app(obj=began)
    raise SystemExit(OK)
