"""The search: cross-validate every family on the same folds within a time budget, and choose among them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hinge.learning.candidates import Family, Setting
from hinge.learning.choosing import choose, promising
from hinge.learning.cross_validation import CrossValidation
from hinge.learning.fits import fit_model
from hinge.learning.scores import explained
from hinge.learning.timeout import OutOfTime, limit
from hinge.learning.trials import Fold, Trial
from hinge.select.estimate import Estimate, mean_of

AT_LEAST = 0.3  # share of the time that the search gets while it has nothing better than a constant
MIN_SEARCH_ROWS, MAX_SEARCH_ROWS = 5_000, 50_000
FEW_ROWS = 2000  # up to here slow families are quick and need not wait, and all settings of linear ones come early
LINEAR = 2  # the highest rank of linear models; richer families have higher ranks
LOOK_ROWS, LOOK_ROWS_PER_SECOND, LOOK_SHARE = (300, 2000), 50, 0.02  # the first fit of every family
WORTH_VARYING = 2.0  # families within so many standard errors of the best are varied
CLOSE = 4.0  # further settings are tried of families within so many standard errors of the best, and of linear ones
FAR_BEHIND = 1.5  # ... but none of a family whose loss is more than this many times the best and that is not close
CHEAP = (
    0.005  # share of the time that a setting may be expected to take for its turn to come before those of slow families
)
MOST_FAILURES = 10  # variation of a family ends after so many settings in a row without an improvement


@dataclass
class Search(CrossValidation):
    """Which settings are tried, in what order and how long, and the choice among them."""

    simple: bool = True
    too_slow: dict[str, str] = field(default_factory=dict)  # by family: why even the fit to few rows failed
    looks: dict[str, tuple[int, Estimate]] = field(
        default_factory=dict
    )  # by family: rows, and the score after a fit to them
    afterwards: Callable[[Trial | None], float] = lambda best: 0.0

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
        for k, (family, setting) in enumerate(turns):
            if setting is family.settings[0] or not self._far_behind(family):
                self._try(family, setting, began, self._until(began, seconds), watch)
            if k + 1 == len(turns) or turns[k + 1][0].slow:
                cheap = [pair for pair in later if self._is_cheap(pair[0], seconds)]
                later = [pair for pair in later if pair not in cheap]
                self._try_close(cheap, began, seconds, watch)
        self._try_close(later, began, seconds, watch)
        self._vary(families, began, seconds, watch)
        return self.results

    def run_best(
        self, few: Search, seconds: float, watch: Callable[[list[Trial]], None] = lambda results: None
    ) -> list[Trial]:
        """Try the best settings of a search on fewer rows, then vary them; families that fell behind there are not tried."""
        began = time.perf_counter()
        self.pace = few.pace
        self._try(few.results[0].family, few.results[0].setting, began, seconds, watch)
        pairs = promising(few)
        for trial in pairs:
            end = self._until(began, seconds)
            folds = len(self.folds) * trial.cost(len(self.folds[0].train))
            if trial.family.rounds or folds <= end - (time.perf_counter() - began):
                self._try(trial.family, trial.setting, began, end, watch)
        for name in dict.fromkeys(r.family.name for r in few.results[1:]):
            own = few.best(name)
            if own is not None and own.score is not None and self.best(name) is None:
                why = f"{self.measure.name} {own.score.brief()} on {len(few.y)} rows; not tried on more"
                self.results.append(Trial(own.family, own.setting, "rough", why=why))
        self._vary(list({t.family.name: t.family for t in pairs}.values()), began, seconds, watch)
        return self.results

    def _try_close(self, pairs: list[tuple[Family, Setting]], began: float, seconds: float, watch: Any) -> None:
        """Try further settings of the families close to the best, the best family first, and of linear families."""
        order = {f.name: self._distance(f) for f, _ in pairs}
        for family, setting in sorted(pairs, key=lambda pair: order[pair[0].name]):
            if order[family.name] < CLOSE or family.rank <= LINEAR:
                self._try(family, setting, began, self._until(began, seconds), watch)

    def _far_behind(self, family: Family) -> bool:
        """True if even a much better setting of the family would not reach the best."""
        best, own = self.best(), self.best(family.name)
        if best is None or own is None or self._distance(family) < CLOSE:
            return False
        return float(np.mean(own.loss)) > FAR_BEHIND * float(np.mean(best.loss))  # type: ignore[arg-type]

    def _is_cheap(self, family: Family, seconds: float) -> bool:
        """True if cross-validation of a further setting of the family takes next to no time, judging by the best one."""
        best = self.best(family.name)
        return best is not None and len(self.folds) * best.fit_seconds <= CHEAP * seconds

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
        began = time.perf_counter()
        model = fit_model(setting, self, prep, X, self.labels(self.y[part.train]), watch)
        if family.rounds:
            self._keep_pace((time.perf_counter() - began) / model.n_iter_, X.shape)
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

    def choose(self) -> Trial:
        """The trial to fit to all rows: see :func:`hinge.learning.choosing.choose`."""
        return choose(self.results, self.folds, self.measure.root, self.simple)

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
            self.cross_validate(result, began, seconds if result is not trivial else np.inf)
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
