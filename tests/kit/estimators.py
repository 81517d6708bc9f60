"""Every public estimator, found by being public; a table only for those whose constructor needs arguments.

An estimator that must be treated differently says so itself, never by its name appearing in a test:

- ``__sklearn_tags__`` — sparse input, positive targets, sequences (``input_tags.two_d_array = False``), …
- ``weight_semantics = "repetition"`` (the default), ``"distribution"`` or ``"step"`` — a class attribute: whether a weight
  of 2 gives the same fit as the example twice; or, because examples are drawn at random, the same distribution of
  fits; or, because examples are met one after another, one step of double length, where scikit-learn's check of
  repetition does not apply and weights of zero and one are held to their meaning instead.
- ``decides_by_sign = False`` — a class attribute: ``predict`` has a threshold of its own, other than the zero of
  ``decision_function``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags

import hinge as hg

# A seed, and a schedule of fixed length, which ends without a warning.
NETWORK = {"random_state": 0, "max_iter": 80, "learning_rate": "cosine", "learning_rate_init": 0.01}

# Members of committees; the trees are shallow, so that rounding moves no split of theirs.
CLASSIFIERS = [("linear", hg.LogisticRegression()), ("bayes", hg.GaussianNB())]
REGRESSORS = [("linear", hg.Ridge()), ("tree", hg.DecisionTreeRegressor(max_depth=2))]

# Constructor arguments, one entry per instance to test. Classes that are not listed are built without arguments.
ARGUMENTS: dict[str, list[Callable[[], dict[str, Any]]]] = {
    "Learner": [
        lambda: {"penalty": hg.L2(1e-3)},
        lambda: {"loss": hg.Logistic(), "penalty": hg.L2(1e-3)},
        lambda: {"loss": hg.Poisson(), "penalty": hg.L2(1e-3)},
    ],
    "GLM": [
        dict,
        lambda: {"distribution": "poisson", "alpha": 0.1},
        lambda: {"distribution": "gamma", "link": "sqrt", "alpha": 0.1},
    ],
    "MulticlassSVM": [lambda: {"tol": 1e-9, "max_iter": 1_000_000}],
    "OneVsOneClassifier": [lambda: {"estimator": hg.LogisticRegression()}],
    "OneVsRestClassifier": [lambda: {"estimator": hg.LogisticRegression()}],
    "OutputCodeClassifier": [lambda: {"estimator": hg.LogisticRegression()}],
    "FixedThresholdClassifier": [lambda: {"estimator": hg.LogisticRegression()}],
    "StackingClassifier": [lambda: {"estimators": CLASSIFIERS}],
    "StackingRegressor": [lambda: {"estimators": REGRESSORS}],
    "TunedThresholdClassifierCV": [lambda: {"estimator": hg.LogisticRegression()}],
    "VotingClassifier": [lambda: {"estimators": CLASSIFIERS}],
    "VotingRegressor": [lambda: {"estimators": REGRESSORS}],
    # Joint paths are solved one strength after another, in Python.
    "MultiTaskElasticNetCV": [lambda: {"alphas": 3}],
    "MultiTaskLassoCV": [lambda: {"alphas": 3}],
    "MaxMarginClassifier": [lambda: {"inseparable": "soft"}],
    # scikit-learn's weight checks have classes so unequal that the default nu=0.5 is infeasible.
    "NuSVC": [lambda: {"nu": 0.2}],
    "MLPClassifier": [lambda: NETWORK],
    "MLPRegressor": [lambda: NETWORK],
}

# Settings that keep tests quick, used by any estimator that has a parameter of the name.
QUICK = {"n_estimators": 10, "n_alphas": 10, "epochs": 20, "rounds": 10, "cv": 3, "Cs": 2}


def public_classes() -> list[type[BaseEstimator]]:
    """The estimator classes among hinge's public names."""
    values = [getattr(hg, name) for name in hg.__all__]
    classes = {v for v in values if inspect.isclass(v) and issubclass(v, BaseEstimator) and hasattr(v, "fit")}
    return sorted(classes, key=lambda cls: cls.__name__)


def public_estimators() -> list[BaseEstimator]:
    """At least one instance of every public estimator."""
    return [quick(cls(**arguments())) for cls in public_classes() for arguments in ARGUMENTS.get(cls.__name__, [dict])]


def quick(estimator: BaseEstimator) -> BaseEstimator:
    """The estimator with settings that make it quick, where it has them and leaves them at their default."""
    parameters = inspect.signature(type(estimator)).parameters
    mine = estimator.get_params(deep=False)
    chosen = {
        name: value
        for name, value in QUICK.items()
        if name in mine
        and mine[name] is parameters[name].default
        and mine[name] != value
        # Where rounds have two names, checks of scikit-learn's set the other one.
        and not (name == "n_estimators" and "max_iter" in mine)
    }
    return clone(estimator).set_params(**chosen)


def first_of_each_family(estimators: list[BaseEstimator]) -> list[BaseEstimator]:
    """One estimator per module or package next below a room of the house: a family shares its compiled code."""
    seen: dict[str, BaseEstimator] = {}
    for estimator in estimators:
        seen.setdefault(".".join(type(estimator).__module__.split(".")[:3]), estimator)
    return list(seen.values())


def name(estimator: BaseEstimator) -> str:
    """A short test id."""
    text = " ".join(repr(estimator).split())
    return text if len(text) <= 60 else text[:57] + "..."


def not_applicable(estimator: BaseEstimator) -> dict[str, str]:
    """Checks of scikit-learn's that contradict what the estimator declares of its weights or its threshold."""
    if not getattr(estimator, "decides_by_sign", True):
        return {"check_classifiers_train": "predict has a threshold of its own"}
    if getattr(estimator, "weight_semantics", "repetition") != "step":
        return {}
    reason = "one step of double length is not two steps"
    return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}


def takes_weights(estimator: BaseEstimator) -> bool:
    return "sample_weight" in inspect.signature(estimator.fit).parameters


def make_data(
    estimator: BaseEstimator, n: int = 120, d: int = 6, seed: int = 0, classes: int = 3
) -> tuple[np.ndarray, np.ndarray]:
    """X and y that suit the estimator's tags. Numbers are multiples of 1/64, so float32 holds them exactly."""
    tags = get_tags(estimator)
    rng = np.random.default_rng(seed)
    X = np.round(64 * rng.normal(size=(n, d))) / 64
    if tags.input_tags.positive_only:
        X = np.abs(X)
    signal = X[:, :3] @ np.array([1.0, -1.0, 0.5]) + 0.5 * rng.normal(size=n)
    if tags.estimator_type == "classifier":
        k = classes if tags.classifier_tags.multi_class else 2
        edges = np.quantile(signal, np.linspace(0, 1, k + 1)[1:-1])
        return X, np.array(["red", "green", "blue", "white", "black"])[np.searchsorted(edges, signal)]
    if tags.target_tags.positive_only:
        return X, np.round(64 * np.exp(signal / 2)) / 64 + 1 / 64
    y = np.round(64 * signal) / 64
    return X, np.column_stack([y, -y]) if tags.target_tags.multi_output and not tags.target_tags.single_output else y


def fitted(estimator: BaseEstimator, X: Any, y: Any, sample_weight: Any = None) -> BaseEstimator:
    """A fitted copy."""
    extra = {} if sample_weight is None else {"sample_weight": sample_weight}
    return clone(estimator).fit(X, y, **extra)


METHODS = ("decision_function", "predict_proba", "predict", "transform", "score_samples")


def outputs(estimator: BaseEstimator, X: Any) -> dict[str, np.ndarray]:
    """Every prediction of a fitted estimator for X."""
    found = {method: getattr(estimator, method)(X) for method in METHODS if hasattr(estimator, method)}
    assert found, f"{type(estimator).__name__} has none of the methods {', '.join(METHODS)}"
    return {
        method: np.asarray(value.toarray() if hasattr(value, "toarray") else value) for method, value in found.items()
    }


def assert_same(one: dict[str, np.ndarray], two: dict[str, np.ndarray]) -> None:
    """Identical, bit for bit."""
    assert one.keys() == two.keys()
    for method, value in one.items():
        np.testing.assert_array_equal(value, two[method], err_msg=method, strict=True)


def assert_close(one: dict[str, np.ndarray], two: dict[str, np.ndarray], tol: float) -> None:
    """Numbers within ``tol`` of their size; labels equal but for the few that numbers this close may flip."""
    assert one.keys() == two.keys()
    for method, value in one.items():
        other = two[method]
        assert value.shape == other.shape, method
        if value.dtype.kind == "f":
            scale = max(1.0, float(np.abs(value).max(initial=0.0)))
            np.testing.assert_allclose(value, other, rtol=0, atol=tol * scale, err_msg=method)
        else:
            assert np.mean(value != other) <= 0.02, method
