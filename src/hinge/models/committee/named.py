"""Named members: the base of committees of different estimators."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import MetaEstimatorMixin, TransformerMixin, is_classifier, is_regressor
from sklearn.utils import Bunch, get_tags
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.validation import _num_samples

from hinge._parameters import Estimator
from hinge.models.base import check_weights
from hinge.models.routing import Arguments, route, router, routing_enabled


class NamedMembers(MetaEstimatorMixin, TransformerMixin, Estimator, _BaseComposition):
    """A list ``estimators`` of (name, estimator); "drop" in place of an estimator leaves it out.

    ``get_params`` and ``set_params`` reach members by their name and their parameters as ``name__parameter``.

    Without metadata routing the weights of ``fit`` go to every member; with it each member gets what it has requested.
    """

    __metadata_request__fit: ClassVar[dict[str, str]] = {"sample_weight": UNUSED}  # the members' requests decide

    estimators: list[tuple[str, Any]]
    estimators_: list[Any]

    @property
    def named_estimators(self) -> Bunch:
        """The unfitted members by name."""
        return Bunch(**dict(self.estimators))

    @property
    def named_estimators_(self) -> Bunch:
        """Fitted members by name."""
        fitted = iter(self.estimators_)
        return Bunch(**{name: "drop" if _dropped(member) else next(fitted) for name, member in self.estimators})

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters and, with ``deep``, members and their parameters."""
        sound = isinstance(self.estimators, list) and len(self._pairs()) == len(self.estimators)
        return self._get_params("estimators", deep=deep and sound)

    def set_params(self, **parameters: Any) -> Any:
        """Set parameters, members by name, or parameters of members as ``name__parameter``."""
        return self._set_params("estimators", **parameters)

    def get_metadata_routing(self) -> Any:
        """Every member gets the arguments of ``fit`` that it has requested."""
        return router(
            self, **{name: (member, {"fit": "fit"}) for name, member in self._pairs() if not _dropped(member)}
        )

    def _fit_arguments(
        self, X: Any, sample_weight: Any, arguments: Arguments
    ) -> tuple[np.ndarray | None, dict[str, Arguments]]:
        """The weights that every member gets and, by member, the arguments that routing gives to it."""
        routed = route(self, "fit", arguments, sample_weight=sample_weight)
        if routing_enabled():
            return None, {name: dict(routed[name].fit) for name, _ in self._members()}
        weight = check_weights(sample_weight, np.empty((_num_samples(X), 0)))
        return weight, {name: {} for name, _ in self._members()}

    def _expected(self, member: Any) -> str | None:
        """The kind of estimator that was expected instead of a member; None if the member is one."""
        if is_classifier(self):
            return None if is_classifier(member) else "classifier"
        return None if is_regressor(member) else "regressor"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = [get_tags(member).input_tags for _, member in self._pairs() if hasattr(member, "fit")]
        tags.input_tags.sparse = bool(inner) and all(t.sparse for t in inner)
        tags.input_tags.allow_nan = bool(inner) and all(t.allow_nan for t in inner)
        tags.transformer_tags.preserves_dtype = []  # depends on the members
        return tags

    def _pairs(self) -> list[tuple[str, Any]]:
        """The entries of ``estimators`` that are pairs of a name and a member."""
        listed = self.estimators if isinstance(self.estimators, list) else []
        return [pair for pair in listed if isinstance(pair, tuple | list) and len(pair) == 2]

    def _members(self) -> list[tuple[str, Any]]:
        """Names and members without the dropped ones, after checking the list."""
        pairs = self._pairs()
        if not pairs or len(pairs) < len(self.estimators) or not all(isinstance(name, str) for name, _ in pairs):
            raise ValueError(
                "Invalid 'estimators' attribute, 'estimators' should be a non-empty list of (string, estimator) tuples."
            )
        self._validate_names([name for name, _ in pairs])
        members = [(name, member) for name, member in pairs if not _dropped(member)]
        if not members:
            raise ValueError("All estimators are dropped. At least one is required to be an estimator.")
        for name, member in members:
            if expected := self._expected(member):
                raise ValueError(f"The estimator {type(member).__name__} ({name!r}) should be a {expected}.")
        return members

    def _own_feature_names(self, name: str, widths: list[int]) -> np.ndarray:
        """Names of the members' output columns: class_member, or class_member0, class_member1, … for several."""
        names = [member_name for member_name, member in self.estimators if not _dropped(member)]
        out = []
        for member_name, width in zip(names, widths, strict=True):
            stem = f"{name}_{member_name}"
            out += [stem] if width == 1 else [f"{stem}{column}" for column in range(width)]
        return np.asarray(out, dtype=object)


def _dropped(member: Any) -> bool:
    return isinstance(member, str) and member == "drop"
