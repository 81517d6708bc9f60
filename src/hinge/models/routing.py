"""Metadata routing: arguments of ``fit`` that are passed to the parts of an estimator, its learner, splitter and scorer.

An estimator with parts declares them in ``get_metadata_routing`` by :func:`router`; :func:`route` then returns what each
part has requested. Without ``sklearn.set_config(enable_metadata_routing=True)`` nothing is routed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    get_routing_for_object,
    process_routing,
)
from sklearn.utils.validation import _check_method_params

routing_enabled = _routing_enabled
Arguments = dict[str, Any]


def router(owner: Any, /, **parts: tuple[Any, dict[str, str]]) -> MetadataRouter:
    """The routing of an estimator: its own requests, and those of parts: ``name=(part, {caller: callee})``."""
    routes = MetadataRouter(owner=owner).add_self_request(owner)
    for name, (part, methods) in parts.items():
        mapping = MethodMapping()
        for caller, callee in methods.items():
            mapping.add(caller=caller, callee=callee)
        routes.add(**{name: part}, method_mapping=mapping)
    return routes


def route(owner: Any, method: str, arguments: Arguments, **own: Any) -> Any:
    """The arguments of every part: ``routed.part.method`` is a dictionary, empty without routing.

    ``own`` are the arguments in the signature of the method. Others, ``arguments``, raise an error without routing.
    """
    _raise_for_params(arguments, owner, method)
    given = arguments | {name: value for name, value in own.items() if value is not None}
    return process_routing(owner, method, **(given if _routing_enabled() else {}))


def consumes(part: Any, method: str, name: str) -> bool:
    """Whether a part has requested an argument."""
    return bool(get_routing_for_object(part).consumes(method=method, params=[name]))


def take_arguments(X: Any, arguments: Arguments, rows: np.ndarray) -> Arguments:
    """Arguments for some rows of X: those with one entry per row are indexed, the others are unchanged."""
    return dict(_check_method_params(X, arguments, indices=rows))


def folds_of(cv: Any, X: Any, y: Any, arguments: Arguments, *, classify: bool = False) -> Iterator[tuple[Any, Any]]:
    """The folds of a splitter that takes arguments, as arrays."""
    for train, test in check_cv(cv, y, classifier=classify).split(X, y, **arguments):
        yield np.asarray(train), np.asarray(test)
