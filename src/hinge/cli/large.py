"""``hinge fit`` and ``hinge predict`` over blocks: tables larger than memory, and clusters (--memory, --dask)."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hinge.blocks.block import Block
from hinge.blocks.passes import Passes
from hinge.blocks.source import Source, scan
from hinge.cli.exits import check_place
from hinge.errors import DATA, USAGE, UserError
from hinge.files import load, save

CLASSES = 20  # an integer target with at most this many distinct values is treated as class labels


@contextlib.contextmanager
def _usable_data() -> Iterator[None]:
    """Turn errors of the library, which concern the data or the options, into a UserError of one line."""
    try:
        yield
    except UserError:
        raise
    except (TypeError, ValueError) as error:
        raise UserError(str(error), DATA) from error


@contextlib.contextmanager
def _opened(file: Path, memory: str | None, dask: str | None, **options: Any) -> Iterator[Source]:
    """The source, with a client of the cluster for the duration of the context."""
    with contextlib.ExitStack() as stack:
        client = None
        if dask is not None:
            try:
                from distributed import Client
            except ImportError:
                raise UserError(
                    "--dask needs the package distributed: pip install 'hinge-learn[dask]'.", USAGE
                ) from None
            try:
                client = stack.enter_context(Client(dask, timeout=10))
            except (OSError, ValueError) as error:
                raise UserError(f"--dask {dask}: no scheduler answers there ({error}).", USAGE) from None
        stack.enter_context(_usable_data())
        yield scan(str(file), memory=memory, executor=client, progress=sys.stderr.isatty(), **options)


@dataclass(frozen=True)
class Kind:
    """Whether a target is text, whether it has fractions, and its distinct values if there are few."""

    text: bool
    fractions: bool
    values: frozenset[Any] | None

    def merge(self, other: Kind) -> Kind:
        """The summary of both sets of rows."""
        values = None if self.values is None or other.values is None else _few(self.values | other.values)
        return Kind(self.text or other.text, self.fractions or other.fractions, values)


def _few(values: frozenset[Any]) -> frozenset[Any] | None:
    return values if len(values) <= CLASSES else None


def kind_of_target(block: Block) -> Kind:
    """The statistic that distinguishes labels from numbers."""
    y = np.asarray(block.y)
    if y.dtype.kind not in "fiu":
        return Kind(True, False, None)
    y = y[np.isfinite(y)]
    return Kind(False, bool(np.any(y != np.floor(y))), _few(frozenset(np.unique(y).tolist())))


def classifies(source: Source, task: str) -> bool:
    """Whether the target holds labels: by --task, or if it is text or has at most 20 distinct integers."""
    if task != "auto":
        return task in ("binary", "multiclass")
    found = Passes(source).total(kind_of_target, only_targets=True)
    return bool(found.text or (not found.fractions and found.values is not None))


def choose(families: str | None, labels: bool, seed: int) -> Any:
    """The model: boosting, or a linear one with --models linear."""
    import hinge as hg

    if families in (None, "boosting"):
        kind = hg.HistGradientBoostingClassifier if labels else hg.HistGradientBoostingRegressor
        return kind(random_state=seed)
    if families == "linear":
        return hg.LogisticRegression() if labels else hg.Ridge()
    raise UserError(f"--models {families}: over blocks there are boosting and linear; give one of them.", USAGE)


def run_fit(
    file: Path, target: str | None, task: str, families: str | None, out: Path | None, seed: int, drop: list[str],
    memory: str | None, dask: str | None, checkpoint: Path | None,
) -> tuple[dict[str, Any], list[str]]:  # fmt: skip
    """Fit one model to all rows and write it to a folder; returns the summary."""
    if target is None:
        raise UserError("--target is needed: the column to predict.", USAGE)
    folder = out or Path(f"{Path(str(file)).parent.name or 'table'}-hinge")
    check_place(folder, folder=True)
    with _opened(file, memory, dask, target=target) as source:
        if drop:
            names = source.names or ()
            source = scan(
                str(file), target=target, memory=memory, columns=[name for name in names if name not in drop],
                executor=source.executor, progress=source.progress,
            )  # fmt: skip
        model = choose(families, classifies(source, task), seed)
        model.fit(source, checkpoint=checkpoint)
        score = model.score(source)
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / "model.hinge"
    save(model, place)
    reading, name = model.reading_, type(model).__name__
    measure = "accuracy" if hasattr(model, "classes_") else "R²"
    data = {
        "model": name, "file": str(place), "target": target, "passes": reading.passes, "rows": reading.rows,
        "bytes": reading.bytes, "rows_per_second": reading.rows_per_second, "coded_passes": reading.coded_passes,
        "coded_bytes": reading.coded_bytes, "seconds": reading.seconds, "training_score": score,
    }  # fmt: skip
    lines = [f"{name} for {target}: {measure} {score:.4f} on the training rows", str(reading), f"{place} written"]
    return data, lines


def run_predict(
    model: Path, file: Path, out: Path | None, memory: str | None, dask: str | None
) -> tuple[dict[str, Any], list[str]]:
    """Predictions for all rows, written to a Parquet file as they are computed."""
    if out is None or out.suffix != ".parquet":
        raise UserError("--out is needed: over blocks predictions go to a .parquet file.", USAGE)
    check_place(out)
    fitted = load(model)
    with _opened(file, memory, dask) as source:
        fitted.predict(source, to=out)
    import pyarrow.parquet as pq

    rows = pq.read_metadata(out).num_rows
    return {"file": str(out), "rows": rows}, [f"{rows} predictions in {out}"]
