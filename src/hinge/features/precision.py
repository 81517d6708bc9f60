"""Transformers that keep the precision of their input."""

from __future__ import annotations

from typing import Any

from sklearn.base import TransformerMixin


class KeepsPrecision(TransformerMixin):
    """scikit-learn's mixin for transformers that give float32 for float32."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
