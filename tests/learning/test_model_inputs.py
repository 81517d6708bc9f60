"""Predict, report, compare, explain, inspect, verify and export, with good and with bad input."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import hinge as hg
from hinge.cli.explain import contributions
from hinge.learning.model_inputs import load_fitted, read_for
from hinge.tables.reading import read_parts, read_table
from kit.command import table

pl = pytest.importorskip("polars", reason="tables need the [cli] extra")

TASKS = ["binary", "multiclass", "real", "count"]


@pytest.mark.parametrize("task", TASKS)
def test_predictions_are_those_of_the_model(hinge, models, task, tmp_path):
    data, folder = models[task]
    out = tmp_path / "p.csv"
    code, _, err = hinge("predict", folder / "model.hinge", data, "--out", out)
    assert code == 0, err
    model = hg.load(folder / "model.hinge")
    frame = pl.read_csv(data).drop("y")
    predicted = pl.read_csv(out)["predicted y"].to_numpy()
    if task in ("real", "count"):
        assert np.allclose(predicted, model.predict(frame), rtol=1e-12)
    else:
        assert np.array_equal(predicted, model.predict(frame))


@pytest.mark.parametrize("ending", [".parquet", ".jsonl", ".arrow"])
def test_predictions_go_to_any_kind_of_file(hinge, models, tmp_path, ending):
    data, folder = models["binary"]
    out = tmp_path / f"p{ending}"
    assert hinge("predict", folder / "model.hinge", data, "--out", out, "--with-inputs")[0] == 0
    assert read_table(out).frame.columns[:4] == ["a", "b", "c", "y"]


def test_other_kinds_of_input_give_the_same_predictions(hinge, models, tmp_path):
    data, folder = models["binary"]
    frame = pl.read_csv(data)
    frame.write_parquet(tmp_path / "t.parquet")
    shuffled = frame.select("y", "c", pl.lit(1).alias("more"), "b", "a")
    shuffled.write_ndjson(tmp_path / "t.jsonl")
    answers = {
        hinge("predict", folder / "model.hinge", p)[1] for p in (data, tmp_path / "t.parquet", tmp_path / "t.jsonl")
    }
    assert len(answers) == 1


@pytest.mark.parametrize("out", ["p.csv", "p.jsonl", "p.parquet", None])
def test_a_file_is_predicted_in_pieces_as_it_is_whole(hinge, models, tmp_path, monkeypatch, out):
    data, folder = models["multiclass"]
    target = [] if out is None else ["--out", tmp_path / out]
    answers = []
    for piece in (1 << 25, 500):
        monkeypatch.setattr("hinge.tables.csv.PIECE", piece)
        monkeypatch.setattr("hinge.tables.decoding.BLOCK", min(piece, 1 << 22))
        code, output, err = hinge("predict", folder / "model.hinge", data, "--with-inputs", *target)
        assert code == 0, err
        if out == "p.parquet":
            answers.append(pl.read_parquet(tmp_path / out).rows())
        else:
            answers.append(output if out is None else (tmp_path / out).read_text())
    assert answers[0] == answers[1]
    assert [p.name for p in tmp_path.iterdir()] == ([] if out is None else [out])


@pytest.mark.parametrize("out", ["p.parquet", "p.arrow"])
def test_columns_are_written_and_read_in_pieces(hinge, models, tmp_path, monkeypatch, out):
    data, folder = models["multiclass"]
    model = folder / "model.hinge"
    assert hinge("predict", model, data, "--out", tmp_path / "whole.csv")[0] == 0
    monkeypatch.setattr("hinge.tables.csv.PIECE", 500)
    monkeypatch.setattr("hinge.tables.decoding.BLOCK", 500)
    assert hinge("predict", model, data, "--out", tmp_path / out)[0] == 0
    columns = read_table(tmp_path / out).frame
    assert columns.height == 300
    assert columns.write_csv() == (tmp_path / "whole.csv").read_text()
    # and the other way round: a file of columns, some rows at a time
    pl.read_csv(data).write_parquet(tmp_path / "data.parquet")
    monkeypatch.setattr("hinge.cli.predict.BATCH", 70)
    heights = [part.frame.height for part in read_parts(tmp_path / "data.parquet", set(), 70)]
    assert heights == [70, 70, 70, 70, 20]
    assert hinge("predict", model, tmp_path / "data.parquet")[1] == (tmp_path / "whole.csv").read_text()


def test_a_score_on_training_rows_has_a_remark(hinge, models, tmp_path):
    data, folder = models["binary"]
    model = folder / "model.hinge"
    for command in (("report", model, data, "-o", tmp_path / "r.html"), ("compare", model, model, data)):
        code, out, _ = hinge(*command)
        assert code == 0
        assert "fitted to these rows" in out
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "on its training rows" in page
    assert "not convex" not in page  # a linear model keeps its certificate
    other = table(tmp_path / "other.csv", seed=1, n=77)
    assert hinge("report", model, other, "-o", tmp_path / "r.html")[0] == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "on new rows" in page
    assert "held out</span>" not in page
    assert "The last fit used all 300 rows" in page
    assert "fitted to these rows" not in hinge("compare", model, model, other)[1]


@pytest.mark.parametrize("out", ["p.csv", "p.parquet"])
def test_predictions_appear_whole_or_not_at_all(hinge, models, tmp_path, monkeypatch, out):
    data, folder = models["binary"]
    monkeypatch.setattr("hinge.tables.csv.PIECE", 500)
    monkeypatch.setattr("hinge.tables.decoding.BLOCK", 500)
    broken = tmp_path / "broken.csv"
    broken.write_text(data.read_text() + "1,2,3,4,5,6\n")
    code, _, err = hinge("predict", folder / "model.hinge", broken, "--out", tmp_path / out)
    assert code == 3
    assert "line 302 has 6 fields" in err
    assert [p.name for p in tmp_path.iterdir()] == ["broken.csv"]


def corrupt(folder, tmp_path, how):
    raw = bytearray((folder / "model.hinge").read_bytes())
    path = tmp_path / "bad.hinge"
    if how == "flip":
        raw[len(raw) // 2] ^= 1
    elif how == "cut":
        raw = raw[: len(raw) // 2]
    elif how == "empty":
        raw = bytearray()
    elif how == "text":
        raw = bytearray(b"this is no model file")
    path.write_bytes(bytes(raw))
    return path


@pytest.mark.parametrize("command", ["predict", "report", "explain", "verify", "inspect", "export", "compare"])
@pytest.mark.parametrize("how", ["flip", "cut", "empty", "text"])
def test_a_damaged_model_is_refused_by_every_command(hinge, models, tmp_path, command, how):
    data, folder = models["binary"]
    bad = corrupt(folder, tmp_path, how)
    rest = {"export": [tmp_path / "m.onnx"], "inspect": [], "compare": [bad]}.get(command, [data])
    code, _, err = hinge(command, bad, *rest)
    assert code == 4
    assert str(bad) in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (lambda f: f.drop("a"), 3, "lacks the column 'a'"),
        (lambda f: f.rename({"b": "bb"}), 3, "Was 'b' renamed to 'bb'"),
        (lambda f: f.drop("a", "b", "c"), 3, "'a', 'b', 'c'"),
        (lambda f: f.with_columns(pl.lit("word").alias("a")), 3, "should hold a number"),
    ],
)
def test_a_table_that_does_not_fit_the_model_is_refused(hinge, models, tmp_path, change, code, message):
    data, folder = models["binary"]
    other = tmp_path / "other.csv"
    change(pl.read_csv(data)).write_csv(other)
    got, _, err = hinge("predict", folder / "model.hinge", other)
    assert got == code
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "args", [("predict", "{model}", "{data}", "-o", "{out}"), ("report", "{model}", "{data}", "-o", "{out}"),
             ("export", "{model}", "{out}"), ("datasets", "heart", "-o", "{out}"), ("fit", "{data}", "-t", "y", "-o", "{data}/x")],
)  # fmt: skip
def test_a_place_that_cannot_be_written_is_reported_before_the_work(hinge, models, tmp_path, args):
    data, folder = models["binary"]
    ending = {"report": "html", "export": "onnx"}.get(args[0], "csv")
    out = tmp_path / "nowhere" / f"x.{ending}"
    code, output, err = hinge(*(a.format(model=folder / "model.hinge", data=data, out=out) for a in args))
    assert (code, output, err.count("\n")) == (2, "", 1)
    assert "folder" in err


def test_new_categories_and_gaps_are_taken(hinge, models, tmp_path):
    _, folder = models["real"]
    new = tmp_path / "new.csv"
    new.write_text("a,b,c\n0.5,,violet\n,3,\nword,1,red\n")
    code, out, err = hinge("predict", folder / "model.hinge", new)
    assert code == 0
    assert out.count("\n") == 4
    assert "a: 1 values are not a number" in err


def test_scoring_needs_the_target(hinge, models, tmp_path):
    data, folder = models["binary"]
    other = tmp_path / "o.csv"
    pl.read_csv(data).drop("y").write_csv(other)
    for command in ("report", "explain"):
        code, _, err = hinge(command, folder / "model.hinge", other)
        assert code == 3
        assert "target 'y'" in err
    pl.read_csv(data).with_columns(pl.lit("maybe").alias("y")).write_csv(other)
    code, _, err = hinge("report", folder / "model.hinge", other)
    assert code == 3
    assert "'maybe'" in err


@pytest.mark.parametrize("task", TASKS)
def test_contributions_add_up(models, task):
    data, folder = models[task]
    fitted = load_fitted(folder / "model.hinge")
    frame, _, _, _ = read_for(fitted, data, with_target=False)
    shares, base, value, _ = contributions(fitted, frame, 7, 0)
    assert base + shares.sum() == pytest.approx(value, abs=1e-9 * max(1, abs(value)))


def test_contributions_of_a_linear_function_are_its_terms(models):
    """For f = Σ g_j(x_j) the Shapley value of column j is g_j(x_j) minus the mean of g_j."""
    data, folder = models["binary"]
    fitted = load_fitted(folder / "model.hinge")
    frame, _, _, _ = read_for(fitted, data, with_target=False)
    core = fitted.pipeline.named_steps["model"]
    prep = fitted.pipeline.named_steps["prep"]

    class Scores:
        classes_ = core.classes_

        def predict(self, X):
            return core.decision_function(prep.transform(X))

    fitted.pipeline = Scores()
    fitted.card = {**fitted.card, "classes": [], "task": "real"}
    shares, _, _, _ = contributions(fitted, frame, 3, 0)
    terms = np.asarray(prep.transform(frame)) * core.coef_
    by_column = np.column_stack([terms[:, prep.columns_[c]].sum(axis=1) for c in fitted.columns])
    exact = by_column[3] - by_column.mean(axis=0)
    error = by_column.std(axis=0) / np.sqrt(100)  # a hundred other rows are drawn
    assert np.all(np.abs(shares - exact) < 4 * error)


def test_explain_and_inspect_print_the_model(hinge, models):
    data, folder = models["multiclass"]
    code, out, _ = hinge("explain", folder / "model.hinge", data, "--row", "2")
    assert code == 0
    assert "probability of" in out
    assert hinge("explain", folder / "model.hinge", data, "--row", "0")[0] == 2
    code, out, _ = hinge("explain", folder / "model.hinge", data, "--json")
    assert next(e["column"] for e in json.loads(out)["importances"]) == "a"
    code, out, _ = hinge("inspect", folder / "model.hinge")
    assert code == 0
    assert "Softmax" in out
    assert "category" in out


def test_verify_computes_the_certificate_anew(hinge, models, tmp_path):
    for task in ("binary", "multiclass", "count"):
        data, folder = models[task]
        code, out, _ = hinge("verify", folder / "model.hinge", data, "--json")
        assert code == 0
        assert json.loads(out)["recomputed"]["converged"]
    other = table(tmp_path / "other.csv", seed=9)
    code, _, err = hinge("verify", models["binary"][1] / "model.hinge", other)
    assert code == 4
    assert "not the rows it was trained on" in err


def test_compare_separates_noise_from_difference(hinge, models, fit, tmp_path):
    data, folder = models["binary"]
    fit(data, "-t", "y", "-o", tmp_path / "b", "--models", "baseline", "--time", "600")
    code, out, _ = hinge("compare", folder / "model.hinge", tmp_path / "b" / "model.hinge", data, "--json")
    assert code == 0
    assert json.loads(out)["better"] == str(folder / "model.hinge")
    code, out, _ = hinge("compare", folder / "model.hinge", folder / "model.hinge", data)
    assert "the same loss in every row" in out
    code, _, err = hinge("compare", folder / "model.hinge", models["real"][1] / "model.hinge")
    assert code == 3
    assert "cannot be compared" in err


def test_a_model_made_in_python_can_be_verified_but_not_fed_with_tables(hinge, tmp_path):
    model = hg.LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    hg.save(model, tmp_path / "m.hinge")
    assert hinge("verify", tmp_path / "m.hinge")[0] == 0
    assert hinge("inspect", tmp_path / "m.hinge")[0] == 0
    code, _, err = hinge("predict", tmp_path / "m.hinge", "heart")
    assert code == 4
    assert "hg.load" in err


def test_tag_is_a_command(hinge, tmp_path):
    data = tmp_path / "t.txt"
    data.write_text("the DET\ndog NOUN\nbarks VERB\n\na DET\ncat NOUN\nsleeps VERB\n\n" * 5)
    assert hinge("tag", "train", data, tmp_path / "t.hinge", "--learner", "perceptron")[0] == 0
    code, out, _ = hinge("tag", "predict", tmp_path / "t.hinge", data)
    assert code == 0
    assert out.split("\n")[0].split() == ["the", "DET"]
    code, _, err = hinge("tag", "train", tmp_path / "nothing.txt", tmp_path / "x.hinge")
    assert code != 0
    assert "Traceback" not in err


def test_mistakes_with_tag_are_answered_in_one_line(hinge, models, tmp_path):
    ragged = tmp_path / "r.conllu"
    ragged.write_text("1\ta\ta\tDET\t_\t_\t_\t_\t_\t_\n2\tb\n\n")
    code, _, err = hinge("tag", "train", ragged, tmp_path / "t.hinge")
    assert code == 3
    assert "line 2" in err
    code, _, err = hinge("tag", "predict", ragged, ragged)
    assert (code, err.count("\n")) == (4, 1) or code == 3
    code, _, err = hinge("tag", "train", tmp_path / "nothing.txt", tmp_path / "x.hinge")
    assert code == 3
    assert "nothing.txt" in err


def test_help_and_version_do_not_wait_for_scikit_learn():
    code = "import sys, hinge.cli.app; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
