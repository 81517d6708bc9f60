"""Spans of labels, and the scores of a tagger for machines."""

from __future__ import annotations

import json

from hinge.cli.tag import Corpus, has_spans, read_corpus, spans

TEXT = "Ann B-PER\nLee I-PER\nmet O\nBob B-PER\nin O\nParis B-LOC\n\nRome B-LOC\nis O\nold O\n\n"


def test_spans_begin_and_end_as_in_conll():
    assert spans([["B-x", "I-x", "O", "B-x"], ["I-y", "B-y", "I-x"]]) == {
        (0, 0, 2, "x"), (0, 3, 4, "x"), (1, 0, 1, "y"), (1, 1, 2, "y"), (1, 2, 3, "x"),
    }  # fmt: skip
    assert spans([["B-x", "E-x", "S-x", "I-x"]]) == {(0, 0, 2, "x"), (0, 2, 3, "x"), (0, 3, 4, "x")}
    assert spans([["O", "O"], []]) == set()


def test_parts_of_speech_have_no_spans():
    assert not has_spans(Corpus([["a"]], [["NOUN"]], [], [], 1))
    assert not has_spans(Corpus([["a"]], [["O"]], [], [], 1))
    assert has_spans(Corpus([["a", "b"]], [["B-x", "O"]], [], [], 1))


def test_scores_as_json(hinge, tmp_path):
    data, model = tmp_path / "names.txt", tmp_path / "tagger.hinge"
    data.write_text(TEXT * 5)
    code, out, err = hinge("tag", "train", data, model, "--constraints", "bio", "--dev", data, "--json")
    assert code == 0, err
    trained = json.loads(out)
    assert trained["model"] == str(model)
    code, out, _ = hinge("tag", "score", model, data, "--json")
    scored = json.loads(out)
    assert {key: trained[key] for key in scored} == scored
    assert scored["accuracy"] == 1.0
    assert scored["spans"] == {"precision": 1.0, "recall": 1.0, "f1": 1.0, "spans": 20}
    assert scored["labels"]["B-LOC"]["tokens"] == 10
    code, out, _ = hinge("tag", "predict", model, data, "--json")
    assert json.loads(out)["labels"] == read_corpus(data).labels
    code, out, _ = hinge("tag", "score", model, data)
    assert "whole spans     1.0000" in out
    code, _, err = hinge("tag", "score", tmp_path / "none.hinge", data)
    assert code == 4
    assert "does not exist" in err
