"""Base of nearest-neighbour classification and regression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import MultiOutputMixin
from sklearn.utils.validation import check_is_fitted

from hinge._parameters import INFINITY, Constraints, Estimator, above, count, one_of, shared
from hinge.models.base import check_predict
from hinge.models.neighbors.search import SPARSE_METRICS, NeighborSearch

Array = NDArray[np.float64]

ALIASES = {"l1": "manhattan", "cityblock": "manhattan", "l2": "euclidean", "infinity": "chebyshev", "p": "minkowski"}
NAMES = ("minkowski", "euclidean", "manhattan", "chebyshev", "cosine", *ALIASES)
POWERS = {1.0: "manhattan", 2.0: "euclidean", np.inf: "chebyshev"}


class BaseNeighbors(MultiOutputMixin, Estimator):
    """Parameters, the search and the weights of neighbours."""

    _search: NeighborSearch
    n_samples_fit_: int

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("n_jobs"),
        "n_neighbors": [count(), None],
        "weights": [one_of("uniform", "distance"), callable, None],
        "algorithm": [one_of("auto", "ball_tree", "kd_tree", "brute")],
        "leaf_size": [count()],
        "p": [above(0), INFINITY, None],
        "metric": [one_of(*NAMES)],
        "metric_params": [dict, None],
    }
    _constant_tags: ClassVar[dict[str, bool]] = {"input_tags.sparse": True}

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        weights: str | Callable[[Array], Array] | None = "uniform",
        algorithm: str = "auto",
        leaf_size: int = 30,
        p: float = 2,
        metric: str = "minkowski",
        metric_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.algorithm = algorithm
        self.leaf_size = leaf_size
        self.p = p
        self.metric = metric
        self.metric_params = metric_params
        self.n_jobs = n_jobs

    def _remember(self, X: Any) -> None:
        """Store the examples and prepare the search."""
        options = {} if self.metric_params is None else dict(self.metric_params)
        p = float(options.pop("p", 2 if self.p is None else self.p))
        if options:
            raise ValueError(f"metric_params has {sorted(options)}; the metrics here take 'p' only.")
        metric = ALIASES.get(self.metric, self.metric)
        metric = POWERS.get(p, metric) if metric == "minkowski" else metric
        if scipy.sparse.issparse(X) and metric not in SPARSE_METRICS:
            raise ValueError(f"metric={metric!r} takes dense X; use X.toarray(), or 'euclidean' or 'cosine'.")
        self.effective_metric_ = metric
        self.effective_metric_params_: dict[str, Any] = {"p": p} if metric == "minkowski" else {}
        self.n_samples_fit_ = X.shape[0]
        self._search = NeighborSearch(X, metric, p if metric == "minkowski" else 2.0, self.algorithm, self.leaf_size)
        _ = self._search.index

    def kneighbors(self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True) -> Any:
        """The nearest examples of every row in order of distance; ties go to the smaller index.

        Parameters
        ----------
        X : array or sparse matrix of shape (m, d), optional
            The queries; by default the examples themselves, none of which is its own neighbour.
        n_neighbors : int, optional
            How many; by default the parameter of the estimator.
        return_distance : bool
            Whether to return distances.

        Returns
        -------
        distances : array of shape (m, n_neighbors)
            Only with ``return_distance``.
        indices : array of shape (m, n_neighbors)
            Rows of the X that was fitted.
        """
        check_is_fitted(self)
        k = self.n_neighbors if n_neighbors is None else n_neighbors
        if isinstance(k, bool) or not isinstance(k, int | np.integer):
            raise TypeError(f"n_neighbors does not take {type(k)} value, enter integer value")
        if k <= 0:
            raise ValueError(f"Expected n_neighbors > 0. Got {k}")
        queries = None if X is None else check_predict(self, X)
        most = self.n_samples_fit_ - (X is None)
        if k > most:
            relation = "n_neighbors < n_samples_fit" if X is None else "n_neighbors <= n_samples_fit"
            raise ValueError(
                f"Expected {relation}, but n_neighbors = {k}, n_samples_fit = {self.n_samples_fit_}, "
                f"n_samples = {self.n_samples_fit_ if queries is None else queries.shape[0]}. Set a smaller n_neighbors."
            )
        distances, indices = self._search.nearest(queries, int(k))
        return (distances, indices) if return_distance else indices

    def kneighbors_graph(self, X: Any = None, n_neighbors: int | None = None, mode: str = "connectivity") -> Any:
        """The graph of nearest neighbours as a CSR matrix of shape (m, n).

        Parameters
        ----------
        X, n_neighbors
            As for :meth:`kneighbors`.
        mode : {"connectivity", "distance"}
            Entries are ones, or the distances.
        """
        if mode not in ("connectivity", "distance"):
            raise ValueError(f"mode must be 'connectivity' or 'distance', got {mode!r}.")
        distances, indices = self.kneighbors(X, n_neighbors)
        values = distances if mode == "distance" else np.ones(distances.shape)
        start = np.arange(0, indices.size + 1, indices.shape[1])
        return scipy.sparse.csr_matrix(
            (values.ravel(), indices.ravel(), start), shape=(len(indices), self.n_samples_fit_)
        )

    def _weighted_neighbors(self, X: Any) -> tuple[Array, NDArray[np.intp]]:
        """The weights and the indices of the neighbours of every row.

        With ``weights="distance"``, if any examples are at distance zero, they have all the weight.
        """
        distances, indices = self.kneighbors(X)
        if self.weights in (None, "uniform"):
            return np.ones(distances.shape), indices
        if callable(self.weights):
            weights = np.asarray(self.weights(distances), dtype=np.float64)
            if weights.shape != distances.shape:
                raise ValueError(
                    f"weights returned an array of shape {weights.shape} for distances of shape {distances.shape}; "
                    "it must return one weight per distance."
                )
            return weights, indices
        # Relative to the nearest distance, because the reciprocal of a subnormal distance would overflow.
        nearest = distances[:, :1]
        zero = distances == 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            weights = np.where(nearest == 0.0, zero, nearest / distances)
        return weights, indices

    def _check_neighbors(self, y: Any) -> None:
        """Checks the consistency of a model read from a file."""
        search = vars(self).get("_search")
        if search is None:
            return
        if not isinstance(search, NeighborSearch):
            raise ValueError("it holds no points to search among.")
        n, d = search.X.shape
        if self.n_samples_fit_ != n or self.n_features_in_ != d or not isinstance(y, np.ndarray) or len(y) != n:
            raise ValueError("its points do not fit its targets or its number of features.")
