"""The embedded data sets and the demo."""

from __future__ import annotations

import numpy as np
import pytest

import hinge as hg
from hinge import demo


def test_heart():
    heart = hg.load_dataset("heart")
    assert heart.X.shape == (296, len(heart.features))
    assert np.bincount(heart.y).tolist() == [160, 136]
    age = heart.X[:, heart.features.index("age")]
    assert (age.min(), age.max()) == (29, 77)
    assert np.all(np.isfinite(heart.X))
    pain = [j for j, name in enumerate(heart.features) if name.startswith("cp=")]
    np.testing.assert_array_equal(heart.X[:, pain].sum(axis=1), 1.0)


def test_insurance():
    insurance = hg.load_dataset("insurance")
    assert insurance.X.shape == (1338, 9)
    assert insurance.y.mean() == pytest.approx(13270.42, abs=0.01)
    assert "smoker=yes" in insurance.features


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"'heart', 'insurance'"):
        hg.load_dataset("titanic")


def test_the_demo(tmp_path, capsys):
    demo.main(str(tmp_path))
    printed = capsys.readouterr().out
    assert str(tmp_path / "picture.png") in printed.splitlines()[-1]
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert "<table>" in (tmp_path / "report.html").read_text()
    assert hg.load(tmp_path / "heart.hinge").certificate_.converged


def test_the_demo_beats_the_baseline_with_certificates_that_hold():
    for data in ("heart", "insurance"):
        rows, _ = demo.fit_all(data)
        for row in rows:
            assert row.learner.certificate_.converged, row.what
            assert row.score > row.baseline + 0.1, row.what
