"""Scores, their bootstrap errors, and mean ranks, from the records of a folder."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

REPEATS, MAX_BOOTSTRAP = 400, 20_000
Key = tuple[str, int, str]


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


def bootstrap_error(values: np.ndarray, rng: np.random.Generator) -> float:
    """The standard error of a mean, by resampling (by its formula for very many rows)."""
    n = len(values)
    if n > MAX_BOOTSTRAP:
        return float(np.std(values) / np.sqrt(n))
    return float(np.std([np.mean(values[rng.integers(0, n, n)]) for _ in range(REPEATS)]))


def summarise(folder: Path) -> dict[str, Any]:
    """By table: mean losses over the splits that every library finished, the differences from hinge with their errors; over all
    tables: mean ranks, the share of tables on which hinge is at or above the best other (within two standard errors), and its
    worst relative loss."""
    done = {key: record for key, record in read_records(folder).items() if record["state"] == "done"}
    rng = np.random.default_rng(0)
    tables: dict[str, dict[str, Any]] = {}
    ranks: dict[str, list[float]] = defaultdict(list)
    for table in dict.fromkeys(key[0] for key in done):
        libraries = list(dict.fromkeys(key[2] for key in done if key[0] == table))
        splits = [
            s for s in {key[1] for key in done if key[0] == table} if all((table, s, x) in done for x in libraries)
        ]
        if "hinge" not in libraries or not splits:
            continue
        losses = {x: [np.load(losses_place(folder, (table, s, x))) for s in splits] for x in libraries}
        means = {x: float(np.mean([np.mean(part) for part in parts])) for x, parts in losses.items()}
        others = {x: value for x, value in means.items() if x != "hinge"}
        row: dict[str, Any] = {
            "splits": len(splits),
            "loss": means,
            "metric": done[table, splits[0], "hinge"]["metric"],
        }
        row["seconds"] = {x: float(np.mean([done[table, s, x]["seconds"] for s in splits])) for x in libraries}
        row["megabytes"] = {x: float(max(done[table, s, x]["megabytes"] for s in splits)) for x in libraries}
        if others:
            row["best"] = best = min(others, key=others.__getitem__)
            errors = [bootstrap_error(h - b, rng) for h, b in zip(losses["hinge"], losses[best], strict=True)]
            row["behind"] = means["hinge"] - means[best]
            row["error"] = float(np.sqrt(np.sum(np.square(errors)))) / len(errors)
            row["relative"] = row["behind"] / max(abs(means[best]), 1e-12)
            order = sorted(means, key=means.__getitem__)
            for library in libraries:
                ranks[library].append(order.index(library) + 1)
        tables[table] = row
    level = [row["behind"] <= 2 * row["error"] for row in tables.values() if "behind" in row]
    return {
        "tables": tables,
        "mean rank": {x: (float(np.mean(values)), len(values)) for x, values in ranks.items()},
        "at or above the best other": float(np.mean(level)) if level else None,
        "worst relative loss": max((row["relative"] for row in tables.values() if "relative" in row), default=None),
    }


def markdown(summary: dict[str, Any]) -> str:
    """The summary as a table for the documentation."""
    lines = [
        "| table | loss | hinge | best other | hinge − best | relative | seconds |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for table, row in summary["tables"].items():
        if "best" not in row:
            continue
        best, root = row["best"], row["metric"] == "RMSE"
        name = "squared error" if root else row["metric"]
        lines.append(
            f"| {table} | {name} | {row['loss']['hinge']:.4g} | {row['loss'][best]:.4g} ({best}) | {row['behind']:+.2g} ± "
            f"{row['error']:.1g} | {100 * row['relative']:+.1f} % | {row['seconds']['hinge']:.0f} / {row['seconds'][best]:.0f} |"
        )
    ranks = sorted(summary["mean rank"].items(), key=lambda pair: pair[1][0])
    lines += ["", "Mean ranks: " + ", ".join(f"{x} {mean:.2f} ({n} tables)" for x, (mean, n) in ranks) + "."]
    if summary["at or above the best other"] is not None:
        lines.append(
            f"At or above the best other within two standard errors: {100 * summary['at or above the best other']:.0f} % of "
            f"tables; worst relative loss {100 * summary['worst relative loss']:+.1f} %."
        )
    return "\n".join(lines)
