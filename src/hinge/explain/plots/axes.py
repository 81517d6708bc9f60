"""Matplotlib, imported when the first plot is drawn."""

from __future__ import annotations

from typing import Any


def pyplot() -> Any:
    """``matplotlib.pyplot``, or an error that explains how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("drawing needs matplotlib; install it with: pip install 'hinge-learn[plot]'") from None
    return plt


def axes_or_new(ax: Any) -> Any:
    """The given axes, or new ones."""
    plt = pyplot()
    return plt.subplots()[1] if ax is None else ax


def new_figure(**options: Any) -> Any:
    return pyplot().figure(**options)
