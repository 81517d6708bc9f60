"""The search: cross-validate every family on the same folds within a time budget, and choose among them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from hinge.errors import UserError
from hinge.features.text_encoders import CountedTexts
from hinge.learning.candidates import Family, Setting
from hinge.learning.fits import certificate_of, common_rounds, fit_model, preparation, size_of
from hinge.learning.roles import Roles
from hinge.learning.scores import explained, measure_for
from hinge.learning.timeout import OutOfTime, limit
from hinge.learning.trials import Fold, Trial, split
from hinge.select.choice import choose_candidate
from hinge.select.estimate import Estimate, mean_of
from hinge.select.measure import Measure
from hinge.tables.conversion import to_column

# The largest share of the time that one setting may use, so that time remains for the others.
LARGEST_SHARE = {"boosting": 0.6}
SHARE = 0.25
AT_LEAST = 0.3  # share of the time that the search gets while it has nothing better than a constant
ONE_FOLD = 4
TIMED_ROWS = 1000
STOPPED_EARLY = 0.8  # a fold with less than this share of the median rounds is fitted again
MIN_SEARCH_ROWS, MAX_SEARCH_ROWS = 5_000, 50_000
FEW_ROWS = 2000  # up to here slow families are quick and need not wait, and all settings of linear ones come early
LINEAR = 2  # the highest rank of linear models; richer families have higher ranks
LOOK_ROWS, LOOK_ROWS_PER_SECOND, LOOK_SHARE = (300, 2000), 50, 0.02  # the first fit of every family
WORTH_VARYING = 2.0  # families within so many standard errors of the best are varied
MOST_FAILURES = 6  # variation of a family ends after so many settings in a row without an improvement
HOPELESS = 3.0  # a setting this many standard errors behind on the first fold is dropped
ABOUT_AS_GOOD = 0.002  # a simpler model may be worse by this share of the score


@dataclass
class Search:
    """The rows, their folds, and the results so far."""

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
    simple: bool = True
    _counted: dict[Any, CountedTexts] = field(default_factory=dict)
    _count_seconds: dict[str, float] = field(default_factory=dict)  # per row, by encoding
    too_slow: dict[str, str] = field(default_factory=dict)  # by family: why even the fit to few rows failed
    looks: dict[str, tuple[int, Estimate]] = field(
        default_factory=dict
    )  # by family: rows, and the score after a fit to them
    afterwards: Callable[[Trial | None], float] = lambda best: 0.0

    @classmethod
    def over(
        cls, frame: Any, y: np.ndarray, classes: Any, task: str, kinds: dict[str, str], seed: int, seconds: float = 60.0,
        roles: Roles | None = None,
    ) -> Search:  # fmt: skip
        """Split these rows into folds: ten for few rows, down to three for many rows or little time."""
        n = len(y)
        k = 10 if n < 1000 else 5 if n < min(20_000, 400 * seconds) else 3
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

    def run(
        self, families: list[Family], seconds: float, watch: Callable[[list[Trial]], None] = lambda results: None
    ) -> list[Trial]:
        """Try the first setting of every family, then the other settings of the families close to the best.

        ``seconds`` is the budget of the search and of the fits after it. ``afterwards`` estimates the latter from the best trial
        so far.
        """
        began = time.perf_counter()
        if len(self.y) > FEW_ROWS:
            for family in families:
                self._look(family, seconds)
        turns = [(f, f.settings[0]) for f in families if not f.slow]
        more = [(f, s) for f in families for s in f.settings[1 : f.early]]
        slow = [(f, f.settings[0]) for f in families if f.slow]
        later = [(f, s) for f in families for s in f.settings[f.early :]]
        if len(self.y) <= FEW_ROWS:
            turns += [*(pair for pair in later if pair[0].rank <= LINEAR), *slow, *more]
            later = [pair for pair in later if pair[0].rank > LINEAR]
        else:
            ahead = [pair for pair in slow if self._promising(pair[0])]
            turns += [*ahead, *more, *(pair for pair in slow if pair not in ahead)]
        for family, setting in turns:
            self._try(family, setting, began, self._until(began, seconds), watch)
        # The best family first: its other settings are the most likely to improve on the best.
        order = {f.name: self._distance(f) for f in families}
        for family, setting in sorted(later, key=lambda pair: order[pair[0].name]):
            if order[family.name] < 4.0 or family.rank <= LINEAR:
                self._try(family, setting, began, self._until(began, seconds), watch)
        self._vary(families, began, seconds, watch)
        return self.results

    def _look(self, family: Family, seconds: float) -> None:
        """Fit a family to few rows (to fewer if that takes long), so that every family has a score to report."""
        rows = int(np.clip(LOOK_ROWS_PER_SECOND * seconds, *LOOK_ROWS))
        for share, n in ((LOOK_SHARE, rows), (2 * LOOK_SHARE, rows // 5)):
            try:
                with limit(share * seconds):
                    self.looks[family.name] = self._rough(family, n)
                return
            except OutOfTime:
                self.too_slow[family.name] = f"a fit to {n} rows takes more than {share * seconds:.2g} s"
            except (ValueError, ArithmeticError, np.linalg.LinAlgError, MemoryError):
                return  # cross-validation will report the failure

    def _rough(self, family: Family, n: int) -> tuple[int, Estimate]:
        """The score of a family fitted to n training rows of the first fold, on n held-out rows."""
        rng, fold = np.random.default_rng(self.seed), self.folds[0]
        part = Fold(np.sort(rng.permutation(fold.train)[:n]), np.sort(rng.permutation(fold.test)[:n]))
        setting = family.settings[0]
        prep, X, Z, _ = self.prepare(part, setting.encode or family.encode)
        watch = self.weight_of(part.train) | (self._watch(part, Z) if family.rounds else {})
        model = fit_model(setting, self, prep, X, self.labels(self.y[part.train]), watch)
        return len(part.train), self.measure.estimate(self.losses(part.test, self.measure.output(model, Z)))

    def _promising(self, family: Family) -> bool:
        """True if a family was close to the best after the fits to few rows."""
        if family.name not in self.looks:
            return False
        own = self.looks[family.name][1]
        return own.value <= min(score.value for _, score in self.looks.values()) + 0.5 * own.standard_error

    def _vary(self, families: list[Family], began: float, seconds: float, watch: Any) -> None:
        """Vary the best settings of the families that are close to the best, while there is time.

        The next family is the one with the fewest failures in a row; ties go to the lower loss. A family is abandoned after
        several settings in a row without an improvement.
        """
        if self.simple:
            return
        rng = np.random.default_rng(self.seed + 5)
        failures = {family.name: 0 for family in families if family.vary is not None}
        while True:
            end = self._until(began, seconds)
            left = end - (time.perf_counter() - began)
            turns = [
                f for f in families if failures.get(f.name, MOST_FAILURES) < MOST_FAILURES and self._worth(f, left)
            ]
            if not turns:
                return
            family = min(turns, key=lambda f: (failures[f.name], self._distance(f)))
            trial = self.best(family.name)
            assert family.vary is not None
            assert trial is not None
            self._try(family, family.vary(rng, trial.setting.values), began, end, watch)
            best = self.best(family.name)
            assert best is not None
            better = float(np.mean(best.loss)) < float(np.mean(trial.loss)) * (1 - 1e-3)  # type: ignore[arg-type]
            failures[family.name] = 0 if better else failures[family.name] + 1

    def _worth(self, family: Family, left: float) -> bool:
        """True if a family is close to the best and there is time for one more of its settings."""
        best = self.best(family.name)
        if best is None or self._distance(family) > WORTH_VARYING:
            return False
        return len(self.folds) * best.fit_seconds < left

    def _until(self, began: float, seconds: float) -> float:
        """The time at which the search has to end, in seconds from its start; later while nothing beats the constant."""
        end = seconds - self.afterwards(self.best())
        nothing = sum(r.state == "done" for r in self.results) < 2
        return max(end, time.perf_counter() - began + AT_LEAST * seconds) if nothing else end

    def _distance(self, family: Family) -> float:
        """How many standard errors a family is behind the best so far."""
        best, own = self.best(), self.best(family.name)
        if own is None or best is None or own.loss is None or best.loss is None:
            return np.inf
        behind = mean_of(own.loss - best.loss)
        return behind.value / behind.standard_error if behind.standard_error > 0 else 0.0

    def best(self, family: str | None = None) -> Trial | None:
        """The least mean loss, over all families or one."""
        done = [r for r in self.results if r.state == "done" and family in (None, r.family.name)]
        return min(done, key=lambda r: float(np.mean(r.loss)), default=None)  # type: ignore[arg-type]

    def leave_out_slow(self, rows: int, seconds: float) -> None:
        """Exclude trials that cannot be fitted to so many rows in this time (boosting can: it reduces its rounds).

        The last trial that is better than a constant stays, since a late model is worth more than a constant.
        """
        done = [r for r in self.results[1:] if r.state == "done"]
        slow = [r for r in done if r.rounds is None and r.cost(rows) > seconds]
        if slow and len(slow) == len(done):
            slow.remove(min(slow, key=lambda r: r.cost(rows)))
        for result in slow:
            result.state, result.why = "no time", f"a fit to all rows would take about {result.cost(rows):.0f} s"

    def optimism(self) -> float:
        """The optimism of the least mean loss of single models, which comes from selecting the minimum of many.

        The unbiased loss is cross-validated: each fold is scored by the model that is best on the other folds.
        """
        losses = np.array([r.loss for r in self.results if r.state == "done" and not r.members])
        crossed = np.empty(losses.shape[1])
        for fold in self.folds:
            crossed[fold.test] = losses[int(np.argmin(losses[:, fold.train].mean(axis=1)))][fold.test]
        return max(float(crossed.mean() - losses.mean(axis=1).min()), 0.0)

    def choose(self) -> Trial:
        """The simplest family whose mean loss is within one standard error (of the difference) of the best.

        Unless ``simple``, it must also be within a fifth of a per cent of the best.
        """
        best = self.best()
        if best is None or best.loss is None:
            raise UserError(f"nothing could be fitted to these data: {self.results[0].why}")
        names = dict.fromkeys(r.family.name for r in self.results)
        choices, optimism = [r for name in names if (r := self.best(name)) is not None], 0.0
        # Heavy-tailed losses have large standard errors, so the one-standard-error rule alone is too lenient.
        if not self.simple:
            power = 2.0 if self.measure.root else 1.0
            optimism = self.optimism() if any(r.members for r in choices) else 0.0
            means = [float(np.mean(r.loss)) + (0.0 if r.members else optimism) for r in choices]  # type: ignore[arg-type]
            most = min(means) * (1 + ABOUT_AS_GOOD) ** power
            choices = [r for r, mean in zip(choices, means, strict=True) if mean <= most]
        losses = np.array([r.loss for r in choices])
        losses += np.array([[0.0 if r.members else optimism] for r in choices])
        return choices[choose_candidate(losses, [r.family.rank for r in choices], paired=True).simplest]

    def _too_late(self, family: Family) -> bool:
        """True if a family was tried and none of its settings finished in time."""
        own = [r.state for r in self.results if r.family.name == family.name]
        return "done" not in own and any(state in ("no time", "rough") for state in own)

    def _try(self, family: Family, setting: Setting, began: float, seconds: float, watch: Any) -> None:
        if self._too_late(family):
            return
        result = Trial(family, setting, "running")
        self.results.append(result)
        watch(self.results)
        trivial = self.results[0]
        try:
            self._folds(result, began, seconds if result is not trivial else np.inf)
        except OutOfTime:
            result.state = "no time"
        except (ValueError, ArithmeticError, np.linalg.LinAlgError, MemoryError) as error:
            result.state, result.why = "failed", " ".join(str(error).split())[:200]
        if result.state == "no time" and family.name in self.looks:
            rows, rough = self.looks[family.name]
            result.state, result.why = (
                "rough",
                f"{self.measure.name} {rough.brief()} after a fit to {rows} rows; no time for all",
            )
        elif result.state == "no time":
            result.why = self.too_slow.get(family.name, "")
        self.finish(result)
        watch(self.results)

    def finish(self, result: Trial) -> None:
        """Set the score of a trial from its losses."""
        trivial = self.results[0]
        if result.state == "done" and result.loss is not None and trivial.loss is not None:
            result.score = self.measure.estimate(result.loss)
            result.explained = explained(result.loss, trivial.loss)

    def _folds(self, result: Trial, began: float, seconds: float) -> None:
        n = len(self.y)
        loss = np.empty(n)
        predictions: Any = None
        models, fit_time, quickest = [], 0.0, np.inf
        for k, fold in enumerate(self.folds):
            left = seconds - (time.perf_counter() - began)
            share = LARGEST_SHARE.get(result.family.name, SHARE) * seconds
            # The machine may have been busy during one fold: give up only if that fold was far too slow.
            room = min(left, max(share - fit_time, 0)) * (ONE_FOLD if k == 1 else 1)
            if left <= 0 or (k and quickest * (len(self.folds) - k) > room):
                result.state = "no time"
                return
            prep, X, Z, prep_time = self.prepare(fold, result.encode)
            start = time.perf_counter()
            with limit(min(left, share - fit_time)):
                watch = self.weight_of(fold.train) | (self._watch(fold, Z) if result.family.rounds else {})
                models.append(fit_model(result.setting, self, prep, X, self.labels(self.y[fold.train]), watch))
            took = time.perf_counter() - start
            fit_time, quickest = fit_time + took, min(quickest, took)
            if k == 0 and len(self.folds) > 2 and self._hopeless(result, fold, models[0], Z):
                result.state = "dropped"
                return
        if result.family.rounds:
            self._go_on(result, models, min(began + seconds, time.perf_counter() + fit_time))
            result.rounds = common_rounds(models)
            models = [model.first_rounds(result.rounds) for model in models]
        for fold, model in zip(self.folds, models, strict=True):
            p = self.measure.output(model, fold.prepared[result.encode][2])
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
