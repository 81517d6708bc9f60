"""Files of every format, and the errors of those that cannot be read."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from hinge.errors import UserError
from hinge.tables.decoding import MAX_LINE
from hinge.tables.reading import read_table

pl = pytest.importorskip("polars", reason="tables need the [cli] extra")

FRAME = pl.DataFrame({"n": [1.5, None, 3.0, 4.0], "größe": ["klein", "groß", None, "klein"], "y": [1, 0, 1, 0]})


@pytest.mark.parametrize(
    "ending", [".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".arrow", ".jsonl", ".jsonl.gz", ".json"]
)
def test_every_kind_of_file_gives_the_same_table(tmp_path, ending):
    path = tmp_path / f"table{ending}"
    kind = ending.removesuffix(".gz")
    raw = {
        ".csv": lambda: FRAME.write_csv().encode(),
        ".tsv": lambda: FRAME.write_csv(separator="\t").encode(),
        ".jsonl": lambda: FRAME.write_ndjson().encode(),
        ".json": lambda: FRAME.write_json().encode(),
    }
    if kind in raw:
        content = raw[kind]()
        path.write_bytes(gzip.compress(content) if ending.endswith(".gz") else content)
    else:
        FRAME.write_parquet(path) if kind == ".parquet" else FRAME.write_ipc(path)
    read = read_table(path).frame
    assert read.columns == FRAME.columns
    assert read["n"].to_list() == FRAME["n"].to_list()
    assert read["größe"].to_list() == FRAME["größe"].to_list()
    assert read["y"].cast(pl.Int64).to_list() == FRAME["y"].to_list()


def test_libsvm_text_becomes_columns(tmp_path):
    path = tmp_path / "d.svm"
    path.write_text("+1 1:0.5 3:2 # note\n\n-1 2:1e-3\n")
    table = read_table(path)
    assert table.target == "target"
    assert table.frame.rows() == [(1.0, 0.5, 0.0, 2.0), (-1.0, 0.0, 0.001, 0.0)]


@pytest.mark.parametrize("separator", [";", "|", "\t"])
def test_the_separator_is_found(tmp_path, separator):
    path = tmp_path / "t.csv"
    path.write_text(FRAME.write_csv(separator=separator), encoding="utf-8")
    assert read_table(path).frame.shape == (4, 3)


def test_a_file_without_header_gets_names(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("1,2,0\n3,4,1\n5,6,0\n")
    table = read_table(path)
    assert table.frame.columns == ["column_1", "column_2", "column_3"]
    assert table.frame.height == 3
    assert "all numbers" in table.notes[0]


def test_a_kind_that_changes_late_in_the_file_is_no_obstacle(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n" * 12_000 + "x,3\n")
    table = read_table(path)
    assert table.frame["a"][-1] == "x"
    assert table.frame.height == 12_001


def test_windows_files_are_read_with_a_note(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("name,y\nMüller,1\nGroß,0\n".encode("cp1252"))
    table = read_table(path)
    assert table.frame["name"].to_list() == ["Müller", "Groß"]
    assert "not UTF-8 (near line" in table.notes[0]


def test_repeated_names_and_blank_rows_are_noted(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,a,b\n1,2,3\n,,\n4,5,6\n")
    table = read_table(path)
    assert table.frame.columns == ["a", "a.2", "b"]
    assert table.frame.height == 2
    assert [("2 times" in n) or ("without any value" in n) for n in table.notes] == [True, True]


def in_small_pieces(monkeypatch, piece=2000, block=64):
    """As a file of gigabytes is read."""
    monkeypatch.setattr("hinge.tables.csv.PIECE", piece)
    monkeypatch.setattr("hinge.tables.decoding.BLOCK", block)


@pytest.mark.parametrize("packed", [False, True])
def test_pieces_make_the_table_that_the_whole_file_makes(tmp_path, monkeypatch, packed):
    rng = np.random.default_rng(0)
    lines = ["whole,decimal,late decimal,late word,city,note,truth,gap"]
    for i in range(400):
        late = f"{i}.5" if i > 300 else str(i)
        word = "0x" if i > 350 else f"{i % 7:03d}"
        note = f'"said ""{i}"",\ntwice"' if i % 3 == 0 else f"row {i}"
        lines.append(
            f"{i},{rng.normal():.6f},{late},{word},{rng.choice(['Zürich', 'Oslo'])},{note},{str(i % 2 == 0).lower()},"
            f"{'' if i % 4 else 'x'}"
        )
    content = ("\n".join(lines) + "\n").encode()
    path = tmp_path / ("t.csv.gz" if packed else "t.csv")
    path.write_bytes(gzip.compress(content) if packed else content)
    whole = read_table(path)
    in_small_pieces(monkeypatch)
    again = read_table(path)
    assert again.notes == whole.notes == []
    assert again.frame.columns == whole.frame.columns
    for name in whole.frame.columns:
        assert again.frame[name].to_list() == whole.frame[name].to_list(), name
    assert again.frame["late word"][0] == "000"  # not the number 0: a word further down shows that these are words
    assert again.frame["city"].dtype == pl.Categorical  # stored once each
    assert again.frame["whole"].dtype == pl.Int64


def test_pieces_keep_the_notes_and_the_faults_of_a_file(tmp_path, monkeypatch):
    in_small_pieces(monkeypatch)
    path = tmp_path / "t.csv"
    path.write_bytes(("name,y\n" + "Oslo,1\n" * 200 + "Müller,1\n").encode("cp1252"))
    table = read_table(path)
    assert table.frame["name"].to_list() == ["Oslo"] * 200 + ["Müller"]
    assert "near line 202" in table.notes[0]
    path.write_text("a,b\n" + "1,2\n" * 300 + "1,2,3\n")
    with pytest.raises(UserError, match="line 302 has 3 fields"):
        read_table(path)
    path.write_bytes(b"a,b\n" + b"1,2\n" * 300 + b"1,\0\n")
    with pytest.raises(UserError, match="line 302: a zero byte"):
        read_table(path)


def test_a_quote_that_is_never_closed_is_an_error(tmp_path, monkeypatch):
    in_small_pieces(monkeypatch, piece=300)
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n" * 100 + '1,5" pipe\n' + "1,2\n" * 300)
    with pytest.raises(UserError, match="a quote"):
        read_table(path)


BAD = {
    "missing.csv": (None, "does not exist"),
    "empty.csv": (b"", "is empty"),
    "blank.csv": (b"\n\n\n", "is empty|no rows"),
    "header.csv": (b"a,b,c\n", "no rows"),
    "junk.csv": (bytes(range(256)) * 50, "zero byte|not text"),
    "noise.csv": (np.random.default_rng(0).integers(128, 256, 4000).astype(np.uint8).tobytes(), "not text"),
    "junk.parquet": (b"PAR1 is not enough", "not a parquet file"),
    "junk.arrow": (b"ARROW1??", "not a arrow file"),
    "junk.csv.gz": (b"not gzip at all", "not a complete gzip file"),
    "cut.csv.gz": (gzip.compress(b"a,b\n1,2\n" * 500)[:-20], "not a complete gzip file"),
    "ragged.csv": (b"a,b\n1,2\n3,4,5\n6,7\n", "line 3 has 3 fields, the header has 2"),
    "bad.jsonl": (b'{"a": 1}\n{"a": \n', "line 2 is not JSON"),
    "list.jsonl": (b"[1]\n[2]\n", "line 1 is not a JSON object"),
    "bad.svm": (b"1 1:2\n1 x:y\n", "line 2 is not LIBSVM"),
    "table.xyz": (b"a,b\n1,2\n", "the ending of the name is unknown"),
    "line.csv": (b"a,b\n1," + b"x" * (MAX_LINE + 5), "line 2 is longer than 16 MB"),
    "line.csv.gz": (gzip.compress(b"a,b\n1," + b"x" * (MAX_LINE + 5)), "line 2 is longer than 16 MB"),
}


@pytest.mark.parametrize("name", BAD)
def test_the_error_of_a_damaged_file_is_one_line_with_the_place(tmp_path, name):
    content, message = BAD[name]
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match=message) as error:
        read_table(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_folder_is_not_a_file(tmp_path):
    with pytest.raises(UserError, match="folder"):
        read_table(tmp_path)


def test_wide_files_are_rejected_by_their_first_line(tmp_path, monkeypatch):
    """The names alone are longer than the block from which the separator is detected."""
    path = tmp_path / "t.csv"
    path.write_text(",".join(f"a long name of column {k}" for k in range(20_001)) + "\n1,2\n")
    monkeypatch.setattr("polars.read_csv", None)
    with pytest.raises(UserError, match="line 1 has 20001 fields"):
        read_table(path)


def test_names_of_many_columns_are_distinct(tmp_path):
    path = tmp_path / "t.csv"
    names = ["a", "a", "a", "a.2", " a", "a.3", "", ""] + ["b", " c "] * 2000
    path.write_text(",".join(names) + "\n" + ",".join("1" * len(names)) + "\n")
    columns = read_table(path).frame.columns
    assert len(set(columns)) == len(names)
    assert columns[:4] == ["a", "a.4", "a.5", "a.2"]


@pytest.mark.parametrize("late", [0, 50])
def test_leading_zeros_are_kept(tmp_path, late):
    """A postal code is a text; one zero too many in a thousand numbers is a slip."""
    path = tmp_path / "t.csv"
    codes = [f"{k * 37 % 1000:03d}" for k in range(late, 1000)]
    path.write_text("zip,n,y\n" + "".join(f"{code},{k + 1},{k}\n" for k, code in enumerate(codes)) + "7,007,1\n")
    frame = read_table(path).frame
    assert frame["zip"].to_list() == [*codes, "7"]
    assert frame["n"].dtype == pl.Int64
    assert read_table(path, {"n"}).frame["n"][-1] == "007"
