"""What a practitioner would try: one function a library, from training rows to a fitted model."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.tables.problems import Problem


def _threads() -> int:
    """The number of threads of a fit, where a library does not take it from the environment."""
    return int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1))


def lightgbm(p: Problem, train: np.ndarray) -> Any:
    """1000 rounds at most, stopped early on a tenth of the rows."""
    import lightgbm as gbm

    make = gbm.LGBMClassifier if p.classify else gbm.LGBMRegressor
    objective: dict[str, Any] = {"objective": "poisson"} if p.data.task == "count" else {}
    order = np.random.default_rng(0).permutation(train)
    held, own = order[: len(order) // 10], order[len(order) // 10 :]
    X = p.table[p.flat]
    if p.classify and len(np.unique(p.labels[own])) < len(np.unique(p.labels[train])):
        own = order
    model = make(n_estimators=1000, verbose=-1, random_state=0, n_jobs=_threads(), **objective)
    stop = gbm.early_stopping(50, verbose=False)
    return model.fit(X.iloc[own], p.labels[own], eval_set=[(X.iloc[held], p.labels[held])], callbacks=[stop])


def catboost(p: Problem, train: np.ndarray) -> Any:
    import catboost as cat  # type: ignore[import-not-found]

    make = cat.CatBoostClassifier if p.classify else cat.CatBoostRegressor
    X = p.table[p.flat]
    categories = [c for c in p.names("category", "boolean") if c in X]

    def as_text(column: Any) -> Any:
        return column.astype(object).where(column.notna(), "missing").astype(str)

    X = X.assign(**{c: as_text(X[c]) for c in categories})
    loss = {"loss_function": "Poisson"} if p.data.task == "count" else {}
    model = make(
        verbose=False, random_seed=0, cat_features=categories, allow_writing_files=False, thread_count=_threads(), **loss
    )  # fmt: skip
    model.fit(X.iloc[train], p.labels[train])
    model.prepare = lambda table: table.assign(**{c: as_text(table[c]) for c in categories})
    return model


def hist_boosting(p: Problem, train: np.ndarray) -> Any:
    from sklearn import ensemble

    make = ensemble.HistGradientBoostingClassifier if p.classify else ensemble.HistGradientBoostingRegressor
    loss = {"loss": "poisson"} if p.data.task == "count" else {}
    many = [c for c in p.names("category", "boolean") if len(p.table[c].cat.categories) > 250]

    def prepare(table: Any) -> Any:
        return table.assign(**{c: table[c].cat.codes for c in many})

    model = make(categorical_features="from_dtype", random_state=0, **loss)
    model.fit(prepare(p.table[p.flat].iloc[train]), p.labels[train])
    model.prepare = prepare
    return model


def forest(p: Problem, train: np.ndarray) -> Any:
    from sklearn import ensemble
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    make = ensemble.RandomForestClassifier if p.classify else ensemble.RandomForestRegressor
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2)
    prep = make_column_transformer((codes, p.names("category", "boolean")), remainder="passthrough")
    model = make(n_estimators=300, min_samples_leaf=2, random_state=0, n_jobs=_threads())
    return make_pipeline(prep, model).fit(p.table[p.flat].iloc[train], p.labels[train])


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
        linear_model.LogisticRegressionCV(cv=3, max_iter=500, scoring="neg_log_loss") if p.classify
        else linear_model.PoissonRegressor(alpha=1e-3, max_iter=500) if p.data.task == "count" else linear_model.RidgeCV()
    )  # fmt: skip
    return make_pipeline(prep, model).fit(p.table[p.flat].iloc[train], p.labels[train])


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
