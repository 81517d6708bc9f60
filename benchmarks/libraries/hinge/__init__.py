"""hinge, through its public names only."""

import hinge
from benchmarks.libraries.hinge import kernel, linear, probabilistic, structured

OFFERS = linear.OFFERS | kernel.OFFERS | probabilistic.OFFERS | structured.OFFERS


def set_threads(count: int) -> None:
    hinge.set_num_threads(count)
