"""Distances between rows of features, dense or sparse, by products and exactly; and clusters.

Products are fast and rounded; explicit differences give 0 for copies and equal values for equal
pairs of rows.
"""

import sys
import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning

from sklearn_ical import _array
from sklearn_ical._typing import Integer
from sklearn_ical._validation import single_thread

MOST_FULL = 50  # clusters, above which k-means works on mini-batches


def exact_squared_distances(X: Any, a: np.ndarray, Y: Any, b: np.ndarray) -> np.ndarray:
    """Return squared distances of rows `a` of X to rows `b` of Y, float64 (n_pairs,).

    By explicit differences: equal pairs of rows have equal ones to the last bit, copies have 0.
    """
    if sparse.issparse(X):
        row_bytes = 48 * (max(X.nnz // max(X.shape[0], 1), Y.nnz // max(Y.shape[0], 1)) + 1)
    else:
        row_bytes = 24 * max(X.shape[1], 1)
    out = np.empty(len(a))
    for part in _array.row_slices(len(a), row_bytes):
        differences = X[a[part]].astype(np.float64) - Y[b[part]].astype(np.float64)
        if sparse.issparse(X):
            out[part] = sums_of_runs(np.square(differences.data), differences.indptr)
        else:
            out[part] = np.square(differences, out=differences).sum(axis=1)
    return out


def rounding_of_distances(n_features: int) -> float:
    """Return the relative error bound of distances, the square roots of the above."""
    return (n_features / 2 + 2) * sys.float_info.epsilon


def rounding_of_products(n_features: int) -> float:
    """Return the error of squared distances from products, relative to the sum of both norms.

    It covers the rounding of centering, of the products and of the exact squared distance.
    """
    return (2 * n_features + 16) * sys.float_info.epsilon


def mean_row(rows: Any) -> np.ndarray | None:
    """Return the mean of dense rows, float64 (n_features,); None for sparse ones."""
    if sparse.issparse(rows):
        return None
    return rows.mean(axis=0, dtype=np.float64)


def centered(rows: Any, origin: np.ndarray | None = None) -> tuple[Any, np.ndarray]:
    """Return rows as float64, dense ones less `origin`, and their squared norms.

    The origin is their mean by default: distances are differences of large numbers where rows lie
    far from the origin. Squared norms have to fit in float64, as after `features_in_range`.
    """
    rows = rows.astype(np.float64)
    if sparse.issparse(rows):
        return rows, np.asarray(rows.multiply(rows).sum(axis=1)).reshape(-1)
    rows -= rows.mean(axis=0) if origin is None else origin
    return rows, np.einsum("ij,ij->i", rows, rows)


def products(a: Any, b: Any) -> np.ndarray:
    """Return the inner products of the rows of `a`, which are few, with those of `b`."""
    if not sparse.issparse(a):
        return a @ b.T
    return np.ascontiguousarray((b @ a.toarray().T).T)


def sums_of_runs(values: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return the sums of consecutive runs of values, which end where the next begins."""
    sums = np.zeros(len(ends) - 1)
    nonempty = np.diff(ends) > 0
    if nonempty.any():
        sums[nonempty] = np.add.reduceat(values, ends[:-1][nonempty])
    return sums


def distances_to_origin(X: Any, positions: np.ndarray) -> np.ndarray:
    """Return the distances of some rows to the origin, float64 (n_positions,)."""
    origin = sparse.csr_array((1, X.shape[1])) if sparse.issparse(X) else np.zeros((1, X.shape[1]))
    return np.sqrt(exact_squared_distances(X, positions, origin, np.zeros_like(positions)))


def cluster_rows(features: Any, n_clusters: Integer, seed: int) -> np.ndarray:
    """Return the cluster of each row by k-means, (n_rows,), numbered by first occurrence.

    On one thread, so that sums do not depend on the number of cores. There are fewer clusters where
    there are fewer distinct rows.
    """
    points, _ = centered(features)
    if sparse.issparse(points):  # narrows 64-bit indices, which k-means does not accept
        points = sparse.csr_matrix((points.data, points.indices, points.indptr), points.shape)
    kind = KMeans if n_clusters <= MOST_FULL else MiniBatchKMeans
    with warnings.catch_warnings(), single_thread():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters
        labels = kind(n_clusters, n_init=1, random_state=seed).fit_predict(points)
    _, first, labels = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[labels]


def neighbor_distances(
    features: Any, members: np.ndarray, rows: np.ndarray, n_neighbors: Integer
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean distances of some members to their nearest other members, and error bounds.

    Parameters
    ----------
    features : real array of shape (n_points, n_features) or canonical CSR matrix
        Finite. Not modified.
    members : intp array of shape (n_members,)
        Positions of at least two rows, ascending.
    rows : intp array of shape (n_rows,)
        Some of them.
    n_neighbors : int
        At most this many neighbors count; all where there are fewer.

    Returns
    -------
    means, errors : float64 arrays of shape (n_rows,)
        Means are exactly 0 among copies, and never depend on the order of equal distances.

    Notes
    -----
    Products find the neighbors, differences give their distances.
    """
    n_neighbors, n_features = min(int(n_neighbors), len(members) - 1), features.shape[1]
    points, norms = centered(features[members])
    at = np.searchsorted(members, rows)
    means, errors = np.empty(len(rows)), np.empty(len(rows))
    for part in _array.row_slices(len(rows), 8 * max(3 * len(members), n_features)):
        own = at[part]
        closeness = products(-2 * points[own], points)
        closeness += norms
        closeness[np.arange(len(own)), own] = np.inf
        nearest = np.argpartition(closeness, n_neighbors - 1, axis=1)[:, :n_neighbors]
        squared = exact_squared_distances(
            features, np.repeat(rows[part], n_neighbors), features, members[nearest.ravel()]
        )
        distances = np.sqrt(np.sort(squared.reshape(nearest.shape), axis=1))
        means[part] = distances.mean(axis=1)
        # Products may take a wrong neighbor, whose squared distance is larger by two errors.
        excess = 2 * rounding_of_products(n_features) * (norms[own, None] + norms.max())
        positive = distances > 0
        shift = np.divide(excess, distances, where=positive, out=np.zeros_like(distances))
        errors[part] = np.minimum(shift, distances).mean(axis=1)
    return means, errors + (rounding_of_distances(n_features) + n_neighbors * 2.0**-52) * means
