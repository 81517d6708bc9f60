"""Stochastic gradient descent for linear models: state of the weights, epochs, and stopping."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

from hinge._native import Design, core
from hinge._parameters import Constraints, above, at_least, between, count, one_of, shared
from hinge.models.linear.base import LinearModel, check_strength, named_penalty, seed_of, weights_of_rows
from hinge.models.linear.certify import Certifiable
from hinge.problem.certificates.certificate import Certificate, with_run
from hinge.problem.certificates.fast import quick_certificate
from hinge.problem.certificates.linear import certificate
from hinge.problem.certificates.newton import newton_flops
from hinge.problem.cost import budget, pass_flops
from hinge.problem.losses import EpsilonInsensitive, Hinge, Loss
from hinge.problem.objective import Objective, make_objective
from hinge.problem.penalties import Penalty
from hinge.solvers.base import Status
from hinge.solvers.native import native_problem
from hinge.solvers.stochastic import rows_of

PASSIVE = {"pa1": 1, "pa2": 2}
RATES = ("optimal", "invscaling", "constant", "adaptive", *PASSIVE)
SHORTER = 0.1  # steps that make the weights overflow are repeated at a tenth of their length
TRIES = 12
CERTIFICATE_PASSES = 10
CERTIFICATE_TOL = 1e-6  # tolerance of certificates; ``tol`` of the estimators is a change of the loss between epochs
DIVERGED = 100.0  # steps that end at so many times the objective of a constant have diverged
SLOWEST_BIAS = 0.01
SAMPLED_ROWS = 1000


@dataclass
class Stream:
    """The state of the weights of one score between epochs."""

    w: np.ndarray
    b: float
    mean: np.ndarray
    applied: np.ndarray
    mean_b: float = 0.0
    steps: int = 0
    scale: float = 1.0
    epochs: int = 0

    @classmethod
    def begin(cls, w: np.ndarray, b: float) -> Stream:
        """A stream that starts from these weights."""
        start = np.array(w, dtype=np.float64)
        return cls(start, float(b), np.zeros_like(start), np.zeros(len(start) + 1))

    def epoch(self, objective: Objective, rate: tuple[float, float, float], options: dict[str, Any]) -> float:
        """One epoch; returns the mean loss of the examples before their steps. Shortens steps that are too long."""
        problem = native_problem(objective)
        eta, decay, power = rate
        arrays = (self.w, self.mean, self.applied)
        saved = [array.copy() for array in arrays]
        for _ in range(TRIES):
            settings = core.SgdOptions(eta0=eta * self.scale, decay=decay, power=power, epoch=self.epochs, **options)
            b, mean_b, steps, loss = core.sgd_epoch(
                problem, settings, self.w, self.mean, self.b, self.mean_b, self.steps, self.applied
            )
            if np.isfinite(loss) and np.all(np.isfinite(self.w)) and np.abs(self.w).max(initial=0.0) < 1e100:
                self.b, self.mean_b, self.steps = b, mean_b, steps
                self.epochs += 1
                return loss
            for array, before in zip(arrays, saved):
                array[:] = before
            self.scale *= SHORTER
        raise ValueError("The steps overflow at any length: scale the features to similar size.")


def certify_stream(objective: Objective, w: np.ndarray, b: np.ndarray, epochs: int) -> Certificate:
    """The certificate of weights found in this many epochs, at about a tenth of their cost."""
    flops = epochs * pass_flops(objective.design)
    # The full certificate takes about ten passes over X, and pays off only if the budget allows its Newton step.
    full = epochs >= CERTIFICATE_PASSES and newton_flops(objective, objective.d) <= budget(flops)
    return (certificate if full else quick_certificate)(objective, w, b, fit_flops=flops)


def _of_constant(objective: Objective) -> float:
    """The risk of the best constant, at least a hundredth of that of zero scores."""
    scores = np.zeros(objective.n)
    zero = objective.risk_of_scores(scores)
    if not objective.fit_intercept:
        return zero
    best = objective.best_constant()
    return max(objective.risk_of_scores(scores + best), 0.01 * zero) if np.isfinite(best) else zero


def share_of_nonzeros(X: Any) -> float:
    """The share of nonzero entries of X, estimated from evenly spaced rows."""
    some = X[:: max(1, X.shape[0] // SAMPLED_ROWS)]
    values = some.data if hasattr(some, "tocsr") else some
    return float(np.count_nonzero(values)) / max(1, some.shape[0] * some.shape[1])


class StochasticModel(Certifiable, LinearModel):
    """The base class of SGDClassifier and SGDRegressor, which describe its parameters."""

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("max_iter", "shuffle", "early_stopping", "validation_fraction", "n_iter_no_change"),
        "penalty": [one_of("l2", "l1", "elasticnet"), None],
        "alpha": [at_least(0)],
        "l1_ratio": [between(0, 1), None],
        "tol": [at_least(0), None],
        "epsilon": [at_least(0)],
        "learning_rate": [one_of(*RATES)],
        "eta0": [above(0)],
        "power_t": [between(None, None, "neither")],
        "average": ["boolean", count()],
    }

    weight_semantics = "step"
    loss_functions: dict[str, tuple[Any, ...]]
    _state: list[Stream]

    def score_loss(self) -> Loss:
        """The loss that is minimised."""
        if isinstance(self.loss, Loss):
            return self.loss
        cls, *width = self.loss_functions[self.loss]
        return cls(self.epsilon) if width else cls()

    def _penalty(self) -> Penalty:
        return named_penalty(self.penalty, self.alpha, self.l1_ratio)

    def _rate(self, loss: Loss) -> tuple[float, float, float]:
        """η₀, decay and power of η_t = η₀/(1 + decay·t)^power."""
        if self.learning_rate == "optimal":
            alpha = check_strength("alpha", self.alpha, zero=False)
            # Bottou's rule: the first step has the size of typical weights.
            typical = np.sqrt(1.0 / np.sqrt(alpha))
            gradient = float(np.abs(loss.gradient(np.ones(1), np.array([-typical])))[0])
            first = typical / max(1.0, gradient)
            return first, first * alpha, 1.0
        if self.learning_rate in PASSIVE and not isinstance(loss, Hinge | EpsilonInsensitive):
            raise ValueError(
                f"learning_rate={self.learning_rate!r} needs loss='hinge' (classes) or 'epsilon_insensitive' (real "
                "targets): its steps are those that bring this loss to zero."
            )
        first = float(self.eta0)
        return (first, 1.0, float(self.power_t)) if self.learning_rate == "invscaling" else (first, 0.0, 0.0)

    def _steps(self, objective: Objective) -> tuple[tuple[float, float, float], dict[str, Any]]:
        """The rate and the options of the epochs on an objective."""
        return self._rate(objective.loss), self._options(objective.penalty, objective.design.source)

    def _options(self, penalty: Penalty, X: Any) -> dict[str, Any]:
        d = X.shape[1]
        coordinates = penalty.coordinates(d)
        assert coordinates is not None
        return {
            "l2": float(coordinates.l2[0]) if d else 0.0,
            # The bias moves at every visit, a weight only if its feature is present: with full steps the bias of sparse
            # data would dominate the weights.
            "bias_rate": max(SLOWEST_BIAS, share_of_nonzeros(X)),
            "average": int(self.average),
            "passive": PASSIVE.get(self.learning_rate, 0),
            "shuffle": bool(self.shuffle),
            "seed": seed_of(self.random_state),
        }

    def _streams(self, count: int, d: int, coef: Any, intercept: Any) -> list[Stream]:
        coef = np.zeros((count, d)) if coef is None else np.atleast_2d(np.asarray(coef, dtype=np.float64))
        intercept = np.zeros(count) if intercept is None else np.asarray(intercept, dtype=np.float64).ravel()
        for name, found, wanted in (("coef_init", coef, (count, d)), ("intercept_init", intercept, (count,))):
            if found.shape != wanted:
                raise ValueError(f"Provided {name} does not match dataset: shape {found.shape}, expected {wanted}.")
        return [Stream.begin(w, b) for w, b in zip(coef, intercept)]

    def _objectives(self, X: Any, targets: list[np.ndarray], weights: list[np.ndarray | None]) -> list[Objective]:
        first = make_objective(
            Design(rows_of(X), checked=True), targets[0], self.score_loss(), self._penalty(), sample_weight=weights[0],
            fit_intercept=self.fit_intercept,
        )  # fmt: skip
        return [first] + [
            make_objective(
                first.design, y, first.loss, first.penalty, sample_weight=s, fit_intercept=self.fit_intercept
            )
            for y, s in zip(targets[1:], weights[1:])
        ]

    def _train(
        self, X: Any, targets: list[np.ndarray], weights: list[np.ndarray | None], coef: Any, intercept: Any
    ) -> None:
        """Runs epochs until the objective stops falling. ``weights`` have no zeros."""
        if self.warm_start and coef is None and hasattr(self, "_state"):
            coef, intercept = [s.w for s in self._state], [s.b for s in self._state]
        self._state = self._streams(len(targets), X.shape[1], coef, intercept)
        if self.early_stopping:
            train, held = self._held_out(targets)
            objectives = self._objectives(X[train], [y[train] for y in targets], weights_of_rows(weights, train))
        else:
            held, objectives = None, self._objectives(X, targets, weights)
        rate, options = self._steps(objectives[0])
        held_sets = None
        if held is not None:
            held_sets = self._objectives(X[held], [y[held] for y in targets], weights_of_rows(weights, held))
        if self._given is not None:
            tight = [self._given.certified(o, CERTIFICATE_TOL).certificate for o in objectives]
            self.certificate_ = max(tight, key=lambda c: c.error)
            return
        ended = [
            self._run(s, o, rate, options, None if held_sets is None else held_sets[j])
            for j, (s, o) in enumerate(zip(self._state, objectives))
        ]
        self.n_iter_ = max(s.epochs for s in self._state)
        self._show(X.dtype)
        certified = [certify_stream(o, *self._shown(s), s.epochs) for s, o in zip(self._state, objectives)]
        self._conclude(certified, [_of_constant(o) for o in objectives], all(ended), stacklevel=4)

    def _conclude(
        self, certificates: list[Certificate], constants: list[float], ended: bool, *, stacklevel: int
    ) -> None:
        """Set ``certificate_``, the worst one of the problems; warn if the steps diverged, or the loss was still falling.

        ``constants`` are the objectives of zero weights.
        """
        self.certificate_ = with_run(
            max(certificates, key=lambda c: c.error),
            solver="sgd",
            iterations=self.n_iter_,
            seconds=np.nan,
            status=(Status.RULE if ended else Status.MAX_ITER).value,
        )
        if self.tol is None:  # so many epochs were wanted
            return
        wrong = [k for k, c in enumerate(certificates) if c.primal > DIVERGED * constants[k]]
        if wrong:
            warnings.warn(
                f"The steps diverged: the objective is {certificates[wrong[0]].primal:.3g}, and {constants[wrong[0]]:.3g} with "
                "zero weights. Standardise the columns (sklearn.preprocessing.StandardScaler), lower eta0, or raise alpha.",
                ConvergenceWarning,
                stacklevel=stacklevel,
            )
        elif not ended:
            warnings.warn(
                f"The loss was still falling after max_iter={self.max_iter} epochs; raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=stacklevel,
            )

    @abstractmethod
    def _held_score(self, held: Objective, z: np.ndarray) -> float:
        """The score of predictions on the held-out targets: the measure of ``score``."""

    def _held_out(self, targets: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Rows for training, in their order, and held-out rows."""
        split = StratifiedShuffleSplit if is_classifier(self) else ShuffleSplit
        seed = 0 if self.random_state is None else self.random_state
        splitter = split(n_splits=1, test_size=float(self.validation_fraction), random_state=seed)
        labels = targets[0] if len(targets) == 1 else np.argmax(targets, axis=0)
        train, held = next(splitter.split(labels, labels))
        return np.sort(train), np.sort(held)

    def _run(
        self, stream: Stream, objective: Objective, rate: tuple[float, float, float], options: dict[str, Any],
        held: Objective | None,
    ) -> bool:  # fmt: skip
        """Runs epochs; returns whether the stopping rule was met before ``max_iter``."""
        best, idle = np.inf, 0
        for _ in range(self.max_iter):
            before = objective.penalty.value(stream.w)
            loss = stream.epoch(objective, rate, options)
            if self.tol is None:
                continue
            if held is None:
                loss += 0.5 * (before + objective.penalty.value(stream.w))
            else:
                loss = -self._held_score(held, held.scores(stream.w, np.array([stream.b])))
            idle = idle + 1 if loss > best - self.tol else 0
            best = min(best, loss)
            if idle >= self.n_iter_no_change:
                if self.learning_rate != "adaptive" or stream.scale < 1e-6:
                    return True
                stream.scale, idle = stream.scale / 5.0, 0
        return self.tol is None

    def _shown(self, stream: Stream) -> tuple[np.ndarray, np.ndarray]:
        averaged = 0 < int(self.average) <= stream.steps
        return (stream.mean, np.array([stream.mean_b])) if averaged else (stream.w, np.array([stream.b]))

    def _show(self, dtype: Any) -> None:
        shown = [self._shown(s) for s in self._state]
        self.coef_ = np.array([w for w, _ in shown], dtype=dtype)
        self.intercept_ = np.array([b[0] for _, b in shown], dtype=dtype)
        self.t_ = float(max(s.steps for s in self._state) + 1)

    def _refuse_held_out(self) -> None:
        if self.early_stopping:
            raise ValueError("early_stopping should be False with partial_fit: a piece has no examples to hold out.")

    def _learn_piece(self, X: Any, targets: list[np.ndarray], weights: list[np.ndarray | None]) -> None:
        """One epoch over a piece of data, continuing from the end of the last piece.

        Weights compare examples across pieces, so they are not divided by the mean weight of this one.
        """
        if not hasattr(self, "_state"):
            self._state = self._streams(len(targets), X.shape[1], None, None)
            self.n_iter_ = 0
        objectives = [
            o if s is None else replace(o, c=s / len(s))
            for o, s in zip(self._objectives(X, targets, [None] * len(targets)), weights)
        ]
        rate, options = self._steps(objectives[0])
        for stream, objective in zip(self._state, objectives):
            stream.epoch(objective, rate, options)
        self.n_iter_ += 1
        self._show(X.dtype)
