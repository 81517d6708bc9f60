"""The comparison of models: one row per family, its best setting."""

from __future__ import annotations

from typing import Any

from hinge.learning.trials import Trial
from hinge.report.evidence import BoardRow
from hinge.select.estimate import Estimate


def by_family(results: list[Trial]) -> list[Trial]:
    """The best setting of every family so far, from the simplest family to the richest."""
    rows: dict[str, Trial] = {}
    for result in results:
        before = rows.get(result.family.name)
        better = before is None or (
            result.score is not None and (before.score is None or result.score.value < before.score.value)
        )
        if better:
            rows[result.family.name] = result
    return sorted(rows.values(), key=lambda r: r.family.rank)


def bytes_text(size: int) -> str:
    for unit, scale in (("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size} B" if size else ""


def seconds_text(seconds: float) -> str:
    return f"{1e3 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.3g} s"


def certificate_text(certificate: Any) -> str:
    if certificate is None:
        return "–"
    kind = "gap" if certificate.kind == "gap" else "residual"
    error = f"{certificate.error:.0e}" if certificate.error > 0 else "0"
    return f"{kind} {error}" + ("" if certificate.converged else " (!)")


def board_rows(results: list[Trial], chosen: Trial | None) -> list[BoardRow]:
    """The comparison as a table."""
    rows = []
    for r in by_family(results):
        score = r.score or Estimate(float("nan"), float("nan"))
        rows.append(BoardRow(
            r.family.name, r.family.what, r.setting.name, r.state, score.value, score.standard_error, r.explained, r.fit_seconds, r.predict_micros, r.size,
            certificate_text(r.certificate), r is chosen, r.why,
        ))  # fmt: skip
    return rows
