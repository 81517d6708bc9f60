"""Fits over blocks: the estimators that take a source, and the dispatch to their fits."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np

from hinge.blocks.checkpoint import Checkpoint, describe
from hinge.blocks.passes import Passes
from hinge.blocks.source import Source, as_source

# The module of models/blocks and the function that fit each estimator that takes a source. A subclass that inherits ``fit`` takes
# a source too, unless it is a learner over another space.
FITTERS: dict[str, tuple[str, str]] = {
    "LinearRegression": ("least_squares", "fit_least_squares"),
    "Ridge": ("least_squares", "fit_least_squares"),
    "SquaredWithPenalty": ("least_squares", "fit_least_squares"),
    "LogisticRegression": ("linear", "fit_linear"),
    "RidgeClassifier": ("linear", "fit_linear"),
    "LinearSVC": ("linear", "fit_support_machine"),
    "LinearSVR": ("linear", "fit_linear"),
    "QuantileRegressor": ("linear", "fit_linear"),
    "LeastAbsoluteDeviations": ("linear", "fit_linear"),
    "HuberRegressor": ("huber", "fit_huber"),
    "GeneralisedLinearModel": ("glm", "fit_glm"),
    "Learner": ("linear", "fit_learner"),
    "SGDClassifier": ("stochastic", "fit_stochastic"),
    "SGDRegressor": ("stochastic", "fit_stochastic"),
    "NaiveBayes": ("generative", "fit_naive_bayes"),
    "MixedNB": ("generative", "fit_mixed"),
    "LinearDiscriminantAnalysis": ("generative", "fit_discriminant"),
    "QuadraticDiscriminantAnalysis": ("generative", "fit_discriminant"),
    "GaussianMixture": ("generative", "fit_mixture"),
    "StandardScaler": ("generative", "fit_scaler"),
    "TablePrep": ("tables", "fit_table"),
    "CountVectorizer": ("text", "fit_vectorizer"),
    "TfidfVectorizer": ("text", "fit_vectorizer"),
    "BaseBoosting": ("boosting", "fit_boosting"),
    "DecisionTreeClassifier": ("forests", "fit_trees"),
    "DecisionTreeRegressor": ("forests", "fit_trees"),
    "ForestClassifier": ("forests", "fit_trees"),
    "ForestRegressor": ("forests", "fit_trees"),
}

# Those that read the features again in every step.
SEVERAL_PASSES = frozenset(
    {"fit_linear", "fit_support_machine", "fit_learner", "fit_huber", "fit_glm", "fit_stochastic", "fit_mixture"}
)

# Alternatives to estimators that cannot be fitted over blocks.
INSTEAD = {
    "SVC": "LinearSVC, or LogisticRegression and Nystroem features",
    "SVR": "LinearSVR, with source.map(Nystroem().fit(sample)) for a kernel",
    "NuSVC": "LinearSVC, with source.map(Nystroem().fit(sample)) for a kernel",
    "NuSVR": "LinearSVR, with source.map(Nystroem().fit(sample)) for a kernel",
    "KernelRidge": "Ridge with source.map(Nystroem().fit(sample))",
    "Nystroem": "source.map(Nystroem().fit(sample)): its centres are rows of a sample",
    "HashingVectorizer": "source.map(HashingVectorizer(), column=…): it has nothing to learn",
    "NegativeBinomialRegressor": 'GLM("poisson", dispersion="pearson")',
    "KNeighborsClassifier": "HistGradientBoostingClassifier",
    "KNeighborsRegressor": "HistGradientBoostingRegressor",
    "GaussianProcessRegressor": "Ridge, or BayesianRidge on a sample",
    "GaussianProcessClassifier": "LogisticRegression",
    "LogisticRegressionCV": "LogisticRegression with a C chosen on a sample",
    "RidgeCV": "Ridge with an alpha chosen on a sample",
    "LassoCV": "Lasso with an alpha chosen on a sample",
    "ElasticNetCV": "ElasticNet with an alpha chosen on a sample",
    "MLPClassifier": "SGDClassifier",
    "MLPRegressor": "SGDRegressor",
}


def fitter_of(cls: type) -> tuple[str, str] | None:
    """The module and the function that fit a class over blocks; None if it does not take a source."""
    fit = getattr(cls, "fit", None)
    for base in cls.__mro__:
        if base.__module__.startswith("hinge.") and base.__name__ in FITTERS:
            same = getattr(base, "fit", None) is fit and (base is cls or base.__name__ != "Learner")
            same = same and cls.__name__ not in INSTEAD
            return FITTERS[base.__name__] if same else None
    return None


def takers() -> list[str]:
    """The names of the public estimators that take a source."""
    import hinge

    public = [getattr(hinge, name) for name in hinge.__all__ if name[0].isupper()]
    return sorted(cls.__name__ for cls in public if isinstance(cls, type) and fitter_of(cls) is not None)


def fit_source(
    estimator: Any, X: Any, y: Any = None, sample_weight: Any = None, *, offset: Any = None,
    checkpoint: str | Path | None = None, **others: Any,
) -> Any:  # fmt: skip
    """``fit`` of an estimator to a source, or to a Dask collection, a lazy frame or a dataset.

    Sets ``reading_``: the passes of the fit, and the rows and bytes read.

    Parameters
    ----------
    checkpoint : folder, optional
        Where the totals of passes, and the trees of boosting, are kept until the fit has ended. A fit that was killed goes
        on from there when it is called again with the same data and parameters, and gives the same bits.
    """
    source = as_source(X, y, sample_weight, offset)
    if others:
        raise TypeError(f"fit over blocks takes a source alone, not {', '.join(sorted(others))}.")
    found = fitter_of(type(estimator))
    if found is None:
        raise TypeError(_refusal(estimator))
    if not source.labelled and _needs_target(estimator):
        raise ValueError(f"{type(estimator).__name__} needs a target: name its column in hg.scan(…, target=…).")
    kept = None if checkpoint is None else Checkpoint(checkpoint, describe(estimator, source))
    passes = Passes(source, kept, keep=found[1] in SEVERAL_PASSES)
    module = importlib.import_module(f"hinge.models.blocks.{found[0]}")
    try:
        getattr(module, found[1])(estimator, passes)
    finally:
        passes.close()
    adopt_names(estimator, source)
    estimator.reading_ = passes.reading
    if kept is not None:
        kept.remove()
    return estimator


def _needs_target(estimator: Any) -> bool:
    from sklearn.utils import get_tags

    return bool(get_tags(estimator).target_tags.required)


def adopt_names(estimator: Any, source: Source) -> None:
    """Set the number and the names of the features."""
    estimator.n_features_in_ = source.n_features
    vars(estimator).pop("feature_names_in_", None)
    if source.names is not None:
        estimator.feature_names_in_ = np.array(source.names, dtype=object)


def _refusal(estimator: Any) -> str:
    name = type(estimator).__name__
    instead = INSTEAD.get(name)
    advice = f"Use {instead}." if instead else f"These can: {', '.join(takers())}."
    return f"{name} needs all rows in memory and cannot be fitted over blocks. {advice}"
