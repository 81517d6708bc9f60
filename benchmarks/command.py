"""The model that ``hinge fit`` picks against the defaults of others, on rows none of them has seen.

    python -m benchmarks.command [--time 60] [--table NAME …]

Every library gets the same training rows and the same columns (those that ``hinge fit`` keeps). LightGBM and
scikit-learn's histogram boosting get categories as such; linear models get them one-hot, numbers scaled, gaps filled.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.data import SHARED
from hinge.learning.request import Request
from hinge.learning.run import hold_out, run
from hinge.learning.scores import METRIC, measure_for
from hinge.tables.profile import profile
from hinge.tables.reading import read_table

TABLES = {
    "adult_train": "income",
    "spambase": "class",
    "pendigits": "class",
    "california_housing": "median_house_value",
    "bike_sharing_hour": "cnt",
}


def rivals(task: str, categories: list[str], numbers: list[str]) -> dict[str, Any]:
    """Defaults, with the loss that fits the task."""
    import lightgbm
    from sklearn import ensemble, linear_model
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    classes = task in ("binary", "multiclass")
    poisson: dict[str, Any] = {"loss": "poisson"} if task == "count" else {}
    objective: dict[str, Any] = {"objective": "poisson"} if task == "count" else {}
    linear = (
        linear_model.LogisticRegression() if classes
        else linear_model.PoissonRegressor() if task == "count" else linear_model.Ridge()
    )  # fmt: skip
    prep = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
        (OneHotEncoder(handle_unknown="ignore"), categories),
    )
    boosting = ensemble.HistGradientBoostingClassifier if classes else ensemble.HistGradientBoostingRegressor
    gbm = lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor
    return {
        "LightGBM": gbm(verbose=-1, **objective),
        "HistGradientBoosting": boosting(categorical_features="from_dtype", random_state=0, **poisson),
        "linear": make_pipeline(prep, linear),
    }


def one(name: str, target: str, seconds: float) -> dict[str, tuple[float, float, float]]:
    """Held-out score, its standard error and the seconds it took, by library; printed with the paired differences."""
    path = SHARED / f"{name}.csv.gz"
    seen = profile(read_table(path), target)
    classes, y = seen.classes, seen.y
    train, test = hold_out(y, seen.task, 99)
    mean = float(np.mean(y[train]))
    labels = y if classes is None else classes[y.astype(np.int64)]
    frame = seen.frame.with_columns(pl.Series(target, labels))
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / f"{name}.parquet"
        frame[train].write_parquet(part)
        began = time.perf_counter()
        kept = tuple(c.name for c in seen.columns)
        outcome = run(Request(part, target, seen.task, seconds, keep=kept))
        took = time.perf_counter() - began
    chosen = f"hinge fit ({outcome.chosen.family.name})"
    measure = measure_for(seen.task, classes, mean)
    targets = y[test] if classes is None else y[test].astype(np.int64)
    ours = measure.losses(outcome.model.pipeline, seen.frame[test], targets)
    result = measure.estimate(ours)
    found[chosen] = (result.value, result.standard_error, took)
    behind = {}
    table = seen.frame.to_pandas()
    kinds = {c.name: c.kind for c in seen.columns}
    for column, kind in kinds.items():
        if kind == "category":
            table[column] = table[column].astype("category")
        elif kind == "date":
            table[column] = table[column].astype("int64") / 8.64e13
    categories = [c for c, kind in kinds.items() if kind == "category"]
    numbers = [c for c in kinds if c not in categories]
    table.columns = [f"c{k}" for k in range(table.shape[1])]  # LightGBM refuses some characters in names
    place = {name: f"c{k}" for k, name in enumerate(kinds)}
    categories, numbers = [place[c] for c in categories], [place[c] for c in numbers]
    for library, model in rivals(seen.task, categories, numbers).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            began = time.perf_counter()
            model.fit(table.iloc[train], labels[train])
            took = time.perf_counter() - began
            theirs = measure.losses(model, table.iloc[test], targets)
        result = measure.estimate(theirs)
        found[library] = (result.value, result.standard_error, took)
        difference = theirs - ours
        behind[library] = (
            f"   mean loss {difference.mean():+.3g} ± {difference.std() / len(test) ** 0.5:.2g} beside hinge"
        )
    print(f"{name} ({METRIC[seen.task]}, {len(train)} + {len(test)} rows)")
    for library, (value, error, took) in found.items():
        print(f"  {library:32s} {value:12.5g} ± {error:.2g}   {took:.1f} s{behind.get(library, '')}", flush=True)
    return found


def main() -> None:
    """All tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--time", type=float, default=60.0)
    parser.add_argument("--table", nargs="*", default=list(TABLES))
    given = parser.parse_args()
    for name in given.table:
        one(name, TABLES[name], given.time)


if __name__ == "__main__":
    main()
