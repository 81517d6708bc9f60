"""Monomials of the inputs: all products of up to M features, C(d + M, M) of them with the constant.

With the weights √(M! / ((M − k)! a!)) · c^((M−k)/2) for the monomial x^a of degree k, inner products of the outputs are
the polynomial kernel: (c + ⟨x, x'⟩)^M = Σ_a weight_a² x^a x'^a, by the multinomial theorem.

Columns of one degree are in the order of sorted tuples of features, so the products that begin with feature j are j
times a run of columns of the degree below; both the dense and the sparse form are built from that.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb, inf, lgamma, log
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from hinge._native import check_indices
from hinge._parameters import Constraints, Estimator, at_least, count, numbers, one_of
from hinge._validation import validate_data
from hinge.features.precision import KeepsPrecision

ROWS = 512  # a block of rows whose products stay in the cache
MOST_OUTPUTS = 2**31 - 1
MOST_NAMES = 10_000_000
MOST_DEGREE = 10_000


class PolynomialFeatures(KeepsPrecision, Estimator):
    """Products of features: φ(x) = (x^a) for all exponents a with min ≤ |a| ≤ M, with optional weights.

    Parameters
    ----------
    degree : int or (min, max)
        The largest degree M, or the smallest and the largest.
    interaction_only : bool
        Only products of different features.
    include_bias : bool
        Whether the constant 1 is an output.
    order : {"C", "F"}
        Memory order of a dense result.
    kernel_weights : bool
        Weigh monomials so that ⟨φ(x), φ(x')⟩ = (coef0 + ⟨x, x'⟩)^M (with all degrees from 0 on and repeated features).
    coef0 : float
        The constant c ≥ 0 of that kernel.

    Attributes
    ----------
    powers_ : array of shape (outputs, features)
        The exponents.
    weights_ : array
        The weights; ones without ``kernel_weights``.
    n_output_features_ : int
        C(d + M, M), where nothing is left out.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> phi = hg.PolynomialFeatures(2).fit([[2.0, 3.0]])
    >>> phi.transform([[2.0, 3.0]]).tolist(), list(phi.get_feature_names_out())
    ([[1.0, 2.0, 3.0, 4.0, 6.0, 9.0]], ['1', 'x0', 'x1', 'x0^2', 'x0 x1', 'x1^2'])
    >>> z = hg.PolynomialFeatures(3, kernel_weights=True).fit_transform([[1.0, 2.0], [3.0, 4.0]])
    >>> round(float(z[0] @ z[1]))  # (1 + 1·3 + 2·4)³
    1728
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "degree": [count(0), numbers(0, size=2)],
        "interaction_only": ["boolean"],
        "include_bias": ["boolean"],
        "order": [one_of("C", "F")],
        "kernel_weights": ["boolean"],
        "coef0": [at_least(0)],
    }

    _constant_tags: ClassVar[dict[str, bool]] = {"input_tags.sparse": True}

    def __init__(
        self,
        degree: Any = 2,
        *,
        interaction_only: bool = False,
        include_bias: bool = True,
        order: str = "C",
        kernel_weights: bool = False,
        coef0: float = 1.0,
    ) -> None:
        self.degree = degree
        self.interaction_only = interaction_only
        self.include_bias = include_bias
        self.order = order
        self.kernel_weights = kernel_weights
        self.coef0 = coef0

    def fit(self, X: Any, y: Any = None) -> PolynomialFeatures:
        """Count the outputs; only the number of features matters."""
        low, high = self._degrees()
        check_indices(X)
        d = validate_data(self, X, accept_sparse=("csr", "csc")).shape[1]
        count = self._count(d, low, high)
        if count == 0 and high == 0:
            raise ValueError("degree=0 without a bias leaves no outputs; set include_bias=True.")
        self.n_output_features_ = count
        self.degrees_ = ([0] if self.include_bias else []) + list(range(max(low, 1), high + 1))
        self._n_features_out = self.n_output_features_
        return self

    def _count(self, d: int, low: int, high: int) -> int:
        """The number of monomials; raises for too many before the exact number is computed."""
        if high > MOST_DEGREE:
            raise ValueError(f"degree={self.degree} is too large: at most {MOST_DEGREE}, since 1.08^10000 overflows.")
        # Σ_{k ≤ high} C(d + k − 1, k) = C(d + high, high); of each feature once, Σ C(d, k) ≤ 2^d.
        size = lgamma(d + high + 1) - lgamma(d + 1) - lgamma(high + 1)
        size = min(size, d * log(2.0)) if self.interaction_only else size
        count = _number(d, low, high, self.interaction_only) if size < log(MOST_OUTPUTS) + 30 else inf
        # Products of high degree are made from those of lower ones, of which there may be more.
        most = comb(d, min(high, d // 2)) if self.interaction_only and count < inf else count
        if max(count, most) > MOST_OUTPUTS:
            raise ValueError(
                f"degree={self.degree} of {d} features takes more than {MOST_OUTPUTS} monomials, more than can be indexed. Use a "
                f"polynomial kernel instead: hg.SVC(kernel=hg.kernels.Polynomial({high})) does not write them out."
            )
        return int(count) + (low > 0 and self.include_bias) - (low == 0 and not self.include_bias)

    def _check_loaded(self) -> None:
        """Check a loaded model: the numbers of inputs and outputs must match."""
        if not hasattr(self, "n_output_features_"):
            return
        low, high = self._degrees()
        count = self._count(self.n_features_in_, low, high)
        degrees = ([0] if self.include_bias else []) + list(range(max(low, 1), high + 1))
        if self.n_output_features_ != count or self.degrees_ != degrees:
            raise ValueError("it holds monomials whose number does not fit their degree.")

    def transform(self, X: Any) -> Any:
        """The monomials of any rows; CSR in, CSR out."""
        check_is_fitted(self)
        check_indices(X)
        X = validate_data(
            self, X, accept_sparse=("csr", "csc"), dtype=[np.float64, np.float32], reset=False
        )  # fmt: skip
        with np.errstate(over="ignore", invalid="ignore"):
            out = self._sparse(X) if scipy.sparse.issparse(X) else self._table(X)
        if not np.all(np.isfinite(out.data if scipy.sparse.issparse(out) else out)):
            raise ValueError("X has values so large that their products overflow; rescale its columns.")
        return out

    def _table(self, X: np.ndarray) -> np.ndarray:
        out: np.ndarray = np.empty((len(X), self.n_output_features_), dtype=X.dtype, order=self.order)  # type: ignore[call-overload]
        for begin in range(0, len(X), ROWS):
            self._dense(X[begin : begin + ROWS], out[begin : begin + ROWS])
        if self.kernel_weights:
            out *= self.weights_.astype(X.dtype)
        return out

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names such as "1", "x0", "x0^2 x1"."""
        check_is_fitted(self)
        if max(self.n_output_features_, self.n_features_in_) > MOST_NAMES:
            raise ValueError(f"{self.n_output_features_} outputs are too many to name; at most {MOST_NAMES} are named.")
        names = _check_feature_names_in(self, input_features)
        powers = np.array(["", "", *(f"^{p}" for p in range(2, max(self.degrees_, default=0) + 1))], dtype=object)
        factors = names.astype(object)[:, None] + powers[1:]  # x_j^p at [j, p − 1]
        whole = rest = np.array([""], dtype=object)  # of each monomial, and without its first factor
        named = [np.array(["1"], dtype=object)] if 0 in self.degrees_ else []
        for k, source, feature, power in self._steps():
            after = " " + whole if k > 1 else whole
            rest = np.where(power > 1, rest[source], after[source])
            whole = factors[feature, power - 1] + rest
            if k in self.degrees_:
                named.append(whole)
        return np.concatenate(named)

    @property
    def powers_(self) -> np.ndarray:
        """The exponents, one row per output."""
        check_is_fitted(self)
        out = np.zeros((self.n_output_features_, self.n_features_in_), dtype=np.int64)
        powers, at = np.zeros((1, self.n_features_in_), dtype=np.int64), int(0 in self.degrees_)
        for k, source, feature, _ in self._steps():
            powers = powers[source]
            powers[np.arange(len(powers)), feature] += 1
            if k in self.degrees_:
                out[at : at + len(powers)] = powers
                at += len(powers)
        return out

    @property
    def weights_(self) -> np.ndarray:
        """The factor of every monomial."""
        check_is_fitted(self)
        if not self.kernel_weights:
            return np.ones(self.n_output_features_)
        repeats = np.zeros(1)
        weights = [self._weight(0, repeats)] if 0 in self.degrees_ else []
        for k, source, _, power in self._steps():
            repeats = repeats[source] + np.log(power)
            if k in self.degrees_:
                weights.append(self._weight(k, repeats))
        return np.concatenate(weights)

    def _weight(self, k: int, repeats: np.ndarray) -> np.ndarray:
        """The factors of monomials of degree k from log a!; in logarithms, since 171! exceeds a double."""
        M, c = self._degrees()[1], float(self.coef0)
        if c == 0 and k < M:
            return np.zeros(len(repeats))
        top = lgamma(M + 1) - lgamma(M - k + 1) + ((M - k) * log(c) if k < M else 0.0)
        with np.errstate(over="ignore"):
            return np.exp((top - repeats) / 2)

    def _degrees(self) -> tuple[int, int]:
        degree = self.degree
        low, high = (0, degree) if isinstance(degree, int | np.integer) else tuple(degree)
        if not (isinstance(low, int | np.integer) and isinstance(high, int | np.integer) and 0 <= low <= high):
            raise ValueError(f"degree must be a whole number ≥ 0, or a pair (min, max) of them; got {degree!r}.")
        return int(low), int(high)

    def _steps(self) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
        """For k = 1, 2, …, the monomials of degree k as x_j times one of degree k − 1: k, which one, j, and the power of x_j."""
        d, skip = self.n_features_in_, int(self.interaction_only)
        first, power = np.full(1, d), np.zeros(1, dtype=np.int64)
        for k in range(1, max(self.degrees_, default=0) + 1):
            begins = self._starts(k - 1)[skip : skip + d] if k > 1 else np.zeros(d, dtype=np.int64)
            counts = len(first) - begins
            feature = np.repeat(np.arange(d), counts)
            source = np.arange(len(feature)) + np.repeat(begins - np.cumsum(counts) + counts, counts)
            power = np.where(feature == first[source], power[source] + 1, 1)
            first = feature
            yield k, source, feature, power

    def _starts(self, k: int) -> np.ndarray:
        """How many monomials of degree k begin with a feature before j, for j = 0 … d."""
        d = self.n_features_in_
        if k == 0:
            return np.zeros(d + 1, dtype=np.int64)
        if self.interaction_only:
            after = [comb(d - j, k) for j in range(d + 1)]
        else:
            after = [comb(d - j + k - 1, k) for j in range(d + 1)]
        return np.array([after[0] - a for a in after], dtype=np.int64)

    def _dense(self, X: np.ndarray, out: np.ndarray) -> None:
        d, at = X.shape[1], 0
        below = np.ones((len(X), 1), dtype=X.dtype)
        skip = 1 if self.interaction_only else 0
        for k in range(max(self.degrees_, default=0) + 1):
            if k > 0:
                starts, size = self._starts(k - 1), below.shape[1]
                # Degree one multiplies the empty product by every feature.
                runs = [below[:, (starts[min(j + skip, d)] if k > 1 else 0) : size] for j in range(d)]
                below = np.concatenate([X[:, j : j + 1] * run for j, run in enumerate(runs)], axis=1)
            if k in self.degrees_:
                out[:, at : at + below.shape[1]] = below
                at += below.shape[1]

    def _sparse(self, X: Any) -> Any:
        kind = scipy.sparse.csr_array if isinstance(X, scipy.sparse.sparray) else scipy.sparse.csr_matrix
        wanted = X.format
        X = scipy.sparse.csr_array(X)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        n = X.shape[0]
        terms = _Terms.constant(n, X.dtype)
        columns, rows, values, at = [], [], [], 0
        for k in range(max(self.degrees_, default=0) + 1):
            if k > 0:
                terms = terms.times(X, self._starts(k - 1), self._starts(k), self.interaction_only)
            if k in self.degrees_:
                columns.append(terms.place + at)
                rows.append(terms.row)
                values.append(self._weighed(terms, k))
                at += int(self._starts(k)[-1]) if k > 0 else 1
        matrix = scipy.sparse.coo_array(
            (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))),
            shape=(n, self.n_output_features_),
        ).tocsr()
        return kind(matrix).asformat(wanted)

    def _weighed(self, terms: _Terms, k: int) -> np.ndarray:
        if not self.kernel_weights:
            return terms.value
        return terms.value * self._weight(k, terms.repeats).astype(terms.value.dtype)


class _Terms:
    """The monomials of one degree that are not zero.

    For each: its row, its index within the degree, its first feature and the power of that feature, its value, and log a!
    (of the product of the factorials of its powers).
    """

    def __init__(self, row: Any, place: Any, first: Any, power: Any, value: Any, repeats: Any) -> None:
        self.row, self.place, self.first = row, place, first
        self.power, self.value, self.repeats = power, value, repeats

    @staticmethod
    def constant(n: int, dtype: Any) -> _Terms:
        zeros = np.zeros(n, dtype=np.int64)
        last = np.full(n, np.iinfo(np.int64).max)
        return _Terms(np.arange(n), zeros, last, zeros, np.ones(n, dtype=dtype), np.zeros(n))

    def times(self, X: Any, below: np.ndarray, starts: np.ndarray, strict: bool) -> _Terms:
        """Every term times every feature of its row that does not come after (``strict``: comes before) its first."""
        begins, ends = X.indptr[self.row].astype(np.int64), X.indptr[self.row + 1].astype(np.int64)
        indices = X.indices.astype(np.int64)
        width = np.int64(X.shape[1] + 1)
        # Entries are sorted by row and feature, so one search finds how many of a row's features are allowed.
        keys = np.repeat(np.arange(X.shape[0], dtype=np.int64), np.diff(X.indptr)) * width + indices
        limit = np.minimum(self.first, width - 1)
        last = np.searchsorted(keys, self.row * width + limit, side="left" if strict else "right")
        counts = np.maximum(np.minimum(last, ends) - begins, 0)
        source = np.repeat(np.arange(len(counts)), counts)
        entry = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + begins[source]
        feature = indices[entry]
        inside = self.place[source] - below[np.minimum(feature + strict, len(below) - 1)]
        power = np.where(feature == self.first[source], self.power[source] + 1, 1)
        return _Terms(
            self.row[source], starts[feature] + inside, feature, power, self.value[source] * X.data[entry],
            self.repeats[source] + np.log(power),
        )  # fmt: skip


def _number(d: int, low: int, high: int, interaction_only: bool) -> int:
    """How many monomials have a degree from low to high."""
    return sum(comb(d, k) if interaction_only else comb(d + k - 1, k) for k in range(low, high + 1))
