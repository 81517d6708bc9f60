# Written by tools/stubs.py.

from hinge.explain.generators import (
    Generator as Generator,
    LinearGaussian as LinearGaussian,
    LogisticLabels as LogisticLabels,
    PolynomialCurve as PolynomialCurve,
    SineCurve as SineCurve,
    StepCurve as StepCurve,
)

__all__: list[str]
_PUBLIC: dict[str, tuple[str, ...]]
