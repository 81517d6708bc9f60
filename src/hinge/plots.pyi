# Written by tools/stubs.py.

from hinge.explain.dependence import (
    PartialDependenceDisplay as PartialDependenceDisplay,
)
from hinge.explain.diagnosis.decompose import (
    plot_decomposition as plot_decomposition,
)
from hinge.explain.plots.bayes import (
    plot_posterior_contraction as plot_posterior_contraction,
)
from hinge.explain.plots.calibration_display import (
    CalibrationDisplay as CalibrationDisplay,
)
from hinge.explain.plots.curve_displays import (
    LearningCurveDisplay as LearningCurveDisplay,
    ValidationCurveDisplay as ValidationCurveDisplay,
)
from hinge.explain.plots.fit_displays import (
    CoefficientDisplay as CoefficientDisplay,
    PredictionErrorDisplay as PredictionErrorDisplay,
)
from hinge.explain.plots.problems import (
    plot_history as plot_history,
    plot_losses as plot_losses,
    plot_norm_contours as plot_norm_contours,
    plot_risk_contours as plot_risk_contours,
)
from hinge.explain.plots.score_displays import (
    ConfusionMatrixDisplay as ConfusionMatrixDisplay,
    PrecisionRecallDisplay as PrecisionRecallDisplay,
    RocCurveDisplay as RocCurveDisplay,
)
from hinge.explain.plots.select import (
    plot_labels as plot_labels,
    plot_tuning as plot_tuning,
)
from hinge.models.trees.show import (
    plot_tree as plot_tree,
)

__all__: list[str]
_PUBLIC: dict[str, tuple[str, ...]]
