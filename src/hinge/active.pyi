# Written by tools/stubs.py.

from hinge.select.active import (
    active_curves as active_curves,
    query as query,
)
from hinge.select.design import (
    BallDomain as BallDomain,
    BoxDomain as BoxDomain,
    SequentialDesign as SequentialDesign,
)

__all__: list[str]
_PUBLIC: dict[str, tuple[str, ...]]
