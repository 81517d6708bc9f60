"""Parameters are declared once: what a constructor takes is documented, has a range, and is refused outside it."""

from __future__ import annotations

import inspect
import re
import warnings
from typing import Any

import numpy as np
import pytest
import sklearn.utils
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Hidden, generate_valid_param, make_constraint

import hinge as hg
from hinge._parameters import Estimator, table, with_defaults
from kit.estimators import make_data, public_classes, public_estimators

CLASSES = public_classes()
THEIRS = dict(sklearn.utils.all_estimators())
ESTIMATORS = {type(e).__name__: e for e in reversed(public_estimators())}
HOSTILE = [None, "x", -1, 0.5, 1e308, np.nan, [], {}, object()]

# What a number inside its range, but too large for the computation, may be answered with.
OVERFLOW = re.compile("overflow|too large|so large|diverged|must be a finite number")

# Values that scikit-learn takes and ours refuse, and why.
NO_STEPS = "no steps would be taken"
NO_DECAY = "the velocity would grow without bound"
NO_ROWS = "nothing would be held out to stop by"
PAIR = "two numbers, where theirs fails later if there are not two"
NOT_A_KERNEL = "not positive definite"
NARROWER = {
    **{(f"GradientBoosting{kind}", "learning_rate", 0.0): NO_STEPS for kind in ("Classifier", "Regressor")},
    **{(f"MLP{kind}", "momentum", 1): NO_DECAY for kind in ("Classifier", "Regressor")},
    **{(f"MLP{kind}", "validation_fraction", 0): NO_ROWS for kind in ("Classifier", "Regressor")},
    **{(name, "kernel", "additive_chi2"): NOT_A_KERNEL for name in ("KernelRidge", "Nystroem")},
    **{(f"{kind}Vectorizer", "ngram_range", "tuple"): PAIR for kind in ("Count", "Hashing", "Tfidf")},
    ("PolynomialFeatures", "degree", "ndarray"): PAIR,
    ("GaussianProcessClassifier", "multi_class", "one_vs_one"): "see OneVsOneClassifier",
    **{
        (f"KNeighbors{kind}", "metric", metric): "not among the metrics that the search is compiled for"
        for kind in ("Classifier", "Regressor")
        for metric in (
            "DistanceMetric",
            "braycurtis",
            "canberra",
            "correlation",
            "dice",
            "function",
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
            "yule",
        )
    },
}


def by_name(cls: type) -> str:
    return cls.__name__


@pytest.mark.parametrize("cls", CLASSES, ids=by_name)
def test_every_parameter_has_a_range(cls):
    assert issubclass(cls, Estimator)
    assert list(cls._parameter_constraints) == list(inspect.signature(cls).parameters)


@pytest.mark.parametrize("cls", CLASSES, ids=by_name)
def test_every_default_lies_in_its_range(cls):
    for name, parameter in inspect.signature(cls).parameters.items():
        constraints = cls._parameter_constraints[name]
        if parameter.default is not parameter.empty and not isinstance(constraints, str):
            assert any(make_constraint(c).is_satisfied_by(parameter.default) for c in constraints), name


def parameter_section(cls: type) -> str:
    text = inspect.getdoc(cls) or ""
    return text[text.index("Parameters\n") :] if "Parameters\n" in text else ""


@pytest.mark.parametrize("cls", CLASSES, ids=by_name)
def test_every_parameter_is_documented(cls):
    described, todo = "", {cls}
    done: set[type] = set()
    while todo:  # "as in :class:`ElasticNet`" is a description, too
        described += parameter_section(one := todo.pop())
        done.add(one)
        others = re.findall(r":class:`(?:hinge\.)?(\w+)`", inspect.getdoc(one) or "")
        todo |= {getattr(hg, other) for other in others if hasattr(hg, other)} - done
    for name in inspect.signature(cls).parameters:
        assert re.search(rf"\b{re.escape(name)}\b", described), name


@pytest.mark.parametrize("cls", CLASSES, ids=by_name)
def test_every_parameter_has_a_row_in_its_table(cls):
    assert [row[0] for row in table(cls)] == list(inspect.signature(cls).parameters)
    assert all(row[2] for row in table(cls))


def learning_data(estimator: Any) -> tuple[Any, Any]:
    tags = get_tags(estimator)
    name = type(estimator).__name__
    if name in ("CountVectorizer", "TfidfVectorizer", "HashingVectorizer"):
        return ["red green", "green blue", "blue red", "red red"] * 3, [0, 1, 0, 1] * 3
    if not tags.input_tags.two_d_array and name.endswith(("CRF", "Perceptron", "SVM")):
        return [[["a"], ["b"]], [["b"]], [["a"]]] * 2, [["x", "y"], ["y"], ["x"]] * 2
    if name == "ImageVectors":
        return np.zeros((4, 3, 3)), None
    X, y = make_data(estimator, n=24, d=3, classes=2)
    if name == "TweedieRegressor":  # most powers need targets above zero
        y = np.abs(y) + 1
    if name == "BernoulliNB":  # binarize=None takes 0 and 1
        X = (X > 0).astype(float)
    return (X[:, :1], y) if tags.input_tags.one_d_array else (X, y)


def fit(estimator: Any, X: Any, y: Any) -> None:
    extra = {"parents": [list(range(-1, len(x) - 1)) for x in X]} if type(estimator).__name__ == "TreeCRF" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(X, y, **extra)


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_hostile_values_are_refused_by_name_or_work(name):
    estimator = ESTIMATORS[name]
    X, y = learning_data(estimator)
    wrong = []
    for parameter in estimator.get_params(deep=False):
        for value in HOSTILE:
            model = clone(estimator).set_params(**{parameter: value})
            try:
                fit(model, X, y)
            except (ValueError, TypeError) as error:
                if parameter not in str(error) and not (value == 1e308 and OVERFLOW.search(str(error))):
                    wrong.append(f"{parameter}={value!r}: {type(error).__name__}: {error}")
            except Exception as error:
                wrong.append(f"{parameter}={value!r}: {type(error).__name__}: {error}")
    assert not wrong, "\n".join(wrong)


def valid_values(constraints: Any) -> Any:
    """Values that a list of scikit-learn's constraints accepts; several of a range, and every option."""
    for constraint in constraints:
        if isinstance(constraint, Hidden):
            continue
        made = make_constraint(constraint)
        if isinstance(made, HasMethods):
            continue
        if hasattr(made, "options"):
            yield from sorted(made.options, key=str)
            continue
        try:
            yield generate_valid_param(made)
        except (NotImplementedError, TypeError):  # an abstract class
            continue
        for end in ("left", "right"):
            value = getattr(made, end, None)
            if value is not None and made.is_satisfied_by(value):
                yield value


@pytest.mark.parametrize("cls", [c for c in CLASSES if c.__name__ in THEIRS], ids=by_name)
def test_ranges_hold_those_of_scikit_learn(cls):
    refused = []
    for name, constraints in THEIRS[cls.__name__]._parameter_constraints.items():
        ours = cls._parameter_constraints.get(name)
        if isinstance(constraints, str) or isinstance(ours, str) or ours is None:
            continue
        for value in valid_values(constraints):
            key = (cls.__name__, name, value if isinstance(value, str | float | int | None) else type(value).__name__)
            accepts = any(make_constraint(c).is_satisfied_by(value) for c in ours)
            if not accepts and key not in NARROWER:
                refused.append(key)
    assert not refused


def test_a_constructor_with_other_defaults_is_the_same_but_for_them():
    class Base(Estimator):
        def __init__(self, first=1, *, second=2, third=3):
            self.first, self.second, self.third = first, second, third

    class Other(Base):
        __init__ = with_defaults(Base.__init__, second="other")

    assert Base().get_params() == {"first": 1, "second": 2, "third": 3}
    assert Other(5, third=6).get_params() == {"first": 5, "second": "other", "third": 6}
    assert clone(Other(second=0)).second == 0
    with pytest.raises(TypeError, match="no keyword parameters fourth"):
        with_defaults(Base.__init__, fourth=4)
