"""Labeled rows and their labels, checked and read as refits take them; nothing is fitted here."""

from typing import Any

import numpy as np

from sklearn_ical._validation import missing_rows, n_rows
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers._members import check_labels_alike
from sklearn_ical.samplers._models import estimator_type, name_of


def check_rows(model: Any, X: Any, y: Any) -> None:
    """Refuse labeled rows without labels, and as many labels as there are not rows."""
    owner = f"BootstrapSampler of {name_of(model)}"
    if X is None or y is None:
        name = "X_labeled" if X is None else "y_labeled"
        raise ValueError(
            f"Labeled rows come as X_labeled and y_labeled together. Got {name}=None in {owner}."
        )
    total, labels = n_rows(X, "X_labeled"), n_rows(y, "y_labeled")
    if labels != total or total == 0:
        raise ValueError(
            "y_labeled must hold one label for each row of X_labeled, at least one. Got "
            f"{labels} labels for {total} rows in {owner}."
        )
    known = getattr(model, "n_features_in_", None)
    columns: Any = () if hasattr(X, "columns") else getattr(X, "shape", ())[1:]
    if known is not None and len(columns) == 1 and columns[0] != known:
        raise ValueError(
            f"X_labeled must have the {known} columns that {name_of(model)} was fitted on. Got "
            f"{columns[0]} in {owner}."
        )


def labels_of(model: Any, y: Any) -> np.ndarray:
    """Return labels as an array, of one axis for a classifier, or say what is wrong with them."""
    owner = f"BootstrapSampler of {name_of(model)}"
    labels = _as_array(y, owner)
    missing = missing_rows(labels)
    if missing.any():
        row = int(np.argmax(missing))
        raise ValueError(
            f"y_labeled must have no missing labels. Got {labels[row]!r} for row {row} in {owner}; "
            "leave out rows without a label."
        )
    if estimator_type(model) != "classifier":
        return labels
    if labels.size != len(labels):
        raise UnsupportedModelError(
            f"y_labeled must have shape ({len(labels)},) for a classifier: draws have one class "
            f"axis, (n_points, n_draws, n_classes). Got shape {labels.shape} in {owner}; fit one "
            "model per output."
        )
    labels = labels.reshape(-1)
    seen = {"y_labeled": labels if labels.dtype == object else labels[:1]}
    if hasattr(model, "classes_"):
        seen = {"the model": np.asarray(model.classes_), **seen}
    check_labels_alike(list(seen.values()), list(seen), owner)
    return labels


def _as_array(y: Any, owner: str) -> np.ndarray:
    """Return labels as an array; numbers in a list or an array of objects become numbers."""
    # A list is read as objects first: numpy turns numbers among texts into texts.
    labels = np.asarray(y, dtype=object) if isinstance(y, list | tuple) else np.asarray(y)
    texts = {isinstance(label, str) for label in labels.flat} if labels.dtype == object else set()
    if texts == {False} or (texts == {True} and isinstance(y, list | tuple)):
        try:
            labels = np.asarray(labels.tolist())
        except ValueError as err:
            raise ValueError(
                f"y_labeled must be a rectangular array. Got rows of unequal length in {owner}."
            ) from err
    return labels
