"""Predictions and scores of a source, block by block, in memory or directly to a Parquet file."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from hinge.blocks.block import Block, require_columns
from hinge.blocks.executors import Serial
from hinge.blocks.mapped import reads_text
from hinge.blocks.passes import Passes
from hinge.blocks.source import Source, as_source
from hinge.blocks.survey import check_target
from hinge.blocks.totals import PartTotal


def predict_source(estimator: Any, method: str, X: Any, *, to: str | Path | None = None, **options: Any) -> Any:
    """A method of an estimator with one result per row of X, over blocks.

    Parameters
    ----------
    to : path of a Parquet file, optional
        Where the results are written as they are computed; they are returned as an array if absent.

    Returns
    -------
    array, or the path of the file
    """
    check_is_fitted(estimator)
    source = restricted(estimator, as_source(X))
    if options.get("offset") is not None or options.get("exposure") is not None:
        raise TypeError("Name the column of offsets in hg.scan(…, offset=…).")
    results = _results(estimator, method, source, options)
    if to is None:
        parts = list(results)
        return scipy.sparse.vstack(parts) if scipy.sparse.issparse(parts[0]) else np.concatenate(parts)
    return _write(results, Path(to), _names(estimator, method))


def restricted(estimator: Any, source: Source) -> Source:
    """The source with the features that the estimator was fitted on, in its order."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None or source.names is None:
        if source.n_features != getattr(estimator, "n_features_in_", 1):
            raise ValueError(
                f"X has {source.n_features} features, but {type(estimator).__name__} is expecting "
                f"{estimator.n_features_in_} features as input."
            )
        return source
    require_columns((*source.names, *source.roles.others), names, "the source")
    roles = replace(source.roles, features=tuple(str(name) for name in names))
    return replace(source, roles=roles, n_features=len(names))


def nameless(estimator: Any) -> Any:
    """The estimator without feature names, for arrays whose columns are known to be in order."""
    plain = copy.copy(estimator)
    vars(plain).pop("feature_names_in_", None)
    return plain


def apply(block: Block, estimator: Any, plain: Any, method: str, options: dict[str, Any]) -> Any:
    """The method on one block."""
    table = block.frame is not None
    X: Any = block.X if block.frame is None else block.frame.to_native()
    if block.frame is not None and reads_text(estimator):
        X = block.frame[block.frame.columns[0]].to_list()
    known = {"offset": block.offset} if block.offset is not None and method == "predict" else {}
    return getattr(estimator if table else plain, method)(X, **known, **options)


class Stacked:
    """Results of consecutive blocks, in a list."""

    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts

    def merge(self, other: Stacked) -> Stacked:
        """The results of both, in order."""
        return Stacked(self.parts + other.parts)


def _stacked(block: Block, *arguments: Any) -> Stacked:
    return Stacked([apply(block, *arguments)])


def _results(estimator: Any, method: str, source: Source, options: dict[str, Any]) -> Iterator[Any]:
    arguments = (estimator, nameless(estimator), method, options)
    if isinstance(source.executor, Serial):
        for block in source.blocks():
            yield apply(block, *arguments)
        return
    work = PartTotal(_stacked, arguments, source.reader())
    for result in source.executor.results(work, source.parts):
        if result.value is not None:
            yield from result.value.parts


def _names(estimator: Any, method: str) -> list[str] | None:
    if method in ("predict_proba", "predict_log_proba") and hasattr(estimator, "classes_"):
        return [str(label) for label in estimator.classes_]
    return None


def _write(results: Iterator[Any], path: Path, names: list[str] | None) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    partial = path.with_name(path.name + ".part")
    try:
        for values in results:
            values = values.toarray() if scipy.sparse.issparse(values) else np.asarray(values)
            columns = values.reshape(len(values), -1).T
            if names is None:
                names = ["prediction"] if len(columns) == 1 else [f"prediction_{j}" for j in range(len(columns))]
            table = pa.table({name: np.ascontiguousarray(column) for name, column in zip(names, columns)})
            writer = pq.ParquetWriter(partial, table.schema) if writer is None else writer
            writer.write_table(table.cast(writer.schema))
        if writer is not None:
            writer.close()
        partial.replace(path)
    except BaseException:
        with contextlib.suppress(Exception):
            if writer is not None:
                writer.close()
        partial.unlink(missing_ok=True)
        raise
    return path


def _agreement(block: Block, *arguments: Any) -> tuple[float, float]:
    y = check_target(block, True)
    s = np.ones(block.rows) if block.weight is None else block.weight
    return float(s @ (apply(block, *arguments) == y)), float(s.sum())


def _squares(block: Block, *arguments: Any) -> tuple[Any, ...]:
    y = check_target(block, False)
    s = np.ones(block.rows) if block.weight is None else block.weight
    f = np.asarray(apply(block, *arguments), dtype=np.float64).reshape(y.shape)
    return s.sum(), s @ y, s @ (y - f) ** 2


def _about(block: Block, centre: Any) -> Any:
    y = check_target(block, False)
    s = np.ones(block.rows) if block.weight is None else block.weight
    return s @ (y - centre) ** 2


def _deviance(block: Block, estimator: Any, plain: Any, mean: float | None) -> tuple[float, ...]:
    y = check_target(block, False)
    s = np.ones(block.rows) if block.weight is None else block.weight
    half = estimator._pair()[0].half_deviance
    if mean is None:
        f = np.asarray(apply(block, estimator, plain, "predict", {}), dtype=np.float64)
        return float(s.sum()), float(s @ y), float(s @ half(y, f))
    return (float(s @ half(y, np.full(len(y), mean))),)


def _likelihood(block: Block, *arguments: Any) -> tuple[float, float]:
    values = apply(block, *arguments)
    return float(np.sum(values)), float(len(values))


def score_source(estimator: Any, X: Any, y: Any = None, sample_weight: Any = None) -> float:
    """``score`` of an estimator over blocks: accuracy, R², D² or the mean log-likelihood."""
    check_is_fitted(estimator)
    source = restricted(estimator, as_source(X, y, sample_weight))
    plain, passes = nameless(estimator), Passes(source)
    if hasattr(estimator, "_pair"):
        total, sum_y, deviance = passes.total(_deviance, estimator, plain, None)
        (null,) = passes.total(_deviance, estimator, plain, sum_y / total, only_targets=True)
        return 1.0 - deviance / null if null > 0 else 0.0
    if hasattr(estimator, "score_samples") and not isinstance(estimator, ClassifierMixin):
        likelihood, rows = passes.total(_likelihood, estimator, plain, "score_samples", {})
        return likelihood / rows
    if isinstance(estimator, ClassifierMixin) or hasattr(estimator, "classes_"):
        right, total = passes.total(_agreement, estimator, plain, "predict", {})
        return right / total
    if isinstance(estimator, RegressorMixin) or hasattr(estimator, "predict"):
        total, sums, left = passes.total(_squares, estimator, plain, "predict", {})
        spread = passes.total(_about, sums / total, only_targets=True)
        return float(np.mean(1.0 - left / spread))
    raise TypeError(f"{type(estimator).__name__} has no score over blocks.")
