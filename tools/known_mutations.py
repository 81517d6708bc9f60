"""Changes of the program that were once made by hand and went unnoticed, each with the tests that notice it now.

``python tools/mutants.py --known`` makes them, one at a time.
"""

from __future__ import annotations

from typing import NamedTuple


class Known(NamedTuple):
    about: str
    file: str  # below src/hinge
    old: str  # occurs once in the file
    new: str
    tests: str  # a file or a test of tests/

    def apply(self, text: str) -> str:
        assert text.count(self.old) == 1, f"{self.file} has {text.count(self.old)} times {self.old!r}"
        return text.replace(self.old, self.new)


SUBGRADIENT, STOCHASTIC = "solvers/subgradient.py", "solvers/stochastic.py"
ITERATES = "theory/test_iterates.py"
PEGASOS, SGD, PROJECTED, PATIENCE = (
    f"{ITERATES}::{name}"
    for name in (
        "test_pegasos", "test_sgd", "test_projected_gradient", "test_early_stopping_waits_exactly_as_long_as_its_patience",
    )
)  # fmt: skip
GROUPS = "contracts/test_penalties.py::test_groups_count_by_the_root_of_their_size"
WALD = "models/glm/test_glm.py::test_likelihood_ratio_and_wald_tests"
ENSEMBLES = "theory/test_ensemble_formulas.py"
SAMME, MARGINS = f"{ENSEMBLES}::test_samme_round_by_round", f"{ENSEMBLES}::test_margins_from_the_votes"
SAMPLE = f"{ENSEMBLES}::test_anyboost_fits_members_to_a_sample_of_the_rows"
LEDOIT_WOLF = "theory/test_generative.py::test_the_share_of_ledoit_and_wolf"
MULTICLASS = "theory/test_multiclass.py"
MISTAKES = "theory/test_linear.py::TestPerceptron::test_mistakes_stay_below_the_bound"
ADABOOST = "models/trees/adaboost.py"
POWER_LAW = "explain/diagnosis/power_law.py"

KNOWN = (
    Known("step of Pegasos", SUBGRADIENT, "eta = 1.0 / (strength * t)", "eta = 1.0 / (strength * (t + 1))", PEGASOS),
    Known("step of Pegasos's bias", SUBGRADIENT, "np.sum(cu) / np.sqrt(t)", "np.sum(cu) / t", PEGASOS),
    Known("average of Pegasos", SUBGRADIENT, "mean += (2.0 / (t + 1))", "mean += (1.0 / t)", PEGASOS),
    Known("dual average of Pegasos", SUBGRADIENT, "met[rows] += t * u", "met[rows] += u", PEGASOS),
    Known("ball of Pegasos", SUBGRADIENT, "np.sqrt(2.0 * max(best.value", "np.sqrt(max(best.value", PEGASOS),
    Known("momentum of the bias", STOCHASTIC, "gb + sgd.momentum * (b - before[1])", "gb", SGD),
    Known("momentum of the weights", STOCHASTIC, "gw + sgd.momentum * (w - before[0])", "gw", SGD),
    Known(
        "decay of projected steps", "solvers/projected_gradient.py",
        "x - first / np.sqrt(t) * g", "x - first / t * g", PROJECTED,
    ),
    Known(
        "average of projected steps", "solvers/projected_gradient.py",
        "mean += (2.0 / (t + 1))", "mean += (1.0 / t)", PROJECTED,
    ),
    Known(
        "patience, one too many", "solvers/stopping.py",
        "self._waited >= self._rule.patience", "self._waited > self._rule.patience", PATIENCE,
    ),
    Known(
        "patience, one too few", "solvers/stopping.py",
        "self._waited >= self._rule.patience", "self._waited + 1 >= self._rule.patience", PATIENCE,
    ),
    Known(
        "group weights", "problem/penalties/norms.py",
        "np.sqrt(sizes) if self.weights", "np.ones_like(sizes) if self.weights", GROUPS,
    ),
    Known(
        "group weights without the root", "problem/penalties/norms.py",
        "np.sqrt(sizes) if self.weights", "sizes if self.weights", GROUPS,
    ),
    Known("χ² for F", "models/glm/inference.py", "if residual_dof is None:\n        return Significance(statistic, (dof,)",
          "if True:\n        return Significance(statistic, (dof,)", WALD),
    Known(
        "F of Wald's test, not divided by the degrees of freedom", "models/glm/inference.py",
        "scipy.stats.f.sf(statistic / dof, dof, residual_dof)", "scipy.stats.f.sf(statistic, dof, residual_dof)", WALD,
    ),
    Known(
        "support-vector bound", "explain/guarantees.py",
        '"support vectors", vectors / total', '"support vectors", vectors / (2 * total)', "theory/test_trust.py::TestGuarantees::test_support_vectors_bound_leave_one_out",
    ),
    Known(
        "normalised conformal scores", "models/conformal/intervals.py",
        "self.scores_ / self._scale(held)", "self.scores_ * self._scale(held)", "models/conformal/test_conformal.py",
    ),
    Known(
        "normalised conformal widths", "models/conformal/intervals.py",
        'q * (self._scale(X) if self.method == "normalized" else 1.0)', "q", "models/conformal/test_conformal.py",
    ),
    Known(
        "weights in temperature scaling", "models/calibration/classifier.py",
        "float(weight @ (np.sum(softmax", "float(np.ones_like(weight) @ (np.sum(softmax",
        "models/calibration/test_calibration.py",
    ),
    Known("log(k − 1) of SAMME", ADABOOST, " + np.log(max(k - 1.0, 1.0))", "", SAMME),
    Known("log k for log(k − 1)", ADABOOST, "np.log(max(k - 1.0, 1.0))", "np.log(max(k, 1.0))", SAMME),
    Known("margins of AdaBoost, two classes", ADABOOST, "2.0 * s, -2.0 * s) / total", "s, -s) / total", MARGINS),
    Known("margins of AdaBoost, many classes", ADABOOST, "(right - s.max(axis=1)) / total", "right / total", MARGINS),
    Known("unit of AdaBoost's margins", ADABOOST, "np.sum(np.abs(self.estimator_weights_))",
          "len(self.estimator_weights_)", MARGINS),
    Known(
        "subsample of AnyBoost", "models/trees/anyboost.py",
        "rng.random(n) < subsample) if subsample < 1 else", "rng.random(n) < 1.0) if subsample < 1 else", SAMPLE,
    ),
    Known(
        "subsample of AnyBoost, the rest", "models/trees/anyboost.py",
        "rng.random(n) < subsample", "rng.random(n) < 1.0 - subsample", SAMPLE,
    ),
    Known(
        "geometric means of pruning", "models/trees/pruning.py",
        "np.sqrt(alphas[:-1] * alphas[1:])", "0.5 * (alphas[:-1] + alphas[1:])", f"{ENSEMBLES}::test_alphas_tried_by_pruning_are_geometric_means",
    ),
    Known(
        "margin query by probabilities", "select/active.py",
        "    ranked = np.sort(P, axis=1)\n    return ranked[:, -2] - ranked[:, -1]",
        "    ranked = np.sort(P, axis=1)\n    return -ranked[:, -1]", "theory/test_active.py",
    ),
    Known(
        "margin query by scores", "select/active.py",
        "ranked = np.sort(scores, axis=1)\n        return ranked[:, -2] - ranked[:, -1]",
        "ranked = np.sort(scores, axis=1)\n        return -ranked[:, -1]", "theory/test_active.py::test_the_margin_of_several_classes_is_first_less_second",
    ),
    Known(
        "δ of Ledoit and Wolf", "models/generative/discriminant.py",
        "delta = square - d * mu**2", "delta = square", LEDOIT_WOLF,
    ),
    Known(
        "b of Ledoit and Wolf", "models/generative/discriminant.py",
        "axis=1) ** 2) / n - square) / n", "axis=1) ** 2) / n) / n", LEDOIT_WOLF,
    ),
    Known(
        "ties of one against one", "models/multiclass/one_vs_one.py",
        'return votes + sums / (3.0 * (1.0 + np.abs(sums))) if self.vote == "majority"',
        'return votes if self.vote == "majority"', MULTICLASS,
    ),
    Known(
        "ties of one against one, as a whole vote", "models/multiclass/one_vs_one.py",
        'return votes + sums / (3.0 * (1.0 + np.abs(sums))) if self.vote == "majority"',
        'return votes + sums if self.vote == "majority"', MULTICLASS,
    ),
    Known(
        "ties of SVC", "models/kernel/svc_multiclass.py",
        "(votes + sums / (3.0 * (np.abs(sums) + 1.0))).T", "votes.T", "models/kernel/test_kernel_machines.py",
    ),
    Known(
        "tanh of error-correcting codes", "models/multiclass/codes.py",
        "-(np.tanh(scores) @ signs.T)", "-(scores @ signs.T)", MULTICLASS,
    ),
    Known(
        "end weights of the power law", POWER_LAW,
        "spread = spread * np.sqrt(sizes[-1] / sizes)", "spread = spread * 1.0", "explain/test_curves.py",
    ),
    Known(
        "end weights of the power law, upside down", POWER_LAW,
        "np.sqrt(sizes[-1] / sizes)", "np.sqrt(sizes / sizes[-1])", "explain/test_curves.py",
    ),
    Known(
        "buckets (a, b]", "features/buckets.py", 'side="right") for j, e', 'side="left") for j, e',
        "theory/test_features.py::test_an_edge_belongs_to_the_bucket_on_its_right",
    ),
    Known(
        "radius of the perceptron with a bias", "models/linear/perceptron_run.py",
        "np.max(np.asarray(squares, dtype=np.float64)) + ones", "np.max(np.asarray(squares, dtype=np.float64))",
        MISTAKES,
    ),
    Known(
        "bias in the perceptron's norm", "models/linear/perceptron_run.py",
        "walk.w @ walk.w + ones * walk.b**2", "walk.w @ walk.w", MISTAKES,
    ),
    Known(
        "weights in the out-of-bag accuracy", "models/trees/out_of_bag.py",
        "np.average(right, weights=weight)", "np.average(right)", ENSEMBLES,
    ),
    Known(
        "weights in the out-of-bag R²", "models/trees/out_of_bag.py",
        "r2_score(y, predicted, sample_weight=weight)", "r2_score(y, predicted)", ENSEMBLES,
    ),
)  # fmt: skip
