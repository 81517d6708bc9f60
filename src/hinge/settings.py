"""Settings of the library: progress of long calls, and display in notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_DEFAULTS = {"progress": False, "display": "html"}
_ALLOWED = {"progress": (False, True), "display": ("html", "text")}
_settings: ContextVar[dict[str, Any]] = ContextVar("hinge settings", default=_DEFAULTS)


def get_config() -> dict[str, Any]:
    """A copy of the settings as a dictionary.

    Examples
    --------
    >>> import hinge as hg
    >>> hg.get_config()
    {'progress': False, 'display': 'html'}
    """
    return dict(_settings.get())


def set_config(*, progress: bool | None = None, display: str | None = None) -> None:
    """Change settings, for this thread and for tasks started from it; None leaves a setting unchanged.

    Parameters
    ----------
    progress : bool, optional
        Whether :func:`hinge.learn` and :func:`hinge.tune` show their progress when their own ``progress`` is None.
    display : {"html", "text"}, optional
        Whether notebooks show certificates, profiles and reports as HTML or as text.

    Examples
    --------
    >>> import hinge as hg
    >>> hg.set_config(display="text")
    >>> hg.get_config()["display"]
    'text'
    >>> hg.set_config(display="html")
    """
    given = {name: value for name, value in (("progress", progress), ("display", display)) if value is not None}
    for name, value in given.items():
        if value not in _ALLOWED[name]:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, _ALLOWED[name]))}, got {value!r}.")
    _settings.set({**_settings.get(), **given})


@contextmanager
def config_context(*, progress: bool | None = None, display: str | None = None) -> Iterator[None]:
    """Settings for a block of code; see :func:`set_config`.

    Parameters
    ----------
    progress, display
        As for :func:`set_config`; None leaves a setting as it is.

    Examples
    --------
    >>> import hinge as hg
    >>> with hg.config_context(progress=True):
    ...     hg.get_config()["progress"]
    True
    >>> hg.get_config()["progress"]
    False
    """
    before = _settings.get()
    set_config(progress=progress, display=display)
    try:
        yield
    finally:
        _settings.set(before)


def shows_html() -> bool:
    """Whether notebooks show HTML; if not, ``_repr_html_`` returns None and notebooks show the text."""
    return _settings.get()["display"] == "html"


def shows_progress(own: bool | None) -> bool:
    """Whether a call shows its progress: by its argument, or by the settings if that is None."""
    return bool(_settings.get()["progress"] if own is None else own)
