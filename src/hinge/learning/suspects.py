"""Checks for target leaks and for optimistic splits.

Every check fits one quick model, boosted trees, to the same few thousand rows: with all columns, without some, with one alone;
and with random splits, splits by groups or splits by time. A model explains the share of the constant's loss that it removes on
held-out rows.
"""

from __future__ import annotations

import re
import time
import warnings
from dataclasses import dataclass

import numpy as np

from hinge.errors import argument
from hinge.learning.candidates import BOOST
from hinge.learning.fits import preparation
from hinge.learning.request import Request
from hinge.learning.roles import Roles
from hinge.learning.scores import best_constant, constant_losses, measure_for
from hinge.tables.kinds import named_as_id
from hinge.tables.notes import Note
from hinge.tables.profile import TableProfile

ROWS, ROUNDS = 6000, 60
MOST = 6  # the largest number of columns that are checked
# A column is suspect if it alone explains at least ALONE of what all columns explain, and the others explain less by at least
# MUCH. Columns whose names match AFTERWARDS have the lower thresholds NAMED and LITTLE. All are shares of what all explain.
ALONE, NAMED = 0.9, 0.3
MUCH, LITTLE = 0.4, 0.05
ENOUGH = 0.1  # there are no checks if all columns together explain less than this
FLATTERED = 0.25  # a split by groups or time must explain less than a random split by this share to be reported
AFTERWARDS = re.compile(
    r"(^|[\W_])(actual|final|outcome|result|resolved|resolution|settled|settlement|paid|payout|payment|refund\w*|closed?|"
    r"closing|clos\w*_?date|ended|end_?(date|time)|finish\w*|completed?|completion|discharge\w*|duration|elapsed|delay|"
    r"arr(ival)?|claim_?(amount|cost|paid)\w*|amount_?claimed|loss_?(amount|paid)|cancel\w*|churn\w*|death|died|default\w*|"
    r"recover\w*|post|after|followup|follow_up|status)($|[\W_])",
    re.IGNORECASE,
)


@dataclass
class Quick:
    """A quick model of some columns and rows of a table."""

    data: TableProfile
    seed: int
    deadline: float

    @property
    def late(self) -> bool:
        return time.perf_counter() > self.deadline

    def explained(self, columns: list[str], train: np.ndarray, test: np.ndarray) -> float:
        """The share of the constant's loss that a model of these columns removes on the test rows."""
        import hinge as hg

        data = self.data
        classify = data.classes is not None
        kinds = {c.name: c.kind for c in data.columns if c.name in columns}
        y = data.y.astype(np.int64) if classify else data.y
        if len(np.unique(y[train])) < 2 or len(np.unique(y[test])) < 2:
            return 0.0
        labels = y if data.classes is None else data.classes[y]
        measure = measure_for(data.task, data.classes, float(np.mean(data.y[train])))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            prep = preparation("codes", kinds)
            frame = data.frame.select(columns)
            X = prep.fit_transform(frame[train], labels[train])
            make = getattr(hg, BOOST + ("Classifier" if classify else "Regressor"))
            loss = {"loss": "poisson"} if data.task == "count" else {}
            model = make(
                max_iter=ROUNDS, learning_rate=0.15, max_leaf_nodes=15, random_state=self.seed, early_stopping=False,
                categorical_features=np.flatnonzero(prep.categorical_).tolist() or None, **loss,
            ).fit(X, labels[train])  # fmt: skip
            output = measure.output(model, prep.transform(frame[test]))
        base = constant_losses(measure, y[test], best_constant(data.y[train], data.classes))
        return float(1 - np.mean(measure.pointwise(y[test], output)) / max(float(np.mean(base)), 1e-300))


def suspicious(request: Request, data: TableProfile, roles: Roles, strongest: list[str], seconds: float) -> list[Note]:
    """Notes on possible leaks and on optimistic splits; ``strongest`` are the columns by importance."""
    rng = np.random.default_rng(request.seed + 7)
    quick = Quick(data, request.seed, time.perf_counter() + seconds)
    names = [c.name for c in data.columns if c.kind != "text"]
    rows = np.sort(rng.permutation(len(data.y))[: 2 * ROWS])
    classify = data.classes is not None
    fold = roles[rows].folds(data.y[rows], 3, classify, request.seed)
    held = 2 if roles.order is not None else 0
    train, test = rows[fold != held], rows[fold == held]
    if not names or len(test) < 20:
        return []
    full = quick.explained(names, train, test)
    if full < ENOUGH:
        return []
    notes = []
    named = [name for name in names if AFTERWARDS.search(_parts(name))]
    tried = list(dict.fromkeys([*[name for name in strongest if name in names][:2], *named]))[:MOST]
    for name in tried:
        if quick.late:
            break
        others = [other for other in names if other != name]
        alone = quick.explained([name], train, test)
        if alone < (NAMED if name in named else ALONE) * full:
            continue
        without = quick.explained(others, train, test) if others else 0.0
        if without <= full - (LITTLE if name in named else MUCH) * full:
            why = "its name is that of something known afterwards, and " if name in named else ""
            notes.append(Note("D20", name, (
                f"{name}: {why}it alone explains {_percent(alone)} of {data.target} (all columns together {_percent(full)}); "
                f"without it the others explain {_percent(without)}. Is it known when a prediction is needed? If not, use "
                f"{argument('drop', name)}"
            )))  # fmt: skip
    if not notes and len(strongest) > 2 and full > 0.8 and not quick.late:
        notes += _pair(quick, names, strongest, full, train, test)
    if not classify or len(np.unique(data.y)) >= 2:
        notes += _splits(quick, request, roles, names, rows, fold, full, rng)
    return notes


def _pair(
    quick: Quick, names: list[str], strongest: list[str], full: float, train: np.ndarray, test: np.ndarray
) -> list[Note]:  # fmt: skip
    """Two columns that together explain nearly all, where the others explain little."""
    both = [name for name in strongest if name in names][:2]
    others = [name for name in names if name not in both]
    if len(both) < 2 or not others:
        return []
    together, without = quick.explained(both, train, test), quick.explained(others, train, test)
    if together < 0.97 * full or without > (1 - MUCH) * full:
        return []
    text = (
        f"{both[0]} and {both[1]} together explain {_percent(together)} of {quick.data.target} (all columns {_percent(full)}); "
        f"without them the others explain {_percent(without)}. Are both known when a prediction is needed?"
    )
    return [Note("D20", both[0], text)]


def _splits(
    quick: Quick, request: Request, roles: Roles, names: list[str], rows: np.ndarray, fold: np.ndarray, full: float,
    rng: np.random.Generator,
) -> list[Note]:  # fmt: skip
    """Notes on groups of similar rows and on drift over time, which a random split hides."""
    data, notes = quick.data, []
    if request.group is not None or request.time_column is not None:
        return []
    for column in data.columns:
        if quick.late or column.kind not in ("number", "category") or not named_as_id(column.name):
            continue
        if not 10 <= column.distinct <= 0.5 * min(len(data.y), 50_000):
            continue
        group = np.unique(data.frame[column.name].to_numpy().astype(str)[rows], return_inverse=True)[1]
        others = [name for name in names if name != column.name]
        part = Roles(group=group).folds(data.y[rows], 3, data.classes is not None, request.seed)
        if not others:
            continue
        apart = quick.explained(others, rows[part != 0], rows[part == 0])
        if apart < (1 - FLATTERED) * full:
            text = (
                f"{column.name}: rows of one {column.name} are alike. With a split between values of it the columns "
                f"explain {_percent(apart)} of {data.target}, with a random split {_percent(full)}. If new rows have new "
                f"values of it, use {argument('group', column.name)}"
            )
            notes.append(Note("D21", column.name, text))
    date = next((c.name for c in data.columns if c.kind == "date"), None)
    if date is not None and not quick.late:
        when = data.frame[date].to_physical().to_numpy()[rows].astype(np.float64)
        known = np.isfinite(when)
        rank = np.argsort(np.argsort(when[known], kind="stable"))
        late = rank >= 2 * len(rank) / 3
        later = quick.explained(names, rows[known][~late], rows[known][late])
        if later < (1 - FLATTERED) * full:
            text = (
                f"{date}: models of earlier rows explain {_percent(later)} of {data.target} in later ones, with a random split "
                f"{_percent(full)}. If the model is to predict the future, use {argument('time_column', date)}"
            )
            notes.append(Note("D22", date, text))
    return notes


def _parts(name: str) -> str:
    """Split camelCase into words: claimAmount gives claim_Amount."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)


def _percent(share: float) -> str:
    return "nothing" if share < 0.005 else f"{100 * share:.0f} %"
