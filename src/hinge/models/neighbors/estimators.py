"""Classification and regression by nearest neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin

from hinge._validation import numeric_targets
from hinge.models.base import LogProba, Multilabel, check_fit, unique_codes
from hinge.models.neighbors.base import BaseNeighbors

Array = NDArray[np.float64]


class KNeighborsClassifier(Multilabel, LogProba, ClassifierMixin, BaseNeighbors):
    """Predicts the most frequent class among the k nearest examples.

    P(y = c | x) = Σ_{i ∈ N_k(x)} wᵢ 1[yᵢ = c] / Σ_{i ∈ N_k(x)} wᵢ,  where N_k(x) are the k examples nearest to x. As
    n → ∞ the error for k = 1 is at most twice that of the Bayes classifier; for k → ∞, k/n → 0 it tends to it.

    Parameters
    ----------
    n_neighbors : int
        How many neighbours, k.
    weights : {"uniform", "distance"} or function of distances
        wᵢ = 1, or 1/distance; examples at distance zero then take all the weight. A function gets the array of
        distances and returns as many weights.
    algorithm : {"auto", "ball_tree", "kd_tree", "brute"}
        The search is exact, so the answer is the same for all of them. "brute" computes all distances, "kd_tree" uses a
        tree (of dense X); the others choose by the size of X.
    leaf_size : int
        Examples in a leaf of the tree; changes the speed only.
    p : float > 0
        The power of the metric "minkowski", (Σ|aⱼ − bⱼ|^p)^(1/p); infinity for the largest difference.
    metric : {"minkowski", "euclidean", "manhattan", "chebyshev", "cosine"}
        The distance. Sparse X has "euclidean" (which "minkowski" is for p = 2) and "cosine", 1 − ⟨a, b⟩/(‖a‖‖b‖).
    metric_params : dict, optional
        {"p": …} in place of ``p``.
    n_jobs : int, optional
        Accepted for compatibility; the number of threads is that of ``hg.set_num_threads``.

    Attributes
    ----------
    classes_ : array, or list of arrays for several outputs
        The labels.
    effective_metric_, effective_metric_params_, n_samples_fit_, outputs_2d_ : as in scikit-learn

    Notes
    -----
    Reference: Cover and Hart (1967). Columns on different scales should be scaled first (``hg.StandardScaler``).

    Examples
    --------
    >>> import hinge as hg
    >>> model = hg.KNeighborsClassifier(3).fit([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"])
    >>> model.predict([[0.9]])
    array(['a'], dtype='<U1')
    >>> model.predict_proba([[0.9]]).round(2)
    array([[0.67, 0.33]])
    """

    def fit(self, X: Any, y: Any) -> KNeighborsClassifier:
        """Store the examples.

        Parameters
        ----------
        X : array, sparse matrix or dataframe of shape (n, d)
        y : array of n labels, or of shape (n, outputs)
        """
        X, y, _ = check_fit(self, X, y, multi_output=True)
        self.outputs_2d_ = y.ndim == 2 and y.shape[1] > 1
        coded = [unique_codes(np.ascontiguousarray(column)) for column in y.reshape(len(y), -1).T]
        self.classes_ = [classes for classes, _ in coded] if self.outputs_2d_ else coded[0][0]
        self._y = np.column_stack([codes for _, codes in coded])
        self._remember(X)
        return self

    @property
    def _labels(self) -> list[np.ndarray]:
        return self.classes_ if isinstance(self.classes_, list) else [self.classes_]

    def predict_proba(self, X: Any) -> Any:
        """The fraction of the neighbours' weight in each class; a list of arrays for several outputs."""
        weights, indices = self._weighted_neighbors(X)
        rows = np.arange(len(indices))[:, None]
        shares = []
        for classes, codes in zip(self._labels, self._y.T):
            total = np.bincount(
                (rows * len(classes) + codes[indices]).ravel(), weights.ravel(), len(indices) * len(classes)
            ).reshape(len(indices), len(classes))
            size = total.sum(axis=1, keepdims=True)
            if np.any(size == 0):
                raise ValueError("weights are zero for all neighbours of a row; they must not all be zero.")
            shares.append(total / size)
        return shares if self.outputs_2d_ else shares[0]

    def predict(self, X: Any) -> np.ndarray:
        """The class with the largest fraction; the first in case of ties."""
        shares = self.predict_proba(X)
        best = [
            classes[np.argmax(share, axis=1)]
            for classes, share in zip(self._labels, shares if self.outputs_2d_ else [shares])
        ]
        return np.column_stack(best) if self.outputs_2d_ else best[0]

    def _check_loaded(self) -> None:
        y = vars(self).get("_y")
        self._check_neighbors(y)
        if y is None:
            return
        sizes = [len(classes) for classes in self._labels]
        if y.dtype.kind not in "iu" or y.shape[1:] != (len(sizes),) or np.any(y < 0) or np.any(y >= sizes):
            raise ValueError("its examples have classes that it does not have.")


class KNeighborsRegressor(RegressorMixin, BaseNeighbors):
    """Predicts the mean target of the k nearest examples.

    f(x) = Σ_{i ∈ N_k(x)} wᵢ yᵢ / Σ_{i ∈ N_k(x)} wᵢ,  where N_k(x) are the k examples nearest to x.

    Parameters
    ----------
    n_neighbors, weights, algorithm, leaf_size, p, metric, metric_params, n_jobs
        As for :class:`KNeighborsClassifier`.

    Attributes
    ----------
    effective_metric_, effective_metric_params_, n_samples_fit_ : as in scikit-learn

    Examples
    --------
    >>> import hinge as hg
    >>> model = hg.KNeighborsRegressor(2).fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 4.0, 9.0])
    >>> model.predict([[1.4]])
    array([2.5])
    >>> model.kneighbors([[1.4]])[1]
    array([[1, 2]])
    """

    def fit(self, X: Any, y: Any) -> KNeighborsRegressor:
        """Store the examples.

        Parameters
        ----------
        X : array, sparse matrix or dataframe of shape (n, d)
        y : array of n targets, or of shape (n, outputs)
        """
        X, y, _ = check_fit(self, X, y, multi_output=True)
        self._y = numeric_targets(y)
        self._remember(X)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The weighted mean of the neighbours' targets."""
        weights, indices = self._weighted_neighbors(X)
        size = weights.sum(axis=1)
        if np.any(size == 0):
            raise ValueError("weights are zero for all neighbours of a row; they must not all be zero.")
        share = weights / size[:, None]
        return np.einsum("ij,ij...->i...", share, self._y[indices])

    def _check_loaded(self) -> None:
        y = vars(self).get("_y")
        self._check_neighbors(y)
        if y is not None and (y.dtype.kind != "f" or y.ndim not in (1, 2)):
            raise ValueError("its targets are no numbers.")
