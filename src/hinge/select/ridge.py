"""Ridge regression with its strength chosen by exact leave-one-out or by folds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import check_scoring, get_scorer

from hinge._native import Design
from hinge._parameters import Constraints, above, numbers, one_of, shared
from hinge.models.base import is_column, require_no_overflow
from hinge.models.linear.base import LinearRegressor
from hinge.models.linear.certify import CertifiedAs
from hinge.models.linear.least_squares import Ridge
from hinge.models.routing import Arguments, folds_of, route, router, routing_enabled, take_arguments
from hinge.problem.certificates.certificate import with_run
from hinge.problem.certificates.linear import certificate
from hinge.problem.losses import Squared
from hinge.problem.numerics import OVERFLOWED
from hinge.problem.objective import make_objective
from hinge.problem.penalties import L2
from hinge.select.choice import choose_candidate
from hinge.select.precomputed import PrecomputedRegressor
from hinge.solvers.base import Solution, Status
from hinge.solvers.ridge_path import RidgePath
from hinge.solvers.run import Result


def scorer_or(estimator: Any, default: str) -> Any:
    """The scorer of an estimator by its parameter ``scoring``, or a default one, which takes weights."""
    if estimator.scoring is not None:
        return check_scoring(estimator, scoring=estimator.scoring)
    scorer = get_scorer(default)
    return scorer.set_score_request(sample_weight=True) if routing_enabled() else scorer


class RidgeCV(CertifiedAs, LinearRegressor):
    """Ridge regression, Σ sᵢ (yᵢ − ⟨w, xᵢ⟩ − b)² + α‖w‖², with α chosen by cross-validation.

    One factorisation on the smaller side, d × d or n × n, gives the fits for all strengths and their exact leave-one-out
    errors.

    Parameters
    ----------
    alphas : array of numbers > 0
        The candidates. With folds, 0 may be one of them.
    fit_intercept : bool
        Whether there is a bias b; it is not penalised.
    scoring : str or callable, optional
        A scikit-learn scorer; if absent, the negative mean squared error with leave-one-out and R² with folds, as in
        scikit-learn. With leave-one-out it is applied to the left-out predictions as a whole.
    cv : int, splitter or iterable, optional
        Leave-one-out if absent.
    gcv_mode : str, optional
        Accepted for compatibility: the smaller side is chosen.
    store_cv_results : bool
        Keep every left-out squared error (or prediction, with ``scoring``) in ``cv_results_``.
    alpha_per_target : bool
        Choose α for every target separately (leave-one-out only).
    rule : {"best", "one-standard-error"}
        The best α, or the largest whose error is within one standard error of it.

    Attributes
    ----------
    alpha_, best_score_, coef_, intercept_, cv_results_ : as in scikit-learn
    errors_ : array with one number per α
        The mean left-out error (with ``scoring`` or folds, minus the score).
    coef_path_, intercept_path_ : arrays
        The weights for every α, on all the data.
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.random.default_rng(0).normal(size=(30, 3))
    >>> model = hg.RidgeCV(alphas=[1e-3, 1.0, 1e3]).fit(X, X @ [1.0, 2.0, 3.0])
    >>> float(model.alpha_)
    0.001
    """

    ridge_form = True

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("cv", "rule"),
        "alphas": [numbers(0, flat=True), above(0)],
        "scoring": [str, callable, None],
        "gcv_mode": [one_of("auto", "svd", "eigen"), None],
        "store_cv_results": ["boolean"],
        "alpha_per_target": ["boolean"],
    }

    _constant_tags: ClassVar[dict[str, bool]] = {"target_tags.multi_output": True}

    def __init__(
        self,
        alphas: Any = (0.1, 1.0, 10.0),
        *,
        fit_intercept: bool = True,
        scoring: Any = None,
        cv: Any = None,
        gcv_mode: str | None = None,
        store_cv_results: bool = False,
        alpha_per_target: bool = False,
        rule: str = "best",
    ) -> None:
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.scoring = scoring
        self.cv = cv
        self.gcv_mode = gcv_mode
        self.store_cv_results = store_cv_results
        self.alpha_per_target = alpha_per_target
        self.rule = rule

    def get_metadata_routing(self) -> Any:
        """The splitter and the scorer receive the arguments of ``fit`` that they have requested."""
        return router(self, scorer=(self._scorer(), {"fit": "score"}), splitter=(self.cv, {"fit": "split"}))

    def _scorer(self) -> Any:
        """The scorer; R² with folds if none is given, as in scikit-learn."""
        return scorer_or(self, "r2")

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> RidgeCV:
        """Fit; a weight of 2 is equivalent to repeating the example.

        ``params`` are passed to the splitter and the scorer if metadata routing is enabled.
        """
        routed = route(self, "fit", params, sample_weight=sample_weight)
        column = is_column(y)
        X, y, weights = self._check(X, y, sample_weight, several=True)
        if len(y) < 2:
            raise ValueError("RidgeCV needs at least two examples, to leave one out; got n_samples = 1.")
        alphas = np.ravel(self.alphas).astype(np.float64)
        self._check_choices(alphas)
        weights = np.ones(len(y)) if weights is None else weights
        used = np.flatnonzero(weights > 0)
        X0, y0, weights0 = (X, y, weights) if len(used) == len(y) else (X[used], y[used], weights[used])
        path = RidgePath(Design(X0), y0, weights0, self.fit_intercept)
        if self.cv is None:
            options = _score_options(X, routed, weights, used)
            errors = self._left_out(path, y0, weights0, alphas, options, matrix=y.ndim == 2 or column)
        else:
            errors = self._folds(X, y, weights, alphas, routed)
        # A score may be undefined (R² of one example); then no strength is better than the first.
        undefined = [bool(np.all(np.isnan(e.mean(axis=1)))) for e in errors]
        chosen = np.array([0 if u else choose_candidate(e, -alphas).pick(self.rule) for e, u in zip(errors, undefined)])
        means = np.stack([e.mean(axis=1) for e in errors])
        self.errors_ = means if self.alpha_per_target else means[0]
        self.best_score_ = -means[np.arange(len(chosen)), chosen]
        self.alpha_ = alphas[chosen]
        if not (self.alpha_per_target and y.ndim == 2):
            self.best_score_, self.alpha_ = float(self.best_score_[0]), float(self.alpha_[0])
        self._adopt_path(path, X0, y0, weights0, alphas)
        self._show_as_column(column)
        return self

    def _check_choices(self, alphas: np.ndarray) -> None:
        """Raises an error for options that only leave-one-out, or only folds, supports."""
        if self.cv is None:
            for i in np.flatnonzero(alphas == 0)[:1]:
                raise ValueError(
                    f"alphas[{i}] == {alphas[i]}, must be > 0.0. Set cv to a number of folds to try no penalty, too."
                )
            return
        for name in ("store_cv_results", "alpha_per_target"):
            if getattr(self, name):
                raise ValueError(f"cv!=None and {name}=True are incompatible: {name} needs leave-one-out, cv=None.")

    def _chosen(self) -> Ridge:
        return Ridge(self.alpha_, fit_intercept=self.fit_intercept)

    def _left_out(
        self,
        path: RidgePath,
        y: np.ndarray,
        weights: np.ndarray,
        alphas: np.ndarray,
        options: Arguments,
        *,
        matrix: bool,
    ) -> list[np.ndarray]:
        """One array (α × examples) of errors per choice; their weighted mean is the leave-one-out error."""
        residuals = path.leave_one_out(alphas)  # n × k × α
        if not np.any(np.isfinite(residuals)):
            raise ValueError(OVERFLOWED)
        Y = y.reshape(len(y), -1)
        if self.scoring is not None:
            predictions = Y[:, :, None] - residuals
            if self.store_cv_results:
                self.cv_results_ = predictions if matrix else predictions[:, 0]
            return self._score_predictions(Y, predictions, options)
        squares = residuals**2
        if self.store_cv_results:
            self.cv_results_ = squares if matrix else squares[:, 0]
        # Scaled so that the unweighted mean over examples is the weighted mean.
        share = weights / weights.mean()
        if self.alpha_per_target:
            return [(share[:, None] * squares[:, j]).T for j in range(squares.shape[1])]
        return [(share[:, None] * squares.mean(axis=1)).T]

    def _score_predictions(self, Y: np.ndarray, predictions: np.ndarray, options: Arguments) -> list[np.ndarray]:
        scorer = self._scorer()
        columns = [[j] for j in range(Y.shape[1])] if self.alpha_per_target else [list(range(Y.shape[1]))]
        return [
            np.array(
                [
                    [
                        -scorer(
                            PrecomputedRegressor(predictions[:, which, a]),
                            np.empty((len(Y), 1)),
                            Y[:, which],
                            **options,
                        )
                    ]
                    for a in range(predictions.shape[2])
                ]
            )
            for which in columns
        ]

    def _folds(self, X: Any, y: np.ndarray, weights: np.ndarray, alphas: np.ndarray, routed: Any) -> list[np.ndarray]:
        scorer = self._scorer()
        columns = []
        for train, test in folds_of(self.cv, X, y, routed.splitter.split):
            train, test = train[weights[train] > 0], test[weights[test] > 0]
            if len(test) == 0:
                continue
            path = RidgePath(Design(X[train]), y[train], weights[train], self.fit_intercept)
            test_design, errors, options = Design(X[test]), [], _score_options(X, routed, weights, test)
            for alpha in alphas:
                W, b = path.coef(alpha)
                scores = test_design.matmul(W) + b
                require_no_overflow(scores)
                predicted = scores if y.ndim == 2 else scores[:, 0]
                errors.append(-scorer(PrecomputedRegressor(predicted), X[test], y[test], **options))
            columns.append(errors)
        return [np.array(columns).T]

    def _adopt_path(self, path: RidgePath, X: Any, y: np.ndarray, weights: np.ndarray, alphas: np.ndarray) -> None:
        fits = [path.coef(a) for a in alphas]
        W, B = np.stack([w for w, _ in fits]), np.stack([b for _, b in fits])  # α × d × k, α × k
        one = y.ndim == 1
        self.coef_path_ = W[:, :, 0] if one else W.transpose(0, 2, 1)
        self.intercept_path_ = B[:, 0] if one else B
        strengths = np.ravel(self.alpha_)
        w, b = path.coef(strengths[0])
        for j in range(1, len(strengths)):
            other, bias = path.coef(strengths[j])
            w[:, j], b[j] = other[:, j], bias[j]
        objective = make_objective(X, y, Squared(), sample_weight=weights, fit_intercept=self.fit_intercept)
        # With a strength per target the penalty differs between the columns of w, so each target has its certificate.
        parts = [(objective, w[:, 0] if one else w, b, strengths[0])]
        if len(strengths) > 1:
            parts = [
                (replace(objective, y=np.ascontiguousarray(y[:, j]), outputs=1), w[:, j], b[j : j + 1], a)
                for j, a in enumerate(strengths)
            ]
        certificates = [certificate(o.with_penalty(L2(a / o.weight_sum)), v, c) for o, v, c, a in parts]
        worst = max(certificates, key=lambda c: c.error)
        reported = with_run(worst, solver="ridge-path", iterations=1, seconds=0.0, status=Status.CONVERGED.value)
        self._adopt(Result(Solution(w[:, 0] if one else w, b, Status.CONVERGED, 1), reported), X.dtype)
        del self.n_iter_


def _score_options(X: Any, routed: Any, weights: np.ndarray, rows: np.ndarray) -> Arguments:
    """The scorer's requested arguments; without routing the weights, unless all are one: not every score takes them."""
    if routing_enabled():
        return take_arguments(X, routed.scorer.score, rows)
    return {} if np.all(weights[rows] == 1) else {"sample_weight": weights[rows]}
