"""Plots of learning and validation curves."""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge.explain.curves import LearningCurve, ValidationCurve, learning_curve, validation_curve
from hinge.explain.diagnosis.power_law import PowerLaw
from hinge.explain.plots.axes import axes_or_new

Array = np.ndarray


class _CurveDisplay:
    """Two lines, training and test, each with a band of one standard deviation over folds."""

    train_scores: Array
    test_scores: Array
    ax_: Any
    figure_: Any
    lines_: list[Any]
    fill_between_: list[Any]

    def _draw(self, ax: Any, x: Array, xlabel: str, ylabel: str, log: bool) -> None:
        self.ax_ = ax = axes_or_new(ax)
        self.figure_ = ax.figure
        self.lines_, self.fill_between_ = [], []
        for scores, name in ((self.train_scores, "Train"), (self.test_scores, "Test")):
            mean, spread = scores.mean(axis=1), scores.std(axis=1)
            (line,) = ax.plot(x, mean, "o-", label=name)
            self.lines_.append(line)
            self.fill_between_.append(ax.fill_between(x, mean - spread, mean + spread, alpha=0.3))
        if log:
            ax.set_xscale("log")
        ax.set_xlabel(xlabel)
        ax.set_ylabel(ylabel)
        ax.legend()


class LearningCurveDisplay(_CurveDisplay):
    """A plot of a learning curve.

    Parameters
    ----------
    train_sizes, train_scores, test_scores : arrays
        The curve, as from :func:`learning_curve`.
    score_name : str
        The name of the vertical axis.
    law : PowerLaw, optional
        Of the test error; drawn beyond the data if the score is 1 − error or −error.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    lines_ : list
        Training, test, and the law if there is one.

    Examples
    --------
    >>> import hinge as hg
    >>> X, y = hg.generators.LinearGaussian([1.0, 2.0, 3.0]).sample(100)
    >>> display = hg.plots.LearningCurveDisplay.from_estimator(hg.Ridge(), X, y)
    >>> len(display.lines_)
    2
    """

    def __init__(
        self, *, train_sizes: Array, train_scores: Array, test_scores: Array, score_name: str = "score",
        law: PowerLaw | None = None,
    ) -> None:  # fmt: skip
        self.train_sizes, self.train_scores, self.test_scores = train_sizes, train_scores, test_scores
        self.score_name, self.law = score_name, law

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, extrapolate: bool = False, ax: Any = None, **options: Any
    ) -> LearningCurveDisplay:
        """Compute and draw; ``options`` are passed to :func:`learning_curve`."""
        return cls.from_curve(learning_curve(estimator, X, y, **options), extrapolate=extrapolate, ax=ax)

    @classmethod
    def from_curve(cls, curve: LearningCurve, *, extrapolate: bool = False, ax: Any = None) -> LearningCurveDisplay:
        """Draw a computed curve; ``extrapolate`` extends its law to ten times as many examples."""
        display = cls(
            train_sizes=curve.train_sizes, train_scores=curve.train_scores, test_scores=curve.test_scores,
            score_name=curve.scoring, law=curve.law() if extrapolate else None,
        )  # fmt: skip
        return display.plot(ax)

    def plot(self, ax: Any = None) -> LearningCurveDisplay:
        """Draw."""
        self._draw(ax, self.train_sizes, "Number of training examples", self.score_name, self.law is not None)
        if self.law is not None:
            n = np.geomspace(self.train_sizes[0], 10.0 * self.train_sizes[-1], 100)
            top = 0.0 if self.score_name.startswith("neg_") else 1.0
            (line,) = self.ax_.plot(n, [top - self.law(m) for m in n], "--", color="grey", label="law")
            self.lines_.append(line)
            self.ax_.legend()
        return self


class ValidationCurveDisplay(_CurveDisplay):
    """A plot of a validation curve.

    Parameters
    ----------
    param_name : str
        The parameter that was varied.
    param_range : sequence
        Its values.
    train_scores, test_scores : arrays
        Scores for every value and fold, as from :func:`validation_curve`.
    score_name : str
        The name of the vertical axis.

    Attributes
    ----------
    ax_, figure_, lines_

    Examples
    --------
    >>> import hinge as hg
    >>> X, y = hg.generators.SineCurve().sample(80)
    >>> display = hg.plots.ValidationCurveDisplay.from_estimator(
    ...     hg.DecisionTreeRegressor(), X, y, param_name="max_depth", param_range=[1, 2, 4]
    ... )
    >>> display.lines_[0].get_xdata().tolist()
    [1, 2, 4]
    """

    def __init__(
        self, *, param_name: str, param_range: Any, train_scores: Array, test_scores: Array, score_name: str = "score"
    ) -> None:
        self.param_name, self.param_range = param_name, param_range
        self.train_scores, self.test_scores, self.score_name = train_scores, test_scores, score_name

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, param_name: str, param_range: Any, ax: Any = None, **options: Any
    ) -> ValidationCurveDisplay:
        """Compute and draw; ``options`` are passed to :func:`validation_curve`."""
        curve = validation_curve(estimator, X, y, param_name=param_name, param_range=param_range, **options)
        return cls.from_curve(curve, ax=ax)

    @classmethod
    def from_curve(cls, curve: ValidationCurve, *, ax: Any = None) -> ValidationCurveDisplay:
        """Draw a computed curve."""
        return cls(
            param_name=curve.param_name, param_range=curve.param_range, train_scores=curve.train_scores,
            test_scores=curve.test_scores,
        ).plot(ax)  # fmt: skip

    def plot(self, ax: Any = None) -> ValidationCurveDisplay:
        """Draw; values that are not numbers are evenly spaced."""
        numbers = all(isinstance(v, int | float | np.number) for v in self.param_range)
        x = np.asarray(self.param_range) if numbers else np.arange(len(self.param_range))
        log = numbers and x.min() > 0 and x.max() / x.min() > 50
        self._draw(ax, x, self.param_name, self.score_name, bool(log))
        if not numbers:
            self.ax_.set_xticks(x, [str(v) for v in self.param_range])
        return self
