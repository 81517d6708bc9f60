"""What the library writes and reads at the edges: full disks, formulas, very wide tables, odd targets."""

from __future__ import annotations

import csv
import resource
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import hinge as hg
from hinge.cli.main import main
from hinge.errors import DATA, MODEL, UserError
from hinge.files import write_atomically
from hinge.learning.write import write
from kit.command import table

pl = pytest.importorskip("polars", reason="tables need the [cli] extra")

LINEAR = {"models": "linear", "seconds": 600.0}
FILES = ("model.hinge", "report.html", "predictions.csv")
# A file grows to LIMIT bytes and no further, as on a disk that is full.
FULL = """
import resource, signal, sys
from pathlib import Path
import hinge as hg
from hinge.errors import UserError
from hinge.learning.write import write
found = hg.learn(sys.argv[1], "y", models="linear", seconds=600.0)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), int(sys.argv[3])))
try:
    write(found, Path(sys.argv[2]))
except UserError as error:
    print(error)
    sys.exit(3)
"""


@pytest.mark.parametrize("limit", [0, 20_000])
def test_a_full_disk_leaves_old_files_whole_and_no_parts(tmp_path, limit):
    path, folder = table(tmp_path / "t.csv", n=200, task="binary"), tmp_path / "out"
    folder.mkdir()
    for name in FILES:
        (folder / name).write_text("old")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FULL, str(path), str(folder), str(limit)], capture_output=True, text=True
    )
    assert done.returncode == 3, done.stderr
    assert "cannot be written" in done.stdout
    assert sorted(p.name for p in folder.iterdir()) == sorted(FILES)
    assert (folder / "report.html").read_text() == "old"
    for name in FILES:
        content = (folder / name).read_bytes()
        assert content == b"old" or len(content) <= limit  # what fitted was written whole
    if (folder / "model.hinge").read_bytes() != b"old":
        hg.load(folder / "model.hinge")


@pytest.mark.parametrize("limit", [0, 1, 4095, 99_999])
def test_a_file_that_does_not_fit_does_not_appear(tmp_path, limit):
    pid = subprocess.run(
        [
            sys.executable, "-c",
            "import resource, signal, sys; from pathlib import Path; from hinge.files import write_atomically\n"
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
            "write_atomically(Path(sys.argv[1]), bytes(100_000))",
            str(tmp_path / "file"),
        ], capture_output=True, text=True,
    )  # fmt: skip
    assert "OSError" in pid.stderr
    assert not list(tmp_path.iterdir())


# What writes a file part by part, or again and again.
STEADY = """
import resource, signal, sys
import numpy as np
import hinge as hg
X = np.arange(4000.0).reshape(1000, 4) % 7
y = X @ [1.0, 2.0, 0.0, 1.0]
model = hg.Ridge().fit(X, y)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
folder = sys.argv[1]
try:
    WRITE
except OSError as error:
    sys.exit(3)
"""
WRITERS = {
    "predictions over blocks": 'model.predict(hg.scan(X, block_rows=100), to=folder + "/p.parquet")',
    "the state of a search": 'hg.tune(model, X, y, {"alpha": [1.0, 2.0]}, state=folder + "/state.json")',
    "a checkpoint": "hg.Ridge().fit(hg.scan(X, target=y, block_rows=100), checkpoint=folder)",
    "a model": 'hg.save(model, folder + "/m.hinge")',
}


@pytest.mark.parametrize("limit", [0, 60])
@pytest.mark.parametrize("what", WRITERS)
def test_a_full_disk_is_an_error_of_the_system_and_leaves_nothing(tmp_path, what, limit):
    code = STEADY.replace("WRITE", WRITERS[what])
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code, str(tmp_path), str(limit)], stderr=-1, text=True)
    assert done.returncode == 3, done.stderr
    assert not list(tmp_path.iterdir())


# The superuser may write anywhere, as long as he has his capabilities.
UNPRIVILEGED = """
import ctypes
assert ctypes.CDLL(None).capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()) == 0
"""


@pytest.fixture
def read_only(tmp_path):
    folder = tmp_path / "read only"
    folder.mkdir()
    folder.chmod(0o555)
    yield folder
    folder.chmod(0o755)


@pytest.mark.parametrize("what", WRITERS)
def test_a_read_only_folder_is_an_error_of_the_system(read_only, what):
    code = UNPRIVILEGED + STEADY.replace("WRITE", WRITERS[what])
    words = [sys.executable, "-W", "ignore", "-c", code, str(read_only), str(10**6)]
    done = subprocess.run(words, stderr=-1, text=True)
    assert done.returncode == 3, done.stderr
    assert not list(read_only.iterdir())


COMMANDS = {
    "fit": ["fit", "TABLE", "--target", "y", "--out", "FOLDER/out"],
    "predict": ["predict", "MODEL", "TABLE", "--out", "FOLDER/p.csv"],
    "report": ["report", "MODEL", "TABLE", "--out", "FOLDER/page.html"],
    "export": ["export", "MODEL", "FOLDER/m.onnx"],
    "datasets": ["datasets", "heart", "--out", "FOLDER/heart.csv"],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A table and its model."""
    folder = tmp_path_factory.mktemp("made")
    path = table(folder / "t.csv", n=120, task="binary")
    return path, write(hg.learn(path, "y", **LINEAR), folder)["model.hinge"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_refuses_a_read_only_folder_in_one_line(read_only, made, command):
    path, model = made
    words = [
        w.replace("FOLDER", str(read_only)).replace("TABLE", str(path)).replace("MODEL", str(model))
        for w in COMMANDS[command]
    ]
    code = UNPRIVILEGED + "import sys; from hinge.cli.main import main; sys.argv[0] = 'hinge'; main()"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code, *words], capture_output=True, text=True)
    assert done.returncode in (2, 3), done.stderr
    assert str(read_only) in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert not list(read_only.iterdir())


def test_a_file_that_fits_appears(tmp_path):
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 0
    write_atomically(tmp_path / "file", bytes(100_000))
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("kind", ["pandas", "source", "profile"])
def test_columns_of_one_name_are_named(kind):
    frame = pd.DataFrame(np.eye(4), columns=list("abca"))
    use = {
        "pandas": lambda X: hg.Ridge().fit(X, np.ones(4)),
        "source": hg.scan,
        "profile": lambda X: hg.profile(X, "b"),
    }[kind]
    with pytest.raises(ValueError, match=r"^X has columns of one name: 'a' 2 times\."):
        use(frame)


def test_a_model_that_fails_inside_a_command_is_named(made, monkeypatch, capsys):
    path, model = made
    monkeypatch.setattr("sys.argv", ["hinge", "predict", str(model), str(path)])
    monkeypatch.setattr("hinge.learning.model_inputs.TableModel.outputs", lambda self, frame: {}["x"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == MODEL
    assert capsys.readouterr().err.startswith(f"hinge: {model} cannot be used: KeyError: 'x' (")


def test_a_panic_of_polars_is_one_line(made, monkeypatch, capsys):
    """It is no Exception, and occurs in damaged Parquet files."""
    path, model = made

    def panic(*_: object, **__: object) -> None:
        raise pl.exceptions.PanicException("offset + length")

    monkeypatch.setattr("sys.argv", ["hinge", "predict", str(model), str(path.with_suffix(".parquet"))])
    pl.DataFrame({"y": [1]}).write_parquet(path.with_suffix(".parquet"))
    monkeypatch.setattr(pl, "scan_parquet", panic)
    monkeypatch.setattr(pl, "read_parquet", panic)
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == DATA
    assert capsys.readouterr().err.endswith("is not a parquet file, or is damaged: offset + length.\n")


FORMULAS = ("=1+1", "+A1", "-A1", "@SUM(A1)", "\tcmd", '=HYPERLINK("http://x")', "=cmd|' /C calc'!A0")


def runs(cell: str) -> bool:
    """Whether a spreadsheet takes the cell for a formula."""
    if cell.startswith(("+", "-")):
        return not cell[1:].replace(".", "", 1).replace("e-", "", 1).isdigit()
    return cell.startswith(("=", "@", "\t", "\r"))


def test_formulas_are_written_as_text(tmp_path, rng):
    """As labels, and as the name of the target, in the predictions of a classifier."""
    which = np.arange(210) % len(FORMULAS)
    frame = pl.DataFrame({"x": which + 0.1 * rng.normal(size=210), FORMULAS[0]: np.array(FORMULAS)[which]})
    files = write(hg.learn(frame, FORMULAS[0], **LINEAR), tmp_path)
    with open(files["predictions.csv"], newline="") as f:
        cells = {cell for row in csv.reader(f) for cell in row}
    for formula in FORMULAS:
        assert any(formula.strip() in cell for cell in cells), formula
    assert not [cell for cell in cells if runs(cell)]


@pytest.mark.parametrize("width", [20_001, 100_001])
def test_tables_that_are_too_wide_are_refused_after_their_first_line(tmp_path, width):
    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"c{j}" for j in range(width)) + "\n" + ",".join("1" * width) + "\n")
    with pytest.raises(UserError, match=f"{width} fields"):
        hg.learn(path, "c0", **LINEAR)


@pytest.mark.parametrize("start", [0, -50])
def test_whole_numbers_that_are_all_distinct_are_a_regression(rng, start):
    x = np.arange(200) + rng.normal(size=200)
    found = hg.learn(pl.DataFrame({"x": x, "y": start + 3 * np.arange(200)}), "y", keep=["x"], **LINEAR)
    assert found.evidence.task in ("real", "count")
