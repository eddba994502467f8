"""Black-box BAIT: the batch that minimizes the mean posterior variance of reference rows."""

from dataclasses import replace

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical.objectives._covariance_rows import CovarianceRows
from sklearn_ical.objectives._posterior import ROUNDING, PosteriorVariance
from sklearn_ical.pool._pool import Pool
from sklearn_ical.selection._batch import Selection
from sklearn_ical.selection._maximize import maximize

# Losses of rows that differ by less than this fraction of the largest are equal.
LOSS_TOLERANCE = 1e-10


def minimize_mean_variance(
    pool: Pool, posterior: PosteriorVariance, reference: CovarianceRows
) -> Selection:
    """Pick twice the batch greedily, then remove the rows of the least loss; keep the pick order.

    With Q the projection of `posterior` and T the mean outer product of the reference rows'
    features, the mean variance is tr(Q T). All kernels have one block.
    """
    n_forward = min(2 * pool.batch_size, len(pool.candidates))
    n_known = posterior.columns.n_columns
    wide = replace(pool, batch_size=n_forward, requested=n_forward)
    forward = maximize(wide, _MeanVariance(posterior, reference))
    kept = np.arange(n_forward)
    if n_forward > pool.batch_size:
        slots = np.searchsorted(pool.candidates, forward.positions)
        kernel, shared = _of_chosen(posterior, slots, n_known, reference)
        kept = _pruned(kernel, shared, pool.batch_size)
    rows = None if forward.rows is None else forward.rows[kept]
    return Selection(forward.positions[kept], forward.utilities[kept], rows)


class _MeanVariance:
    """Decrease of the mean variance of the reference rows by a label at a candidate.

    A label at the features a decreases tr(Q T) by a'QTQa / (a'Qa + noise).
    """

    submodular = False

    def __init__(self, posterior: PosteriorVariance, reference: CovarianceRows) -> None:
        self.posterior = posterior
        self.reference = reference
        self.everything = np.arange(len(posterior.positions))
        posterior.refresh(self.everything)
        self.shared = _shared_variance(posterior, reference)  # a'QTQa
        self.largest = float(self.shared.max())

    def gains(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the decreases, and bounds of the errors."""
        posterior = self.posterior
        values, shared = posterior.values[slots, 0], self.shared[slots]
        noisy = values + posterior.noise[slots, 0]
        n_terms = posterior.rows.size + 2 * posterior.columns.n_columns
        rounding = ROUNDING * n_terms * self.largest
        gains = np.where((values == 0) | (shared <= rounding), 0.0, shared) / noisy
        return gains, (rounding + gains * posterior.error) / noisy

    def add(self, slot: int) -> None:
        """Condition on the label of a candidate."""
        self.posterior.observe_slot(slot)
        self.shared = _updated(self.shared, self.posterior, self.reference)
        self.posterior.refresh(self.everything)


def _shared_variance(posterior: PosteriorVariance, reference: CovarianceRows) -> np.ndarray:
    """Return a'QTQa of each candidate: its mean squared covariance with the reference rows.

    T is made in blocks of columns that fit in a quarter of `working_memory`.
    """
    rows, size = posterior.rows, posterior.rows.size
    shared = np.zeros(len(posterior.positions))
    width = max(1, min(size, _array.working_bytes() // 4 // (8 * size)))
    for start in range(0, size, width):
        part = slice(start, min(start + width, size))

        def outer_products(features: Array, part: slice = part) -> Array:
            projected = posterior.project(_first_block(features)[None, ...])[0, ...]
            return projected.T @ projected[:, part]  # (size, width)

        outer = reference.reduce(outer_products, n_columns=width)

        def squares(features: Array, part: slice = part, outer: Array = outer) -> np.ndarray:
            block = _first_block(features)
            xp = _array.namespace(block)
            return _array.to_host(xp.sum((block @ outer) * block[:, part], axis=1))

        shared += rows.map(squares, posterior.positions, n_columns=width)
    return shared / reference.n_points


def _updated(
    shared: np.ndarray, posterior: PosteriorVariance, reference: CovarianceRows
) -> np.ndarray:
    """Return a'QTQa after the last column v that was added to the posterior."""
    column = posterior.columns[-1:]  # (1, 1, size)

    def product(features: Array) -> Array:
        block = _first_block(features)
        return (block @ column[0, ...].T).T @ block

    moved = reference.reduce(product) / reference.n_points  # v'T
    before = posterior.columns.n_columns - 1
    other = posterior.project(moved[None, ...], before)  # v'TQ, Q without v
    xp = _array.namespace(column)
    own_share = float(xp.sum(moved * column[0, ...]))  # v'Tv
    pair = xp.concat([column, other], axis=1)[0, ...]  # (2, size)

    def change(features: Array) -> np.ndarray:
        with_column, with_other = _array.to_host(_first_block(features) @ pair.T).T
        return with_column * (with_column * own_share - 2 * with_other)

    return shared + posterior.rows.map(change, posterior.positions, n_columns=2)


def _of_chosen(
    posterior: PosteriorVariance, slots: np.ndarray, n_known: int, reference: CovarianceRows
) -> tuple[np.ndarray, np.ndarray]:
    """Return two matrices of the chosen rows, given the labels known before them.

    Their noisy covariance, and their mean products of covariances with the reference rows.
    """
    features = posterior.rows.take(posterior.positions[slots])
    block = _first_block(features)
    projected = posterior.project(block[None, ...], n_known)
    kernel = _array.to_host(projected[0, ...] @ block.T)
    noise = np.maximum(posterior.noise[slots, 0], posterior.error)

    def squares(features: Array) -> np.ndarray:
        products = _array.to_host(_first_block(features) @ projected[0, ...].T)
        return products.T @ products

    shared = reference.reduce(squares, n_columns=projected.shape[1])
    return (kernel + kernel.T) / 2 + np.diag(noise), shared / reference.n_points


def _pruned(kernel: np.ndarray, shared: np.ndarray, n_kept: int) -> np.ndarray:
    """Return the rows that are left, ascending, when those of least loss are removed one by one.

    With G the inverse of the noisy kernel, the rows decrease the mean variance by tr(G W), and
    without row j by (G W G)_jj / G_jj less. Of equal rows the last is removed.
    """
    inverse = np.linalg.inv(kernel)
    inverse = (inverse + inverse.T) / 2
    sandwich = inverse @ shared @ inverse
    left = np.arange(len(kernel))
    while len(left) > n_kept:
        losses = np.diagonal(sandwich)[left] / np.diagonal(inverse)[left]
        small = losses <= losses.min() + LOSS_TOLERANCE * losses.max()
        leaving = np.flatnonzero(small)[-1]
        j = left[leaving]
        left = np.delete(left, leaving)
        column, cross = inverse[:, j] / inverse[j, j], sandwich[:, j].copy()
        sandwich -= np.outer(column, cross - column * (cross[j] / 2))
        sandwich -= np.outer(cross - column * (cross[j] / 2), column)
        inverse -= np.outer(column, inverse[:, j].copy())
    return left


def _first_block(features: Array) -> Array:
    """Return the features (n, size) of kernels with one block."""
    return features[:, 0, :]
