"""hinge, through its public names only."""

import hinge
from benchmarks.libraries.hinge import linear

OFFERS = linear.OFFERS


def set_threads(count: int) -> None:
    hinge.set_num_threads(count)
