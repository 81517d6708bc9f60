"""Gaussian mixtures."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from sklearn.base import DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hinge._native import Design, core
from hinge._parameters import Constraints, Estimator, at_least, count, numbers, one_of, shared
from hinge._validation import validate_data
from hinge.models.base import FLOATS, check_weights, contiguous, finiteness
from hinge.models.callbacks import CallbackSupportMixin, iterations, with_callbacks
from hinge.models.generative.base import as_output
from hinge.models.generative.mixture.components import SHAPES, Components, Prior, central
from hinge.models.generative.mixture.em import Run, draw, draw_order, expectation_maximisation, k_means, start_from

STARTS: tuple[str, ...] = ("kmeans", "k-means++", "random", "random_from_data")
# A component is degenerate if its spread in some direction, relative to that of the data, is below this.
NO_SPREAD = 1e-8


class GaussianMixture(CallbackSupportMixin, DensityMixin, Estimator):
    """A mixture of Gaussians, fitted by EM.

    Maximises  Σ sᵢ log Σ_c π_c N(xᵢ; μ_c, Σ_c) − ½ Σ_c [ν log|Σ_c| + tr(Ψ Σ_c⁻¹)],  Ψ = ν·diag(var)/k^(2/d) + reg_covar·I,
    as if every component had ν further observations with the spread of the data (shrunk for k components). A component
    therefore cannot collapse on a point, and with many examples the prior has little effect. No step decreases this
    objective. Responsibilities are computed in log space, a block of rows at a time.

    Parameters
    ----------
    n_components : int, "bic" or "heldout"
        How many components; or choose between 1 and ``max_components`` by the Bayesian information criterion, or by
        the likelihood of a fifth of the examples held out.
    covariance_type : {"full", "tied", "diag", "spherical"}
        A covariance matrix for each component, one for all, a diagonal one each, or one variance each.
    tol : float
        Stop when the objective per example rises by less.
    reg_covar : float
        Added to the diagonal of the prior's scatter Ψ; it keeps constant columns from making covariances singular.
    max_iter : int
        A limit on EM steps.
    n_init : int
        Runs from different starts, of which the best is kept.
    init_params : {"kmeans", "k-means++", "random_from_data", "random"}
        Means to start from: k-means from a k-means++ start, that start itself, or examples drawn at random (the last
        two).
    weights_init, means_init, precisions_init : arrays, optional
        A start of one's own, in full or in part.
    random_state : int or RandomState
        Seed of the starts.
    warm_start : bool
        Start from the last fit.
    verbose, verbose_interval
        Accepted for compatibility; use callbacks.
    prior_observations : float
        ν, the number of imagined observations per component; 0 for maximum likelihood.
    max_components : int
        The most components to try if ``n_components`` is to be chosen.

    Attributes
    ----------
    weights_, means_, covariances_, precisions_, precisions_cholesky_ : arrays
    converged_ : bool
    n_iter_ : int
        EM steps taken by the best run.
    lower_bound_ : float
        The objective per unit of weight.
    lower_bounds_ : list of float
        The same after every step; it never falls.
    n_components_ : int
        The number of components.
    choice_ : dict
        The criterion for each number of components tried, if it was to be chosen.
    held_by_prior_ : array of bool
        Components that would be flat in some direction (a single point, say) without the prior.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.array([[1.0, 2.0], [1.0, 4.0], [1.5, 0.0], [10.0, 2.0], [10.5, 4.0], [10.0, 0.0]])
    >>> mixture = hg.GaussianMixture(n_components=2, covariance_type="diag", random_state=0).fit(X)
    >>> np.sort(mixture.means_[:, 0]).round(2)
    array([ 1.17, 10.17])
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("tol", "random_state", "warm_start", "verbose"),
        "n_components": [count(), one_of("bic", "heldout")],
        "covariance_type": [one_of(*SHAPES)],
        "reg_covar": [at_least(0)],
        "max_iter": [count(0)],
        "n_init": [count()],
        "init_params": [one_of(*STARTS)],
        "weights_init": [numbers(), None],
        "means_init": [numbers(), None],
        "precisions_init": [numbers(), None],
        "verbose_interval": [count()],
        "prior_observations": [at_least(0)],
        "max_components": [count()],
    }

    def __init__(
        self,
        n_components: Any = 1,
        *,
        covariance_type: str = "full",
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        max_iter: int = 100,
        n_init: int = 1,
        init_params: str = "kmeans",
        weights_init: Any = None,
        means_init: Any = None,
        precisions_init: Any = None,
        random_state: Any = 0,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 10,
        prior_observations: float = 0.01,
        max_components: int = 10,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.means_init = means_init
        self.precisions_init = precisions_init
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.prior_observations = prior_observations
        self.max_components = max_components

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> GaussianMixture:
        """Fit; a weight of 2 is equivalent to repeating the example."""
        X = contiguous(validate_data(self, X, dtype=FLOATS, ensure_min_samples=1, **finiteness(X)))
        weights = check_weights(sample_weight, X)
        random = check_random_state(self.random_state)
        k = self._choose(X, weights, random) if isinstance(self.n_components, str) else int(self.n_components)
        if len(X) < k:
            raise ValueError(f"Expected n_samples >= n_components but got n_components = {k}, n_samples = {len(X)}.")
        with iterations(self, X, None, self.max_iter) as report:
            self._adopt(*self._fit(X, weights, k, random, report))
        return self

    def _fit(
        self, X: np.ndarray, weights: np.ndarray | None, k: int, random: np.random.RandomState, report: Any = None
    ) -> tuple[Run, Prior]:
        """The best of ``n_init`` runs, and its prior."""
        design = Design(X)
        prior = self._prior(design, weights, k)
        best: Run | None = None
        for _ in range(self.n_init):
            start = self._start(design, weights, k, prior, random)
            run = expectation_maximisation(
                design, weights, start, prior, tol=self.tol, max_iter=self.max_iter, report=report
            )
            if best is None or run.bound > best.bound:
                best = run
        assert best is not None
        return best, prior

    def _prior(self, design: Design, weights: np.ndarray | None, k: int) -> Prior:
        n = design.shape[0]
        _, _, square = core.class_moments(design.native, np.zeros(n, dtype=np.int32), weights, 1)
        total = float(n) if weights is None else float(weights.sum())
        return self._prior_of(square[0] / total, k)

    def _prior_of(self, variance: np.ndarray, k: int) -> Prior:
        """The prior of k components of data with these variances."""
        spread = variance / k ** (2.0 / len(variance))
        return Prior(float(self.prior_observations), self.prior_observations * spread + self.reg_covar)

    def _start(
        self, design: Design, weights: np.ndarray | None, k: int, prior: Prior, random: np.random.RandomState
    ) -> Components:
        kind = self.covariance_type
        if self.warm_start and hasattr(self, "weights_") and len(self.weights_) == k:
            return Components(kind, self.weights_, self.means_, self.covariances_)
        initial = {
            "weights": _given("weights_init", self.weights_init, (k,)),
            "means": _given("means_init", self.means_init, (k, design.shape[1])),
            "covariances": _inverse(kind, self.precisions_init, k, design.shape[1]),
        }
        if any(value is None for value in initial.values()):
            means = initial["means"]
            if means is None:
                means = self._start_means(design, weights, k, random)
            found = start_from(kind, design, weights, means, prior)
            initial = {name: getattr(found, name) if value is None else value for name, value in initial.items()}
        return Components(kind, **initial)  # type: ignore[arg-type]

    def _start_means(
        self, design: Design, weights: np.ndarray | None, k: int, random: np.random.RandomState
    ) -> np.ndarray:
        if self.init_params == "kmeans":
            return k_means(design, weights, k, random)
        if self.init_params == "k-means++":
            return k_means(design, weights, k, random, steps=0)
        chance = np.ones(design.shape[0]) if weights is None else weights
        return np.asarray(design.source[draw(chance, draw_order(design), random, k)], dtype=np.float64)

    def _choose(self, X: np.ndarray, weights: np.ndarray | None, random: np.random.RandomState) -> int:
        """The number of components by BIC on all examples, or by the likelihood on a held-out fifth of them."""
        seed = random.randint(2**31)
        most = min(int(self.max_components), len(X))
        if self.n_components == "heldout":
            if len(X) < 5:
                raise ValueError(f'n_components="heldout" needs at least 5 examples, got {len(X)}.')
            order = np.random.RandomState(seed).permutation(len(X))
            held, used = np.sort(order[: len(X) // 5]), np.sort(order[len(X) // 5 :])
            most = min(most, len(used))
        self.choice_: dict[int, float] = {}
        for k in range(1, most + 1):
            generator = np.random.RandomState(seed)
            if self.n_components == "bic":
                run, _ = self._fit(X, weights, k, generator)
                total = float(len(X)) if weights is None else float(weights.sum())
                self.choice_[k] = -2.0 * run.moments.likelihood + run.components.n_parameters * float(np.log(total))
            else:
                part = None if weights is None else weights[used]
                run, _ = self._fit(np.ascontiguousarray(X[used]), part, k, generator)
                densities = _densities(run.components, np.ascontiguousarray(X[held]))
                self.choice_[k] = -float(np.average(densities, weights=None if weights is None else weights[held]))
        return min(self.choice_, key=self.choice_.__getitem__)

    def _adopt(self, run: Run, prior: Prior) -> None:
        found = run.components
        self.weights_, self.means_, self.covariances_ = found.weights, found.means, found.covariances
        self.precisions_cholesky_, self.precisions_ = found.factors, found.precisions
        self.n_components_ = len(found.weights)
        self.converged_ = run.converged
        self.lower_bounds_ = run.bounds[1:] or run.bounds
        self.lower_bound_ = run.bound
        self.n_iter_ = max(len(run.bounds) - 1, min(1, self.max_iter))
        self.held_by_prior_ = _flat(run, prior, self.reg_covar)
        if np.any(self.held_by_prior_):
            warnings.warn(self._held_message(run), ConvergenceWarning, stacklevel=4)
        stopped = getattr(getattr(self, "_callback_fit_ctx", None), "stopped", False)
        if not run.converged and not stopped and len(run.bounds) > 1:
            rise = run.bounds[-1] - run.bounds[-2]
            warnings.warn(
                f"EM did not converge in max_iter={self.max_iter} steps: the last one raised the objective by "
                f"{rise:.2g} per example, tol is {self.tol:g}. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _held_message(self, run: Run) -> str:
        which = np.flatnonzero(self.held_by_prior_)
        weight = ", ".join(f"{w:.3g}" for w in run.moments.weight[which])
        return (
            f"Components {which.tolist()} (with the weight of {weight} examples) have no spread of their own in some "
            "direction: by the likelihood alone they would shrink on a point or a plane, where it grows without bound. "
            f"Their covariances are held open by the prior (prior_observations={self.prior_observations:g}, "
            f"reg_covar={self.reg_covar:g}). Use fewer components, another covariance_type, or drop repeated columns."
        )

    def _components(self) -> Components:
        check_is_fitted(self)
        return Components(self.covariance_type, self.weights_, self.means_, self.covariances_)

    def _scores(self, X: Any, output: Any) -> np.ndarray:
        components = self._components()
        X = contiguous(validate_data(self, X, dtype=FLOATS, reset=False))
        values = core.gaussian_scores(Design(X).native, *components.native, output)[0]
        with np.errstate(divide="ignore"):
            return as_output(values, output, np.log(self.weights_))

    def predict(self, X: Any) -> np.ndarray:
        """The component most responsible for each example."""
        return self._scores(X, core.Output.best).astype(np.int64)

    def predict_proba(self, X: Any) -> np.ndarray:
        """The responsibilities p(component | x)."""
        return self._scores(X, core.Output.probability)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit, and return the most responsible component of each example."""
        return self.fit(X, y, sample_weight).predict(X)

    def score_samples(self, X: Any) -> np.ndarray:
        """log p(x) for each example."""
        return self._scores(X, core.Output.total)

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of log p(x)."""
        return float(self.score_samples(X).mean())

    def bic(self, X: Any) -> float:
        """The Bayesian information criterion, −2 log p(X) + parameters · log n: the smaller the better."""
        densities = self.score_samples(X)
        return float(-2.0 * densities.sum() + self._components().n_parameters * np.log(len(densities)))

    def aic(self, X: Any) -> float:
        """Akaike's information criterion, −2 log p(X) + 2 · parameters: the smaller the better."""
        return float(-2.0 * self.score_samples(X).sum() + 2.0 * self._components().n_parameters)

    def sample(self, n_samples: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Random examples and the components they were drawn from."""
        components = self._components()
        if not n_samples >= 1:
            raise ValueError(f"n_samples must be at least 1, got {n_samples!r}.")
        random = check_random_state(self.random_state)
        k, d = components.means.shape
        labels = np.repeat(np.arange(k), random.multinomial(n_samples, components.weights))
        z = random.standard_normal((n_samples, d))
        match components.kind:
            case "full":
                roots = np.linalg.cholesky(components.covariances)
                z = np.einsum("nij,nj->ni", roots[labels], z)
            case "tied":
                z = z @ np.linalg.cholesky(components.covariances).T
            case "diag":
                z *= np.sqrt(components.covariances)[labels]
            case _:
                z *= np.sqrt(components.covariances)[labels, None]
        return components.means[labels] + z, labels


def _densities(components: Components, X: np.ndarray) -> np.ndarray:
    return core.gaussian_scores(Design(X).native, *components.native, core.Output.total)[0]


def _given(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray | None:
    if value is None:
        return None
    array = np.array(value, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}.")
    if name == "weights_init" and (np.any(array < 0) or not np.isclose(array.sum(), 1.0)):
        raise ValueError(f"weights_init must be of zero or more with sum 1, got {array.tolist()}.")
    return array


def _inverse(kind: str, precisions: Any, k: int, d: int) -> np.ndarray | None:
    """Covariances from given precisions."""
    shape = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}[kind]
    array = _given("precisions_init", precisions, shape)
    if array is None:
        return None
    if kind in ("diag", "spherical"):
        if np.any(array <= 0):
            raise ValueError("precisions_init must be above zero.")
        return 1.0 / array
    try:
        np.linalg.cholesky(array)
    except np.linalg.LinAlgError:
        raise ValueError("precisions_init must be symmetric and positive definite.") from None
    return np.linalg.inv(array)


def _flat(run: Run, prior: Prior, floor: float) -> np.ndarray:
    """Whether each component has no spread in some direction in which the data have some."""
    moments, found = run.moments, run.components
    scale = (prior.scatter - floor) / max(prior.observations, np.finfo(np.float64).tiny)
    if prior.observations == 0:
        return np.zeros(len(found.weights), dtype=bool)
    live = scale > 1e-12 * np.max(scale, initial=0.0)
    if not np.any(live):
        return np.zeros(len(found.weights), dtype=bool)
    N = np.where(moments.weight > 0, moments.weight, 1.0)
    S = central(moments, moments.shift / N[:, None])
    root = np.sqrt(scale[live])
    if found.kind == "tied":
        S, N = S.sum(axis=0, keepdims=True), N.sum(keepdims=True)
    if S.ndim == 3:
        if run.examples <= len(root):  # n examples span at most n − 1 directions
            least = np.zeros(len(S))
        else:
            S = S[:, live][:, :, live] / np.outer(root, root) / N[:, None, None]
            least = np.linalg.eigvalsh(S)[:, 0]
    else:
        S = S[:, live] / scale[live] / N[:, None]
        least = S.mean(axis=1) if found.kind == "spherical" else S.min(axis=1)
    flat = (least < NO_SPREAD) & (moments.weight.sum() > 0)
    return np.repeat(flat, len(found.weights)) if found.kind == "tied" else flat
