# Written by tools/stubs.py.

from hinge.blocks.passes import (
    Reading as Reading,
)
from hinge.datasets import (
    Dataset as Dataset,
)
from hinge.explain.bias_variance import (
    BiasVariance as BiasVariance,
)
from hinge.explain.calibration import (
    CalibrationReport as CalibrationReport,
)
from hinge.explain.curves import (
    LearningCurve as LearningCurve,
    ValidationCurve as ValidationCurve,
)
from hinge.explain.dependence import (
    PartialDependence as PartialDependence,
)
from hinge.explain.diagnosis.decompose import (
    RiskDecomposition as RiskDecomposition,
)
from hinge.explain.diagnosis.findings import (
    Finding as Finding,
)
from hinge.explain.diagnosis.power_law import (
    PowerLaw as PowerLaw,
)
from hinge.explain.diagnosis.report import (
    RiskReport as RiskReport,
)
from hinge.explain.drift import (
    Drift as Drift,
)
from hinge.explain.ensembles import (
    EnsembleVariance as EnsembleVariance,
)
from hinge.explain.guarantees import (
    Guarantee as Guarantee,
)
from hinge.explain.importance import (
    Importances as Importances,
)
from hinge.explain.predictive_check import (
    PredictiveCheck as PredictiveCheck,
)
from hinge.features.table import (
    TableDescription as TableDescription,
)
from hinge.learning.model_inputs import (
    TableModel as TableModel,
)
from hinge.learning.result import (
    Learned as Learned,
)
from hinge.models.glm.inference import (
    GLMInference as GLMInference,
)
from hinge.models.linear.inference import (
    Inference as Inference,
    Moments as Moments,
    NoiseVariance as NoiseVariance,
)
from hinge.models.linear.perceptron_run import (
    MistakeBound as MistakeBound,
)
from hinge.models.neural import (
    BackpropTrace as BackpropTrace,
)
from hinge.models.structured import (
    GraphLabelling as GraphLabelling,
    GraphMarginals as GraphMarginals,
)
from hinge.problem.losses import (
    LossFacts as LossFacts,
)
from hinge.select.active import (
    LabelCurve as LabelCurve,
    LabelCurves as LabelCurves,
)
from hinge.select.nested import (
    NestedResult as NestedResult,
)
from hinge.select.tune import (
    TuneResult as TuneResult,
)
from hinge.solvers.separation import (
    Separation as Separation,
)
from hinge.solvers.zero_one import (
    ZeroOneSolution as ZeroOneSolution,
)
from hinge.tables.profile import (
    TableProfile as TableProfile,
)

__all__: list[str]
_PUBLIC: dict[str, tuple[str, ...]]
