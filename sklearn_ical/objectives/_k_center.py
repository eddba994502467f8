"""k-center: distances of candidates to the nearest center, of which each pick becomes one."""

from typing import Any

import numpy as np

from sklearn_ical import _array
from sklearn_ical.objectives._distances import (
    centered,
    exact_squared_distances,
    mean_row,
    products,
    rounding_of_distances,
    rounding_of_products,
)

MOST_CENTERS = 256  # that are compared with the candidates in one product


class KCenter:
    """Distance to the nearest center: an objective of ``maximize``.

    Parameters
    ----------
    features : real array of shape (n_points, n_features) or canonical CSR matrix
        Finite. Not modified.
    candidates : intp array of shape (n_candidates,)
        The rows that may be picked.
    first : float64 array of shape (n_candidates,)
        Gains as long as there is no center.

    Notes
    -----
    A new center is compared with all candidates in one product, O(n_candidates n_features). Only
    where it may be the nearest is the distance computed from differences, so that gains are always
    those of differences: exactly 0 for copies of a center.
    """

    def __init__(self, features: Any, candidates: np.ndarray, first: np.ndarray) -> None:
        self._features, self._candidates = features, candidates
        self._first: np.ndarray | None = first
        rows = features[candidates]
        self._origin = mean_row(rows)
        self._rows, self._norms = centered(rows, self._origin)
        self._nearest = np.full(len(candidates), np.inf)  # squared distances

    @property
    def submodular(self) -> bool:
        """Whether there is a center: distances to the nearest never grow."""
        return self._first is None

    def gains(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return distances to the nearest center, and bounds of their errors."""
        gains = self._first[slots] if self._first is not None else np.sqrt(self._nearest[slots])
        return gains, rounding_of_distances(self._features.shape[1]) * gains

    def add(self, slot: int) -> None:
        """Make a candidate a center."""
        self.add_centers(self._features, self._candidates[[slot]])

    def add_centers(self, features: Any, positions: np.ndarray) -> None:
        """Make rows of any features centers, in blocks."""
        self._first = None
        least_bytes = _array.CHUNK_BYTES // MOST_CENTERS
        for block in _array.row_slices(len(positions), max(8 * features.shape[1], least_bytes)):
            where = positions[block]
            rows, norms = centered(features[where], self._origin)
            for part in _array.row_slices(len(self._candidates), 32 * len(where)):
                centers, slots = self._closest(rows, norms, part)
                distances = exact_squared_distances(
                    self._features, self._candidates[slots], features, where[centers]
                )
                np.minimum.at(self._nearest, slots, distances)

    def _closest(self, rows: Any, norms: np.ndarray, part: slice) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs of new centers and candidates that may be nearest, by products."""
        own, nearest = self._norms[part], self._nearest[part]
        distances = products(-2 * rows, self._rows[part])  # (n_centers, n_part), less own norms
        distances += norms[:, None]
        errors = rounding_of_products(rows.shape[1]) * (own + norms.max())
        limits = np.minimum(nearest - own, distances.min(axis=0) + errors) + errors
        limits[nearest == 0] = -np.inf  # copies of a center
        centers, slots = np.divmod(np.flatnonzero(distances <= limits), len(own))
        return centers, slots + part.start
