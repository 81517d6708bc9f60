"""hinge, through its public names only."""

import hinge
from benchmarks.libraries.hinge import kernel, linear, networks, probabilistic, select, structured, trees

OFFERS = (
    linear.OFFERS
    | kernel.OFFERS
    | probabilistic.OFFERS
    | structured.OFFERS
    | networks.OFFERS
    | select.OFFERS
    | trees.OFFERS
)


def set_threads(count: int) -> None:
    hinge.set_num_threads(count)
