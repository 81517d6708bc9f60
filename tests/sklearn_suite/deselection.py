"""Which of scikit-learn's tests are left out, and why."""

from __future__ import annotations

from pathlib import Path

PATH = Path(__file__).parent / "deselected.txt"
REASONS = ("private", "wording", "deprecation", "ours")


def read(path: Path = PATH) -> dict[str, str]:
    """Reasons by test: `reason path::test` or `reason path::test[case]`; `#` begins a comment."""
    found = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        text = line.split(" #")[0].strip()
        if not text or text.startswith("#"):
            continue
        reason, test = text.split(None, 1)
        if reason not in REASONS:
            raise ValueError(f"{path}:{number}: the reason {reason!r} is not one of {REASONS}")
        if reason == "ours" and "docs/from_sklearn.md" not in line:
            raise ValueError(f"{path}:{number}: name the line of docs/from_sklearn.md that documents the behaviour")
        if test in found:
            raise ValueError(f"{path}:{number}: {test} is listed twice")
        found[test] = reason
    return found
