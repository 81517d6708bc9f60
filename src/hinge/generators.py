"""Generators of examples from distributions with a known best predictor."""

from __future__ import annotations

from hinge._lazy import lazy_names

_PUBLIC: dict[str, tuple[str, ...]] = {
    "hinge.explain.generators": (
        "Generator", "LinearGaussian", "LogisticLabels", "PolynomialCurve", "SineCurve", "StepCurve",
    ),
}  # fmt: skip

__getattr__, __dir__, __all__ = lazy_names(__name__, _PUBLIC)
