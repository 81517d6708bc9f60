"""Shared fixtures: seeds, and real data from ../shared/data where it exists."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

pytest_plugins = ["kit.command"]

DATA = Path(os.environ.get("HINGE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--only-random", action="store_true", help="run the tests that use rng (`make test-seeds`)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if addresses := [item.nodeid for item in items if " at 0x" in item.nodeid]:
        raise pytest.UsageError(f"names of tests with addresses, which differ between workers: {', '.join(addresses)}")
    if config.getoption("--only-random"):
        fixed = [item for item in items if "rng" not in getattr(item, "fixturenames", ())]
        config.hook.pytest_deselected(items=fixed)
        items[:] = [item for item in items if item not in set(fixed)]


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers; HINGE_SEED changes them, so that no test is tuned to one seed."""
    return np.random.default_rng(int(os.environ.get("HINGE_SEED", "0")))


@pytest.fixture(scope="session")
def real_data():
    """A function from a file name in ../shared/data to its path; skips where the folder is absent."""

    def find(name: str) -> Path:
        path = DATA / name
        if not path.exists():
            pytest.skip(f"needs the real data set {name} in {DATA}")
        return path

    return find
