"""Weights of rows: the uncertainty of the mean prediction, or the caller's own weights."""

from typing import Any

import numpy as np

from sklearn_ical import _array, _validation
from sklearn_ical.dependence import margin, predictive_entropy
from sklearn_ical.pool._pool import RowSet

# Weights computed from the mean prediction of a classifier.
UNCERTAINTIES = {"margin": margin, "entropy": predictive_entropy}


def given_weights(weight: Any, n_rows: int, name: str, caller: str) -> np.ndarray | None:
    """Return the caller's weights of `n_rows` rows, checked, as float64; None for others."""
    if weight is None or isinstance(weight, str):
        return None
    array = _validation.as_numbers(weight, name, caller)
    if array.shape != (n_rows,):
        raise ValueError(
            f"{name} must have shape ({n_rows},), one weight for each row. Got shape {array.shape} "
            f"in {caller}."
        )
    wrong = ~np.isfinite(array) | (array < 0)
    if wrong.any():
        slot = int(np.argmax(wrong))
        raise ValueError(
            f"{name} must be finite and >= 0. Got {array[slot]} for row {slot} in {caller}."
        )
    return array


def uncertainty(weight: str, rows: RowSet, positions: np.ndarray) -> np.ndarray:
    """Return how uncertain the mean predictions of some rows are, float64 on the host."""
    score = UNCERTAINTIES[weight]
    return _array.to_host(rows.map(lambda samples: score(samples.mean()[:, None, :]), positions))
