"""The content of a report as plain data, from which the page can be made at any time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hinge.tables.notes import Note


@dataclass(frozen=True)
class BoardRow:
    """One line of the comparison of models."""

    name: str
    what: str
    setting: str
    state: str
    score: float
    error: float
    explained: float
    fit_seconds: float
    predict_micros: float
    size: int
    certificate: str
    chosen: bool = False
    why: str = ""


@dataclass(frozen=True)
class Curve:
    """A learning curve: rows, and the scores on them and on held-out rows with standard errors."""

    rows: list[int]
    train: list[float]
    test: list[float]
    error: list[float]


@dataclass(frozen=True)
class Effect:
    """An estimate with an interval."""

    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Partial:
    """Partial dependence: the mean prediction as a function of one column."""

    column: str
    kind: str  # "number", "category", "date"
    places: list[Any]
    means: np.ndarray  # one line per output
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class WorstRow:
    """A row that was predicted badly: its number in the file, its target, its prediction, some of its values."""

    row: int
    truth: str
    predicted: str
    values: list[tuple[str, str]]


@dataclass(frozen=True)
class Explained:
    """Shapley values of the prediction of a row: (column, value, share), the largest first."""

    row: int
    what: str
    prediction: float
    mean: float
    shares: list[tuple[str, str, float]]


@dataclass(frozen=True)
class ColumnPicture:
    """The histogram of a column (by ``edges`` of numbers or ``labels`` of levels) and the mean target in every bin."""

    name: str
    edges: list[float]
    labels: list[str]
    counts: list[int]
    means: list[float]


@dataclass
class Evidence:
    """All measurements that a report shows."""

    title: str
    source: str
    target: str
    task: str
    metric: str
    classes: list[str]
    rows: int
    columns: list[dict[str, Any]]
    left_out: dict[str, str]
    notes: list[Note]
    board: list[BoardRow]
    chosen: str
    formula: str
    objective: str
    reason: str
    held_out: str  # how the rows of the score were held out
    y: np.ndarray
    prediction: np.ndarray
    score: float
    error: float
    trivial: float
    explained: float
    details: dict[str, float]
    train_rows: int
    sample_rows: int
    target_values: np.ndarray
    scored: str = "held out"  # the kind of rows that the score is computed on, in two or three words
    curve: Curve | None = None
    importances: list[Effect] = field(default_factory=list)
    words: list[Effect] = field(default_factory=list)
    coefficients: list[Effect] = field(default_factory=list)
    partials: list[Partial] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    certificate: str = ""
    convergence: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    sentences: list[tuple[str, str, str]] = field(default_factory=list)  # code, observation, remedy
    facts: list[str] = field(default_factory=list)
    command: str = ""
    seed: int = 0
    versions: dict[str, str] = field(default_factory=dict)
    checksum: str = ""
    seconds: float = 0.0
    worst: list[WorstRow] = field(default_factory=list)
    explained_rows: list[Explained] = field(default_factory=list)
    pictures: list[ColumnPicture] = field(default_factory=list)
    positive: int = 1  # the class, of two, that curves and thresholds refer to
