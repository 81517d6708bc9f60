"""One case for every estimator that takes a source, and what its data look like."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import hinge as hg


@dataclass(frozen=True)
class Case:
    """An estimator, the kind of its target, and how equal two fits of it are."""

    model: Any
    target: str
    exact: bool = False  # closed forms agree to rounding, others within their certificates
    local: bool = False  # different optima are possible
    bits: bool = False  # another cut into blocks gives the same bits
    missing: bool = False  # takes missing values
    names: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return " ".join(repr(self.model).split())


CASES = [
    Case(hg.LinearRegression(), "real", exact=True),
    Case(hg.LinearRegression(fit_intercept=False), "real", exact=True),
    Case(hg.LinearRegression(), "two", exact=True),
    Case(hg.Ridge(2.0), "real", exact=True),
    Case(hg.Ridge(2.0), "two", exact=True),
    Case(hg.Lasso(0.05), "real"),
    Case(hg.ElasticNet(0.05), "real"),
    Case(hg.GroupLasso([0, 0, 1, 1], alpha=0.1), "real"),
    Case(hg.MultiTaskLasso(0.05), "two"),
    Case(hg.MultiTaskElasticNet(0.05), "two"),
    Case(hg.RidgeClassifier(), "three", exact=True),
    Case(hg.RidgeClassifier(class_weight="balanced"), "labels", exact=True),
    Case(hg.LogisticRegression(), "labels"),
    Case(hg.LogisticRegression(C=np.inf), "labels"),
    Case(hg.LogisticRegression(C=0.1, l1_ratio=1.0), "labels"),
    Case(hg.LogisticRegression(C=0.1, l1_ratio=0.5, class_weight="balanced"), "labels"),
    Case(hg.LogisticRegression(), "three"),
    Case(hg.LogisticRegression(C=0.1, l1_ratio=1.0), "three"),
    Case(hg.LinearSVC(), "labels"),
    Case(hg.LinearSVC(loss="hinge"), "labels"),
    Case(hg.LinearSVC(penalty="l1"), "three"),
    Case(hg.LinearSVR(), "real"),
    Case(hg.LinearSVR(loss="squared_epsilon_insensitive"), "real"),
    Case(hg.QuantileRegressor(quantile=0.7, alpha=0.01), "real"),
    Case(hg.LeastAbsoluteDeviations(), "real"),
    Case(hg.HuberRegressor(scale=0.5), "real"),
    Case(hg.HuberRegressor(tol=1e-7), "real"),
    Case(hg.HuberRegressor(alpha=5.0, fit_intercept=False, tol=1e-7), "real"),
    Case(hg.PoissonRegressor(), "count"),
    Case(hg.PoissonRegressor(alpha=0.02, l1_ratio=1.0), "count"),
    Case(hg.GammaRegressor(), "positive"),
    Case(hg.TweedieRegressor(power=1.5, link="log"), "count"),
    Case(hg.GLM("gaussian", inference=False), "real"),
    Case(hg.GLM("poisson"), "count"),
    Case(hg.Learner(loss=hg.Huber(0.5), penalty=hg.L2(1e-3)), "real"),
    Case(hg.Learner(loss=hg.LogCosh(), penalty=hg.L1(1e-2)), "real"),
    Case(hg.Learner(loss=hg.Softmax(), penalty=hg.L2(1e-2)), "three"),
    Case(hg.Learner(loss=hg.Hinge(), penalty=hg.L2(1e-2)), "labels"),
    Case(hg.SGDClassifier(loss="log_loss", alpha=0.01, max_iter=200), "three", local=True),
    Case(hg.SGDRegressor(alpha=0.01, max_iter=200), "real", local=True),
    Case(hg.GaussianNB(), "three", exact=True),
    Case(hg.MultinomialNB(), "three", exact=True, names={"counts": True}),
    Case(hg.BernoulliNB(), "three", exact=True),
    Case(hg.ComplementNB(), "three", exact=True, names={"counts": True}),
    Case(hg.CategoricalNB(min_categories=20), "three", exact=True, names={"counts": True}),
    Case(hg.MixedNB(), "three", exact=True),
    Case(hg.LinearDiscriminantAnalysis(), "three", exact=True),
    Case(hg.LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.2), "labels", exact=True),
    Case(hg.QuadraticDiscriminantAnalysis(), "three", exact=True),
    Case(hg.GaussianMixture(2, tol=1e-8, max_iter=2000, random_state=0), "none", local=True),
    Case(hg.StandardScaler(), "none", exact=True, missing=True),
    Case(hg.HistGradientBoostingRegressor(max_iter=4), "real", exact=True, bits=True, missing=True),
    Case(hg.HistGradientBoostingRegressor("poisson", max_iter=4), "count", exact=True, bits=True, missing=True),
    Case(
        hg.HistGradientBoostingRegressor(max_iter=4, subsample=0.6, max_features=0.5), "real",
        exact=True, bits=True, missing=True,
    ),
    Case(hg.HistGradientBoostingClassifier(max_iter=4), "labels", exact=True, bits=True, missing=True),
    Case(hg.HistGradientBoostingClassifier(max_iter=4, max_bins=20, quantize=True), "labels", exact=True, bits=True, missing=True),
    Case(
        hg.HistGradientBoostingClassifier(max_iter=3, grow="level", class_weight={5: 1.0, 6: 2.0, 7: 0.5}), "three",
        exact=True, bits=True, missing=True,
    ),
    Case(hg.GradientBoostingClassifier(n_estimators=4), "labels", exact=True, bits=True, missing=True),
    Case(hg.GradientBoostingRegressor(n_estimators=4, ccp_alpha=1e-3), "real", exact=True, bits=True, missing=True),
    Case(hg.DecisionTreeClassifier(splitter="hist", random_state=0), "three", exact=True, bits=True, missing=True),
    Case(hg.DecisionTreeRegressor(splitter="hist", max_depth=5), "real", exact=True, bits=True, missing=True),
    Case(hg.RandomForestClassifier(8, random_state=3), "labels", exact=True, bits=True, missing=True),
    Case(hg.RandomForestRegressor(5, random_state=1, max_features=0.5), "real", exact=True, bits=True, missing=True),
    Case(hg.ExtraTreesClassifier(6, random_state=3), "three", exact=True, bits=True, missing=True, names={"tenths": True}),
    Case(hg.ExtraTreesRegressor(5, random_state=1), "real", exact=True, bits=True, missing=True, names={"tenths": True}),
    Case(hg.ExtraTreeClassifier(random_state=3), "labels", exact=True, bits=True, missing=True, names={"tenths": True}),
    Case(
        hg.ExtraTreeRegressor(random_state=1, max_depth=6), "real", exact=True, bits=True, missing=True, names={"tenths": True}
    ),
]  # fmt: skip


def data(case: Case, rng: np.random.Generator, n: int = 600) -> tuple[np.ndarray, Any, np.ndarray]:
    """X, y and whole-number weights, zeros among them."""
    X = rng.normal(size=(n, 4)) + np.array([0.0, 3.0, -1.0, 0.0])
    if case.names.get("counts"):
        X = rng.poisson(1.5, size=(n, 4)).astype(float)
    if case.names.get("tenths"):  # every value has a bin of its own
        X = np.round(X, 1)
    if case.target == "none":
        X[: n // 2] += 4.0
    score = X @ [1.0, -0.5, 0.3, 0.0]
    score = (score - score.mean()) / score.std()
    y: Any = {
        "real": lambda: score + 0.5 * rng.standard_t(3, size=n),
        "two": lambda: np.column_stack([score + rng.normal(size=n), rng.normal(size=n) - score]),
        "labels": lambda: np.where(score + rng.logistic(size=n) > 0.3, "yes", "no"),
        "three": lambda: np.digitize(score + rng.normal(size=n), [-0.6, 0.6]) + 5,
        "count": lambda: rng.poisson(np.exp(0.5 * score)).astype(float),
        "positive": lambda: rng.gamma(2.0, np.exp(0.3 * score)) + 1e-3,
        "none": lambda: None,
    }[case.target]()
    return X, y, rng.integers(0, 4, n).astype(float)
