"""Gradient boosting over blocks: the same trees, bit for bit, as on the table in memory with the same bins.

A round quantises the gradients of every block to integers, in units that all blocks share. The histograms of a tree are then
integers, and so are their sums over blocks; one pass over the coded blocks adds up the histograms of all nodes that may be split
next (boost_states.py has the state of a block).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from hinge._native import core
from hinge.blocks.checkpoint import Checkpoint, digest
from hinge.blocks.exact import ExactSum
from hinge.blocks.passes import Passes
from hinge.blocks.resident import Resident
from hinge.models.blocks.boost_states import (
    EVERY_PASS,
    TARGETS,
    Context,
    Counter,
    Grown,
    Request,
    add,
    begin,
    code_split,
    count,
    filed_arrays,
    joined,
    replay,
    with_held,
)
from hinge.models.blocks.trees import Found, Reader, TargetFacts, find_layout, read_features, target_facts
from hinge.models.callbacks import iterations
from hinge.models.trees.arrays import Trees
from hinge.models.trees.boosting_history import History
from hinge.models.trees.boosting_loss import EXACT_ROWS, BoostedLoss, Leaves
from hinge.models.trees.boosting_options import boosting_options
from hinge.models.trees.inputs import INT32
from hinge.models.trees.limits import feature_count
from hinge.problem.losses import Squared
from hinge.problem.losses.likelihood import LogLink

IN_MEMORY = 0.5  # share of the memory limit that coded blocks may use
STATE_SHARE = 1 / 32  # share for the codes of one block, three of which are in memory; smaller blocks are joined


class BlockHistory(History):
    """Losses by round, from sums over blocks."""

    has_out_of_bag = False

    def __init__(self, estimator: Any, loss: BoostedLoss, watch: Any, sums: LossSums) -> None:
        self.sums = sums
        super().__init__(estimator, loss, watch, None)

    def _begin(self, continued: bool) -> None:
        pass

    def _follow(self, grown: list[dict[str, np.ndarray]]) -> None:
        pass

    def _validation_loss(self) -> float:
        return self.unit * self.sums.held

    def _record(self, y: Any, weight: Any) -> None:
        self.train.append(self.unit * self.sums.train)


@dataclass
class LossSums:
    """Mean losses of the training rows and of the validation rows."""

    weights: tuple[float, float]
    train: float = 0.0
    held: float = 0.0

    def take(self, train: ExactSum, held: ExactSum) -> None:
        """Set the losses from the sums of one round."""
        self.train = float(train) / self.weights[0]
        self.held = float(held) / self.weights[1] if self.weights[1] > 0 else 0.0


def start_of(loss: BoostedLoss, facts: TargetFacts) -> np.ndarray:
    """The best constant, from sums over the targets."""
    if facts.labels is not None:
        k = len(facts.labels.values)
        y = np.arange(k, dtype=np.float64) if loss.outputs > 1 else np.array([-1.0, 1.0])
        return loss.start(y, facts.labels.weights)
    return loss.start(np.array([facts.mean]), None)


def refuse(estimator: Any, loss: BoostedLoss) -> None:
    """Raise for options that need all rows in memory."""
    name = type(estimator).__name__
    if loss.leaves is Leaves.SEARCH:
        raise ValueError(
            f"{name} over blocks needs a loss whose leaves are sums: squared_error, poisson, gamma, log_loss, exponential or "
            f"a Tweedie loss; {type(loss.definition).__name__} takes medians or searches within leaves, for data in memory."
        )
    mean_based = loss.definition.target.is_classes or isinstance(loss.definition, Squared | LogLink)
    if not mean_based:
        raise ValueError(
            f"{name} over blocks starts at the mean of the targets, which {type(loss.definition).__name__} does not; use "
            "squared_error, poisson, gamma or a Tweedie loss."
        )
    if estimator.init is not None and not isinstance(estimator.init, str):
        raise ValueError(f"{name}(init=…) needs all rows in memory; over blocks use init=None or init='zero'.")
    if estimator.warm_start and getattr(estimator, "_grown", None):
        raise ValueError(f"{name}(warm_start=True) cannot go on over blocks; fit it anew.")
    if (
        not (isinstance(estimator.scoring, str) and estimator.scoring == "loss")
        and estimator.early_stopping is not False
    ):
        raise ValueError(f'{name}(scoring=…) needs all rows in memory; over blocks use scoring="loss".')


def fit_boosting(estimator: Any, passes: Passes) -> None:
    """Targets, bins and codes in three passes over the source; then rounds over the coded blocks."""
    classify = is_classifier(estimator)
    facts = target_facts(passes, classify, getattr(estimator, "class_weight", None))
    known = facts.labels.values if facts.labels is not None else np.array([facts.mean])
    _, loss = estimator._targets(known)
    estimator._loss = loss
    refuse(estimator, loss)
    reader = Reader(estimator, read_features(estimator, passes), estimator._code_more)
    seed = int(check_random_state(estimator.random_state).randint(INT32))
    layout = find_layout(passes, reader, facts, estimator.max_bins, seed)

    stop = estimator.early_stopping
    stop = estimator._stops_by_default(facts.rows) if isinstance(stop, str) else bool(stop)
    estimator.do_early_stopping_ = stop
    held = _held_share(estimator, facts.rows) if stop else 0.0
    source = passes.source
    allowed = IN_MEMORY * source.memory_allowed
    filed = filed_arrays(facts.rows, source.n_features, loss.outputs, facts.weights.given, allowed)
    states = Resident(passes, code_split, reader, facts, layout, held, seed, filed=filed)
    states.regroup(int(STATE_SHARE * source.memory_allowed / source.n_features), joined)
    found: Found = states.found
    n = found.rows.total
    if n == 0:
        raise ValueError("No rows are left to train on; lower validation_fraction.")
    exact = n < EXACT_ROWS if estimator.quantize == "auto" else not estimator.quantize
    zero = np.zeros(loss.outputs)
    context = Context(
        found.complete(layout), loss, start_of(loss, facts) if estimator.init is None else zero, exact,
        facts.weights.counts, facts.weights.given, float(estimator.subsample),
    )  # fmt: skip
    with iterations(estimator, None, None, estimator.rounds) as report:
        _boost(estimator, states, context, found, facts, n, seed, stop, report, passes.checkpoint)
    passes.reading.coded_passes, passes.reading.coded_bytes = states.passes, states.bytes


def _held_share(estimator: Any, rows: int) -> float:
    """The share of the validation rows."""
    share = estimator.validation_fraction
    return float(share) if isinstance(share, float) else float(share) / rows


def _boost(
    estimator: Any, states: Resident, context: Context, found: Found, facts: TargetFacts, n: int, seed: int, stop: bool,
    report: Any, checkpoint: Checkpoint | None,
) -> None:  # fmt: skip
    d, loss = estimator.n_features_in_, context.loss
    seeds = [(seed + 7919 * k) % 2**63 for k in range(estimator.rounds + 1)]
    weight, held_weight, train, held, extents = states.visit(
        begin, with_held("y", "weight"), context, found.rows.firsts(), seeds[0], changes=True
    )
    weights = facts.weights._replace(total=float(weight))
    options, features = boosting_options(estimator, d, n, loss, weights), feature_count(estimator.max_features, d) / d
    estimator.baseline_, estimator.init_, estimator._grown = context.baseline, None, []
    sums = LossSums((float(weight), float(held_weight)))
    sums.take(train, held)
    history = BlockHistory(estimator, loss, True if stop and sums.weights[1] > 0 else None, sums)
    all_rows = float(weight) if context.exact and context.counts else float(n)

    def grower(output: int, now: dict[str, Any]) -> Any:
        return core.BlockGrowth(
            context.layout.native, options, now, loss.outputs, output, context.exact, weights.given, features, all_rows
        )

    replayed: list[Grown] = []
    for round_ in range(estimator.rounds):
        key = digest("round", round_, seeds[round_], options)
        known: bool = False
        kept: Any = None
        if checkpoint is not None:
            known, kept = checkpoint.recall(key)
        if not known:
            if replayed:
                states.visit(replay, with_held(*TARGETS, "codes"), context, replayed, changes=True)
                replayed = []
            kept = _one_round(
                states, context, round_, seeds, extents.values, grower, estimator.learning_rate, history.records
            )
            if checkpoint is not None:
                checkpoint.record(key, kept)
        grown, added, train, held, following = kept
        if known:
            replayed.append(added)
        extents = following
        estimator._grown += grown
        sums.take(train, held)
        if states.progress:
            print(
                f"\rround {round_ + 1} of {estimator.rounds}, {states.passes} passes over codes",
                end="",
                file=sys.stderr,
            )
        if history.stop(grown, round_, None, None) or (report and report(None)):
            break
    if states.progress:
        print(file=sys.stderr)
    estimator.trees_ = Trees.stack(estimator._grown, loss.outputs, additive=True)
    estimator.n_iter_ = len(estimator._grown) // loss.outputs
    history.keep()
    if not estimator.warm_start:
        estimator._grown = []


def _one_round(
    states: Resident, context: Context, number: int, seeds: list[int], extents: np.ndarray, grower: Any, rate: float,
    records: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """Grow a tree for every output and add them to the scores; returns the losses, and the extents of the next gradients."""
    seed, log_odds = seeds[number], context.loss.logistic or context.outputs > 1
    growths = [grower(output, context.round(seed, extents)) for output in range(context.outputs)]
    needs: tuple[str, ...] = (*EVERY_PASS, *TARGETS)
    followed = [0] * context.outputs
    while any(not growth.done for growth in growths):
        requests = [Request(k, *growth.wanted()) for k, growth in enumerate(growths) if not growth.done]
        parameters = context, seed, extents, requests
        totals = states.visit(count, needs, *parameters, start=partial(Counter, *parameters))
        for request, (cells, rest) in zip(requests, totals.arrays):
            growths[request.output].supply(cells, rest)
            followed[request.output] = len(request.route["left"])
        needs = EVERY_PASS
    finished = [growth.finish(log_odds, rate) for growth in growths]
    added = Grown(number, seed, [(k, route, values) for k, (_, route, values) in enumerate(finished)])
    at_ends = all(len(route["left"]) == n for n, (_, route, _) in zip(followed, finished))
    needs = (*with_held(*TARGETS), "nodes", "held.codes", *(() if at_ends else ("codes",)))
    return (
        [tree for tree, _, _ in finished],
        added,
        *states.visit(add, needs, context, added, seeds[number + 1], records, changes=True),
    )
