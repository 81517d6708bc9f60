"""Support vector machines with a bound ν on the fraction of errors instead of a cost of errors."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin
from sklearn.exceptions import ConvergenceWarning

from hinge.models.callbacks import with_callbacks
from hinge.models.kernel.expansion import check_kernel_inputs
from hinge.models.kernel.svc_multiclass import SupportVectorClassifier
from hinge.models.kernel.svm_base import SupportVectorMachine, SupportVectorRegressor, ones_or
from hinge.problem.certificates.kernel_machine import (
    Dual,
    classification,
    largest_square,
    nu_classification,
    nu_regression,
    one_class,
)
from hinge.problem.numerics import weighted_sum
from hinge.solvers.decomposition import DualSolution
from hinge.solvers.decomposition_many import Solutions

Array = NDArray[np.float64]

# Scores in single precision have about this relative error.
ROUNDING = 1e-6
# The C to use, in units of 1/k(x, x), if no C achieves the fraction ν.
LARGEST_COST = 1e4


class NuSVC(SupportVectorClassifier):
    """Support vector classification with a bound on the fraction of margin errors.

    Minimises  ½‖f‖² − νSρ + Σ sᵢ max(0, ρ − yᵢ(f(xᵢ) + b))  over f in the space of the kernel, b and ρ, with y = ±1
    and S = Σ sᵢ. At most a fraction ν of the examples lies within the margin, and at least a fraction ν are support
    vectors. The attributes hold f/ρ and b/ρ: the machine that ``SVC`` finds with C = 1/ρ. If no function of the kernel
    has a margin with so few errors (the optimum is f = 0, ρ = 0), a warning is issued, and C is large instead.

    Parameters
    ----------
    nu : float
        The fraction, in (0, 1]; at most twice the share of the rarer class.
    kernel, degree, gamma, coef0, shrinking, probability, tol, cache_size, verbose, max_iter
        As for :class:`SVC`.
    class_weight : dict or "balanced", optional
        Factors on C per class, taken relative to their mean over the examples: ν gives C = 1/ρ without them, and then
        ``SVC`` with this C and these factors is solved.
    decision_function_shape, break_ties, random_state, multi_class
        As for :class:`SVC`.

    Attributes
    ----------
    classes_, support_, support_vectors_, n_support_, dual_coef_, intercept_, margin_, slack_, loo_bound_
        As for :class:`SVC`.
    rho_ : array
        ρ, per machine.
    certificate_ : Certificate
        Objective, dual objective and gap, added up over machines.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> hg.NuSVC(nu=0.5, kernel=hg.kernels.Polynomial(2)).fit(X, [1, 0, 0, 1]).predict([[0.0], [3.0]])
    array([0, 1])
    """

    def __init__(
        self,
        *,
        nu: float = 0.5,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: bool = False,
        tol: float = 1e-3,
        cache_size: float = 500.0,
        class_weight: Any = None,
        verbose: bool = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        multi_class: str = "ovo",
    ) -> None:
        self.nu = nu
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.multi_class = multi_class

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NuSVC:
        """Fit to labelled examples; a weight of 2 means the same as having an example twice."""
        self.rho_ = self._fit(X, y, sample_weight)
        return self

    def _dual(self, y: Array, weights: Array, factors: Array) -> Dual:
        sides = [np.where(side, weights, 0.0).sum(axis=-1) for side in (y > 0, y < 0)]
        most = float(np.min(2.0 * np.minimum(*sides) / weights.sum(axis=-1)))
        if self.nu > most * (1 + 1e-12):
            raise ValueError(
                f"nu={self.nu!r} is infeasible: it can be at most {most:.6g} (twice the share of the rarer class) "
                "where these classes meet."
            )
        return nu_classification(y, float(self.nu), weights)

    def _rescale(self, found: Solutions, factors: Array) -> Solutions:
        plain = (found.rho > 0) & np.all(factors == factors[:, :1], axis=1)
        unit = np.where(plain, found.rho, 1.0)
        return replace(
            found, solved=found.solved & plain, alpha=found.alpha / unit[:, None],
            coefficients=found.coefficients / unit[:, None], scores=found.scores / unit[:, None],
            bias=found.bias / unit,
        )  # fmt: skip

    def _finish(self, solution: DualSolution, X: Any, y: Array, weights: Array, factors: Array) -> DualSolution:
        rho = solution.rho
        if not rho > 0 and not solution.stopped:
            rho = largest_square(self.kernel_, X) / LARGEST_COST or 1.0
            warnings.warn(
                f"nu={self.nu!r} is too small for these classes: no function of this kernel has a margin with so few "
                f"errors. The machine is that of SVC with C={1 / rho:.3g} instead. Use a larger nu, or a richer kernel.",
                ConvergenceWarning,
                stacklevel=4,
            )
            return replace(self._solve(X, classification(y, weights * factors / rho)), rho=rho)
        if np.any(factors != factors[0]):
            relative = factors * (weights.sum() / weighted_sum(weights, factors))
            return replace(self._solve(X, classification(y, weights * relative / rho)), rho=rho)
        rho = rho if rho > 0 else 1.0
        return replace(
            solution, rho=rho, alpha=solution.alpha / rho, coefficients=solution.coefficients / rho,
            scores=solution.scores / rho, bias=solution.bias / rho,
        )  # fmt: skip


class NuSVR(SupportVectorRegressor):
    """Support vector regression that determines the width of its tube from the fraction of points outside.

    Minimises  ½‖f‖² + C(νSε + Σ sᵢ max(0, |yᵢ − f(xᵢ) − b| − ε))  over f in the space of the kernel, b and ε, with
    S = Σ sᵢ. At most a fraction ν of the examples lies outside the tube, and at least a fraction ν are support vectors.
    It is the machine that ``SVR`` finds with this ε.

    Parameters
    ----------
    nu : float
        The fraction, in (0, 1].
    C : float
        How much errors cost.
    kernel, degree, gamma, coef0, shrinking, tol, cache_size, verbose, max_iter
        As for :class:`SVC`.

    Attributes
    ----------
    epsilon_ : float
        Half the width of the tube.
    support_, support_vectors_, n_support_, dual_coef_, intercept_, certificate_, loo_bound_
        As for :class:`SVC`.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> model = hg.NuSVR(C=100.0, nu=0.1).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(model.predict([[1.0]])[0] - np.sin(1.0)) < 0.02)
    True
    """

    def __init__(
        self,
        *,
        nu: float = 0.5,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: float = 500.0,
        verbose: bool = False,
        max_iter: int = -1,
    ) -> None:
        self.nu = nu
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NuSVR:
        """Fit to examples; a weight of 2 means the same as having an example twice."""
        solution = self._fit(X, y, sample_weight)
        self.epsilon_ = max(-solution.rho, 0.0)
        return self

    def _dual(self, y: Array, upper: Array) -> Dual:
        return nu_regression(y, float(self.nu), upper)


def _lowest_on_boundary(solution: DualSolution, upper: Array) -> float:
    """ρ: the score of multipliers inside their bounds.

    They lie on the boundary up to rounding; the lowest score, minus a margin, keeps all of them in the region despite
    rounding, so that the examples outside are those that ν bounds.
    """
    free = (solution.alpha > 0) & (solution.alpha < upper)
    if not np.any(free):
        return -solution.bias
    lowest = float(np.min(solution.scores[free]))
    return lowest - ROUNDING * abs(lowest)


class OneClassSVM(OutlierMixin, SupportVectorMachine):
    """A region that contains all but a fraction of the examples.

    Minimises  ½‖f‖² − νSρ + Σ sᵢ max(0, ρ − f(xᵢ))  over f in the space of the kernel and ρ, with S = Σ sᵢ. The region
    is f(x) ≥ ρ. At most a fraction ν of the examples is outside, and at least a fraction ν are support vectors.

    Parameters
    ----------
    kernel, degree, gamma, coef0, tol, shrinking, cache_size, verbose, max_iter
        As for :class:`SVC`.
    nu : float
        The fraction, in (0, 1].

    Attributes
    ----------
    offset_ : float
        ρ: ``decision_function`` is ``score_samples`` − ρ.
    support_, support_vectors_, n_support_, dual_coef_, intercept_, certificate_
        As for :class:`SVC`; the intercept is −ρ.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.linspace(-1.0, 1.0, 20)[:, None]
    >>> hg.OneClassSVM(nu=0.3, gamma=0.5).fit(X).predict([[0.0], [0.3], [9.0]])
    array([ 1,  1, -1])
    """

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        nu: float = 0.5,
        shrinking: bool = True,
        cache_size: float = 500.0,
        verbose: bool = False,
        max_iter: int = -1,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.nu = nu
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OneClassSVM:
        """Fit to examples without labels; a weight of 2 means the same as having an example twice."""
        X, weights = check_kernel_inputs(self, self._kernel(), X, sample_weight)
        self.kernel_ = self._kernel().resolve(X, weights)
        upper = ones_or(weights, X.shape[0])
        solution = self._solve(X, one_class(float(self.nu), upper))
        self._certify([solution])
        self.offset_ = _lowest_on_boundary(solution, upper)
        self._adopt_one(X, replace(solution, bias=-self.offset_))
        return self

    def decision_function(self, X: Any) -> Array:
        """f(x) − ρ: positive inside."""
        return self._one_score(X)

    def score_samples(self, X: Any) -> Array:
        """f(x)."""
        return self._one_score(X) + self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """+1 inside, −1 outside."""
        return np.where(self._one_score(X) >= 0, 1, -1)
