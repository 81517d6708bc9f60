"""Errors that a user can correct, the exit codes of the command, and the line of the user's code that a warning points at."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from contextvars import ContextVar

OK = 0
BUG = 1  # an internal error
USAGE = 2  # the command line itself; typer's own code
DATA = 3  # a table that cannot be read, or lacks a column
MODEL = 4  # a model file that cannot be read or used
INTERRUPTED = 130


class UserError(ValueError):
    """An error that a user can correct. The message is one line: what, where, and the remedy."""

    def __init__(self, message: str, code: int = DATA) -> None:
        super().__init__(" ".join(message.split()))
        self.code = code


# Arguments of hg.learn whose option of the command has another name, and those that take lists.
OPTIONS = {"seconds": "time", "random_state": "seed", "time_column": "time-column"}
LISTS = ("drop", "keep", "models")
_in_shell: ContextVar[bool] = ContextVar("in_shell", default=False)


@contextlib.contextmanager
def in_shell() -> Iterator[None]:
    """Within this context, messages name the options of the command instead of the arguments of functions."""
    token = _in_shell.set(True)
    try:
        yield
    finally:
        _in_shell.reset(token)


def argument(name: str, value: str = "") -> str:
    """An argument of ``hg.learn`` as the caller writes it: ``task="real"`` in Python, ``--task real`` in the shell."""
    if _in_shell.get():
        return f"--{OPTIONS.get(name, name)} {value}".rstrip()
    if not value:
        return name
    return f'{name}=["{value}"]' if name in LISTS else f'{name}="{value}"'


class _Argument:
    def __init__(self, name: str) -> None:
        self.name = name

    def __format__(self, value: str) -> str:
        return argument(self.name, value)


def with_arguments(text: str) -> str:
    """A text in which {name} and {name:value} stand for arguments."""
    return text.format_map(
        {name: _Argument(name) for name in ("drop", "group", "keep", "models", "seconds", "task", "time_column")}
    )


# Packages whose frames are no code of the user.
MACHINERY = ("hinge", "sklearn", "functools", "contextlib", "joblib")


def callers_level() -> int:
    """The ``stacklevel`` of the first caller outside the library, relative to the function that calls this."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in MACHINERY:
        frame, level = frame.f_back, level + 1
    return level
