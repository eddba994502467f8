"""Real predictions and features in a range in which float64 holds their fourth powers.

Predictions near 1e100, or 1e-100, are multiplied by one power of two when they are read, which is
exact: nothing else has to provide for squares that leave float64.
"""

from typing import Any

import numpy as np
from scipy import sparse

from sklearn_ical import _array
from sklearn_ical.samples import PredictionSamples

# Of rows too many to be held, one of so many is read to find the magnitude.
PROBED = 64
# The square of its inverse is in float64.
LEAST_NOISE = 2.0**-400


def in_range(*sets: Any) -> tuple[list[Any], float]:
    """Return rows with real predictions that are multiplied by a power of two, and that factor.

    Parameters
    ----------
    *sets : RowSet or None
        Rows with predictions of the same draws.

    Returns
    -------
    sets : list of RowSet or None
        Held in memory if they fit; as they are if their predictions are in range, or not real.
    factor : float
        1.0 if they are in range. Noise variances are multiplied by its square.
    """
    if any(rows is not None and rows.kind != "value" for rows in sets):
        return list(sets), 1.0
    held = [None if rows is None else rows.hold() for rows in sets]
    largest = [magnitude(rows, _probe(rows)) for rows in held if rows is not None]
    factor = _array.range_factor(max(largest))
    if factor == 1:
        return held, factor
    return [None if rows is None else rows.times(factor) for rows in held], factor


def _probe(rows: Any) -> np.ndarray:
    """Return the positions of rows that are read to find their magnitude."""
    return np.arange(0, rows.n_points, 1 if rows.is_held else PROBED)


def magnitude(rows: Any, positions: np.ndarray) -> float:
    """Return the largest absolute prediction, or root of a noise variance, of some rows."""
    return float(rows.map(_magnitudes, positions).max()) if len(positions) else 0.0


def _magnitudes(samples: PredictionSamples) -> np.ndarray:
    """Return the magnitude of samples for each of their rows."""
    noise = samples.noise_variance
    root = 0.0 if noise is None else float(np.sqrt(np.max(noise)))
    return np.full(samples.n_points, max(_array.largest(samples.values), root))


def times(samples: PredictionSamples, factor: float) -> PredictionSamples:
    """Return real predictions, as float64, multiplied by a power of two.

    A positive noise variance stays positive, also where it is negligible beside the predictions.
    """
    xp = _array.namespace(samples.values)
    noise = samples.noise_variance
    if noise is not None:
        scaled = noise * factor * factor  # the square of the factor may not be in float64
        noise = np.where(np.greater(noise, 0), np.maximum(scaled, LEAST_NOISE), 0.0)
        noise = float(noise) if np.ndim(noise) == 0 else noise
    return samples._replace(xp.astype(samples.values, xp.float64) * factor, noise)


def features_in_range(source: Any, *sets: Any) -> tuple[list[Any], float]:
    """Return features of rows multiplied by one power of two, and that factor.

    Parameters
    ----------
    source : object
        As in `RowSet.features`.
    *sets : RowSet or None
        Rows with features of one kind.

    Returns
    -------
    features : list of real arrays, CSR matrices or None
        float64 where multiplied; as they are if in range.
    factor : float
    """
    features = [None if rows is None else rows.features(source) for rows in sets]
    factor = _array.range_factor(max(_largest(each) for each in features if each is not None))
    if factor == 1:
        return features, factor
    return [None if each is None else each.astype(np.float64) * factor for each in features], factor


def _largest(features: Any) -> float:
    return _array.largest(features.data if sparse.issparse(features) else features)
