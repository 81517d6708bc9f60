"""Settings on the folds: each is fitted to the training rows of every fold and scored on the others."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np

from hinge.errors import UserError
from hinge.features.text_encoders import CountedTexts
from hinge.learning.choosing import least
from hinge.learning.fits import certificate_of, common_rounds, fit_model, preparation, size_of
from hinge.learning.roles import Roles
from hinge.learning.scores import measure_for
from hinge.learning.timeout import OutOfTime, limit
from hinge.learning.trials import Fold, Trial, split
from hinge.select.estimate import mean_of
from hinge.select.measure import Measure
from hinge.tables.conversion import to_column

# The largest share of the time that one setting may use, so that time remains for the others.
LARGEST_SHARE = {"boosting": 0.6}
SHARE = 0.25
ONE_FOLD = 4
TIMED_ROWS = 1000
MANY_COLUMNS = 1000
STOPPED_EARLY = 0.8  # a fold with less than this share of the median rounds is fitted again
ROUNDS_SHARE = 0.8  # the share of its time that boosting plans to use
FEWEST_ROUNDS = 30
HOPELESS = 3.0  # a setting this many standard errors behind on the first fold is dropped


@dataclass
class CrossValidation:
    """The rows, their folds, and the trials so far."""

    frame: Any
    y: np.ndarray  # class numbers or targets
    classes: np.ndarray | None
    task: str
    kinds: dict[str, str]
    seed: int
    folds: list[Fold]
    results: list[Trial] = field(default_factory=list)
    mean: float = 1.0
    weight: np.ndarray | None = None  # sample weights, in fits and scores
    metric: str | None = None  # the metric of the choice; the task's default for None
    _counted: dict[Any, CountedTexts] = field(default_factory=dict)
    _count_seconds: dict[str, float] = field(default_factory=dict)  # per row, by encoding
    pace: tuple[int, float] = (0, 0.0)  # of boosting: rows, and the seconds of a round per row and column

    @classmethod
    def over(
        cls, frame: Any, y: np.ndarray, classes: Any, task: str, kinds: dict[str, str], seed: int, seconds: float = 60.0,
        roles: Roles | None = None,
    ) -> Self:  # fmt: skip
        """Split these rows into folds: ten for few rows, down to three for many rows or columns, or little time."""
        n = len(y)
        k = 10 if n < 1000 else 5 if n < min(20_000, 400 * seconds) else 3
        if len(kinds) > MANY_COLUMNS:  # every fold prepares every column
            k = 3
        roles = roles or Roles()
        if roles.group is not None:
            k = min(k, len(np.unique(roles.group)))
            if k < 2:
                raise UserError("the rows are of one group; scores need two or more.")
        folds = split(y, task, k, seed, roles)
        mean = float(np.average(y, weights=roles.factor))
        return cls(frame, y, classes, task, kinds, seed, folds, mean=mean, weight=roles.factor)

    @cached_property
    def targets(self) -> np.ndarray:
        """y as the measure takes it: class numbers are integers."""
        return self.y if self.classes is None else self.y.astype(np.int64)

    @cached_property
    def measure(self) -> Measure:
        return measure_for(self.task, self.classes, self.mean, self.metric)

    def losses(self, rows: np.ndarray, output: np.ndarray) -> np.ndarray:
        """The losses of predictions for these rows of the search, times their weights."""
        loss = self.measure.pointwise(self.targets[rows], output)
        return loss if self.weight is None else loss * self.weight[rows]

    def weight_of(self, rows: np.ndarray) -> dict[str, Any]:
        """The keyword argument of a fit with the weights of these rows."""
        return {} if self.weight is None else {"sample_weight": self.weight[rows]}

    def labels(self, y: np.ndarray) -> np.ndarray:
        return y if self.classes is None else self.classes[y.astype(np.int64)]

    def prepare(self, fold: Fold, encode: str) -> tuple[Any, Any, Any, float]:
        """The preparation fitted to the training rows of a fold, both parts of the table transformed, and the seconds per row."""
        if encode in ("dummies", "means") and "category" not in self.kinds.values():
            encode = "codes"  # without categories they are the same
        if encode not in fold.prepared:
            prep = preparation(encode, self.kinds)
            began = time.perf_counter()
            counted = self.counted(prep)
            if self.texts:
                self._count_seconds.setdefault(encode, (time.perf_counter() - began) / len(self.y))
            began = time.perf_counter()
            inside = self.frame[fold.train]
            X = prep.fit_transform_counted(inside, self.labels(self.y[fold.train]), counted)
            Z = prep.transform_counted(self.frame[fold.test], counted)
            fold.prepared[encode] = (
                prep,
                X,
                Z,
                (time.perf_counter() - began) / (2 * len(fold.train) + len(fold.test))
                + self._count_seconds.get(encode, 0.0),
            )
        return fold.prepared[encode]

    def counted(self, prep: Any) -> dict[Any, CountedTexts]:
        """The term counts of the text columns, computed once."""
        for name in self.texts:
            for plan in prep.text_plans():
                key = (name, plan.analyzer, plan.ngrams)
                if key not in self._counted:
                    column = to_column(self.frame[name])
                    self._counted[key] = CountedTexts(column, plan.analyzer, plan.ngrams, plan.least)
        return self._counted

    @property
    def texts(self) -> list[str]:
        """The columns of free text."""
        return [name for name, kind in self.kinds.items() if kind == "text"]

    def best(self, family: str | None = None) -> Trial | None:
        """The least mean loss, over all families or one."""
        return least(self.results, family)

    def cross_validate(self, result: Trial, began: float, seconds: float) -> None:
        n = len(self.y)
        loss = np.empty(n)
        predictions: Any = None
        models, fit_time, quickest, most = [], 0.0, np.inf, None
        for k, fold in enumerate(self.folds):
            left = seconds - (time.perf_counter() - began)
            share = LARGEST_SHARE.get(result.family.name, SHARE) * seconds
            # The machine may have been busy during one fold: give up only if that fold was far too slow.
            room = min(left, max(share - fit_time, 0)) * (ONE_FOLD if k == 1 else 1)
            if left <= 0 or (k and quickest * (len(self.folds) - k) > room):
                result.state = "no time"
                return
            prep, X, Z, prep_time = self.prepare(fold, result.encode)
            if k == 0 and result.family.rounds:
                most = self._rounds_in(min(left, share) / len(self.folds), X.shape)
            start = time.perf_counter()
            with limit(min(left, share - fit_time)):
                watch = self.weight_of(fold.train) | (self._watch(fold, Z) if result.family.rounds else {})
                labels = self.labels(self.y[fold.train])
                models.append(fit_model(result.setting, self, prep, X, labels, watch, most_rounds=most))
            took = time.perf_counter() - start
            fit_time, quickest = fit_time + took, min(quickest, took)
            if k == 0 and len(self.folds) > 2 and self._hopeless(result, fold, models[0], Z):
                result.state = "dropped"
                return
        if result.family.rounds:
            grown = sum(model.n_iter_ for model in models)
            self._keep_pace(fit_time / grown, X.shape)
            self._go_on(result, models, min(began + seconds, time.perf_counter() + fit_time))
            result.rounds = common_rounds(models)
            models = [model.first_rounds(result.rounds) for model in models]
        for fold, model in zip(self.folds, models, strict=True):
            p = self.measure.output(model, self.prepare(fold, result.encode)[2])
            if not np.all(np.isfinite(p)):
                raise ArithmeticError("predictions are not finite")
            predictions = np.empty((n, *p.shape[1:])) if predictions is None else predictions
            predictions[fold.test] = p
            loss[fold.test] = self.losses(fold.test, p)
        result.loss, result.predictions, result.state = loss, predictions, "done"
        result.train_rows = len(fold.train)
        result.fit_seconds = fit_time / len(self.folds)
        result.prepare_seconds = 2 * prep_time * len(fold.train)  # once to fit the preparation, once to transform
        result.predict_micros = self._micros(prep, model, fold)
        result.certificate = certificate_of(model)
        result.size = size_of(model)

    def _keep_pace(self, seconds: float, shape: tuple[int, int]) -> None:
        """Record how long a round of boosting took; fits to fewer rows than before tell less."""
        rows, slowest = self.pace
        if shape[0] >= rows:
            own = seconds / (shape[0] * shape[1])
            self.pace = shape[0], max(own, slowest) if shape[0] == rows else own

    def _rounds_in(self, seconds: float, shape: tuple[int, int]) -> int | None:
        """How many rounds of boosting there is time for, judging by those before; None if nothing is known."""
        one = self.pace[1] * shape[0] * shape[1]
        return None if one == 0.0 else int(max(ROUNDS_SHARE * seconds / one, FEWEST_ROUNDS))

    def _hopeless(self, result: Trial, fold: Fold, model: Any, Z: Any) -> bool:
        """True if a further setting is clearly worse on the first fold than the best setting of its family."""
        best = self.best(result.family.name)
        if best is None or best.loss is None:
            return False
        loss = self.losses(fold.test, self.measure.output(model, Z))
        behind = mean_of(loss - best.loss[fold.test])
        return behind.value > HOPELESS * behind.standard_error and behind.value > 0.02 * float(np.mean(best.loss))

    def _go_on(self, result: Trial, models: list[Any], end: float) -> None:
        """Refit models that stopped much earlier than those of the other folds, to the median rounds, if there is time until ``end``.

        Early stopping depends on few rows. Without the refit every fold would choose its number of rounds on the rows that
        score it.
        """
        rounds = int(np.median([model.n_iter_ for model in models]))
        for k, fold in enumerate(self.folds):
            if models[k].n_iter_ < STOPPED_EARLY * rounds:
                prep, X, Z, _ = self.prepare(fold, result.encode)
                changes = {"max_iter": rounds, "n_iter_no_change": rounds}
                labels = self.labels(self.y[fold.train])
                try:
                    with limit(end - time.perf_counter()):
                        watch = self.weight_of(fold.train) | self._watch(fold, Z)
                        models[k] = fit_model(result.setting, self, prep, X, labels, watch, **changes)
                except OutOfTime:
                    return

    def _micros(self, prep: Any, model: Any, fold: Fold) -> float:
        """Microseconds to predict one row of many, preparation included."""
        rows = self.frame[np.resize(fold.test, max(len(fold.test), TIMED_ROWS))]
        start = time.perf_counter()
        self.measure.output(model, prep.transform(rows))
        return 1e6 * (time.perf_counter() - start) / rows.height

    def _watch(self, fold: Fold, Z: Any) -> dict[str, Any]:
        """The validation rows of early stopping: the test rows of the fold, except classes that are not in its training rows."""
        y = self.y[fold.test]
        known = np.arange(len(y)) if self.classes is None else np.flatnonzero(np.isin(y, self.y[fold.train]))
        weight = {} if self.weight is None else {"sample_weight_val": self.weight[fold.test][known]}
        return {"X_val": Z if len(known) == len(y) else Z[known], "y_val": self.labels(y[known])} | weight
