"""Base class of Gaussian discriminants, and linear discriminant analysis: the same covariance for all classes.

    δ_c(x) = log π_c − ½ log|Σ_c| − ½ (x − μ_c)' Σ_c⁻¹ (x − μ_c)

With one Σ the quadratic terms cancel and p(class | x) is the softmax of linear scores.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from hinge._native import Design, core
from hinge._parameters import Constraints, Estimator, between, count, has, numbers, one_of, shared
from hinge.models.base import check_fit, check_predict, code_labels, keep_float32, require_no_overflow
from hinge.models.generative.base import OUTPUT, ClassPosterior, as_output, log_prior
from hinge.models.generative.linear_form import LinearForm
from hinge.problem.losses import Logistic, Loss, Softmax

# Eigenvalues below this share of the largest are zero up to rounding.
SINGULAR = 1e-12
# Deviations below this share of the mean are rounding errors.
ROUNDING = 1e-13


class GaussianDiscriminant(ClassPosterior, ClassifierMixin, Estimator):
    """Base class: checks, class means, shrinkage, and predictions from scores."""

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("tol"),
        "shrinkage": [one_of("auto"), between(0, 1), None],
        "priors": [numbers(), None],
        "store_covariance": ["boolean"],
        "covariance_estimator": [has("fit"), None],
    }

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """X, codes and weights; sets ``classes_``, ``priors_`` and ``means_``."""
        X, y, weights = check_fit(self, X, y, sample_weight, accept_sparse=False)
        codes = np.ascontiguousarray(code_labels(self, y), dtype=np.int32)
        k = len(self.classes_)
        self._count, self._means, _ = core.class_moments(Design(X).native, codes, weights, k)
        empty = np.flatnonzero(self._count == 0)
        if empty.size:
            raise ValueError(f"All examples of class {self.classes_[empty[0]]!r} have weight zero; leave it out.")
        self.priors_ = np.exp(log_prior(self.priors, self._count, name="priors"))
        return X, codes, weights

    def _class_covariances(self, X: np.ndarray, codes: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """One covariance per class, divided by the weight of the class and shrunk by ``shrinkage``."""
        k, d = self._means.shape
        if self.covariance_estimator is not None:
            if weights is not None:
                raise ValueError("covariance_estimator does not take sample_weight; use shrinkage instead.")
            return np.stack([self._estimated_covariance(X[codes == c]) for c in range(k)])
        scatter = core.class_scatter(Design(X).native, codes, weights, self._means, False).reshape(k, d, d)
        covariances = scatter / self._count[:, None, None]
        if self.shrinkage is None:
            return covariances
        shrunk = []
        for c, S in enumerate(covariances):
            if self.shrinkage == "auto":
                rows = codes == c
                shrunk.append(_ledoit_wolf(X[rows] - self._means[c], None if weights is None else weights[rows], S))
            else:
                shrunk.append(_toward_sphere(S, float(self.shrinkage)))
        return np.stack(shrunk)

    def _estimated_covariance(self, X: np.ndarray) -> np.ndarray:
        self.covariance_estimator.fit(X)
        if not hasattr(self.covariance_estimator, "covariance_"):
            name = type(self.covariance_estimator).__name__
            raise ValueError(f"{name} does not have a covariance_ attribute after fit; see covariance_estimator.")
        return np.asarray(self.covariance_estimator.covariance_)

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of the second class if there are two; a score per class otherwise."""
        joint = self._wanted(X, OUTPUT.joint)
        if joint.shape[1] != 2:
            return joint
        # If both densities underflow to zero the prior decides, as it does for probabilities.
        with np.errstate(divide="ignore"):
            joint = np.where(np.isneginf(joint).all(axis=1, keepdims=True), np.log(self.priors_), joint)
        return joint[:, 1] - joint[:, 0]


class LinearDiscriminantAnalysis(ClassNamePrefixFeaturesOutMixin, TransformerMixin, GaussianDiscriminant):
    """Gaussian classes with one covariance: a linear classifier, and the directions that separate the classes best.

    Maximises  Σ sᵢ log[π_{yᵢ} N(xᵢ; μ_{yᵢ}, Σ)];  scores δ_c(x) = ⟨Σ⁻¹μ_c, x⟩ − ½⟨μ_c, Σ⁻¹μ_c⟩ + log π_c. Σ is the scatter
    within classes divided by n; with shrinkage (or a solver other than "svd"), Σ_c π_c Σ_c of the shrunk class
    covariances. Directions without variance are left out.

    Parameters
    ----------
    solver : {"svd", "lsqr", "eigen"}
        Which of scikit-learn's estimates of Σ (see above). All give ``transform`` and allow shrinkage.
    shrinkage : None, "auto" or float in [0, 1]
        Σ_c → (1 − s) Σ_c + s·tr(Σ_c)/d·I; "auto" chooses s by Ledoit and Wolf (2004), on standardised columns.
    priors : array of shape (k,), optional
        Class probabilities; counted if not given.
    n_components : int, optional
        Directions kept by ``transform``; at most min(k − 1, d).
    store_covariance : bool
        Keep ``covariance_`` also with the "svd" solver.
    tol : float
        A direction whose standard deviation within classes, columns standardised, is below this is left out.
    covariance_estimator : object, optional
        Something with ``fit`` and ``covariance_``, used for each class.

    Attributes
    ----------
    classes_, priors_ : arrays of shape (k,)
    means_ : array of shape (k, d)
    xbar_ : array of shape (d,)
    coef_, intercept_ : arrays
        One row for two classes, one per class otherwise.
    covariance_ : array of shape (d, d)
    scalings_ : array of shape (d, rank)
    explained_variance_ratio_ : array

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.array([[-1, -1], [-2, -1], [-3, -2], [1, 1], [2, 1], [3, 2]])
    >>> model = hg.LinearDiscriminantAnalysis().fit(X, [1, 1, 1, 2, 2, 2])
    >>> model.predict([[-0.8, -1]])
    array([1])
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "solver": [one_of("svd", "lsqr", "eigen")],
        "n_components": [count(), None],
    }

    def __init__(
        self,
        solver: str = "svd",
        shrinkage: Any = None,
        priors: Any = None,
        n_components: int | None = None,
        store_covariance: bool = False,
        tol: float = 1e-4,
        covariance_estimator: Any = None,
    ) -> None:
        self.solver = solver
        self.shrinkage = shrinkage
        self.priors = priors
        self.n_components = n_components
        self.store_covariance = store_covariance
        self.tol = tol
        self.covariance_estimator = covariance_estimator

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearDiscriminantAnalysis:
        """Fit; a weight of 2 means the same as having the example twice."""
        X, codes, weights = self._prepare(X, y, sample_weight)
        k, d = self._means.shape
        most = min(k - 1, d)
        if self.n_components is not None and not 1 <= self.n_components <= most:
            raise ValueError(f"n_components must be from 1 to min(classes − 1, features) = {most}.")
        self._max_components = most if self.n_components is None else int(self.n_components)
        total = float(self._count.sum())
        pooled = self.solver == "svd" and self.shrinkage is None and self.covariance_estimator is None
        if pooled and total <= k:
            raise ValueError(f"There must be more samples than classes: {total:g} samples, {k} classes.")
        if pooled and not self.store_covariance and len(X) < d:
            whiten = self._whitening_of_rows(X, codes, weights)
        else:
            if not pooled or self.store_covariance:
                self.covariance_ = np.einsum("c,cij->ij", self.priors_, self._class_covariances(X, codes, weights))
            whiten = self._whitening(
                core.class_scatter(Design(X).native, codes, weights, self._means, True) / total
                if pooled
                else self.covariance_
            )
        self._discriminate(whiten, total, X)
        return self

    def _whitening(self, covariance: np.ndarray) -> np.ndarray:
        """A matrix A with A'ΣA = I, on the directions with positive variance."""
        require_no_overflow(covariance)
        deviation = self._deviations(np.diag(covariance))
        values, vectors = np.linalg.eigh(covariance / np.outer(deviation, deviation))
        kept = self._with_spread(values)
        return vectors[:, kept] / np.sqrt(values[kept]) / deviation[:, None]

    def _whitening_of_rows(self, X: np.ndarray, codes: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """The same from the n × n inner products of the centred rows, where there are fewer rows than columns.

        For Σ = R'R with R = QSV', the eigenvectors V of Σ come from those of RR' = QS²Q' as V = R'Q/S.
        """
        share = 1.0 / len(X) if weights is None else (weights / weights.sum())[:, None]
        R = np.sqrt(share) * (X - self._means[codes])
        variance = np.einsum("ij,ij->j", R, R)
        require_no_overflow(variance)
        deviation = self._deviations(variance)
        R /= deviation
        values, vectors = np.linalg.eigh(R @ R.T)
        kept = self._with_spread(values)
        return R.T @ (vectors[:, kept] / values[kept]) / deviation[:, None]

    def _deviations(self, variance: np.ndarray) -> np.ndarray:
        """Standard deviations of the columns; 1 for constant ones, whose computed variance is rounding error."""
        deviation = np.sqrt(variance)
        return np.where(deviation > ROUNDING * np.abs(self._means).max(axis=0), deviation, 1.0)

    def _with_spread(self, values: np.ndarray) -> np.ndarray:
        """A mask of the eigenvalues of the correlations that are numerically positive."""
        kept = np.sqrt(np.maximum(values, 0.0)) > self.tol
        if not np.any(kept):
            raise ValueError(
                "Every class is a single point: there is no covariance to estimate. Use other features, or a smaller tol."
            )
        return kept

    def _discriminate(self, whiten: np.ndarray, total: float, X: np.ndarray) -> None:
        k = len(self.classes_)
        xbar = self.priors_ @ self._means
        centred = (self._means - xbar) @ whiten
        _, spread, directions = np.linalg.svd(
            np.sqrt(total * self.priors_ / max(k - 1, 1))[:, None] * centred, full_matrices=False
        )
        rank = int(np.sum(spread > self.tol * spread[0])) if spread[0] > 0 else 0
        ratio = spread**2 / np.sum(spread**2) if spread[0] > 0 else spread
        self.explained_variance_ratio_ = ratio[: self._max_components]
        self.scalings_ = keep_float32(whiten @ directions[: max(rank, 1)].T, X)
        with np.errstate(divide="ignore"):
            intercept = np.log(self.priors_) - 0.5 * np.sum(centred**2, axis=1)
        coef = centred @ whiten.T
        intercept = intercept - coef @ xbar
        if k == 2:
            coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
        self.xbar_, self.means_ = keep_float32(xbar, X), keep_float32(self._means, X)
        self.coef_, self.intercept_ = keep_float32(coef, X), keep_float32(intercept, X)

    @property
    def _n_features_out(self) -> int:
        return min(self._max_components, self.scalings_.shape[1])

    def transform(self, X: Any) -> np.ndarray:
        """Project the examples on the directions that separate the class means best, scaled to within-class covariance I."""
        check_is_fitted(self)
        X = check_predict(self, X)
        scalings = self.scalings_[:, : self._n_features_out].astype(np.float64)
        return keep_float32(Design(X).matmul(scalings) - self.xbar_ @ scalings, X)

    def as_linear(self) -> LinearForm:
        """The weights and biases: log-odds for two classes, a score per class for more."""
        check_is_fitted(self)
        return LinearForm(self.coef_.astype(np.float64), self.intercept_.astype(np.float64))

    def score_loss(self) -> Loss:
        """The loss whose inverse link maps scores to probabilities."""
        check_is_fitted(self)
        return Logistic() if len(self.classes_) == 2 else Softmax()

    def _wanted(self, X: Any, output: Any) -> np.ndarray:
        check_is_fitted(self)
        X = check_predict(self, X)
        W, b = self.coef_.astype(np.float64), self.intercept_.astype(np.float64)
        if len(self.classes_) == 2:  # the first class has score 0
            W, b = np.concatenate([np.zeros_like(W), W]), np.concatenate([[0.0], b])
        values, _ = core.linear_scores(Design(X).native, np.ascontiguousarray(W.T), b, None, output)
        if output == OUTPUT.best:
            return values
        return keep_float32(as_output(values, output, np.log(self.priors_)), self.coef_)


def _toward_sphere(S: np.ndarray, share: float) -> np.ndarray:
    """(1 − share) S + share · tr(S)/d · I."""
    d = len(S)
    return (1.0 - share) * S + share * np.trace(S) / d * np.eye(d)


def _ledoit_wolf(Z: np.ndarray, weights: np.ndarray | None, S: np.ndarray) -> np.ndarray:
    """S shrunk by the share that minimises the expected squared error (Ledoit & Wolf 2004), columns standardised.

    Z holds the centred examples. With μ = tr(S)/d, the share is b/δ, δ = ‖S − μI‖² and b = Σ‖zz' − S‖²/n², b ≤ δ.
    """
    deviation = np.sqrt(np.diag(S))
    deviation = np.where(deviation > 0, deviation, 1.0)
    R = S / np.outer(deviation, deviation)
    s = np.ones(len(Z)) if weights is None else weights
    n, d = float(s.sum()), len(S)
    mu = np.trace(R) / d
    square = float(np.sum(R**2))
    delta = square - d * mu**2
    spread = (float(s @ np.sum((Z / deviation) ** 2, axis=1) ** 2) / n - square) / n
    share = 0.0 if delta <= 0 else min(max(spread, 0.0), delta) / delta
    return _toward_sphere(R, share) * np.outer(deviation, deviation)
