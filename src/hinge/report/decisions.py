"""Decisions from class probabilities: metrics by class, lift, distributions of scores, and the threshold of least cost."""

from __future__ import annotations

import html
import json

import numpy as np

from hinge.report.charts import Chart
from hinge.report.evidence import Evidence
from hinge.report.pictures import wilson
from hinge.tables.number_formats import format_number

CUTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
MOST_CLASSES, MOST_STEPS = 30, 200


def class_table(e: Evidence) -> str:
    """Precision, recall and F1 of every class, with 95 % intervals."""
    guess, y = np.argmax(e.prediction, axis=1), e.y.astype(np.int64)
    counts = np.bincount(y, minlength=len(e.classes))
    shown = (
        np.argsort(-counts, kind="stable")[:MOST_CLASSES] if len(e.classes) > MOST_CLASSES else range(len(e.classes))
    )
    rows = []
    for c in shown:
        hit, named, there = int(np.sum((guess == c) & (y == c))), int(np.sum(guess == c)), int(counts[c])
        f1 = 2 * hit / (named + there) if named + there else float("nan")
        rows.append(
            f"<tr><td class='name'>{html.escape(e.classes[c])}</td><td class='num'>{format_number(there)}</td>"
            f"<td class='num'>{_share(hit, named)}</td><td class='num'>{_share(hit, there)}</td>"
            f"<td class='num'>{'–' if f1 != f1 else f'{f1:.3f}'}</td></tr>"
        )
    more = "" if len(e.classes) <= MOST_CLASSES else f"<p class='soft'>The {MOST_CLASSES} most frequent classes.</p>"
    return (
        "<h3>By class</h3><div class='scroll'><table><thead><tr><th>class</th><th class='num'>rows</th><th class='num'>precision"
        "</th><th class='num'>recall</th><th class='num'>F1</th></tr></thead><tbody>"
        f"{''.join(rows)}</tbody></table></div>{more}<p class='soft'>Precision: of the rows predicted to be of a class, the share "
        "that is. Recall: of the rows of a class, the share that is found. In brackets 95 % intervals.</p>"
    )


def _share(hits: int, of: int) -> str:
    if not of:
        return "–"
    low, high = wilson(hits / of, of)
    return f"{hits / of:.2f} <span class='soft'>({low:.2f}–{high:.2f})</span>"


def score_spread(e: Evidence) -> str:
    """The predicted probability of the positive class, for rows of either class."""
    p, name = e.prediction[:, e.positive], e.classes[e.positive]
    edges = np.linspace(0, 1, 26)
    other = 1 - e.positive
    shares = [np.histogram(p[e.y == c], edges)[0] / max(int(np.sum(e.y == c)), 1) for c in (e.positive, other)]
    chart = Chart(
        (0, 1), (0, float(np.max(shares)) * 1.05), (f"predicted probability of “{name}”", "share of the class")
    )
    middles = (edges[1:] + edges[:-1]) / 2
    for colour, (c, share) in enumerate(zip((e.positive, other), shares)):
        hover = [
            f"{e.classes[c]}: {100 * s:.1f} % of its rows between {a:.2f} and {b:.2f}"
            for s, a, b in zip(share, edges, edges[1:])
        ]
        chart.band(middles, np.zeros_like(share), share, colour)
        chart.line(middles, share, f"truly {e.classes[c]}", colour, hover=hover)
    return chart.svg("Scores by class (less overlap is better)")


def lift(e: Evidence) -> str:
    """The share of all positives among the rows with the highest scores."""
    p, hit = e.prediction[:, e.positive], e.y == e.positive
    order = np.argsort(-p, kind="stable")
    found = np.concatenate([[0.0], np.cumsum(hit[order]) / max(int(hit.sum()), 1)])
    share = np.linspace(0, 1, len(found))
    some = np.unique(np.linspace(0, len(found) - 1, 101).astype(int))
    chart = Chart(
        (0, 1), (0, 1.01), ("share of rows, highest scores first", f"share of all “{e.classes[e.positive]}” among them")
    )
    chart.line([0, 1], [0, 1], "", 5, dash=True)
    hover = [
        f"the top {100 * a:.0f} % of rows hold {100 * b:.0f} % ({b / max(a, 1e-9):.1f} times chance)"
        for a, b in zip(share[some], found[some])
    ]
    chart.line(share[some], found[some], "", 0, hover=hover)
    tenth = float(np.interp(0.1, share, found))
    return chart.svg(f"Lift: the top tenth of rows holds {100 * tenth:.0f} % of “{e.classes[e.positive]}”")


def steps(e: Evidence) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Thresholds, highest first, with the hits and the false alarms of the rows at or above each."""
    p, hit = e.prediction[:, e.positive], e.y == e.positive
    order = np.argsort(-p, kind="stable")
    last = np.flatnonzero(
        np.append(np.diff(p[order]) != 0, True)
    )  # rows of equal score are on the same side of every threshold
    hits, alarms = np.cumsum(hit[order])[last], np.cumsum(~hit[order])[last]
    some = np.unique(np.linspace(0, len(last) - 1, MOST_STEPS).astype(int))
    return p[order][last][some], hits[some], alarms[some]


def threshold_chooser(e: Evidence) -> str:
    """A table of thresholds with their hits and errors, and the threshold of least cost for costs that the reader enters."""
    p, hit = e.prediction[:, e.positive], e.y == e.positive
    name = html.escape(e.classes[e.positive])
    rows = []
    for cut in CUTS:
        flagged = p >= cut
        hits, named = int(np.sum(flagged & hit)), int(np.sum(flagged))
        rows.append(
            f"<tr><td class='num'>{cut:.1f}</td><td class='num'>{100 * named / len(p):.1f} %</td><td class='num'>"
            f"{'–' if not named else f'{100 * hits / named:.1f} %'}</td><td class='num'>{100 * hits / max(int(hit.sum()), 1):.1f} %</td>"
            f"<td class='num'>{named - hits}</td><td class='num'>{int(hit.sum()) - hits}</td></tr>"
        )
    cuts, found, alarms = steps(e)
    data = {
        "cut": [round(float(v), 5) for v in cuts], "hit": found.tolist(), "alarm": alarms.tolist(),
        "positive": int(hit.sum()), "rows": len(p),
    }  # fmt: skip
    return (
        f"<h3>Which threshold?</h3><p>A row counts as “{name}” if its probability is at least the threshold. What a miss and a "
        "false alarm cost decides where it should be; for well calibrated probabilities, at alarm / (alarm + miss).</p>"
        "<p class='costs'><label>A miss costs <input id='miss' type='number' min='0' step='any' value='5'></label> "
        "<label>a false alarm costs <input id='alarm' type='number' min='0' step='any' value='1'></label></p>"
        "<p id='advice' class='advice'></p>"
        "<div class='scroll'><table><thead><tr><th class='num'>threshold</th><th class='num'>rows flagged</th><th class='num'>"
        f"of these “{name}”</th><th class='num'>of “{name}” found</th><th class='num'>false alarms</th><th class='num'>misses</th>"
        f"</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
        f"<script type='application/json' id='cuts'>{json.dumps(data)}</script>"
    )


CHOOSER = """
(function(){var d=document.getElementById("cuts");if(!d)return;d=JSON.parse(d.textContent);
var miss=document.getElementById("miss"),alarm=document.getElementById("alarm"),out=document.getElementById("advice");
function pick(){var m=Math.max(+miss.value||0,0),a=Math.max(+alarm.value||0,0),best=m*d.positive,at=-1;
for(var i=0;i<d.cut.length;i++){var c=m*(d.positive-d.hit[i])+a*d.alarm[i];if(c<best){best=c;at=i}}
var all=a*(d.rows-d.positive),none=m*d.positive,n=Math.round(1e4*best/d.rows)/1e4;
out.textContent=at<0?"Least cost: flag no row ("+n+" a row).":"Least cost: threshold "+d.cut[at].toFixed(3)+", "+n+
" a row ("+d.alarm[at]+" false alarms, "+(d.positive-d.hit[at])+" misses in "+d.rows+" rows); flagging none costs "+
Math.round(1e4*none/d.rows)/1e4+", flagging all "+Math.round(1e4*all/d.rows)/1e4+"."}
miss.addEventListener("input",pick);alarm.addEventListener("input",pick);pick()})();
"""
