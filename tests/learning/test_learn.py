"""hg.learn: the command from Python."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor

import hinge as hg
from hinge.errors import UserError, in_shell
from hinge.tables.notes import DIAGNOSES
from kit.command import table

pl = pytest.importorskip("polars", reason="tables need the [cli] extra")

QUICK = {"models": "linear", "seconds": 600.0}


@pytest.mark.parametrize("kind", ["path", "pandas", "polars", "arrow"])
def test_paths_and_data_frames_give_the_same_model(tmp_path, kind):
    path = table(tmp_path / "t.csv", n=300, task="binary")
    frame = pl.read_csv(path)
    given = {"path": path, "pandas": frame.to_pandas(), "polars": frame, "arrow": frame.to_arrow()}[kind]
    found = hg.learn(given, "y", **QUICK)
    again = hg.learn(str(path), "y", **QUICK)
    np.testing.assert_allclose(found.model.predict_proba(frame), again.model.predict_proba(frame), rtol=1e-9)


def test_the_model_takes_raw_tables_and_ignores_other_columns(tmp_path):
    frame = pl.read_csv(table(tmp_path / "t.csv", n=300, task="binary"))
    model = hg.learn(frame, "y", **QUICK).model
    assert is_classifier(model)
    shuffled = frame.select(frame.columns[::-1]).with_columns(pl.lit("x").alias("unknown"))
    assert (model.predict(shuffled) == model.predict(frame)).all()
    assert model.score(frame) > 0.6
    p = model.predict_proba(frame)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (model.classes_[p.argmax(axis=1)] == model.predict(frame)).all()
    with pytest.raises(UserError, match="lacks the column"):
        model.predict(frame.drop(model.columns[0]))


def test_a_regressor_has_no_probabilities(tmp_path):
    model = hg.learn(table(tmp_path / "t.csv", n=300, task="real"), "y", **QUICK).model
    assert is_regressor(model)
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "classes_")


def test_fit_again_gives_the_same_model_on_the_same_rows(tmp_path):
    frame = pl.read_csv(table(tmp_path / "t.csv", n=300, task="real"))
    model = hg.learn(frame, "y", **QUICK).model
    again = clone(model).fit(frame, frame["y"].to_numpy())
    np.testing.assert_allclose(again.predict(frame), model.predict(frame), rtol=1e-6)


def test_the_result_holds_scores_findings_and_files(tmp_path):
    path = table(tmp_path / "t.csv", n=1200, task="binary")
    found = hg.learn(path, "y", models=["linear", "tree"], seconds=600.0)
    board = found.leaderboard
    assert board["name"].to_list()[:3] == ["baseline", "linear", "tree"]
    assert board.filter(pl.col("chosen"))["name"].item() == found.chosen.family.name
    # The score is that of the held-out rows, by a model that was not fitted to them.
    e = found.evidence
    p = np.clip(e.prediction[np.arange(len(e.y)), e.y], 1e-7, 1)
    assert found.score == pytest.approx(-np.log(p).mean())
    assert len(found.test) == len(e.y) == 240
    page = found.report(tmp_path / "page.html").read_text()
    assert "<svg" in page
    saved = hg.load(found.save(tmp_path / "m.hinge"))
    np.testing.assert_array_equal(
        saved.predict_proba(found.profile.frame), found.model.pipeline.predict_proba(found.profile.frame)
    )
    assert "<table" in found._repr_html_()
    assert found.evidence.reason in str(found)


def test_the_command_is_the_function(hinge, tmp_path):
    path = table(tmp_path / "t.csv", n=300, task="real")
    code, _, _ = hinge("fit", path, "-t", "y", "--models", "linear", "--time", "600", "-o", tmp_path / "out", "--json")
    assert code == 0
    found = hg.learn(path, "y", **QUICK)
    stored = hg.load(tmp_path / "out" / "model.hinge")
    np.testing.assert_array_equal(
        stored.predict(found.profile.frame), found.model.pipeline.predict(found.profile.frame)
    )


def test_mistakes_are_named():
    with pytest.raises(TypeError, match="path or a data frame"):
        hg.learn(3)
    with pytest.raises(ValueError, match="seconds must be positive"):
        hg.learn("heart", seconds=0)
    with pytest.raises(UserError, match="no column 'z'"):
        hg.learn(pl.DataFrame({"a": range(30), "b": range(30)}), "z")


def test_progress_shows_the_table_and_the_comparison(tmp_path, capsys):
    hg.learn(table(tmp_path / "t.csv", n=300, task="binary"), "y", **QUICK, progress=True)
    printed = capsys.readouterr().out
    assert "300 rows" in printed
    assert "task overrules" in printed
    assert "▸ linear" in printed
    hg.learn(tmp_path / "t.csv", "y", **QUICK)
    assert capsys.readouterr().out == ""


def test_messages_name_arguments_in_python_and_options_in_the_shell(tmp_path, hinge):
    path = table(tmp_path / "t.csv", n=300, task="binary")
    with pytest.raises(UserError, match=r'^task="rank" is not known'):
        hg.learn(path, "y", task="rank")
    with pytest.raises(UserError, match=r'^models=\["magic"\]: not known'):
        hg.learn(path, "y", models="magic")
    with pytest.raises(UserError, match=r'drop=\["y"\] would remove the target'):
        hg.learn(path, "y", drop=["y"])
    assert "--drop y would remove" in hinge("fit", path, "-t", "y", "--drop", "y", "-o", tmp_path / "out")[2]
    assert "use keep" in DIAGNOSES["D02"].cure
    with in_shell():
        assert "use --keep" in DIAGNOSES["D02"].cure
        assert "--time" in DIAGNOSES["D17"].cure
    assert 'models=["boosting"]' in DIAGNOSES["D17"].cure


def test_the_library_names_no_options_of_the_command():
    """Only the command and what it prints of itself may; everything else asks ``argument``."""
    sources = Path(hg.__file__).parent
    for path in sources.rglob("*.py"):
        if path.parent.name == "cli" or path.name in ("write.py", "style.py"):
            continue
        found = re.findall(r"--(?:task|keep|drop|time|models|target|rows|seed)\b", path.read_text(encoding="utf-8"))
        assert not found or path.name == "errors.py", f"{path}: {found}"


@pytest.mark.parametrize(
    ("width", "there", "gone"), [(60, "explained", "predict/row"), (80, "fit", "certificate"), (160, "certificate", "")]
)
def test_narrow_terminals_lose_columns_and_no_part_of_a_name(width, there, gone):
    import io

    rich = pytest.importorskip("rich.console")
    from hinge.learning.console import draw

    found = hg.learn("heart", models="linear,tree", seconds=600.0)
    console = rich.Console(file=io.StringIO(), width=width)
    console.print(draw(found.search.results, "log_loss", found.chosen, width=width))
    text = console.file.getvalue()
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    assert "CV log loss ± se" in text
    assert there in text
    assert not gone or gone not in text
