"""Quadratic discriminant analysis: a normal distribution with a separate covariance for every class."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from hinge._native import Design, core
from hinge._parameters import Constraints, between, one_of
from hinge.models.base import check_predict, require_no_overflow
from hinge.models.generative.base import as_output
from hinge.models.generative.discriminant import SINGULAR, GaussianDiscriminant


class QuadraticDiscriminantAnalysis(GaussianDiscriminant):
    """Gaussian classes with separate covariances.

    Maximises  Σ sᵢ log[π_{yᵢ} N(xᵢ; μ_{yᵢ}, Σ_{yᵢ})];  Σ_c is the scatter of class c divided by n_c, then
    (1 − reg_param) Σ_c + reg_param·I.

    Parameters
    ----------
    solver : {"svd", "eigen"}
        Accepted for compatibility; they are the same here.
    shrinkage, priors, covariance_estimator
        As for :class:`LinearDiscriminantAnalysis`.
    reg_param : float in [0, 1]
        How much of the identity is mixed in.
    store_covariance : bool
        Whether to keep ``covariance_``.
    tol : float
        The variance, relative to the mean of all columns and classes, of directions in which a class has none; there is a
        warning.

    Attributes
    ----------
    classes_, priors_ : arrays of shape (k,)
    means_ : array of shape (k, d)
    covariance_ : list of arrays of shape (d, d)
    rotations_, scalings_ : lists of arrays of shape (d, d) and (d,)
        Principal axes of each class, and the variances along them.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.array([[-1, -1], [-2, -1], [-3, -2], [1, 1], [2, 1], [3, 2]])
    >>> hg.QuadraticDiscriminantAnalysis().fit(X, [1, 1, 1, 2, 2, 2]).predict([[-0.8, -1]])
    array([1])
    """

    _parameter_constraints: ClassVar[Constraints] = {"solver": [one_of("svd", "eigen")], "reg_param": [between(0, 1)]}

    def __init__(
        self,
        *,
        solver: str = "svd",
        shrinkage: Any = None,
        priors: Any = None,
        reg_param: float = 0.0,
        store_covariance: bool = False,
        tol: float = 1e-4,
        covariance_estimator: Any = None,
    ) -> None:
        self.solver = solver
        self.shrinkage = shrinkage
        self.priors = priors
        self.reg_param = reg_param
        self.store_covariance = store_covariance
        self.tol = tol
        self.covariance_estimator = covariance_estimator

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> QuadraticDiscriminantAnalysis:
        """Fit; a weight of 2 means the same as having the example twice."""
        X, codes, weights = self._prepare(X, y, sample_weight)
        few = np.flatnonzero(self._count <= 1)
        if few.size:
            raise ValueError(
                f"y has only one sample in class {self.classes_[few[0]]!r}: its covariance is not defined."
            )
        covariances = self._class_covariances(X, codes, weights)
        require_no_overflow(covariances)
        d = X.shape[1]
        covariances = (1.0 - self.reg_param) * covariances + self.reg_param * np.eye(d)
        self.means_ = self._means
        self.scalings_, self.rotations_, singular = [], [], []
        scale = float(np.mean(np.trace(covariances, axis1=1, axis2=2))) / d
        scale = scale if scale >= np.finfo(np.float64).tiny else 1.0  # dividing by less overflows
        for c, S in enumerate(covariances):
            values, vectors = np.linalg.eigh(S)
            flat = values <= SINGULAR * max(float(values[-1]), scale)
            if np.any(flat):
                singular.append(self.classes_.tolist()[c])
                values = np.where(flat, self.tol * scale, values)
            self.scalings_.append(values[::-1].copy())
            self.rotations_.append(np.ascontiguousarray(vectors[:, ::-1]))
        if singular:
            warnings.warn(
                f"The examples of class {singular[0]!r} lie in a plane: the likelihood of its covariance has no maximum. "
                f"Directions without spread were given the variance tol={self.tol:g} times the mean variance. Set "
                'reg_param above zero, use shrinkage="auto", or drop repeated columns.',
                ConvergenceWarning,
                stacklevel=2,
            )
        if self.store_covariance:
            self.covariance_ = list(covariances)
        return self

    def _wanted(self, X: Any, output: Any) -> np.ndarray:
        check_is_fitted(self)
        X = check_predict(self, X)
        k, d = self.means_.shape
        # Any factor of the precision will do; the core takes triangular ones.
        factors = [scipy.linalg.rq(R / np.sqrt(v), mode="r") for R, v in zip(self.rotations_, self.scalings_)]
        P = np.stack(factors).reshape(k, d * d)
        with np.errstate(divide="ignore"):
            prior = np.log(self.priors_)
        b = prior - 0.5 * np.array([np.log(v).sum() for v in self.scalings_])
        values = core.gaussian_scores(Design(X).native, b, np.ascontiguousarray(self.means_), P, output)[0]
        return as_output(values, output, prior)
