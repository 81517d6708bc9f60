"""A report as text and as HTML."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterator

from hinge.explain.diagnosis.findings import Finding, Severity
from hinge.explain.diagnosis.report import RiskReport

COLOURS = {Severity.PROBLEM: "#b3261e", Severity.ADVICE: "#8a5a00", Severity.NOTE: "#33691e"}
TERMS = {
    "optimisation": "the solver stopped short of the optimum",
    "estimation": "too few examples for this class of functions",
    "approximation": "the class does not hold a better function (at least)",
    "remainder": "noise, and what no class tried here can reach",
}


def risk_rows(report: RiskReport) -> Iterator[tuple[str, str]]:
    """The risks as (name, number)."""
    yield "training", str(report.train_risk)
    yield "held out (folds)", str(report.held_out_risk)
    if report.test_risk is not None:
        yield "test set", str(report.test_risk)
    yield "best constant", str(report.constant_risk)
    for rival in report.rivals:
        if rival.name != "a constant":
            yield rival.name, str(rival.risk)
    solved = report.held_out_risk.value - report.terms.optimisation
    for probe in report.probes:
        yield f"{probe.parameter}={probe.tried:.3g}", f"{solved - probe.gain.value:.4g}"


def term_rows(report: RiskReport) -> Iterator[tuple[str, float, float, str]]:
    """The parts of the held-out risk, as (name, value, share, meaning)."""
    total = report.held_out_risk.value
    for name, meaning in TERMS.items():
        value = getattr(report.terms, name)
        yield name, value, value / total if total > 0 else 0.0, meaning


def fact_lines(report: RiskReport) -> Iterator[str]:
    """One sentence for each measurement."""
    yield report.optimisation.sentence
    if report.learning is not None:
        law = report.learning.law
        yield (
            f"Learning curve: R(n) = {law.limit:.4g} + {law.scale:.3g} n^(−{law.exponent:.2g}); with twice the data "
            f"{report.learning.doubled}, with any number {report.learning.limit}"
            f"{' (on its floor: the curve alone would put it lower)' if law.on_floor else ''}."
        )
    if report.bias_variance is not None:
        yield f"Resampled: {report.bias_variance}."
    if report.reliability is not None:
        r = report.reliability
        yield (
            f"Probabilities: ECE {r.ece:.3f}, Brier score {r.brier}, log loss {r.log_loss}, error rate {r.error_rate}."
        )
    if report.reach is not None:
        yield str(report.reach)
    if report.drift is not None:
        yield f"Training against test rows: a classifier tells them apart with AUC {report.drift.auc:.3f}."
    for promise in report.guarantees:
        yield str(promise)


def parts_sentence(report: RiskReport) -> str:
    """The main sources of the risk in one sentence."""
    solver, rows = report.terms.optimisation, report.terms.estimation
    total = report.held_out_risk.value
    share = f" ({100 * rows / total:.0f} %)" if total > 0 else ""
    return (
        f"Of the held-out {report.measure} of {report.held_out_risk}, {solver:.2g} is due to the solver and "
        f"{rows:.2g}{share} to the number of rows; the rest is noise and what this family cannot express."
    )


def as_text(report: RiskReport) -> str:
    """The report for a terminal."""
    lines = [f"{report.model} on {report.rows} rows × {report.columns} columns, judged by the {report.measure}"]
    if report.used_rows < report.rows:
        lines.append(f"(experiments on a random {report.used_rows} of the rows)")
    lines += ["", "Risk"]
    lines += [f"  {name:<22} {value}" for name, value in risk_rows(report)]
    lines += ["", "Where it comes from"]
    lines += [f"  {name:<14} {v:>10.4g}  {100 * share:5.1f} %  {why}" for name, v, share, why in term_rows(report)]
    lines += ["", "What is known"]
    for sentence in fact_lines(report):
        lines += textwrap.wrap(sentence, 110, initial_indent="  ", subsequent_indent="    ")
    lines += ["", "What to do"]
    for finding in report.findings:
        lines += textwrap.wrap(str(finding), 110, initial_indent="  ", subsequent_indent="       ")
    return "\n".join(lines)


def _finding(finding: Finding) -> str:
    colour = COLOURS[finding.severity]
    return (
        f'<li><b style="color:{colour}">{finding.code} {html.escape(finding.title)}</b> '
        f"{html.escape(finding.evidence)} <i>{html.escape(finding.action)}</i></li>"
    )


def _table(rows: list[str]) -> str:
    return f'<table style="border-collapse:collapse">{"".join(rows)}</table>'


def as_html(report: RiskReport) -> str:
    """The report as a self-contained HTML fragment."""
    risks = [f"<tr><td>{html.escape(name)}</td><td>{html.escape(v)}</td></tr>" for name, v in risk_rows(report)]
    terms = [
        f"<tr><td>{name}</td><td>{v:.4g}</td>"
        f'<td style="width:12em"><div style="background:#4a6fa5;height:.8em;width:{max(0.0, min(100.0, 100 * share)):.1f}%">'
        f"</div></td><td>{100 * share:.1f} %</td><td>{html.escape(why)}</td></tr>"
        for name, v, share, why in term_rows(report)
    ]
    facts = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in fact_lines(report))
    findings = "".join(_finding(f) for f in report.findings)
    return (
        f'<div class="hinge-report"><h3>{html.escape(report.model)}</h3>'
        f"<p>{report.rows} rows × {report.columns} columns, judged by the {html.escape(report.measure)}</p>"
        f"<h4>What to do</h4><ul>{findings}</ul><h4>Risk</h4>{_table(risks)}"
        f"<h4>Where it comes from</h4>{_table(terms)}<h4>What is known</h4><ul>{facts}</ul></div>"
    )
