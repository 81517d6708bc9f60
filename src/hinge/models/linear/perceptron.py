"""Rosenblatt's perceptron, and the bound on the number of its mistakes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.model_selection import train_test_split

from hinge._parameters import Constraints, above, at_least, one_of, shared
from hinge.models.base import check_predict, require_no_overflow
from hinge.models.linear.base import LinearClassifier, dense, named_penalty, seed_of, weights_of_rows
from hinge.models.linear.perceptron_run import Run, ShrinkingRun, Walk
from hinge.solvers.stochastic import rows_of


class Perceptron(LinearClassifier):
    """Rosenblatt's perceptron: after every mistake, yᵢ(⟨w, xᵢ⟩ + b) ≤ 0, w ← w + ηsᵢyᵢxᵢ and b ← b + ηsᵢyᵢ.

    Processes the examples until an epoch has no mistake or ``max_iter`` is reached. If the classes are separable it
    stops after at most (R/γ)² mistakes, and ``bound_`` is that number. Several classes are trained one against the
    others.

    The weight sᵢ of an example (``sample_weight`` times the weight of its class; 1 by default) scales its steps, and
    its visits count sᵢ times in the average and in the votes. Weight zero means absent; weight two is one step of
    double length, which is not the same as two copies of the example.

    With a penalty every visit also shrinks the weights, whether or not it is a mistake: stochastic gradient descent on
    Σ sᵢ max(0, −yᵢ(⟨w, xᵢ⟩ + b))/n + α(ρ‖w‖₁ + (1−ρ)/2·‖w‖²) with steps of length η. The minimum of this objective is
    at w = 0, so the penalty only keeps weights small or sparse; the mistake bound does not hold then.

    Parameters
    ----------
    penalty : {"l2", "l1", "elasticnet", None}
        What shrinks the weights.
    alpha : float
        The strength α of the penalty.
    l1_ratio : float
        ρ, for ``penalty="elasticnet"``.
    fit_intercept : bool
        Whether there is a bias; without one the hyperplane goes through the origin.
    max_iter : int
        The largest number of epochs.
    tol : float or None
        Stop early when the (weighted) share of mistakes in an epoch has not fallen by this much for ``n_iter_no_change``
        epochs (with a penalty: the mean loss); None to go on to ``max_iter``.
    shuffle : bool
        Go through the examples in a new order in every epoch.
    eta0 : float
        The rate η: without a penalty it scales the weights and changes no prediction.
    random_state : int, RandomState or None
        The seed of the orders, and of what is held out; None is 0.
    early_stopping : bool
        Hold out a share of the examples, and let ``tol`` judge the share of mistakes among those.
    validation_fraction : float
        The share held out.
    n_iter_no_change : int
        See ``tol``.
    warm_start : bool
        Begin at the weights of the last fit.
    average : {False, True, "voted"}
        Predict with the last weights, their average over all visits, or a vote of all of them, each with as many votes
        as examples it survived (two classes only).
    class_weight : dict or "balanced", optional
        Factors on the weights of the classes. With more than two, each class against the others has the factor of
        that class on its own examples, and one on the others.
    verbose, n_jobs
        Accepted for compatibility.

    Attributes
    ----------
    classes_, coef_, intercept_, n_iter_, t_ : as in scikit-learn
    mistakes_ : array of int
        How many mistakes each binary problem made; with a penalty, how many its weights made at the ends of the epochs.
    mistakes_per_epoch_ : list of arrays
        The same, epoch by epoch.
    bound_ : MistakeBound or None
        For two classes: R, γ and (R/γ)² with the weights found as the separating direction; None if they do not
        separate the training data, or if there is a penalty.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.array([[2.0, 1.0], [1.0, 2.0], [-1.0, -2.0], [-2.0, -1.0]])
    >>> model = hg.Perceptron(fit_intercept=False).fit(X, [1, 1, -1, -1])
    >>> int(model.mistakes_[0]), bool(model.mistakes_[0] <= model.bound_.bound)
    (1, True)
    """

    weight_semantics = "step"
    _state: list[Walk]

    _parameter_constraints: ClassVar[Constraints] = {
        **shared(
            "l1_ratio",
            "max_iter",
            "shuffle",
            "early_stopping",
            "validation_fraction",
            "n_iter_no_change",
            "class_weight",
        ),
        "penalty": [one_of("l2", "l1", "elasticnet"), None],
        "alpha": [at_least(0)],
        "tol": [at_least(0), None],
        "eta0": [above(0)],
        "average": ["boolean", one_of("voted")],
    }

    def __init__(
        self,
        *,
        penalty: Any = None,
        alpha: float = 0.0001,
        l1_ratio: float = 0.15,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        shuffle: bool = True,
        verbose: int = 0,
        eta0: float = 1.0,
        n_jobs: int | None = None,
        random_state: Any = 0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        class_weight: Any = None,
        warm_start: bool = False,
        average: Any = False,
    ) -> None:
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.verbose = verbose
        self.eta0 = eta0
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.average = average

    def fit(
        self, X: Any, y: Any, coef_init: Any = None, intercept_init: Any = None, sample_weight: Any = None
    ) -> Perceptron:
        """Train until no example is misclassified, or for ``max_iter`` epochs."""
        X, targets, weights = self._check_stream(X, y, sample_weight)
        self._check_options()
        self._state = self._walks(len(targets), X.shape[1], coef_init, intercept_init)
        runs, held = self._split_runs(X, targets, weights)
        for run, validation in zip(runs, held):
            run.train(validation)
        self._show(X.dtype)
        self.t_ = float(self.n_iter_ * X.shape[0] + 1)
        self.bound_ = runs[0].bound() if len(runs) == 1 and self.penalty is None else None
        self.voters_: Any = runs[0].voters() if self.average == "voted" else None
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Perceptron:
        """One epoch over a piece of data; ``classes`` lists all labels and is needed in the first call only."""
        first = not hasattr(self, "_state")
        X, targets, weights = self._check_stream(X, y, sample_weight, classes=classes, piece=True, first=first)
        self._check_options()
        if self.average == "voted":
            raise ValueError("average='voted' keeps the examples it mistook; use average=True with partial_fit.")
        if first:
            self._state, self.t_, self.bound_, self.voters_ = self._walks(len(targets), X.shape[1]), 1.0, None, None
        runs = self._runs(X, targets, weights)
        for run in runs:
            run.epoch()
        self._show(X.dtype)
        self.t_ += float(X.shape[0])
        return self

    def _runs(self, X: Any, targets: list[np.ndarray], weights: list[np.ndarray | None]) -> list[Run]:
        rows, seed = rows_of(X), seed_of(self.random_state)
        if self.penalty is None:
            return [Run(self, rows, y, s, walk, seed) for y, s, walk in zip(targets, weights, self._state)]
        penalty = named_penalty(self.penalty, self.alpha, self.l1_ratio)
        return [
            ShrinkingRun(self, rows, y, s, walk, seed, penalty) for y, s, walk in zip(targets, weights, self._state)
        ]

    def _split_runs(
        self, X: Any, targets: list[np.ndarray], weights: list[np.ndarray | None]
    ) -> tuple[list[Run], list[Run | None]]:
        """The runs on the training examples, and those on the held-out examples (None without early stopping)."""
        if not self.early_stopping:
            return self._runs(X, targets, weights), [None] * len(targets)
        train, held = train_test_split(
            np.arange(X.shape[0]), test_size=float(self.validation_fraction), random_state=seed_of(self.random_state)
        )
        X = X.tocsr() if scipy.sparse.issparse(X) else X
        training, validation = (
            self._runs(X[rows], [y[rows] for y in targets], weights_of_rows(weights, rows)) for rows in (train, held)
        )
        return training, list(validation)

    def _show(self, dtype: Any) -> None:
        shown = [walk.weights(self.average is True) for walk in self._state]
        self.coef_ = np.array([w for w, _ in shown], dtype=dtype)
        self.intercept_ = np.array([b for _, b in shown], dtype=dtype)
        with np.errstate(over="ignore"):
            size = np.sum(self.coef_**2)
        require_no_overflow(size)
        self.mistakes_per_epoch_ = [np.array(walk.counts) for walk in self._state]
        self.mistakes_ = np.array([counts.sum() for counts in self.mistakes_per_epoch_])
        self.n_iter_ = max(len(counts) for counts in self.mistakes_per_epoch_)

    def _check_options(self) -> None:
        if self.average == "voted" and len(self.classes_) > 2:
            raise ValueError(f"average='voted' is for two classes; y has {len(self.classes_)}. Use average=True.")
        if self.average == "voted" and self.penalty is not None:
            raise ValueError(
                "average='voted' keeps the examples of the mistakes only; use average=True with a penalty."
            )

    def _walks(self, count: int, d: int, coef: Any = None, intercept: Any = None) -> list[Walk]:
        if coef is None and self.warm_start and hasattr(self, "coef_") and self.coef_.shape == (count, d):
            coef, intercept = dense(self.coef_), self.intercept_
        coef = np.zeros((count, d)) if coef is None else np.array(coef, dtype=np.float64).reshape(count, d)
        intercept = np.zeros(count) if intercept is None else np.array(intercept, dtype=np.float64).reshape(count)
        return [Walk(w, float(b), np.zeros(d), np.zeros(d + 1)) for w, b in zip(coef, intercept)]

    def decision_function(self, X: Any) -> np.ndarray:
        """The scores; for the voted perceptron, the votes for ``classes_[1]`` minus those against, per visit."""
        if getattr(self, "voters_", None) is None:
            return super().decision_function(X)
        examples, steps, votes = self.voters_
        X = check_predict(self, X)
        products = np.asarray((X @ examples.T).todense() if scipy.sparse.issparse(X) else X @ examples.T)
        if self.fit_intercept:
            products = products + 1.0
        signs_of_all = np.sign(np.cumsum(products * steps, axis=1))
        return (signs_of_all @ (votes / votes.sum())).astype(self.coef_.dtype)
