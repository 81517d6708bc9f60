"""scikit-learn's grid search over its own learners."""

from __future__ import annotations

from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Lasso
from sklearn.svm import SVC

from benchmarks.libraries._common import grid_search

OFFERS = {
    "tune_lasso": lambda problem: [grid_search("scikit-learn", "Lasso in GridSearchCV", Lasso())],
    "tune_svc": lambda problem: [grid_search("scikit-learn", "SVC in GridSearchCV", SVC())],
    "tune_boost": lambda problem: [
        grid_search("scikit-learn", "boosting in GridSearchCV", HistGradientBoostingRegressor(early_stopping=False))
    ],
}
