"""scikit-learn's checks for every estimator of the family."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import hinge as hg

ESTIMATORS = [
    hg.DecisionTreeClassifier(),
    hg.DecisionTreeRegressor(criterion="absolute_error", splitter="hist", max_depth=4),
    hg.RandomForestClassifier(n_estimators=5),
    hg.RandomForestRegressor(n_estimators=5),
    hg.ExtraTreesClassifier(n_estimators=5),
    hg.ExtraTreesRegressor(n_estimators=5),
    hg.BaggingClassifier(n_estimators=5),
    hg.BaggingRegressor(n_estimators=5),
    hg.AdaBoostClassifier(n_estimators=5),
    hg.AnyBoost(n_estimators=5),
    hg.AnyBoost(hg.Softmax(), n_estimators=5),
    hg.ForwardStagewise(hg.Exponential(), n_estimators=5),
    hg.ForwardStagewise(n_estimators=5),
    hg.GradientBoostingClassifier(max_iter=5, min_samples_leaf=5),
    hg.GradientBoostingRegressor(max_iter=5, min_samples_leaf=5),
]


@pytest.mark.mission("T1", "T3", "T4", "T5", "T6", "T7", "T8")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
