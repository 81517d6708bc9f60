"""The data of the tasks: synthetic problems of stated shape, and the real sets of ``../shared/data``.

Everything is a function of its arguments and a fixed seed. Problems that a column-wise solver is meant for are stored
column-major, the others row-major, as a user who knew would have them; sparse ones are CSR by default.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

SHARED = Path(os.environ.get("HINGE_DATA", Path(__file__).resolve().parents[1] / ".." / "shared" / "data"))


def folder() -> Path:
    """The folder of real data: ``$HINGE_DATA``, or ``shared/data`` beside the repository or one of its parents."""
    if SHARED.is_dir():
        return SHARED
    for parent in Path(__file__).resolve().parents:
        if (candidate := parent / "shared" / "data").is_dir():
            return candidate
    raise FileNotFoundError(f"the real data sets are not in {SHARED}; set HINGE_DATA to their folder")


def dense(n: int, d: int, *, seed: int, correlation: float = 0.5, order: str = "C", dtype: Any = np.float64) -> Any:
    """Gaussian rows; neighbouring columns correlated as an AR(1) process."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d), dtype=np.float64)
    scale = np.sqrt(1.0 - correlation**2)
    for j in range(1, d if correlation else 0):
        X[:, j] = correlation * X[:, j - 1] + scale * X[:, j]
    return np.asarray(X, dtype=dtype, order=order)


def sparse_rows(n: int, d: int, per_row: int, *, seed: int, normalise: bool = True) -> sp.csr_matrix:
    """CSR with about ``per_row`` positive entries a row, columns drawn by Zipf's law as words are."""
    rng = np.random.default_rng(seed)
    popularity = np.cumsum(1.0 / (np.arange(d) + 10.0))
    columns = np.searchsorted(popularity, rng.random(n * per_row) * popularity[-1]).astype(np.int32)
    columns = rng.permutation(d).astype(np.int32)[columns]
    values = rng.exponential(size=n * per_row) + 0.1
    X = sp.csr_matrix((values, columns, np.arange(0, n * per_row + 1, per_row)), shape=(n, d))
    X.sum_duplicates()
    if normalise:
        X.data /= np.repeat(np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel()), np.diff(X.indptr))
    return X


def weights(d: int, *, seed: int, nonzero: int | None = None) -> np.ndarray:
    """True coefficients: Gaussian, all or some of them nonzero."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(d)
    if nonzero is not None:
        w[rng.permutation(d)[nonzero:]] = 0.0
    return w


def linear_response(X: Any, w: np.ndarray, *, seed: int, snr: float = 3.0, heavy_tails: bool = False) -> np.ndarray:
    """y = Xw + noise with ‖Xw‖ = snr·‖noise‖ about; Student-t noise with 2.5 degrees of freedom when heavy."""
    rng = np.random.default_rng(seed)
    signal = np.asarray(X @ w, dtype=np.float64)
    noise = rng.standard_t(2.5, signal.size) if heavy_tails else rng.standard_normal(signal.size)
    return signal + noise * (signal.std() / snr)


def noisy_signs(X: Any, w: np.ndarray, *, seed: int, strength: float = 2.0) -> np.ndarray:
    """±1 labels of a logistic model whose scores have standard deviation ``strength``."""
    rng = np.random.default_rng(seed)
    signal = np.asarray(X @ w, dtype=np.float64)
    probability = 1.0 / (1.0 + np.exp(-signal * (strength / signal.std())))
    return np.where(rng.random(signal.size) < probability, 1.0, -1.0)


def images(n: int, k: int, *, side: int = 28, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Smooth non-negative "images" in [0, 1] of k classes: class templates, shared variation, pixel noise."""
    rng = np.random.default_rng(seed)
    d, factors = side * side, 40
    grid = np.stack(np.meshgrid(np.linspace(0, 1, side), np.linspace(0, 1, side)), axis=-1).reshape(d, 2)

    def bumps(count: int) -> np.ndarray:
        centres, widths = rng.random((count, 1, 2)), rng.uniform(0.05, 0.25, (count, 1))
        return np.exp(-np.square(grid[None] - centres).sum(axis=2) / (2 * widths**2))

    basis = bumps(factors)
    templates = 0.45 * rng.standard_normal((k, factors))
    y = rng.integers(k, size=n)
    codes = templates[y] + 0.5 * rng.standard_normal((n, factors))
    X = np.clip(codes @ basis + 0.1 * rng.standard_normal((n, d)), 0.0, None)
    return X / X.max(), y


def split(X: Any, y: Any, test: int) -> tuple[Any, Any, Any, Any]:
    """The last ``test`` rows are held out (rows are independent, so no shuffling is needed)."""
    return X[:-test], y[:-test], X[-test:], y[-test:]


def svmlight(name: str, features: int) -> tuple[sp.csr_matrix, np.ndarray]:
    """A LIBSVM file of the shared data."""
    from sklearn.datasets import load_svmlight_file

    with gzip.open(folder() / f"{name}.svm.gz") as stream:
        X, y = load_svmlight_file(stream, n_features=features)
    # Read with 64-bit indices, which most peers refuse.
    return sp.csr_matrix((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape), y


def table(name: str) -> Any:
    """A CSV file of the shared data as a pandas frame."""
    import pandas

    return pandas.read_csv(folder() / f"{name}.csv.gz", skipinitialspace=True, na_values=["?"])


def design(train: Any, test: Any) -> tuple[np.ndarray, np.ndarray]:
    """Numbers standardised (missing = mean), categories one-hot, by the training rows."""
    import pandas

    numeric = train.select_dtypes("number").columns
    other = [column for column in train.columns if column not in set(numeric)]
    mean, deviation = train[numeric].mean(), train[numeric].std()
    parts: list[list[np.ndarray]] = [[], []]
    for part, frame in zip(parts, (train, test)):
        part.append(((frame[numeric] - mean) / deviation).fillna(0.0).to_numpy())
        for column in other:
            levels = train[column].dropna().unique()
            codes = pandas.Categorical(frame[column], categories=sorted(levels))
            part.append(pandas.get_dummies(codes).to_numpy(dtype=np.float64))
    return np.ascontiguousarray(np.hstack(parts[0])), np.ascontiguousarray(np.hstack(parts[1]))


def adult() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Adult with its official split, numbers standardised and categories one-hot; +1 is an income above 50K."""
    train, test = table("adult_train"), table("adult_test")
    labels = [np.where(frame["income"].str.contains(">"), 1.0, -1.0) for frame in (train, test)]
    X, X_test = design(train.drop(columns="income"), test.drop(columns="income"))
    return X, labels[0], X_test, labels[1]


def california() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """California housing, every fifth row held out; the target in units of 100,000 dollars."""
    frame = table("california_housing")
    y = frame["median_house_value"].to_numpy(dtype=np.float64) / 1e5
    frame = frame.drop(columns="median_house_value")
    held = np.arange(len(frame)) % 5 == 0
    X, X_test = design(frame[~held], frame[held])
    return X, y[~held], X_test, y[held]
