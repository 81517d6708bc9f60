"""Peak memory of fits over blocks, measured in a child process: a tenth of the data, a fifth where predictions are written.

Run by ``make test-memory``: 320 MB of numbers, 32 MB allowed.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROWS, COLUMNS, GROUP = 2_000_000, 20, 10_000
DATA = ROWS * COLUMNS * 8

CHILD = """
import sys, warnings
import hinge as hg
warnings.simplefilter("ignore")
folder = sys.argv[1]
rows = dict(columns=[f"x{j}" for j in range(20)], block_rows=10_000)

def resident(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field)) / 1024

for model, target in [
    (hg.Ridge(), "z"), (hg.LogisticRegression(), "y"), (hg.GaussianNB(), "y"),
    (hg.GaussianMixture(2, max_iter=2, random_state=0), "y"),
    (hg.HistGradientBoostingClassifier(max_iter=3, max_leaf_nodes=15), "y"),
]:
    small, large = (
        hg.scan(f"{folder}/{name}.parquet", target=target, memory="32MB", **rows) for name in ("small", "large")
    )
    model.fit(small).predict(small, to=folder + "/out.parquet")
    before = resident("VmRSS")
    with open("/proc/self/clear_refs", "w") as reset:
        reset.write("5")
    model.fit(large)
    assert model.reading_.rows >= 1_000_000
    print(type(model).__name__, resident("VmHWM") - before, flush=True)
assert model.reading_.coded_bytes > 0  # boosting kept its codes in files
large = hg.scan(f"{folder}/large.parquet", target="z", **rows)
model = hg.Ridge().fit(small := hg.scan(f"{folder}/small.parquet", target="z", **rows))
before = resident("VmRSS")
with open("/proc/self/clear_refs", "w") as reset:
    reset.write("5")
model.predict(large, to=folder + "/out.parquet")
print("predict", resident("VmHWM") - before)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table written block by block."""
    folder = tmp_path_factory.mktemp("large")
    names = [f"x{j}" for j in range(COLUMNS)]
    w = np.linspace(-1, 1, COLUMNS)
    for name, rows in (("small", 30_000), ("large", ROWS)):
        writer = None
        for start in range(0, rows, 10 * GROUP):
            rng = np.random.default_rng(start)
            X = rng.normal(size=(min(10 * GROUP, rows - start), COLUMNS))
            z = X @ w + rng.normal(size=len(X))
            table = pa.table(dict(zip(names, X.T)) | {"y": (z > 0).astype(np.int8), "z": z})
            writer = writer or pq.ParquetWriter(folder / f"{name}.parquet", table.schema, use_dictionary=False)
            writer.write_table(table, row_group_size=GROUP)
        writer.close()
    return folder


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_peak_memory_is_a_small_part_of_the_data(folder):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CHILD), str(folder)],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    peaks = dict(line.split() for line in done.stdout.splitlines())
    print("peak MB above the start, data of", DATA / 1e6, "MB:", peaks)
    assert len(peaks) == 6
    for name, megabytes in peaks.items():
        assert float(megabytes) < DATA / (5 if name == "predict" else 10) / 1e6, peaks
