"""The learner: options that play no part are refused."""

from __future__ import annotations

import numpy as np
import pytest

import hinge as hg

SPACES = [
    hg.Linear(),
    hg.RKHS(hg.kernels.RBF(1.0)),
    hg.Network((3,)),
    hg.Tree(2),
    hg.Forest(trees=3),
    hg.Boosted(rounds=3),
]
OPTIONS = {"solver": "lbfgs", "tol": 1e-3, "max_iter": 7, "random_state": 3, "history": True}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("space", SPACES, ids=lambda space: type(space).__name__)
def test_an_option_is_used_or_refused(space, option, rng):
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    model = hg.Learner(space, hg.Squared(), hg.L2(0.1), **{option: OPTIONS[option]})
    if option in space.uses:
        model.fit(X, y)
        return
    with pytest.raises(ValueError, match=f"{option}=.* has no effect over {type(space).__name__}"):
        model.fit(X, y)


def test_a_space_that_is_none_is_named():
    with pytest.raises(TypeError, match="space must be a hypothesis space"):
        hg.Learner("linear", hg.Squared()).fit(np.eye(3), np.ones(3))
