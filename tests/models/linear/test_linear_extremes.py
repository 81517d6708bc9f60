"""Valid calls of linear models on degenerate data and with extreme parameters: a fit, or an error of hinge's own."""

from __future__ import annotations

import inspect
import sys
import traceback
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils import get_tags

import hinge as hg
from kit.estimators import name, public_estimators

FAMILIES = ("hinge.models.linear", "hinge.models.glm", "hinge.select")
HOUSE = Path(hg.__file__).parent
ESTIMATORS = [
    e
    for e in public_estimators()
    if type(e).__module__.startswith(FAMILIES) and hasattr(e, "predict") and not hasattr(e, "estimator")
]
DATA = {
    "plain": lambda rng: rng.normal(size=(12, 3)),
    "one column": lambda rng: rng.normal(size=(12, 1)),
    "constant columns": lambda rng: np.ones((12, 2)),
    "zeros": lambda rng: np.zeros((12, 2)),
    "duplicate columns": lambda rng: rng.normal(size=(12, 1)).repeat(3, axis=1),
    "duplicate rows": lambda rng: rng.normal(size=(2, 3)).repeat(6, axis=0),
    "wide": lambda rng: rng.normal(size=(12, 40)),
    "square": lambda rng: rng.normal(size=(12, 12)),
    "badly scaled": lambda rng: rng.normal(size=(12, 3)) * [1e-9, 1.0, 1e9],
}
STRENGTHS = (0.0, 1e-300, 1e-10, 1e300)
SETTINGS = [{}, {"max_iter": 1}, {"fit_intercept": False}] + [
    {strength: value} for strength in ("alpha", "C") for value in STRENGTHS
]
FITS = [
    pytest.param(e, settings, id=f"{name(e)}-{settings}")
    for e in ESTIMATORS
    for settings in SETTINGS
    if set(settings) <= set(inspect.signature(type(e)).parameters)
]


def targets(estimator, X, rng):
    tags = get_tags(estimator)
    if tags.estimator_type == "classifier":
        return np.arange(len(X)) % 2
    y = rng.normal(size=len(X))
    if tags.target_tags.positive_only:
        y = np.exp(y)
    return np.column_stack([y, y[::-1]]) if not tags.target_tags.single_output else y


def raised_by_hinge(error: Exception) -> bool:
    """Whether the line that raised the error is hinge's (or scikit-learn's, which checks inputs for it)."""
    raiser = Path(traceback.extract_tb(sys.exc_info()[2])[-1].filename)
    return isinstance(error, ValueError) and (raiser.is_relative_to(HOUSE) or "sklearn" in raiser.parts)


@pytest.mark.parametrize(("estimator", "settings"), FITS)
def test_a_valid_call_gives_a_fit_or_an_error_that_names_the_remedy(estimator, settings, rng):
    wrong = {}
    for kind, make in DATA.items():
        X = make(rng)
        y, model = targets(estimator, X, rng), clone(estimator).set_params(**settings)
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            warnings.simplefilter("ignore", UserWarning)  # among them ConvergenceWarning
            try:
                model.fit(X, y)
                if not np.all(np.isfinite(np.asarray(model.predict(X), dtype=float))):
                    wrong[kind] = "predictions are not finite"
            except Exception as error:
                if not raised_by_hinge(error):
                    wrong[kind] = f"{type(error).__name__}: {error}"
    assert not wrong


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name)
def test_one_row_gives_a_fit_or_an_error_that_names_the_remedy(estimator, rng):
    X, wrong = rng.normal(size=(1, 3)), ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            clone(estimator).fit(X, targets(estimator, X, rng)).predict(X)
    except Exception as error:
        wrong = "" if raised_by_hinge(error) else repr(error)
    assert not wrong
