"""Logistic regression with its strength chosen by cross-validation."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import check_scoring, get_scorer, make_scorer

from hinge._parameters import Constraints, above, count, numbers, one_of, shared
from hinge.models.base import signs
from hinge.models.linear.base import elastic_penalty
from hinge.models.linear.certify import CertifiedAs
from hinge.models.linear.logistic import LogisticClassifier, LogisticRegression
from hinge.models.routing import folds_of, route, router, routing_enabled, take_arguments
from hinge.problem.losses import Logistic, Softmax
from hinge.problem.objective import Objective, make_objective
from hinge.select.choice import choose_candidate

FOLD_TOL = 1e-4  # smaller gaps do not change the scores on folds
NEVER = 36.0  # a class absent from a fold has a score lower by this: e^−36 is below rounding
OLD_PENALTIES = {"l2": [0.0], "l1": [1.0]}


class LogisticRegressionCV(CertifiedAs, LogisticClassifier):
    """Logistic regression, C Σ sᵢ ℓ(yᵢ, f(xᵢ)) + ρ‖w‖₁ + (1−ρ)/2·‖w‖², with C and ρ chosen by cross-validation.

    In every fold the fits go from the strongest penalty to the weakest, each warm-started from the previous one.

    Parameters
    ----------
    Cs : int or array
        The candidates for C, or how many between 1e-4 and 1e4.
    l1_ratios : array, optional
        The candidates for ρ; 0 (the L2 penalty) if absent.
    fit_intercept : bool
        Whether there is a bias; it is not penalised.
    cv : int, splitter or iterable, optional
        Five stratified folds if absent.
    scoring : str or callable, optional
        A scikit-learn scorer; the negative log-loss if absent.
    max_iter : int, optional
        A limit on iterations.
    tol : float
        The relative duality gap to reach.
    class_weight : dict or "balanced", optional
        Factors on the weights of the classes.
    refit : bool
        Fit on all the data with the chosen values (True), or average the chosen weights of the folds (False).
    rule : {"best", "one-standard-error"}
        The best C, or the smallest whose score is within one standard error of the best.
    solver : str
        "auto" or the name of a solver, ours or scikit-learn's; ``solver_`` shows which one ran.
    penalty, dual, n_jobs, verbose, intercept_scaling, random_state, use_legacy_attributes
        Accepted for compatibility. ``penalty`` is the former way to say ``l1_ratios``.

    Attributes
    ----------
    C_, l1_ratio_ : float
        The chosen values.
    scores_ : array of shape (folds, number of ρ, number of C)
    coefs_paths_ : array of shape (folds, number of ρ, number of C, classes or 1, features, and one for the bias)
    Cs_, l1_ratios_ : arrays
    classes_, coef_, intercept_, n_iter_ : as in scikit-learn
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 2))
    >>> model = hg.LogisticRegressionCV(Cs=[0.01, 1.0]).fit(X, X[:, 0] + 0.3 * rng.normal(size=80) > 0)
    >>> model.C_
    1.0
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("cv", "class_weight", "rule"),
        "max_iter": [count(0), None],
        "Cs": [count(), numbers(0, open_low=True, flat=True)],
        "l1_ratios": [numbers(0, flat=True), one_of("warn"), None],
        "dual": ["boolean"],
        "penalty": [one_of("l1", "l2", "elasticnet", "deprecated")],
        "scoring": [str, callable, None],
        "refit": ["boolean"],
        "intercept_scaling": [above(0)],
        "use_legacy_attributes": ["boolean", one_of("warn")],
    }

    def __init__(
        self,
        *,
        Cs: Any = 10,
        l1_ratios: Any = None,
        fit_intercept: bool = True,
        cv: Any = None,
        dual: bool = False,
        penalty: Any = "deprecated",
        scoring: Any = None,
        solver: Any = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        class_weight: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        refit: bool = True,
        intercept_scaling: float = 1.0,
        random_state: int | None = None,
        use_legacy_attributes: Any = False,
        rule: str = "best",
    ) -> None:
        self.Cs = Cs
        self.l1_ratios = l1_ratios
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.dual = dual
        self.penalty = penalty
        self.scoring = scoring
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.refit = refit
        self.intercept_scaling = intercept_scaling
        self.random_state = random_state
        self.use_legacy_attributes = use_legacy_attributes
        self.rule = rule

    def get_metadata_routing(self) -> Any:
        """The splitter and the scorer receive the arguments of ``fit`` and ``score`` that they have requested."""
        scorer = (self._scorer(), {"fit": "score", "score": "score"})
        return router(self, splitter=(self.cv, {"fit": "split"}), scorer=scorer)

    def _scorer(self) -> Any:
        return get_scorer("accuracy") if self.scoring is None else check_scoring(self, scoring=self.scoring)

    def _labelled(self, scorer: Any) -> Any:
        """The scorer with all labels, if its measure takes them, because a fold may lack some."""
        measure = getattr(scorer, "_score_func", None)
        if measure is None or "labels" not in inspect.signature(measure).parameters:
            return scorer
        options = {"labels": self.classes_} | scorer._kwargs
        if len(self.classes_) == 2 and "pos_label" in inspect.signature(measure).parameters:
            options.setdefault("pos_label", self.classes_[1])
        labelled = make_scorer(
            measure, greater_is_better=scorer._sign > 0, response_method=scorer._response_method, **options
        )
        return labelled

    def score(self, X: Any, y: Any, sample_weight: Any = None, **score_params: Any) -> float:
        """The score named by ``scoring``, by default accuracy; ``score_params`` are passed to it if routing is enabled."""
        routed = route(self, "score", score_params, sample_weight=sample_weight)
        weighted = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(self._scorer()(self, X, y, **(routed.scorer.score if routing_enabled() else weighted)))

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> LogisticRegressionCV:
        """Choose C and ρ and fit with them; a weight of 2 is equivalent to repeating the example.

        ``params`` are passed to the splitter and the scorer if metadata routing is enabled.
        """
        routed = route(self, "fit", params, sample_weight=sample_weight)
        X, codes, weights = self._check(X, y, sample_weight)
        self.Cs_ = np.geomspace(1e-4, 1e4, self.Cs) if np.ndim(self.Cs) == 0 else np.asarray(self.Cs, dtype=np.float64)
        ratios = OLD_PENALTIES.get(self.penalty, self.l1_ratios)
        if self.penalty == "elasticnet" and ratios is None:
            raise ValueError("l1_ratios must be specified when penalty is elasticnet.")
        self.l1_ratios_ = np.array([0.0]) if ratios is None else np.atleast_1d(np.asarray(ratios, dtype=np.float64))
        rows = X.tocsr() if hasattr(X, "tocsr") else X
        s = np.ones(len(codes)) if weights is None else weights
        scores, fits, iterations = self._folds(rows, np.asarray(y), codes, s, routed)
        self.scores_ = scores
        self.coefs_paths_ = np.array([[[self._row(*start) for start in line] for line in fold] for fold in fits])
        flat = -scores.reshape(len(scores), -1).T
        choice = choose_candidate(flat, np.tile(self.Cs_, len(self.l1_ratios_)))
        at, position = divmod(choice.pick(self.rule), len(self.Cs_))
        self.C_, self.l1_ratio_ = float(self.Cs_[position]), float(self.l1_ratios_[at])
        objective = self._objective(X, codes, s)
        penalty = elastic_penalty(1.0 / (self.C_ * objective.weight_sum), self.l1_ratio_)
        result = self._solve(objective.with_penalty(penalty))
        self._adopt(result, X.dtype)
        self.n_iter_ = iterations
        if not self.refit:
            w, b = (np.mean([fold[at][position][part] for fold in fits], axis=0) for part in (0, 1))
            adopt_weights(self, w, b, X.dtype)
        return self

    def _chosen(self) -> LogisticRegression:
        return LogisticRegression(
            C=self.C_, l1_ratio=self.l1_ratio_, fit_intercept=self.fit_intercept, class_weight=self.class_weight,
            tol=self.tol,
        )  # fmt: skip

    def _row(self, w: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Weights of a fold, one row per class (one for two classes), with the bias last if there is one."""
        w = np.atleast_2d(w.T)
        return np.column_stack([w, np.atleast_1d(b)]) if self.fit_intercept else w

    def _objective(
        self, X: Any, codes: np.ndarray, weights: np.ndarray, present: np.ndarray | None = None
    ) -> Objective:
        """The risk of all classes, or of those ``present``."""
        k = len(self.classes_)
        options: dict[str, Any] = {"sample_weight": weights, "fit_intercept": self.fit_intercept}
        if k == 2:
            return make_objective(X, signs(codes), Logistic(), **options)
        if present is not None and len(present) < k:
            k, codes = len(present), np.searchsorted(present, codes)
        return make_objective(X, codes.astype(np.float64), Softmax(), classes=k, **options)

    def _with_absent(self, w: np.ndarray, b: np.ndarray, present: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights and biases of all classes from those of a fold, which never predicts an absent class."""
        k = len(self.classes_)
        if len(present) == k:
            return w, b
        if k == 2:  # one class only
            return np.zeros_like(w), np.array([NEVER if present[0] else -NEVER])
        every, biases = np.zeros((len(w), k)), np.full(k, np.min(b, initial=0.0) - NEVER)
        every[:, present], biases[present] = w, b
        return every, biases

    def _folds(
        self, X: Any, y: np.ndarray, codes: np.ndarray, s: np.ndarray, routed: Any
    ) -> tuple[np.ndarray, list[Any], np.ndarray]:
        """Scores, folds × ρ × C, the corresponding weights and biases, and the numbers of iterations."""
        fold = LogisticRegression()
        fold.classes_, fold.n_features_in_ = self.classes_, X.shape[1]
        scorer = None if self.scoring in (None, "neg_log_loss") else self._labelled(self._scorer())
        weighted = {} if np.all(s == 1) else {"sample_weight": s}
        options = dict(routed.scorer.score) if routing_enabled() else weighted
        order = np.argsort(self.Cs_)
        scores, fits, iterations = [], [], []
        for train, test in folds_of(self.cv, X, y, routed.splitter.split, classify=True):
            train, test = train[s[train] > 0], test[s[test] > 0]
            if len(test) == 0:
                continue
            present = np.unique(codes[train])
            objective = self._objective(X[train], codes[train], s[train], present)
            held_out = self._objective(X[test], codes[test], s[test])
            table = np.empty((len(self.l1_ratios_), len(self.Cs_)))
            steps = np.empty(table.shape, dtype=np.int32)
            solutions: list[list[Any]] = [[None] * len(self.Cs_) for _ in self.l1_ratios_]
            for i, ratio in enumerate(self.l1_ratios_):
                # Weights are nearly linear in log C, so a fit starts from an extrapolation of the last two.
                start = last = None
                for position in order:
                    penalty = elastic_penalty(1.0 / (self.Cs_[position] * objective.weight_sum), float(ratio))
                    at, tol = objective.with_penalty(penalty), max(self.tol, FOLD_TOL)
                    now = (np.zeros(X.shape[1]), np.zeros(1))
                    steps[i, position] = 0
                    if len(present) > 1:
                        solution = self._solve_uncertified(at, start, tol=tol, proved=False)
                        now, steps[i, position] = (solution.w, solution.b), solution.iterations
                    start = now if last is None else (2.0 * now[0] - last[0], 2.0 * now[1] - last[1])
                    last = now
                    now = solutions[i][position] = self._with_absent(*now, present)
                    if scorer is None:
                        table[i, position] = -held_out.risk(*now)
                    else:
                        adopt_weights(fold, *now, X.dtype)
                        table[i, position] = scorer(fold, X[test], y[test], **take_arguments(X, options, test))
            scores.append(table)
            fits.append(solutions)
            iterations.append(steps)
        return np.array(scores), fits, np.array(iterations)


def adopt_weights(model: LogisticClassifier, w: np.ndarray, b: np.ndarray, dtype: Any) -> None:
    """Give a classifier these weights and biases."""
    model.coef_ = np.atleast_2d(w.T).astype(dtype)
    model.intercept_ = np.atleast_1d(b).astype(dtype)
