"""hinge: supervised learning in which the problem, the solver and the proof are separate things.

Public names are loaded when first used, so ``import hinge`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# Where each public name lives. Type checkers read __init__.pyi.
_PUBLIC: dict[str, tuple[str, ...]] = {
    "hinge.problem.losses": (
        "Absolute", "Bernoulli", "EpsilonInsensitive", "Exponential", "Gamma", "Hinge", "Huber", "LogCosh", "Logistic", "Loss",
        "ModifiedHuber", "NegativeBinomial", "PerceptronLoss", "Poisson", "Quantile", "RelativeError", "Softmax", "Squared",
        "SquaredEpsilonInsensitive", "SquaredHinge", "SquaredMargin", "Target", "Tweedie", "ZeroOne",
    ),
    "hinge.problem.penalties": (
        "L0", "L1", "L2", "Box", "Elastic", "GroupNorm", "L1Ball", "L2Ball", "Lq", "MaxNorm", "NoPenalty", "Penalty",
    ),
    "hinge.problem.certificates.linear": ("Certificate", "certificate"),
    "hinge.problem.objective": ("Objective", "make_objective"),
    "hinge.problem.spaces": ("RKHS", "Chain", "Linear", "Network", "Space", "TreeOutput"),
    "hinge.problem.kernels": (
        "RBF", "ChiSquared", "Constant", "Cosine", "Graph", "Kernel", "Laplacian", "LinearKernel", "Matern", "Mismatch",
        "Polynomial", "Precomputed", "Quadratic", "Rank1", "RationalQuadratic", "Sigmoid", "Spectrum", "Subsequence",
        "WeisfeilerLehman", "White", "check_psd",
    ),
    "hinge.models.kernel.approximate": ("Nystroem", "RandomFourierFeatures"),
    "hinge.models.kernel.classifiers": ("KernelLogisticRegression", "KernelPerceptron"),
    "hinge.models.kernel.ridge": ("KernelRidge",),
    "hinge.models.kernel.nu": ("NuSVC", "NuSVR", "OneClassSVM"),
    "hinge.models.kernel.svm": ("SVC", "SVR"),
    "hinge.problem.decisions": ("bayes_action", "posterior_risk"),
    "hinge.models.bayes.conjugate": (
        "BetaBernoulli", "DirichletCategorical", "GammaPoisson", "NormalInverseGamma", "NormalNormal",
    ),
    "hinge.models.bayes.linear": ("BayesianLinearRegression",),
    "hinge.models.bayes.logistic": ("BayesianLogisticRegression",),
    "hinge.models.bayes.process": ("GaussianProcessRegressor",),
    "hinge.models.bayes.process_classifier": ("GaussianProcessClassifier",),
    "hinge.models.bayes.ridge": ("ARDRegression", "BayesianRidge"),
    "hinge.models.calibration.classifier": ("CalibratedClassifierCV",),
    "hinge.models.calibration.isotonic": ("IsotonicRegression", "isotonic_regression"),
    "hinge.explain.calibration": (
        "CalibrationReport", "brier_score", "calibration_curve", "calibration_report",
        "expected_calibration_error",
    ),
    "hinge.explain.plots.calibration_display": ("CalibrationDisplay",),
    "hinge.explain.plots.bayes": ("plot_posterior_contraction",),
    "hinge.problem.risk": ("empirical_risk", "risk"),
    "hinge.solvers.base": ("Record", "Solution", "Solver", "Status"),
    "hinge.solvers.admm": ("ADMM",),
    "hinge.solvers.coordinate_descent": ("CoordinateDescent",),
    "hinge.solvers.gradient_descent": ("GradientDescent",),
    "hinge.solvers.lbfgs": ("LBFGS",),
    "hinge.solvers.projected_gradient": ("ProjectedGradient",),
    "hinge.solvers.proximal_gradient": ("ProximalGradient",),
    "hinge.solvers.quadratic_program": ("QuadraticProgram", "hard_margin"),
    "hinge.solvers.schedules": ("Fixed", "InverseSqrt", "InverseTime", "ReduceOnPlateau", "Schedule"),
    "hinge.solvers.stochastic": ("SGD", "minibatch_gradient"),
    "hinge.solvers.stopping": ("GradientNorm", "HeldOutLoss", "ObjectiveChange", "ParameterChange", "Rule"),
    "hinge.solvers.subgradient": ("Pegasos", "Subgradient", "optimality_distance"),
    "hinge.select.constrained": ("constrained_path",),
    "hinge.explain.bias_variance": ("BiasVariance", "bias_variance"),
    "hinge.models.conformal.intervals": ("ConformalRegressor",),
    "hinge.models.conformal.sets": ("ConformalClassifier",),
    "hinge.explain.plots.curve_displays": ("LearningCurveDisplay", "ValidationCurveDisplay"),
    "hinge.explain.curves": ("LearningCurve", "ValidationCurve", "learning_curve", "validation_curve"),
    "hinge.explain.dependence": ("PartialDependence", "PartialDependenceDisplay", "partial_dependence"),
    "hinge.explain.diagnosis.decompose": ("RiskDecomposition", "decompose_risk", "plot_decomposition"),
    "hinge.explain.diagnosis.diagnose": ("diagnose",),
    "hinge.explain.drift": ("Drift", "measure_drift"),
    "hinge.explain.diagnosis.findings": ("Finding",),
    "hinge.explain.plots.fit_displays": ("CoefficientDisplay", "PredictionErrorDisplay"),
    "hinge.explain.generators": (
        "Generator", "LinearGaussian", "LogisticLabels", "PolynomialCurve", "SineCurve", "StepCurve",
    ),
    "hinge.explain.guarantees": ("Guarantee", "guarantees"),
    "hinge.explain.importance": ("Importances", "permutation_importance"),
    "hinge.explain.diagnosis.power_law": ("PowerLaw", "fit_power_law"),
    "hinge.explain.diagnosis.report": ("RiskReport",),
    "hinge.explain.plots.score_displays": ("ConfusionMatrixDisplay", "PrecisionRecallDisplay", "RocCurveDisplay"),
    "hinge.explain.plots.problems": ("plot_history", "plot_losses", "plot_norm_contours", "plot_risk_contours"),
    "hinge.models.learner": ("Learner",),
    "hinge.models.trees.tree": ("DecisionTreeClassifier", "DecisionTreeRegressor"),
    "hinge.models.trees.show": ("export_text", "plot_tree"),
    "hinge.models.trees.extra_tree": ("ExtraTreeClassifier", "ExtraTreeRegressor"),
    "hinge.models.trees.forest": (
        "ExtraTreesClassifier", "ExtraTreesRegressor", "RandomForestClassifier", "RandomForestRegressor",
    ),
    "hinge.models.trees.bagging": ("BaggingClassifier", "BaggingRegressor"),
    "hinge.models.trees.adaboost": ("AdaBoostClassifier",),
    "hinge.models.trees.adaboost_regressor": ("AdaBoostRegressor",),
    "hinge.models.trees.anyboost": ("AnyBoost", "ForwardStagewise"),
    "hinge.problem.tree_spaces": ("Boosted", "Forest", "Stagewise", "Tree"),
    "hinge.models.trees.boosting": (
        "GradientBoostingClassifier", "GradientBoostingRegressor", "HistGradientBoostingClassifier",
        "HistGradientBoostingRegressor",
    ),
    "hinge.features.buckets": ("Buckets",),
    "hinge.features.images": ("ImageVectors",),
    "hinge.features.monomials": ("PolynomialFeatures",),
    "hinge.features.saturation": ("Log1p", "Saturate"),
    "hinge.features.scaling": ("StandardScaler",),
    "hinge.features.text": ("CountVectorizer", "HashingVectorizer", "TfidfVectorizer"),
    "hinge.features.table": ("TableDescription", "TablePrep"),
    "hinge.tables.profile": ("TableProfile", "profile"),
    "hinge.files": ("load", "save"),
    "hinge.datasets": ("Dataset", "load_dataset"),
    "hinge.models.linear.least_squares": ("LinearRegression", "Ridge"),
    "hinge.models.linear.inference": ("Inference", "Moments", "ridge_moments"),
    "hinge.models.linear.lasso": ("ElasticNet", "GroupLasso", "Lasso"),
    "hinge.models.linear.logistic": ("LogisticRegression",),
    "hinge.models.linear.hard_margin": ("MaxMarginClassifier", "NotSeparableError"),
    "hinge.models.linear.multitask": ("MultiTaskElasticNet", "MultiTaskLasso"),
    "hinge.models.linear.ridge_classifier": ("RidgeClassifier",),
    "hinge.models.linear.perceptron": ("MistakeBound", "Perceptron"),
    "hinge.models.linear.stochastic": ("SGDClassifier", "SGDRegressor"),
    "hinge.models.linear.separation": ("Separation", "separating_direction"),
    "hinge.models.linear.robust": ("HuberRegressor", "LeastAbsoluteDeviations", "LinearSVR", "QuantileRegressor"),
    "hinge.models.linear.svm": ("LinearSVC",),
    "hinge.models.generative.naive_bayes.gaussian": ("GaussianNB",),
    "hinge.models.generative.naive_bayes.discrete": ("BernoulliNB", "ComplementNB", "MultinomialNB"),
    "hinge.models.generative.naive_bayes.categorical": ("CategoricalNB",),
    "hinge.models.generative.naive_bayes.mixed": ("MixedNB",),
    "hinge.models.generative.discriminant": ("LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis"),
    "hinge.models.generative.mixture.gaussian": ("GaussianMixture",),
    "hinge.models.generative.mixture.classifier": ("MixtureDiscriminant",),
    "hinge.models.generative.mixture.regressions": ("MixtureOfRegressions",),
    "hinge.select.features": ("BackwardSelector", "BestSubset", "ForwardSelector"),
    "hinge.models.glm.glm": ("GLM",),
    "hinge.models.glm.inference": ("GLMInference",),
    "hinge.models.glm.negative_binomial": ("NegativeBinomialRegressor",),
    "hinge.models.glm.regressors": ("GammaRegressor", "PoissonRegressor", "TweedieRegressor"),
    "hinge.problem.links": ("Link", "PowerLink"),
    "hinge.models.neural": ("BackpropTrace", "MLPClassifier", "MLPRegressor"),
    "hinge.select.lasso": ("ElasticNetCV", "LassoCV"),
    "hinge.select.logistic": ("LogisticRegressionCV",),
    "hinge.select.path": ("enet_path", "lasso_path"),
    "hinge.select.multitask": ("MultiTaskElasticNetCV", "MultiTaskLassoCV"),
    "hinge.select.ridge": ("RidgeCV",),
    "hinge.select.ridge_classifier": ("RidgeClassifierCV",),
    "hinge.select.tune": ("NestedResult", "TuneResult", "nested_cv", "tune"),
    "hinge.explain.plots.select": ("plot_labels", "plot_tuning"),
    "hinge.select.active": ("LabelCurve", "LabelCurves", "active_curves", "query"),
    "hinge.select.design": ("BallDomain", "BoxDomain", "SequentialDesign"),
    "hinge.problem.losses.multiclass": (
        "MulticlassHinge", "StructuredHinge", "StructuredLogistic", "StructuredPerceptronLoss",
    ),
    "hinge.models.multiclass": (
        "MulticlassPerceptron", "MulticlassSVM", "OneVsOneClassifier", "OneVsRestClassifier", "OutputCodeClassifier",
        "design_code",
    ),
    "hinge.models.structured": (
        "ChainCRF", "StructuredPerceptron", "StructuredSVM", "TextFeatures", "TreeCRF", "word_shape",
    ),
    "hinge._native": ("num_threads", "set_num_threads"),
}  # fmt: skip

_HOME = {name: module for module, names in _PUBLIC.items() for name in names}
__all__ = sorted([*_HOME, "__version__"])


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'hinge' has no attribute {name!r}")
    home = _HOME[name]
    if home.startswith(("hinge.models.", "hinge.select.")):
        # What they all need is loaded from here, where the stack is shallow: deep inside nested imports CPython 3.11
        # takes and gives back a piece of its stack at call after call.
        import sklearn.base  # noqa: F401
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
