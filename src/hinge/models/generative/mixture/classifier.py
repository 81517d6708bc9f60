"""A classifier with a mixture of Gaussians for each class."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from hinge._parameters import Constraints, Estimator, at_least, count, numbers, one_of, shared
from hinge._validation import validate_data
from hinge.models.base import FLOATS, check_fit, code_labels, contiguous
from hinge.models.callbacks import CallbackSupportMixin, with_callbacks
from hinge.models.generative.base import JointPosterior, as_output, finish, log_prior
from hinge.models.generative.mixture.components import SHAPES
from hinge.models.generative.mixture.gaussian import STARTS, GaussianMixture


class MixtureDiscriminant(CallbackSupportMixin, JointPosterior, ClassifierMixin, Estimator):
    """Bayes' rule with a Gaussian mixture per class (mixture discriminant analysis).

    log p(c, x) = log π_c + log Σ_m π_cm N(x; μ_cm, Σ_cm);  each class's mixture is fitted by EM to its own examples,
    with the prior of :class:`GaussianMixture`.

    Parameters
    ----------
    n_components : int, "bic", "heldout", or dict from class to one of these
        Components per class (at most as many as the class has examples).
    covariance_type : {"tied", "full", "diag", "spherical"}
        "tied": one covariance for all components of a class, so that a component may have few examples.
    tol, reg_covar, max_iter, n_init, init_params, random_state, prior_observations, max_components
        As for :class:`GaussianMixture`.
    priors : array of shape (k,), optional
        Class probabilities; counted if not given.

    Attributes
    ----------
    classes_, class_count_, priors_ : arrays of shape (k,)
    mixtures_ : list of GaussianMixture
        One per class.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> x = np.linspace(-3, 3, 61)[:, None]
    >>> inside = (np.abs(x[:, 0]) < 1).astype(int)
    >>> hg.MixtureDiscriminant(n_components=2).fit(x, inside).predict([[-2.0], [0.0], [2.0]])
    array([0, 1, 0])
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("tol", "max_iter", "random_state"),
        "n_components": [count(), one_of("bic", "heldout")],
        "covariance_type": [one_of(*SHAPES)],
        "reg_covar": [at_least(0)],
        "n_init": [count()],
        "init_params": [one_of(*STARTS)],
        "priors": [numbers(), None],
        "prior_observations": [at_least(0)],
        "max_components": [count()],
    }

    def __init__(
        self,
        n_components: Any = 2,
        *,
        covariance_type: str = "tied",
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        max_iter: int = 200,
        n_init: int = 1,
        init_params: str = "kmeans",
        random_state: Any = 0,
        priors: Any = None,
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
        self.random_state = random_state
        self.priors = priors
        self.prior_observations = prior_observations
        self.max_components = max_components

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MixtureDiscriminant:
        """Fit one mixture per class; a weight of 2 means the same as having the example twice."""
        X, y, weights = check_fit(self, X, y, sample_weight, accept_sparse=False)
        codes = code_labels(self, y)
        k = len(self.classes_)
        self.class_count_ = np.bincount(codes, weights, minlength=k).astype(np.float64)
        self.priors_ = np.exp(log_prior(self.priors, self.class_count_, name="priors"))
        shared = set(GaussianMixture._get_param_names()) & set(self._get_param_names()) - {"n_components"}
        settings = {name: getattr(self, name) for name in shared}
        self.mixtures_ = []
        for c, label in enumerate(self.classes_.tolist()):
            rows = np.flatnonzero((codes == c) & (True if weights is None else weights > 0))
            if rows.size == 0:
                raise ValueError(f"All examples of class {label!r} have weight zero; leave the class out.")
            requested = self.n_components[label] if isinstance(self.n_components, dict) else self.n_components
            size = requested if isinstance(requested, str) else min(int(requested), rows.size)
            mixture = GaussianMixture(size, **settings)
            part = None if weights is None else weights[rows]
            self.mixtures_.append(mixture.fit(np.ascontiguousarray(X[rows]), sample_weight=part))
        self.n_iter_ = max(mixture.n_iter_ for mixture in self.mixtures_)
        return self

    def _wanted(self, X: Any, output: Any) -> np.ndarray:
        check_is_fitted(self)
        X = contiguous(validate_data(self, X, dtype=FLOATS, reset=False))
        with np.errstate(divide="ignore"):
            prior = np.log(self.priors_)
        joint = np.column_stack([mixture.score_samples(X) for mixture in self.mixtures_]) + prior
        return as_output(finish(np.ascontiguousarray(joint), output)[0], output, prior)
