"""scikit-learn, unpatched."""

from benchmarks.libraries.scikit_learn import kernel, linear, probabilistic, structured

OFFERS = linear.OFFERS | kernel.OFFERS | probabilistic.OFFERS | structured.OFFERS
