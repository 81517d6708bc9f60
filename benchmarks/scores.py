"""Qualities shown beside the times."""

from __future__ import annotations

import numpy as np

from benchmarks.harness import Outcome, Problem, Score


def _accuracy(problem: Problem, outcome: Outcome) -> float:
    return float(np.mean(np.asarray(outcome.prediction) == problem.y_test))


def _logloss(problem: Problem, outcome: Outcome) -> float:
    """−mean log p(y); the columns are the sorted classes."""
    probability = np.asarray(outcome.probability, dtype=np.float64)
    columns = np.searchsorted(np.unique(problem.y), problem.y_test)
    return -float(np.mean(np.log(np.clip(probability[np.arange(columns.size), columns], 1e-15, 1.0))))


def _r2(problem: Problem, outcome: Outcome) -> float:
    residual = problem.y_test - np.asarray(outcome.prediction)
    return 1.0 - float(residual @ residual) / float(np.square(problem.y_test - problem.y_test.mean()).sum())


def _rmse(problem: Problem, outcome: Outcome) -> float:
    return float(np.sqrt(np.mean(np.square(problem.y_test - np.asarray(outcome.prediction)))))


ACCURACY = Score("accuracy", _accuracy)
LOGLOSS = Score("logloss", _logloss, higher_is_better=False)
R2 = Score("R²", _r2)
RMSE = Score("RMSE", _rmse, higher_is_better=False)
