"""Named members: what committees of different estimators share."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import MetaEstimatorMixin, TransformerMixin, is_classifier, is_regressor
from sklearn.utils import Bunch, get_tags
from sklearn.utils.metaestimators import _BaseComposition

from hinge._parameters import Estimator


class NamedMembers(MetaEstimatorMixin, TransformerMixin, Estimator, _BaseComposition):
    """A list ``estimators`` of (name, estimator); "drop" in place of an estimator leaves it out.

    ``get_params`` and ``set_params`` reach members by their name and their parameters as ``name__parameter``.
    """

    estimators: list[tuple[str, Any]]
    estimators_: list[Any]

    @property
    def named_estimators(self) -> Bunch:
        """Members as given, by name."""
        return Bunch(**dict(self.estimators))

    @property
    def named_estimators_(self) -> Bunch:
        """Fitted members by name."""
        fitted = iter(self.estimators_)
        return Bunch(**{name: "drop" if _dropped(member) else next(fitted) for name, member in self.estimators})

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters, and with ``deep`` members and theirs."""
        sound = isinstance(self.estimators, list) and len(self._pairs()) == len(self.estimators)
        return self._get_params("estimators", deep=deep and sound)

    def set_params(self, **parameters: Any) -> Any:
        """Set parameters, members by name, or parameters of members as ``name__parameter``."""
        return self._set_params("estimators", **parameters)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = [get_tags(member).input_tags for _, member in self._pairs() if hasattr(member, "fit")]
        tags.input_tags.sparse = bool(inner) and all(t.sparse for t in inner)
        tags.input_tags.allow_nan = bool(inner) and all(t.allow_nan for t in inner)
        tags.transformer_tags.preserves_dtype = []  # the members decide
        return tags

    def _pairs(self) -> list[tuple[str, Any]]:
        """The entries of ``estimators`` that are pairs of a name and a member."""
        listed = self.estimators if isinstance(self.estimators, list) else []
        return [pair for pair in listed if isinstance(pair, tuple | list) and len(pair) == 2]

    def _members(self) -> list[tuple[str, Any]]:
        """Names and members without those that are dropped, once the list is found to be sound."""
        pairs = self._pairs()
        if not pairs or len(pairs) < len(self.estimators) or not all(isinstance(name, str) for name, _ in pairs):
            raise ValueError(
                "Invalid 'estimators' attribute, 'estimators' should be a non-empty list of (string, estimator) tuples."
            )
        self._validate_names([name for name, _ in pairs])
        members = [(name, member) for name, member in pairs if not _dropped(member)]
        if not members:
            raise ValueError("All estimators are dropped. At least one is required to be an estimator.")
        wanted, kind = (is_classifier, "classifier") if is_classifier(self) else (is_regressor, "regressor")
        for name, member in members:
            if not wanted(member):
                raise ValueError(f"The estimator {type(member).__name__} ({name!r}) should be a {kind}.")
        return members

    def _own_feature_names(self, name: str, widths: list[int]) -> np.ndarray:
        """Names of columns that members make: class_member, or class_member0, class_member1, … for several."""
        names = [member_name for member_name, member in self.estimators if not _dropped(member)]
        out = []
        for member_name, width in zip(names, widths, strict=True):
            stem = f"{name}_{member_name}"
            out += [stem] if width == 1 else [f"{stem}{column}" for column in range(width)]
        return np.asarray(out, dtype=object)


def _dropped(member: Any) -> bool:
    return isinstance(member, str) and member == "drop"
