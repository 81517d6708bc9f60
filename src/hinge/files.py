"""Model files: data only, checked before use, never executed.

A model file is a safetensors file. Its tensors are the arrays of the model; its header holds, as JSON, everything
else: the class by name, parameters, fitted attributes, the version of this format, and a SHA-256 of the whole file.

What may be in a file is a closed set: numbers, text, None, lists, tuples, dictionaries, arrays, sparse matrices, and
objects of hinge's own classes (estimators, frozen dataclasses such as losses and certificates, enums), plus the
scikit-learn transformers listed in :mod:`hinge.file_values`. A class is named, looked up in that set, and filled with data.
Functions cannot be named, so nothing in a file can run; a user's own loss or kernel is code and cannot be saved.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
from pathlib import Path
from typing import Any

import safetensors
import safetensors.numpy

import hinge
from hinge.file_values import Reader, Writer

SCHEMA = 1
# The exceptions of reading an invalid file.
MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
_DIGEST = re.compile(rb'"sha256":"([0-9a-f]{64})"')


def save(model: Any, path: str | os.PathLike[str], *, card: dict[str, Any] | None = None) -> None:
    """Write a model to a file that :func:`load` reads back, with identical predictions.

    The file is written atomically: to a temporary file in the same folder, which is flushed to disk and renamed.

    Parameters
    ----------
    model : estimator
        An estimator of hinge, or a scikit-learn pipeline around one.
    path : path
        Where to; by convention it ends in ``.hinge``.
    card : dict, optional
        What else a reader should know, as JSON: input columns, target, scores. :func:`load_with_card` gives it back.

    Examples
    --------
    >>> import hinge as hg, tempfile, os
    >>> model = hg.Learner(penalty=hg.L2(0.1)).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> path = os.path.join(tempfile.mkdtemp(), "line.hinge")
    >>> hg.save(model, path)
    >>> bool((hg.load(path).predict([[3.0]]) == model.predict([[3.0]])).all())
    True
    """
    writer = Writer()
    state = writer.encode(model, "model")
    if not isinstance(state, dict) or "estimator" not in state:
        raise TypeError(f"model must be an estimator, got {type(model).__name__}: {model!r}.")
    metadata = {"model": _json(state)}
    if card is not None:
        metadata["card"] = _json(card)
    write_atomically(Path(path), _sealed(writer.arrays, metadata))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def _sealed(arrays: dict[str, Any], metadata: dict[str, str]) -> bytes:
    """The content of a file with its version and checksum."""
    header = {"format": "hinge", "schema": str(SCHEMA), "hinge": hinge.__version__, "sha256": "0" * 64}
    blank = safetensors.numpy.save(arrays, metadata=header | metadata)
    digest = hashlib.sha256(blank).hexdigest().encode()
    return blank.replace(b'"sha256":"' + b"0" * 64, b'"sha256":"' + digest, 1)


def size(model: Any) -> int:
    """The size in bytes of the file of a model, without writing it."""
    writer = Writer()
    state = json.dumps(writer.encode(model, "model"))
    return len(state) + sum(array.nbytes for array in writer.arrays.values())


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that :func:`save` wrote.

    Nothing in the file is executed. A file that is cut short, altered, made by a newer version, or names a class
    outside the closed set raises a ValueError that names the reason.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    estimator
        As it was when saved.
    """
    return load_with_card(path)[0]


def load_with_card(path: str | os.PathLike[str]) -> tuple[Any, dict[str, Any]]:
    """A model and the metadata saved with it (empty if there is none)."""
    content = Path(path).read_bytes()
    try:
        metadata = _checked_metadata(content)
        card = json.loads(metadata.get("card", "{}"))
        if not isinstance(card, dict):
            raise ValueError("its card is damaged.")
        return _decode_model(content, metadata), card
    except MALFORMED as error:
        raise ValueError(f"{os.fspath(path)} cannot be loaded: {error}") from error


def pack(value: Any, mark: str) -> bytes:
    """The file content of any value that files may hold; ``mark`` identifies its kind."""
    writer = Writer()
    return _sealed(writer.arrays, {"mark": mark, "value": _json(writer.encode(value, "value"))})


def unpack(content: bytes, mark: str) -> Any:
    """The value given to :func:`pack`; raises a ValueError if the mark differs or the content is damaged."""
    try:
        metadata = _checked_metadata(content)
        if metadata.get("mark") != mark:
            raise ValueError("its mark is another.")
        return _decoded(content, metadata["value"])
    except MALFORMED as error:
        raise ValueError(f"it cannot be read: {error}") from error


def _checked_metadata(content: bytes) -> dict[str, str]:
    """The header of a file, after a check of the checksum."""
    if len(content) < 8:
        raise ValueError("it is not a model file (too short).")
    length = int.from_bytes(content[:8], "little")
    if length > len(content) - 8:
        raise ValueError("it is not a model file, or it was cut short.")
    header = content[8 : 8 + length]
    try:
        metadata = json.loads(header).get("__metadata__", {})
    except (ValueError, AttributeError):
        raise ValueError("it is not a model file, or its header is damaged.") from None
    if metadata.get("format") != "hinge" or not str(metadata.get("schema", "")).isdecimal():
        raise ValueError("it was not written by hinge, or its header is damaged.")
    if int(metadata["schema"]) > SCHEMA:
        raise ValueError(
            f"it was written by a newer hinge ({metadata.get('hinge')}, format {metadata['schema']}; this one reads "
            f"up to {SCHEMA}). Upgrade hinge."
        )
    digests = _DIGEST.findall(header)
    if len(digests) != 1:
        raise ValueError("it has no checksum, or its header is damaged.")
    blank = content[:8] + header.replace(digests[0], b"0" * 64, 1) + content[8 + length :]
    if hashlib.sha256(blank).hexdigest().encode() != digests[0]:
        raise ValueError("its checksum does not match: the file was damaged or changed after it was written.")
    return metadata


def _decoded(content: bytes, state: str) -> Any:
    try:
        arrays = safetensors.numpy.load(content)
    except safetensors.SafetensorError as error:
        raise ValueError(f"its arrays are damaged ({error}).") from None
    return Reader(arrays).decode(json.loads(state), 0)


def _decode_model(content: bytes, metadata: dict[str, str]) -> Any:
    model = _decoded(content, metadata["model"])
    if not hasattr(model, "get_params") or not hasattr(model, "fit"):
        raise ValueError("it does not hold an estimator.")
    return model


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file atomically: to a temporary file in the same folder, which is flushed to disk and renamed."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        with open(temporary, "xb") as f:
            f.write(content)
            f.flush()
            os.fsync(f.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        raise
    with contextlib.suppress(OSError):  # some file systems cannot flush a directory
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
