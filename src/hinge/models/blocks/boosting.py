"""Gradient boosting over blocks: the same trees, bit for bit, as on the table in memory with the same bins.

A round rounds the gradients of every block to integers, with units that all blocks share. The histograms of a tree are
integers, and so are their sums over blocks; a pass over the coded blocks counts all nodes that may be split next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from hinge._cached import cached_property
from hinge._native import core
from hinge.blocks.block import Block
from hinge.blocks.checkpoint import Checkpoint, digest
from hinge.blocks.exact import ExactSum
from hinge.blocks.executors import Cluster
from hinge.blocks.passes import Passes
from hinge.blocks.resident import Resident
from hinge.models.blocks.trees import (
    Coded,
    Counts,
    Found,
    Layout,
    Reader,
    TargetFacts,
    code,
    find_layout,
    read_features,
    target_facts,
)
from hinge.models.callbacks import iterations
from hinge.models.trees.arrays import Trees
from hinge.models.trees.boosting_history import History
from hinge.models.trees.boosting_loss import EXACT_ROWS, BoostedLoss, Leaves
from hinge.models.trees.boosting_options import boosting_options
from hinge.models.trees.inputs import INT32
from hinge.models.trees.limits import feature_count
from hinge.problem.losses import Squared
from hinge.problem.losses.likelihood import LogLink
from hinge.problem.losses.native import native_loss

IN_MEMORY = 0.5  # share of the memory allowed that coded blocks may take up
STATE_SHARE = 1 / 16  # the same for one of them: blocks of few rows are joined
ROW_BYTES = 56  # of a row in memory besides its codes, for one score


@dataclass(frozen=True, eq=False)
class Context:
    """What is the same for all blocks and rounds."""

    layout: Layout
    loss: BoostedLoss
    baseline: np.ndarray
    exact: bool
    counts: bool
    share: float  # of the rows in every round
    keeps_codes: bool  # states travel: blocks keep what the native code holds too

    @property
    def outputs(self) -> int:
        """Scores of a row."""
        return self.loss.outputs

    @cached_property
    def native(self) -> Any:
        """The native loss; None for the softmax."""
        return native_loss(self.loss.definition) if self.outputs == 1 else None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "native"}

    def round(self, seed: int, extents: np.ndarray | None = None) -> dict[str, Any]:
        """A round as the native code takes it."""
        out = {
            "loss": self.native, "logistic": self.loss.logistic, "own_curvature": self.loss.leaves is Leaves.NEWTON,
            "bound": self.loss.bound, "seed": seed, "rows": self.share,
        }  # fmt: skip
        return out if extents is None else out | {"extents": extents}


@dataclass
class BoostState(Coded):
    """A coded block with its scores; ``held`` has the rows that early stopping watches."""

    version: int = -1  # rounds that are in the scores; −1 before the start
    first: int = 0  # number of the first row among all
    scores: np.ndarray | None = None
    held: BoostState | None = None

    def moving(self) -> dict[str, Any]:
        return {"version": self.version, "first": self.first, "scores": self.present_scores, "held": self.held}

    @property
    def present_scores(self) -> np.ndarray | None:
        """The scores (outputs × rows)."""
        native = vars(self).get("_native")
        return self.scores if native is None else native.scores()

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_native": None, "scores": self.present_scores}

    def native(self, context: Context) -> Any:
        """The block of the native code, made on first use."""
        made = vars(self).get("_native")
        if made is None:
            made = core.BoostBlock(
                context.layout.native, self.codes, self.first, self.y, self.weight, context.outputs, context.exact,
                context.exact and context.counts,
            )  # fmt: skip
            made.set_scores(self.scores)
            vars(self)["_native"] = made
            if not context.keeps_codes:
                self.codes = self.scores = None
        return made

    def loss(self, context: Context) -> ExactSum:
        """Σ w ℓ(y, score)."""
        scores = self.present_scores
        assert scores is not None
        values = context.loss.definition.value(self.y, scores.T if context.outputs > 1 else scores[0])
        return ExactSum.of(values if self.weight is None else self.weight * values)


def code_split(
    block: Block, reader: Reader, facts: TargetFacts, layout: Layout, held_share: float, seed: int
) -> tuple[BoostState | None, Found]:
    """A block as codes, without the rows that early stopping watches: those are drawn by their numbers."""
    coded, found = code(block, reader, facts, layout)
    if coded is None:
        return None, found
    state = BoostState(coded.key, coded.codes, coded.y, coded.weight)
    if held_share > 0:
        out = core.row_draws(seed, facts.firsts[block.key], len(coded.y)) < held_share
        state, state.held = _rows(coded, ~out), _rows(coded, out)
        found = Found(found.missing, found.bins, Counts({block.key: int((~out).sum())}))
    return state, found


def _rows(coded: Coded, rows: np.ndarray) -> BoostState:
    weight = None if coded.weight is None else coded.weight[rows]
    return BoostState(coded.key, np.ascontiguousarray(coded.codes[:, rows]), coded.y[rows], weight)


def joined(states: list[BoostState]) -> BoostState:
    """The rows of consecutive blocks as one, before the first round."""
    weight = None if states[0].weight is None else np.concatenate([s.weight for s in states])
    codes = np.concatenate([s.codes for s in states], axis=1)
    out = BoostState(states[0].key, codes, np.concatenate([s.y for s in states]), weight)
    if states[0].held is not None:
        out.held = joined([s.held for s in states if s.held is not None])
    return out


@dataclass(frozen=True, eq=False)
class Extents:
    """The largest |g| and h of every output, and the weight of the rows."""

    values: np.ndarray

    def merge(self, other: Extents) -> Extents:
        """Those of both sets of rows."""
        out = np.maximum(self.values, other.values)
        out[:, 2] = self.values[:, 2] + other.values[:, 2]
        return Extents(out)


def begin(state: BoostState, context: Context, firsts: dict[tuple[int, int], int], seed: int) -> tuple[Any, ...]:
    """Scores before the first round; the weights and losses of all rows and of those that are watched."""
    if state.version < 0:
        for part, first in ((state, firsts[state.key]), (state.held, 0)):
            if part is not None:
                part.first = first
                part.scores = np.repeat(context.baseline[:, None], len(part.y), axis=1)
                part.version = 0
    weights = [_weight(state), ExactSum() if state.held is None else _weight(state.held)]
    return (*weights, *_losses(state, context, True), _measured(state, context, seed))


def _weight(state: BoostState) -> ExactSum:
    return ExactSum.of(np.ones(len(state.y)) if state.weight is None else state.weight)


def _losses(state: BoostState, context: Context, records: bool) -> tuple[ExactSum, ExactSum]:
    train = state.loss(context) if records else ExactSum()
    return train, ExactSum() if state.held is None else state.held.loss(context)


def _measured(state: BoostState, context: Context, seed: int) -> Extents | None:
    return Extents(state.native(context).measure(context.round(seed))) if len(state.y) else None


@dataclass(frozen=True, eq=False)
class Sums:
    """Arrays of whole numbers; two sums are added in the place of the first, where it may be written."""

    arrays: list[tuple[np.ndarray, np.ndarray]]

    def merge(self, other: Sums) -> Sums:
        """The sums over both sets of rows."""
        pairs = zip(self.arrays, other.arrays)
        return Sums([tuple(map(_add_arrays, mine, more)) for mine, more in pairs])  # type: ignore[misc]


def _add_arrays(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    return np.add(one, two, out=one if one.flags.writeable else None)


def count(state: BoostState, context: Context, seed: int, extents: np.ndarray, requests: list[Any]) -> Sums | None:
    """The sums that the growing trees want: of every output the cells, and the totals of the nodes."""
    if not len(state.y):
        return None
    block, round_ = state.native(context), context.round(seed, extents)
    return Sums([block.count(round_, *request) for request in requests])


def add(
    state: BoostState, context: Context, number: int, seed: int, extents: np.ndarray, added: list[Any], next_seed: int,
    records: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """Adds the trees of a round to the scores, and measures what the next one needs."""
    _add(state, context, number, seed, extents, added)
    return (*_losses(state, context, records), _measured(state, context, next_seed))


def _add(state: BoostState, context: Context, number: int, seed: int, extents: np.ndarray, added: list[Any]) -> None:
    if state.version != number:  # a task that is computed again
        return
    for part in (state, state.held):
        if part is None:
            continue
        for output, route, values in added if len(part.y) else ():
            part.native(context).add(context.round(seed, extents), output, route, values)
        part.version += 1


def replay(state: BoostState, context: Context, rounds: list[tuple[Any, ...]]) -> None:
    """Adds the trees of rounds that a checkpoint has."""
    for number, seed, extents, added in rounds:
        _add(state, context, number, seed, extents, added)


class BlockHistory(History):
    """Losses by round, from sums over blocks."""

    sees_samples = False

    def __init__(self, estimator: Any, loss: BoostedLoss, watch: Any, sums: LossSums) -> None:
        self.sums = sums
        super().__init__(estimator, loss, watch, None)

    def _begin(self, continued: bool) -> None:
        pass

    def _follow(self, grown: list[dict[str, np.ndarray]]) -> None:
        pass

    def _judged(self) -> float:
        return self.unit * self.sums.held

    def _record(self, y: Any, weight: Any) -> None:
        self.train.append(self.unit * self.sums.train)


@dataclass
class LossSums:
    """Mean losses of the training rows and of those that are watched."""

    weights: tuple[float, float]
    train: float = 0.0
    held: float = 0.0

    def take(self, train: ExactSum, held: ExactSum) -> None:
        """The sums of one round."""
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
    """What needs all rows in memory."""
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
    row_bytes = source.n_features + 16 * (1 + (source.n_features - 1) // 16) + ROW_BYTES * loss.outputs
    stored = facts.rows * row_bytes > IN_MEMORY * source.memory_allowed
    states = Resident(passes, code_split, reader, facts, layout, held, seed, stored=stored)
    states.regroup(int(STATE_SHARE * source.memory_allowed / row_bytes), joined)
    found: Found = states.found
    n = found.rows.total
    if n == 0:
        raise ValueError("No rows are left to train on; lower validation_fraction.")
    exact = n < EXACT_ROWS if estimator.quantize == "auto" else not estimator.quantize
    zero = np.zeros(loss.outputs)
    context = Context(
        found.complete(layout), loss, start_of(loss, facts) if estimator.init is None else zero, exact,
        facts.weights.counts, float(estimator.subsample), stored or isinstance(source.executor, Cluster),
    )  # fmt: skip
    with iterations(estimator, None, None, estimator.rounds) as report:
        _boost(estimator, states, context, found, facts, n, seed, stop, report, passes.checkpoint)
    passes.reading.coded_passes, passes.reading.coded_bytes = states.passes, states.bytes


def _held_share(estimator: Any, rows: int) -> float:
    """The share of the rows that are watched."""
    share = estimator.validation_fraction
    return float(share) if isinstance(share, float) else float(share) / rows


def _boost(
    estimator: Any, states: Resident, context: Context, found: Found, facts: TargetFacts, n: int, seed: int, stop: bool,
    report: Any, checkpoint: Checkpoint | None,
) -> None:  # fmt: skip
    d, loss = estimator.n_features_in_, context.loss
    seeds = [(seed + 7919 * k) % 2**63 for k in range(estimator.rounds + 1)]
    weight, held_weight, train, held, extents = states.visit(
        begin, context, found.rows.firsts(), seeds[0], changes=True
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

    replayed: list[tuple[Any, ...]] = []
    for round_ in range(estimator.rounds):
        key = digest("round", round_, seeds[round_], options)
        known: bool = False
        kept: Any = None
        if checkpoint is not None:
            known, kept = checkpoint.recall(key)
        if not known:
            if replayed:
                states.visit(replay, context, replayed, changes=True)
                replayed = []
            kept = _one_round(
                states, context, round_, seeds, extents.values, grower, estimator.learning_rate, history.records
            )
            if checkpoint is not None:
                checkpoint.record(key, kept)
        grown, added, train, held, following = kept
        if known:
            replayed.append((round_, seeds[round_], extents.values, added))
        extents = following
        estimator._grown += grown
        sums.take(train, held)
        if history.stop(grown, round_, None, None) or (report and report(None)):
            break
    estimator.trees_ = Trees.stack(estimator._grown, loss.outputs, additive=True)
    estimator.n_iter_ = len(estimator._grown) // loss.outputs
    history.keep()
    if not estimator.warm_start:
        estimator._grown = []


def _one_round(
    states: Resident, context: Context, number: int, seeds: list[int], extents: np.ndarray, grower: Any, rate: float,
    records: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """Grows a tree for every output and adds them to the scores; with the losses after it, and the extents of the next."""
    seed, log_odds = seeds[number], context.loss.logistic or context.outputs > 1
    growths = [grower(output, context.round(seed, extents)) for output in range(context.outputs)]
    while any(not growth.done for growth in growths):
        open_ = [k for k, growth in enumerate(growths) if not growth.done]
        requests = [(k, *growths[k].wanted(), growths[k].cells) for k in open_]
        totals = states.visit(count, context, seed, extents, requests)
        for k, (cells, rest) in zip(open_, totals.arrays):
            growths[k].supply(cells, rest)
    finished = [growth.finish(log_odds, rate) for growth in growths]
    added = [(k, route, values) for k, (_, route, values) in enumerate(finished)]
    return (
        [tree for tree, _, _ in finished],
        added,
        *states.visit(add, context, number, seed, extents, added, seeds[number + 1], records, changes=True),
    )
