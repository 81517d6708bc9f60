"""Data frames as inputs of trees: missing text of every kind, and errors that name the column."""

from __future__ import annotations

import numpy as np
import pytest

import hinge as hg

pd = pytest.importorskip("pandas")


@pytest.mark.parametrize("dtype", ["string", "object", "category"])
@pytest.mark.parametrize("absent", [None, float("nan")])
def test_missing_text_is_missing_whatever_its_type(dtype, absent):
    text = ["a", absent, "b", absent] * 10
    y = np.array([0.0, 1.0, 2.0, 1.0] * 10)
    frame = pd.DataFrame({"kind": pd.Series(text, dtype=dtype)})
    model = hg.DecisionTreeRegressor().fit(frame, y)
    np.testing.assert_allclose(model.predict(frame), y)


def test_text_in_a_frame_of_numbers_is_named_by_its_column():
    frame = pd.DataFrame({"size": [1.0, 2.0], "colour": ["red", "blue"]})
    with pytest.raises(ValueError, match=r"could not convert string to float.*\(column 'colour'\).*TablePrep"):
        hg.Ridge().fit(frame, [0.0, 1.0])
