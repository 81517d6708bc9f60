"""Explicit features that approximate a kernel: Nyström and random Fourier features."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hinge._native import Design, check_indices
from hinge._parameters import Constraints, Estimator, at_least, between, count, one_of, shared
from hinge._validation import validate_data
from hinge.features.precision import KeepsPrecision
from hinge.models.base import FLOATS, require_no_overflow
from hinge.models.kernel.expansion import NAMES, named_kernel, takes_objects, with_parameters
from hinge.problem.kernels import RBF, Kernel, Laplacian, Matern, Precomputed, evaluate, warn_indefinite
from hinge.problem.kernels.algebra import Scaled

Array = NDArray[np.float64]

# Eigenvalues below minus this times the largest are not rounding errors.
NEGATIVE = 1e-6


class Nystroem(ClassNamePrefixFeaturesOutMixin, KeepsPrecision, Estimator):
    """Features φ(x) = K_mm^{−½} k(centres, x), whose inner products are optimal in the span of m centres.

    Parameters
    ----------
    kernel : str, Kernel or function
        A name as for :class:`SVC`, or any kernel.
    gamma : float, optional
        The width or slope of kernels given by name; None is 1/d.
    coef0 : float, optional
        The constant of ``kernel="poly"`` and "sigmoid"; None is 1.
    degree : int, optional
        The degree of ``kernel="poly"``; None is 3.
    kernel_params : dict, optional
        Further arguments of a kernel that is a function.
    n_components : int
        The number m of centres, chosen at random from the data.
    random_state : int or None
        The seed; None for different draws every time.
    n_jobs
        Accepted for compatibility; the number of threads is :func:`hinge.set_num_threads`'s.

    Attributes
    ----------
    components_ : array
        The centres.
    component_indices_ : array
        Their row numbers.
    normalization_ : array of shape (m, m)
        K_mm^{−½}.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> phi = hg.Nystroem(kernel=hg.kernels.RBF(1.0), n_components=50, random_state=0).fit_transform(X)
    >>> bool(np.allclose(phi @ phi.T, hg.kernels.RBF(1.0)(X), atol=1e-5))
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("random_state", "n_jobs"),
        "kernel": [one_of(*NAMES), Kernel, callable],
        "gamma": [one_of("scale", "auto", "median"), at_least(0), None],
        "coef0": [between(None, None, "neither"), None],
        "degree": [at_least(0), None],
        "kernel_params": [dict, None],
        "n_components": [count()],
    }

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: Any = None,
        coef0: float | None = 1.0,
        degree: float | None = 3,
        kernel_params: dict[str, Any] | None = None,
        n_components: int = 100,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.kernel_params = kernel_params
        self.n_components = n_components
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.string = takes_objects(self.kernel)
        return tags

    def fit(self, X: Any, y: Any = None) -> Nystroem:
        """Choose centres."""
        degree, coef0 = 3 if self.degree is None else self.degree, 1.0 if self.coef0 is None else self.coef0
        kernel = named_kernel(with_parameters(self.kernel, self.kernel_params), self.gamma, degree, coef0)
        if isinstance(kernel, Precomputed):
            raise ValueError("Nystroem needs the inputs themselves, not a precomputed kernel matrix.")
        X = self._check(kernel, X, reset=True)
        self.kernel_ = kernel.resolve(X)
        n = evaluate.length(X)
        m = min(self.n_components, n)
        self.component_indices_ = check_random_state(self.random_state).permutation(n)[:m]
        self.components_ = X[self.component_indices_]
        values, vectors = scipy.linalg.eigh(np.asarray(self.kernel_(self.components_), dtype=np.float64))
        if values[0] < -NEGATIVE * np.abs(values).max() and not self.kernel_.psd:
            warn_indefinite(self.kernel_, "The negative eigenvalues of the centres' matrix are left out.")
        floor = max(float(values[-1]), 0.0) * 1e-12
        inverse = np.where(values > floor, 1.0 / np.sqrt(np.where(values > floor, values, 1.0)), 0.0)
        self.normalization_ = (vectors * inverse) @ vectors.T
        self._n_features_out = m
        return self

    def _check(self, kernel: Kernel, X: Any, reset: bool) -> Any:
        if takes_objects(kernel):
            self.n_features_in_ = 1
            return evaluate.objects(X)
        check_indices(X)
        return evaluate.canonical(validate_data(self, X, accept_sparse="csr", dtype=FLOATS, order="C", reset=reset))

    def _check_loaded(self) -> None:
        _check_width(self, "normalization_")

    def transform(self, X: Any) -> Array:
        """Features of new inputs."""
        check_is_fitted(self)
        X = self._check(self.kernel_, X, reset=False)
        block = np.ascontiguousarray(self.kernel_.block(X, self.components_))
        phi = Design(block).matmul(self.normalization_)
        return phi if takes_objects(self.kernel_) else phi.astype(X.dtype, copy=False)


class RandomFourierFeatures(ClassNamePrefixFeaturesOutMixin, KeepsPrecision, Estimator):
    """Features √(2/D)·cos(ω'x + b) whose inner products have mean k(x, x'), for shift-invariant kernels.

    ω is drawn from the Fourier transform of the kernel: Gaussian for RBF, Cauchy for Laplacian, Student's t for Matérn.

    Parameters
    ----------
    kernel : RBF, Laplacian or Matern, or "rbf" or "laplacian"
        Times a number if wished.
    gamma : float or {"scale", "auto"}
        For kernels given by name.
    n_components : int
        The number D of features.
    orthogonal : bool
        Draw the ω of an RBF or Matérn kernel orthogonal to each other, in groups of d: smaller variance (Yu et al. 2016).
    random_state : int or None
        The seed; None for different draws every time.

    Attributes
    ----------
    random_weights_, random_offset_ : arrays
        ω as columns, and b.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> phi = hg.RandomFourierFeatures(hg.kernels.RBF(1.0), n_components=20000, random_state=0).fit_transform(X)
    >>> bool(np.max(np.abs(phi @ phi.T - hg.kernels.RBF(1.0)(X))) < 0.05)
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("random_state"),
        "kernel": [one_of(*NAMES), Kernel, callable],
        "gamma": [one_of("scale", "auto", "median"), at_least(0)],
        "n_components": [count()],
        "orthogonal": ["boolean"],
    }

    _constant_tags: ClassVar[dict[str, bool]] = {"input_tags.sparse": True}

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: Any = "scale",
        n_components: int = 100,
        orthogonal: bool = False,
        random_state: Any = 0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.n_components = n_components
        self.orthogonal = orthogonal
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> RandomFourierFeatures:
        """Draw frequencies; only the number of features of X (and its scale, for gamma="scale") matters."""
        check_indices(X)
        X = validate_data(self, X, accept_sparse=("csr", "csc"), dtype=FLOATS)
        kernel = named_kernel(self.kernel, self.gamma, 3, 1.0).resolve(X)
        factor = 1.0
        while isinstance(kernel, Scaled):
            factor, kernel = factor * kernel.factor, kernel.kernel
        random, d = check_random_state(self.random_state), X.shape[1]
        self.random_weights_ = _frequencies(kernel, d, self.n_components, self.orthogonal, random)
        self.random_offset_ = random.uniform(0.0, 2.0 * np.pi, size=self.n_components)
        self.amplitude_ = float(np.sqrt(2.0 * factor / self.n_components))
        self._n_features_out = self.n_components
        return self

    def _check_loaded(self) -> None:
        _check_width(self, "random_weights_")

    def transform(self, X: Any) -> Array:
        """Features of new inputs."""
        check_is_fitted(self)
        check_indices(X)
        X = validate_data(self, X, accept_sparse=("csr", "csc"), dtype=FLOATS, order="C", reset=False)
        phase = Design(X).matmul(self.random_weights_)
        phase += self.random_offset_
        require_no_overflow(phase)
        np.cos(phase, out=phase)
        phase *= self.amplitude_
        return phase.astype(X.dtype, copy=False)


def _check_width(map_: Any, matrix: str) -> None:
    """Checks a map read from a file: as many feature names as its matrix has columns."""
    if hasattr(map_, "_n_features_out") and (np.shape(getattr(map_, matrix, ())) or (0,))[-1] != map_._n_features_out:
        raise ValueError(f"it holds a {type(map_).__name__} whose number of features does not fit its {matrix}.")


def _frequencies(kernel: Kernel, d: int, count: int, orthogonal: bool, random: Any) -> Array:
    """Columns ω with E cos(ω'(x − x')) = k(x, x')."""
    if isinstance(kernel, Laplacian):
        if orthogonal:
            raise ValueError("orthogonal=True needs a rotation-invariant kernel: RBF or Matern.")
        return kernel.gamma * random.standard_cauchy(size=(d, count))
    if isinstance(kernel, Matern) and np.isfinite(kernel.nu):
        spread = np.sqrt(2.0 * kernel.nu / random.chisquare(2.0 * kernel.nu, size=count)) / kernel.length_scale
    elif isinstance(kernel, RBF):
        spread = np.full(count, np.sqrt(2.0 * kernel.rate))
    elif isinstance(kernel, Matern):
        spread = np.full(count, 1.0 / kernel.length_scale)
    else:
        raise ValueError(f"Random Fourier features need an RBF, Laplacian or Matern kernel, not {kernel!r}.")
    if not orthogonal:
        return random.normal(size=(d, count)) * spread
    blocks = [np.linalg.qr(random.normal(size=(d, d)))[0] for _ in range(-(-count // d))]
    lengths = np.sqrt(random.chisquare(d, size=count))
    return np.hstack(blocks)[:, :count] * lengths * spread
