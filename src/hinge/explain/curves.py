"""Learning curves and validation curves, which show over-fitting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.parallel import Parallel, delayed

from hinge._native import check_indices
from hinge.explain.diagnosis.power_law import PowerLaw, fit_power_law
from hinge.models.meta import final_step, take_rows
from hinge.select.resample import growing_fits, spread_order

Array = np.ndarray
# Parameters for the number of terms of a boosted model, whose fits can be continued with more terms.
ROUNDS = ("max_iter", "n_estimators")


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """Scores against the number of training examples; unpacks like scikit-learn's tuple.

    Attributes
    ----------
    train_sizes : array of m
        How many rows each fit saw.
    train_scores, test_scores : arrays of m × folds
        Scores of the rows a fit saw, and of those held out.
    fit_times : array of m × folds
        Seconds; with warm starts, of the step from the size before.
    scoring : str
        The name of the score.
    """

    train_sizes: Array
    train_scores: Array
    test_scores: Array
    fit_times: Array
    scoring: str

    def __iter__(self) -> Iterator[Array]:
        yield from (self.train_sizes, self.train_scores, self.test_scores)

    def errors(self, scores: Array) -> Array:
        """Scores as risks: the negative score if it is a negated loss, otherwise 1 − score (accuracy, R²)."""
        return -scores if self.scoring.startswith("neg_") else 1.0 - scores

    def law(self, random_state: int = 0) -> PowerLaw:
        """The inverse power law R(n) = a + b n^(−c) of the test error, for extrapolation to more examples.

        The limit a is at least the training error at the largest size, which is a lower bound for a minimiser of it.
        """
        floor = float(self.errors(self.train_scores)[-1].mean())
        return fit_power_law(self.train_sizes, self.errors(self.test_scores), floor=floor, random_state=random_state)


@dataclass(frozen=True, eq=False)
class ValidationCurve:
    """Scores against one parameter; unpacks like scikit-learn's tuple.

    Attributes
    ----------
    param_name : str
        The parameter that was varied.
    param_range : sequence of m values
        Its values.
    train_scores, test_scores : arrays of m × folds
        Scores of the rows a fit saw, and of those held out.
    """

    param_name: str
    param_range: Sequence[Any]
    train_scores: Array
    test_scores: Array

    def __iter__(self) -> Iterator[Array]:
        yield from (self.train_scores, self.test_scores)

    @property
    def best(self) -> Any:
        """The value with the best mean test score."""
        return self.param_range[int(np.argmax(self.test_scores.mean(axis=1)))]


def learning_curve(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    train_sizes: Any = (0.1, 0.33, 0.55, 0.78, 1.0),
    cv: Any = None,
    scoring: Any = None,
    n_jobs: int | None = None,
    shuffle: bool = False,
    random_state: int = 0,
    warm_start: bool | str = "auto",
) -> LearningCurve:
    """Scores on the training rows and on the held-out rows as the training set grows.

    Parameters
    ----------
    estimator : estimator
        Any classifier or regressor; copies of it are fitted.
    X, y : data
        The table and its targets.
    groups : array, optional
        Which group a row belongs to, for splitters that keep groups together.
    train_sizes : sequence
        Fractions of the largest training set, or numbers of rows.
    cv : int, splitter or iterable of splits, optional
        5 folds by default.
    scoring : str or callable, optional
        A scikit-learn scorer; the estimator's ``score`` by default.
    n_jobs : int, optional
        Folds at a time (threads).
    shuffle : bool
        Take the rows of a fold in random order (classes in proportion) instead of as they come.
    random_state : int
        Seed of the order of the rows, if they are shuffled.
    warm_start : {"auto", True, False}
        Begin every fit at the solution of the one before. "auto" does so where the optimum does not depend on the start:
        models with ``warm_start`` and a certificate.

    Examples
    --------
    >>> import hinge as hg
    >>> X, y = hg.generators.LinearGaussian([1.0, 2.0, 3.0]).sample(200)
    >>> sizes, train, test = hg.learning_curve(hg.Ridge(), X, y)
    >>> sizes
    array([ 16,  52,  88, 124, 160])
    """
    scorer, folds = check_scoring(estimator, scoring=scoring), _folds(estimator, X, y, groups, cv)
    sizes = _sizes(train_sizes, min(len(learn) for learn, _ in folds))

    def one(k: int, learn: Array, test: Array) -> tuple[Array, Array, Array]:
        if shuffle:
            rng = np.random.default_rng([random_state, k])
            learn = learn[spread_order(np.asarray(take_rows(y, learn)), is_classifier(estimator), rng)]
        held = take_rows(X, test), take_rows(y, test)
        steps = Steps(estimator, warm_start)
        rows = []
        for _, part, model, seconds in growing_fits(
            lambda part: steps.fit({}, take_rows(X, part), take_rows(y, part)), learn, sizes
        ):
            rows.append((scorer(model, take_rows(X, part), take_rows(y, part)), scorer(model, *held), seconds))
        a, b, c = np.array(rows).T
        return a, b, c

    parts = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(one)(k, *fold) for k, fold in enumerate(folds))
    train, test, seconds = (np.array(part).T for part in zip(*parts))
    return LearningCurve(sizes, train, test, seconds, _name(scoring))


def validation_curve(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    param_name: str,
    param_range: Sequence[Any],
    groups: Any = None,
    cv: Any = None,
    scoring: Any = None,
    n_jobs: int | None = None,
    warm_start: bool | str = "auto",
) -> ValidationCurve:
    """Scores on the training rows and on the held-out rows along one parameter.

    Parameters
    ----------
    estimator, X, y, groups, cv, scoring, n_jobs
        As for :func:`learning_curve`.
    param_name : str
        A parameter of the estimator, ``step__parameter`` for pipelines.
    param_range : sequence
        Its values, in an order along which solutions change little (weak to strong, few rounds to many).
    warm_start : {"auto", True, False}
        Begin every fit at the solution of the one before, where that does not change the result: convex models with
        ``warm_start``, and rounds of boosting in rising order, which then cost one fit in all.

    Examples
    --------
    >>> import hinge as hg
    >>> heart = hg.load_dataset("heart")
    >>> curve = hg.validation_curve(
    ...     hg.LogisticRegression(), heart.X, heart.y, param_name="C", param_range=[0.001, 0.01, 0.1, 1.0]
    ... )
    >>> curve.test_scores.shape
    (4, 5)
    """
    scorer, folds = check_scoring(estimator, scoring=scoring), _folds(estimator, X, y, groups, cv)
    if param_name not in estimator.get_params():
        raise ValueError(f"param_name={param_name!r} is not a parameter of {type(estimator).__name__}.")
    values = list(param_range)
    rising = param_name in ROUNDS and all(a <= b for a, b in pairwise(values))

    def one(learn: Array, test: Array) -> tuple[Array, Array]:
        part = take_rows(X, learn), take_rows(y, learn)
        held = take_rows(X, test), take_rows(y, test)
        steps = Steps(estimator, warm_start, rounds=rising)
        rows = []
        for value in values:
            model = steps.fit({param_name: value}, *part)
            rows.append((scorer(model, *part), scorer(model, *held)))
        a, b = np.array(rows).T
        return a, b

    parts = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(one)(*fold) for fold in folds)
    train, test = (np.array(part).T for part in zip(*parts))
    return ValidationCurve(param_name, values, train, test)


class Steps:
    """Successive fits, cold or warm-started from the previous one."""

    def __init__(self, estimator: Any, warm_start: bool | str, *, rounds: bool = False) -> None:
        if warm_start not in (True, False, "auto"):
            raise ValueError(f'warm_start must be True, False or "auto", got {warm_start!r}.')
        self.estimator, self.rounds = estimator, rounds
        last = final_step(estimator)
        able = "warm_start" in last.get_params(deep=False)
        if warm_start is True and not able:
            raise ValueError(f"{type(last).__name__} has no warm_start.")
        self.warm = able and warm_start is not False
        self.sure = warm_start is True
        self.model: Any = None

    def fit(self, changes: dict[str, Any], X: Any, y: Any) -> Any:
        if self.model is None:
            self.model = clone(self.estimator)
            if self.warm:
                final_step(self.model).set_params(warm_start=True)
        elif not self.warm or not (self.sure or self._same_result()):
            self.model = clone(self.estimator)
            self.warm = False
        self.model.set_params(**changes)
        return self.model.fit(X, y)

    def _same_result(self) -> bool:
        """Whether a warm start gives the same result as a cold one: a certified optimum, or more rounds of boosting."""
        last = final_step(self.model)
        if hasattr(last, "trees_"):
            return self.rounds and getattr(last, "early_stopping", False) is False
        return getattr(last, "certificate_", None) is not None and not hasattr(last, "t_")  # t_: stochastic solvers


def _folds(estimator: Any, X: Any, y: Any, groups: Any, cv: Any) -> list[tuple[Array, Array]]:
    check_indices(X)
    splits = check_cv(cv, y, classifier=is_classifier(estimator)).split(X, y, groups)
    return [(np.asarray(a), np.asarray(b)) for a, b in splits]


def _sizes(train_sizes: Any, most: int) -> Array:
    sizes = np.asarray(train_sizes)
    if sizes.dtype.kind == "f":
        if np.any(sizes <= 0) or np.any(sizes > 1):
            raise ValueError("train_sizes as fractions must lie in (0, 1].")
        sizes = np.maximum((sizes * most).astype(int), 1)
    elif np.any(sizes < 1) or np.any(sizes > most):
        raise ValueError(f"train_sizes must lie between 1 and {most}, the rows of the smallest training set.")
    return np.unique(sizes)


def _name(scoring: Any) -> str:
    return (
        scoring if isinstance(scoring, str) else "score" if scoring is None else getattr(scoring, "__name__", "score")
    )
