"""hinge's multiclass and structured models."""

from __future__ import annotations

from benchmarks.libraries.hinge._public import named

OFFERS = {
    "chain_crf": named("ChainCRF", lambda p: {"l2": p.params["l2"], "max_iter": p.params["iterations"]}, (None,)),
    "multiclass_svm": named("MulticlassSVM", lambda p: {"C": p.params["C"], "fit_intercept": False}),
    "one_vs_rest_svm": named(
        "LinearSVC", lambda p: {"C": p.params["C"], "loss": p.params["loss"], "fit_intercept": False}
    ),
}
