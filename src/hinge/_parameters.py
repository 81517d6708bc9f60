"""Parameters of estimators: each class declares their ranges once, and checks, error texts and tables follow.

An estimator inherits :class:`Estimator` in place of scikit-learn's ``BaseEstimator`` and declares what its constructor
accepts, with scikit-learn's constraints or the shorthands below::

    class Ridge(Estimator):
        _parameter_constraints: ClassVar[Constraints] = {
            **shared("fit_intercept", "max_iter"),
            "alpha": [at_least(0), "array-like"],
        }

A subclass inherits the declarations of the parameters it keeps and declares only what differs. ``fit``,
``partial_fit`` and ``fit_transform`` check them before they run, so that no value of a wrong type reaches compiled code.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import types
from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, TypeVar

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    InvalidParameterError,
    Options,
    RealNotInt,
    StrOptions,
    _ArrayLikes,
    make_constraint,
)

from hinge._sources import BY_ROWS, by_blocks, is_source

Constraints = dict[str, Any]
Constructor = TypeVar("Constructor", bound=Callable[..., None])

# Methods that fit, and therefore check parameters first.
LEARNING = ("fit", "partial_fit", "fit_transform", "fit_predict")


def at_least(low: float) -> Interval:
    """A finite number ≥ low."""
    return Interval(Real, low, None, closed="left")


def above(low: float) -> Interval:
    """A finite number > low."""
    return Interval(Real, low, None, closed="neither")


def between(low: float | None, high: float | None, closed: str = "both") -> Interval:
    """A number from low to high; ``closed`` names the ends that belong to the range."""
    return Interval(Real, low, high, closed=closed)


def fraction(closed: str = "right") -> Interval:
    """A float between 0 and 1, for parameters whose integers are counts."""
    return Interval(RealNotInt, 0, 1, closed=closed)


def count(low: int = 1, high: int | None = None) -> Interval:
    """An integer from low to high."""
    return Interval(Integral, low, high, closed="left" if high is None else "both")


class Names(StrOptions):
    """One of some names, listed in the order of their declaration."""

    def __init__(self, *names: str) -> None:
        super().__init__(set(names))
        self.names = names

    def __str__(self) -> str:
        return f"a str among {{{', '.join(map(repr, self.names))}}}"


def one_of(*names: str) -> Names:
    """One of some names."""
    return Names(*names)


class Has(HasMethods):
    """An object that has some methods; classes, whose methods need an instance, are excluded."""

    def is_satisfied_by(self, value: Any) -> bool:
        """Whether value is such an object."""
        return not isinstance(value, type) and super().is_satisfied_by(value)


def has(*methods: str) -> Has:
    """An object that has some methods."""
    return Has(list(methods))


class Numbers(HasMethods):
    """An array-like of numbers, none of them NaN, with a lower bound and an optional fixed length.

    It is a subclass of HasMethods because scikit-learn accepts no other kinds of constraints.
    """

    def __init__(
        self, low: float = -np.inf, *, open_low: bool = False, size: int | None = None, flat: bool = False
    ) -> None:
        super().__init__("__len__")
        self.low, self.open_low, self.size, self.flat = low, open_low, size, flat

    def is_satisfied_by(self, value: Any) -> bool:
        """Whether value is such an array."""
        if not hasattr(value, "__len__") or isinstance(value, str | bytes | dict):
            return False
        try:
            array = np.asarray(value)
        except ValueError:  # rows of different lengths
            return False
        if (
            array.dtype.kind not in "biuf"
            or array.ndim == 0
            or (self.flat and array.ndim > 1)
            or array.size == 0
            or self.size not in (None, array.size)
        ):
            return False
        return bool(np.all(array > self.low if self.open_low else array >= self.low))

    def __str__(self) -> str:
        bound = "" if self.low == -np.inf else f" {'above' if self.open_low else 'of at least'} {self.low:g}"
        return f"{'a one-dimensional' if self.flat else 'an'} array-like of {self.size or ''}{' ' * bool(self.size)}numbers{bound}"


def numbers(
    low: float = -np.inf, *, open_low: bool = False, size: int | None = None, flat: bool = False
) -> Numbers:  # fmt: skip
    """An array-like of numbers of at least low (above it with ``open_low``); ``size`` of them, if given.

    With ``flat``, of one dimension.
    """
    return Numbers(low, open_low=open_low, size=size, flat=flat)


class Folds(HasMethods):
    """A value of ``cv`` as in scikit-learn, with at least one fold."""

    def __init__(self) -> None:
        super().__init__("split")
        self.folds = make_constraint("cv_object")

    def is_satisfied_by(self, value: Any) -> bool:
        """Whether value gives folds."""
        if not self.folds.is_satisfied_by(value):
            return False
        if isinstance(value, np.ndarray) and value.ndim == 0:
            return False
        # Splitters and iterators of folds can be checked only when they are used.
        return hasattr(value, "split") or not hasattr(value, "__len__") or self._are_pairs(value)

    @staticmethod
    def _are_pairs(folds: Any) -> bool:
        """Whether folds are given as pairs of index arrays, at least one."""
        return len(folds) > 0 and all(
            isinstance(fold, list | tuple | np.ndarray)
            and len(fold) == 2
            and all(np.ndim(rows) == 1 and np.asarray(rows).dtype.kind in "biu" for rows in fold)
            for fold in folds
        )

    def __str__(self) -> str:
        return str(self.folds)


class Columns(HasMethods):
    """Columns of X by number or name, or a mask of them."""

    def __init__(self) -> None:
        super().__init__("__len__")

    def is_satisfied_by(self, value: Any) -> bool:
        """Whether value is a list of numbers, names or truth values."""
        if isinstance(value, str | bytes | dict) or not hasattr(value, "__iter__") or np.ndim(value) != 1:
            return False
        return all(isinstance(v, str | bool | Integral | np.bool_) for v in np.asarray(value, dtype=object))

    def __str__(self) -> str:
        return "a list of column numbers or names or a mask"


class Groups(Columns):
    """Lists of columns."""

    def is_satisfied_by(self, value: Any) -> bool:
        """Whether value is a sequence of groups."""
        if not isinstance(value, list | tuple | set | np.ndarray) or (isinstance(value, np.ndarray) and not value.ndim):
            return False
        return all(super(Groups, self).is_satisfied_by(list(v) if isinstance(v, set | frozenset) else v) for v in value)

    def __str__(self) -> str:
        return "a list of lists of columns"


DTYPE = [type, np.dtype, one_of("float32", "float64", "f4", "f8", "int32", "int64"), None]
INFINITY = Options(Real, {np.inf})
RULES = ("best", "one-standard-error")

SWITCHES = ("bootstrap", "copy_X", "early_stopping", "fit_intercept", "positive", "shrinking", "shuffle", "warm_start")

# Parameters that mean the same in every estimator that has them.
SHARED: Constraints = {
    **{name: ["boolean"] for name in SWITCHES},
    "class_weight": [dict, one_of("balanced"), None],
    "cv": [Folds()],
    "l1_ratio": [between(0, 1)],
    "max_iter": [count()],
    "n_iter_no_change": [count()],
    "n_jobs": [Integral, None],
    "random_state": ["random_state"],
    "rule": [one_of(*RULES)],
    "selection": [one_of("cyclic", "random")],
    "tol": [at_least(0)],
    "validation_fraction": [between(0, 1, "neither")],
    "verbose": ["verbose"],
}


def shared(*names: str) -> Constraints:
    """Declarations of parameters that mean the same everywhere."""
    return {name: SHARED[name] for name in names}


def with_defaults(constructor: Constructor, **defaults: Any) -> Constructor:
    """The same constructor with other defaults, for a subclass whose parameters differ only in these.

    ``inspect.signature``, and therefore scikit-learn's ``get_params``, shows the new defaults.
    """
    old: Any = constructor
    unknown = sorted(defaults.keys() - old.__kwdefaults__.keys())
    if unknown:
        raise TypeError(f"{old.__qualname__} has no keyword parameters {', '.join(unknown)}.")
    new: Any = types.FunctionType(old.__code__, old.__globals__, old.__name__, old.__defaults__, old.__closure__)
    new.__kwdefaults__ = old.__kwdefaults__ | defaults
    new.__annotations__ = old.__annotations__
    return new


class Estimator(BaseEstimator):
    """scikit-learn's base class, with parameters that are declared once and checked before learning."""

    _parameter_constraints: ClassVar[Constraints] = {}
    # A sentence with the remedy, for parameters whose range alone does not show it.
    _parameter_hints: ClassVar[dict[str, str]] = {}
    # scikit-learn's tags that are the same for all settings: {"input_tags.sparse": True}. Subclasses add to them.
    _constant_tags: ClassVar[dict[str, bool]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._parameter_constraints = _inherited(cls)
        for name in LEARNING:
            definer = next((base for base in cls.__mro__ if name in vars(base)), None)
            # A mixin that is not an estimator has no parameters to check.
            if definer is cls or (definer is not None and name == "fit" and not issubclass(definer, Estimator)):
                setattr(cls, name, _checked(cls, name, vars(definer)[name]))
        for name in BY_ROWS:
            definer = next((base for base in cls.__mro__ if name in vars(base)), None)
            if definer is cls or (definer is not None and not issubclass(definer, Estimator)):
                setattr(cls, name, by_blocks(name, vars(definer)[name]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        for base in reversed(type(self).__mro__):
            for path, value in vars(base).get("_constant_tags", {}).items():
                group, _, name = path.rpartition(".")
                setattr(getattr(tags, group) if group else tags, name, value)
        return tags

    def set_params(self, **parameters: Any) -> Any:
        """Set parameters by name, and those of parameters as ``name__parameter``.

        Losses, penalties, kernels and spaces are immutable: a copy with the new value replaces them.
        """
        nested: dict[str, dict[str, Any]] = {}
        plain: dict[str, Any] = {}
        for key, value in parameters.items():
            name, _, part = key.partition("__")
            holder = parameters.get(name, getattr(self, name, None)) if part else None
            if getattr(type(holder), "set_params_copies", False):
                nested.setdefault(name, {})[part] = value
            else:
                plain[key] = value
        super().set_params(**plain)
        for name, changes in nested.items():
            setattr(self, name, getattr(self, name).set_params(**changes))
        return self

    def _validate_params(self) -> None:
        """Raise for parameters outside their range, before anything is computed."""
        for name, default, constraints in _checks(type(self)):
            value = getattr(self, name)
            if value is not default and not (
                _fits_64_bits(value) and any(_satisfies(value, constraint) for constraint in constraints)
            ):
                _refuse(self, name, value)


def _satisfies(value: Any, constraint: Any) -> bool:
    # A class such as dict has __len__ but no length, and True is an int but not a count.
    if isinstance(value, type) and isinstance(constraint, _ArrayLikes):
        return False
    if isinstance(value, bool) and isinstance(constraint, Interval):
        return False
    return constraint.is_satisfied_by(value)


def _fits_64_bits(value: Any) -> bool:
    """False for integers beyond 64 bits, which compiled code and floating point may not represent."""
    return not isinstance(value, int) or -(2**63) <= value < 2**64


def _inherited(cls: type) -> Constraints:
    """The declarations of a class and its bases for the parameters of its constructor."""
    declared: Constraints = {}
    for base in reversed(cls.__mro__):
        declared |= vars(base).get("_parameter_constraints", {})
    code = getattr(cls.__init__, "__code__", None)  # type: ignore[misc]
    if code is None:  # a base class without a constructor
        return declared
    names = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    return {name: declared[name] for name in names if name in declared}


def _checked(cls: type, name: str, method: Any) -> Any:
    """A fitting method that checks parameters first, but not again if the method of a subclass calls it."""
    if hasattr(method, "fn"):  # a method that exists for some settings only
        method.fn = _checked(cls, name, method.fn)
        return method

    @functools.wraps(method)
    def check_and_learn(self: Any, *args: Any, **options: Any) -> Any:
        if next(base for base in type(self).__mro__ if name in base.__dict__) is cls:
            self._validate_params()
        if name == "fit" and args and is_source(args[0]):
            return importlib.import_module("hinge.models.blocks.fit").fit_source(self, *args, **options)
        return method(self, *args, **options)

    return check_and_learn


def _checks(cls: type[Estimator]) -> list[tuple[str, Any, list[Any]]]:
    """Parameters of a class with their defaults, which need no check, and constraints; computed once per class."""
    found = vars(cls).get("_compiled_parameters")
    if found is None:
        parameters = inspect.signature(cls).parameters
        found = [
            (name, parameters[name].default, [make_constraint(constraint) for constraint in constraints])
            for name, constraints in cls._parameter_constraints.items()
            if not isinstance(constraints, str)
        ]
        cls._compiled_parameters = found
    return found


def _refuse(estimator: Estimator, name: str, value: Any) -> None:
    cls = type(estimator)
    if not get_config()["skip_parameter_validation"]:
        refusal = _refusal(cls.__name__, name, accepted(cls, name), value)
        raise InvalidParameterError(f"{refusal} {cls._parameter_hints.get(name, '')}".rstrip())


def _refusal(owner: str, name: str, values: str, value: Any) -> str:
    return f"The {name!r} parameter of {owner} must be {values}. Got {value!r} instead."


def accepted(cls: type[Estimator], name: str) -> str:
    """A description of the values that a parameter may have."""
    return _described(cls._parameter_constraints[name])


def _described(constraints: Any) -> str:
    *others, last = [str(made) for made in map(make_constraint, constraints) if not made.hidden]
    return f"{', '.join(others)} or {last}" if others else last


def check_values(owner: str, declared: Constraints, values: dict[str, Any]) -> None:
    """The check of an estimator's parameters, for the values of another object such as a hypothesis space."""
    for name, constraints in declared.items():
        if not any(_satisfies(values[name], make_constraint(constraint)) for constraint in constraints):
            raise InvalidParameterError(_refusal(owner, name, _described(constraints), values[name]))


def table(cls: type[Estimator]) -> Iterator[tuple[str, str, str]]:
    """Name, default and range of every parameter: the rows of a table in the documentation."""
    for name, parameter in inspect.signature(cls).parameters.items():
        constraints = cls._parameter_constraints.get(name, "no_validation")
        default = "" if parameter.default is parameter.empty else repr(parameter.default)
        yield name, default, "anything" if isinstance(constraints, str) else accepted(cls, name)
