"""Certificates of random problems against optima in extended precision, as cases of the long part.

The problems and the comparison are those of contracts/test_proofs.py, whose fast part is in the ordinary suite.
"""

from __future__ import annotations

from collections.abc import Iterator

from contracts.test_proofs import check
from hostile.runner import Group


def cases() -> Iterator[str]:
    yield "0"


GROUP = Group("proofs", cases, lambda case: check(int(case)), str, seconds=60.0)
