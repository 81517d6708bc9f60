"""Axes to draw on, without a screen."""

from __future__ import annotations

import matplotlib
import pytest

matplotlib.use("agg")
import matplotlib.pyplot as plt


@pytest.fixture
def ax():
    figure, axes = plt.subplots()
    yield axes
    plt.close(figure)
