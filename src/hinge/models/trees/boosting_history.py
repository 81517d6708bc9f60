"""Boosting round by round: losses on the training rows, out of the sample and on held-out rows, and when to stop."""

from __future__ import annotations

import copy
import sys
from typing import Any

import numpy as np

from hinge.models.trees.arrays import Trees
from hinge.models.trees.boosting_loss import BoostedLoss
from hinge.problem.losses.native import native_loss


def stops_by_reference(losses: list[float], patience: int, tol: float) -> bool:
    """Whether none of the last ``patience`` losses is below the one before them by more than ``tol``."""
    return len(losses) > patience and min(losses[-patience:]) >= losses[-patience - 1] - tol


def stops_by_window(losses: list[float], patience: int, tol: float) -> bool:
    """Whether the last loss is below none of the ``patience`` losses before it, that before round 1 not counted."""
    return len(losses) > patience + 1 and losses[-1] + tol >= max(losses[-patience - 1 : -1])


class History:
    """Losses by round, the progress line, and when to stop.

    Training losses cost a pass over the rows each round: they are recorded on request, by ``verbose`` or by naming
    the rounds as scikit-learn's GradientBoosting does.

    Both rules are scikit-learn's. With v₀ the loss before the first round, vₜ that after round t and p the patience,
    boosting stops when

        max_iter:      t ≥ p and min(vₜ₋ₚ₊₁ … vₜ) ≥ vₜ₋ₚ − tol        (HistGradientBoosting)
        n_estimators:  t > p and vₜ + tol ≥ max(vₜ₋ₚ … vₜ₋₁)           (GradientBoosting)
    """

    def __init__(self, estimator: Any, loss: BoostedLoss, watch: Any, booster: Any) -> None:
        self.estimator, self.loss, self.watch, self.booster = estimator, loss, watch, booster
        continued = bool(estimator._grown)
        self.records = bool(estimator.verbose) or estimator.n_estimators is not None
        self.native = native_loss(loss.definition) if loss.outputs == 1 else None
        self.samples = self.records and estimator.subsample < 1
        earlier = vars(estimator) if continued else {}
        self.train: list[float] = list(earlier.get("train_score_", ()))
        # Losses of the rows out of a round's sample after it, and how much they fell by it.
        self.outside: list[float] = list(earlier.get("oob_scores_", ()))
        self.falls: list[float] = list(earlier.get("oob_improvement_", ()))
        self.validation: list[float] = []
        self.before: Any = booster.scores().T if self.samples else None
        self.judge = None
        if watch is not None:
            self.judge = self._scorer()
            self.scores = estimator._raw(watch[0]) if continued else estimator._start(watch[0])
            self.start = self._judged()

    def _judged(self) -> float:
        """The held-out loss, or minus the score, of the present round."""
        _, target, w = self.watch
        return self.loss.mean(target, self.scores, w) if self.judge is None else -self.judge()

    def _scorer(self) -> Any:
        """The score of the held-out rows after this round; None if it is the loss."""
        e = self.estimator
        if isinstance(e.scoring, str) and e.scoring == "loss":
            return None
        from sklearn.metrics import check_scoring

        X, target, w = self.watch
        weighted = {} if w is None else {"sample_weight": w}
        now, scorer, labels = copy.copy(e), check_scoring(e, e.scoring), e._decode(target)
        now._scores = lambda _: self.scores  # predicts as the model of this round would
        return lambda: float(scorer(now, X, labels, **weighted))

    def stop(self, grown: list[dict[str, np.ndarray]], round_: int, y: np.ndarray, weight: Any) -> bool:
        e = self.estimator
        if self.records:
            self._record(y, weight)
        if self.watch is not None:
            Trees.stack(grown, self.loss.outputs, additive=True).add(self.watch[0], self.scores)
            self.validation.append(self._judged())
        if e.verbose:
            seen = f", validation {self.validation[-1]:.6g}" if self.validation else ""
            print(f"round {round_ + 1}: train {self.train[-1]:.6g}{seen}", file=sys.stderr)
        if self.watch is None:
            return False
        rule = stops_by_reference if e.n_estimators is None else stops_by_window
        return rule([self.start, *self.validation], e.patience, e.tol)

    def _record(self, y: np.ndarray, weight: Any) -> None:
        self.train.append(self.booster.mean_loss(self.native))
        if not self.samples:
            return
        scores = self.booster.scores().T
        out = self.booster.left_out()
        w = None if weight is None else weight[out]
        before, after = (self.loss.mean(y[out], s[out], w) if len(out) else np.nan for s in (self.before, scores))
        self.outside.append(after)
        self.falls.append(before - after)
        self.before = scores

    def keep(self) -> None:
        """What was seen becomes attributes of the estimator."""
        e = self.estimator
        e.train_score_ = np.array(self.train)
        e.validation_score_ = np.array(self.validation) * (1.0 if self.judge is None else -1.0)
        for name, values in (("oob_scores_", self.outside), ("oob_improvement_", self.falls)):
            vars(e).pop(name, None)
            if self.samples:
                setattr(e, name, np.array(values))
        vars(e).pop("oob_score_", None)
        if self.samples:
            e.oob_score_ = self.outside[-1]
