"""The commands as a typer application."""

from __future__ import annotations

import json
import math
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

import hinge
from hinge.cli.exits import check_place, given_file, guard
from hinge.errors import USAGE, UserError
from hinge.files import write_atomically

EXITS = """Exit codes: 0 done, 1 unexpected, 2 the command line is wrong, 3 the data cannot be used, 4 the model file
cannot be used, 130 interrupted."""

app = typer.Typer(
    name="hinge", no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None,
    help=f"From a table to a model you can defend. {EXITS}",
)  # fmt: skip

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Model = Annotated[Path, typer.Argument(help="A model.hinge file.", show_default=False)]
Memory = Annotated[
    str | None,
    typer.Option(
        help="Read FILE, a pattern or a folder block by block, within this much memory: 4GB.", show_default=False
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(help="Compute on the Dask cluster whose scheduler is here: tcp://host:8786.", show_default=False),
]
Data = Annotated[
    Path, typer.Argument(help="CSV, TSV, Parquet, Arrow, JSON lines or .svm, also .gz.", show_default=False)
]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hinge {hinge.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """From a table to a model you can defend."""


def emit(as_json: bool, data: dict[str, Any], lines: list[str]) -> None:
    """Print the result: as JSON with ``--json``, as lines of text otherwise."""
    if as_json:
        typer.echo(json.dumps(_finite(data), ensure_ascii=False, allow_nan=False, default=str))
    else:
        typer.echo("\n".join(lines))


def _finite(value: Any) -> Any:
    """A value for strict JSON, which has no infinite numbers and no NaN: null in their place."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def console(as_json: bool) -> Any:
    """The console for progress output; None with ``--json``."""
    if as_json:
        return None
    from rich.console import Console

    wide = Console(highlight=False, soft_wrap=True)
    return wide if wide.is_terminal else Console(highlight=False, soft_wrap=True, width=140)


def by_blocks(file: Path, memory: str | None, dask: str | None) -> bool:
    """Whether FILE is read block by block: with --memory or --dask, or if it is a pattern or a folder."""
    from hinge.datasets import NAMES

    pattern = bool(set("*?[") & set(str(file))) and not file.exists()
    folder = file.is_dir() and str(file) not in NAMES
    return memory is not None or dask is not None or pattern or folder


@app.command()
def fit(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="The table, or the name of an embedded data set (hinge datasets).", show_default=False)],
    target: Annotated[str | None, typer.Option("--target", "-t", help="The column to predict.", show_default=False)] = None,
    task: Annotated[str, typer.Option(help="auto, binary, multiclass, real or count.")] = "auto",
    time: Annotated[float, typer.Option(help="Approximate time limit of the run, in seconds.")] = 60.0,
    models: Annotated[str | None, typer.Option(help="Families to try, separated by commas: linear,sparse,ratio,tree,additive,boosting,forest,extra,kernel,network.", show_default=False)] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the results; by default named after FILE.", show_default=False)] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random numbers.")] = 0,
    drop: Annotated[list[str] | None, typer.Option(help="Leave this column out (may be repeated).", show_default=False)] = None,
    keep: Annotated[list[str] | None, typer.Option(help="Keep this column even if it would be left out (may be repeated).", show_default=False)] = None,
    rows: Annotated[int | None, typer.Option(help="Use this many rows, drawn at random.", show_default=False)] = None,
    memory: Memory = None,
    dask: Dask = None,
    checkpoint: Annotated[Path | None, typer.Option(help="With --memory or --dask: the folder of checkpoints, from which a killed run resumes.", show_default=False)] = None,
    simple: Annotated[bool, typer.Option("--simple", help="Choose one model, the simplest within one standard error of the best; no ensemble.")] = False,
    weight: Annotated[str | None, typer.Option(help="The column of the weights of rows.", show_default=False)] = None,
    exposure: Annotated[str | None, typer.Option(help="For counts: the column of exposures.", show_default=False)] = None,
    offset: Annotated[str | None, typer.Option(help="A column added to the (logarithm of the) mean.", show_default=False)] = None,
    group: Annotated[str | None, typer.Option(help="A column of groups that no split divides.", show_default=False)] = None,
    time_column: Annotated[str | None, typer.Option(help="A column of times: the last rows are held out.", show_default=False)] = None,
    test: Annotated[Path | None, typer.Option(help="Another table with the target, to score the model on as well.", show_default=False)] = None,
    metric: Annotated[str | None, typer.Option(help="The metric of the choice: log_loss, brier, accuracy, balanced_accuracy, auc, rmse, mae, poisson_deviance.", show_default=False)] = None,
    positive: Annotated[str | None, typer.Option(help="The class, of two, that precision, lift and thresholds refer to.", show_default=False)] = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Learn to predict a column: tries models, picks one, writes it with a report. FILE may be - for standard input."""
    with guard():
        if by_blocks(file, memory, dask):
            from hinge.cli.large import run_fit

            emit(as_json, *run_fit(file, target, task, models, out, seed, drop or [], memory, dask, checkpoint))
            return
    with guard(), given_file(file) as file:
        from hinge.learning.console import ConsoleMonitor
        from hinge.learning.request import Request
        from hinge.learning.run import run
        from hinge.learning.write import default_folder, summary, write

        if not time > 0 or seed < 0 or (rows is not None and rows < 20):
            raise UserError("--time must be positive, --seed not negative, --rows at least 20.", USAGE)
        command = "hinge " + shlex.join(sys.argv[1:])
        request = Request(
            file, target, task, time, models, seed, tuple(drop or ()), tuple(keep or ()), rows, command, context.obj, simple,
            weight, exposure, offset, group, time_column, test, metric, positive,
        )  # fmt: skip
        folder = out or default_folder(file)
        if folder.exists() and not folder.is_dir():
            raise UserError(f"--out {folder} is a file, not a folder.", USAGE)
        check_place(folder, folder=True)
        shown = console(as_json)
        outcome = run(request, None if shown is None else ConsoleMonitor(shown))
        files = write(outcome, folder)
        emit(as_json, *summary(outcome, files))


@app.command()
def predict(
    model: Model, file: Data,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write here (.csv, .parquet, .jsonl, .arrow) instead of printing CSV.", show_default=False)] = None,
    with_inputs: Annotated[bool, typer.Option("--with-inputs", help="Repeat the input columns.")] = False,
    memory: Memory = None,
    dask: Dask = None,
    interval: Annotated[float | None, typer.Option(help="Add intervals (sets, for classes) that hold the target with this probability, such as 0.9.", show_default=False)] = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Predict the target for the rows of FILE (- for standard input)."""
    with guard(model):
        if by_blocks(file, memory, dask):
            from hinge.cli.large import run_predict

            emit(as_json, *run_predict(model, file, out, memory, dask))
            return
    with guard(model), given_file(file) as place:
        from hinge.cli.predict import run

        result = run(model, place, out, with_inputs, as_json, interval)
        if result is not None:
            emit(as_json, *result)


@app.command()
def report(
    model: Model, file: Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write.")] = Path("report.html"),
    as_json: Json = False,
) -> None:  # fmt: skip
    """Write a report of MODEL on the rows of FILE, which must contain the target."""
    with guard(model):
        from hinge.cli.report import run

        check_place(out)
        emit(as_json, *run(model, file, out))


@app.command()
def compare(
    first: Model, second: Model,
    file: Annotated[Path | None, typer.Argument(help="Rows with the target, to score both on.", show_default=False)] = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Compare two models, and their scores on the rows of FILE if it is given."""
    with guard(first, second):
        from hinge.cli.compare import run

        emit(as_json, *run(first, second, file))


@app.command()
def explain(
    model: Model, file: Data,
    row: Annotated[int | None, typer.Option("--row", "-r", help="Explain the prediction for this row (counted from 1).", show_default=False)] = None,
    seed: Annotated[int, typer.Option(help="Seed of the sampling.")] = 0,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Explain the predictions of MODEL: over all rows of FILE, or for one row."""
    with guard(model):
        from hinge.cli.explain import run

        emit(as_json, *run(model, file, row, seed))


@app.command()
def inspect(model: Model, as_json: Json = False) -> None:
    """Show the contents of a model file."""
    with guard(model):
        from hinge.cli.inspect import run

        emit(as_json, *run(model))


@app.command()
def verify(
    model: Model,
    file: Annotated[Path | None, typer.Argument(help="The training data, to recompute the certificate.", show_default=False)] = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Check that a model file is complete and unaltered; with FILE, recompute its certificate."""
    with guard(model):
        from hinge.cli.verify import run

        emit(as_json, *run(model, file))


@app.command()
def export(
    model: Model,
    out: Annotated[Path, typer.Argument(help="The .onnx file to write.", show_default=False)],
    as_json: Json = False,
) -> None:  # fmt: skip
    """Write MODEL as ONNX, for use without hinge."""
    with guard(model):
        from hinge.cli.export import run

        emit(as_json, *run(model, out))


@app.command()
def datasets(
    name: Annotated[str | None, typer.Argument(help="The data set to write.", show_default=False)] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Where to; NAME.csv by default.", show_default=False)] = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """List the data sets that come with hinge; with NAME, write one as CSV."""
    with guard():
        from hinge.datasets import NAMES, describe, raw_table

        if name is None:
            found = {
                n: {"target": raw_table(n)[1], "rows": raw_table(n)[0].count(b"\n") - 1, "source": describe(n)}
                for n in NAMES
            }
            lines = [f"{n:<12} target {d['target']:<10} {d['rows']:>6} rows   {d['source']}" for n, d in found.items()]
            emit(as_json, found, [*lines, "", "hinge fit NAME learns from one; hinge datasets NAME writes it as CSV."])
            return
        if name not in NAMES:
            raise UserError(f"no data set {name!r}; there are {', '.join(NAMES)}.", USAGE)
        place = out or Path(f"{name}.csv")
        check_place(place)
        write_atomically(place, raw_table(name)[0])
        emit(
            as_json,
            {"file": str(place), "target": raw_table(name)[1]},
            [f"{place} written; its target is {raw_table(name)[1]}."],
        )


def _add_tag() -> None:
    from hinge.cli.tag import make_app

    app.add_typer(make_app(), name="tag")


_add_tag()
