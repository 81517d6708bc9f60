"""hinge, through its public names only."""

import hinge
from benchmarks.libraries import HOME
from benchmarks.libraries.hinge import linear

NAME = HOME
DISTRIBUTION = "hinge"
OFFERS = linear.OFFERS


def set_threads(count: int) -> None:
    hinge.set_num_threads(count)
