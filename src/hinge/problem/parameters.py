"""Parameters of losses, penalties, kernels and hypothesis spaces, with scikit-learn's ``get_params`` and ``set_params``."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, ClassVar, Self


class Parametrised:
    """A frozen dataclass whose fields are parameters: ``penalty__lam`` in a grid addresses the field of a penalty.

    The object never changes: ``set_params`` returns a copy, with which an estimator of hinge replaces the object. Clones of
    an estimator share the object.
    """

    set_params_copies: ClassVar[bool] = True

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; with ``deep`` also nested parameters, as ``name__parameter``."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.init}  # type: ignore[arg-type]
        nested = {
            f"{name}__{key}": part
            for name, value in own.items()
            if deep and hasattr(value, "get_params") and not isinstance(value, type)
            for key, part in value.get_params().items()
        }
        return own | nested

    def set_params(self, **parameters: Any) -> Self:
        """A copy with other parameters.

        Parameters
        ----------
        **parameters : values by name
            Fields, or parameters of fields as ``name__parameter``.
        """
        own = self.get_params(deep=False)
        changed = {key: value for key, value in parameters.items() if "__" not in key}
        for key, value in parameters.items():
            name, nested, part = key.partition("__")
            if name not in own:
                names = f"it has {', '.join(map(repr, own))}" if own else "it has none"
                raise ValueError(f"Invalid parameter {name!r} for {type(self).__name__}: {names}.")
            if nested:
                changed[name] = changed.get(name, own[name]).set_params(**{part: value})
        return replace(self, **changed)  # type: ignore[type-var]

    def __sklearn_clone__(self) -> Self:
        return self
