"""The Learner: any hypothesis space × any loss × any penalty."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, ClassVar, Protocol, cast

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from hinge._parameters import Constraints, Estimator, count, has, one_of, shared
from hinge.models.base import (
    check_fit,
    check_objects,
    check_predict,
    code_labels,
    keep_float32,
    require_no_overflow,
    signs,
)
from hinge.models.callbacks import CallbackSupportMixin, iterations, with_callbacks
from hinge.problem.certificates.certificate import Certificate
from hinge.problem.kernels.evaluate import objects
from hinge.problem.losses import Loss, Squared, Target, as_loss
from hinge.problem.losses.names import LOSSES, named_loss
from hinge.problem.penalties import Penalty, as_penalty
from hinge.problem.spaces import Linear, Space
from hinge.solvers.base import Solver


class Function(Protocol):
    """A learned function: scores for new inputs."""

    def scores(self, X: Any) -> np.ndarray: ...


class StructuredFunction(Function, Protocol):
    """A learned function of inputs that are not rows of a table, with its own ``predict`` and ``score``."""

    def predict(self, X: Any) -> Any: ...

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...


@dataclass(frozen=True)
class Fit:
    """The result of minimising over a space: the function, its certificate, and the fitted attributes."""

    function: Function
    certificate: Certificate | None
    attributes: dict[str, Any]


@dataclass(frozen=True)
class Task:
    """A minimisation task for any space: coded targets, loss, penalty and solver settings."""

    X: Any
    y: np.ndarray
    loss: Loss
    penalty: Penalty
    sample_weight: np.ndarray | None
    classes: int | None
    solver: str | Solver
    tol: float
    max_iter: int | None
    random_state: int
    history: bool
    callback: Callable[[Any], bool] | None = None  # called after each iteration; True requests a stop


@singledispatch
def minimise(space: Space, task: Task) -> Fit:
    """Minimise a task over a space. Each space registers its own implementation; see ``Space.family``."""
    raise TypeError(f"space must be a hypothesis space such as hg.Linear(), got {type(space).__name__}: {space!r}.")


def _is_tabular(space: Any) -> bool:
    """Whether inputs are rows of a table and checked as such."""
    return not isinstance(space, Space) or space.tabular


def _takes_objects(space: Any) -> bool:
    """Whether inputs are strings or graphs, one per target."""
    return isinstance(space, Space) and space.takes_objects


def _classifies(learner: Learner) -> bool:
    return learner.score_loss().target.is_classes


def _gives_probabilities(learner: Learner) -> bool:
    return _classifies(learner) and type(learner.score_loss()).inverse_link is not Loss.inverse_link


class Learner(CallbackSupportMixin, Estimator):
    """Empirical risk minimisation over a hypothesis space.

    Minimises  Σ sᵢ ℓ(yᵢ, f(xᵢ)) / Σ sᵢ + Ω(f)  over f in the space. Whether this is a regressor or a classifier
    follows from the loss.

    Parameters
    ----------
    space : Space
        What kind of function is learned; ``hg.Linear()`` by default.
    loss : Loss or str
        A loss of this library, its name ("logistic", "huber", or scikit-learn's, such as "log_loss") for one with
        default parameters, or any object with ``value(y, s)`` and ``gradient(y, s)`` and optionally
        ``hessian(y, s)``.
    penalty : Penalty, optional
        A penalty of this library, or any object with ``value(w)`` and ``prox(v, step)``.
    solver : str or Solver
        "auto", the name of a solver, or a solver with options such as ``hg.solvers.GradientDescent(step=0.1)``.
    tol : float
        The relative duality gap to reach (the stationarity residual where no dual is known).
    max_iter : int, optional
        A limit on iterations; each solver has its own default.
    random_state : int
        The seed of stochastic solvers.
    history : bool
        Record objective, gap and time of every iteration in ``history_``.

    Attributes
    ----------
    certificate_ : Certificate
        How close the fit is to the optimum.
    solver_ : str
        The solver that ran.
    coef_, intercept_ : arrays
        Weights and bias, for linear spaces.
    classes_ : array
        The labels, if the loss is for classes.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> y = np.array([0.0, 1.0, 2.0, 30.0])
    >>> robust = hg.Learner(loss=hg.Huber(0.1), penalty=hg.L2(1e-6)).fit(X, y)
    >>> robust.certificate_.converged
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("tol", "random_state"),
        "space": "no_validation",
        "loss": [has("value", "gradient"), one_of(*LOSSES), None],
        "penalty": [has("value"), None],
        "solver": [str, Solver],
        "max_iter": [count(), None],
        "history": ["boolean"],
    }

    def __init__(
        self,
        space: Any = None,
        loss: Any = None,
        penalty: Any = None,
        *,
        solver: str | Solver = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        random_state: int = 0,
        history: bool = False,
    ) -> None:
        self.space = space
        self.loss = loss
        self.penalty = penalty
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.history = history

    def score_loss(self) -> Loss:
        """The loss that is minimised."""
        if isinstance(self.loss, str):
            return named_loss(self.loss)
        return Squared() if self.loss is None else as_loss(self.loss)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, RegressorTags

        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not _takes_objects(self.space)
        tags.input_tags.string = _takes_objects(self.space)
        tags.target_tags.required = True
        if _classifies(self):
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags(multi_class=self.score_loss().target is Target.CLASSES)
        else:
            tags.estimator_type = "regressor"
            tags.regressor_tags = RegressorTags()
            tags.target_tags.positive_only = self.score_loss().target in (Target.POSITIVE, Target.NONNEGATIVE)
        return tags

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Learner:
        """Fit to examples.

        Parameters
        ----------
        X : array, sparse matrix or dataframe of shape (n, d)
            For kernels on strings or graphs, a list of n of them.
        y : array of n targets or labels
        sample_weight : array of n weights, optional
            A weight of 2 means the same as having the example twice.
        """
        loss, space = self.score_loss(), Linear() if self.space is None else self.space
        if isinstance(space, Space):
            self._check_used(space)
            if space.family:
                importlib.import_module(space.family)
        weights, targets, classes = sample_weight, y, None
        if _is_tabular(space):
            if _takes_objects(space):
                X, y, weights = check_objects(self, X, y, sample_weight)
            else:
                X, y, weights = check_fit(self, X, y, sample_weight, y_numeric=not loss.target.is_classes)
            targets, classes = self._code(loss, y)
            loss = as_loss(loss, targets)
        with iterations(self, X, y, self.max_iter) as report:
            task = Task(
                X, targets, loss, as_penalty(self.penalty), weights, classes,
                self.solver, self.tol, self.max_iter, self.random_state, self.history, report,
            )  # fmt: skip
            fit = minimise(space, task)
        self.function_, self.certificate_ = fit.function, fit.certificate
        for name, value in fit.attributes.items():
            setattr(self, name, value)
        return self

    @property
    def solver_(self) -> str:
        """The solver that ran."""
        check_is_fitted(self)
        if self.certificate_ is None:
            raise AttributeError(f"{self.space!r} is not fitted by a solver: it has no solver_.")
        return self.certificate_.solver

    def _check_used(self, space: Space) -> None:
        """Raises an error if a parameter is set that minimising over this space does not use."""
        defaults = inspect.signature(Learner).parameters
        for name in ("solver", "tol", "max_iter", "random_state", "history"):
            if name not in space.uses and getattr(self, name) != defaults[name].default:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} has no effect over {type(space).__name__}, which uses "
                    f"{', '.join(sorted(space.uses)) or 'none of the options of Learner'}; leave {name} out."
                )

    def _code(self, loss: Loss, y: np.ndarray) -> tuple[np.ndarray, int | None]:
        if not loss.target.is_classes:
            return np.asarray(y, dtype=np.float64), None
        codes = code_labels(self, y)
        k = len(self.classes_)
        if loss.target is Target.CLASSES:
            return codes.astype(np.float64), k
        if k > 2:
            raise ValueError(
                f"Only binary classification is supported by {type(loss).__name__}; y has {k} classes. "
                "Use hg.Softmax() as the loss for several classes."
            )
        return signs(codes), None

    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        if not _is_tabular(self.space):
            return self.function_.scores(X)
        if _takes_objects(self.space):
            return self.function_.scores(objects(X))
        X = check_predict(self, X)
        scores = self.function_.scores(X)
        require_no_overflow(scores)
        return keep_float32(scores, X)

    @available_if(_classifies)
    def decision_function(self, X: Any) -> np.ndarray:
        """The scores f(x), for classifiers."""
        return self._scores(X)

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class, for losses that are likelihoods of labels."""
        p = self.score_loss().inverse_link(self._scores(X))
        return np.column_stack([1 - p, p]) if p.ndim == 1 else p

    def predict(self, X: Any) -> np.ndarray:
        """Labels for classifiers; the mean (for likelihoods) or the score for regressors; sequences of labels."""
        if not _is_tabular(self.space):
            check_is_fitted(self)
            return cast(StructuredFunction, self.function_).predict(X)
        scores = self._scores(X)
        loss = self.score_loss()
        if loss.target is Target.SIGN:
            return self.classes_[(scores > 0).astype(int)]
        if loss.target is Target.CLASSES:
            return self.classes_[np.argmax(scores, axis=1)]
        return loss.inverse_link(scores)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy for classifiers (of tokens, for sequences), R² for regressors."""
        if not _is_tabular(self.space):
            check_is_fitted(self)
            return cast(StructuredFunction, self.function_).score(X, y, sample_weight)
        from sklearn.metrics import accuracy_score, r2_score

        metric = accuracy_score if _classifies(self) else r2_score
        return float(metric(y, self.predict(X), sample_weight=sample_weight))
