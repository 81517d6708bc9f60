"""Scores, their bootstrap errors, and mean ranks, from the records of a folder."""

from __future__ import annotations

import json
import zipfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables.sources import SOURCES

REPEATS, MAX_BOOTSTRAP = 400, 20_000
Key = tuple[str, int, str]


def order_of(tables: list[str], splits: int, libraries: list[str]) -> list[Key]:
    """The cells of a run: splits first, then tables, then libraries."""
    return [(table, split, library) for split in range(splits) for table in tables for library in libraries]


def read_records(folder: Path) -> dict[Key, dict[str, Any]]:
    """The last record of every cell; a line cut short by a kill counts as none."""
    found: dict[Key, dict[str, Any]] = {}
    place = folder / "records.jsonl"
    for line in place.read_text(encoding="utf-8").splitlines() if place.exists() else ():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        found[record["table"], record["split"], record["library"]] = record
    return found


def losses_place(folder: Path, key: Key) -> Path:
    """Where the losses of the test rows of a cell are."""
    table, split, library = key
    return folder / f"{table}.{split}.{library.replace(' ', '_')}.npy"


def store(folder: Path, archive: Path) -> None:
    """All results of a folder in one file."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for place in sorted(folder.iterdir()):
            file.write(place, place.name)


def restore(archive: Path, folder: Path) -> None:
    """The results of an archive, in a folder that has none yet."""
    if not (folder / "records.jsonl").exists():
        with zipfile.ZipFile(archive) as file:
            file.extractall(folder)


def bootstrap_error(values: np.ndarray, rng: np.random.Generator) -> float:
    """The standard error of a mean, by resampling (by its formula for very many rows)."""
    n = len(values)
    if n > MAX_BOOTSTRAP:
        return float(np.std(values) / np.sqrt(n))
    return float(np.std([np.mean(values[rng.integers(0, n, n)]) for _ in range(REPEATS)]))


def complete(records: dict[Key, dict[str, Any]], table: str) -> list[int]:
    """The splits of a table that every library of the folder has a record of, done or not."""
    libraries = {key[2] for key in records}
    splits = {key[1] for key in records if key[0] == table}
    return sorted(s for s in splits if all((table, s, x) in records for x in libraries))


def summarise(folder: Path) -> dict[str, Any]:
    """By table: mean losses over its complete splits, the differences from hinge with their errors; over all tables: mean ranks,
    the share of tables on which hinge is at or above the best other (within two standard errors), and its worst relative loss.
    The same for the tables that development kept away from. A library takes part in a table if it was done in all its splits."""
    records = read_records(folder)
    rng = np.random.default_rng(0)
    tables: dict[str, dict[str, Any]] = {}
    failed = sorted({key[0] for key, record in records.items() if key[2] == "hinge" and record["state"] != "done"})
    for table in dict.fromkeys(key[0] for key in records):
        splits = complete(records, table)
        libraries = [
            x for x in dict.fromkeys(key[2] for key in records)
            if splits and all(records[table, s, x]["state"] == "done" for s in splits)
        ]  # fmt: skip
        if "hinge" in libraries:
            tables[table] = _row(folder, records, table, splits, libraries, rng)
    return {
        "tables": tables,
        "failed": failed,
        "all": _overall(list(tables.values())),
        "held out": _overall([row for name, row in tables.items() if name in SOURCES and SOURCES[name].held_out]),
    }


def _row(
    folder: Path, records: dict[Key, dict[str, Any]], table: str, splits: list[int], libraries: list[str],
    rng: np.random.Generator,
) -> dict[str, Any]:  # fmt: skip
    losses = {x: [np.load(losses_place(folder, (table, s, x))) for s in splits] for x in libraries}
    means = {x: float(np.mean([np.mean(part) for part in parts])) for x, parts in losses.items()}
    others = {x: value for x, value in means.items() if x != "hinge"}
    row: dict[str, Any] = {"splits": len(splits), "loss": means, "metric": records[table, splits[0], "hinge"]["metric"]}
    for name in ("seconds", "megabytes"):
        row[name] = {x: float(np.max([records[table, s, x][name] for s in splits])) for x in libraries}
    if others:
        row["best"] = best = min(others, key=others.__getitem__)
        errors = [bootstrap_error(h - b, rng) for h, b in zip(losses["hinge"], losses[best], strict=True)]
        row["behind"] = means["hinge"] - means[best]
        row["error"] = float(np.sqrt(np.sum(np.square(errors)))) / len(errors)
        # Squared errors are compared by their roots, so that one per cent means one per cent of the RMSE.
        power = 0.5 if row["metric"] == "RMSE" else 1.0
        row["relative"] = (means["hinge"] / max(abs(means[best]), 1e-12)) ** power - 1.0
        order = sorted(means, key=means.__getitem__)
        row["ranks"] = {x: order.index(x) + 1 for x in libraries}
    return row


def _overall(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean ranks, the share of tables at or above the best other, the worst relative loss, and the most time and memory."""
    rows = [row for row in rows if "best" in row]
    ranks: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        for library, rank in row["ranks"].items():
            ranks[library].append(rank)
    return {
        "tables": len(rows),
        "mean rank": {x: (float(np.mean(values)), len(values)) for x, values in ranks.items()},
        "at or above the best other": float(np.mean([r["behind"] <= 2 * r["error"] for r in rows])) if rows else None,
        "worst relative loss": max((row["relative"] for row in rows), default=None),
        "more than 1 % worse": sum(row["relative"] > 0.01 for row in rows),
        "seconds": max((row["seconds"]["hinge"] for row in rows), default=None),
        "megabytes": max((row["megabytes"]["hinge"] for row in rows), default=None),
    }


def markdown(summary: dict[str, Any]) -> str:
    """The summary as a table for the documentation."""
    lines = [
        "| table | loss | splits | hinge | best other | hinge − best | relative | seconds | MB |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for table, row in summary["tables"].items():
        if "best" not in row:
            continue
        best, name = row["best"], "squared error" if row["metric"] == "RMSE" else row["metric"]
        mark = " *" if table in SOURCES and SOURCES[table].held_out else ""
        lines.append(
            f"| {table}{mark} | {name} | {row['splits']} | {row['loss']['hinge']:.4g} | {row['loss'][best]:.4g} ({best}) | "
            f"{row['behind']:+.2g} ± {row['error']:.1g} | {100 * row['relative']:+.1f} % | {row['seconds']['hinge']:.0f} / "
            f"{row['seconds'][best]:.0f} | {row['megabytes']['hinge']:.0f} / {row['megabytes'][best]:.0f} |"
        )
    lines += [
        "",
        "* held out: not used in development. Relative differences of squared errors are those of their roots.",
    ]
    for title in ("all", "held out"):
        whole = summary[title]
        if not whole["tables"]:
            continue
        ranks = sorted(whole["mean rank"].items(), key=lambda pair: pair[1][0])
        lines += [
            "",
            f"{title.capitalize()} ({whole['tables']} tables). Mean ranks: "
            + ", ".join(f"{x} {mean:.2f} ({n})" for x, (mean, n) in ranks)
            + f". At or above the best other within two standard errors: {100 * whole['at or above the best other']:.0f} % of "
            f"tables; more than 1 % worse: {whole['more than 1 % worse']}; worst relative loss "
            f"{100 * whole['worst relative loss']:+.1f} %; at most {whole['seconds']:.0f} s and {whole['megabytes']:.0f} MB.",
        ]
    if summary["failed"]:
        lines += ["", f"hinge failed on: {', '.join(summary['failed'])}."]
    return "\n".join(lines)
