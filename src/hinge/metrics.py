"""How well predicted probabilities agree with what happens."""

from __future__ import annotations

from hinge._lazy import lazy_names

_PUBLIC: dict[str, tuple[str, ...]] = {
    "hinge.explain.calibration": (
        "brier_score", "calibration_curve", "calibration_report", "expected_calibration_error",
    ),
}  # fmt: skip

__getattr__, __dir__, __all__ = lazy_names(__name__, _PUBLIC)
