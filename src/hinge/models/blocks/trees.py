"""Tables for trees over blocks: targets, categories, bins, and the blocks as codes of one byte per value.

The bins equal those of the table in memory, since their edges are computed from the same rows. The passes are: one over the targets
(numbers of rows, labels, sums), one for the categories, if there are any, one for the sample that the edges are computed from, and
one that codes all blocks.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from hinge._cached import cached_property
from hinge._native import core
from hinge.blocks.block import Block
from hinge.blocks.exact import ExactSum
from hinge.blocks.executors import Cluster
from hinge.blocks.passes import Passes
from hinge.blocks.resident import ArrayFile, SpoolFiles
from hinge.blocks.survey import UNORDERED, Labels, check_target
from hinge.models.blocks.fit import adopt_names
from hinge.models.blocks.predict import nameless
from hinge.models.class_weights import balanced_factors
from hinge.models.trees.boosting_options import WeightFacts
from hinge.models.trees.inputs import Coder, frame_values, predict_table, present
from hinge.tables.frames import as_frame, chosen_columns

SAMPLE = 200_000  # rows that the edges of bins are computed from, as in memory
SAMPLE_SHARE = 0.25  # share of the memory limit for these rows

# ------------------------------------------------------------------------------------------------------------------- targets


@dataclass(frozen=True, eq=False)
class Counts:
    """Numbers by key, for all blocks."""

    numbers: dict[tuple[int, int], int]

    def merge(self, other: Counts) -> Counts:
        """Those of both sets of blocks."""
        return Counts({**self.numbers, **other.numbers})

    def firsts(self) -> dict[tuple[int, int], int]:
        """The sum of the numbers before every block."""
        total, out = 0, {}
        for key in sorted(self.numbers):
            out[key] = total
            total += self.numbers[key]
        return out

    @property
    def total(self) -> int:
        """Their sum."""
        return sum(self.numbers.values())


@dataclass(frozen=True, eq=False)
class LabelSums:
    """By label: rows, rows with positive weight, and the sum of the weights."""

    sums: dict[Any, tuple[int, int, ExactSum]]

    def merge(self, other: LabelSums) -> LabelSums:
        """Those of both sets of rows."""
        sums = dict(self.sums)
        for label, (rows, live, weight) in other.sums.items():
            mine = sums.get(label, (0, 0, ExactSum()))
            sums[label] = (mine[0] + rows, mine[1] + live, mine[2].merge(weight))
        return LabelSums(sums)


class Targets(NamedTuple):
    """The result of a pass over the targets. Rows of weight zero are left out, as in memory."""

    live: Counts
    labels: LabelSums | None
    weight: ExactSum
    moment: ExactSum  # Σ w y
    fractions: int  # blocks with weights that are not integers
    weighted: int  # blocks that have weights


def live_rows(block: Block) -> Any:
    """The rows whose weight is above zero."""
    if block.weight is None or block.weight.all():
        return slice(None)
    return np.flatnonzero(block.weight)


def targets(block: Block, classify: bool) -> Targets:
    """The statistic of the first pass."""
    y = check_target(block, classify)
    if y.ndim != 1:
        raise ValueError("Trees over blocks take one target; fit one model for each.")
    rows = live_rows(block)
    weight = np.ones(block.rows) if block.weight is None else block.weight
    labels = None
    if classify:
        values, codes = np.unique(y, return_inverse=True)
        every, live = np.bincount(codes), np.bincount(codes[rows], minlength=len(values))
        sums = [ExactSum.of(weight[codes == k]) for k in range(len(values))]
        labels = LabelSums({value: (int(every[k]), int(live[k]), sums[k]) for k, value in enumerate(values)})
    moment = ExactSum() if classify else ExactSum.of(weight * y)
    fractions = int(bool(np.any(weight != np.floor(weight))))
    count = Counts({block.key: len(weight[rows])})
    return Targets(count, labels, ExactSum.of(weight), moment, fractions, int(block.weight is not None))


@dataclass(frozen=True, eq=False)
class TargetFacts:
    """Labels with their weights, and the totals that the limits of trees depend on."""

    rows: int
    firsts: dict[tuple[int, int], int]
    weights: WeightFacts
    mean: float  # of the targets of a regression
    labels: Labels | None  # of rows with positive weight
    factors: dict[Any, float] | None  # class weights

    def weight_of(self, block: Block, rows: Any) -> np.ndarray | None:
        """The weights of some rows, class weights included."""
        if not self.weights.given:
            return None
        weight = np.ones(block.rows) if block.weight is None else block.weight
        weight = weight[rows].astype(np.float64)
        if self.factors is not None:
            values, codes = np.unique(check_target(block, True)[rows], return_inverse=True)
            weight = weight * np.array([self.factors[value] for value in values.tolist()])[codes]
        return weight


def target_facts(passes: Passes, classify: bool, class_weight: Any) -> TargetFacts:
    """The first pass."""
    found: Targets = passes.total(targets, classify, only_targets=True)
    total = float(found.weight)
    if total <= 0 or not np.isfinite(total):
        raise ValueError("The sum of the weights must be above zero and finite; check the column named by weight=.")
    given, counts = found.weighted > 0, found.weighted > 0 and found.fractions == 0
    labels, factors = None, None
    if found.labels is not None:
        try:
            every = sorted(found.labels.sums)
        except (OverflowError, TypeError):
            raise ValueError(UNORDERED) from None
        sums = [found.labels.sums[value] for value in every]
        if class_weight is not None:
            factors = _class_factors(class_weight, every, np.array([float(s[2]) for s in sums]))
        scale = [1.0 if factors is None else factors[value] for value in every]
        kept = [k for k, s in enumerate(sums) if s[1] > 0]
        weights = np.array([float(sums[k][2]) * scale[k] for k in kept])
        labels = Labels(np.array([every[k] for k in kept]), weights)
        if factors is not None:
            total, counts = float(weights.sum()), found.fractions == 0 and all(float(f).is_integer() for f in scale)
            given = True
    facts = WeightFacts(total, given, given and counts and total < 2**53)
    mean = float(found.moment) / float(found.weight)
    return TargetFacts(found.live.total, found.live.firsts(), facts, mean, labels, factors)


def _class_factors(class_weight: Any, labels: list[Any], weights: np.ndarray) -> dict[Any, float]:
    if class_weight == "balanced":
        return dict(zip(labels, balanced_factors(weights).tolist()))
    from sklearn.utils.class_weight import compute_class_weight

    values = np.array(labels)
    return dict(zip(labels, compute_class_weight(class_weight, classes=values, y=values).tolist()))


# ------------------------------------------------------------------------------------------------------------------ features


class Reader:
    """Converts blocks to the inputs of trees: numbers with missing values, categories as codes, targets coded by ``target``."""

    def __init__(self, model: Any, coder: Coder, target: Callable[[np.ndarray], np.ndarray]) -> None:
        model = copy.copy(model)  # sent with every task, so keep it small
        for name in ("trees_", "_grown"):
            vars(model).pop(name, None)
        self.named, self.plain, self.coder, self.target = model, nameless(model), coder, target

    def table(self, block: Block) -> np.ndarray:
        """The features of a block; raises for infinite values."""
        if block.frame is not None:
            return predict_table(self.named, block.frame.to_native(), self.coder)
        return predict_table(self.plain, block.X, self.coder)


@dataclass(frozen=True, eq=False)
class Categories:
    """The categories of some columns, and their counts."""

    columns: list[Labels]

    def merge(self, other: Categories) -> Categories:
        """Those of both sets of rows."""
        return Categories([one.merge(two) for one, two in zip(self.columns, other.columns)])


def categories(block: Block, chosen: list[int]) -> Categories:
    """The statistic of the pass over categories."""
    found = []
    for j in chosen:
        if block.frame is not None:
            values = frame_values(block.frame, j)
        else:
            column = block.X[:, [j]]
            values = (column.toarray() if scipy.sparse.issparse(column) else column).ravel()
        names, counts = np.unique(values[present(values)], return_counts=True)
        found.append(Labels(names, counts.astype(np.float64)))
    return Categories(found)


def learn_categories(passes: Passes, categorical: Any) -> Coder:
    """The coder of the categorical columns; takes a pass if there are any."""
    source, coder = passes.source, Coder()
    head = next(source.blocks(), None)
    if head is None:
        return coder
    if head.frame is None and source.names is not None and not isinstance(categorical, str | None):
        named = np.asarray(categorical)
        if named.dtype.kind in "OU":  # the names of columns that hold numbers
            categorical = [list(source.names).index(name) if name in source.names else name for name in named.tolist()]
    native = head.X if head.frame is None else head.frame.to_native()
    chosen = chosen_columns(native, None if head.frame is None else as_frame(native), categorical)
    if chosen:
        for j, labels in zip(chosen, passes.total(categories, chosen).columns):
            coder.learn_counts(j, labels.values, labels.weights.astype(np.int64))
    return coder


@dataclass(frozen=True, eq=False)
class Layout:
    """The bins of all features as arrays that can be sent to workers; ``native`` is the compiled form."""

    low: np.ndarray
    high: np.ndarray
    counts: np.ndarray
    bins: np.ndarray
    categorical: np.ndarray
    missing: np.ndarray

    @cached_property
    def native(self) -> Any:
        """The layout of the native code."""
        return core.tree_layout(self.low, self.high, self.counts, self.bins, self.categorical, self.missing)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "native"}


class Piled(NamedTuple):
    """Rows of several blocks, in order, with their columns divided into a few sets; and their weights."""

    parts: list[tuple[list[Any], np.ndarray | None]]

    def merge(self, other: Piled) -> Piled:
        """Those of both."""
        return Piled(self.parts + other.parts)

    def columns(self, k: int) -> np.ndarray:
        """One set of columns, of all rows."""
        held = [sets[k] for sets, _ in self.parts]
        return np.ascontiguousarray(np.concatenate([x.read() if isinstance(x, ArrayFile) else x for x in held]))


def sampled(
    block: Block, reader: Reader, facts: TargetFacts, rows: np.ndarray, cuts: list[slice], files: SpoolFiles | None
) -> Piled | None:
    """The rows of a block that the edges are computed from, in memory or in a file."""
    live = live_rows(block)
    here = np.arange(block.rows)[live]
    first = facts.firsts[block.key]
    chosen = here[
        rows[np.searchsorted(rows, first) : np.searchsorted(rows, first + len(here))].astype(np.int64) - first
    ]
    if not len(chosen):
        return None
    X = reader.table(block)[chosen]
    sets: list[Any] = [X[:, cut] for cut in cuts]
    if files is not None:
        sets = [ArrayFile.of(files["sample"], columns) for columns in sets]
    return Piled([(sets, facts.weight_of(block, chosen))])


def find_layout(passes: Passes, reader: Reader, facts: TargetFacts, max_bins: int, seed: int) -> Layout:
    """The bins, from the same rows as for the table in memory.

    Rows that exceed the memory limit go to files, and edges are computed for a few columns at a time; on a cluster a smaller sample
    is drawn instead.
    """
    source = passes.source
    d, allowed = source.n_features, SAMPLE_SHARE * source.memory_allowed
    rows = min(SAMPLE, facts.rows)
    most, cuts, files = SAMPLE, [slice(0, d)], None
    if isinstance(source.executor, Cluster):
        most = int(np.clip(allowed / (8 * d), 1000, SAMPLE))
    elif 8 * d * rows > allowed:
        width = int(np.clip(allowed / (16 * rows), 1, d))  # two copies of these columns are in memory
        cuts = [slice(j, min(j + width, d)) for j in range(0, d, width)]
        files = SpoolFiles()
    drawn = core.tree_sample(facts.rows, most, seed)
    piled: Piled = passes.total(sampled, reader, facts, drawn, cuts, files, keep=False)
    weight = np.concatenate([w for _, w in piled.parts]) if facts.weights.given else None
    flags = reader.coder.flags(d)
    found = [core.tree_features(piled.columns(k), weight, flags[cut], max_bins) for k, cut in enumerate(cuts)]
    low, high, counts = (np.concatenate(arrays) for arrays in zip(*found))
    return Layout(low, high, counts, np.maximum(counts, 1), flags, np.zeros(d, dtype=np.uint8))


# ---------------------------------------------------------------------------------------------------------------------- codes


@dataclass(frozen=True, eq=False)
class Found:
    """The features with missing values, the numbers of categories, and the rows of every block."""

    missing: np.ndarray
    bins: np.ndarray
    rows: Counts

    def merge(self, other: Found) -> Found:
        """Those of both sets of blocks."""
        missing, bins = np.maximum(self.missing, other.missing), np.maximum(self.bins, other.bins)
        return Found(missing, bins, self.rows.merge(other.rows))

    def complete(self, layout: Layout) -> Layout:
        """The layout for all blocks."""
        bins = np.where(layout.categorical != 0, self.bins, layout.bins).astype(np.int32)
        return replace(layout, bins=bins, missing=self.missing)


@dataclass
class Coded:
    """Codes (features × rows), targets and weights of the rows of a block."""

    key: tuple[int, int]
    codes: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None


def code(block: Block, reader: Reader, facts: TargetFacts, layout: Layout) -> tuple[Coded | None, Found]:
    """A coded block with its coded target, or None if all its rows have weight zero."""
    rows = live_rows(block)
    if not isinstance(rows, slice) and not len(rows):
        return None, Found(layout.missing, np.ones_like(layout.bins), Counts({}))
    codes, missing, bins = core.tree_codes(layout.native, np.ascontiguousarray(reader.table(block)[rows]))
    y = reader.target(check_target(block, facts.labels is not None)[rows])
    state = Coded(block.key, codes, y, facts.weight_of(block, rows))
    return state, Found(missing, bins, Counts({block.key: len(y)}))


def read_features(estimator: Any, passes: Passes) -> Coder:
    """Set the names of the features, and learn their categories."""
    adopt_names(estimator, passes.source)
    estimator._coder = learn_categories(passes, estimator.categorical_features)
    return estimator._coder
