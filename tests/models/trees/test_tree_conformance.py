"""scikit-learn's checks for settings that the general conformance tests do not reach."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import hinge as hg

ESTIMATORS = [
    hg.DecisionTreeRegressor(criterion="absolute_error", splitter="hist", max_depth=4),
    hg.AnyBoost(hg.Softmax(), n_estimators=3),
    hg.ForwardStagewise(hg.Exponential(), n_estimators=3),
    hg.GradientBoostingClassifier(max_iter=5, min_samples_leaf=5),
    hg.GradientBoostingRegressor(hg.Absolute(), max_iter=20, min_samples_leaf=5),
]


@pytest.mark.mission("T1", "T6", "T7", "T8")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
