"""scikit-learn, unpatched."""

from benchmarks.libraries.scikit_learn import linear

NAME = "scikit-learn"
DISTRIBUTION = "scikit-learn"
OFFERS = linear.OFFERS
