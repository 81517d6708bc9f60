"""A tagger from a file, in one command, saved and loaded."""

from __future__ import annotations

import io

import numpy as np
import pytest

import hinge as hg
from hinge.cli import tag

CONLLU = """# text = The dog barks
1\tThe\tthe\tDET\tDT\t_\t2\tdet\t_\t_
2\tdog\tdog\tNOUN\tNN\t_\t3\tnsubj\t_\t_
3\tbarks\tbark\tVERB\tVBZ\t_\t0\troot\t_\t_

# text = A cat can't sleep
1\tA\ta\tDET\tDT\t_\t2\tdet\t_\t_
2\tcat\tcat\tNOUN\tNN\t_\t5\tnsubj\t_\t_
3-4\tcan't\t_\t_\t_\t_\t_\t_\t_\t_
3\tca\tcan\tAUX\tMD\t_\t5\taux\t_\t_
4\tn't\tnot\tPART\tRB\t_\t5\tadvmod\t_\t_
5\tsleep\tsleep\tVERB\tVB\t_\t0\troot\t_\t_
"""
COLUMNS = "The D\ndog N\n\nA D\ncat N\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "a.conllu").write_text(CONLLU)
    (tmp_path / "b.txt").write_text(COLUMNS)
    return tmp_path


def test_reads_both_formats(files):
    corpus = tag.read_corpus(files / "a.conllu")
    assert corpus.words == [["The", "dog", "barks"], ["A", "cat", "ca", "n't", "sleep"]]
    assert corpus.labels[1] == ["DET", "NOUN", "AUX", "PART", "VERB"]
    assert tag.read_corpus(files / "a.conllu", 5).labels[0] == ["DT", "NN", "VBZ"]
    assert tag.read_corpus(files / "b.txt").labels == [["D", "N"], ["D", "N"]]
    out = io.StringIO()
    corpus.write(corpus.labels, out)
    assert out.getvalue() == CONLLU


@pytest.mark.mission("S5")
def test_one_command_trains_predicts_and_scores(files):
    typer = pytest.importorskip("typer", reason="the command line needs the [cli] extra")
    from typer.testing import CliRunner

    assert typer
    app, run = tag.make_app(), CliRunner()
    data, model = str(files / "a.conllu"), str(files / "m.hinge")
    trained = run.invoke(app, ["train", data, model, "--dev", data])
    assert trained.exit_code == 0, trained.output
    assert "accuracy 1.0000" in trained.output
    predicted = run.invoke(app, ["predict", model, data])
    assert predicted.output == CONLLU
    assert "VERB" in run.invoke(app, ["score", model, data]).output


@pytest.mark.parametrize("learner", tag.LEARNERS)
def test_files_hold_the_whole_model(files, learner):
    corpus = tag.read_corpus(files / "b.txt")
    model = tag.train(corpus, learner)
    model.predict(corpus.words)  # what is cached must not get into the file
    hg.save(model, files / "m.hinge")
    loaded = hg.load(files / "m.hinge")
    assert loaded.predict(corpus.words) == model.predict(corpus.words)
    np.testing.assert_array_equal(loaded.decision_function(corpus.words), model.decision_function(corpus.words))
    assert tag.evaluate(loaded, corpus) == tag.evaluate(model, corpus)
    model.transitions_ = model.transitions_[:1]
    hg.save(model, files / "broken.hinge")
    with pytest.raises(ValueError, match="do not fit"):
        hg.load(files / "broken.hinge")
