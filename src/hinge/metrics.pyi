# Written by tools/stubs.py.

from hinge.explain.calibration import (
    brier_score as brier_score,
    calibration_curve as calibration_curve,
    calibration_report as calibration_report,
    expected_calibration_error as expected_calibration_error,
)

__all__: list[str]
_PUBLIC: dict[str, tuple[str, ...]]
