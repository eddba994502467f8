"""Weights of rows: how uncertain the mean prediction is, or what the caller says."""

from typing import Any

import numpy as np

from sklearn_ical import _array, _validation
from sklearn_ical.dependence import margin, predictive_entropy
from sklearn_ical.strategies._pool import Predictions

# Weights that follow from the mean prediction of a classifier.
UNCERTAINTIES = {"margin": margin, "entropy": predictive_entropy}


def given_weights(weight: Any, n_rows: int, name: str, owner: str) -> np.ndarray | None:
    """Return the caller's weights of `n_rows` rows, checked, as float64; None for others."""
    if weight is None or isinstance(weight, str):
        return None
    array = _validation.as_numbers(weight, name, owner)
    if array.shape != (n_rows,):
        raise ValueError(
            f"{name} must have shape ({n_rows},), one weight for each row. Got shape {array.shape} "
            f"in {owner}."
        )
    wrong = ~np.isfinite(array) | (array < 0)
    if wrong.any():
        place = int(np.argmax(wrong))
        raise ValueError(
            f"{name} must be finite and >= 0. Got {array[place]} for row {place} in {owner}."
        )
    return array


def uncertainty(weight: str, predictions: Predictions, positions: np.ndarray) -> np.ndarray:
    """Return how uncertain the mean predictions of some rows are, float64 on the host."""
    score = UNCERTAINTIES[weight]
    parts = [
        _array.to_host(score(samples.mean()[:, None, :]))
        for _, samples in predictions.chunks(positions)
    ]
    return np.concatenate(parts)
