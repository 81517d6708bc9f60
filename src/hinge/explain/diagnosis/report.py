"""The report of a diagnosis: numbers in nested frozen records, and the same as text, JSON, HTML and plots."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hinge.explain.bias_variance import BiasVariance
from hinge.explain.calibration import Reliability
from hinge.explain.diagnosis.alternatives import Probe, Rival
from hinge.explain.diagnosis.data_checks import DataProblems
from hinge.explain.diagnosis.findings import Finding
from hinge.explain.diagnosis.optimisation import Optimisation
from hinge.explain.diagnosis.power_law import PowerLaw
from hinge.explain.diagnosis.prediction_bands import Reach
from hinge.explain.drift import Drift
from hinge.explain.guarantees import Guarantee
from hinge.select.estimate import Estimate, plain
from hinge.settings import shows_html

Array = np.ndarray


@dataclass(frozen=True)
class Terms:
    """held-out risk = optimisation + estimation + approximation + remainder.

    Attributes
    ----------
    optimisation : float
        R(f̃) − R(f̂): what more iterations would gain.
    estimation : float
        R(f̂) − R(f_F): what more data would gain, by the learning curve carried to infinity.
    approximation : float
        R(f_F) − R(f*), from below: what a richer class was seen to gain.
    remainder : float
        The noise, and whatever no class that was tried can reach.
    """

    optimisation: float
    estimation: float
    approximation: float
    remainder: float

    @property
    def total(self) -> float:
        return self.optimisation + self.estimation + self.approximation + self.remainder


@dataclass(frozen=True)
class Learning:
    """The learning curve and its law.

    Attributes
    ----------
    sizes : array
        Numbers of training examples.
    train, held_out : arrays of sizes × folds
        Risks.
    law : PowerLaw
        R(n) = limit + scale · n^(−exponent), fitted to ``held_out``.
    doubled : Estimate
        The expected risk with twice the largest size.
    limit : Estimate
        The expected risk with any number of examples.
    """

    sizes: Array
    train: Array
    held_out: Array
    law: PowerLaw
    doubled: Estimate
    limit: Estimate


@dataclass(frozen=True)
class RiskReport:
    """The risk of a model, its parts and the findings; made by :func:`diagnose`.

    Attributes
    ----------
    model : str
        The model, as Python would print it.
    measure : str
        How predictions are judged.
    rows, columns : int
        Of the training data.
    used_rows : int
        How many rows the experiments were made on.
    train_risk, held_out_risk : Estimate
        On the training data; on folds the model did not see.
    test_risk : Estimate or None
        On the test set.
    constant_risk : Estimate
        Of the best constant, on the same folds.
    terms : Terms
        The parts of the held-out risk.
    optimisation : Optimisation
        What the solver left, by the certificate and by a longer run.
    learning : Learning or None
        The learning curve and the law fitted to it; None if skipped.
    rivals : tuple of Rival
        Other classes on the same folds.
    probes : tuple of Probe
        The model with more and with less penalty.
    bias_variance : BiasVariance or None
        Measured by refitting to bootstrap samples; None if skipped.
    reliability : Reliability or None
        Of probabilities.
    reach : Reach or None
        A 90 % prediction interval or set.
    guarantees : tuple of Guarantee
        Bounds and exact estimates that come with this kind of model.
    data : DataProblems
        Duplicates, outliers, collinear columns and the like.
    drift : Drift or None
        How the test set differs from the training data; None without one.
    findings : tuple of Finding
        What stands out and what to do, the most urgent first.
    scale_sensitive : bool
        Whether the model would be another one if a column were measured in another unit.
    predictions : (array, array)
        Targets as the measure codes them and the predictions on held-out folds, for pictures.
    """

    model: str
    measure: str
    rows: int
    columns: int
    used_rows: int
    train_risk: Estimate
    held_out_risk: Estimate
    test_risk: Estimate | None
    constant_risk: Estimate
    terms: Terms
    optimisation: Optimisation
    learning: Learning | None
    rivals: tuple[Rival, ...]
    probes: tuple[Probe, ...]
    bias_variance: BiasVariance | None
    reliability: Reliability | None
    reach: Reach | None
    guarantees: tuple[Guarantee, ...]
    data: DataProblems
    drift: Drift | None
    findings: tuple[Finding, ...]
    scale_sensitive: bool
    predictions: tuple[Array, Array] = field(repr=False)  # coded targets and held-out output, for plots

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of the findings."""
        return tuple(f.code for f in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Everything as dictionaries, lists and numbers, for JSON."""
        answer = plain(self)
        for record, finding in zip(answer["findings"], self.findings):
            record |= {"title": finding.title, "anchor": finding.anchor}
        return answer

    def __str__(self) -> str:
        from hinge.explain.diagnosis.report_text import as_text

        return as_text(self)

    def _repr_html_(self) -> str | None:
        if not shows_html():
            return None
        from hinge.explain.diagnosis.report_text import as_html

        return as_html(self)

    def plot(self, fig: Any = None) -> Any:
        """Draw the report: parts of the risk, learning curve, bias and variance, rivals, calibration or residuals, drift.

        Returns
        -------
        matplotlib figure
        """
        from hinge.explain.diagnosis.report_plot import draw_report

        return draw_report(self, fig)
