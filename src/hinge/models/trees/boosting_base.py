"""Gradient boosting of histogram trees: options, bins, held-out rows, early stopping."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import column_or_1d

from hinge._native import core
from hinge._parameters import Constraints, Estimator, Groups, above, at_least, between, count, has, one_of, shared
from hinge.models.base import drop_absent
from hinge.models.callbacks import CallbackSupportMixin, iterations, with_callbacks
from hinge.models.trees.arrays import Trees
from hinge.models.trees.boosting_history import History
from hinge.models.trees.boosting_loss import EXACT_ROWS, BoostedLoss, rounds_of
from hinge.models.trees.boosting_options import INTERACTIONS, WeightFacts, boosting_options, of_moderate_weights
from hinge.models.trees.boosting_start import fitted_start
from hinge.models.trees.boosting_sum import BoostedSum
from hinge.models.trees.inputs import INT32, Binned, check_targets, fit_table, is_frequency, predict_table, weights_of
from hinge.models.trees.limits import TREE_LIMITS, feature_count
from hinge.models.trees.members import tree_limits

CRITERIA = (None, "friedman_mse", "squared_error", "deprecated")
ROUNDS = 100


class BaseBoosting(CallbackSupportMixin, BoostedSum, Estimator):
    """Base class of the classifier and the regressor."""

    _takes_infinity: ClassVar[bool] = True

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("max_iter", "warm_start", "tol", "verbose", "random_state"),
        **TREE_LIMITS,
        "loss": [str, has("value", "gradient")],
        "learning_rate": [above(0)],
        "l2_regularization": [at_least(0)],
        "max_bins": [count(2, 255)],
        "interaction_cst": [one_of(*INTERACTIONS), Groups(), None],
        "early_stopping": ["boolean", one_of("auto")],
        "scoring": [str, callable, None],
        "validation_fraction": [between(0, 1, "neither"), count(), None],
        "n_iter_no_change": [count(), None],
        "subsample": [between(0, 1, "right")],
        "min_gain": [at_least(0)],
        "grow": [one_of("leaf", "level")],
        "quantize": ["boolean", one_of("auto")],
        "n_estimators": [count(), None],
        "criterion": [one_of("friedman_mse", "squared_error", "deprecated"), None],
        "init": [one_of("zero"), has("fit", "predict"), None],
    }

    _constant_tags: ClassVar[dict[str, bool]] = {"input_tags.allow_nan": True, "input_tags.sparse": True}

    def __init__(
        self,
        loss: Any,
        learning_rate: float,
        max_iter: int,
        max_leaf_nodes: int | None,
        max_depth: int | None,
        min_samples_leaf: float,
        l2_regularization: float,
        max_features: Any,
        max_bins: int,
        categorical_features: Any,
        monotonic_cst: Any,
        interaction_cst: Any,
        warm_start: bool,
        early_stopping: Any,
        scoring: Any,
        validation_fraction: float,
        n_iter_no_change: int | None,
        tol: float,
        verbose: int,
        random_state: Any,
        subsample: float,
        min_gain: float,
        grow: str,
        quantize: Any,
        n_estimators: int | None,
        criterion: str | None,
        min_samples_split: float,
        min_weight_fraction_leaf: float,
        min_impurity_decrease: float,
        init: Any,
        ccp_alpha: float,
    ) -> None:
        self.loss = loss
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.max_features = max_features
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.warm_start = warm_start
        self.early_stopping = early_stopping
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.subsample = subsample
        self.min_gain = min_gain
        self.grow = grow
        self.quantize = quantize
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.min_samples_split = min_samples_split
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.min_impurity_decrease = min_impurity_decrease
        self.init = init
        self.ccp_alpha = ccp_alpha

    @property
    def rounds(self) -> int:
        """The number of rounds, from either parameter; max_iter at its default is ignored."""
        if self.n_estimators is None:
            return int(self.max_iter)
        if self.max_iter not in (ROUNDS, self.n_estimators):
            raise ValueError(
                f"n_estimators={self.n_estimators} and max_iter={self.max_iter} are two names of one thing; give one."
            )
        return int(self.n_estimators)

    @property
    def patience(self) -> int:
        """The number of rounds that early stopping waits for."""
        return 10 if self.n_iter_no_change is None else int(self.n_iter_no_change)

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
        init_score: Any = None,
        monitor: Any = None,
    ) -> Any:
        """Add trees one after the other.

        Parameters
        ----------
        X : array or dataframe of shape (n, d)
            Missing values are allowed; categories are read from the columns' types.
        y : array of n labels or targets
        sample_weight : array of n weights, optional
        X_val, y_val, sample_weight_val : validation data, optional
            Watched for early stopping; otherwise a share of the rows is set aside.
        init_score : array of n scores (n × k for k > 2 classes), optional
            Where boosting starts instead of the best constant. Not part of the predictions of the fitted model.
        monitor : callable, optional
            Called after each round as ``monitor(round, self, locals())``; boosting ends if it returns True.
        """
        watched = (X_val, y_val, sample_weight_val)
        return self._fit(X, y, sample_weight, watched, init_score=init_score, monitor=monitor)

    @with_callbacks
    def fit_sharing(self, X: Any, y: Any, sample_weight: Any = None, *, bins: dict[Any, Binned]) -> Any:
        """``fit`` with the binned table from ``bins``, or stored there for other settings on the same rows."""
        self._validate_params()
        return self._fit(X, y, sample_weight, bins=bins)

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        watched: tuple[Any, Any, Any] = (None, None, None),
        *,
        init_score: Any = None,
        monitor: Any = None,
        bins: dict[Any, Binned] | None = None,
    ) -> Any:
        X_val, y_val, sample_weight_val = watched
        self._check_validation(X_val, y_val)
        y = check_targets(self, X, y)
        X, coder = fit_table(self, X, self.categorical_features)
        weight = weights_of(sample_weight, X, getattr(self, "class_weight", None), y)
        if init_score is not None and weight is not None:
            init_score = np.asarray(init_score)[weight > 0]
        X, y, weight = drop_absent(X, y, weight)
        if self._continues():
            if coder.columns:
                raise ValueError("warm_start with categorical columns is not supported: categories may have changed.")
            if self.rounds < self.n_iter_:
                raise ValueError(f"{self.rounds} rounds were requested, but {self.n_iter_} are fitted already.")
        self._coder = coder
        targets, loss = self._targets(y)
        self._loss = loss
        if not self._continues():  # added rounds hold out the same rows as before
            self._seed = int(check_random_state(self.random_state).randint(INT32))
        seed = self._seed

        watch = None
        stop = self.early_stopping
        if isinstance(stop, str):
            stop = X_val is not None or self._stops_by_default(len(X))
        self.do_early_stopping_ = bool(stop)
        if stop:
            if X_val is not None:
                Xv = predict_table(self, X_val, coder)
                watch = (Xv, self._code_more(column_or_1d(y_val)), weights_of(sample_weight_val, Xv))
            elif init_score is None:
                X, targets, weight, watch = self._hold_out(X, targets, weight, seed)
            else:
                raise ValueError("early_stopping with init_score needs X_val and y_val.")
        with iterations(self, X, y, self.rounds) as report:
            self._boost(
                X, targets, weight, loss, watch, seed, init_score, report, monitor, {} if bins is None else bins
            )
        return self

    def _check_validation(self, X_val: Any, y_val: Any) -> None:
        if (X_val is None) != (y_val is None):
            given, other = ("X_val", "y_val") if y_val is None else ("y_val", "X_val")
            raise ValueError(f"{given} is provided, but {other} was not provided. Pass both, or neither.")
        if X_val is not None and self.early_stopping is False:
            raise ValueError(
                "X_val and y_val are passed to fit while at the same time early_stopping=False. Set early_stopping=True, or "
                "leave them out."
            )

    def _stops_by_default(self, n: int) -> bool:
        """Whether to stop early by default: if there are enough rows to hold some out."""
        return n > 10_000

    def _continues(self) -> bool:
        """Whether this fit adds to the trees of an earlier one (``warm_start``)."""
        return self.warm_start and bool(getattr(self, "_grown", None))

    def _hold_out(self, X: np.ndarray, y: np.ndarray, weight: Any, seed: int) -> tuple[Any, Any, Any, Any]:
        from sklearn.model_selection import train_test_split

        rows = np.arange(len(X))
        classes = self._loss.definition.target.is_classes
        few = classes and np.min(np.unique(y, return_counts=True)[1]) < 2
        train, test = train_test_split(
            rows,
            test_size=np.asarray(self.validation_fraction).item(),  # a share, or a number of rows
            random_state=seed,
            stratify=y if classes and not few else None,
        )
        w, v = (None, None) if weight is None else (weight[train], weight[test])
        return np.ascontiguousarray(X[train]), y[train], w, (np.ascontiguousarray(X[test]), y[test], v)

    def _boost(
        self,
        X: np.ndarray,
        y: np.ndarray,
        weight: Any,
        loss: BoostedLoss,
        watch: Any,
        seed: int,
        init_score: Any,
        report: Any,
        monitor: Any,
        bins: dict[Any, Binned],
    ) -> None:
        n, d = X.shape
        exact = n < EXACT_ROWS if self.quantize == "auto" else not self.quantize
        options, features = (
            boosting_options(self, d, n, loss, WeightFacts.of(weight, n)),
            feature_count(self.max_features, d) / d,
        )
        key = (X.shape, self.max_bins, seed, self.validation_fraction, repr(self.categorical_features))
        if key not in bins:
            bins[key] = Binned(X, self._coder, weight, self.max_bins, seed)
        table = bins[key]
        continued = self._continues()
        if not continued:
            self.baseline_ = loss.start(y, weight) if self.init is None else np.zeros(loss.outputs)
            self.init_ = None
            if hasattr(self.init, "fit") and init_score is None:
                self.init_ = fitted_start(self.init, X, self._decode(y), weight)
            self.trees_ = None
            self._grown: list[Any] = []
            self._limits: list[tuple[int, dict[str, Any]]] = []
        scaled, moderate = of_moderate_weights(options, weight)
        booster = core.Booster(table.native, y, moderate, loss.outputs, exact, is_frequency(weight), scaled)
        booster.start(self.baseline_)
        if init_score is not None:
            given = np.asarray(init_score, dtype=np.float64).reshape(n, -1)
            if given.shape[1] != loss.outputs:
                raise ValueError(f"init_score must have {loss.outputs} numbers per row; got {given.shape[1]}.")
            booster.set_scores(np.ascontiguousarray(given.T))
            self.baseline_ = np.zeros(loss.outputs)
        elif continued or self.init_ is not None:
            booster.set_scores(np.ascontiguousarray((self._raw(X) if continued else self._start(X)).T))

        boost = rounds_of(booster, loss, self.learning_rate, self.subsample, features)
        history = History(self, loss, watch, booster)
        for round_ in range(len(self._grown) // loss.outputs, self.rounds):
            self._grown += boost((seed + 7919 * round_) % 2**63)
            if history.stop(self._grown[-loss.outputs :], round_, y, weight) or (report and report(None)):
                break
            if monitor is not None and monitor(round_, self, locals()):
                break
        self.trees_ = Trees.stack(self._grown, loss.outputs, additive=True)
        self.n_iter_ = len(self._grown) // loss.outputs
        self._limits.append((self.n_iter_, tree_limits(self)))
        history.keep()
        if not self.warm_start:
            self._grown = []
