"""The shapes of the fitted attributes of models, which are checked before a loaded model is used.

A shape is written in letters: d is ``n_features_in_``, k the number of classes; every other letter stands for one size
throughout a model (s rows of scores, c components, n training rows, …). Where several forms are listed, one must fit.
Parts with a structure of their own (trees, kernel expansions, sequence models) check themselves in ``_check_loaded``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

Form = tuple[str, ...]

SHAPES: dict[str, tuple[Form, ...]] = {
    # linear models
    "coef_": (("d",), ("s", "d")),
    "intercept_": ((), ("s",)),
    "coef_path_": (("a", "d"), ("a", "t", "d")),
    "X_offset_": (("d",),),
    "X_scale_": (("d",),),
    "lambda_": (("d",),),
    # counts and moments of classes
    "class_count_": (("k",),),
    "class_log_prior_": (("k",),),
    "class_prior_": (("k",),),
    "priors_": (("k",),),
    "feature_count_": (("k", "d"),),
    "feature_log_prob_": (("k", "d"),),
    "feature_all_": (("d",),),
    "_absent_log_prob": (("k", "d"),),
    "theta_": (("k", "d"),),
    "var_": (("k", "d"), ("d",)),
    "xbar_": (("d",),),
    "scalings_": (("d", "r"),),
    "n_categories_": (("d",),),
    # mixtures
    "weights_": (("c",),),
    "means_": (("k", "d"), ("c", "d")),
    "covariances_": (("c", "d", "d"), ("d", "d"), ("c", "d"), ("c",)),
    "precisions_": (("c", "d", "d"), ("d", "d"), ("c", "d"), ("c",)),
    "precisions_cholesky_": (("c", "d", "d"), ("d", "d"), ("c", "d"), ("c",)),
    # kernels and Gaussian processes; points may be objects, one per row
    "X_fit_": (("n", "d"), ("n",), ("n", "n")),
    "X_train_": (("n", "d"), ("n",)),
    "y_train_": (("n",), ("n", "t")),
    "L_": (("n", "n"),),
    "alpha_": ((), ("n",), ("n", "t")),
    "components_": (("q", "d"), ("q",)),
    "normalization_": (("q", "q"),),
    "component_indices_": (("q",),),
    "random_weights_": (("d", "r"),),
    "random_offset_": (("r",),),
    # trees and committees
    "_gains": (("t", "d"),),
    "missing_features_": (("d",),),
    "estimator_weights_": (("e",),),
    # features
    "mean_": (("d",),),
    "scale_": (("d",),),
    "n_bins_": (("d",),),
    "bin_edges_": (("d",),),
}
MOST_FEATURES = 2**31 - 1
# Features of a transformer without an array of that length. It takes a second to write so many names.
MOST_NAMES = 2**22


def check_fitted(model: Any) -> None:
    """Raise for a model of hinge whose fitted attributes have inconsistent shapes."""
    if not type(model).__module__.startswith("hinge."):
        return
    state = vars(model)
    sizes: dict[str, int] = {}
    if "n_features_in_" in state:
        sizes["d"] = _integer(state["n_features_in_"], "n_features_in_")
    classes = state.get("classes_")
    if isinstance(classes, np.ndarray):
        if classes.ndim != 1 or len(classes) == 0:
            raise ValueError(f"its classes_ have shape {classes.shape}; expected one label per class.")
        sizes["k"] = len(classes)
    # Categories are coded as several columns, so the model checks the number of its weights itself.
    if getattr(state.get("_coding"), "columns", ()):
        return
    wide = False
    for name, forms in SHAPES.items():
        value = state.get(name)
        if isinstance(value, (np.ndarray, np.generic)) or scipy.sparse.issparse(value):
            _check(name, value, forms, sizes)
            wide = wide or sizes.get("d") in value.shape
    if "_n_features_out" in state:
        width = _integer(state["_n_features_out"], "_n_features_out")
        counted = state.get("n_output_features_")  # monomials, whose number the model checks itself
        if width > MOST_NAMES and width not in (counted, *sizes.values()):
            raise ValueError(f"its _n_features_out is {width}, but it holds no array of that length.")
    if not wide and sizes.get("d", 0) > MOST_NAMES and hasattr(model, "get_feature_names_out"):
        raise ValueError(f"its n_features_in_ is {sizes['d']}, but it holds no array of that length.")


def _integer(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 0 <= value <= MOST_FEATURES:
        raise ValueError(f"its {name} is {value!r}; expected a whole number.")
    return int(value)


def _check(name: str, value: Any, forms: tuple[Form, ...], sizes: dict[str, int]) -> None:
    if value.dtype.kind not in "biufO" or (
        value.dtype.kind == "O" and name not in ("X_fit_", "bin_edges_", "X_train_")
    ):
        raise ValueError(f"its {name} is an array of {value.dtype}; expected numbers.")
    for form in forms:
        if len(form) != value.ndim:
            continue
        found = dict(sizes)
        if all(found.setdefault(letter, size) == size for letter, size in zip(form, value.shape)):
            sizes.update(found)
            return
    expected = " or ".join(str(tuple(sizes.get(letter, letter) for letter in form)).replace("'", "") for form in forms)
    raise ValueError(f"its {name} has shape {value.shape}; expected {expected}.")
