"""What known labels and chosen rows do to the others: variances, distances, greedy determinants.

Known rows become columns in the space of features, and what a column does to a row is an inner
product: rows are brought up to date in chunks, and only when they are asked for.
"""

from typing import Any

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical.selection import merge_ties
from sklearn_ical.strategies._covariance import CovarianceRows
from sklearn_ical.strategies._pool import Batch, Pool, Selection

# Several times the bound on the rounding error of one addition.
ROUNDING = 8 * np.finfo(np.float64).eps


class Columns:
    """A growing list of columns in feature space, (n_blocks, n_columns, size)."""

    def __init__(self) -> None:
        self.n_columns = 0
        self._room: Any = None

    def __getitem__(self, which: slice) -> Array:
        return self._room[:, : self.n_columns, :][:, which, :]

    def add(self, columns: Array) -> None:
        """Append columns; the room for them doubles where it runs out."""
        xp = _array.namespace(columns)
        end = self.n_columns + columns.shape[1]
        if self._room is None:
            self._room = xp.asarray(columns, copy=True)
        while self._room.shape[1] < end:
            self._room = xp.concat([self._room, xp.zeros_like(self._room)], axis=1)
        self._room[:, self.n_columns : end, :] = columns
        self.n_columns = end


class LazyRows:
    """A number per row that columns change, brought up to date only for the rows asked for.

    A subclass says in ``_absorb`` what columns do to the numbers.

    Parameters
    ----------
    rows : CovarianceRows
    positions : intp array of shape (n_rows,)
        The rows looked at, among those.
    """

    def __init__(self, rows: CovarianceRows, positions: np.ndarray) -> None:
        self.rows = rows
        self.positions = positions
        self.columns = Columns()
        self.diagonal = rows.diagonal[positions]
        self._largest = float(rows.diagonal.max())
        self._seen = np.zeros(len(positions), dtype=np.intp)

    @property
    def error(self) -> float:
        """Bound on the rounding error of one number."""
        n_terms = self.rows.size + 2 * self.columns.n_columns
        return ROUNDING * n_terms * self._largest

    def refresh(self, places: np.ndarray) -> None:
        """Bring the numbers of some places up to date."""
        n_columns = self.columns.n_columns
        stale = places[self._seen[places] < n_columns]
        if len(stale) == 0:
            return
        first = int(self._seen[stale].min())
        found = self.rows.products(self.positions[stale], self.columns[first:])
        for where, products in found:
            part = stale[where]
            new = np.arange(first, n_columns) >= self._seen[part][:, None]
            self._absorb(part, products, new, first)
        self._seen[stale] = n_columns

    def _absorb(
        self, places: np.ndarray, products: np.ndarray, new: np.ndarray, first: int
    ) -> None:
        """Take in products (n_blocks, n_places, n_columns) of columns from `first` on.

        Only those marked in `new`, (n_places, n_columns), have not been taken in before.
        """
        raise NotImplementedError


class PosteriorVariance(LazyRows):
    """Variances given noisy observations, in `values`, (n_rows, n_blocks).

    The covariance given the rows observed is that of features projected by
    ``Q = I - sum v v^T`` over the columns v: pivoted Cholesky in the space of the features.
    """

    def __init__(self, rows: CovarianceRows, positions: np.ndarray, noise: np.ndarray) -> None:
        super().__init__(rows, positions)
        self.noise = noise  # (n_rows, n_blocks)
        self.values = self.diagonal.copy()

    def gains(self, places: np.ndarray) -> np.ndarray:
        """Return the information that a label would add, in nats, from up-to-date variances."""
        return np.sum(np.log1p(self.values[places] / self.noise[places]), axis=1) / 2

    def gain_errors(self, places: np.ndarray) -> np.ndarray:
        """Bound the rounding error of each gain."""
        noisy = self.values[places] + self.noise[places]
        return self.error * np.sum(1 / noisy, axis=1) + ROUNDING * self.gains(places)

    def project(self, features: Array, n_columns: int | None = None) -> Array:
        """Multiply features (n_blocks, n, size) by Q, or by that of the first columns."""
        if self.columns.n_columns == 0 or n_columns == 0:
            return features
        xp = _array.namespace(features)
        columns = self.columns[:n_columns]
        return features - xp.matmul(
            xp.matmul(features, xp.permute_dims(columns, (0, 2, 1))), columns
        )

    def observe(self, features: Array, noise: np.ndarray) -> None:
        """Condition on rows with these features (n, n_blocks, size) and noise (n, n_blocks)."""
        xp = _array.namespace(features)
        self._largest = max(self._largest, float(xp.max(xp.sum(features**2, axis=2))))
        by_block = xp.permute_dims(features, (1, 0, 2))
        projected = self.project(by_block)
        covariance = _array.to_host(xp.matmul(projected, xp.permute_dims(by_block, (0, 2, 1))))
        covariance = (covariance + np.swapaxes(covariance, 1, 2)) / 2
        diagonal = np.arange(covariance.shape[1])
        variance = np.maximum(covariance[:, diagonal, diagonal], 0.0)
        covariance[:, diagonal, diagonal] = variance + np.maximum(noise.T, self.error)
        factor = np.linalg.inv(np.linalg.cholesky(covariance))
        factor[np.broadcast_to((variance <= self.error)[:, :, None], factor.shape)] = 0.0
        self.columns.add(xp.matmul(_array.like(factor, projected), projected))

    def _absorb(
        self, places: np.ndarray, products: np.ndarray, new: np.ndarray, first: int
    ) -> None:
        if not new.all():
            products = products * new
        known = np.einsum("bnt,bnt->nb", products, products)
        left = self.values[places] - known
        self.values[places] = np.where(left > self.error, left, 0.0)


class CentreDistance(LazyRows):
    """Squared kernel distances to the nearest centre, in `values`, and which one that is.

    `nearest` counts centres as they come; a row stays with a centre unless another is closer by
    more than rounding. Without centres `values` are infinite.
    """

    def __init__(self, rows: CovarianceRows, positions: np.ndarray) -> None:
        super().__init__(rows, positions)
        self.values = np.full(len(positions), np.inf)
        self.nearest = np.zeros(len(positions), dtype=np.intp)
        self._centres = np.empty(0)

    @property
    def error(self) -> float:
        """Bound on the rounding error of one squared distance."""
        return 4 * ROUNDING * self.rows.size * self._largest

    def add(self, features: Array, diagonal: np.ndarray) -> None:
        """Take rows with these features (n, 1, size) and kernel diagonal (n,) as centres."""
        self._centres = np.concatenate([self._centres, diagonal])
        self._largest = max(self._largest, float(diagonal.max()))
        self.columns.add(_array.namespace(features).permute_dims(features, (1, 0, 2)))

    def squared(self, places: np.ndarray) -> np.ndarray:
        """Return up-to-date squared distances; without centres the kernel's diagonal."""
        return self.values[places] if self.columns.n_columns else self.diagonal[places, 0]

    def _absorb(
        self, places: np.ndarray, products: np.ndarray, new: np.ndarray, first: int
    ) -> None:
        distances = self.diagonal[places] + self._centres[first:] - 2 * products[0]
        distances = np.where(new, np.where(distances > self.error, distances, 0.0), np.inf)
        closest = distances.min(axis=1)
        closer = closest < self.values[places] - self.error
        which = np.argmax(distances <= closest[:, None] + self.error, axis=1)
        self.nearest[places] = np.where(closer, first + which, self.nearest[places])
        self.values[places] = np.where(closer, closest, self.values[places])


def maximize_log_det(pool: Pool, posterior: PosteriorVariance) -> Selection:
    """Pick greedily by the information of each label given those before, by lazy greedy."""
    everything = np.arange(len(pool.candidates))
    posterior.refresh(everything)
    bounds = posterior.gains(everything)

    def renewed(places: np.ndarray) -> np.ndarray:
        posterior.refresh(places)
        return posterior.gains(places)

    def exact(places: np.ndarray) -> np.ndarray:
        return merge_ties(bounds[places], posterior.gain_errors(places))

    batch = Batch(pool)
    most = float(np.sum(1 / posterior.noise, axis=1).max())
    while not batch.full:
        tolerance = 4 * (posterior.error * most + ROUNDING * float(bounds.max()))
        batch.renew(bounds, renewed, tolerance=tolerance)
        batch.take(bounds, tolerance=tolerance, exact=exact)
        if not batch.full:
            place = np.array(batch.places[-1:])
            posterior.observe(posterior.rows.take(pool.candidates[place]), posterior.noise[place])
    return batch.selection()
