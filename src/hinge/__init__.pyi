# Written by tools/stubs.py from the table in __init__.py.

from typing import Any

from hinge._native import (
    num_threads as num_threads,
    set_num_threads as set_num_threads,
)
from hinge.datasets import (
    Dataset as Dataset,
    load_dataset as load_dataset,
)
from hinge.files import (
    load as load,
    save as save,
)
from hinge.models.learner import (
    Learner as Learner,
)
from hinge.problem.certificate import (
    Certificate as Certificate,
    certificate as certificate,
)
from hinge.problem.losses import (
    Absolute as Absolute,
    EpsilonInsensitive as EpsilonInsensitive,
    Exponential as Exponential,
    Gamma as Gamma,
    Hinge as Hinge,
    Huber as Huber,
    LogCosh as LogCosh,
    Logistic as Logistic,
    Loss as Loss,
    NegativeBinomial as NegativeBinomial,
    PerceptronLoss as PerceptronLoss,
    Poisson as Poisson,
    Quantile as Quantile,
    RelativeError as RelativeError,
    Softmax as Softmax,
    Squared as Squared,
    SquaredEpsilonInsensitive as SquaredEpsilonInsensitive,
    SquaredHinge as SquaredHinge,
    SquaredMargin as SquaredMargin,
    Target as Target,
    Tweedie as Tweedie,
    ZeroOne as ZeroOne,
)
from hinge.problem.objective import (
    Objective as Objective,
    make_objective as make_objective,
)
from hinge.problem.penalties import (
    Box as Box,
    ElasticNet as ElasticNet,
    GroupLasso as GroupLasso,
    L0 as L0,
    L1 as L1,
    L1Ball as L1Ball,
    L2 as L2,
    L2Ball as L2Ball,
    Lq as Lq,
    MaxNorm as MaxNorm,
    NoPenalty as NoPenalty,
    Penalty as Penalty,
)
from hinge.problem.spaces import (
    Linear as Linear,
    Space as Space,
)

__version__: str
__all__: list[str]
_PUBLIC: dict[str, tuple[str, ...]]
_HOME: dict[str, str]
_core: Any
