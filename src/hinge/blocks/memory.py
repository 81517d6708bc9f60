"""Amounts of memory: the user's limit, the memory of the machine, and the rows of a block."""

from __future__ import annotations

import math
import os
import re

BLOCK_BYTES = 32 << 20
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def memory_bytes(amount: int | str) -> int:
    """An amount of memory in bytes, given as a number or as text: "4GB", "500 MB", "1.5GiB".

    Examples
    --------
    >>> memory_bytes("1.5 kB")
    1500
    """
    if isinstance(amount, str):
        found = re.fullmatch(r"\s*([0-9.]+)\s*([kmgt]?i?)b?\s*", amount.lower())
        try:
            value = float(found[1]) * UNITS[found[2]] if found else 0.0
        except (KeyError, ValueError):
            value = 0.0
    else:
        try:
            value = float(amount)
        except (OverflowError, TypeError, ValueError):
            value = 0.0
    if not 1 <= value < math.inf:
        raise ValueError(f'memory must be a number of bytes, or text such as "4GB"; got {amount!r}.')
    return int(value)


def total_memory() -> int:
    """Bytes of memory of this machine; 4 GiB if that is unknown."""
    try:
        return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return 4 << 30


def default_rows(width: int, memory: int | None = None) -> int:
    """The rows of a block of about 32 MB of float64: large enough for several threads, small enough for several blocks.

    If ``memory`` is given, a block is at most a 16th of it.
    """
    size = BLOCK_BYTES if memory is None else min(BLOCK_BYTES, memory // 16)
    return min(max(size // (8 * max(width, 1)), 1 << 10), 1 << 20)
