"""Black-box BAIT: the batch that leaves reference rows the least mean posterior variance."""

from dataclasses import replace
from typing import Any

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical.strategies._covariance import CovarianceRows
from sklearn_ical.strategies._pool import Batch, Pool, Selection, ties
from sklearn_ical.strategies._posterior import ROUNDING, PosteriorVariance

# Losses of rows that differ by less than this fraction of the largest are equal.
LOSS_TOLERANCE = 1e-10


def minimize_mean_variance(
    pool: Pool, posterior: PosteriorVariance, reference: CovarianceRows
) -> Selection:
    """Take twice the batch greedily, then prune it back to what is missed most, in forward order.

    With Q the projection of `posterior` and T the mean outer product of the reference rows'
    features, the mean variance is tr(Q T). All kernels have one block.
    """
    n_forward = min(2 * pool.batch_size, len(pool.candidates))
    n_known = posterior.columns.n_columns
    wide = replace(pool, batch_size=n_forward, requested=n_forward)
    forward = _forward(wide, posterior, reference)
    kept = np.arange(n_forward)
    if n_forward > pool.batch_size:
        places = np.searchsorted(pool.candidates, forward.positions)
        kernel, shared = _of_chosen(posterior, places, n_known, reference)
        kept = _pruned(kernel, shared, pool.batch_size)
    rows = None if forward.rows is None else forward.rows[kept]
    return Selection(forward.positions[kept], forward.utilities[kept], rows)


def _forward(pool: Pool, posterior: PosteriorVariance, reference: CovarianceRows) -> Selection:
    """Take row by row what decreases the mean variance of the reference rows most.

    A label at the features a decreases tr(Q T) by a'QTQa / (a'Qa + noise).
    """
    posterior.refresh(np.arange(len(pool.candidates)))
    shared = _shared_variance(posterior, reference)  # a'QTQa
    largest = float(shared.max())
    batch = Batch(pool)
    while not batch.full:
        noisy = posterior.values[:, 0] + posterior.noise[:, 0]
        rounding = ROUNDING * (posterior.rows.size + 2 * posterior.columns.n_columns) * largest
        known = (posterior.values[:, 0] == 0) | (shared <= rounding)
        gains = np.where(known, 0.0, shared) / noisy
        errors = (rounding + gains * posterior.error) / noisy
        batch.take(gains, tolerance=4 * float(errors.max()), exact=ties(gains, errors))
        if not batch.full:
            place = np.array(batch.places[-1:])
            posterior.observe(posterior.rows.take(pool.candidates[place]), posterior.noise[place])
            shared = _updated(shared, posterior, reference)
            posterior.refresh(np.arange(len(pool.candidates)))
    return batch.selection()


def _shared_variance(posterior: PosteriorVariance, reference: CovarianceRows) -> np.ndarray:
    """Return a'QTQa of each candidate: its mean squared covariance with the reference rows.

    T is made in blocks of columns that fit in a quarter of `working_memory`.
    """
    rows, size = posterior.rows, posterior.rows.size
    shared = np.zeros(len(posterior.positions))
    width = max(1, min(size, _array.working_bytes() // 4 // (8 * size)))
    for start in range(0, size, width):
        part = slice(start, min(start + width, size))
        outer: Any = 0.0
        for _, features in reference.chunks(np.arange(reference.n_points), width):
            projected = posterior.project(_first_block(features)[None, ...])[0, ...]
            outer = outer + projected.T @ projected[:, part]  # (size, width)
        for where, features in rows.chunks(posterior.positions, width):
            own = _first_block(features)
            xp = _array.namespace(own)
            shared[where] += _array.to_host(xp.sum((own @ outer) * own[:, part], axis=1))
    return shared / reference.n_points


def _updated(
    shared: np.ndarray, posterior: PosteriorVariance, reference: CovarianceRows
) -> np.ndarray:
    """Return a'QTQa after the last column v that the posterior took in."""
    column = posterior.columns[-1:]  # (1, 1, size)
    moved: Any = 0.0
    for _, features in reference.chunks(np.arange(reference.n_points)):
        own = _first_block(features)
        moved = moved + (own @ column[0, ...].T).T @ own
    moved = moved / reference.n_points  # v'T
    before = posterior.columns.n_columns - 1
    other = posterior.project(moved[None, ...], before)  # v'TQ, Q without v
    xp = _array.namespace(column)
    own_share = float(xp.sum(moved * column[0, ...]))  # v'Tv
    pair = xp.concat([column, other], axis=1)
    updated = np.empty_like(shared)
    for where, products in posterior.rows.products(posterior.positions, pair):
        with_column, with_other = products[0, :, 0], products[0, :, 1]
        change = with_column * (with_column * own_share - 2 * with_other)
        updated[where] = shared[where] + change
    return updated


def _of_chosen(
    posterior: PosteriorVariance, places: np.ndarray, n_known: int, reference: CovarianceRows
) -> tuple[np.ndarray, np.ndarray]:
    """Return two matrices of the chosen rows, given what was known before them.

    Their noisy covariance, and their mean products of covariances with the reference rows.
    """
    features = posterior.rows.take(posterior.positions[places])
    own = _first_block(features)
    projected = posterior.project(own[None, ...], n_known)
    kernel = _array.to_host(projected[0, ...] @ own.T)
    noise = np.maximum(posterior.noise[places, 0], posterior.error)
    shared = np.zeros_like(kernel)
    for _, products in reference.products(np.arange(reference.n_points), projected):
        shared += products[0].T @ products[0]
    return (kernel + kernel.T) / 2 + np.diag(noise), shared / reference.n_points


def _pruned(kernel: np.ndarray, shared: np.ndarray, n_kept: int) -> np.ndarray:
    """Return which rows are left when that of the least loss leaves, one by one, ascending.

    With G the inverse of the noisy kernel, the rows decrease the mean variance by tr(G W), and
    without row j by (G W G)_jj / G_jj less. Of equals the last leaves.
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
