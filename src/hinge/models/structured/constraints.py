"""Rules on neighbouring labels, such as those of BIO tagging.

A rule is a function of two labels that returns whether the second may follow the first; the first is None at the start
of a sequence, the second is None at its end. Labellings that break the rule have probability zero, in training and in
prediction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Rule = Callable[[Any, Any], bool]


def bio(before: Any, after: Any) -> bool:
    """I-X may only follow B-X or I-X."""
    if after is None or not str(after).startswith("I-"):
        return True
    return before is not None and str(before)[:2] in ("B-", "I-") and str(before)[2:] == str(after)[2:]


def bioes(before: Any, after: Any) -> bool:
    """B-X and I-X must be followed by I-X or E-X, which may follow nothing else."""
    opened = before is not None and str(before)[:2] in ("B-", "I-")
    inside = after is not None and str(after)[:2] in ("I-", "E-")
    if opened or inside:
        return opened and inside and str(before)[2:] == str(after)[2:]
    return True


RULES: dict[str, Rule] = {"bio": bio, "bioes": bioes}


@dataclass
class Forbidden:
    """A rule as tables: the forbidden (1) and allowed (0) pairs, first labels and last labels; None means no rule."""

    pairs: np.ndarray | None = None
    first: np.ndarray | None = None
    last: np.ndarray | None = None

    @classmethod
    def by(cls, rule: str | Rule | None, labels: np.ndarray) -> Forbidden:
        if rule is None:
            return cls()
        if isinstance(rule, str):
            if rule not in RULES:
                raise ValueError(f"constraints={rule!r} is not known; expected one of {sorted(RULES)} or a function.")
            rule = RULES[rule]
        names = labels.tolist()
        return cls(
            np.array([not rule(a, b) for a in names for b in names], dtype=np.uint8),
            np.array([not rule(None, b) for b in names], dtype=np.uint8),
            np.array([not rule(a, None) for a in names], dtype=np.uint8),
        )

    def fits(self, k: int) -> bool:
        """Whether the tables are for k labels."""
        sizes = {"pairs": k * k, "first": k, "last": k}
        tables = [(getattr(self, name), size) for name, size in sizes.items()]
        return all(t is None or (t.dtype == np.uint8 and t.shape == (size,)) for t, size in tables)

    def check(self, y: np.ndarray, start: np.ndarray, parent: np.ndarray | None, labels: np.ndarray) -> None:
        """Raises an error if training labels break the rule, because their probability would be zero."""
        if self.pairs is None or self.first is None or self.last is None or len(y) == 0:
            return
        before, after = neighbours(y, start, parent)
        broken = np.flatnonzero(self.pairs.reshape(len(labels), -1)[before, after])
        if len(broken):
            k = broken[0]
            raise ValueError(
                f"y breaks the constraints: label {labels.tolist()[after[k]]!r} follows {labels.tolist()[before[k]]!r}. "
                "Correct the labels or relax the constraints."
            )
        filled = np.flatnonzero(np.diff(start))
        if parent is None and (
            np.any(self.first[y[start[:-1][filled]]]) or np.any(self.last[y[start[1:][filled] - 1]])
        ):
            raise ValueError("y breaks the constraints: a sequence begins or ends with a label that may not be there.")


def neighbours(
    y: np.ndarray, start: np.ndarray, parent: np.ndarray | None, where: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """The labels at both ends of every edge, (previous or parent, own); with ``where`` their tokens instead."""
    position = np.arange(len(y)) - np.repeat(start[:-1], np.diff(start))
    above = position - 1 if parent is None else parent
    has = np.flatnonzero(above >= 0)
    base = np.repeat(start[:-1], np.diff(start))[has]
    before = y[base + above[has]]
    return (has, before) if where else (before, y[has])


def triples_of(y: np.ndarray, start: np.ndarray, k: int) -> np.ndarray:
    """(first · k + second) · k + third for the label triples within the chains."""
    position = np.arange(len(y)) - np.repeat(start[:-1], np.diff(start))
    third = np.flatnonzero(position >= 2)
    first, second = y[third - 2].astype(np.int64), y[third - 1]
    return (first * k + second) * k + y[third]
