"""hinge: supervised learning in which the problem, the solver and the proof are separate things.

Estimators, losses, penalties, hypothesis spaces and verbs are here; kernels, solvers, plots, generators and the types of
results are in ``hg.kernels``, ``hg.solvers``, ``hg.plots``, ``hg.generators`` and ``hg.results``. Public names are loaded
when first used, so ``import hinge`` costs next to nothing.
"""

from __future__ import annotations

from hinge._lazy import lazy_names

__version__ = "0.2.0"

# The namespaces; each is a module with a table like the one below.
NAMESPACES = ("kernels", "solvers", "plots", "generators", "results")

# Where each public name lives. Type checkers read __init__.pyi.
_PUBLIC: dict[str, tuple[str, ...]] = {
    "hinge.problem.losses": (
        "Absolute", "Bernoulli", "EpsilonInsensitive", "Exponential", "Gamma", "Hinge", "Huber", "LogCosh",
        "Logistic", "Loss", "ModifiedHuber", "NegativeBinomial", "PerceptronLoss", "Poisson", "probe_loss",
        "Quantile", "RelativeError", "SigmoidLoss", "Softmax", "Squared", "SquaredEpsilonInsensitive",
        "SquaredHinge", "SquaredMargin", "Target", "Tweedie", "ZeroOne",
    ),
    "hinge.solvers.zero_one": ("minimise_zero_one",),
    "hinge.explain.ensembles": ("ensemble_variance",),
    "hinge.problem.penalties": (
        "L0", "L1", "L2", "Box", "Elastic", "GroupNorm", "L1Ball", "L2Ball", "Lq", "MaxNorm", "NoPenalty", "Penalty",
    ),
    "hinge.problem.certificates.certificate": ("Certificate",),
    "hinge.problem.certificates.linear": ("certificate",),
    "hinge.problem.objective": ("Objective", "make_objective"),
    "hinge.problem.spaces": ("RKHS", "Chain", "Linear", "Network", "Space", "TreeOutput"),
    "hinge.models.kernel.approximate": ("Nystroem", "RandomFourierFeatures"),
    "hinge.models.kernel.classifiers": ("KernelLogisticRegression", "KernelPerceptron"),
    "hinge.models.kernel.ridge": ("KernelRidge",),
    "hinge.models.kernel.nu": ("NuSVC", "NuSVR", "OneClassSVM"),
    "hinge.models.kernel.svm": ("SVC", "SVR"),
    "hinge.problem.decisions": ("bayes_action", "cost_threshold", "least_cost", "posterior_risk"),
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
        "brier_score", "calibration_curve", "calibration_report", "expected_calibration_error",
    ),
    "hinge.problem.risk": ("empirical_risk", "risk"),
    "hinge.select.constrained": ("constrained_path",),
    "hinge.explain.bias_variance": ("bias_variance",),
    "hinge.models.conformal.intervals": ("ConformalRegressor",),
    "hinge.models.conformal.sets": ("ConformalClassifier",),
    "hinge.explain.curves": ("learning_curve", "validation_curve"),
    "hinge.explain.dependence": ("partial_dependence",),
    "hinge.explain.diagnosis.decompose": ("decompose_risk",),
    "hinge.explain.diagnosis.diagnose": ("diagnose",),
    "hinge.explain.drift": ("measure_drift",),
    "hinge.explain.guarantees": ("guarantees",),
    "hinge.explain.importance": ("permutation_importance",),
    "hinge.explain.diagnosis.power_law": ("fit_power_law",),
    "hinge.models.learner": ("Learner",),
    "hinge.models.trees.tree": ("DecisionTreeClassifier", "DecisionTreeRegressor"),
    "hinge.models.trees.show": ("export_text",),
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
        "HistGradientBoostingClassifier", "HistGradientBoostingRegressor",
    ),
    "hinge.models.trees.gradient_boosting": ("GradientBoostingClassifier", "GradientBoostingRegressor"),
    "hinge.features.buckets": ("Buckets",),
    "hinge.features.images": ("ImageVectors",),
    "hinge.features.monomials": ("PolynomialFeatures",),
    "hinge.features.saturation": ("Log1p", "Saturate"),
    "hinge.features.scaling": ("StandardScaler",),
    "hinge.features.text": ("CountVectorizer", "TfidfVectorizer"),
    "hinge.features.hashing": ("HashingVectorizer",),
    "hinge.features.table": ("TablePrep",),
    "hinge.tables.profile": ("profile",),
    "hinge.files": ("load", "save"),
    "hinge.learning.run": ("learn",),
    "hinge.solvers.run": ("solve",),
    "hinge.datasets": ("load_dataset",),
    "hinge.blocks.source": ("scan",),
    "hinge.models.linear.least_squares": ("LinearRegression", "Ridge"),
    "hinge.models.linear.inference": ("noise_variance", "ridge_moments"),
    "hinge.models.linear.lasso": ("ElasticNet", "GroupLasso", "Lasso"),
    "hinge.models.linear.logistic": ("LogisticRegression",),
    "hinge.models.linear.hard_margin": ("MaxMarginClassifier", "NotSeparableError"),
    "hinge.models.linear.multitask": ("MultiTaskElasticNet", "MultiTaskLasso"),
    "hinge.models.linear.ridge_classifier": ("RidgeClassifier",),
    "hinge.models.linear.perceptron": ("Perceptron",),
    "hinge.models.linear.stochastic": ("SGDClassifier", "SGDRegressor"),
    "hinge.solvers.separation": ("separating_direction",),
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
    "hinge.models.glm.negative_binomial": ("NegativeBinomialRegressor",),
    "hinge.models.glm.regressors": ("GammaRegressor", "PoissonRegressor", "TweedieRegressor"),
    "hinge.problem.links": ("Link", "PowerLink"),
    "hinge.models.neighbors.estimators": ("KNeighborsClassifier", "KNeighborsRegressor"),
    "hinge.models.neural": ("MLPClassifier", "MLPRegressor"),
    "hinge.models.committee.voting": ("VotingClassifier", "VotingRegressor"),
    "hinge.select.lasso": ("ElasticNetCV", "LassoCV"),
    "hinge.select.logistic": ("LogisticRegressionCV",),
    "hinge.select.path": ("enet_path", "lasso_path"),
    "hinge.select.multitask": ("MultiTaskElasticNetCV", "MultiTaskLassoCV"),
    "hinge.select.ridge": ("RidgeCV",),
    "hinge.select.ridge_classifier": ("RidgeClassifierCV",),
    "hinge.select.stacking": ("StackingClassifier", "StackingRegressor"),
    "hinge.select.threshold": ("FixedThresholdClassifier", "TunedThresholdClassifierCV"),
    "hinge.select.tune": ("tune",),
    "hinge.select.nested": ("nested_cv",),
    "hinge.select.active": ("active_curves", "query"),
    "hinge.select.design": ("BallDomain", "BoxDomain", "SequentialDesign"),
    "hinge.problem.losses.multiclass": (
        "MulticlassHinge", "StructuredHinge", "StructuredLogistic", "StructuredPerceptronLoss",
    ),
    "hinge.models.multiclass": (
        "MulticlassPerceptron", "MulticlassSVM", "OneVsOneClassifier", "OneVsRestClassifier", "OutputCodeClassifier",
        "design_code",
    ),
    "hinge.models.structured": (
        "ChainCRF", "StructuredPerceptron", "StructuredSVM", "TextFeatures", "TreeCRF",
        "graph_labelling", "graph_marginals", "word_shape",
    ),
    "hinge._native": ("num_threads", "set_num_threads"),
    "hinge.config": ("config_context", "get_config", "set_config"),
    "hinge.environment": ("show_versions",),
    "hinge.explain.predictive_check": ("predictive_check",),
}  # fmt: skip

__getattr__, __dir__, __all__ = lazy_names(__name__, _PUBLIC, ("__version__", *NAMESPACES))
