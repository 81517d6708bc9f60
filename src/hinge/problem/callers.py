"""The line of the user's code that a warning should point at."""

from __future__ import annotations

import sys

# Packages whose frames are skipped.
MACHINERY = ("hinge", "sklearn", "functools", "contextlib", "joblib")


def callers_level() -> int:
    """The ``stacklevel`` of the first caller outside the library, relative to the function that calls this."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in MACHINERY:
        frame, level = frame.f_back, level + 1
    return level
