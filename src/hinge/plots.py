"""Plots: displays of fitted models, scores, curves and problems. They need matplotlib."""

from __future__ import annotations

from hinge._lazy import lazy_names

_PUBLIC: dict[str, tuple[str, ...]] = {
    "hinge.explain.plots.calibration_display": ("CalibrationDisplay",),
    "hinge.explain.plots.bayes": ("plot_posterior_contraction",),
    "hinge.explain.plots.curve_displays": ("LearningCurveDisplay", "ValidationCurveDisplay"),
    "hinge.explain.dependence": ("PartialDependenceDisplay",),
    "hinge.explain.diagnosis.decompose": ("plot_decomposition",),
    "hinge.explain.plots.fit_displays": ("CoefficientDisplay", "PredictionErrorDisplay"),
    "hinge.explain.plots.score_displays": ("ConfusionMatrixDisplay", "PrecisionRecallDisplay", "RocCurveDisplay"),
    "hinge.explain.plots.problems": ("plot_history", "plot_losses", "plot_norm_contours", "plot_risk_contours"),
    "hinge.models.trees.show": ("plot_tree",),
    "hinge.explain.plots.select": ("plot_labels", "plot_tuning"),
}  # fmt: skip

__getattr__, __dir__, __all__ = lazy_names(__name__, _PUBLIC)
