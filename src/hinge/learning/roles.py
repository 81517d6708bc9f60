"""Columns that are not inputs: weights, exposures, offsets, groups of rows, and the order in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hinge.errors import UserError, argument
from hinge.learning.request import Request
from hinge.select.resample import deal
from hinge.tables.conversion import to_numbers, to_texts, to_times
from hinge.tables.frames import closest_name
from hinge.tables.notes import Note
from hinge.tables.profile import TableProfile

USES = {
    "weight": "the weight of rows",
    "exposure": "the exposure of rows",
    "offset": "the offset of rows",
    "group": "groups of rows, which are not divided between training and test",
}
TOGETHER = "equal rows were kept together, either all in the training or all in the test part of a split"


@dataclass
class Roles:
    """The roles of columns, row by row.

    Attributes
    ----------
    weight : array, optional
        Mean 1.
    exposure : array, optional
        The target is a count per exposure.
    shift : array, optional
        What was subtracted from a real target.
    group : array of int, optional
        Rows of a group are on one side of every split.
    order : array of int, optional
        The rank of rows in time: models are scored on later rows.
    """

    weight: np.ndarray | None = None
    exposure: np.ndarray | None = None
    shift: np.ndarray | None = None
    group: np.ndarray | None = None
    order: np.ndarray | None = None

    @property
    def factor(self) -> np.ndarray | None:
        """The weight of every row in fits and scores."""
        if self.exposure is None:
            return self.weight
        factor = self.exposure if self.weight is None else self.weight * self.exposure
        return factor / factor.mean()

    def __getitem__(self, rows: np.ndarray) -> Roles:
        return Roles(*(None if part is None else part[rows] for part in vars(self).values()))

    def folds(self, y: np.ndarray, k: int, classify: bool, seed: int) -> np.ndarray:
        """The fold of every row: by groups, by intervals of time, or at random."""
        rng = np.random.default_rng(seed)
        if self.order is not None:
            rank = np.argsort(np.argsort(self.order, kind="stable"), kind="stable")
            return (rank * k // len(rank)).astype(np.int32)
        if self.group is None:
            return deal(np.unique(y, return_inverse=True)[1] if classify else y, k, rng, classify=classify)
        # Assign large groups first, each to the smallest fold so far.
        _, codes, sizes = np.unique(self.group, return_inverse=True, return_counts=True)
        fold_of, filled = np.empty(len(sizes), dtype=np.int32), np.zeros(k)
        shuffled = rng.permutation(len(sizes))
        for g in shuffled[np.argsort(-sizes[shuffled], kind="stable")]:
            fold_of[g] = int(np.argmin(filled))
            filled[fold_of[g]] += sizes[g]
        return fold_of[codes]


def role_columns(request: Request) -> dict[str, str]:
    """The columns that have a role and are not inputs: column ↦ role."""
    return {name: role for role in USES if (name := getattr(request, role)) is not None}


def read_roles(request: Request, frame: Any) -> dict[str, np.ndarray]:
    """The values of the columns that have a role, one per row of the table."""
    import polars as pl

    found = {}
    for role in (*USES, "time_column"):
        name = getattr(request, role)
        if name is None:
            continue
        if name not in frame.columns:
            near = closest_name(name, frame.columns)
            raise UserError(f"{argument(role, name)}: no such column.{f' Did you mean {near!r}?' if near else ''}")
        series = frame[name]
        if role == "group":
            found[role] = np.unique(to_texts(series).fill_null("").to_numpy().astype(str), return_inverse=True)[1]
        elif role == "time_column":
            numeric = series.dtype.is_numeric()
            times = series.cast(pl.Float64) if numeric else to_times(series, "iso").cast(pl.Int64)
            if times.null_count():
                raise UserError(f"{argument(role, name)}: {times.null_count()} values are missing or no times.")
            found[role] = times.rank("ordinal").to_numpy()
        else:
            values = to_numbers(series).to_numpy().astype(np.float64)
            if not np.all(np.isfinite(values)) or (role != "offset" and np.any(values < 0)):
                kind = "finite" if role == "offset" else "finite and not negative"
                raise UserError(f"{argument(role, name)}: its numbers must be {kind}.")
            found[role] = values
    return found


def apply_roles(request: Request, data: TableProfile, values: dict[str, np.ndarray]) -> Roles:
    """The roles of the rows of a profile; its target becomes a rate where there is an exposure."""
    for name, role in role_columns(request).items():
        data.left_out[name] = USES[role]
    roles = Roles(group=values.get("group"), order=values.get("time_column"))
    weight = values.get("weight")
    if weight is not None:
        if not weight.sum() > 0:
            raise UserError(f"{argument('weight', str(request.weight))}: every weight is zero.")
        roles.weight = weight / weight.mean()
    exposure = values.get("exposure")
    if "offset" in values:
        if data.task == "count":
            exposure = np.exp(values["offset"]) * (1.0 if exposure is None else exposure)
        elif data.task == "real":
            roles.shift = values["offset"]
            data.y = data.y - roles.shift
        else:
            raise UserError(f"{argument('offset', str(request.offset))}: for counts and real numbers only.")
    if exposure is not None:
        if data.task != "count":
            raise UserError(f"{argument('exposure', str(request.exposure))}: the target must be a count.")
        if not np.all(exposure > 0):
            raise UserError(
                f"{argument('exposure', str(request.exposure))}: {int(np.sum(exposure <= 0))} rows have no exposure; remove "
                "them."
            )
        roles.exposure = exposure
        data.y = data.y / exposure
    if roles.group is None and roles.order is None:
        roles.group = copies(data)
        if roles.group is not None:
            data.notes.append(Note("D08", "", TOGETHER))
    return roles


def copies(data: TableProfile) -> np.ndarray | None:
    """Groups of equal rows, if there are many of them: a copy of a training row must not be held out."""
    import polars as pl

    if not any(note.code == "D08" for note in data.notes):
        return None
    with_target = data.frame.with_columns(pl.Series("\0target", data.y))
    hashes = with_target.hash_rows().to_numpy()
    return np.unique(hashes, return_inverse=True)[1]
