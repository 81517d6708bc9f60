"""``hinge fit`` and ``hinge predict`` on a CSV file of millions of rows: time, processor time and peak memory.

    python -m benchmarks.large [--rows 5000000] [--time 120] [--folder /tmp]

The table has 20 columns besides the target: 16 numbers (some whole, some with gaps) and four categories. It is written
for the occasion and removed afterwards.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

CHUNK = 250_000
CITIES = np.array([f"city {k}" for k in range(300)])
WORDS = {"shop": ["web", "phone", "branch"], "plan": ["free", "basic", "gold", "team"], "day": ["Mo", "Tu", "We", "Th"]}


def rows(n: int, seed: int) -> pl.DataFrame:
    """Some rows of the table; the target depends on numbers, categories and their products."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 10))
    whole = {f"count_{j}": rng.poisson(3 + j, n) for j in range(4)}
    share, age = rng.beta(2, 5, n), rng.integers(18, 90, n)
    words = {name: rng.choice(values, n) for name, values in WORDS.items()}
    city = rng.integers(0, len(CITIES), n)
    s = 0.8 * X[:, 0] - X[:, 1] * X[:, 2] + np.sin(2 * X[:, 3]) + 0.02 * (age - 50) + 2 * (share - 0.3)
    s += (
        (words["plan"] == "gold") * 1.2
        - (words["shop"] == "web") * X[:, 4]
        + np.sin(city)
        + 0.1 * whole["count_0"]
        - 0.5
    )
    y = rng.random(n) < 1 / (1 + np.exp(-s))
    X[rng.random(n) < 0.05, 5] = np.nan
    numbers = {f"x{j}": np.round(X[:, j], 4) for j in range(10)}
    frame = pl.DataFrame(
        numbers
        | whole
        | {"share": np.round(share, 3), "age": age}
        | words
        | {"city": CITIES[city], "bought": np.where(y, "yes", "no")}
    )
    return frame.fill_nan(None)


def write(path: Path, n: int) -> None:
    """The whole table, a chunk at a time."""
    with path.open("wb") as file:
        for k, start in enumerate(range(0, n, CHUNK)):
            rows(min(CHUNK, n - start), k).write_csv(file, include_header=k == 0)


def measured(command: list[str]) -> tuple[str, str]:
    """What a command printed, and what it cost."""
    began = time.perf_counter()
    watcher = (
        "import resource, subprocess, sys; r = subprocess.run(sys.argv[1:]); u = resource.getrusage(resource.RUSAGE_CHILDREN);"
        "print(u.ru_maxrss, u.ru_utime + u.ru_stime, file=sys.stderr); sys.exit(r.returncode)"
    )
    done = subprocess.run([sys.executable, "-c", watcher, *command], capture_output=True, text=True, check=True)
    peak, cpu = map(float, done.stderr.split()[-2:])
    wall = time.perf_counter() - began
    return done.stdout, f"{wall:.0f} s, {cpu:.0f} s of processor time, peak memory {peak * 1024 / 2**30:.2f} GiB"


def main() -> None:
    """Write, fit, predict, remove."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--time", type=float, default=120.0)
    parser.add_argument("--folder", default=None)
    given = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (24 << 30, 24 << 30))
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        data, out = Path(folder) / "large.csv", Path(folder) / "out"
        write(data, given.rows)
        print(f"{given.rows} rows, {data.stat().st_size / 1e9:.2f} GB", flush=True)
        hinge = str(Path(sys.executable).with_name("hinge"))
        printed, cost = measured(
            [hinge, "fit", str(data), "-t", "bought", "--time", str(given.time), "-o", str(out), "--json"]
        )
        card = json.loads(printed)
        print(f"fit      {cost}; {card['chosen']}, log loss {card['score']:.4f} (best constant {card['trivial']:.4f})")
        _, cost = measured([hinge, "predict", str(out / "model.hinge"), str(data), "-o", str(Path(folder) / "p.csv")])
        print(f"predict  {cost}")


if __name__ == "__main__":
    main()
