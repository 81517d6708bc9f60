"""scikit-learn's checks of inputs, with errors that name the invalid argument."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils import validation

REMEDIES = {
    "X": "Encode text and categories first, for example with hg.TablePrep(), or use hg.learn.",
    "y": "Targets of a regression are numbers; for labels use a classifier.",
    "sample_weight": "Weights are one number per example.",
}


# What NumPy raises for texts, for integers that are too large, for dates beside numbers, and for other objects.
CONVERSIONS = (ValueError, OverflowError, TypeError)


@contextmanager
def naming(argument: str, column: str = "") -> Iterator[None]:
    """Add the argument (and column) to NumPy's errors about texts, integers and objects that cannot become floats."""
    try:
        yield
    except CONVERSIONS as error:
        mixed = isinstance(error, np.exceptions.DTypePromotionError)
        if (
            mixed
            or isinstance(error, OverflowError)
            or str(error).startswith(("could not convert", "float() argument"))
        ):
            cause = "dates and numbers have no common type" if mixed else error
            kind = ValueError if mixed or not isinstance(error, TypeError) else TypeError
            raise kind(f"{argument} must hold numbers of float64: {cause}{column}. {REMEDIES[argument]}") from error
        raise


def refuse_equal_names(error: Exception) -> None:
    """Raise a clearer error if narwhals refused a data frame for columns of one name."""
    from narwhals.exceptions import DuplicateError  # here: only errors need it

    if isinstance(error, DuplicateError):
        names = " and ".join(line.removeprefix("- ") for line in str(error).splitlines()[1:])
        raise ValueError(f"X has columns of one name: {names}. Give every column a name of its own.") from None


def validate_data(estimator: Any, X: Any = "no_validation", y: Any = "no_validation", **options: Any) -> Any:
    """scikit-learn's function of the same name; with ``y_numeric``, texts are converted to numbers or rejected."""
    refuse_masked(X, "X")
    refuse_masked(y, "y")
    try:
        found = validation.validate_data(estimator, X, y, **options)
    except CONVERSIONS as error:
        refuse_equal_names(error)
        with naming("y" if _are_numbers(X) else "X", _first_wrong_column(X)):
            raise
    # scikit-learn looks for NaN before it converts objects to numbers, so it misses None, and it does not convert texts.
    if options.get("y_numeric") and (np.asarray(found[1]).dtype.kind in "US" or np.asarray(y).dtype == object):
        return found[0], numeric_targets(found[1])
    return found


def refuse_masked(values: Any, argument: str) -> None:
    """Raise an error for masked entries, whose numbers under the mask scikit-learn's checks would use."""
    if isinstance(values, np.ma.MaskedArray) and np.any(np.ma.getmaskarray(values)):
        raise ValueError(
            f"{argument} has masked entries. Pass {argument}.filled(np.nan) to treat them as missing values, or leave these rows out."
        )


def check_sample_weight(sample_weight: Any, X: Any) -> np.ndarray:
    """Weights, none negative, as scikit-learn checks them."""
    with naming("sample_weight"):
        return validation._check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)


def numeric_targets(y: Any) -> np.ndarray:
    """Targets of one or several regressions as float64."""
    with naming("y"):
        return validation.check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")


def _first_wrong_column(X: Any) -> str:
    """For the error of a data frame, the first column that does not hold numbers; "" for arrays."""
    import narwhals.stable.v2 as nw  # here: only errors need it

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        for column in frame.iter_columns():
            if not _are_numbers(column.to_numpy()):
                return f" (column {column.name!r})"
    return ""


def _are_numbers(values: Any) -> bool:
    try:
        values = np.asarray(values)
        if values.dtype.kind in "cmM":
            return False
        values.astype(np.float64)
    except (ValueError, TypeError, OverflowError):
        return False
    return True
