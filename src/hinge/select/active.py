"""Pool-based active learning: which unlabelled examples to label next.

Uncertainty   1 − max_c p(c|x)
Margin        p(second) − p(first): close to 0 where two classes compete (for scores: −|s|, the distance to the border)
Entropy       −Σ p ln p
Committee     how much members trained on bootstrap samples disagree: the entropy of their votes, −Σ (v/m) ln (v/m)
              (divergences of their probabilities do worse: they ask about oddities, many alike at a time)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from hinge._native import check_indices

STRATEGIES = ("uncertainty", "margin", "entropy", "committee", "random")


def query(
    model: Any, X: Any, strategy: str | Callable[[Any, Any], Any] = "margin", *, batch: int = 1, random_state: Any = 0
) -> np.ndarray:
    """The rows of a pool whose labels are most informative for a fitted classifier, best first.

    Parameters
    ----------
    model : fitted classifier, or list of them for "committee"
        What was fitted to the labels there are.
    X : the unlabelled pool
        Rows whose labels are not known yet.
    strategy : {"margin", "uncertainty", "entropy", "committee", "random"} or function
        A function of (model, X) gives a number per row; the largest are queried.
    batch : int
        How many.
    random_state : int
        Breaks ties, and draws for "random".

    Returns
    -------
    array of row numbers

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> model = hg.LogisticRegression().fit([[-2.0], [2.0]], [0, 1])
    >>> hg.active.query(model, [[-3.0], [0.1], [5.0]])
    array([1])
    """
    check_indices(X)
    n = _num_samples(X)
    if not 1 <= batch <= n:
        raise ValueError(f"batch must lie between 1 and the {n} rows of the pool, got {batch!r}.")
    rng = np.random.default_rng(random_state)
    noise = rng.permutation(n)
    if strategy == "random":
        return noise[:batch]
    values = strategy(model, X) if callable(strategy) else informativeness(model, X, strategy)
    return np.lexsort((noise, -np.asarray(values, dtype=np.float64)))[:batch]


def informativeness(model: Any, X: Any, strategy: str) -> np.ndarray:
    """The informativeness of a label by one of the named criteria; larger is better."""
    if strategy not in STRATEGIES[:-1]:
        raise ValueError(f"strategy must be one of {', '.join(map(repr, STRATEGIES))} or a function; got {strategy!r}.")
    if strategy == "committee":
        if not isinstance(model, list | tuple):
            raise ValueError('strategy="committee" needs a list of fitted classifiers.')
        classes = np.unique(np.concatenate([member.classes_ for member in model]))
        votes = np.mean([member.predict(X)[:, None] == classes for member in model], axis=0)
        return np.sum(scipy.special.entr(votes), axis=1)
    if not hasattr(model, "predict_proba"):
        if strategy == "entropy":
            raise ValueError(f"entropy needs probabilities; {type(model).__name__} has none. Use strategy='margin'.")
        scores = model.decision_function(X)
        if scores.ndim == 1:
            return -np.abs(scores)
        ranked = np.sort(scores, axis=1)
        return ranked[:, -2] - ranked[:, -1]
    P = model.predict_proba(X)
    if strategy == "uncertainty":
        return 1.0 - P.max(axis=1)
    if strategy == "entropy":
        return np.sum(scipy.special.entr(P), axis=1)
    ranked = np.sort(P, axis=1)
    return ranked[:, -2] - ranked[:, -1]


@dataclass(frozen=True)
class LabelCurve:
    """Scores on test data against the number of labels, for one strategy and several repetitions.

    Attributes
    ----------
    labels : array
        Numbers of labels.
    scores : array of shape (repetitions, len(labels))
        The score after so many labels.
    chosen : list of arrays
        The queried rows, in order, per repetition.
    strategy : str
        How the rows were chosen.
    """

    strategy: str
    labels: np.ndarray
    scores: np.ndarray
    chosen: list[np.ndarray]

    @property
    def mean(self) -> np.ndarray:
        return self.scores.mean(axis=0)

    def needed(self, score: float) -> float:
        """The smallest number of labels from which on the mean score is at least this good; NaN if there is none."""
        good = self.mean >= score
        stays = np.flip(np.logical_and.accumulate(np.flip(good)))
        return float(self.labels[np.argmax(stays)]) if stays.any() else float("nan")


@dataclass(frozen=True)
class LabelCurves:
    """Curves of several strategies on the same data, "random" among them.

    Attributes
    ----------
    curves : dict of LabelCurve
        By the name of the strategy.
    metric : str
        The name of the score.
    """

    curves: dict[str, LabelCurve]
    metric: str

    def labels_saved(self, strategy: str) -> tuple[np.ndarray, np.ndarray]:
        """(labels that random choice needs, the fraction that the strategy saves), for every score that random reaches.

        A fraction of 0.4 at 100 labels means that the strategy reaches with 60 labels what random choice reaches with 100.
        """
        random, other = self.curves["random"], self.curves[strategy]
        random_needs = np.array([random.needed(score) for score in random.mean])
        strategy_needs = np.array([other.needed(score) for score in random.mean])
        reached = ~np.isnan(random_needs)
        return random_needs[reached], 1.0 - strategy_needs[reached] / random_needs[reached]


def active_curves(
    learner: BaseEstimator,
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    *,
    strategies: Iterable[Any] = ("random", "margin"),
    start: int = 10,
    batch: int = 1,
    budget: int = 100,
    repeats: int = 5,
    members: int = 5,
    scoring: Any = None,
    random_state: int = 0,
) -> LabelCurves:
    """Run active learning on a labelled pool, to measure how many labels a strategy saves.

    Every strategy starts with the same ``start`` random labels (of at least two classes) and queries ``batch`` more at a
    time; after each batch the learner is refitted and scored on the test data.

    Parameters
    ----------
    learner : classifier
        With ``predict_proba`` or ``decision_function``.
    X, y : the pool and its labels, which a strategy sees only after asking
        Rows to choose from.
    X_test, y_test : data to score on
        Rows that are never chosen.
    strategies : names, or functions of (model, X)
        Strategies of :func:`hinge.active.query` to compare; "random" is always run.
    start : int
        Labels to begin with.
    batch : int
        Labels to ask for at a time.
    budget : int
        Labels to end with.
    repeats : int
        How often, with other random starts.
    members : int
        The size of a committee.
    scoring : str or callable, optional
        The learner's own score if absent.
    random_state : int
        Seed of the starts; the same one gives the same curves.

    Returns
    -------
    LabelCurves

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = (X[:, 0] > 0.2).astype(int)
    >>> curves = hg.active.active_curves(hg.LogisticRegression(C=10.0), X[:200], y[:200], X[200:], y[200:], budget=30, batch=5)
    >>> bool(curves.curves["margin"].mean[-1] >= curves.curves["random"].mean[-1])
    True
    """
    check_indices(X)
    check_indices(X_test)
    y, n = np.asarray(y), _num_samples(X)
    if not 2 <= start < budget <= n or batch < 1:
        raise ValueError(f"need 2 ≤ start < budget ≤ {n} (the pool) and batch ≥ 1; got {start}, {budget}, {batch}.")
    scorer = check_scoring(learner, scoring=scoring)
    named = {s if isinstance(s, str) else s.__name__: s for s in ("random", *strategies)}
    labels = np.unique(np.append(np.arange(start, budget, batch), budget))
    runs: dict[str, Any] = {name: [] for name in named}
    for repeat in range(repeats):
        first = _first_labels(y, start, np.random.default_rng([random_state, repeat]))
        for name, strategy in named.items():
            rng = np.random.default_rng([random_state, repeat, 1])
            runs[name].append(_one_run(learner, X, y, X_test, y_test, strategy, first, labels, members, scorer, rng))
    curves = {
        name: LabelCurve(name, labels, np.array([scores for scores, _ in found]), [rows for _, rows in found])
        for name, found in runs.items()
    }
    return LabelCurves(curves, str(scoring or "score"))


def _first_labels(y: np.ndarray, start: int, rng: np.random.Generator) -> np.ndarray:
    """Random rows, redrawn until they have two classes."""
    if len(np.unique(y)) < 2:
        raise ValueError("y has only one class: there is nothing to learn.")
    while True:
        rows = rng.permutation(len(y))[:start]
        if len(np.unique(y[rows])) > 1:
            return rows


def _one_run(
    learner: Any, X: Any, y: np.ndarray, X_test: Any, y_test: Any, strategy: Any, first: np.ndarray,
    labels: np.ndarray, members: int, scorer: Any, rng: np.random.Generator,
) -> tuple[list[float], np.ndarray]:  # fmt: skip
    chosen, scores = [int(i) for i in first], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for k, count in enumerate(labels):
            model = clone(learner).fit(_safe_indexing(X, chosen), y[chosen])
            scores.append(float(scorer(model, X_test, y_test)))
            if k + 1 == len(labels):
                break
            unlabelled = np.setdiff1d(np.arange(len(y)), chosen)
            queried_model = model
            if strategy == "committee":
                queried_model = [_bootstrapped(learner, X, y, np.array(chosen), rng) for _ in range(members)]
            seed = int(rng.integers(2**31))
            queried = query(
                queried_model,
                _safe_indexing(X, unlabelled),
                strategy,
                batch=int(labels[k + 1] - count),
                random_state=seed,
            )
            chosen += [int(i) for i in unlabelled[queried]]
    return scores, np.array(chosen)


def _bootstrapped(learner: Any, X: Any, y: np.ndarray, rows: np.ndarray, rng: np.random.Generator) -> Any:
    """A clone fitted to a bootstrap sample with all classes found so far, so that members predict the same classes."""
    first = np.unique(y[rows], return_index=True)[1]
    drawn = np.concatenate([rows[first], rng.choice(rows, size=len(rows) - len(first))])
    return clone(learner).fit(_safe_indexing(X, drawn), y[drawn])
