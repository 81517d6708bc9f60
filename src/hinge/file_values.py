"""The values of a model file: objects to JSON and arrays, and back. Classes are a closed set, looked up by name.

The reader trusts nothing: every name, length and shape is checked before it is used.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import importlib
import math
import re
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from scipy.interpolate import BSpline

import hinge
from hinge._native import check_indices
from hinge.file_schema import check_fitted
from hinge.problem.kernels.translate import Foreign, is_foreign, translate

MAX_DEPTH = 60

# scikit-learn classes that hold only data, which users put before a model in a pipeline.
TRANSFORMERS = {
    "sklearn.pipeline": ("FeatureUnion", "Pipeline"),
    "sklearn.compose": ("ColumnTransformer", "TransformedTargetRegressor"),
    "sklearn.preprocessing": (
        "FunctionTransformer", "KBinsDiscretizer", "LabelEncoder", "MaxAbsScaler", "MinMaxScaler", "Normalizer",
        "OneHotEncoder", "OrdinalEncoder", "PolynomialFeatures", "PowerTransformer", "QuantileTransformer",
        "RobustScaler", "SplineTransformer", "StandardScaler",
    ),
    "sklearn.impute": ("MissingIndicator", "SimpleImputer"),
    "sklearn.feature_extraction.text": ("CountVectorizer", "HashingVectorizer", "TfidfTransformer", "TfidfVectorizer"),
}  # fmt: skip
_TRANSFORMER_HOME = {name: module for module, names in TRANSFORMERS.items() for name in names}

# Modules of hinge's classes that files may contain besides public names; of blocks/ only totals, nothing that reads files.
_ROOMS = re.compile(
    r"hinge\.((problem|solvers|tables|models|features|select|explain)(\.[a-z][a-z0-9_]*)*"
    r"|blocks\.(exact|kinks|moments|problem|survey)):_?[A-Z][A-Za-z0-9_]*"
)
# Public names and their modules.
_HOME = {
    name: home
    for space in (hinge, *(getattr(hinge, name) for name in hinge.NAMESPACES))
    for home, names in space._PUBLIC.items()
    for name in names
}
_NUMPY_TYPES = {
    np.dtype(kind).name: np.dtype(kind).type
    for kind in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
}


def _public(name: str) -> Any:
    return getattr(importlib.import_module(_HOME[name]), name)


def _class_name(cls: type) -> str | None:
    """The name of a class in files; None if it is not in the closed set."""
    name = cls.__name__
    if name in _HOME and _public(name) is cls:
        return name
    if name in _TRANSFORMER_HOME and cls.__module__.startswith("sklearn."):
        return f"sklearn:{name}" if name in _HOME else name
    full = f"{cls.__module__}:{name}"
    return full if _ROOMS.fullmatch(full) else None


def _find_class(name: Any) -> type:
    """The class of that name in the closed set."""
    if isinstance(name, str):
        cls: Any = None
        if name in _HOME:
            cls = _public(name)
        elif (short := name.removeprefix("sklearn:")) in _TRANSFORMER_HOME:
            cls = getattr(importlib.import_module(_TRANSFORMER_HOME[short]), short)
        elif _ROOMS.fullmatch(name):
            module, _, short = name.partition(":")
            with contextlib.suppress(ImportError):
                cls = getattr(importlib.import_module(module), short, None)
        if isinstance(cls, type) and _class_name(cls) == name:
            return cls
    raise ValueError(f"it names the class {name!r}, which model files may not hold or this version does not have.")


def _is_estimator(cls: type) -> bool:
    return callable(getattr(cls, "get_params", None)) and callable(getattr(cls, "fit", None))


def _is_named_tuple(cls: type) -> bool:
    return issubclass(cls, tuple) and hasattr(cls, "_fields")


class Writer:
    """From objects to JSON and arrays."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}

    def encode(self, value: Any, where: str) -> Any:
        if where.count("\n") > MAX_DEPTH:
            raise ValueError("model is nested too deeply, or refers to itself; it cannot be saved.")
        if value is None or isinstance(value, (bool, str)) or type(value) is int:
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if type(value) is list:
            return [self.encode(item, f"{where}\n[{i}]") for i, item in enumerate(value)]
        for encode in (self._container, self._numpy, self._object):
            encoded = encode(value, where)
            if encoded is not None:
                return encoded
        raise TypeError(_refusal(value, where))

    def _container(self, value: Any, where: str) -> Any:
        if type(value) is tuple:
            return {"tuple": [self.encode(item, f"{where}\n[{i}]") for i, item in enumerate(value)]}
        if isinstance(value, dict):
            pairs = value.items()
            return {"dict": [[self.encode(k, f"{where}\nkey"), self.encode(v, f"{where}\n[{k!r}]")] for k, v in pairs]}
        if isinstance(value, (set, frozenset)):
            return {"set": [self.encode(item, f"{where}\n{{}}") for item in sorted(value)]}
        if isinstance(value, slice):
            return {"slice": [self.encode(part, where) for part in (value.start, value.stop, value.step)]}
        return None

    def _numpy(self, value: Any, where: str) -> Any:
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if isinstance(value, np.generic) and value.dtype.name in _NUMPY_TYPES:
            return {"scalar": self._array(np.asarray(value), where)}
        if isinstance(value, np.str_):
            return str(value)
        if isinstance(value, type) and value in _NUMPY_TYPES.values():
            return {"numpy": np.dtype(value).name}
        if isinstance(value, np.dtype) and value.name in _NUMPY_TYPES:
            return {"dtype": value.name}
        if isinstance(value, np.dtype) and value.kind in "OU":
            return {"dtype": value.str}
        if scipy.sparse.issparse(value):
            matrix = value.tocsr() if value.format not in ("csr", "csc") else value
            parts = [self._array(part, where) for part in (matrix.data, matrix.indices, matrix.indptr)]
            kind = "array" if isinstance(value, scipy.sparse.sparray) else "matrix"
            return {"sparse": {"format": matrix.format, "kind": kind, "shape": list(matrix.shape), "parts": parts}}
        if type(value) is BSpline and value.axis == 0:
            parts = [self._array(part, where) for part in (value.t, value.c)]
            return {"spline": [*parts, int(value.k), value.extrapolate]}
        return None

    def _array(self, value: np.ndarray, where: str) -> Any:
        if value.dtype.kind == "U":
            return {"strings": value.ravel().tolist(), "shape": list(value.shape), "dtype": value.dtype.str}
        if value.dtype.kind == "O":
            items = [self.encode(item, f"{where}\n[{i}]") for i, item in enumerate(value.ravel())]
            return {"objects": items, "shape": list(value.shape)}
        if value.dtype.name not in _NUMPY_TYPES:
            raise TypeError(f"{_path(where)} is an array of {value.dtype}, which model files cannot hold.")
        columns = value.ndim > 1 and value.flags.f_contiguous and not value.flags.c_contiguous
        name = f"t{len(self.arrays)}"
        stored = value.T if columns else value
        self.arrays[name] = np.ascontiguousarray(stored, dtype=stored.dtype.newbyteorder("=")).reshape(stored.shape)
        return {"array": name, "columns": True} if columns else {"array": name}

    def _object(self, value: Any, where: str) -> Any:
        if is_foreign(value):
            value = _translated(value, where)
        name = _class_name(type(value))
        if name is None:
            return None
        if isinstance(value, enum.Enum):
            return {"enum": [name, value.name]}
        if _is_estimator(type(value)):
            # Callbacks belong to a session, not to a model.
            state = {
                k: v for k, v in vars(value).items() if not k.startswith(("_skl_", "_callback", "_parent_callback"))
            }
            return {"estimator": name, "state": {k: self.encode(v, f"{where}\n.{k}") for k, v in state.items()}}
        if dataclasses.is_dataclass(value):
            names = [f.name for f in dataclasses.fields(value) if f.init]
        elif _is_named_tuple(type(value)):
            names = list(value._fields)
        else:
            return None
        return {"record": name, "fields": {k: self.encode(getattr(value, k), f"{where}\n.{k}") for k in names}}


def _path(where: str) -> str:
    return where.replace("\n", "")


def _translated(kernel: Any, where: str) -> Any:
    """The kernel of this library that is equivalent to a kernel of scikit-learn."""
    try:
        found, reason = translate(kernel), f"{type(kernel).__name__} is code."
    except ValueError as error:
        found, reason = None, str(error)
    if found is None or isinstance(found, Foreign):
        raise TypeError(
            f"{_path(where)} is a kernel of scikit-learn without a counterpart here: {reason} Use pickle for this model."
        )
    return found


def _refusal(value: Any, where: str) -> str:
    what = f"{_path(where)} is a {type(value).__module__}.{type(value).__qualname__}"
    if callable(value) or callable(getattr(value, "value", None)):
        return f"{what}: code of your own, and model files hold data only. Use pickle for this model."
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        return f"{what}, which model files cannot hold. Set it to an integer before fitting."
    return f"{what}, which model files cannot hold. Use pickle for this model."


class Reader:
    """From JSON and arrays to objects. Every name and shape is checked; see ``_find_class``."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = arrays

    def decode(self, node: Any, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise ValueError("it is nested too deeply.")
        if node is None or isinstance(node, (bool, int, float, str)):
            return node
        if isinstance(node, list):
            return [self.decode(item, depth + 1) for item in node]
        kind = next(iter(node), None)
        decode = self._KINDS.get(kind) if isinstance(kind, str) else None
        if decode is None:
            raise ValueError(f"it holds something of unknown kind {kind!r}.")
        return decode(self, node, depth + 1)

    def _float(self, node: dict, depth: int) -> float:
        if node["float"] not in ("inf", "-inf", "nan"):
            raise ValueError(f"it holds a bad number {node['float']!r}.")
        return float(node["float"])

    def _tuple(self, node: dict, depth: int) -> tuple:
        return tuple(self.decode(item, depth) for item in _listed(node["tuple"]))

    def _dict(self, node: dict, depth: int) -> dict:
        return {self.decode(key, depth): self.decode(value, depth) for key, value in _listed(node["dict"])}

    def _set(self, node: dict, depth: int) -> set:
        return {self.decode(item, depth) for item in _listed(node["set"])}

    def _slice(self, node: dict, depth: int) -> slice:
        start, stop, step = (self.decode(part, depth) for part in _listed(node["slice"]))
        return slice(start, stop, step)

    def _array(self, node: dict, depth: int) -> np.ndarray:
        stored = self.arrays[node["array"]].copy()  # a writable copy that does not keep the file's buffer alive
        return stored.T if node.get("columns") is True else stored

    def _scalar(self, node: dict, depth: int) -> Any:
        value = self._array(node["scalar"], depth)
        if value.shape != ():
            raise ValueError("it holds a scalar that is an array.")
        return value[()]

    def _strings(self, node: dict, depth: int) -> np.ndarray:
        items = _listed(node["strings"])
        width = re.fullmatch(r"[<>]U(\d{1,6})", node["dtype"])
        if width is None or not all(isinstance(item, str) for item in items):
            raise ValueError("it holds a damaged array of text.")
        if int(width[1]) > max(256, *map(len, items)):  # NumPy would allocate this width for every item
            raise ValueError("it holds an array of text that is wider than its text.")
        return np.array(items, dtype=node["dtype"]).reshape(_shape(node["shape"], len(items)))

    def _objects(self, node: dict, depth: int) -> np.ndarray:
        items = _listed(node["objects"])
        flat = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):
            flat[i] = self.decode(item, depth)
        return flat.reshape(_shape(node["shape"], len(items)))

    def _numpy(self, node: dict, depth: int) -> type:
        return _NUMPY_TYPES[node["numpy"]]

    def _dtype(self, node: dict, depth: int) -> np.dtype:
        if node["dtype"] not in _NUMPY_TYPES and not re.fullmatch(r"\|O|[<>]U\d{1,6}", node["dtype"]):
            raise ValueError(f"it holds an unknown type of numbers {node['dtype']!r}.")
        return np.dtype(node["dtype"])

    def _sparse(self, node: dict, depth: int) -> Any:
        inner = node["sparse"]
        make = getattr(scipy.sparse, {"csr": "csr_", "csc": "csc_"}[inner["format"]] + _one_of(inner["kind"]))
        rows, columns = _listed(inner["shape"])
        if type(rows) is not int or type(columns) is not int or min(rows, columns) < 0:
            raise ValueError("it holds a sparse matrix whose shape is not made of whole numbers.")
        matrix = make(tuple(self._array(part, depth) for part in _listed(inner["parts"])), shape=(rows, columns))
        check_indices(matrix)
        return matrix

    def _spline(self, node: dict, depth: int) -> BSpline:
        knots, coefficients, degree, extrapolate = _listed(node["spline"])
        t, c = self._array(knots, depth), self._array(coefficients, depth)
        if t.dtype != np.float64 or c.dtype != np.float64 or c.ndim == 0 or not np.isfinite(c).all():
            raise ValueError("it holds a spline that is not made of finite numbers.")
        if type(degree) is not int or not 0 <= degree <= 100 or extrapolate not in (True, False, "periodic"):
            raise ValueError("it holds a spline of an impossible degree or extrapolation.")
        return BSpline(t, c, degree, extrapolate)  # checks the order and the number of knots

    def _enum(self, node: dict, depth: int) -> Any:
        name, member = _listed(node["enum"])
        cls = _find_class(name)
        if not issubclass(cls, enum.Enum):
            raise ValueError(f"{name!r} is not an enumeration.")
        return cls[member]

    def _record(self, node: dict, depth: int) -> Any:
        cls = _find_class(node["record"])
        values = {key: self.decode(value, depth) for key, value in node["fields"].items()}
        if dataclasses.is_dataclass(cls):
            known = {f.name for f in dataclasses.fields(cls) if f.init}
        elif _is_named_tuple(cls):
            known = set(cls._fields)  # type: ignore[attr-defined]
        else:
            raise ValueError(f"{node['record']!r} is not a record of data.")
        _only_known(values, known, node["record"])
        return _checked(cls(**values))

    def _estimator(self, node: dict, depth: int) -> Any:
        cls = _find_class(node["estimator"])
        if not _is_estimator(cls):
            raise ValueError(f"{node['estimator']!r} is not an estimator.")
        state = {key: self.decode(value, depth) for key, value in node["state"].items()}
        parameters = set(cls._get_param_names())  # type: ignore[attr-defined]
        model = cls(**{key: value for key, value in state.items() if key in parameters})
        fitted = {key: value for key, value in state.items() if key not in parameters}
        for key, value in fitted.items():
            # Data must not replace a method or a special attribute of Python.
            if not key.isidentifier() or key.startswith("__") or callable(getattr(cls, key, None)):
                raise ValueError(f"{node['estimator']} has no attribute {key!r}.")
            model.__dict__[key] = value
        check_fitted(model)
        return _checked(model)

    _KINDS: ClassVar[dict[str, Any]] = {
        "float": _float, "tuple": _tuple, "dict": _dict, "set": _set, "slice": _slice, "array": _array,
        "scalar": _scalar, "strings": _strings, "objects": _objects, "numpy": _numpy, "dtype": _dtype,
        "sparse": _sparse, "spline": _spline, "enum": _enum, "record": _record, "estimator": _estimator,
    }  # fmt: skip


def _checked(value: Any) -> Any:
    """The object itself, after its ``_check_loaded`` has found its parts consistent."""
    if callable(check := getattr(value, "_check_loaded", None)):
        check()
    return value


def _listed(value: Any) -> list:
    if not isinstance(value, list):
        raise ValueError("it holds damaged data (a list was expected).")
    return value


def _shape(value: Any, size: int) -> tuple[int, ...]:
    shape = tuple(_listed(value))
    if not all(type(length) is int for length in shape):
        raise ValueError("it holds an array whose shape is not made of whole numbers.")
    if min(shape, default=0) < 0 or math.prod(shape) != size:
        raise ValueError(f"it holds an array of {size} items whose declared shape is {shape}.")
    return shape


def _one_of(kind: Any) -> str:
    if kind not in ("array", "matrix"):
        raise ValueError(f"it holds an unknown kind of sparse matrix {kind!r}.")
    return kind


def _only_known(values: dict[str, Any], known: set[str], name: str) -> None:
    unknown = sorted(set(values) - known)
    if unknown:
        raise ValueError(f"{name} has no field {', '.join(map(repr, unknown))}; it may need a newer hinge.")
