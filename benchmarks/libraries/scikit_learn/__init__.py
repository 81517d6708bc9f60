"""scikit-learn, unpatched."""

from benchmarks.libraries.scikit_learn import kernel, linear, networks, probabilistic, structured, trees

OFFERS = linear.OFFERS | kernel.OFFERS | probabilistic.OFFERS | structured.OFFERS | networks.OFFERS | trees.OFFERS
