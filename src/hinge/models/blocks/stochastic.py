"""Stochastic gradient descent over blocks: an epoch is one pass through the blocks in order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from hinge.blocks.block import Block
from hinge.blocks.passes import Passes
from hinge.blocks.problem import BlockProblem, View
from hinge.blocks.survey import SamplePlan, survey
from hinge.models.base import signs
from hinge.models.blocks.linear import StandIn
from hinge.models.linear.stochastic_base import CERTIFICATE_TOL, Stream
from hinge.problem.certificates.sums import Point, certificate_from_sums
from hinge.solvers.stochastic import rows_of


def fit_stochastic(estimator: Any, passes: Passes) -> None:
    """Run epochs until the progressive objective (each loss taken just before its update) stops falling."""
    if estimator.early_stopping:
        raise ValueError("early_stopping=True needs all rows in memory; over blocks leave it False.")
    source, classify = passes.source, is_classifier(estimator)
    found = passes.total(survey, source.n_features, classify, False, False, SamplePlan.of(source))
    stand_in = StandIn(found)
    views = _views(estimator, stand_in, classify)
    problems = [
        BlockProblem(passes, view, estimator.score_loss(), estimator._penalty(), source.n_features) for view in views
    ]
    estimator.n_features_in_ = source.n_features
    estimator._state = estimator._streams(len(views), source.n_features, None, None)
    rate = estimator._rate(problems[0].loss)
    options = estimator._options(problems[0].penalty, rows_of(stand_in.X))
    ended = _epochs(estimator, passes, problems, rate, options, found.rows)
    estimator.n_iter_ = max(estimator.n_iter_, 1)
    estimator._show(stand_in.X.dtype)
    certificates, constants = [], []
    for stream, problem in zip(estimator._state, problems):
        w, b = estimator._shown(stream)
        point = Point(w, b, *problem.zero())
        sums = problem.dual_sums(point)
        constants.append(sums.constant_risk)
        certificates.append(certificate_from_sums(problem, point, problem.dual_sums, tol=CERTIFICATE_TOL, first=sums))
    estimator._conclude(certificates, constants, ended, stacklevel=6)


def by_rows(block: Block) -> Any:
    """X stored by rows, since examples are visited one by one."""
    return rows_of(block.X)


def _views(estimator: Any, stand_in: StandIn, classify: bool) -> list[View]:
    """The mapping from blocks to examples: ±1 for two classes, one problem per class for more."""
    total = stand_in.survey.weight_sum
    if not classify:
        return [View(total, estimator.fit_intercept, encode=by_rows)]
    labels = stand_in.survey.labels
    assert labels is not None
    if len(labels.values) < 2:
        raise ValueError(
            f"{type(estimator).__name__} needs at least two classes; y has only one: {labels.values[0]!r}."
        )
    estimator.classes_ = labels.values
    factors = estimator._class_factors(stand_in.y, stand_in.weight)
    k = len(labels.values)
    own = [np.arange(k) == 1] if k == 2 else [np.arange(k) == j for j in range(k)]
    views = []
    for mine in own:
        mixed = None if factors is None else factors if k == 2 else np.where(mine, factors, 1.0)
        weight = total if mixed is None else float(labels.weights @ mixed)
        views.append(View(weight, estimator.fit_intercept, 1, labels.values, signs(mine), mixed, encode=by_rows))
    return views


def _epochs(
    estimator: Any, passes: Passes, problems: list[BlockProblem], rate: Any, options: dict[str, Any], rows: int
) -> bool:
    """Whether every stream met the stopping rule before ``max_iter``; sets ``n_iter_``."""
    active = list(range(len(problems)))
    best, idle = np.full(len(problems), np.inf), np.zeros(len(problems), dtype=int)
    estimator.n_iter_ = 0
    for _ in range(estimator.max_iter):
        losses = np.array([_penalty(estimator, j, problem) for j, problem in enumerate(problems)]) / 2.0
        for block in passes.each_block():
            for j in active:
                o = replace(problems[j].view.objective(block, problems[j].loss), penalty=problems[j].penalty)
                live = np.flatnonzero(o.c > 0)
                if not len(live):
                    continue
                stream: Stream = estimator._state[j]
                mean = o.weight_sum / rows  # scale by the mean weight over all blocks, not over this one
                piece = replace(o, c=o.c * o.weight_sum / (mean * len(live)))
                losses[j] += stream.epoch(piece, rate, options) * float(o.c.sum())
        estimator.n_iter_ += 1
        if estimator.tol is None:
            continue
        for j in list(active):
            losses[j] += _penalty(estimator, j, problems[j]) / 2.0
            idle[j] = idle[j] + 1 if losses[j] > best[j] - estimator.tol else 0
            best[j] = min(best[j], losses[j])
            if idle[j] >= estimator.n_iter_no_change:
                stream = estimator._state[j]
                if estimator.learning_rate != "adaptive" or stream.scale < 1e-6:
                    active.remove(j)
                else:
                    stream.scale, idle[j] = stream.scale / 5.0, 0
        if not active:
            return True
    return estimator.tol is None


def _penalty(estimator: Any, j: int, problem: BlockProblem) -> float:
    """The penalty of the weights of stream j: its mean over an epoch is taken from both ends."""
    return float(problem.penalty.value(estimator._state[j].w))
