"""scikit-learn, unpatched."""

from benchmarks.libraries.scikit_learn import kernel, linear, networks, probabilistic, select, structured, trees

OFFERS = (
    linear.OFFERS
    | kernel.OFFERS
    | probabilistic.OFFERS
    | structured.OFFERS
    | networks.OFFERS
    | select.OFFERS
    | trees.OFFERS
)
