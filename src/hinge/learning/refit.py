"""The chosen setting, fitted to any rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from hinge.learning.fits import common_rounds, fit_model, preparation
from hinge.learning.search import Search
from hinge.learning.trials import Trial
from hinge.models.blend import Blend

MAX_WATCHED = 50_000
PATIENCE = 20  # rounds that early stopping adds, approximately
FEWEST_ROUNDS, MOST_ROUNDS = 20, 3000
MOST_COPIES = 4


@dataclass
class Refit:
    """The chosen setting, ready to be fitted to any rows.

    Attributes
    ----------
    sampled : bool
        Whether the search used a part of the training rows.
    rounds : int, optional
        Rounds of boosting that early stopping chose on many rows.
    cut : (int, int), optional
        Rounds of boosting that there was time for, and those that were chosen, if that was more.
    weight : array, optional
        The weights of the rows of the table.
    copies : int
        How many fits with other random numbers each boosted member of an ensemble is the mean of.
    copy : int
        Which of them this is.
    """

    frame: Any
    y: np.ndarray
    search: Search
    chosen: Trial
    sampled: bool
    rounds: int | None = None
    cut: tuple[int, int] | None = None
    weight: np.ndarray | None = None
    copies: int = 1
    copy: int = 0

    @cached_property
    def targets(self) -> np.ndarray:
        """y as the measure takes it: class numbers are integers."""
        return self.y if self.search.classes is None else self.y.astype(np.int64)

    def fit(self, rows: np.ndarray, seconds: float = np.inf) -> Any:
        """A pipeline fitted to these rows of the table; only boosting respects the time limit."""
        from sklearn.pipeline import Pipeline

        if self.chosen.members:
            return Pipeline([("model", self._blend(rows, seconds))])
        changes = self._changes(len(rows), seconds)
        watched = np.arange(0)
        if self._watches(len(rows)):  # split here, since the estimator would copy the remaining rows
            order = np.random.default_rng(self.search.seed).permutation(len(rows))
            cut = min(len(rows) // 10, MAX_WATCHED)
            watched, rows = rows[np.sort(order[:cut])], rows[np.sort(order[cut:])]
        prep = preparation(self.chosen.encode, self.search.kinds)
        every = len(rows) == self.frame.height
        X = prep.fit_transform(self.frame if every else self.frame[rows], self.search.labels(self.y[rows]))
        watch = {} if self.weight is None else {"sample_weight": self.weight[rows]}
        if len(watched):
            watch |= {"X_val": prep.transform(self.frame[watched]), "y_val": self.search.labels(self.y[watched])}
            if self.weight is not None:
                watch["sample_weight_val"] = self.weight[watched]
        model = fit_model(
            self.chosen.setting, self.search, prep, X, self.search.labels(self.y[rows]), watch, self.copy, **changes
        )  # fmt: skip
        if self.cut is not None and model.n_iter_ < self.cut[0]:
            self.cut = None  # early stopping came first, so the time limit cut nothing
        if len(watched):
            self.rounds = common_rounds([model])
            model = model.first_rounds(self.rounds)
        return Pipeline([("prep", prep), ("model", model)])

    @cached_property
    def parts(self) -> list[tuple[Refit, float]]:
        """The members of an ensemble with their weights, the copies of a member one after the other."""
        found = []
        for trial, share in self.chosen.members:
            many = self.copies if trial.rounds is not None else 1
            for k in range(many):
                part = Refit(self.frame, self.y, self.search, trial, self.sampled, weight=self.weight, copy=k)
                found.append((part, share / many))
        return found

    def afford(self, rows: list[int], seconds: float) -> None:
        """Choose the copies of boosted members that fits to so many rows leave time for."""
        boosted = [trial for trial, _ in self.chosen.members if trial.rounds is not None]
        one = sum(trial.cost(n) for trial in boosted for n in rows)
        spare = seconds - sum(self.chosen.cost(n) for n in rows)
        self.copies = int(np.clip(1 + spare / max(one, 1e-9), 1, MOST_COPIES)) if boosted else 1

    def lean(self, model: Any) -> Any:
        """A fitted model with one copy of each member, for experiments that fit it many times."""
        from sklearn.pipeline import Pipeline

        if self.copies == 1:
            return model
        fitted = model.named_steps["model"].members_
        first = [member for member, (part, _) in zip(fitted, self.parts, strict=True) if part.copy == 0]
        return Pipeline([("model", Blend.of(first, [share for _, share in self.chosen.members]))])

    def single(self) -> Refit:
        """The same choice with one copy of each member."""
        return replace(self, copies=1)

    def _blend(self, rows: np.ndarray, seconds: float) -> Blend:
        costs = [part.chosen.cost(len(rows)) for part, _ in self.parts]
        fitted = [part.fit(rows, seconds * cost / max(sum(costs), 1e-9)) for (part, _), cost in zip(self.parts, costs)]
        self.cut = next((part.cut for part, _ in self.parts if part.cut is not None), None)
        return Blend.of(fitted, [share for _, share in self.parts])

    def _watches(self, rows: int) -> bool:
        """Whether early stopping needs validation rows: with more rows than in the search, more rounds may be best."""
        many = self.sampled and rows > 2 * len(self.search.y)
        return self.chosen.rounds is not None and many and self.rounds is None

    def _changes(self, rows: int, seconds: float) -> dict[str, Any]:
        """The number of rounds that early stopping chose earlier (which saves validation rows), limited by the time."""
        if self.chosen.rounds is None:
            return {}
        wanted = self.rounds or round(1.1 * self.chosen.rounds)
        changes: dict[str, Any] = {} if self._watches(rows) else {"early_stopping": False, "max_iter": max(wanted, 1)}
        if np.isfinite(seconds):
            cost = self.chosen.cost(rows) / (self.chosen.rounds + PATIENCE)
            limit = max(int(seconds / max(cost, 1e-9)), FEWEST_ROUNDS)
            changes["max_iter"] = min(limit, changes.get("max_iter", MOST_ROUNDS))
            if limit < wanted:
                self.cut = limit, wanted
        return changes
