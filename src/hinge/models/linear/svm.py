"""Linear support vector machines: soft and hard margin."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from hinge._native import Design
from hinge._parameters import Constraints, above, between, count, one_of, shared
from hinge.models.base import signs
from hinge.models.linear.base import LinearClassifier, elastic_penalty
from hinge.models.linear.certify import Certifiable
from hinge.problem.losses import Hinge, Loss, SquaredHinge
from hinge.solvers.run import Result

LOSSES: dict[str, type[Loss]] = {"hinge": Hinge, "squared_hinge": SquaredHinge}


class MarginClassifier(LinearClassifier):
    """Linear classifiers with margins of the training data."""

    def _adopt_margins(self, X: Any, codes: np.ndarray, results: list[Result], scale: float | np.ndarray) -> None:
        """Margins, slacks, α and support vectors of the training data; one column per problem if there are several.

        ``scale`` is C (or its equivalent, per example), so that 0 ≤ α ≤ C sᵢ for the hinge loss and w = Σ αᵢ yᵢ xᵢ.
        """
        k = len(self.classes_)
        targets = [signs(codes)] if k == 2 else [np.where(codes == j, 1.0, -1.0) for j in range(k)]
        W, B = np.array([r.w for r in results]), np.array([r.b[0] for r in results])
        scores = (Design(X).matmul(W[0])[:, None] if len(W) == 1 else Design(X).matmul(W.T)) + B
        margins = np.stack(targets, axis=1) * scores
        norms = np.linalg.norm(W, axis=1)
        with np.errstate(divide="ignore"):
            geometric = 1.0 / norms
        slacks = np.maximum(1.0 - margins, 0.0)
        alphas = np.stack([self._alphas(r, y, m) * scale for r, y, m in zip(results, targets, margins.T)], axis=1)
        if k == 2:
            margins, slacks, alphas, geometric = margins[:, 0], slacks[:, 0], alphas[:, 0], float(geometric[0])
        self.margins_, self.slacks_, self.dual_coef_, self.geometric_margin_ = margins, slacks, alphas, geometric
        active = alphas > 1e-8 * max(float(alphas.max()), 1e-300)
        self.support_ = np.flatnonzero(active if k == 2 else active.any(axis=1))
        self.n_support_ = np.bincount(codes[self.support_], minlength=k)

    def _alphas(self, result: Result, y: np.ndarray, margins: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class LinearSVC(Certifiable, MarginClassifier):
    """Linear support vector machine: minimises C Σ sᵢ ℓ(yᵢ(⟨w, xᵢ⟩ + b)) + ½‖w‖² (or ‖w‖₁).

    ℓ(m) = max(0, 1 − m), or its square. The bias is not penalised: this is the textbook's problem, whose constraints
    are yᵢ(⟨w, xᵢ⟩ + b) ≥ 1 − ξᵢ. Several classes are trained one against the others.

    Parameters
    ----------
    penalty : {"l2", "l1"}
        ½‖w‖², or ‖w‖₁, which makes most weights exactly zero.
    loss : {"squared_hinge", "hinge"}
        Every loss works with every penalty.
    tol : float
        The relative duality gap to reach.
    C : float
        The weight of the data against the penalty, above zero.
    multi_class : {"ovr", "crammer_singer"}
        One against the rest, or one problem over all classes: that of :class:`MulticlassSVM`, whose loss is its own
        and which has the L2 penalty, on the biases too.
    fit_intercept, class_weight, random_state
        As for :class:`LogisticRegression`.
    max_iter : int, optional
        A limit on iterations; each solver has its own default. Those of dual coordinate descent are epochs.
    intercept_scaling, dual, verbose
        Accepted for compatibility: the solver is chosen.
    l1_ratio : float, optional
        The penalty is ρ‖w‖₁ + (1−ρ)/2·‖w‖²; overrides ``penalty`` if given.
    solver : str
        "auto" or the name of a solver.

    Attributes
    ----------
    classes_, coef_, intercept_, n_iter_ : as in scikit-learn
    solver_ : str
        The solver that ran, by its name here.
    certificate_ : Certificate
        With several classes, the worst of ``certificates_``.
    margins_, slacks_ : arrays
        yᵢ f(xᵢ) of the training data and max(0, 1 − margin); one column per class if there are more than two.
    dual_coef_ : array
        αᵢ ≥ 0 with w = Σ αᵢ yᵢ xᵢ and Σ αᵢ yᵢ = 0 (L2 penalty); αᵢ ≤ C sᵢ for the hinge loss.
    support_, n_support_ : arrays
        The examples with αᵢ > 0, and how many there are in every class.
    geometric_margin_ : float
        1/‖w‖: the distance from the hyperplane to the points of margin 1.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.array([[-2.0], [-1.0], [1.0], [3.0]])
    >>> model = hg.LinearSVC(loss="hinge", C=10.0).fit(X, ["no", "no", "yes", "yes"])
    >>> round(float(model.geometric_margin_), 4), model.support_
    (1.0, array([1, 2]))
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("class_weight"),
        "penalty": [one_of("l1", "l2")],
        "max_iter": [count(0), None],
        "loss": [one_of(*LOSSES)],
        "dual": ["boolean", one_of("auto")],
        "C": [above(0)],
        "multi_class": [one_of("ovr", "crammer_singer")],
        "intercept_scaling": [above(0)],
        "l1_ratio": [between(0, 1), None],
    }

    def __init__(
        self,
        penalty: str = "l2",
        loss: str = "squared_hinge",
        *,
        dual: Any = "auto",
        tol: float = 1e-6,
        C: float = 1.0,
        multi_class: str = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float = 1,
        class_weight: Any = None,
        verbose: int = 0,
        random_state: int | None = None,
        max_iter: int | None = None,
        l1_ratio: float | None = None,
        solver: Any = "auto",
    ) -> None:
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.l1_ratio = l1_ratio
        self.solver = solver

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearSVC:
        """Fit; a weight of 2 means the same as having the example twice."""
        X, codes, weights = self._check(X, y, sample_weight)
        if self.multi_class == "crammer_singer":
            return self._fit_as_one_problem(X, codes, weights)
        total = float(len(codes)) if weights is None else float(weights.sum())
        ratio = self._l1_ratio()
        penalty = elastic_penalty(1.0 / (self.C * total), ratio)
        results = self._one_vs_rest(X, codes, self.score_loss(), penalty, weights)
        self._weights = 1.0 if weights is None else weights
        self._adopt_margins(X, codes, results, self.C)
        del self._weights
        return self

    def _fit_as_one_problem(self, X: Any, codes: np.ndarray, weights: np.ndarray | None) -> LinearSVC:
        from hinge.models.multiclass.svm import MulticlassSVM  # a local import: that module imports this package

        if self.solver != "auto":
            raise ValueError(
                f"solver={self.solver!r} has no effect with multi_class='crammer_singer', which has a solver of its own; "
                "leave solver out."
            )
        limit = {} if self.max_iter is None else {"max_iter": self.max_iter}
        model = MulticlassSVM(self.C, fit_intercept=self.fit_intercept, tol=self.tol, **limit).fit(X, codes, weights)
        two = len(self.classes_) == 2
        self.coef_ = np.diff(model.coef_, axis=0) if two else model.coef_
        self.intercept_ = np.diff(model.intercept_) if two else model.intercept_
        self.dual_coef_, self.support_, self.n_iter_ = model.dual_coef_, model.support_, model.n_iter_
        self._certify(model.certificate_)
        return self

    def _l1_ratio(self) -> float:
        return self.l1_ratio if self.l1_ratio is not None else float(self.penalty == "l1")

    def score_loss(self) -> Loss:
        """The loss that is minimised."""
        return LOSSES[self.loss]()

    def _alphas(self, result: Result, y: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """sᵢ pᵢ with p = −y u, u the gradients of the losses at the optimum."""
        loss = self.score_loss()
        u = result.solution.dual
        if u is None or loss.smooth:
            u = loss.gradient(y, y * margins)
        return np.maximum(-y * u, 0.0) * self._weights
