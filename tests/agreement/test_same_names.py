"""Changing the import is all a user does: what scikit-learn's estimators take and show, those of the same name do too."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
import sklearn.utils
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils._param_validation import Hidden, Options, StrOptions

from kit.estimators import make_data, public_classes, public_estimators

KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY
THEIRS = dict(sklearn.utils.all_estimators())
CLASSES = [cls for cls in public_classes() if cls.__name__ in THEIRS]
ESTIMATORS = {
    type(e).__name__: e
    for e in reversed(public_estimators())
    if type(e).__name__ in THEIRS and get_tags(e).input_tags.two_d_array
}

# Parameters that are not taken, and why.
PARAMETERS: dict[str, dict[str, str]] = {}

# Values of parameters that are refused, and why.
VALUES = {
    ("SGDClassifier", "learning_rate", "pa1"): "the passive-aggressive steps are deprecated with their classes",
    ("SGDClassifier", "learning_rate", "pa2"): "the passive-aggressive steps are deprecated with their classes",
    ("KernelRidge", "kernel", "sigmoid"): "not positive definite here, which is said instead of solved",
    ("BernoulliNB", "binarize", None): "the inputs have negative values here, which are not taken for present",
    ("MLPRegressor", "loss", "poisson"): "the targets have negative values here, which have no such likelihood",
    ("GaussianProcessClassifier", "multi_class", "one_vs_one"): "see OneVsOneClassifier",
    ("FixedThresholdClassifier", "pos_label", True): "no label of y here, which is refused in fit",
    ("FixedThresholdClassifier", "pos_label", False): "no label of y here, which is refused in fit",
    **{
        (name, "metric", metric): "not among the metrics that the search is compiled for"
        for name in ("KNeighborsClassifier", "KNeighborsRegressor")
        for metric in (
            "braycurtis",
            "canberra",
            "correlation",
            "dice",
            "hamming",
            "haversine",
            "jaccard",
            "mahalanobis",
            "nan_euclidean",
            "precomputed",
            "pyfunc",
            "rogerstanimoto",
            "russellrao",
            "seuclidean",
            "sokalmichener",
            "sokalsneath",
            "sqeuclidean",
            "wminkowski",
            "yule",
        )
    },
}

# Fitted attributes that are not there, and why.
INSIDE = "parts of scikit-learn's implementation"
OF_TREES = {"estimators_samples_": "the draws are not kept; BaggingClassifier keeps them"}
ATTRIBUTES = {
    **dict.fromkeys(("RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor"), OF_TREES),
    "GaussianProcessClassifier": {"base_estimator_": INSIDE},
    **{
        name: {"init_": "init is None or zero, or scores given to fit"}
        for name in ("GradientBoostingClassifier", "GradientBoostingRegressor")
    },
    "IsotonicRegression": {"f_": INSIDE},
    "MultiTaskElasticNet": {"eps_": INSIDE},
    "MultiTaskLasso": {"eps_": INSIDE},
    "NuSVC": dict.fromkeys(["probA_", "probB_"], "deprecated with probability; see CalibratedClassifierCV"),
    "SVC": dict.fromkeys(["probA_", "probB_"], "deprecated with probability; see CalibratedClassifierCV"),
    "OneVsRestClassifier": {"label_binarizer_": INSIDE},
    "VotingClassifier": {"le_": INSIDE},
}  # fmt: skip


def test_every_estimator_takes_the_parameters_of_its_namesake():
    missing = {}
    for cls in CLASSES:
        ours, theirs = inspect.signature(cls).parameters, inspect.signature(THEIRS[cls.__name__]).parameters
        lacking = set(theirs) - set(ours) - set(PARAMETERS.get(cls.__name__, ()))
        by_name_only = {p for p in theirs if p in ours and ours[p].kind == KEYWORD_ONLY != theirs[p].kind}
        if lacking or by_name_only:
            missing[cls.__name__] = sorted(lacking | by_name_only)
    assert len(CLASSES) > 50
    assert not missing


def learning_data(name: str):
    estimator = ESTIMATORS[name]
    X, y = make_data(estimator, n=60)
    return (X[:, :1], y) if get_tags(estimator).input_tags.one_d_array else (X, y)


def both(name: str, **parameters):
    """Theirs and ours with the same parameters, as far as theirs has them."""
    ours = clone(ESTIMATORS[name]).set_params(**parameters)
    taken = inspect.signature(THEIRS[name]).parameters
    quick = ("cv", "nu", "n_estimators", "Cs", "max_iter", "learning_rate_init", "estimator", "estimators")
    same = {k: v for k, v in ours.get_params(deep=False).items() if k in taken and k in quick and v is not None}
    return THEIRS[name](**same | parameters), ours


def options(constraints):
    """The named values of a parameter, and none and either truth value where they are allowed."""
    for constraint in constraints:
        if isinstance(constraint, Hidden):
            continue
        if isinstance(constraint, StrOptions | Options):
            yield from (value for value in sorted(constraint.options, key=str) if isinstance(value, str))
        elif constraint is None:
            yield None
        elif isinstance(constraint, str) and constraint == "boolean":
            yield from (True, False)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_every_named_value_works_that_works_there(name):
    X, y = learning_data(name)
    for parameter, constraints in THEIRS[name]._parameter_constraints.items():
        if parameter in ("scoring", "verbose") or parameter in PARAMETERS.get(name, ()):
            continue
        for value in options(constraints):
            if (name, parameter, value) in VALUES:
                continue
            theirs, ours = both(name, **{parameter: value})
            try:
                theirs.fit(X, y)
            except Exception:
                continue  # it does not work there with these data or beside these values
            ours.fit(X, y)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_every_fitted_attribute_is_there(name):
    X, y = learning_data(name)
    theirs, ours = both(name)
    y = np.column_stack([y, -y]) if name.startswith("MultiTask") and y.ndim == 1 else y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs.fit(X, y)
        ours.fit(X, y)
    shown = {key for key in (*vars(theirs), *dir(type(theirs))) if key.endswith("_") and not key.startswith("_")}
    missing = {key for key in shown if hasattr(theirs, key) and not hasattr(ours, key)}
    assert not missing - set(ATTRIBUTES.get(name, ()))
