"""Findings and advice from the numbers of a report.

A rule reports a finding only if it is significant (95 %, including the error of the folds) and large enough to matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hinge.explain.diagnosis.alternatives import Rival
from hinge.explain.diagnosis.data_checks import DataProblems
from hinge.explain.diagnosis.findings import Finding, Severity
from hinge.explain.diagnosis.report import RiskReport
from hinge.explain.drift import Drift
from hinge.select.estimate import Estimate, mean_of

# A smaller relative change of the risk is not worth a user's time.
WORTH = 0.03
# A held-out risk below this fraction of the constant's indicates that the columns contain the target.
EXACT = 1e-6


def advise(report: RiskReport) -> tuple[Finding, ...]:
    """All findings, problems first, in the order of the rules."""
    rules: tuple[Callable[[RiskReport], Iterator[Finding]], ...] = (
        _optimisation, _drift, _data_problems, _penalty, _richer, _more_data, _calibration, _data_notes,
    )  # fmt: skip
    if report.held_out_risk.value < EXACT * report.constant_risk.value:
        rules = (_optimisation, _drift, _exact, _data_problems)  # there is nothing to improve
    found = [finding for rule in rules for finding in rule(report)]
    if not any(f.severity is not Severity.NOTE for f in found):
        found.insert(0, _all_well(report))
    order = list(Severity)
    return tuple(sorted(found, key=lambda f: order.index(f.severity)))


def _matters(gain: Estimate, risk: float, worth: float = WORTH) -> bool:
    return gain.clear and gain.value >= worth * risk


def _percent(part: float, total: float) -> str:
    return f"{100 * part / total:.0f} %" if total > 0 else "all"


def _names(names: tuple[str, ...], most: int = 5) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def _optimisation(report: RiskReport) -> Iterator[Finding]:
    found = report.optimisation
    if found.converged is not False:
        return
    gain = found.gain
    effect = ""
    if gain is not None:
        effect = (
            f" With far more iterations the held-out risk falls by {gain}."
            if _matters(gain, report.held_out_risk.value, 0.01)
            else " With far more iterations the held-out risk stays much the same."
        )
    limit = f" (now {found.max_iter})" if found.max_iter else ""
    action = f"Raise max_iter{limit}."
    if report.data.scale_ratio > 100:
        action += (
            f" The columns differ in scale by a factor of {report.data.scale_ratio:.0g}: bring them to one scale first."
        )
    code = "H101" if found.proof in ("gap", "stationarity") else "H102"
    yield Finding(code, Severity.PROBLEM, found.sentence + effect, action)


def _drift(report: RiskReport) -> Iterator[Finding]:
    test, held = report.test_risk, report.held_out_risk
    if report.drift is not None:
        yield from _drift_of(report.drift)
    if test is None:
        return
    excess = Estimate(test.value - held.value, (test.standard_error**2 + held.standard_error**2) ** 0.5)
    if _matters(excess, held.value, 0.1):
        cause = (
            "The drift explains it."
            if report.drift is not None and report.drift.found
            else "The rows look alike, so either the folds leak (groups, time, duplicates) or y depends on x differently there."
        )
        yield Finding(
            "H403", Severity.PROBLEM,
            f"The risk on the test set is {test}, on folds of the training data {held}.",
            f"{cause} Split by time or by group, as the model will be used, before trusting any other number here.",
        )  # fmt: skip


def _drift_of(drift: Drift) -> Iterator[Finding]:
    if drift.found:
        most = [c for c in drift.columns if c.p < 0.01]
        listed = (
            "; ".join(f"{c.name} ({c.test} {c.statistic:.2f})" for c in most[:4]) or "no single column, only together"
        )
        yield Finding(
            "H401", Severity.PROBLEM,
            f"A classifier tells test rows from training rows with AUC {drift.auc:.2f}. Columns that differ: {listed}.",
            "Train on rows like those to be predicted (newer ones, or weighted ones), or drop or re-express these columns.",
        )  # fmt: skip
    if drift.target is not None and drift.target.p < 1e-3 and drift.target.statistic > 0.1:
        yield Finding(
            "H402", Severity.ADVICE,
            f"The targets are distributed differently in the test set ({drift.target.test} {drift.target.statistic:.2f}).",
            "Find out why. If only the shares of classes moved, weigh the training rows, or shift the probabilities, to match.",
        )  # fmt: skip


def _exact(report: RiskReport) -> Iterator[Finding]:
    if not report.data.leaks and report.data.duplicates_across_folds < 0.1:  # otherwise these are the reason
        yield Finding(
            "H501", Severity.PROBLEM,
            f"On rows it has not seen the model is exact ({report.held_out_risk.value:.2g}; a constant has "
            f"{report.constant_risk.value:.2g}): the target can be computed from the columns.",
            "Find the columns it was made from, and ask whether they are known when predictions are made.",
        )  # fmt: skip


def _data_problems(report: RiskReport) -> Iterator[Finding]:
    data = report.data
    if data.leaks:
        listed = _names(tuple(f"{name} ({100 * share:.0f} %)" for name, share in data.leaks))
        yield Finding(
            "H501", Severity.PROBLEM,
            f"One column alone explains nearly all of the target: {listed}.",
            "If it is not known when predictions are made, remove it; all risks here are too good otherwise.",
        )  # fmt: skip
    if data.duplicates_across_folds > 0.01:
        yield Finding(
            "H502", _leak_severity(data.duplicates_across_folds),
            f"{100 * data.duplicates_across_folds:.1f} % of held-out rows have an identical twin in the training rows.",
            "Drop duplicates, or pass groups= so that twins stay on one side; held-out risks are too low otherwise.",
        )  # fmt: skip
    if data.duplicates_in_test is not None and data.duplicates_in_test > 0.01:
        yield Finding(
            "H503", _leak_severity(data.duplicates_in_test),
            f"{100 * data.duplicates_in_test:.1f} % of test rows are also training rows.",
            "Remove them from one side; the test risk is too low otherwise.",
        )  # fmt: skip
    if data.ids:
        yield Finding(
            "H506", Severity.ADVICE, f"Another value in every row, like an id: {_names(data.ids)}.",
            "Remove it: it cannot help on new rows and trees may learn it by heart.",
        )  # fmt: skip


def _leak_severity(share: float) -> Severity:
    return Severity.PROBLEM if share > 0.1 else Severity.ADVICE


def _penalty(report: RiskReport) -> Iterator[Finding]:
    held, train = report.held_out_risk, report.train_risk
    gains = [p for p in report.probes if _matters(p.gain, held.value)]
    best = max(gains, key=lambda p: p.gain.value, default=None)
    spread = held.value - train.value
    if best is not None and not best.more:
        yield Finding(
            "H203", Severity.ADVICE,
            f"With {best.parameter}={best.tried:.3g} instead of {best.value:.3g} the held-out risk falls by {best.gain}.",
            "Use less penalty, and choose it by cross-validation.",
        )  # fmt: skip
        return
    gap = Estimate(spread, (held.standard_error**2 + train.standard_error**2) ** 0.5)
    variance = report.bias_variance
    # A large gap alone does no harm (forests and boosted trees have one): there must be variance as well.
    shaky = (
        report.terms.estimation > 0.1 * held.value if variance is None else variance.variance.value > 0.1 * held.value
    )
    wide = _matters(gap, held.value, 0.2) and shaky
    worse = any(r.name == "a constant" and r.advantage.clear for r in report.rivals)
    if best is None and not (wide or worse):
        return
    observed = (
        f"The risk is {train.value:.4g} on the training rows and {held.value:.4g} on rows the model has not seen."
    )
    if worse:
        observed += " Predicting a constant does better."
    if variance is not None:
        observed += f" {_percent(variance.variance.value, variance.risk.value)} of the resampled risk is variance."
    if best is not None:
        action = (
            f"More penalty: {best.parameter}={best.tried:.3g} instead of {best.value:.3g} lowers the held-out risk by "
            f"{best.gain}. Choose it by cross-validation."
        )
    elif report.probes:
        action = (
            "Another strength of the penalty does not help: fewer or better features, averaging, or more data would."
        )
    else:
        action = (
            "Hold the model back (a penalty, a smaller class, fewer features), average several fits, or get more data."
        )
    grave = worse or (best is not None and best.gain.value > 0.1 * held.value)
    yield Finding("H201", Severity.PROBLEM if grave else Severity.ADVICE, observed, action)


def _richer(report: RiskReport) -> Iterator[Finding]:
    held = report.held_out_risk
    richer = [r for r in report.rivals if r.name != "a constant"]
    best = max(richer, key=lambda r: r.advantage.value, default=None)
    if best is not None and not (_matters(best.advantage, held.value, 0.05) and _too_small(report, best)):
        best = None
    constant = next((r for r in report.rivals if r.name == "a constant"), None)
    if constant is not None and constant.advantage.high > 0 and report.train_risk.value > 0.5 * constant.risk.value:
        yield Finding(
            "H302", Severity.PROBLEM,
            f"The held-out risk is {held}; predicting a constant has {constant.risk}.",
            f"Another class finds something ({best.name}: {best.risk})." if best is not None else
            "No class that was tried finds anything either: are these the right inputs, in the right order of rows?",
        )  # fmt: skip
    if best is None:
        return
    yield Finding(
        "H301", Severity.ADVICE,
        f"On the same folds {best.name} has a risk of {best.risk}, lower by {best.advantage} "
        f"({_percent(best.advantage.value, held.value)}); this model has {report.train_risk.value:.4g} even on the rows "
        "it was fitted to.",
        f"Use a richer class: squares and products of columns, buckets of them, or {best.name}.",
    )  # fmt: skip


def _too_small(report: RiskReport, rival: Rival) -> bool:
    """Whether the class of functions is too small: its training risk is above the rival's held-out risk, or it is far from
    an exact fit and its learning curve ends well above the rival."""
    held, train = report.held_out_risk.value, report.train_risk.value
    if train >= rival.risk.value:
        return True
    enough = 0.05 if train > 0.7 * held else 0.2
    return train >= 0.5 * rival.risk.value and report.terms.approximation >= enough * held


def _more_data(report: RiskReport) -> Iterator[Finding]:
    learning = report.learning
    if learning is None:
        return
    now = learning.law(float(learning.sizes[-1]))
    decrease = Estimate(now - learning.doubled.value, learning.doubled.standard_error)
    if decrease.value >= WORTH * now and _is_falling(report):
        yield Finding(
            "H202", Severity.ADVICE,
            f"The learning curve still falls: with twice the rows the risk should be about {learning.doubled.value:.4g} "
            f"instead of {now:.4g} ({_percent(decrease.value, now)} less), with any number {learning.limit.value:.4g}.",
            "Get more data, if rows are cheap.",
        )  # fmt: skip
    elif decrease.high < 2 * WORTH * now:
        yield Finding(
            "H204", Severity.NOTE,
            f"The learning curve is flat: twice the rows would lower the risk by about {_percent(max(decrease.value, 0), now)}.",
            "Spend effort on features or the class of functions, not on more rows.",
        )  # fmt: skip


def _is_falling(report: RiskReport) -> bool:
    """Whether the last step of the learning curve decreases significantly, fold by fold."""
    curve = report.learning.held_out if report.learning is not None else None
    return curve is not None and mean_of(curve[-3] - curve[-1]).low > 0


def _calibration(report: RiskReport) -> Iterator[Finding]:
    r = report.reliability
    if r is not None and r.off:
        manner = (
            "more extreme than the facts bear out" if r.overconfident else "less decided than the facts would allow"
        )
        yield Finding(
            "H601", Severity.ADVICE,
            f"Probabilities are off by {r.ece:.3f} on average (ECE): they are {manner}.",
            "Calibrate them on held-out rows (sigmoid, isotonic or temperature); their order is not affected.",
        )  # fmt: skip


def _data_notes(report: RiskReport) -> Iterator[Finding]:
    data: DataProblems = report.data
    if data.constant:
        yield Finding(
            "H504", Severity.NOTE, f"The same value in every row: {_names(data.constant)}.", "Remove these columns."
        )
    if data.copies:
        listed = _names(tuple(f"{one} = {two}" for one, two in data.copies))
        yield Finding(
            "H505", Severity.NOTE, f"Columns that are the same but for scale: {listed}.",
            "Remove one of each pair: weights and importances are shared out between them at will.",
        )  # fmt: skip
    if data.smallest_class is not None and (data.smallest_class < 0.05 or (data.smallest_class_count or 0) < 20):
        yield Finding(
            "H507", Severity.NOTE,
            f"The rarest class has {data.smallest_class_count} rows ({100 * data.smallest_class:.2g} %).",
            "Judge by precision and recall or by the Brier score, not by accuracy; keep the folds stratified; weigh the "
            "classes only if errors on them cost more.",
        )  # fmt: skip
    # An overconfident model doubts every target it gets wrong.
    if data.doubtful and not (report.reliability is not None and report.reliability.off):
        rows = ", ".join(map(str, data.doubtful[:5])) + (" …" if data.doubtful_count > 5 else "")
        expected = data.doubtful_expected
        chance = f" ({expected:.0f} would be so if its probabilities were right)" if expected is not None else ""
        yield Finding(
            "H508", Severity.NOTE,
            f"{data.doubtful_count} targets are far from what a model that has not seen them expects{chance}: rows {rows}.",
            "Look at them: they are errors in the data, or the cases the model is missing something about.",
        )  # fmt: skip
    if data.scale_ratio > 1e3 and report.scale_sensitive and report.optimisation.converged is not False:
        yield Finding(
            "H510", Severity.NOTE,
            f"The columns differ in scale by a factor of {data.scale_ratio:.0g}, and this model depends on their scale.",
            "Bring them to one scale, inside a pipeline.",
        )  # fmt: skip
    if data.conflict > 0.1 * report.held_out_risk.value:
        yield Finding(
            "H509", Severity.NOTE,
            f"Rows with equal inputs have different targets; no predictor can have a risk below {data.conflict:.4g} on these rows.",
            "What tells them apart is not among the columns.",
        )  # fmt: skip


def _all_well(report: RiskReport) -> Finding:
    gap = report.optimisation
    proof = "the optimum was reached, " if gap.converged else ""
    return Finding(
        "H001", Severity.NOTE,
        f"As far as these checks see, {proof}no class that was tried does clearly better, and no problem of the data "
        "stands out.",
        f"What remains ({_percent(report.terms.remainder, report.held_out_risk.value)} of the risk) looks like noise: "
        "new columns would be the way to lower it.",
    )  # fmt: skip
