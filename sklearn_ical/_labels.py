"""What a label is: which are missing, which go together, and what array they make.

The one place for samplers, learners, simulations and the command; models are not known here.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import sparse

from sklearn_ical import _array
from sklearn_ical.exceptions import UnsupportedModelError


def is_missing(label: Any) -> bool:
    """Return whether a label, or one of its outputs, is None, NaN, NaT or NA."""
    if label is None:
        return True
    if isinstance(label, list | tuple):
        return any(map(is_missing, label))
    try:
        return bool(np.any(label != label))
    except (TypeError, ValueError):  # pandas.NA is neither equal nor unequal to itself
        return True


def missing_labels(labels: Any) -> np.ndarray:
    """Return for each row whether its label, or one of its outputs, is missing.

    `labels` may be an array, sparse matrix, frame, series or list.
    """
    if sparse.issparse(labels):
        return np.zeros(labels.shape[0], dtype=bool)
    if not isinstance(labels, np.ndarray):
        labels = _array.to_host(labels) if _array.is_array(labels) else labels
        labels = np.asarray(labels, dtype=object)
    if labels.dtype.kind in "fcmM":
        missing = labels != labels
    elif labels.dtype.kind == "O":
        missing = np.array([is_missing(label) for label in labels.flat], dtype=bool)
    else:
        return np.zeros(len(labels), dtype=bool)
    return missing.reshape(len(labels), math.prod(labels.shape[1:])).any(axis=1)


def one_column(labels: Any) -> Any:
    """Return labels in one column, (n_rows, 1), as those of one axis; others as they are.

    An array stays an array, a frame becomes a series, and of a list of lists the entries are taken.
    """
    if isinstance(labels, list | tuple):
        rows = (list, tuple, np.ndarray)
        column = bool(labels) and all(isinstance(r, rows) and len(r) == 1 for r in labels)
        return [row[0] for row in labels] if column else labels
    shape: Any = getattr(labels, "shape", ())
    if len(shape) != 2 or shape[1] != 1 or sparse.issparse(labels):
        return labels
    return labels[labels.columns[0]] if hasattr(labels, "columns") else labels[:, 0]


def label_array(labels: Any, name: str, caller: str, *, ravel: bool = True) -> np.ndarray:
    """Return labels as an array in which no label has changed; raise for rows of unequal length.

    With `ravel`, labels in one column become an array of one axis. A list is read as objects first,
    because numpy turns numbers among strings into strings. An array of objects that are all numbers
    becomes an array of numbers, unless some are missing.
    """
    labels = one_column(labels) if ravel else labels
    is_list = isinstance(labels, list | tuple)
    array = np.asarray(labels, dtype=object) if is_list else np.asarray(labels)
    if array.dtype != object or array.ndim == 0:
        return array
    texts = {isinstance(label, str) for label in array.flat}
    one_type = is_list and len(texts) == 1
    if not one_type and (True in texts or missing_labels(array).any()):
        return array
    try:
        return np.asarray(array.tolist())
    except ValueError as err:
        raise ValueError(
            f"{name} must be a rectangular array. Got rows of unequal length in {caller}."
        ) from err


def check_one_type(labels: Iterable[tuple[str, np.ndarray]], caller: str) -> None:
    """Raise if there are strings among numbers, which numpy would turn into strings.

    `labels` are pairs of the name of a source and its array of labels.
    """
    places = [(label, place) for place, array in labels for label in array.tolist()]
    for label, place in places:
        first, first_place = places[0]
        if isinstance(label, str) != isinstance(first, str):
            raise UnsupportedModelError(
                f"There must be one type of class label. Got {first!r} in {first_place} and "
                f"{label!r} in {place} of {caller}."
            )


def plain_label(label: Any, *, classes: bool) -> Any:
    """Return a label as a JSON value, a list for several outputs; None if missing.

    With `classes` it is for a classifier, which accepts strings and whole numbers.
    """
    if is_missing(label):
        return None
    if isinstance(label, np.generic | np.ndarray):
        label = label.tolist()
    for value in label if isinstance(label, list | tuple) and label else [label]:
        number = isinstance(value, int | float) and math.isfinite(value) and abs(value) < 2**63
        if not (number or isinstance(value, str)):
            raise TypeError(
                "A label must be text, a finite number of 64 bits, or a list of these for several "
                f"outputs; return None or NaN to refuse. Got {label!r} of type "
                f"{type(label).__name__}."
            )
    if classes and isinstance(label, float) and label != round(label):
        raise TypeError(
            "A label for a classifier must be text or a whole number; return None or NaN to "
            f"refuse. Got {label!r}."
        )
    return list(label) if isinstance(label, tuple) else label
