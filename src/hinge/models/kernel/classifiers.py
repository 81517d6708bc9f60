"""Kernel logistic regression and the kernel perceptron."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from hinge._parameters import Constraints, above, count, shared
from hinge.models.base import code_labels, signs
from hinge.models.callbacks import CallbackSupportMixin, Report, iterations, with_callbacks
from hinge.models.kernel.expansion import (
    BLOCK_ROWS,
    Expansion,
    KernelEstimator,
    check_kernel_fit,
    check_kernel_predict,
    is_precomputed,
    take,
)
from hinge.models.learner import Task, minimise
from hinge.problem.kernels import (
    Definiteness,
    Kernel,
    Precomputed,
    definiteness,
    evaluate,
    full_gram,
    warn_indefinite,
)
from hinge.problem.losses import Logistic
from hinge.problem.penalties import L2
from hinge.problem.spaces import RKHS

Array = NDArray[np.float64]


class _KernelClassifier(ClassifierMixin, CallbackSupportMixin, KernelEstimator):
    """Base class: tags, labels and scores; one function per class for several classes."""

    _parameter_constraints: ClassVar[Constraints] = shared("max_iter", "random_state")

    def _tasks(self, codes: NDArray[np.int64]) -> list[Array]:
        """The −1/+1 labels of each function to fit."""
        k = len(self.classes_)
        return [signs(codes)] if k == 2 else [signs(codes == c) for c in range(k)]

    def decision_function(self, X: Any) -> Array:
        """Scores; a column per class if there are more than two."""
        check_is_fitted(self)
        X = check_kernel_predict(self, self.kernel_, X)
        scores = [function.scores(X) for function in self.functions_]
        return scores[0] if len(scores) == 1 else np.column_stack(scores)

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else np.argmax(scores, axis=1)]


class KernelLogisticRegression(_KernelClassifier):
    """Logistic regression in a reproducing kernel Hilbert space.

    Minimises  C Σ sᵢ log(1 + exp(−yᵢ(f(xᵢ) + b))) + ½‖f‖²  over f in the space of the kernel, bias unpenalised;
    one function per class against the rest if there are more than two classes.

    Parameters
    ----------
    C : float
        The weight of the data against the penalty.
    kernel, gamma, degree, coef0
        As for :class:`SVC`.
    tol : float
        The relative duality gap to reach.
    max_iter : int
        A limit on Newton steps.
    centres : int, optional
        Expand over this many examples only, for large data.
    random_state : int
        Seed for the choice of centres.

    Attributes
    ----------
    functions_ : list
        The functions learned.
    certificate_ : Certificate
        Objective and gap (of the first function, if there are several).

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> model = hg.KernelLogisticRegression(kernel="poly", degree=2, C=10.0).fit(X, [1, 0, 0, 1])
    >>> bool(model.predict_proba([[3.0]])[0, 1] > 0.9)
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {**shared("tol"), "C": [above(0)], "centres": [count(), None]}

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        tol: float = 1e-6,
        max_iter: int = 100,
        centres: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.max_iter = max_iter
        self.centres = centres
        self.random_state = random_state

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelLogisticRegression:
        """Fit to labelled examples."""
        X, y, weights = check_kernel_fit(self, self._kernel(), X, y, sample_weight)
        codes = code_labels(self, y)
        self.kernel_ = self._kernel().resolve(X, weights)
        total = float(len(codes)) if weights is None else float(weights.sum())
        space = RKHS(self.kernel_, centres=self.centres)
        task = Task(
            X, codes, Logistic(), L2(1.0 / (self.C * total)), weights, None,
            "auto", self.tol, self.max_iter, self.random_state, False,
        )  # fmt: skip
        import hinge.models.kernel.space  # noqa: F401  (registers the space)

        fits = []
        for labels in self._tasks(codes):
            with iterations(self, X, y) as report:
                fits.append(minimise(space, replace(task, y=labels, callback=report)))
        self.functions_ = [fit.function for fit in fits]
        self.certificate_ = fits[0].certificate
        self.n_iter_ = max(int(fit.attributes["n_iter_"]) for fit in fits)
        return self

    def predict_proba(self, X: Any) -> Array:
        """Probabilities: the logistic function of the scores, normalised over classes."""
        p = Logistic().inverse_link(self.decision_function(X))
        if p.ndim == 1:
            return np.column_stack([1.0 - p, p])
        return p / p.sum(axis=1, keepdims=True)

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the probabilities."""
        return np.log(self.predict_proba(X))


class KernelPerceptron(_KernelClassifier):
    """The perceptron in a reproducing kernel Hilbert space.

    Processes the examples; on a mistake, y·f(x) ≤ 0, adds s·y·k(x, ·) to f. No bias. If some g of norm 1 has
    y·g(x) ≥ γ everywhere and k(x, x) ≤ R², there are at most (R/γ)² mistakes in total (times (s_max/s_min)² with
    weights). The weight s of an example (``sample_weight``; 1 by default) scales its steps, as in :class:`Perceptron`:
    weight zero means absent, weight two is one step of double length.

    Parameters
    ----------
    kernel, gamma, degree, coef0
        As for :class:`SVC`.
    max_iter : int
        Passes over the data; fewer if one goes by without mistakes.
    shuffle : bool
        A new random order in every pass.
    random_state : int
        Seed of the orders.

    Attributes
    ----------
    mistakes_ : int
        Mistakes made while learning (the most over classes).
    separated_ : bool
        Whether a pass without mistakes was reached.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> hg.KernelPerceptron(kernel="poly", degree=2).fit(X, [1, 0, 0, 1]).separated_
    True
    """

    _parameter_constraints: ClassVar[Constraints] = shared("shuffle")

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        max_iter: int = 1000,
        shuffle: bool = False,
        random_state: int = 0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state

    weight_semantics = "step"

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelPerceptron:
        """Fit to labelled examples, in their order; weights scale the steps."""
        X, y, weights = check_kernel_fit(self, self._kernel(), X, y, sample_weight)
        codes = code_labels(self, y)
        steps = np.ones(len(codes)) if weights is None else weights
        self.kernel_ = self._resolve(X, steps)
        if definiteness(self.kernel_, X) is Definiteness.INDEFINITE:
            warn_indefinite(self.kernel_, "The number of mistakes has no bound.")
        rows = _Rows(self.kernel_, X)
        runs = []
        for labels in self._tasks(codes):
            with iterations(self, X, y) as report:
                runs.append(self._learn(rows, labels, steps, report))
        self.functions_ = [self._expand(X, alpha) for alpha, *_ in runs]
        self.mistakes_ = max(mistakes for _, mistakes, *_ in runs)
        self.separated_ = all(passed for *_, passed, _ in runs)
        self.n_iter_ = max(passes for *_, passes in runs)
        return self

    def _resolve(self, X: Any, steps: Array) -> Kernel:
        """The kernel with its scale, computed without the examples of weight zero."""
        present, kernel = np.flatnonzero(steps), self._kernel()
        weights = None if np.all(steps[present] == 1) else steps[present]
        return kernel if is_precomputed(kernel) else kernel.resolve(take(kernel, X, present), weights)

    def _learn(self, rows: _Rows, y: Array, steps: Array, report: Report | None) -> tuple[Array, int, bool, int]:
        random, n = np.random.default_rng(self.random_state), len(y)
        present = np.flatnonzero(steps)
        alpha, scores, mistakes, passes = np.zeros(n), np.zeros(n), 0, 0
        while passes < self.max_iter:
            passes += 1
            clean = True
            for i in random.permutation(present) if self.shuffle else present:
                if y[i] * scores[i] <= 0:
                    alpha[i] += steps[i] * y[i]
                    scores += steps[i] * y[i] * rows[i]
                    mistakes, clean = mistakes + 1, False
            stopped = report is not None and report(passes)
            if clean or stopped:
                return alpha, mistakes, clean, passes
        return alpha, mistakes, False, passes

    def _expand(self, X: Any, alpha: Array) -> Expansion:
        support = np.flatnonzero(alpha)
        return Expansion(self.kernel_, take(self.kernel_, X, support), alpha[support], 0.0)


class _Rows:
    """Rows of the kernel matrix: all of them if they are few, otherwise a block at a time when first used."""

    def __init__(self, kernel: Kernel, X: Any) -> None:
        self.kernel, self.X = kernel, X
        self.n = evaluate.length(X)
        self.blocks: dict[int, Array] = {}
        if self.n <= BLOCK_ROWS or isinstance(kernel, Precomputed):
            self.blocks = dict(enumerate(np.split(full_gram(kernel, X), range(BLOCK_ROWS, self.n, BLOCK_ROWS))))

    def __getitem__(self, i: Any) -> Array:
        block, row = divmod(int(i), BLOCK_ROWS)
        if block not in self.blocks:
            part = self.X[block * BLOCK_ROWS : (block + 1) * BLOCK_ROWS]
            self.blocks[block] = self.kernel.block(part, self.X)
        return self.blocks[block][row]
