"""A property that is computed once.

``functools.cached_property`` of Python 3.11 holds one lock per property, shared by all instances, while the value is
computed: threads that fit different models wait for each other, and a process forked in that time waits for ever. Here
two threads may compute the same value; the values are equal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property:
        """The result of a method without arguments, kept in the instance under the method's name."""

        def __init__(self, compute: Callable[[Any], Any]) -> None:
            self.compute = compute
            self.__doc__ = compute.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self.name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            # There is no __set__, so the entry in the instance takes precedence from now on.
            value = instance.__dict__[self.name] = self.compute(instance)
            return value


__all__ = ["cached_property"]
