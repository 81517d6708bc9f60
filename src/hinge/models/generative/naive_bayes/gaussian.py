"""Gaussian naive Bayes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from hinge._native import Design, core
from hinge._parameters import Constraints, at_least, numbers
from hinge.models.generative.base import finish, log_prior
from hinge.models.generative.linear_form import LinearForm, linear_form
from hinge.models.generative.naive_bayes.base import NaiveBayes


class GaussianNB(NaiveBayes):
    """Naive Bayes with a normal distribution per column and class.

    Maximises  Σ sᵢ [log π_{yᵢ} + Σ_j log N(xᵢⱼ; θ_{yᵢ j}, σ²_{yᵢ j})],  in closed form:  π_c = N_c/N,
    θ_cj = Σ_{y=c} s x_j / N_c,  σ²_cj = Σ_{y=c} s (x_j − θ_cj)² / N_c (+ ``epsilon_``), in one pass over X that is
    centred block by block, so that columns far from zero lose no digits.

    Parameters
    ----------
    priors : array of shape (k,), optional
        Class probabilities; counted if not given.
    var_smoothing : float
        This fraction of the largest variance of a column is added to all variances.
    shared_variance : bool
        One variance per column for all classes, σ²_j = Σ s (x_j − θ_{yj})² / N. The classifier is then linear, with
        weights (θ₁ − θ₀)/σ² (see :meth:`as_linear`): the logistic form.

    Attributes
    ----------
    classes_, class_count_, class_prior_ : arrays of shape (k,)
    theta_, var_ : arrays of shape (k, d)
        Means and variances.
    epsilon_ : float
        What was added to the variances.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> hg.GaussianNB().fit(X, [0, 0, 1, 1]).predict([[-0.5], [0.5]])
    array([0, 1])
    """

    theta_: np.ndarray
    _scatter: np.ndarray

    _parameter_constraints: ClassVar[Constraints] = {
        "priors": [numbers(), None],
        "var_smoothing": [at_least(0)],
        "shared_variance": ["boolean"],
    }

    def __init__(self, *, priors: Any = None, var_smoothing: float = 1e-9, shared_variance: bool = False) -> None:
        self.priors = priors
        self.var_smoothing = var_smoothing
        self.shared_variance = shared_variance

    def _count(self, X: Any, codes: np.ndarray, weights: np.ndarray | None, first: bool) -> None:
        k = len(self.classes_)
        count, mean, square = core.class_moments(Design(X).native, codes, weights, k)
        self._require_finite(X, mean)
        self._require_finite(X, square)
        if not first:
            count, mean, square = merge_moments((self.class_count_, self.theta_, self._scatter), (count, mean, square))
        self.class_count_, self.theta_, self._scatter = count, mean, square

    def _estimate(self) -> None:
        self.class_prior_ = np.exp(log_prior(self.priors, self.class_count_, name="priors"))
        total = self.class_count_.sum()
        share = self.class_count_[:, None] / total
        within = self._scatter.sum(axis=0) / total
        between = np.sum(share * (self.theta_ - np.sum(share * self.theta_, axis=0)) ** 2, axis=0)
        self.epsilon_ = float(self.var_smoothing * np.max(within + between))
        if self.shared_variance:
            var = np.broadcast_to(within, self.theta_.shape)
        else:
            var = self._scatter / np.where(self.class_count_ > 0, self.class_count_, 1.0)[:, None]
        self.var_ = var + self.epsilon_

    def _gaussians(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """log π_c − ½ Σ log 2πσ², the means and 1/σ."""
        # A column that is constant in every class has zero variance: any other value has the smallest density.
        inverse = 1.0 / np.sqrt(np.maximum(self.var_, np.finfo(np.float64).tiny))
        with np.errstate(divide="ignore"):
            prior = np.log(self.class_prior_)
        return (
            prior + np.sum(np.log(inverse), axis=1) - 0.5 * inverse.shape[1] * np.log(2 * np.pi),
            self.theta_,
            inverse,
        )

    def _scores(self, X: Any, output: Any) -> tuple[np.ndarray, bool]:
        b, mean, inverse = self._gaussians()
        if not scipy.sparse.issparse(X):
            return core.gaussian_scores(Design(X).native, b, np.ascontiguousarray(mean), inverse, output)
        precision = inverse**2  # expanding (x − θ)²/σ² skips entries that are not stored
        joint = b - 0.5 * np.sum(mean**2 * precision, axis=1) + Design(X).matmul((mean * precision).T)
        return finish(joint - 0.5 * Design(X.multiply(X).asformat(X.format)).matmul(precision.T), output)

    def as_linear(self) -> LinearForm:
        """The weights and biases equivalent to this model; only with ``shared_variance=True``."""
        if not self.shared_variance:
            raise ValueError(
                "GaussianNB is linear only if the classes share their variances; set shared_variance=True and fit."
            )
        with np.errstate(divide="ignore"):
            return linear_form(self.theta_, self.theta_ / self.var_, np.log(self.class_prior_))


Moments = tuple[np.ndarray, np.ndarray, np.ndarray]


def merge_moments(one: Moments, two: Moments) -> Moments:
    """Counts, means and squared deviations of the union of two sets of examples (Chan, Golub & LeVeque 1983)."""
    (n, mean, square), (m, other, extra) = one, two
    total = n + m
    share = np.divide(m, total, out=np.zeros_like(total), where=total > 0)[:, None]
    delta = other - mean
    return total, mean + share * delta, square + extra + n[:, None] * share * delta**2
