"""The public names: none goes by accident, and a flat one is an estimator, a loss, a penalty, a space or a listed verb.

New names are reviewed in the tables of ``hinge/__init__.py`` and of the namespaces; other names than these kinds go into a
namespace. `python tests/contracts/test_public_names.py` writes public_names.txt, the names that must stay, again.
"""

from __future__ import annotations

from pathlib import Path

from sklearn.base import BaseEstimator

import hinge as hg

LIST = Path(__file__).with_name("public_names.txt")
# Verbs, and types that users name: the reviewed list of flat names that are none of the kinds above.
OTHERS = {
    # problems, solutions and proofs
    "Certificate", "Link", "NotSeparableError", "Objective", "PowerLink", "SigmoidLoss", "Target", "certificate",
    "make_objective", "minimise_zero_one", "probe_loss", "separating_direction", "solve",
    # tables, files, settings
    "config_context", "get_config", "learn", "load", "load_dataset", "num_threads", "profile", "save", "scan", "set_config",
    "set_num_threads", "show_versions",
    # choosing and explaining
    "bias_variance", "constrained_path", "decompose_risk", "design_code", "diagnose", "empirical_risk", "enet_path",
    "ensemble_variance", "export_text", "fit_power_law", "guarantees", "isotonic_regression", "lasso_path", "learning_curve",
    "measure_drift", "nested_cv", "noise_variance", "partial_dependence", "permutation_importance", "predictive_check",
    "ridge_moments", "risk", "tune", "validation_curve",
}  # fmt: skip


def public_names() -> list[str]:
    """The flat names, and those of the namespaces with a prefix, such as solvers.Pegasos."""
    inside = (f"{space}.{name}" for space in hg.NAMESPACES for name in getattr(hg, space).__all__)
    return sorted([*hg.__all__, *inside])


def test_no_public_name_goes_by_accident():
    assert set(LIST.read_text().split()) - set(public_names()) == set()


def test_flat_names_are_estimators_losses_penalties_spaces_and_listed_verbs():
    kinds = BaseEstimator, hg.Loss, hg.Penalty, hg.Space
    values = {name: getattr(hg, name) for name in hg.__all__ if name not in (*hg.NAMESPACES, "__version__")}
    others = {name for name, value in values.items() if not (isinstance(value, type) and issubclass(value, kinds))}
    assert others == OTHERS


if __name__ == "__main__":
    LIST.write_text("\n".join(public_names()) + "\n")
