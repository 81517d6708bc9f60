"""The command, and the reading of tables, on random files and arguments (see tables.py).

A case ends well if the command does what it is for, with finite numbers and one row per row of the table, or refuses
with one line and an exit code other than 1. A regular file is read with the cells that Python's csv module finds.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from hinge.errors import DATA, MODEL
from hostile import model_files, tables
from hostile.runner import Group

TASKS = ("binary", "multiclass", "real", "count")
COLUMNS = ["a", "b", "c", "y"]
# polars has threads of its own, which a fork does not copy: nothing here uses it before the fork.
MODELS = """
import sys
from pathlib import Path
from hinge.learning.request import Request
from hinge.learning.run import run
from hinge.learning.write import write
from kit.command import table
folder = Path(sys.argv[1])
for task in sys.argv[2:]:
    data = table(folder / f"{task}.csv", n=120, task=task)
    write(run(Request(data, "y", task, 600.0, "linear", command="hinge fit")), folder / task)
"""
_folder: list[tempfile.TemporaryDirectory[str]] = []


def prepare() -> None:
    """One model per task, made by another process."""
    if not _folder:
        _folder.append(tempfile.TemporaryDirectory())
        subprocess.run([sys.executable, "-W", "ignore", "-c", MODELS, _folder[0].name, *TASKS], check=True)


def models() -> Path:
    return Path(_folder[0].name)


KINDS = {
    "read": 0.5,
    "predict": 0.25,
    "arguments": 0.1,
    "model": 0.05,
    "report": 0.02,
    "explain": 0.02,
    "compare": 0.01,
    "fit": 0.05,
}


def random(seed: int) -> str:
    return f"{np.random.default_rng(seed).choice(list(KINDS), p=list(KINDS.values()))}|{seed}"


def cases() -> Iterator[str]:
    yield from (random(seed) for seed in range(10**9, 10**9 + 160))
    yield from (f"arguments|{seed}" for seed in range(40))
    yield from (f"model|{seed}" for seed in range(20))


def hinge(*arguments: str) -> tuple[int, str, str]:
    """Run the command in this process: exit code, standard output and error."""
    from hinge.cli.main import main

    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["hinge", *arguments]
    code: Any = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as left:
        code = left.code
    finally:
        sys.argv = before
    return int(code or 0), out.getvalue(), err.getvalue()


def judged(*arguments: str) -> str:
    """What the command prints; a refusal is a ValueError, and anything else than a result or a refusal is unclear."""
    code, out, err = hinge(*arguments)
    last = err.strip().splitlines()[-1] if err.strip() else ""
    if code == 1 or "Traceback" in err or code not in (0, 1, 2, 3, 4) or " cannot be used: " in last:
        raise RuntimeError(f"exit {code}: {last}")
    if code and not last:
        raise RuntimeError(f"exit {code} without a word")
    if code:
        raise ValueError(last)
    return out


def strict_json(text: str) -> Any:
    def refuse(constant: str) -> Any:
        raise AssertionError(f"{constant} in JSON")

    return json.loads(text, parse_constant=refuse)


def run(case: str) -> None:
    kind, _, seed = case.partition("|")
    rng = np.random.default_rng([int(seed), 1])
    with tempfile.TemporaryDirectory() as name:
        RUNS[kind](rng, Path(name))


def read(rng: tables.Random, folder: Path) -> None:
    """Read, and prepare for learning."""
    import hinge as hg
    from hinge.tables.reading import read_table

    made = tables.make(rng, folder)
    table = read_table(made.path)
    if made.regular:
        compare_cells(table.frame, made)
    target = made.names[-1] if made.names[-1] in table.frame.columns else table.frame.columns[-1]
    profile = hg.profile(made.path, target)
    str(profile)
    assert all(np.isfinite(v) for c in profile.columns for v in (c.low, c.high, c.missing) if v is not None)


def compare_cells(frame: Any, made: tables.Made) -> None:
    """Texts are those that were written, or missing; numbers are their values."""
    if len(made.names) < 2 or any(not any(cell for cell in row) for row in made.rows):
        return  # blank lines are left out
    assert frame.shape == (len(made.rows), len(made.names)), f"{frame.shape} of {len(made.rows)} × {len(made.names)}"
    for j, column in enumerate(frame.get_columns()):
        written = [row[j] for row in made.rows]
        for found, cell in zip(
            column.cast(str, strict=False).to_list() if column.dtype.is_numeric() else column.to_list(), written
        ):
            if found is None:
                continue
            if column.dtype.is_numeric():
                assert np.isclose(float(found), float(cell), rtol=1e-12, equal_nan=True), (
                    f"{cell!r} was read as {found}"
                )
            elif isinstance(found, str):
                assert found.strip() == cell.strip(), f"{cell!r} was read as {found!r}"


def predict(rng: tables.Random, folder: Path) -> None:
    """Predictions of a sound model for a hostile table: finite, one per row."""
    task = str(rng.choice(TASKS))
    made = tables.make(rng, folder, list(COLUMNS[: rng.integers(3, 5)]))
    how = rng.integers(3)
    model = str(models() / task / "model.hinge")
    extra = ["--with-inputs"] if rng.random() < 0.2 else []
    if how == 0:
        found = strict_json(judged("predict", model, str(made.path), "--json", *extra))
        rows = found["predictions"]
        assert len(rows) == found["rows"]
    elif how == 1:
        rows = list(csv.DictReader(io.StringIO(judged("predict", model, str(made.path), *extra), newline="")))
    else:
        out = folder / "out.csv"
        judged("predict", model, str(made.path), "--out", str(out), *extra)
        rows = list(csv.DictReader(io.StringIO(out.read_text(), newline="")))
        assert sorted(p.name for p in folder.iterdir()) == sorted(["out.csv", made.path.name])
    for row in rows if not extra else []:
        for value in row.values():
            with contextlib.suppress(ValueError, TypeError):
                assert np.isfinite(float(value)), f"a prediction of {value}"


def model(rng: tables.Random, folder: Path) -> None:
    """A model of the command with a right checksum and wrong content: any result, or one line that names the file."""
    task = str(rng.choice(TASKS))
    content = (models() / task / "model.hinge").read_bytes()
    metadata, arrays = model_files.header(content), safetensors.numpy.load(content)
    parts = {name: json.loads(metadata[name]) for name in ("model", "card")}
    for _ in range(int(rng.integers(1, 4))):
        chosen = rng.random()
        if chosen < 0.4:
            model_files.change_array(rng, arrays)
        else:
            model_files.change_state(rng, parts["model" if chosen < 0.7 else "card"])
    path = folder / "model.hinge"
    path.write_bytes(model_files.seal({name: json.dumps(value) for name, value in parts.items()}, arrays))
    data = str(models() / f"{task}.csv")
    for words in (
        ["predict", str(path), data, "--json"], ["predict", str(path), data, "--interval", "0.8"], ["inspect", str(path)],
        ["explain", str(path), data, "--row", "3"], ["verify", str(path)],
    ):  # fmt: skip
        code, _, err = hinge(*words)
        if code:
            lines = err.strip().splitlines()
            named = len(lines) == 1 and (code == DATA or (code == MODEL and path.name in lines[0]))
            assert named, f"{words[0]}: exit {code}: {err[-300:]}"


def report(rng: tables.Random, folder: Path) -> None:
    made = tables.make(rng, folder, list(COLUMNS), rows=60)
    page = folder / "page.html"
    judged("report", str(models() / "binary" / "model.hinge"), str(made.path), "--out", str(page))
    assert "<script>alert(1)" not in page.read_text()


def explain(rng: tables.Random, folder: Path) -> None:
    made = tables.make(rng, folder, list(COLUMNS))
    row = ["--row", str(rng.integers(-1, 40))] if rng.random() < 0.7 else []
    strict_json(
        judged("explain", str(models() / str(rng.choice(TASKS)) / "model.hinge"), str(made.path), *row, "--json")
    )


def compare(rng: tables.Random, folder: Path) -> None:
    made = tables.make(rng, folder, list(COLUMNS))
    model = str(models() / str(rng.choice(TASKS)) / "model.hinge")
    strict_json(judged("compare", model, model, str(made.path), "--json"))


def fit(rng: tables.Random, folder: Path) -> None:
    """The whole command, on few rows and with linear models only; what it writes is used."""
    made = tables.make(rng, folder, rows=int(rng.choice([25, 60, 120])))
    out = folder / "out"
    target = ["--target", made.names[-1]] if rng.random() < 0.9 else []
    found = strict_json(
        judged("fit", str(made.path), *target, "--models", "linear", "--time", "20", "--out", str(out), "--json")
    )
    assert found
    assert "<script>alert(1)" not in (out / "report.html").read_text()
    if not made.path.name.endswith(".svm"):
        judged("predict", str(out / "model.hinge"), str(made.path), "--json")


VALUES = (
    "", "0", "-1", "1e400", "nan", "inf", "-inf", "1_0", "٣", "0x10", "99999999999999999999", "2147483648", "a", "y", "Y", " y ", "\udcff", "é", "x" * 5000, "--", "-", "~",
    "..", "/", "/dev/null", "/nonexistent/x.csv", "a\nb", "*", "%s", "linear", "linear,linear", "linear,,x", ",", "binary", "real", "auto", "None", "true", "[]", "@file", "$HOME",
)  # fmt: skip
OPTIONS = (
    "--target", "-t", "--task", "--time", "--models", "--out", "-o", "--seed", "--drop", "--keep", "--rows", "--json", "--row", "-r", "--with-inputs", "--help", "--version",
    "--nonsense", "-x", "--targe", "--target=", "--time=nan", "--seed=-1",
)  # fmt: skip
COMMANDS = (
    "fit",
    "predict",
    "report",
    "compare",
    "explain",
    "inspect",
    "verify",
    "export",
    "datasets",
    "tag",
    "",
    "Fit",
    "nonsense",
)


def arguments(rng: tables.Random, folder: Path) -> None:
    """Random words after the command; the files are sound."""
    os.chdir(folder)
    task = str(rng.choice(TASKS))
    files = (
        str(models() / f"{task}.csv"),
        str(models() / task / "model.hinge"),
        str(models() / task),
        str(folder / "new.csv"),
    )
    command = str(rng.choice(COMMANDS))
    words = [command]
    if command == "fit":  # a sound call, to which the others are added
        words += [files[0], "--target", "y", "--models", "linear", "--time", "5", "--rows", "30"]
    elif rng.random() < 0.7:
        words += {"predict": [files[1], files[0]], "report": [files[1], files[0]], "explain": [files[1], files[0]], "compare": [files[1], files[1]]}.get(command, [files[1]])  # fmt: skip
    for _ in range(int(rng.integers(0, 5))):
        if rng.random() < 0.7:
            words.append(str(rng.choice(OPTIONS)))
        if rng.random() < 0.8:
            words.append(str(rng.choice(VALUES)) if rng.random() < 0.8 else str(rng.choice(files)))
    if "tag" in words and "fit" in words:
        return
    out = judged(*words)
    if "--json" in words and "--help" not in words and "--version" not in words:
        strict_json(out)


RUNS = {
    "read": read,
    "predict": predict,
    "arguments": arguments,
    "model": model,
    "report": report,
    "explain": explain,
    "compare": compare,
    "fit": fit,
}
GROUP = Group("command", cases, run, random, seconds=60.0, prepare=prepare)
