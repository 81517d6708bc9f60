"""hinge's multiclass and structured models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.harness import Contender, Problem
from benchmarks.judges import ChainWeights
from benchmarks.libraries import HOME
from benchmarks.libraries._common import estimator
from benchmarks.libraries.hinge._public import named, public

CHAIN_GAPS = (1.0, 1e-1, 1e-2, 1e-3, 1e-9)  # relative duality gaps


def chain_weights(model: Any) -> ChainWeights:
    state = model.coef_.toarray() if sp.issparse(model.coef_) else np.asarray(model.coef_)
    rows = {str(attribute): i for i, attribute in enumerate(model.attributes_)}
    return ChainWeights(rows, [str(label) for label in model.classes_], state, np.asarray(model.transitions_))


def chain_crf(problem: Problem) -> Iterator[Contender]:
    make = public("ChainCRF")

    def construct(p: Problem, tol: float) -> Any:
        # Its objective is the mean over sequences, so λ becomes λ/n.
        return make(alpha=p.params["l2"] / len(p.X), max_iter=p.params["iterations"], tol=tol)

    yield estimator(HOME, "ChainCRF", construct, ladder=CHAIN_GAPS, answer=chain_weights)


OFFERS = {
    "chain_crf": chain_crf,
    "multiclass_svm": named("MulticlassSVM", lambda p: {"C": p.params["C"], "fit_intercept": False}),
    "one_vs_rest_svm": named(
        "LinearSVC", lambda p: {"C": p.params["C"], "loss": p.params["loss"], "fit_intercept": False}
    ),
}
