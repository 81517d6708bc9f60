"""The types that functions such as ``hg.tune``, ``hg.diagnose`` and ``hg.learn`` return."""

from __future__ import annotations

from hinge._lazy import lazy_names

_PUBLIC: dict[str, tuple[str, ...]] = {
    "hinge.blocks.passes": ("Reading",),
    "hinge.explain.calibration": ("CalibrationReport",),
    "hinge.explain.bias_variance": ("BiasVariance",),
    "hinge.explain.curves": ("LearningCurve", "ValidationCurve"),
    "hinge.explain.dependence": ("PartialDependence",),
    "hinge.explain.diagnosis.decompose": ("RiskDecomposition",),
    "hinge.explain.drift": ("Drift",),
    "hinge.explain.diagnosis.findings": ("Finding",),
    "hinge.explain.guarantees": ("Guarantee",),
    "hinge.explain.importance": ("Importances",),
    "hinge.explain.diagnosis.power_law": ("PowerLaw",),
    "hinge.explain.diagnosis.report": ("RiskReport",),
    "hinge.features.table": ("TableDescription",),
    "hinge.learning.model_inputs": ("TableModel",),
    "hinge.learning.result": ("Learned",),
    "hinge.datasets": ("Dataset",),
    "hinge.models.linear.inference": ("Inference", "Moments", "NoiseVariance"),
    "hinge.models.linear.perceptron_run": ("MistakeBound",),
    "hinge.solvers.separation": ("Separation",),
    "hinge.models.glm.inference": ("GLMInference",),
    "hinge.models.neural": ("BackpropTrace",),
    "hinge.select.tune": ("TuneResult",),
    "hinge.select.nested": ("NestedResult",),
    "hinge.select.active": ("LabelCurve", "LabelCurves"),
    "hinge.explain.predictive_check": ("PredictiveCheck",),
    "hinge.problem.losses": ("LossFacts",),
    "hinge.solvers.zero_one": ("ZeroOneSolution",),
    "hinge.explain.ensembles": ("EnsembleVariance",),
    "hinge.models.structured": ("GraphLabelling", "GraphMarginals"),
    "hinge.tables.profile": ("TableProfile",),
}  # fmt: skip

__getattr__, __dir__, __all__ = lazy_names(__name__, _PUBLIC)
