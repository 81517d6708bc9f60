"""Base of the naive Bayes classifiers: labels and partial fits.

The features are independent given the class, so

    log p(c, x) = log π_c + Σ_j log p(x_j | c),

and every estimate is a ratio of counts. X is read once: values that are not finite make the counts not finite, and only
then is X searched for them.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.base import ClassifierMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import _check_partial_fit_first_call
from sklearn.utils.validation import check_is_fitted

from hinge._native import check_indices
from hinge._parameters import Constraints, Estimator, at_least, numbers
from hinge._validation import validate_data
from hinge.models.base import ACCEPT_SPARSE, FLOATS, check_weights, codes_among, contiguous, unique_codes
from hinge.models.generative.base import JointPosterior, as_output

# The logarithm of a zero probability in sums of scores. No other class has a lower score, and 0 · log 0 is 0.
LOG_ZERO = -690.0


class NaiveBayes(JointPosterior, ClassifierMixin, Estimator):
    """Base class. Subclasses count (``_count``), estimate (``_estimate``) and score (``_scores``)."""

    _parameter_constraints: ClassVar[Constraints] = {
        "alpha": [at_least(0), numbers(0)],
        "force_alpha": ["boolean"],
        "fit_prior": ["boolean"],
        "class_prior": [numbers(), None],
    }

    accepts_sparse = True
    classes_: np.ndarray
    class_count_: np.ndarray

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.accepts_sparse
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit; a weight of 2 is equivalent to repeating the example."""
        X, y = self._checked(X, y, reset=True)
        self.classes_, codes = unique_codes(y)
        return self._learn(X, codes, check_weights(sample_weight, X), first=True)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Add examples to the counts. The first call must list all ``classes``."""
        first = _check_partial_fit_first_call(self, classes)
        X, y = self._checked(X, y, reset=first)
        return self._learn(X, codes_among(self.classes_, y), check_weights(sample_weight, X), first=first)

    def _checked(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, np.ndarray]:
        check_indices(X)
        X, y = validate_data(
            self, X, y, reset=reset, dtype=FLOATS, ensure_all_finite=False,
            accept_sparse=ACCEPT_SPARSE if self.accepts_sparse else False,
        )  # fmt: skip
        return contiguous(X), y

    def _learn(self, X: Any, codes: np.ndarray, weights: np.ndarray | None, *, first: bool) -> Any:
        self._count(X, np.ascontiguousarray(codes, dtype=np.int32), weights, first)
        self._estimate()
        return self

    def _count(self, X: Any, codes: np.ndarray, weights: np.ndarray | None, first: bool) -> None:
        raise NotImplementedError

    def _estimate(self) -> None:
        raise NotImplementedError

    def _scores(self, X: Any, output: Any) -> tuple[np.ndarray, bool]:
        """The requested output, and whether every example has a finite score."""
        raise NotImplementedError

    def _require_finite(self, X: Any, counts: np.ndarray) -> None:
        """If the counts are not finite, raises an error: X is not finite, or its values are too large to be summed."""
        if not np.all(np.isfinite(counts)):
            assert_all_finite(X, estimator_name=type(self).__name__, input_name="X")
            raise ValueError("X has values so large that their sums overflow; rescale its columns.")

    def _wanted(self, X: Any, output: Any) -> np.ndarray:
        check_is_fitted(self)
        check_indices(X)
        X = validate_data(
            self, X, reset=False, dtype=FLOATS, ensure_all_finite=False,
            accept_sparse=ACCEPT_SPARSE if self.accepts_sparse else False,
        )  # fmt: skip
        X = contiguous(X)
        values, finite = self._scores(X, output)
        if not finite:
            assert_all_finite(X, estimator_name=type(self).__name__, input_name="X")
        if not finite or np.isnan(values).any():
            with np.errstate(divide="ignore"):
                prior = self.class_log_prior_ if hasattr(self, "class_log_prior_") else np.log(self.class_prior_)
            values = as_output(values, output, prior)
        return values


def by_rows(X: Any) -> Any:
    """X in a storage that the core scores: CSC is converted to CSR (a copy)."""
    return X.tocsr() if scipy.sparse.issparse(X) and X.format == "csc" else X
