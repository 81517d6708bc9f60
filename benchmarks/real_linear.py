"""Real data: test score and seconds to fit beside scikit-learn's. ``python -m benchmarks.real_linear [data folder]``."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sklearn.linear_model
import sklearn.svm
from sklearn.datasets import load_svmlight_file

import hinge as hg


def a9a(folder: Path) -> tuple[Any, Any, Any, Any]:
    X, y = load_svmlight_file(str(folder / "a9a.svm.gz"), n_features=123)
    X1, y1 = load_svmlight_file(str(folder / "a9a.t.svm.gz"), n_features=123)
    for matrix in (X, X1):  # LIBLINEAR takes 32-bit indices only
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
    return X, y, X1, y1


def california(folder: Path) -> tuple[Any, Any, Any, Any]:
    numbers = pd.read_csv(folder / "california_housing.csv.gz").dropna().select_dtypes("number")
    X, y = numbers.iloc[:, :-1].to_numpy(dtype=float), numbers.iloc[:, -1].to_numpy(dtype=float)
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[: 3 * len(y) // 4], order[3 * len(y) // 4 :]
    return X[train], y[train], X[test], y[test]


def main(folder: Path) -> None:
    linear, svm = sklearn.linear_model, sklearn.svm
    rows = [
        ("Adult (a9a)", a9a, hg.LogisticRegression(), linear.LogisticRegression(max_iter=1000)),
        (
            "Adult (a9a)",
            a9a,
            hg.LogisticRegression(l1_ratio=1),
            linear.LogisticRegression(l1_ratio=1, solver="liblinear"),
        ),
        ("Adult (a9a)", a9a, hg.LinearSVC(), svm.LinearSVC()),
        ("Adult (a9a)", a9a, hg.LinearSVC(loss="hinge"), svm.LinearSVC(loss="hinge", max_iter=10000)),
        ("California housing", california, hg.RidgeCV(), linear.RidgeCV()),
        ("California housing", california, hg.LassoCV(), linear.LassoCV()),
        ("California housing", california, hg.HuberRegressor(), linear.HuberRegressor(max_iter=1000)),
        ("California housing", california, hg.QuantileRegressor(alpha=0.001), linear.QuantileRegressor(alpha=0.001)),
    ]
    print(f"{'data':20} {'model':20} {'score':>8} {'theirs':>8} {'seconds':>9} {'theirs':>9}")
    for name, load, *models in rows:
        X, y, X1, y1 = load(folder)
        seconds, scores = [], []
        for model in models:
            began = time.perf_counter()
            model.fit(X, y)
            seconds.append(time.perf_counter() - began)
            scores.append(model.score(X1, y1))
        label = type(models[0]).__name__
        print(f"{name:20} {label:20} {scores[0]:8.4f} {scores[1]:8.4f} {seconds[0]:9.4f} {seconds[1]:9.4f}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data"))
