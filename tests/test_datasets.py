"""The embedded data sets."""

from __future__ import annotations

import numpy as np
import pytest

import hinge as hg


def test_heart_has_its_rows_and_ranges():
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
