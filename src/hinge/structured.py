"""Features of tokens for sequence models, and labels of graphs; the estimators are in ``hg``."""

from __future__ import annotations

from hinge._lazy import lazy_names

_PUBLIC: dict[str, tuple[str, ...]] = {
    "hinge.models.structured": ("graph_labelling", "graph_marginals", "TextFeatures", "word_shape"),
}  # fmt: skip

__getattr__, __dir__, __all__ = lazy_names(__name__, _PUBLIC)
