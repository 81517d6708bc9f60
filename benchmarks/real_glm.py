"""French motor claims: a Poisson model with exposure and categories, beside glum and scikit-learn.

    python -m benchmarks.real_glm [folder of the data]

Prints the mean Poisson deviance on the training policies and the CPU time of the fit, best of three.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from glum import GeneralizedLinearRegressor
from sklearn.compose import make_column_transformer
from sklearn.linear_model import PoissonRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import hinge as hg
from benchmarks.data import SHARED

CATEGORIES = ["Area", "VehBrand", "VehGas", "Region"]


def policies(folder: Path) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """The inputs, the claims (at most 4) and the exposures (at most a year)."""
    raw = pd.read_csv(folder / "freMTPL2freq.csv.gz")
    X = pd.DataFrame(
        {
            "VehPower": raw.VehPower,
            "VehAge": raw.VehAge.clip(upper=20),
            "DrivAge": raw.DrivAge,
            "DrivAge2": (raw.DrivAge / 50) ** 2,
            "BonusMalus": raw.BonusMalus.clip(upper=150),
            "LogDensity": np.log(raw.Density),
        }
    ).astype(float)
    X[CATEGORIES] = raw[CATEGORIES].astype("category")
    return X, raw.ClaimNb.clip(upper=4).to_numpy(float), raw.Exposure.clip(upper=1).to_numpy()


def deviance(y: np.ndarray, mean: np.ndarray) -> float:
    return 2.0 * float(np.mean(np.where(y > 0, y * np.log(np.where(y > 0, y, 1.0) / mean), 0.0) - y + mean))


Fit = Callable[[], Any]


def contenders(X: pd.DataFrame, y: np.ndarray, e: np.ndarray) -> Iterator[tuple[str, Fit, Callable[[Any], np.ndarray]]]:
    """A name, a fit, and the expected claims of what it returns."""
    expected = {"exposure": e}
    yield "hinge", lambda: hg.PoissonRegressor(alpha=0.0).fit(X, y, **expected), lambda m: m.predict(X, **expected)
    glum = {"alpha": 0.0, "family": "poisson", "drop_first": True}
    offset = np.log(e)
    yield (
        "glum",
        lambda: GeneralizedLinearRegressor(**glum).fit(X, y, offset=offset),
        lambda m: m.predict(X, offset=offset),
    )
    for solver in ("newton-cholesky", "lbfgs"):
        encode = make_column_transformer((OneHotEncoder(drop="first"), CATEGORIES), remainder=StandardScaler())
        pipe = make_pipeline(encode, PoissonRegressor(alpha=0.0, solver=solver, max_iter=1000))
        yield (
            f"scikit-learn {solver}",
            lambda pipe=pipe: pipe.fit(X, y / e, poissonregressor__sample_weight=e),
            lambda m: m.predict(X) * e,
        )


def main(folder: Path) -> None:
    X, y, e = policies(folder)
    print(f"{'constant rate':30} {deviance(y, e * y.sum() / e.sum()):.8f}")
    for name, fit, predict in contenders(X, y, e):
        times = []
        for _ in range(3):
            began = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = fit()
            times.append(time.process_time() - began)
        print(f"{name:30} {deviance(y, predict(model)):.8f} {min(times):8.2f} s")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else SHARED)
