"""Naive Bayes for counts and for presence: multinomial, complement, Bernoulli."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from hinge._native import Design, core
from hinge._parameters import Constraints, between
from hinge.models.generative.base import log_prior
from hinge.models.generative.naive_bayes.base import LOG_ZERO, NaiveBayes, by_rows

LEAST_ALPHA = 1e-10


def check_alpha(alpha: Any, force: bool, shape: tuple[int, ...] = ()) -> np.ndarray:
    """The smoothing as an array of nonnegative numbers; at least 1e-10 unless forced."""
    values = np.asarray(alpha, dtype=np.float64)
    if values.ndim and values.shape != shape:
        raise ValueError(f"alpha must be a number or have one entry per feature {shape}, got shape {values.shape}.")
    if force or np.all(values >= LEAST_ALPHA):
        return values
    warnings.warn(
        f"alpha too small will result in numeric errors, setting alpha = {LEAST_ALPHA:.1e}. Use `force_alpha=True` to keep"
        " alpha unchanged.",
        UserWarning,
        stacklevel=5,
    )
    return np.maximum(values, LEAST_ALPHA)


class CountingNB(NaiveBayes):
    """Base class of models whose scores are linear in the (binarised) features."""

    alpha: Any
    force_alpha: bool
    fit_prior: bool
    class_prior: Any
    feature_count_: np.ndarray

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on real-valued blobs, which are not counts
        return tags

    def _threshold(self) -> float | None:
        return None

    def _count(self, X: Any, codes: np.ndarray, weights: np.ndarray | None, first: bool) -> None:
        threshold = self._threshold()
        count, sums, least = core.class_sums(Design(X).native, codes, weights, len(self.classes_), threshold)
        self._require_finite(X, sums)
        if threshold is None and least < 0:
            raise ValueError(
                f"Negative values in data passed to {type(self).__name__} (input X): counts are of zero or more."
            )
        if not first:
            count, sums = count + self.class_count_, sums + self.feature_count_
        self.class_count_, self.feature_count_ = count, sums

    def _estimate(self) -> None:
        alpha = check_alpha(self.alpha, self.force_alpha, (self.n_features_in_,))
        with np.errstate(divide="ignore", invalid="ignore"):
            self._estimate_features(alpha)
        self.class_log_prior_ = log_prior(self.class_prior, self.class_count_, fit=self.fit_prior)

    def _estimate_features(self, alpha: np.ndarray) -> None:
        raise NotImplementedError

    def _linear(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights (k, d) and biases (k,) of the scores."""
        return np.maximum(self.feature_log_prob_, LOG_ZERO), self.class_log_prior_

    def _scores(self, X: Any, output: Any) -> tuple[np.ndarray, bool]:
        W, b = self._linear()
        return core.linear_scores(Design(by_rows(X)).native, np.ascontiguousarray(W.T), b, self._threshold(), output)


class MultinomialNB(CountingNB):
    """Naive Bayes for counts, such as those of words.

    Maximises  Σ sᵢ [log π_{yᵢ} + Σ_j xᵢⱼ log p_{yᵢ j}]  with Σ_j p_cj = 1:  p_cj = (N_cj + α) / Σ_j (N_cj + α),
    where N_cj is the weight of feature j in class c.

    Parameters
    ----------
    alpha : float or array of shape (d,)
        Smoothing: occurrences of every feature in every class that are added to those seen. 0 is plain counting.
    force_alpha : bool
        If False, an alpha below 1e-10 is raised to it.
    fit_prior : bool
        Whether to count class probabilities; if not, they are all the same.
    class_prior : array of shape (k,), optional
        Class probabilities.

    Attributes
    ----------
    classes_, class_count_, class_log_prior_ : arrays of shape (k,)
    feature_count_, feature_log_prob_ : arrays of shape (k, d)

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> words = np.array([[2, 1, 0], [3, 0, 0], [0, 1, 2], [0, 0, 3]])
    >>> hg.MultinomialNB().fit(words, ["ham", "ham", "spam", "spam"]).predict([[1, 1, 0]])
    array(['ham'], dtype='<U4')
    """

    _constant_tags: ClassVar[dict[str, bool]] = {"input_tags.positive_only": True}

    def __init__(
        self, *, alpha: Any = 1.0, force_alpha: bool = True, fit_prior: bool = True, class_prior: Any = None
    ) -> None:
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior

    def _estimate_features(self, alpha: np.ndarray) -> None:
        smoothed = self.feature_count_ + alpha
        self.feature_log_prob_ = np.log(smoothed) - np.log(smoothed.sum(axis=1, keepdims=True))


class ComplementNB(MultinomialNB):
    """Multinomial naive Bayes on the complement of each class (Rennie et al. 2003): more stable if classes differ in
    size.

    Scores −Σ_j x_j log q_cj, with q_cj the smoothed share of feature j outside class c.

    Parameters
    ----------
    alpha, force_alpha, fit_prior, class_prior
        As for :class:`MultinomialNB`. The prior matters only if there is a single class.
    norm : bool
        Divide the weights of a class by their sum.

    Attributes
    ----------
    feature_all_ : array of shape (d,)
        The weight of every feature.
    classes_, class_count_, class_log_prior_, feature_count_, feature_log_prob_
        As for :class:`MultinomialNB`; ``feature_log_prob_`` holds the weights of the scores.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> words = np.array([[2, 1, 0], [3, 0, 0], [0, 1, 2], [0, 0, 3]])
    >>> hg.ComplementNB().fit(words, [0, 0, 1, 1]).predict([[1, 1, 0]])
    array([0])
    """

    _parameter_constraints: ClassVar[Constraints] = {"norm": ["boolean"]}

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Any = None,
        norm: bool = False,
    ) -> None:
        super().__init__(alpha=alpha, force_alpha=force_alpha, fit_prior=fit_prior, class_prior=class_prior)
        self.norm = norm

    def _estimate_features(self, alpha: np.ndarray) -> None:
        self.feature_all_ = self.feature_count_.sum(axis=0)
        complement = self.feature_all_ + alpha - self.feature_count_
        logged = np.log(complement / complement.sum(axis=1, keepdims=True))
        self.feature_log_prob_ = logged / logged.sum(axis=1, keepdims=True) if self.norm else -logged

    def _linear(self) -> tuple[np.ndarray, np.ndarray]:
        k = len(self.classes_)
        prior = self.class_log_prior_ if k == 1 else np.zeros(k)
        return np.nan_to_num(self.feature_log_prob_, nan=0.0, posinf=-LOG_ZERO, neginf=LOG_ZERO), prior


class BernoulliNB(CountingNB):
    """Naive Bayes for features that are present or not.

    Maximises  Σ sᵢ [log π_{yᵢ} + Σ_j (bᵢⱼ log p_{yᵢ j} + (1 − bᵢⱼ) log(1 − p_{yᵢ j}))],  bᵢⱼ = [xᵢⱼ > binarize]:
    p_cj = (N_cj + α) / (N_c + 2α). An absent feature counts too, unlike in the multinomial model.

    Parameters
    ----------
    alpha : float or array of shape (d,)
        Smoothing: α examples with and α without the feature, in every class. 0 is plain counting.
    binarize : float or None
        Where presence begins; None if X holds zeros and ones already.
    force_alpha, fit_prior, class_prior
        As for :class:`MultinomialNB`.

    Attributes
    ----------
    classes_, class_count_, class_log_prior_, feature_count_, feature_log_prob_
        As for :class:`MultinomialNB`.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> X = np.array([[1, 0], [1, 1], [0, 1], [0, 1]])
    >>> hg.BernoulliNB().fit(X, [0, 0, 1, 1]).predict_proba([[1, 0]]).round(2)
    array([[0.86, 0.14]])
    """

    _parameter_constraints: ClassVar[Constraints] = {"binarize": [between(None, None, "neither"), None]}

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        binarize: float | None = 0.0,
        fit_prior: bool = True,
        class_prior: Any = None,
    ) -> None:
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.binarize = binarize
        self.fit_prior = fit_prior
        self.class_prior = class_prior

    def _threshold(self) -> float | None:
        return None if self.binarize is None else float(self.binarize)

    def _checked(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, np.ndarray]:
        X, y = super()._checked(X, y, reset=reset)
        if scipy.sparse.issparse(X) and self.binarize is not None and self.binarize < 0:
            raise ValueError(f"binarize must be of zero or more if X is sparse, got {self.binarize!r}.")
        return X, y

    def _estimate_features(self, alpha: np.ndarray) -> None:
        total = np.log(self.class_count_[:, None] + 2 * alpha)
        self.feature_log_prob_ = np.log(self.feature_count_ + alpha) - total
        self._absent_log_prob = np.log(self.class_count_[:, None] - self.feature_count_ + alpha) - total

    def _linear(self) -> tuple[np.ndarray, np.ndarray]:
        present, absent = (
            np.nan_to_num(logged, nan=0.0, neginf=LOG_ZERO).clip(LOG_ZERO)
            for logged in (self.feature_log_prob_, self._absent_log_prob)
        )
        return present - absent, self.class_log_prior_ + absent.sum(axis=1)
