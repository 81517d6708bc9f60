"""Mistakes a user can mend, and the exit code each gives the command."""

from __future__ import annotations

OK = 0
BUG = 1  # something went wrong that is not the user's fault
USAGE = 2  # the command line itself; typer's own code
DATA = 3  # a table that cannot be read, or lacks a column
MODEL = 4  # a model file that cannot be read or used
INTERRUPTED = 130


class UserError(ValueError):
    """A mistake a user can mend. The message is one line: what, where, and the remedy."""

    def __init__(self, message: str, code: int = DATA) -> None:
        super().__init__(" ".join(message.split()))
        self.code = code
