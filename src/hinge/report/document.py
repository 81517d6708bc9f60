"""The report as one self-contained HTML file."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any

from hinge.explain.diagnosis.findings import CODES
from hinge.report import columns, decisions, pictures, rows
from hinge.report.causes import CAUSES
from hinge.report.evidence import BoardRow, Evidence
from hinge.report.headline import headline
from hinge.report.style import SCRIPT, STYLE
from hinge.tables.notes import DIAGNOSES
from hinge.tables.number_formats import format_number, format_range

TASKS = {
    "binary": "Which of two classes?",
    "multiclass": "Which of several classes?",
    "real": "How much?",
    "count": "How many?",
}


def esc(value: Any) -> str:
    return html.escape(str(value))


def document(e: Evidence, files: Mapping[str, str] | None = None) -> str:
    """The page as HTML."""
    sections = [
        ("result", "Result", _result(e)),
        ("says", "Findings", _sentences(e)),
        ("errors", "How good it is", _errors(e)),
        ("matters", "What matters", _matters(e)),
        ("data", "The data", _data(e)),
        ("models", "The models", _models(e)),
        ("problem", "The problem", _problem(e)),
        ("proof", "The proof", _proof(e)),
        ("again", "Reproduce it", _again(e, files or {})),
        ("cures", "Causes and remedies", _cures(e)),
    ]
    shown = [(key, title, body) for key, title, body in sections if body]
    links = "".join(f'<a href="#{key}">{esc(title)}</a>' for key, title, _ in shown if title != "Result")
    body = "".join(
        f'<section id="{key}">{"" if key == "result" else f"<h2>{esc(title)}</h2>"}{content}</section>'
        for key, title, content in shown
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>{esc(e.title)}: hinge report</title><link rel="icon" href="data:,"><style>{STYLE}</style></head>
<body><main><header><div class="soft">hinge report</div><h1>Predicting {esc(e.target)}</h1>
<p class="soft">{esc(TASKS[e.task])} Learned from {esc(e.source)}: {format_number(e.rows)} rows, {len(e.columns)} columns.</p>
</header><nav>{links}</nav>{body}
<footer>Made by hinge {esc(e.versions.get("hinge", ""))} in {e.seconds:.0f} s. This file is self-contained and loads
nothing from the network.</footer></main><div id="tip" role="status"></div><script>{SCRIPT}{decisions.CHOOSER}</script></body></html>
"""


def mathematics(text: str) -> str:
    """A formula in plain text as HTML: a_b and a_{bc} become subscripts, a^(…) a superscript."""
    out = html.escape(text)
    out = re.sub(r"_\{([^}]*)\}", r"<sub>\1</sub>", out)
    return raised(re.sub(r"_(\w)", r"<sub>\1</sub>", out))


def raised(out: str) -> str:
    """HTML in which a^(…) is a superscript."""
    while (start := out.find("^(")) >= 0:
        depth = 0
        for end in range(start + 1, len(out)):
            depth += {"(": 1, ")": -1}.get(out[end], 0)
            if depth == 0:
                break
        out = f"{out[:start]}<sup>{out[start + 2 : end]}</sup>{out[end + 1 :]}"
    return out


def _tile(value: str, label: str) -> str:
    return f'<div class="tile"><b>{esc(value)}</b><span>{esc(label)}</span></div>'


def _result(e: Evidence) -> str:
    chosen = next((r for r in e.board if r.chosen), None)
    tiles = [
        _tile(e.chosen, chosen.what if chosen else "the model"),
        _tile(
            format_number(e.score),
            f"± {format_number(e.error, 2)} {e.metric}, {e.scored}",
        ),
        _tile(format_number(e.trivial), f"{e.metric} of the best constant"),
        _tile(f"{100 * e.explained:.1f} %", "of that is explained"),
    ]
    for name in ("accuracy", "ROC AUC", "R²", "mean absolute error"):
        if name in e.details and not (name == "R²" and e.task == "real"):
            tiles.append(_tile(format_number(e.details[name]), name))
    first = "".join(f"<p>{esc(sentence)}</p>" for sentence in headline(e))
    return f'<div class="lead">{first}</div><div class="tiles">{"".join(tiles)}</div><p>{esc(e.reason)} Scored on {esc(e.held_out)}; ± is one standard error.</p>'


def _code(code: str) -> str:
    return f'<a class="code" href="#{esc(code)}">{esc(code)}</a>' if code else '<span class="code">·</span>'


def _sentences(e: Evidence) -> str:
    remarks = [(code, f"{observation} {action}") for code, observation, action in e.sentences] + [
        (n.code, n.text) for n in e.notes
    ]
    found = "".join(f'<div class="say">{_code(code)}<span>{esc(text)}</span></div>' for code, text in remarks)
    found = found or "There are no findings about the data or the fit."
    facts = "".join(f"<li>{raised(esc(fact))}</li>" for fact in e.facts)
    known = f'<div class="card"><h3>What was measured</h3><ul>{facts}</ul></div>' if facts else ""
    return f'<div class="card">{found}</div>{known}'


def _problem(e: Evidence) -> str:
    return (
        '<div class="grid"><div class="card"><p>A learning problem is a hypothesis space, a loss and a penalty. Here:</p>'
        f'<div class="formula">{mathematics(e.formula)}</div><p></p><div class="formula">{mathematics(e.objective)}</div></div>'
        f'<div class="card">{pictures.target_chart(e)}</div></div>'
    )


def _data(e: Evidence) -> str:
    rows = []
    for c in e.columns:
        values = ", ".join(c["examples"]) if c["low"] is None else format_range(c["low"], c["high"])
        gaps = f"{100 * c['missing']:.1f} %" if c["missing"] else "none"
        rows.append(
            f"<tr><td>{esc(c['name'])}</td><td>{esc(c['kind'])}</td><td class='num'>{c['distinct']}</td>"
            f"<td class='num'>{gaps}</td><td class='wrap'>{esc(values)}</td></tr>"
        )
    out = "".join(
        f"<tr class='out'><td>{esc(name)}</td><td>left out</td><td></td><td class='num'></td><td class='wrap'>{esc(why)}</td></tr>"
        for name, why in e.left_out.items()
    )
    table = (
        "<table><thead><tr><th>column</th><th>kind</th><th class='num'>distinct</th><th class='num'>missing</th>"
        f"<th>values</th></tr></thead><tbody>{''.join(rows)}{out}</tbody></table>"
    )
    more = "".join(f'<div class="card">{columns.column_chart(e, c)}</div>' for c in e.pictures)
    shown = f"<h3>Column by column</h3><div class='grid small'>{more}</div>" if more else ""
    return f'<div class="card scroll">{table}</div>{shown}'


def _models(e: Evidence) -> str:
    head = (
        f"<tr><th>model</th><th class='num'>CV {esc(e.metric)} ± se</th><th class='num'>explained</th>"
        "<th class='num'>fit</th><th class='num'>predict a row</th><th class='num'>size</th><th>certificate</th></tr>"
    )
    body = "".join(_board_row(r) for r in e.board)
    sampled = (
        f"The search used {format_number(e.sample_rows)} of the {format_number(e.train_rows)} training rows. "
        if e.sample_rows < e.train_rows
        else ""
    )
    return (
        f'<div class="card"><p>{esc(e.reason)} {sampled}The last fit used all {format_number(e.rows)} rows.</p>'
        f'<div class="scroll"><table><thead>{head}</thead><tbody>{body}</tbody></table></div></div>'
        f'<div class="grid"><div class="card">{pictures.comparison(e)}</div>'
        + (f'<div class="card">{pictures.learning(e)}</div>' if e.curve else "")
        + "</div>"
    )


def _board_row(r: BoardRow) -> str:
    name = f"<td class='model'>{esc(r.name)}<div class='soft'>{esc(r.what)}; {esc(r.setting)}</div></td>"
    if r.state != "done":
        return f"<tr class='out'>{name}<td colspan='6'>{esc(r.state)}{': ' + esc(r.why) if r.why else ''}</td></tr>"
    size = f"{r.size / 1e6:.3g} MB" if r.size > 1e6 else f"{r.size / 1e3:.3g} kB"
    seconds = f"{1e3 * r.fit_seconds:.0f} ms" if r.fit_seconds < 1 else f"{r.fit_seconds:.3g} s"
    return (
        f"<tr{' class=chosen' if r.chosen else ''}>{name}<td class='num'>{format_number(r.score, 4)} ± {format_number(r.error, 2)}</td>"
        f"<td class='num'>{100 * r.explained:.1f} %</td><td class='num'>{seconds}</td>"
        f"<td class='num'>{r.predict_micros:.1f} µs</td><td class='num'>{size}</td><td>{esc(r.certificate)}</td></tr>"
    )


def _errors(e: Evidence) -> str:
    if e.task == "binary":
        charts = [pictures.roc(e), pictures.precision_recall(e), pictures.calibration(e), pictures.confusion(e)]
    elif e.task == "multiclass":
        charts = [pictures.confusion(e), pictures.calibration(e), pictures.roc(e), pictures.precision_recall(e)]
    elif e.task == "count":
        charts = [
            pictures.count_calibration(e),
            pictures.residuals(e),
            pictures.error_spread(e),
            pictures.error_curve(e),
        ]
    else:
        charts = [
            pictures.predicted_actual(e),
            pictures.residuals(e),
            pictures.error_spread(e),
            pictures.error_curve(e),
        ]
    tiles = [
        _tile(format_number(e.score, 4), f"± {format_number(e.error, 2)} {e.metric}"),
        _tile(format_number(e.trivial, 4), f"{e.metric} of the best constant"),
        *(_tile(format_number(value, 4), name) for name, value in e.details.items() if name != e.metric),
    ]
    figures = f'<div class="tiles">{"".join(tiles)}</div>'
    if e.task == "binary":
        charts += [decisions.score_spread(e), decisions.lift(e)]
    if e.classes:  # the confusion matrix, and the metrics of every class
        place = 3 if e.task == "binary" else 0
        charts[place] += decisions.class_table(e)
    chooser = f'<div class="card">{decisions.threshold_chooser(e)}</div>' if e.task == "binary" else ""
    return f'<p class="soft">On {esc(e.held_out)}.</p>{figures}<div class="grid">' + "".join(
        f'<div class="card">{c}</div>' for c in charts
    ) + f"</div>{chooser}{rows.worst_rows(e)}"  # fmt: skip


def _matters(e: Evidence) -> str:
    if not e.importances:
        return ""
    charts = [pictures.importance(e)]
    if e.words:
        charts.append(pictures.words(e))
    if e.coefficients:
        charts.append(pictures.weights(e))
    partials = [pictures.partial(e, p) for p in e.partials]
    more = ""
    if partials:
        more = (
            "<h3>The mean prediction as one column changes</h3><p class='soft'>All other columns keep their values; the band "
            "contains the middle 80 % of rows. It describes the model, not causal effects.</p><div class='grid'>"
            + "".join(f'<div class="card">{c}</div>' for c in partials)
            + "</div>"
        )
    return (
        '<div class="grid">'
        + "".join(f'<div class="card">{c}</div>' for c in charts)
        + f"</div>{more}{rows.explained_rows(e)}"
    )


def _proof(e: Evidence) -> str:
    text = e.certificate or (
        "The objective of this family is not convex, so there is no proof that the optimum was reached; the evidence "
        f"for it is the held-out score.{' The linear fits in the chart have a proof.' if e.convergence else ''}"
    )
    chart = f'<div class="card">{pictures.convergence(e)}</div>' if e.convergence else ""
    return (
        f'<div class="grid"><div class="card"><h3>Certificate</h3><p>{esc(text)}</p><p class="soft">A certificate is '
        "computed from the objective and the weights alone, by code that no solver owns: a feasible point of the dual "
        "problem gives a lower bound of the objective.</p></div>"
        f"{chart}</div>"
    )


def _again(e: Evidence, files: Mapping[str, str]) -> str:
    lines = [e.command] if e.command else []
    lines += [f"{command}" for command in files.values()]
    facts = [("seed", str(e.seed)), *e.versions.items()]
    if e.checksum:
        facts.append(("data (SHA-256)", e.checksum[:16] + "…"))
    table = "".join(f"<tr><td>{esc(k)}</td><td class='wrap'>{esc(v)}</td></tr>" for k, v in facts)
    return (
        f'<div class="grid"><div class="card"><h3>Commands</h3><pre>{esc(chr(10).join(lines))}</pre>'
        "<p class='soft'>The same data, seed and versions give the same models; which models are tried depends on the "
        f"available time.</p></div><div class='card scroll'><table><tbody>{table}</tbody></table></div></div>"
    )


def _cures(e: Evidence) -> str:
    entries = {code: (CODES[code], *CAUSES[code]) for code, _, _ in e.sentences if code}
    for note in e.notes:
        known = DIAGNOSES[note.code]
        entries[note.code] = (known.title, known.cause, known.cure)
    if not entries:
        return ""
    items = "".join(
        f'<dt id="{code}">{code} {esc(title)}</dt><dd>{esc(cause)}</dd><dd class="soft">{esc(cure)}</dd>'
        for code, (title, cause, cure) in entries.items()
    )
    return f'<div class="card"><dl class="cures">{items}</dl></div>'
