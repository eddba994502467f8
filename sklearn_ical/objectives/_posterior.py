"""Effect of known labels and chosen rows on others: variances, distances, determinants.

Known rows become columns in the space of features, and the effect of a column on a row is an inner
product: rows are updated in chunks, and only when they are needed.
"""

from typing import Any

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical.objectives._covariance_rows import CovarianceRows

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
        """Append columns; the capacity doubles when it is exceeded."""
        xp = _array.namespace(columns)
        end = self.n_columns + columns.shape[1]
        if self._room is None:
            self._room = xp.asarray(columns, copy=True)
        while self._room.shape[1] < end:
            self._room = xp.concat([self._room, xp.zeros_like(self._room)], axis=1)
        self._room[:, self.n_columns : end, :] = columns
        self.n_columns = end


class LazyRows:
    """A number per row that columns change, updated only for the rows that are needed.

    A subclass defines how columns change the numbers.

    Parameters
    ----------
    rows : CovarianceRows
    positions : intp array of shape (n_rows,)
        The rows considered, as positions in `rows`.
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

    def refresh(self, slots: np.ndarray) -> None:
        """Update the numbers of some slots."""
        n_columns = self.columns.n_columns
        stale = slots[self._seen[slots] < n_columns]
        if len(stale) == 0:
            return
        first = int(self._seen[stale].min())
        columns = self.columns[first:]
        xp = _array.namespace(columns)
        turned = xp.permute_dims(columns, (0, 2, 1))

        def update(features: Array, slots: np.ndarray) -> tuple[np.ndarray, ...]:
            by_block = xp.permute_dims(features, (1, 0, 2))
            products = _array.to_host(xp.matmul(by_block, turned))
            new = np.arange(first, n_columns) >= self._seen[slots][:, None]
            return self._updated(slots, products, new, first)

        self._set(
            stale,
            *self.rows.map(update, self.positions[stale], stale, n_columns=columns.shape[1]),
        )
        self._seen[stale] = n_columns

    def _updated(
        self, slots: np.ndarray, products: np.ndarray, new: np.ndarray, first: int
    ) -> tuple[np.ndarray, ...]:
        """Return the numbers after products (n_blocks, n_slots, n_columns) with new columns.

        The columns are those from `first` on; only those marked in `new`, (n_slots, n_columns),
        are not yet in the numbers.
        """
        raise NotImplementedError

    def _set(self, slots: np.ndarray, *numbers: np.ndarray) -> None:
        """Store the numbers of some slots."""
        raise NotImplementedError


class PosteriorVariance(LazyRows):
    """Variances given noisy observations, in `values`, (n_rows, n_blocks).

    The covariance given the observed rows is that of features projected by ``Q = I - sum v v^T``
    over the columns v: pivoted Cholesky in the space of the features.
    """

    def __init__(self, rows: CovarianceRows, positions: np.ndarray, noise: np.ndarray) -> None:
        super().__init__(rows, positions)
        self.noise = noise  # (n_rows, n_blocks)
        self.values = self.diagonal.copy()

    def gains(self, slots: np.ndarray) -> np.ndarray:
        """Return the information that a label would add, in nats, from up-to-date variances."""
        return np.sum(np.log1p(self.values[slots] / self.noise[slots]), axis=1) / 2

    def gain_errors(self, slots: np.ndarray) -> np.ndarray:
        """Bound the rounding error of each gain."""
        noisy = self.values[slots] + self.noise[slots]
        return self.error * np.sum(1 / noisy, axis=1) + ROUNDING * self.gains(slots)

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

    def observe_slot(self, slot: int) -> None:
        """Condition on the label of one of the rows considered."""
        slots = np.array([slot])
        self.observe(self.rows.take(self.positions[slots]), self.noise[slots])

    def _updated(
        self, slots: np.ndarray, products: np.ndarray, new: np.ndarray, first: int
    ) -> tuple[np.ndarray, ...]:
        if not new.all():
            products = products * new
        known = np.einsum("bnt,bnt->nb", products, products)
        left = self.values[slots] - known
        return (np.where(left > self.error, left, 0.0),)

    def _set(self, slots: np.ndarray, *numbers: np.ndarray) -> None:
        (self.values[slots],) = numbers


class CenterDistance(LazyRows):
    """Squared kernel distances to the nearest center, in `values`, and which one that is.

    `nearest` numbers centers in the order of addition; a row stays with a center unless another is
    closer by more than rounding. Without centers `values` are infinite.
    """

    def __init__(self, rows: CovarianceRows, positions: np.ndarray) -> None:
        super().__init__(rows, positions)
        self.values = np.full(len(positions), np.inf)
        self.nearest = np.zeros(len(positions), dtype=np.intp)
        self._centers = np.empty(0)

    @property
    def error(self) -> float:
        """Bound on the rounding error of one squared distance."""
        return 4 * ROUNDING * self.rows.size * self._largest

    def add(self, features: Array, diagonal: np.ndarray) -> None:
        """Add rows with these features (n, 1, size) and kernel diagonal (n,) as centers."""
        self._centers = np.concatenate([self._centers, diagonal])
        self._largest = max(self._largest, float(diagonal.max()))
        self.columns.add(_array.namespace(features).permute_dims(features, (1, 0, 2)))

    def add_slot(self, slot: int) -> None:
        """Add one of the rows considered as a center."""
        slots = np.array([slot])
        self.add(self.rows.take(self.positions[slots]), self.diagonal[slots, 0])

    def squared(self, slots: np.ndarray) -> np.ndarray:
        """Return up-to-date squared distances; without centers the kernel's diagonal."""
        return self.values[slots] if self.columns.n_columns else self.diagonal[slots, 0]

    def _updated(
        self, slots: np.ndarray, products: np.ndarray, new: np.ndarray, first: int
    ) -> tuple[np.ndarray, ...]:
        distances = self.diagonal[slots] + self._centers[first:] - 2 * products[0]
        distances = np.where(new, np.where(distances > self.error, distances, 0.0), np.inf)
        closest = distances.min(axis=1)
        closer = closest < self.values[slots] - self.error
        which = np.argmax(distances <= closest[:, None] + self.error, axis=1)
        nearest = np.where(closer, first + which, self.nearest[slots])
        return np.where(closer, closest, self.values[slots]), nearest

    def _set(self, slots: np.ndarray, *numbers: np.ndarray) -> None:
        self.values[slots], self.nearest[slots] = numbers


class LogDeterminant:
    """Half the log determinant of kernel plus noise: the information of noisy labels, in nats."""

    submodular = True

    def __init__(self, posterior: PosteriorVariance) -> None:
        self.posterior = posterior

    def gains(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the information that labels would add, and bounds of the errors."""
        self.posterior.refresh(slots)
        return self.posterior.gains(slots), self.posterior.gain_errors(slots)

    def add(self, slot: int) -> None:
        """Condition on a noisy label of a candidate."""
        self.posterior.observe_slot(slot)


class FarthestCenter:
    """Squared distance to the nearest center; without a center, the kernel's diagonal."""

    def __init__(self, distance: CenterDistance) -> None:
        self.distance = distance

    @property
    def submodular(self) -> bool:
        """Whether there is a center: the diagonal bounds no distance."""
        return self.distance.columns.n_columns > 0

    def gains(self, slots: np.ndarray) -> tuple[np.ndarray, float]:
        """Return squared distances, and a bound of their errors."""
        self.distance.refresh(slots)
        return self.distance.squared(slots), self.distance.error

    def add(self, slot: int) -> None:
        """Make a candidate a center."""
        self.distance.add_slot(slot)
