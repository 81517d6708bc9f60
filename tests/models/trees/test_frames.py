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


def frames(columns):
    """The same table as a frame of every library."""
    yield pd.DataFrame(columns)
    for module, name in (("polars", "DataFrame"), ("pyarrow", "table")):
        yield getattr(pytest.importorskip(module), name)(columns)


def test_text_in_a_frame_of_numbers_is_named_by_its_column():
    for frame in frames({"size": [1.0, 2.0], "colour": ["red", "blue"]}):
        with pytest.raises(ValueError, match=r"could not convert string to float.*\(column 'colour'\).*TablePrep"):
            hg.Ridge().fit(frame, [0.0, 1.0])


def test_dates_in_a_frame_of_numbers_are_named_by_their_column():
    frame = pd.DataFrame({"size": [1.0, 2.0], "day": pd.to_datetime(["2020-01-01", "2021-01-01"])})
    with pytest.raises(ValueError, match=r"X must hold numbers.*\(column 'day'\).*TablePrep"):
        hg.Ridge().fit(frame, [0.0, 1.0])
