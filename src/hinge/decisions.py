"""Decisions from probabilities: the action of least expected cost."""

from __future__ import annotations

from hinge._lazy import lazy_names

_PUBLIC: dict[str, tuple[str, ...]] = {
    "hinge.problem.decisions": ("bayes_action", "cost_threshold", "least_cost", "posterior_risk"),
}  # fmt: skip

__getattr__, __dir__, __all__ = lazy_names(__name__, _PUBLIC)
