"""Number formats of people and of their programs: decimal commas, currencies, several words for yes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hinge.errors import UserError
from hinge.tables.number_formats import Notation, decimal_mark, is_truth, notation_of
from hinge.tables.reading import read_table
from tables.test_profile import NOISE, RNG, N, profile_of

pl = pytest.importorskip("polars", reason="tables need the [cli] extra")

X = NOISE["x"]


@pytest.mark.parametrize(
    ("texts", "read"),
    [
        (["1,5", "-2,25", "12"], [1.5, -2.25, 12.0]),
        (["1.234,50 €", "-12,00 €"], [1234.5, -12.0]),
        (["$1,234.50", "-$5.00", "$-3"], [1234.5, -5.0, -3.0]),
        (["12 %", "3.5%"], [12.0, 3.5]),
        (["1\u202f000 kg", "2.5 kg", "1e3 kg"], [1000.0, 2.5, 1000.0]),
        (["1,234", "5,678"], [1234.0, 5678.0]),
        (["0,123", "5,678"], [0.123, 5.678]),
        (["yes", "No", "TRUE", "0", "1"], [1.0, 0.0, 1.0, 0.0, 1.0]),
    ],
)
def test_number_formats_are_recognised(texts, read):
    notation = Notation(truth=True) if is_truth(texts) else notation_of(texts)
    assert [notation.number(text) for text in texts] == read
    assert repr(texts[0]) in notation.describe(texts[0]) or notation.truth


@pytest.mark.parametrize(
    "texts",
    [["ABC1", "ABC2"], ["2020-01", "2020-02"], ["12:30", "01:15"], ["1.2.3", "1.4.5"], ["3 kg", "4 m"], ["yes", "no"],
     ["f", "n", "y"], ["10.0.0.1", "10.0.0.2"], ["3a", "4b"]],
)  # fmt: skip
def test_other_texts_have_no_number_format(texts):
    assert notation_of(texts) is None


def test_one_column_decides_the_decimal_mark_of_the_others():
    unclear, clear = ["1,234", "5,678"], ["0,5", "3"]
    assert decimal_mark([unclear]) == "."
    assert decimal_mark([unclear, clear]) == ","
    assert [notation_of(unclear, hint=",").number(text) for text in unclear] == [1.234, 5.678]


def codes_of(found):
    return {(n.code, n.column) for n in found.notes}


def test_values_that_floats_cannot_hold_are_no_numbers():
    wild = np.where(np.arange(N) == 3, np.inf, X)
    group, key = 2**53 + np.arange(N) % 3, 10**18 + np.arange(N)
    found = profile_of({"wild": wild, "group": group, "key": key}, RNG.normal(size=N))
    assert {c.name: c.kind for c in found.columns} == {"wild": "number", "group": "category"}
    assert found.frame["wild"].null_count() == 1
    assert found.frame["group"].n_unique() == 3
    assert codes_of(found) >= {("D07", "wild"), ("D18", "group"), ("D02", "key")}


def test_numbers_with_a_word_for_missing_stay_numbers():
    texts = [f"{v:.4f}" if k % 8 else "not measured" for k, v in enumerate(X)]
    grade = ["AB"[k % 2] if k % 3 else str(k % 5) for k in range(N)]
    found = profile_of({"measured": texts, "grade": grade}, RNG.normal(size=N))
    assert {c.name: c.kind for c in found.columns} == {"measured": "number", "grade": "category"}
    assert ("D07", "measured") in codes_of(found)


def test_number_formats_of_targets():
    y = RNG.normal(50, 9, N)
    found = profile_of(NOISE, [f"{v:.2f}".replace(".", ",") + " %" for v in y])
    assert (found.task, found.notation) == ("real", Notation(",", "", "%"))
    np.testing.assert_allclose(found.y, y, atol=0.006)
    found = profile_of(NOISE, ["unknown" if k % 40 == 0 else f"{v:.4f}" for k, v in enumerate(y)])
    assert (found.task, len(found.y)) == ("real", N - N // 40)
    assert codes_of(found) >= {("D07", "y"), ("D06", "y")}
    words = [("yes", "True", "1")[k % 3] if v > 50 else ("no", "False", "0")[k % 3] for k, v in enumerate(y)]
    found = profile_of(NOISE, words)
    assert (found.task, list(found.classes)) == ("binary", ["false", "true"])
    assert ("D18", "y") in codes_of(profile_of(NOISE, [("Yes", "yes", "maybe")[k % 3] for k in range(N)]))
    assert ("D19", "y") in codes_of(profile_of(NOISE, RNG.choice([10, 20, 40], N)))
    assert ("D19", "y") not in codes_of(profile_of(NOISE, RNG.choice([10, 20, 40], N), "real"))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([f"2024-01-{1 + k % 28:02d}" for k in range(N)], "holds dates"),
        (["x"] + ["z"] * (N - 1), "'x' in one row only"),
        ([f"word {k}" if k % 3 == 0 else f"{v:.3f}" for k, v in enumerate(X)], "empty the cells that hold words"),
        ([f"class {2 * k // 3}" for k in range(N)], "merge classes"),
    ],
)
def test_a_target_that_cannot_be_used_comes_with_the_remedy(y, message):
    with pytest.raises(UserError, match=message):
        profile_of(NOISE, y)


def test_the_error_for_no_column_left_has_the_reasons():
    with pytest.raises(UserError, match=r"x: the same value.*z: no values"):
        profile_of({"x": [1.0] * N, "z": [None] * N}, RNG.normal(size=N))


# --- files ---


@pytest.mark.parametrize("how", ["utf-8-sig", "utf-16", "utf-16-be", "returns"])
def test_files_of_other_programs_are_read(tmp_path, how):
    content = "größe;y\n1,5;ja\n2,5;nein\n3,5;ja\n"
    raw = content.replace("\n", "\r").encode() if how == "returns" else content.encode(how)
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xfe\xff" + raw if how == "utf-16-be" else raw)
    table = read_table(path)
    assert table.frame.rows() == [("1,5", "ja"), ("2,5", "nein"), ("3,5", "ja")]
    assert table.frame.columns == ["größe", "y"]
    assert len(table.notes) == (how != "utf-8-sig")


def test_columns_without_names_get_some(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(",a,,a,\n1,2,3,4,\n5,6,7,8,\n")
    table = read_table(path)
    assert table.frame.columns == ["unnamed_1", "a", "unnamed_3", "a.2", "unnamed_5"]
    assert "no name for column 1, 3, 5" in table.notes[0]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "# made by a program\na,b\n1,2\n", "remove the lines that stand before"),
        ("t.txt", "a b y\n1 2 3\n4 5 6\n", "the separator must be"),
        ("t.xlsx", "PK", "save its sheet as CSV"),
    ],
)
def test_the_errors_of_files_name_the_remedy(hinge, tmp_path, name, content, message):
    path = tmp_path / name
    path.write_text(content)
    code, _, err = hinge("fit", path, "-t", "y")
    assert code == 3
    assert message in err
    assert err.count("\n") == 1


def test_a_model_reads_new_rows_as_it_read_the_old_ones(hinge, tmp_path):
    rng = np.random.default_rng(0)
    n = 120
    price, rate = rng.uniform(900, 3000, n).round(2), rng.uniform(0, 99, n).round(1)
    flag = rng.random(n) < 0.5
    y = (0.01 * price + 0.2 * rate + 5 * flag + rng.normal(size=n)).round(3)
    words = [("yes", "1", "TRUE")[k % 3] if f else ("no", "0", "False")[k % 3] for k, f in enumerate(flag)]
    german = "\n".join(
        f"{p:,.2f} €;{r}%;{w};{v}".replace(",", "'").replace(".", ",") for p, r, w, v in zip(price, rate, words, y)
    )
    ours, plain = tmp_path / "german.csv", tmp_path / "plain.csv"
    ours.write_text("price;rate;flag;y\n" + german + "\n", encoding="cp1252")
    pl.DataFrame({"price": price, "rate": rate, "flag": np.where(flag, "true", "false"), "y": y}).write_csv(plain)
    kinds, predictions = [], []
    for data in (ours, plain):
        model = tmp_path / data.stem / "model.hinge"
        code, out, err = hinge(
            "fit", data, "-t", "y", "-o", model.parent, "--models", "linear", "--time", "600", "--json"
        )
        assert code == 0, err
        kinds.append([c["kind"] for c in json.loads(out)["columns"]])
        predictions.append(hinge("predict", model, plain)[1])
    assert kinds == [["number", "number", "boolean"]] * 2
    assert predictions[0] == predictions[1]
    model = tmp_path / "german" / "model.hinge"
    assert hinge("predict", model, ours)[1] == predictions[0]
    _, out, err = hinge("report", model, ours, "-o", tmp_path / "r.html", "--json")
    assert json.loads(out)["score"] == pytest.approx(1.0, abs=0.4), err
    code, _, err = hinge("predict", tmp_path / "plain" / "model.hinge", ours)  # its training data had no currency
    assert code == 3
    assert "'price' should hold a number" in err
