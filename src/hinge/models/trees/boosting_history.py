"""Boosting round by round: training, out-of-bag and validation losses, and the stopping rules."""

from __future__ import annotations

import copy
import sys
import time
from typing import Any

import numpy as np

from hinge.models.trees.arrays import Trees
from hinge.models.trees.boosting_loss import BoostedLoss
from hinge.problem.losses import Logistic, Squared
from hinge.problem.losses.native import native_loss


def stops_by_reference(losses: list[float], patience: int, tol: float) -> bool:
    """Whether none of the last ``patience`` losses is below the one before them by more than ``tol``."""
    return len(losses) > patience and min(losses[-patience:]) >= losses[-patience - 1] - tol


def stops_by_window(losses: list[float], patience: int, tol: float) -> bool:
    """Whether the last loss is below none of the ``patience`` losses before it, without the one before round 1."""
    return len(losses) > patience + 1 and losses[-1] + tol >= max(losses[-patience - 1 : -1])


class Progress:
    """Lines on standard output, in the format of scikit-learn's GradientBoosting.

    With ``verbose=1`` it prints rounds 1 … 10, then every tenth up to 100, and so on; with ``verbose=2`` every round.
    """

    def __init__(self, verbose: int, rounds: int, done: int, *, samples: bool) -> None:
        self.verbose, self.rounds, self.done, self.every = verbose, rounds, done, 1
        self.began = time.perf_counter()
        names = ["Train Loss", *(["OOB Improve"] if samples else []), "Remaining Time"]
        print(f"{'Iter':>10s} " + " ".join(f"{name:>16s}" for name in names))

    def line(self, round_: int, losses: list[float]) -> None:
        i = round_ - self.done
        if (i + 1) % self.every == 0:
            per_round = (time.perf_counter() - self.began) / (i + 1)
            left = (self.rounds - round_ - 1) * per_round
            text = f"{left / 60:.2f}m" if left > 60 else f"{left:.2f}s"
            print(f"{round_ + 1:10d} " + " ".join(f"{v:16.4f}" for v in losses) + f" {text:>16s}")
        if self.verbose == 1 and (i + 1) // (self.every * 10) > 0:
            self.every *= 10


class History:
    """Losses by round, the progress line, and the stopping rule.

    Training losses cost a pass over the rows in each round, so they are recorded only with ``verbose`` or if the number of
    rounds is given as ``n_estimators``.

    With ``n_estimators`` it records the squared error and the binomial deviance, twice the losses that are minimised.

    Both rules are scikit-learn's. With v₀ the loss before the first round, vₜ that after round t and p the patience,
    boosting stops when

        max_iter:      t ≥ p and min(vₜ₋ₚ₊₁ … vₜ) ≥ vₜ₋ₚ − tol        (HistGradientBoosting)
        n_estimators:  t > p and vₜ + tol ≥ max(vₜ₋ₚ … vₜ₋₁)           (GradientBoosting)
    """

    has_out_of_bag = True  # whether the out-of-bag rows of a round are available

    def __init__(self, estimator: Any, loss: BoostedLoss, watch: Any, booster: Any) -> None:
        self.estimator, self.loss, self.watch, self.booster = estimator, loss, watch, booster
        continued = bool(estimator._grown)
        classic = estimator.n_estimators is not None
        self.records = bool(estimator.verbose) or classic
        half = loss.outputs == 1 and isinstance(loss.definition, (Squared, Logistic))
        self.unit = 2.0 if classic and half else 1.0
        self.native = native_loss(loss.definition) if loss.outputs == 1 else None
        self.samples = self.records and estimator.subsample < 1 and self.has_out_of_bag
        earlier = vars(estimator) if continued else {}
        self.train: list[float] = list(earlier.get("train_score_", ()))
        # Out-of-bag losses after each round, and their decrease in the round.
        self.outside: list[float] = list(earlier.get("oob_scores_", ()))
        self.falls: list[float] = list(earlier.get("oob_improvement_", ()))
        if self.samples and not self.outside:  # earlier rounds used all rows
            self.outside, self.falls = [0.0] * len(self.train), [0.0] * len(self.train)
        self.validation: list[float] = []  # losses, or negative scores
        self.before: Any = booster.scores().T if self.samples else None
        self.progress = None
        if estimator.verbose and classic:
            rounds = estimator.rounds
            self.progress = Progress(int(estimator.verbose), rounds, len(self.train), samples=self.samples)
        self.scorer = None
        if watch is not None:
            self.scorer = self._scorer()
            self._begin(continued=False)
            self.start = self._validation_loss()
            if continued:
                self._begin(continued=True)
                if len(earlier.get("validation_score_", ())) == estimator.n_iter_:
                    self.validation = list(self._sign * earlier["validation_score_"])

    @property
    def _sign(self) -> float:
        """The sign between validation losses and ``validation_score_``."""
        return 1.0 if self.scorer is None else -1.0

    def _begin(self, continued: bool) -> None:
        """Computes the scores of the held-out rows before the first round."""
        start = self.estimator._raw if continued else self.estimator._start
        self.scores = start(self.watch[0])

    def _follow(self, grown: list[dict[str, np.ndarray]]) -> None:
        """Updates these scores with the trees of one round."""
        Trees.stack(grown, self.loss.outputs, additive=True).add(self.watch[0], self.scores)

    def _validation_loss(self) -> float:
        """The loss, or the negative score, on the held-out rows after the current round."""
        _, target, w = self.watch
        return self.unit * self.loss.mean(target, self.scores, w) if self.scorer is None else -self.scorer()

    def _scorer(self) -> Any:
        """A function that scores the held-out rows after the current round; None if the score is the loss."""
        e = self.estimator
        if isinstance(e.scoring, str) and e.scoring == "loss":
            return None
        from sklearn.metrics import check_scoring

        X, target, w = self.watch
        weighted = {} if w is None else {"sample_weight": w}
        now, scorer, labels = copy.copy(e), check_scoring(e, e.scoring), e._decode(target)
        now._scores = lambda _: self.scores  # the model of the current round
        return lambda: float(scorer(now, X, labels, **weighted))

    def stop(self, grown: list[dict[str, np.ndarray]], round_: int, y: Any, weight: Any) -> bool:
        e = self.estimator
        if self.records:
            self._record(y, weight)
        if self.watch is not None:
            self._follow(grown)
            self.validation.append(self._validation_loss())
        if self.progress is not None:
            self.progress.line(round_, [self.train[-1], *self.falls[-1:]] if self.samples else self.train[-1:])
        elif e.verbose:
            validation = f", validation {self.validation[-1]:.6g}" if self.validation else ""
            print(f"round {round_ + 1}: train {self.train[-1]:.6g}{validation}", file=sys.stderr)
        if self.watch is None:
            return False
        rule = stops_by_reference if e.n_estimators is None else stops_by_window
        return rule([self.start, *self.validation], e.patience, e.tol)

    def _record(self, y: Any, weight: Any) -> None:
        self.train.append(self.unit * self.booster.mean_loss(self.native))
        if not self.samples:
            return
        scores = self.booster.scores().T
        out = self.booster.left_out()
        w = None if weight is None else weight[out]
        before, after = (
            self.unit * self.loss.mean(y[out], s[out], w) if len(out) else np.nan for s in (self.before, scores)
        )
        self.outside.append(after)
        self.falls.append(before - after)
        self.before = scores

    def keep(self) -> None:
        """Stores the recorded losses as attributes of the estimator."""
        e = self.estimator
        e.train_score_ = np.array(self.train)
        e.validation_score_ = self._sign * np.array(self.validation)
        for name, values in (("oob_scores_", self.outside), ("oob_improvement_", self.falls)):
            vars(e).pop(name, None)
            if self.samples:
                setattr(e, name, np.array(values))
        vars(e).pop("oob_score_", None)
        if self.samples:
            e.oob_score_ = self.outside[-1]
