"""The fast part of the hostile groups: no crash, no hang, no wrong result, no error without a remedy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hostile.groups import GROUPS


@pytest.mark.parametrize("group", GROUPS)
def test_hostile_inputs_end_well(group):
    found = subprocess.run(
        [sys.executable, "-m", "hostile", group],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert found.returncode == 0, found.stdout[-6000:] + found.stderr[-3000:]
    tried = int(found.stdout.rsplit("all: ", 1)[1].split()[0])
    assert tried > 0
