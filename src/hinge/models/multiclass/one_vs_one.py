"""All pairs: one binary learner per pair of classes."""

from __future__ import annotations

from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    _num_samples,
    check_is_fitted,
)

from hinge._parameters import Constraints, has, one_of, shared
from hinge.models.multiclass.base import one_score_for_two
from hinge.models.multiclass.reductions import (
    Problem,
    Reduction,
    binary_scores,
    gives_probabilities,
    learns_in_pieces,
)
from hinge.models.routing import Arguments, take_arguments


class OneVsOneClassifier(Reduction):
    """One binary learner per pair of classes; predicts  argmax_i Σ_j (1[j<i] h_ji(x) − 1[i<j] h_ij(x)).

    Parameters
    ----------
    estimator : classifier
        The binary learner.
    vote : {"majority", "score", "probability"}
        Whether h_ij is the learner's sign (ties broken by the scores) or its score; with "probability" the learners'
        probabilities are coupled, which gives ``predict_proba``. Scores of different pairs are not on one scale: a
        pair that is easy to separate has large scores, and if the classes are ordered along a line, a class in the
        middle seldom has the largest sum of scores.
    n_jobs : int, optional
        How many learners to fit at once (threads).

    Attributes
    ----------
    classes_ : array
        The labels.
    pairs_ : list of (i, j), i < j
        The classes each learner tells apart; its score is positive for j.
    estimators_ : list
        The fitted learners, in the order of ``pairs_``.
    pairwise_indices_ : list of arrays, or None
        The rows that each learner was fitted to, if X holds a precomputed kernel.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.array([[0.0, 0], [0, 1], [5, 0], [5, 1], [0, 9], [1, 9]])
    >>> hg.OneVsOneClassifier(LogisticRegression()).fit(X, ["a", "a", "b", "b", "c", "c"]).predict([[4, 0]])
    array(['b'], dtype='<U1')
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("n_jobs"),
        "estimator": [has("fit")],
        "vote": [one_of("majority", "score", "probability")],
    }

    def __init__(self, estimator: Any, *, vote: str = "majority", n_jobs: int | None = None) -> None:
        self.estimator = estimator
        self.vote = vote
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> OneVsOneClassifier:
        """Fit one learner per pair of classes; ``fit_params`` go to the learners, with metadata routing enabled."""
        X, codes, arguments = self._check(X, y, sample_weight, fit_params)
        self._learn(self._in_pairs(X, codes, arguments))
        return self

    @available_if(learns_in_pieces)
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, *, sample_weight: Any = None, **partial_fit_params: Any
    ) -> OneVsOneClassifier:
        """Update every learner with the examples of its two classes in one more batch.

        ``classes`` lists all labels and is needed in the first call. A learner without examples of its classes cannot vote:
        call predict after every class has occurred.
        """
        X, codes, arguments, first = self._check_piece(X, y, classes, sample_weight, partial_fit_params)
        self._learn_piece(self._in_pairs(X, codes, arguments), first)
        return self

    def _in_pairs(self, X: Any, codes: np.ndarray, arguments: Arguments) -> list[Problem]:
        self.pairs_ = list(combinations(range(len(self.classes_)), 2))
        problems, rows_of_pairs = [], []
        for i, j in self.pairs_:
            rows = np.flatnonzero((codes == i) | (codes == j))
            part = take_arguments(X, arguments, rows)
            problems.append((self._take(X, rows), (codes[rows] == j).astype(np.intp), part))
            rows_of_pairs.append(rows)
        self.pairwise_indices_ = rows_of_pairs if get_tags(self.estimator).input_tags.pairwise else None
        return problems

    def _adopt_features(self) -> None:
        super()._adopt_features()
        if self.pairwise_indices_ is not None:  # one column per training example
            self.n_features_in_ = len(np.unique(np.concatenate(self.pairwise_indices_)))

    def _inputs(self, X: Any) -> list[Any]:
        """X for every learner: all of it, or the columns of its own examples if X holds kernel values."""
        if self.pairwise_indices_ is None:
            return [X] * len(self.estimators_)
        return [X[:, rows] for rows in self.pairwise_indices_]

    def _binary_scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return np.column_stack([binary_scores(learner, Z) for learner, Z in zip(self.estimators_, self._inputs(X))])

    def decision_function(self, X: Any) -> np.ndarray:
        """The sums of the votes (or the coupled probabilities), one column per class; for two classes one score."""
        if self.vote == "probability":
            return one_score_for_two(self.predict_proba(X))
        h = self._binary_scores(X)
        if len(self.classes_) == 2:
            return h[:, 0]
        sums = np.zeros((len(h), len(self.classes_)))
        votes = np.zeros_like(sums)
        # Scores are mapped into (−1, 1) first, so that no pair dominates by the scale of its scores.
        bounded = h / (1.0 + np.abs(h)) if self.vote == "majority" else h
        for column, (i, j) in enumerate(self.pairs_):
            sums[:, j] += bounded[:, column]
            sums[:, i] -= bounded[:, column]
            votes[:, j] += h[:, column] > 0
            votes[:, i] += h[:, column] <= 0
        # Sums of scores, mapped below half a vote, break ties between classes.
        return votes + sums / (3.0 * (1.0 + np.abs(sums))) if self.vote == "majority" else sums

    @available_if(lambda meta: meta.vote == "probability" and gives_probabilities(meta))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Pairwise coupling: p minimises Σ_{i<j} (r_ji p_i − r_ij p_j)² on the simplex's plane (Wu, Lin & Weng 2004).

        r_ij is the learner's probability of i against j.
        """
        check_is_fitted(self)
        k = len(self.classes_)
        n = _num_samples(X)
        Q = np.zeros((n, k + 1, k + 1))
        Q[:, :k, k] = Q[:, k, :k] = 1.0
        for learner, Z, (i, j) in zip(self.estimators_, self._inputs(X), self.pairs_):
            r = np.clip(np.asarray(learner.predict_proba(Z))[:, 0], 1e-7, 1 - 1e-7)  # of i against j
            Q[:, i, i] += (1 - r) ** 2
            Q[:, j, j] += r**2
            Q[:, i, j] -= r * (1 - r)
            Q[:, j, i] -= r * (1 - r)
        rhs = np.zeros((n, k + 1, 1))
        rhs[:, k] = 1.0
        p = np.maximum(np.linalg.solve(Q, rhs)[:, :k, 0], 0.0)
        return p / p.sum(axis=1, keepdims=True)
