"""scikit-learn, unpatched."""

from benchmarks.libraries.scikit_learn import linear

OFFERS = linear.OFFERS
