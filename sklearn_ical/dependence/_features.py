"""Kernels of many points as columns of features: HSIC against any summary becomes a matrix product.

This file only turns kernels into features, and summaries of kernels into the weights of those
features; which points are compared is up to the strategies.
"""

from collections.abc import Callable

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical.dependence._kernels import squared_distances


def upper_triangle(n_draws: int, *, diagonal: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of draws of the upper triangle, row by row.

    Parameters
    ----------
    n_draws : int
        Number of draws, m.
    diagonal : bool
        Whether pairs of a draw with itself are among them; kernels of constant diagonal need none.

    Returns
    -------
    left, right : int arrays of shape (n_pairs,)
    """
    return np.triu_indices(n_draws, k=0 if diagonal else 1)


def pair_weights(z: Array, *, diagonal: bool) -> Array:
    """Fold symmetric matrices into weights of the pairs of `upper_triangle`.

    Parameters
    ----------
    z : array of shape (n_summaries, n_draws, n_draws)
        Symmetric.
    diagonal : bool
        As in :func:`upper_triangle`.

    Returns
    -------
    weights : array of shape (n_summaries, n_pairs)
        Pairs of two draws count twice, so that features times weights is the sum over the matrix
        (without its diagonal where `diagonal` is False).
    """
    xp = _array.namespace(z)
    n_draws = z.shape[-1]
    left, right = upper_triangle(n_draws, diagonal=diagonal)
    flat = _array.like(left * n_draws + right, z)
    weights = xp.take(xp.reshape(z, (z.shape[0], n_draws**2)), flat, axis=1)
    return weights * _array.like(np.where(left == right, 1.0, 2.0), z)


def unfold_pairs(pairs: Array, diagonal_values: Array | None, n_draws: int) -> Array:
    """Unfold entries of the upper triangle into full symmetric matrices.

    Parameters
    ----------
    pairs : array of shape (n_summaries, n_pairs)
        Entries in the order of :func:`upper_triangle`.
    diagonal_values : array of shape (n_summaries,) or None
        The constant diagonal of each matrix; None where `pairs` holds the diagonal.
    n_draws : int
        Number of draws, m.

    Returns
    -------
    matrices : array of shape (n_summaries, n_draws, n_draws)
    """
    xp = _array.namespace(pairs)
    left, right = upper_triangle(n_draws, diagonal=diagonal_values is None)
    where = np.full((n_draws, n_draws), len(left))  # the diagonal, unless overwritten
    where[left, right] = where[right, left] = np.arange(len(left))
    if diagonal_values is not None:
        pairs = xp.concat([pairs, diagonal_values[:, None]], axis=1)
    flat = xp.take(pairs, _array.like(where.reshape(-1), pairs), axis=1)
    return xp.reshape(flat, (pairs.shape[0], n_draws, n_draws))


def label_features(labels: Array, dtype: object) -> Array:
    """Return the delta kernels of label codes as features, 1 where two draws agree.

    Parameters
    ----------
    labels : integer array of shape (n_points, n_draws)
        Class codes.
    dtype : dtype
        Type of the result.

    Returns
    -------
    features : array of shape (n_pairs, n_points)
        Pairs as in :func:`upper_triangle` without the diagonal.
    """
    xp = _array.namespace(labels)
    left, right = upper_triangle(labels.shape[1], diagonal=False)
    by_draw = xp.asarray(labels.T, copy=True)  # draws in contiguous rows: pairs are row copies
    agree = xp.take(by_draw, _array.like(left, labels), axis=0) == xp.take(
        by_draw, _array.like(right, labels), axis=0
    )
    return xp.astype(agree, dtype, copy=False)


def output_features(
    outputs: Array, kernel: Callable[[Array], Array] | None, *, diagonal: bool
) -> Array:
    """Return kernels of real outputs as features.

    Parameters
    ----------
    outputs : float64 array of shape (n_points, n_draws, n_outputs)
        Predictions.
    kernel : callable or None
        Function of squared distances; None for inner products.
    diagonal : bool
        As in :func:`upper_triangle`.

    Returns
    -------
    features : float64 array of shape (n_points, n_pairs)
        Pairs as in :func:`upper_triangle`.
    """
    xp = _array.namespace(outputs)
    n_points, n_draws = outputs.shape[:2]
    left, right = upper_triangle(n_draws, diagonal=diagonal)
    flat = _array.like(left * n_draws + right, outputs)
    if kernel is None:
        square = xp.matmul(outputs, xp.permute_dims(outputs, (0, 2, 1)))
    else:
        square = squared_distances(outputs)
    pairs = xp.take(xp.reshape(square, (n_points, n_draws**2)), flat, axis=1)
    return pairs if kernel is None else kernel(pairs)
