"""``hg.learn`` against what a practitioner would try, on held-out rows of real tables.

    python -m benchmarks.tables [--seconds 60] [--splits 3] [--table NAME …] [--rival NAME …] [--json FILE]

Every library gets the same training rows and the same columns (those that ``hg.learn`` keeps): LightGBM with early stopping on a
tenth of the rows, CatBoost, scikit-learn's histogram boosting, a forest, linear models on one-hot columns, and tf-idf with
logistic regression (C by cross-validation) for texts. Libraries that are not installed are left out. Scores are mean losses
(log loss, squared error, Poisson deviance); differences have bootstrap errors over test rows. The last table shows the mean rank
of every library, the share of tables on which hinge is at or above the best other within two standard errors, and its worst
relative loss.
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

import hinge as hg
from benchmarks.data import SHARED
from hinge.learning.scores import METRIC, measure_for
from hinge.select.resample import deal
from hinge.tables.profile import TableProfile, profile
from hinge.tables.reading import Table, read_table

TABLES = {
    "adult_train": "income", "electricity_nsw": "class", "spambase": "class", "sonar": "class", "ionosphere": "class",
    "pima_diabetes": "diabetes", "heart_cleveland": "num", "mushroom": "class", "splice": "Class", "nursery": "class",
    "pendigits": "class", "optdigits": "class", "covtype_scale01_93k": "Cover_Type", "california_housing": "median_house_value",
    "wine_quality": "quality", "abalone": "rings", "kin8nm": "y", "house_8L": "price", "bike_sharing_hour": "cnt",
    "medical_insurance": "charges", "nycflights_sample": "arr_delay", "motorcycle_ohlsson": "antskad", "freMTPL2freq": "ClaimNb",
    "sms_spam": "label", "ewt_genres": "genre",
}  # fmt: skip
DROP = {"nycflights_sample": ("rownames",), "motorcycle_ohlsson": ("rownames",), "freMTPL2freq": ("IDpol",)}
TEST, MAX_TEST = 0.25, 50_000
REPEATS = 400


def load(name: str) -> Table:
    """A table by name."""
    if name != "ewt_genres":
        return read_table(SHARED / f"{name}.csv.gz")
    rows, genre = [], ""
    for part in ("train", "dev", "test"):
        with gzip.open(SHARED / f"en_ewt-ud-{part}.conllu.gz", "rt", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("# newdoc id"):
                    genre = line.split("=")[1].strip().split("-")[0]
                elif line.startswith("# text ="):
                    rows.append((line.split("=", 1)[1].strip(), genre))
    return Table(pl.DataFrame(rows, schema=["text", "genre"], orient="row"), SHARED / "ewt_genres.csv")


@dataclass(frozen=True)
class Problem:
    """A table with its columns as other libraries take them."""

    data: TableProfile
    table: Any  # pandas, categories as such
    labels: np.ndarray

    @property
    def classify(self) -> bool:
        return self.data.classes is not None

    def names(self, *kinds: str) -> list[str]:
        return [f"c{k}" for k, c in enumerate(self.data.columns) if c.kind in kinds]


def make_problem(name: str, target: str) -> Problem:
    seen = profile(load(name), target, drop=DROP.get(name, ()))
    table = seen.frame.to_pandas()
    for column in seen.columns:
        if column.kind in ("category", "boolean"):
            table[column.name] = table[column.name].astype("category")
        elif column.kind == "date":
            table[column.name] = table[column.name].astype("int64") / 8.64e13
        elif column.kind == "text":
            table[column.name] = table[column.name].fillna("").astype(str)
    table.columns = [f"c{k}" for k in range(table.shape[1])]  # LightGBM refuses some characters in names
    labels = seen.y if seen.classes is None else seen.classes[seen.y.astype(np.int64)]
    return Problem(seen, table, labels)


def _flat(p: Problem) -> list[str]:
    return p.names("number", "category", "boolean", "date")


def lightgbm(p: Problem, train: np.ndarray) -> Any:
    """1000 rounds at most, stopped early on a tenth of the rows."""
    import lightgbm as gbm

    make = gbm.LGBMClassifier if p.classify else gbm.LGBMRegressor
    objective: dict[str, Any] = {"objective": "poisson"} if p.data.task == "count" else {}
    order = np.random.default_rng(0).permutation(train)
    held, own = order[: len(order) // 10], order[len(order) // 10 :]
    X = p.table[_flat(p)]
    if p.classify and len(np.unique(p.labels[own])) < len(np.unique(p.labels[train])):
        own = order
    model = make(n_estimators=1000, verbose=-1, random_state=0, **objective)
    stop = gbm.early_stopping(50, verbose=False)
    return model.fit(X.iloc[own], p.labels[own], eval_set=[(X.iloc[held], p.labels[held])], callbacks=[stop])


def catboost(p: Problem, train: np.ndarray) -> Any:
    import catboost as cat  # type: ignore[import-not-found]

    make = cat.CatBoostClassifier if p.classify else cat.CatBoostRegressor
    X = p.table[_flat(p)].copy()
    categories = [c for c in p.names("category", "boolean") if c in X]
    for c in categories:
        X[c] = X[c].astype(str)
    loss = {"loss_function": "Poisson"} if p.data.task == "count" else {}
    model = make(verbose=False, random_seed=0, cat_features=categories, allow_writing_files=False, **loss)
    model.fit(X.iloc[train], p.labels[train])
    model.prepare = lambda table: table.assign(**{c: table[c].astype(str) for c in categories})
    return model


def hist_boosting(p: Problem, train: np.ndarray) -> Any:
    from sklearn import ensemble

    make = ensemble.HistGradientBoostingClassifier if p.classify else ensemble.HistGradientBoostingRegressor
    loss = {"loss": "poisson"} if p.data.task == "count" else {}
    X = p.table[_flat(p)].copy()
    for c in p.names("category", "boolean"):
        if len(X[c].cat.categories) > 250:
            X[c] = X[c].cat.codes
    return make(categorical_features="from_dtype", random_state=0, **loss).fit(X.iloc[train], p.labels[train])


def forest(p: Problem, train: np.ndarray) -> Any:
    from sklearn import ensemble
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    make = ensemble.RandomForestClassifier if p.classify else ensemble.RandomForestRegressor
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2)
    prep = make_column_transformer((codes, p.names("category", "boolean")), remainder="passthrough")
    model = make(n_estimators=300, min_samples_leaf=2, random_state=0, n_jobs=-1)
    return make_pipeline(prep, model).fit(p.table[_flat(p)].iloc[train], p.labels[train])


def linear(p: Problem, train: np.ndarray) -> Any:
    from sklearn import linear_model
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    prep = make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), p.names("number", "date")),
        (OneHotEncoder(handle_unknown="ignore", min_frequency=5), p.names("category", "boolean")),
    )
    model = (
        linear_model.LogisticRegressionCV(cv=3, max_iter=500) if p.classify
        else linear_model.PoissonRegressor(alpha=1e-3, max_iter=500) if p.data.task == "count" else linear_model.RidgeCV()
    )  # fmt: skip
    return make_pipeline(prep, model).fit(p.table[_flat(p)].iloc[train], p.labels[train])


def tfidf(p: Problem, train: np.ndarray) -> Any:
    """Words and pairs of words of the first column of text."""
    from sklearn.compose import make_column_transformer
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegressionCV, RidgeCV
    from sklearn.pipeline import make_pipeline

    words = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2)
    model = (
        LogisticRegressionCV(Cs=[1, 10, 100], cv=3, scoring="neg_log_loss", max_iter=300) if p.classify else RidgeCV()
    )
    prep = make_column_transformer(*((words, name) for name in p.names("text")))
    return make_pipeline(prep, model).fit(p.table.iloc[train], p.labels[train])


RIVALS: dict[str, Callable[[Problem, np.ndarray], Any]] = {
    "LightGBM": lightgbm, "CatBoost": catboost, "HistGradientBoosting": hist_boosting, "forest": forest, "linear": linear,
    "tf-idf": tfidf,
}  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What one library did on one split."""

    loss: np.ndarray
    seconds: float
    megabytes: float
    what: str = ""


def one_split(p: Problem, target: str, seed: int, seconds: float, rivals: list[str]) -> dict[str, Outcome]:
    """The losses of every library on the test rows of a split."""
    data, n = p.data, len(p.labels)
    k = int(np.ceil(n / min(TEST * n, MAX_TEST)))
    fold = deal(data.y, k, np.random.default_rng(seed), classify=p.classify)
    train, test = np.flatnonzero(fold != 0), np.flatnonzero(fold == 0)
    measure = measure_for(data.task, data.classes, float(np.mean(data.y[train])))
    targets = data.y[test].astype(np.int64) if p.classify else data.y[test]
    frame = data.frame.with_columns(pl.Series(target, p.labels))
    began = time.perf_counter()
    found = hg.learn(frame[train], target, task=data.task, seconds=seconds, keep=data.frame.columns, random_state=seed)
    took = time.perf_counter() - began
    ours = measure.losses(found.model.pipeline, data.frame[test], targets)
    results = {"hinge": Outcome(ours, took, _memory(), found.chosen.name)}
    for name in rivals:
        if not (p.names("text") if name == "tf-idf" else _flat(p)):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            began = time.perf_counter()
            try:
                model = RIVALS[name](p, train)
            except ImportError:
                continue
            took = time.perf_counter() - began
            X = p.table if name == "tf-idf" else p.table[_flat(p)]
            X = getattr(model, "prepare", lambda table: table)(X.iloc[test])
            results[name] = Outcome(measure.losses(model, X, targets), took, _memory())
    return results


def _memory() -> float:
    """The most memory of this process so far, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def bootstrap_error(difference: np.ndarray, rng: np.random.Generator) -> float:
    """The standard error of a mean, by resampling."""
    draws = rng.integers(0, len(difference), (REPEATS, len(difference))) if len(difference) <= 20_000 else None
    if draws is None:
        return float(np.std(difference) / np.sqrt(len(difference)))
    return float(np.std([np.mean(difference[d]) for d in draws]))


def summarise(scores: dict[str, dict[str, list[float]]], errors: dict[str, dict[str, float]]) -> dict[str, Any]:
    """Mean ranks, and how hinge stands beside the best other on every table."""
    ranks: dict[str, list[float]] = defaultdict(list)
    level, worst = [], 0.0
    for table, by_library in scores.items():
        means = {library: float(np.mean(values)) for library, values in by_library.items()}
        for rank, library in enumerate(sorted(means, key=means.__getitem__), start=1):
            ranks[library].append(rank)
        others = {library: value for library, value in means.items() if library != "hinge"}
        if others:
            best = min(others, key=others.__getitem__)
            behind = means["hinge"] - others[best]
            level.append(behind <= 2 * errors[table][best])
            worst = max(worst, behind / max(abs(others[best]), 1e-300))
    return {
        "mean rank": {library: float(np.mean(values)) for library, values in ranks.items()},
        "at or above the best other": float(np.mean(level)) if level else 1.0,
        "worst relative loss": worst,
    }


def main() -> None:
    """Tables × splits × libraries."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--table", nargs="*", default=list(TABLES))
    parser.add_argument("--rival", nargs="*", default=list(RIVALS))
    parser.add_argument("--json", default=None)
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    scores: dict[str, dict[str, list[float]]] = {}
    errors: dict[str, dict[str, float]] = {}
    records = []
    for name in given.table:
        p = make_problem(name, TABLES[name])
        losses: dict[str, list[float]] = defaultdict(list)
        gaps: dict[str, list[float]] = defaultdict(list)
        for seed in range(given.splits):
            results = one_split(p, TABLES[name], seed, given.seconds, given.rival)
            print(f"{name}, split {seed} ({METRIC[p.data.task]}, {len(p.labels)} rows)")
            for library, found in results.items():
                behind = found.loss - results["hinge"].loss
                error = bootstrap_error(behind, rng) if library != "hinge" else 0.0
                losses[library].append(float(np.mean(found.loss)))
                gaps[library].append(error)
                beside = "" if library == "hinge" else f"   {np.mean(behind):+.3g} ± {error:.2g} beside hinge"
                print(
                    f"  {library:22s} {np.mean(found.loss):12.5g}   {found.seconds:6.1f} s  {found.megabytes:6.0f} MB{beside}  "
                    f"{found.what}", flush=True,
                )  # fmt: skip
                records.append({
                    "table": name, "split": seed, "library": library, "loss": float(np.mean(found.loss)), "error": error,
                    "seconds": found.seconds, "megabytes": found.megabytes, "what": found.what,
                })  # fmt: skip
        scores[name] = dict(losses)
        errors[name] = {library: float(np.sqrt(np.sum(np.square(e)))) / len(e) for library, e in gaps.items()}
    summary = summarise(scores, errors)
    print(json.dumps(summary, indent=2))
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump({"records": records, "summary": summary}, file, indent=1)


if __name__ == "__main__":
    main()
