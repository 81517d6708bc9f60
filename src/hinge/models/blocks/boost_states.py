"""The state of every block that boosting stores between passes, and the functions that visit it.

A state has the codes of its rows by groups of features (``codes``), the inputs of the gradients (``y``, ``weight``, ``scores``),
the rounded gradients of every row (``gradients``) and its current node (``nodes``). One pass over the codes both moves the rows
down the tree and adds the histograms of the requested nodes. Arrays of the validation rows of early stopping have the prefix
``held.``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hinge._cached import cached_property
from hinge._native import core
from hinge.blocks.block import Block
from hinge.blocks.exact import ExactSum
from hinge.blocks.resident import State
from hinge.models.blocks.trees import Counts, Found, Layout, Reader, TargetFacts, code
from hinge.models.trees.boosting_loss import BoostedLoss, Leaves
from hinge.problem.losses.native import native_loss

HELD = "held."
TARGETS = ("y", "weight", "scores")
EVERY_PASS = ("codes", "gradients", "nodes")
GROUP = 16  # features whose codes are stored together
FEW_NODES = 2**15  # node numbers that fit into uint16, whose highest bit marks rows outside the subsample


def with_held(*names: str) -> tuple[str, ...]:
    """Names of arrays, and those of the validation rows."""
    return *names, *(HELD + name for name in names)


def filed_arrays(rows: int, features: int, outputs: int, weighted: bool, allowed: float) -> frozenset[str]:
    """The arrays that exceed the memory limit and go to files: codes first, then targets and scores, then the rest."""
    every_pass = 6 * outputs
    targets = 8 * (1 + weighted + outputs)
    codes = GROUP * 2 * -(-features // (2 * GROUP))
    names: tuple[str, ...] = ()
    if rows * (every_pass + targets + codes) > allowed:
        names += ("codes",)
    if rows * (every_pass + targets) > allowed:
        names += TARGETS
    if rows * every_pass > allowed:
        names += ("gradients", "nodes")
    return frozenset(with_held(*names))


@dataclass(frozen=True, eq=False)
class Context:
    """Constants of all blocks and rounds."""

    layout: Layout
    loss: BoostedLoss
    baseline: np.ndarray
    exact: bool
    counts: bool
    weighted: bool
    share: float  # share of the rows in every round (subsample)

    @property
    def outputs(self) -> int:
        """Scores per row."""
        return self.loss.outputs

    @cached_property
    def native(self) -> Any:
        """The native loss; None for the softmax."""
        return native_loss(self.loss.definition) if self.outputs == 1 else None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "native"}

    def round(self, seed: int, extents: np.ndarray | None = None) -> dict[str, Any]:
        """The native options of a round."""
        out = {
            "loss": self.native, "logistic": self.loss.logistic, "own_curvature": self.loss.leaves is Leaves.NEWTON,
            "bound": self.loss.bound, "seed": seed, "rows": self.share,
        }  # fmt: skip
        return out if extents is None else out | {"extents": extents}


@dataclass
class BoostState(State):
    """A coded block with its scores."""

    version: int = -1  # rounds that the scores contain; −1 before the start
    rows: int = 0
    first: int = 0  # index of the first row in the table
    rounded: int | None = None  # the seed of the round that gradients and nodes belong to

    def __len__(self) -> int:
        return self.rows


def code_split(
    block: Block, reader: Reader, facts: TargetFacts, layout: Layout, held_share: float, seed: int
) -> tuple[BoostState | None, Found]:
    """Code a block and split off its validation rows, which are drawn by row number."""
    coded, found = code(block, reader, facts, layout)
    if coded is None:
        return None, found
    codes = core.tree_groups(layout.native, coded.codes)
    arrays = {"codes": codes, "y": coded.y, "weight": coded.weight}
    if held_share > 0:
        out = core.row_draws(seed, facts.firsts[block.key], len(coded.y)) < held_share
        arrays = _rows(arrays, ~out, "") | _rows(arrays, out, HELD)
        found = Found(found.missing, found.bins, Counts({block.key: int((~out).sum())}))
    return BoostState(block.key, arrays, rows=len(arrays["y"])), found


def _rows(arrays: dict[str, Any], rows: np.ndarray, prefix: str) -> dict[str, Any]:
    weight = arrays["weight"]
    return {
        prefix + "codes": np.ascontiguousarray(arrays["codes"][:, rows]), prefix + "y": arrays["y"][rows],
        prefix + "weight": None if weight is None else weight[rows],
    }  # fmt: skip


def joined(states: list[BoostState]) -> BoostState:
    """Join the rows of consecutive blocks, before the first round."""
    arrays = {}
    for name in states[0].arrays:
        parts = [state.get(name) for state in states]
        arrays[name] = None if parts[0] is None else np.concatenate(parts, axis=1 if name.endswith("codes") else 0)
    return BoostState(states[0].key, arrays, rows=sum(map(len, states)))


@dataclass(frozen=True, eq=False)
class Extents:
    """The largest |g| and h of every output, and the weight of the rows."""

    values: np.ndarray

    def merge(self, other: Extents) -> Extents:
        """Those of both sets of rows."""
        out = np.maximum(self.values, other.values)
        out[:, 2] = self.values[:, 2] + other.values[:, 2]
        return Extents(out)


def begin(
    state: BoostState, arrays: dict[str, Any], context: Context, firsts: dict[tuple[int, int], int], seed: int
) -> tuple[Any, ...]:
    """Set the initial scores; returns the weights and losses of the training rows and of the validation rows."""
    if state.version < 0:
        state.first, state.version = firsts[state.key], 0
    weights = []
    for prefix in ("", HELD):
        y, weight = arrays[prefix + "y"], arrays[prefix + "weight"]
        if y is None:
            weights.append(ExactSum())
            continue
        arrays[prefix + "scores"] = np.repeat(context.baseline[:, None], len(y), axis=1)
        state.put(prefix + "scores", arrays[prefix + "scores"])
        weights.append(ExactSum.of(np.ones(len(y)) if weight is None else weight))
    return (*weights, *_losses(arrays, context, True), _measured(arrays, context, seed))


def _losses(arrays: dict[str, Any], context: Context, records: bool) -> tuple[ExactSum, ExactSum]:
    held = arrays[HELD + "y"] is not None
    return (
        _loss(arrays, "", context) if records else ExactSum(),
        _loss(arrays, HELD, context) if held else ExactSum(),
    )


def _loss(arrays: dict[str, Any], prefix: str, context: Context) -> ExactSum:
    """Σ w ℓ(y, score)."""
    y, weight, scores = (arrays[prefix + name] for name in TARGETS)
    values = context.loss.definition.value(y, scores.T if context.outputs > 1 else scores[0])
    return ExactSum.of(values if weight is None else weight * values)


def _measured(arrays: dict[str, Any], context: Context, seed: int) -> Extents | None:
    y, weight, scores = (arrays[name] for name in TARGETS)
    return Extents(core.boost_extents(y, scores, weight, context.exact, context.round(seed))) if len(y) else None


@dataclass(frozen=True, eq=False)
class Sums:
    """Integer arrays; two sums are added in place into the first if that is writable."""

    arrays: list[tuple[np.ndarray, np.ndarray]]

    def merge(self, other: Sums) -> Sums:
        """The sums over both sets of rows."""
        pairs = zip(self.arrays, other.arrays)
        return Sums([tuple(map(_add_arrays, mine, more)) for mine, more in pairs])  # type: ignore[misc]


def _add_arrays(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    return np.add(one, two, out=one if one.flags.writeable else None)


@dataclass(frozen=True, eq=False)
class Request:
    """The nodes of the tree of an output whose histograms a pass adds up."""

    output: int
    route: dict[str, np.ndarray]
    wanted: np.ndarray
    full: np.ndarray


class Counter:
    """The sums of one pass over the blocks of this worker."""

    def __init__(self, context: Context, seed: int, extents: np.ndarray, requests: list[Request]) -> None:
        now = context.round(seed, extents)
        self.native = [
            core.BoostSums(
                context.layout.native, now, context.outputs, r.output, context.exact, context.weighted, r.wanted, r.full
            )
            for r in requests
        ]

    def result(self) -> Sums:
        """The histograms and totals of every tree."""
        return Sums([sums.sums() for sums in self.native])


def count(
    state: BoostState, arrays: dict[str, Any], counter: Counter, context: Context, seed: int, extents: np.ndarray,
    requests: list[Request],
) -> None:  # fmt: skip
    """Move the rows to the ends of their routes, and add up the histograms of the requested nodes."""
    if not len(state):
        return
    gradients, nodes = arrays["gradients"], arrays["nodes"]
    if state.rounded != seed:
        y, weight, scores = (state.get(name) for name in TARGETS)
        now = context.round(seed, extents)
        gradients = core.boost_gradients(y, scores, weight, context.exact, now, state.first)
        nodes = _start(context, seed, len(state), state.first)
        state.put("gradients", gradients)
    if nodes.dtype == np.uint16 and any(len(r.route["left"]) > FEW_NODES for r in requests):
        nodes = (nodes & 0x7FFF).astype(np.uint32) | (nodes.astype(np.uint32) >> 15 << 31)
    nodes = _writable(nodes)
    counts = state.get("weight") if context.exact and context.counts else None
    for sums, request in zip(counter.native, requests):
        sums.add(arrays["codes"], request.route, gradients, counts, nodes[request.output])
    state.put("nodes", nodes)
    state.rounded = seed


def _start(context: Context, seed: int, rows: int, first: int) -> np.ndarray:
    nodes = np.empty((context.outputs, rows), dtype=np.uint16)
    for row in nodes:
        core.boost_start(row, first, context.share, seed)
    return nodes


def _writable(array: np.ndarray) -> np.ndarray:
    return array if array.flags.writeable else array.copy()


@dataclass(frozen=True, eq=False)
class Grown:
    """The trees of a round: for every output its number, the route and the values of its nodes."""

    number: int
    seed: int
    trees: list[tuple[int, dict[str, np.ndarray], np.ndarray]]


def add(
    state: BoostState, arrays: dict[str, Any], context: Context, grown: Grown, next_seed: int, records: bool
) -> tuple[Any, ...]:
    """Add the trees of a round to the scores; returns the losses and the extents of the next gradients."""
    replay(state, arrays, context, [grown])
    return (*_losses(arrays, context, records), _measured(arrays, context, next_seed))


def replay(state: BoostState, arrays: dict[str, Any], context: Context, rounds: list[Grown]) -> None:
    """Add the trees of some rounds; rows that are not yet in a leaf of their route are moved there first."""
    for grown in rounds:
        if state.version != grown.number:  # a recomputed task: the scores contain this round
            continue
        if len(state):
            nodes = arrays.get("nodes") if state.rounded == grown.seed else None
            _add_trees(state, arrays, "", context, grown, nodes)
        if arrays[HELD + "y"] is not None and len(arrays[HELD + "y"]):
            _add_trees(state, arrays, HELD, context, grown, None)
        state.version += 1


def _add_trees(
    state: BoostState, arrays: dict[str, Any], prefix: str, context: Context, grown: Grown, nodes: np.ndarray | None
) -> None:
    scores = _writable(arrays[prefix + "scores"])
    codes = arrays.get(prefix + "codes")
    if nodes is None:
        codes = state.get(prefix + "codes") if codes is None else codes
        nodes = _start(context, grown.seed, scores.shape[1], state.first)
    for output, route, values in grown.trees:
        row = nodes[output]
        if len(route["left"]) > FEW_NODES and row.dtype == np.uint16:
            row = (row & 0x7FFF).astype(np.uint32)
        if codes is not None:
            row = _writable(row)
            core.boost_follow(context.layout.native, codes, route, row)
        core.boost_add(scores[output], row, values)
    arrays[prefix + "scores"] = scores
    state.put(prefix + "scores", scores)
