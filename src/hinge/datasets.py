"""Small real data sets that come with the package."""

from __future__ import annotations

import csv
import gzip
import io
from dataclasses import dataclass
from importlib import resources

import numpy as np

# Name → column of the target, the label that counts as positive (classes only), and where the data come from.
_SETS = {
    "heart": ("num", ">50_1", "UCI Heart Disease (Cleveland), CC BY 4.0"),
    "insurance": ("charges", None, "B. Lantz, Machine Learning with R, public domain"),
}


NAMES = tuple(_SETS)


def raw_table(name: str) -> tuple[bytes, str]:
    """The CSV file of a data set as it was published, and the name of its target."""
    packed = resources.files("hinge").joinpath("data", f"{name}.csv.gz").read_bytes()
    return gzip.decompress(packed), _SETS[name][0]


def describe(name: str) -> str:
    """Where a data set comes from, and its licence."""
    return _SETS[name][2]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table ready to be learned from.

    Attributes
    ----------
    X : array of shape (n, d)
        The inputs. A column of text becomes one 0/1 column per value; rows with missing values are left out.
    y : array of n
        The targets: numbers, or the labels 0 and 1.
    features : tuple of d names
        Names of the columns of X; ``column=value`` for those made from text.
    target : str
        The name of the target.
    source : str
        Where the data come from, and their licence.
    """

    X: np.ndarray
    y: np.ndarray
    features: tuple[str, ...]
    target: str
    source: str


def load_dataset(name: str) -> Dataset:
    """A real data set that comes with the package.

    Parameters
    ----------
    name : {"heart", "insurance"}
        "heart": 296 patients, is a heart vessel narrowed (classes 0 and 1)?
        "insurance": 1338 people, their yearly medical costs in dollars.

    Examples
    --------
    >>> import hinge as hg
    >>> heart = hg.load_dataset("heart")
    >>> heart.X.shape
    (296, 22)
    """
    if name not in _SETS:
        raise ValueError(f"name={name!r} is unknown; the data sets are {', '.join(map(repr, sorted(_SETS)))}.")
    target, positive, source = _SETS[name]
    rows = [row for row in csv.DictReader(io.StringIO(raw_table(name)[0].decode())) if all(row.values())]
    answers = [row.pop(target) for row in rows]
    y = np.array(answers, dtype=np.float64) if positive is None else np.array([int(a == positive) for a in answers])
    columns: dict[str, np.ndarray] = {}
    for feature in rows[0]:
        values = [row[feature] for row in rows]
        try:
            columns[feature] = np.array(values, dtype=np.float64)
        except ValueError:
            levels = sorted(set(values))
            # Two levels become one indicator column; more become one column each.
            for level in levels[1:] if len(levels) == 2 else levels:
                columns[f"{feature}={level}"] = np.array([float(value == level) for value in values])
    return Dataset(np.column_stack(list(columns.values())), y, tuple(columns), target, source)
