# Written by tools/stubs.py.

from typing import Any

from hinge import kernels as kernels, solvers as solvers, plots as plots, generators as generators, results as results
from hinge._native import (
    num_threads as num_threads,
    set_num_threads as set_num_threads,
)
from hinge.blocks.source import (
    scan as scan,
)
from hinge.datasets import (
    load_dataset as load_dataset,
)
from hinge.environment import (
    show_versions as show_versions,
)
from hinge.explain.bias_variance import (
    bias_variance as bias_variance,
)
from hinge.explain.calibration import (
    brier_score as brier_score,
    calibration_curve as calibration_curve,
    calibration_report as calibration_report,
    expected_calibration_error as expected_calibration_error,
)
from hinge.explain.curves import (
    learning_curve as learning_curve,
    validation_curve as validation_curve,
)
from hinge.explain.dependence import (
    partial_dependence as partial_dependence,
)
from hinge.explain.diagnosis.decompose import (
    decompose_risk as decompose_risk,
)
from hinge.explain.diagnosis.diagnose import (
    diagnose as diagnose,
)
from hinge.explain.diagnosis.power_law import (
    fit_power_law as fit_power_law,
)
from hinge.explain.drift import (
    measure_drift as measure_drift,
)
from hinge.explain.ensembles import (
    ensemble_variance as ensemble_variance,
)
from hinge.explain.guarantees import (
    guarantees as guarantees,
)
from hinge.explain.importance import (
    permutation_importance as permutation_importance,
)
from hinge.explain.predictive_check import (
    predictive_check as predictive_check,
)
from hinge.features.buckets import (
    Buckets as Buckets,
)
from hinge.features.hashing import (
    HashingVectorizer as HashingVectorizer,
)
from hinge.features.images import (
    ImageVectors as ImageVectors,
)
from hinge.features.monomials import (
    PolynomialFeatures as PolynomialFeatures,
)
from hinge.features.saturation import (
    Log1p as Log1p,
    Saturate as Saturate,
)
from hinge.features.scaling import (
    StandardScaler as StandardScaler,
)
from hinge.features.table import (
    TablePrep as TablePrep,
)
from hinge.features.text import (
    CountVectorizer as CountVectorizer,
    TfidfVectorizer as TfidfVectorizer,
)
from hinge.files import (
    load as load,
    save as save,
)
from hinge.learning.run import (
    learn as learn,
)
from hinge.models.bayes.ard import (
    ARDRegression as ARDRegression,
)
from hinge.models.bayes.conjugate import (
    BetaBernoulli as BetaBernoulli,
    DirichletCategorical as DirichletCategorical,
    GammaPoisson as GammaPoisson,
    NormalInverseGamma as NormalInverseGamma,
    NormalNormal as NormalNormal,
)
from hinge.models.bayes.linear import (
    BayesianLinearRegression as BayesianLinearRegression,
)
from hinge.models.bayes.logistic import (
    BayesianLogisticRegression as BayesianLogisticRegression,
)
from hinge.models.bayes.process import (
    GaussianProcessRegressor as GaussianProcessRegressor,
)
from hinge.models.bayes.process_classifier import (
    GaussianProcessClassifier as GaussianProcessClassifier,
)
from hinge.models.bayes.ridge import (
    BayesianRidge as BayesianRidge,
)
from hinge.models.calibration.classifier import (
    CalibratedClassifierCV as CalibratedClassifierCV,
)
from hinge.models.calibration.isotonic import (
    IsotonicRegression as IsotonicRegression,
    isotonic_regression as isotonic_regression,
)
from hinge.models.committee.voting import (
    VotingClassifier as VotingClassifier,
    VotingRegressor as VotingRegressor,
)
from hinge.models.conformal.intervals import (
    ConformalRegressor as ConformalRegressor,
)
from hinge.models.conformal.sets import (
    ConformalClassifier as ConformalClassifier,
)
from hinge.models.generative.discriminant import (
    LinearDiscriminantAnalysis as LinearDiscriminantAnalysis,
)
from hinge.models.generative.mixture.classifier import (
    MixtureDiscriminant as MixtureDiscriminant,
)
from hinge.models.generative.mixture.gaussian import (
    GaussianMixture as GaussianMixture,
)
from hinge.models.generative.mixture.regressions import (
    MixtureOfRegressions as MixtureOfRegressions,
)
from hinge.models.generative.naive_bayes.categorical import (
    CategoricalNB as CategoricalNB,
)
from hinge.models.generative.naive_bayes.discrete import (
    BernoulliNB as BernoulliNB,
    ComplementNB as ComplementNB,
    MultinomialNB as MultinomialNB,
)
from hinge.models.generative.naive_bayes.gaussian import (
    GaussianNB as GaussianNB,
)
from hinge.models.generative.naive_bayes.mixed import (
    MixedNB as MixedNB,
)
from hinge.models.generative.quadratic_discriminant import (
    QuadraticDiscriminantAnalysis as QuadraticDiscriminantAnalysis,
)
from hinge.models.glm.glm import (
    GLM as GLM,
)
from hinge.models.glm.negative_binomial import (
    NegativeBinomialRegressor as NegativeBinomialRegressor,
)
from hinge.models.glm.regressors import (
    GammaRegressor as GammaRegressor,
    PoissonRegressor as PoissonRegressor,
    TweedieRegressor as TweedieRegressor,
)
from hinge.models.kernel.approximate import (
    Nystroem as Nystroem,
    RandomFourierFeatures as RandomFourierFeatures,
)
from hinge.models.kernel.classifiers import (
    KernelLogisticRegression as KernelLogisticRegression,
    KernelPerceptron as KernelPerceptron,
)
from hinge.models.kernel.nu import (
    NuSVC as NuSVC,
    NuSVR as NuSVR,
    OneClassSVM as OneClassSVM,
)
from hinge.models.kernel.ridge import (
    KernelRidge as KernelRidge,
)
from hinge.models.kernel.svm import (
    SVC as SVC,
    SVR as SVR,
)
from hinge.models.learner import (
    Learner as Learner,
)
from hinge.models.linear.hard_margin import (
    MaxMarginClassifier as MaxMarginClassifier,
    NotSeparableError as NotSeparableError,
)
from hinge.models.linear.huber import (
    HuberRegressor as HuberRegressor,
)
from hinge.models.linear.inference import (
    noise_variance as noise_variance,
    ridge_moments as ridge_moments,
)
from hinge.models.linear.lasso import (
    ElasticNet as ElasticNet,
    GroupLasso as GroupLasso,
    Lasso as Lasso,
)
from hinge.models.linear.least_squares import (
    LinearRegression as LinearRegression,
    Ridge as Ridge,
)
from hinge.models.linear.logistic import (
    LogisticRegression as LogisticRegression,
)
from hinge.models.linear.multitask import (
    MultiTaskElasticNet as MultiTaskElasticNet,
    MultiTaskLasso as MultiTaskLasso,
)
from hinge.models.linear.perceptron import (
    Perceptron as Perceptron,
)
from hinge.models.linear.ridge_classifier import (
    RidgeClassifier as RidgeClassifier,
)
from hinge.models.linear.robust import (
    LeastAbsoluteDeviations as LeastAbsoluteDeviations,
    LinearSVR as LinearSVR,
    QuantileRegressor as QuantileRegressor,
)
from hinge.models.linear.stochastic import (
    SGDClassifier as SGDClassifier,
    SGDRegressor as SGDRegressor,
)
from hinge.models.linear.svm import (
    LinearSVC as LinearSVC,
)
from hinge.models.multiclass import (
    MulticlassPerceptron as MulticlassPerceptron,
    MulticlassSVM as MulticlassSVM,
    OneVsOneClassifier as OneVsOneClassifier,
    OneVsRestClassifier as OneVsRestClassifier,
    OutputCodeClassifier as OutputCodeClassifier,
    design_code as design_code,
)
from hinge.models.neighbors.estimators import (
    KNeighborsClassifier as KNeighborsClassifier,
    KNeighborsRegressor as KNeighborsRegressor,
)
from hinge.models.neural import (
    MLPClassifier as MLPClassifier,
    MLPRegressor as MLPRegressor,
)
from hinge.models.structured import (
    ChainCRF as ChainCRF,
    StructuredPerceptron as StructuredPerceptron,
    StructuredSVM as StructuredSVM,
    TextFeatures as TextFeatures,
    TreeCRF as TreeCRF,
    graph_labelling as graph_labelling,
    graph_marginals as graph_marginals,
    word_shape as word_shape,
)
from hinge.models.trees.adaboost import (
    AdaBoostClassifier as AdaBoostClassifier,
)
from hinge.models.trees.adaboost_regressor import (
    AdaBoostRegressor as AdaBoostRegressor,
)
from hinge.models.trees.anyboost import (
    AnyBoost as AnyBoost,
    ForwardStagewise as ForwardStagewise,
)
from hinge.models.trees.bagging import (
    BaggingClassifier as BaggingClassifier,
    BaggingRegressor as BaggingRegressor,
)
from hinge.models.trees.boosting import (
    HistGradientBoostingClassifier as HistGradientBoostingClassifier,
    HistGradientBoostingRegressor as HistGradientBoostingRegressor,
)
from hinge.models.trees.extra_tree import (
    ExtraTreeClassifier as ExtraTreeClassifier,
    ExtraTreeRegressor as ExtraTreeRegressor,
)
from hinge.models.trees.forest import (
    ExtraTreesClassifier as ExtraTreesClassifier,
    ExtraTreesRegressor as ExtraTreesRegressor,
    RandomForestClassifier as RandomForestClassifier,
    RandomForestRegressor as RandomForestRegressor,
)
from hinge.models.trees.gradient_boosting import (
    GradientBoostingClassifier as GradientBoostingClassifier,
    GradientBoostingRegressor as GradientBoostingRegressor,
)
from hinge.models.trees.show import (
    export_text as export_text,
)
from hinge.models.trees.tree import (
    DecisionTreeClassifier as DecisionTreeClassifier,
    DecisionTreeRegressor as DecisionTreeRegressor,
)
from hinge.problem.certificates.certificate import (
    Certificate as Certificate,
)
from hinge.problem.certificates.linear import (
    certificate as certificate,
)
from hinge.problem.decisions import (
    bayes_action as bayes_action,
    cost_threshold as cost_threshold,
    least_cost as least_cost,
    posterior_risk as posterior_risk,
)
from hinge.problem.links import (
    Link as Link,
    PowerLink as PowerLink,
)
from hinge.problem.losses import (
    Absolute as Absolute,
    Bernoulli as Bernoulli,
    EpsilonInsensitive as EpsilonInsensitive,
    Exponential as Exponential,
    Gamma as Gamma,
    Hinge as Hinge,
    Huber as Huber,
    LogCosh as LogCosh,
    Logistic as Logistic,
    Loss as Loss,
    ModifiedHuber as ModifiedHuber,
    NegativeBinomial as NegativeBinomial,
    PerceptronLoss as PerceptronLoss,
    Poisson as Poisson,
    Quantile as Quantile,
    RelativeError as RelativeError,
    SigmoidLoss as SigmoidLoss,
    Softmax as Softmax,
    Squared as Squared,
    SquaredEpsilonInsensitive as SquaredEpsilonInsensitive,
    SquaredHinge as SquaredHinge,
    SquaredMargin as SquaredMargin,
    Target as Target,
    Tweedie as Tweedie,
    ZeroOne as ZeroOne,
    probe_loss as probe_loss,
)
from hinge.problem.losses.multiclass import (
    MulticlassHinge as MulticlassHinge,
    StructuredHinge as StructuredHinge,
    StructuredLogistic as StructuredLogistic,
    StructuredPerceptronLoss as StructuredPerceptronLoss,
)
from hinge.problem.objective import (
    Objective as Objective,
    make_objective as make_objective,
)
from hinge.problem.penalties import (
    Box as Box,
    Elastic as Elastic,
    GroupNorm as GroupNorm,
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
from hinge.problem.risk import (
    empirical_risk as empirical_risk,
    risk as risk,
)
from hinge.problem.spaces import (
    Chain as Chain,
    Linear as Linear,
    Network as Network,
    RKHS as RKHS,
    Space as Space,
    TreeOutput as TreeOutput,
)
from hinge.problem.tree_spaces import (
    Boosted as Boosted,
    Forest as Forest,
    Stagewise as Stagewise,
    Tree as Tree,
)
from hinge.select.active import (
    active_curves as active_curves,
    query as query,
)
from hinge.select.constrained import (
    constrained_path as constrained_path,
)
from hinge.select.design import (
    BallDomain as BallDomain,
    BoxDomain as BoxDomain,
    SequentialDesign as SequentialDesign,
)
from hinge.select.features import (
    BackwardSelector as BackwardSelector,
    BestSubset as BestSubset,
    ForwardSelector as ForwardSelector,
)
from hinge.select.lasso import (
    ElasticNetCV as ElasticNetCV,
    LassoCV as LassoCV,
)
from hinge.select.logistic import (
    LogisticRegressionCV as LogisticRegressionCV,
)
from hinge.select.multitask import (
    MultiTaskElasticNetCV as MultiTaskElasticNetCV,
    MultiTaskLassoCV as MultiTaskLassoCV,
)
from hinge.select.nested import (
    nested_cv as nested_cv,
)
from hinge.select.path import (
    enet_path as enet_path,
    lasso_path as lasso_path,
)
from hinge.select.ridge import (
    RidgeCV as RidgeCV,
)
from hinge.select.ridge_classifier import (
    RidgeClassifierCV as RidgeClassifierCV,
)
from hinge.select.stacking import (
    StackingClassifier as StackingClassifier,
    StackingRegressor as StackingRegressor,
)
from hinge.select.threshold import (
    FixedThresholdClassifier as FixedThresholdClassifier,
    TunedThresholdClassifierCV as TunedThresholdClassifierCV,
)
from hinge.select.tune import (
    tune as tune,
)
from hinge.settings import (
    config_context as config_context,
    get_config as get_config,
    set_config as set_config,
)
from hinge.solvers.run import (
    solve as solve,
)
from hinge.solvers.separation import (
    separating_direction as separating_direction,
)
from hinge.solvers.zero_one import (
    minimise_zero_one as minimise_zero_one,
)
from hinge.tables.profile import (
    profile as profile,
)

__all__: list[str]
_PUBLIC: dict[str, tuple[str, ...]]
__version__: str
NAMESPACES: tuple[str, ...]
_core: Any
