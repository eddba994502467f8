"""HSIC of label samples in integers, so that ties are told apart without rounding."""

import numpy as np

from sklearn_ical._typing import HSICEstimator


def integer_hsic(labels: np.ndarray, sums: np.ndarray, estimator: HSICEstimator) -> np.ndarray:
    """Score labels against summed delta kernels without rounding.

    Parameters
    ----------
    labels : integer array of shape (n_points, n_draws)
        Class codes.
    sums : int64 array of shape (n_draws, n_draws)
        Sum of delta kernels, each with or without an added constant.
    estimator : {"biased", "unbiased"}
        As in `hsic`.

    Returns
    -------
    scores : int64 or object array of shape (n_points,)
        Sums of HSIC over the summed kernels, times n_draws^4 for "biased" and
        (n_draws - 1)(n_draws - 2) n_draws (n_draws - 3) for "unbiased".
    """
    m = len(sums)
    agree = (labels[:, :, None] == labels[:, None, :]).reshape(len(labels), m * m)
    if estimator == "biased":
        rows = sums.sum(axis=1)
        dual = m * m * sums - m * (rows[:, None] + rows[None, :]) + rows.sum()
    else:
        sums = sums - np.diag(np.diag(sums))
        rows = sums.sum(axis=1)
        dual = (m - 1) * (m - 2) * sums - (m - 1) * (rows[:, None] + rows[None, :]) + rows.sum()
        np.fill_diagonal(dual, 0)
    # Each entry of the dual is at most 4 m^2 max(sums), so no sum of m^2 of them overflows below:
    if 4.0 * m**4 * max(int(sums.max(initial=0)), 1) < 2**62:
        return agree @ dual.reshape(-1)
    return np.array([sum(map(int, dual.reshape(-1)[row])) for row in agree], dtype=object)


def integer_self_hsic(labels: np.ndarray, estimator: HSICEstimator) -> np.ndarray:
    """Score labels against their own delta kernel, in the integers of `integer_hsic`.

    Parameters
    ----------
    labels : integer array of shape (n_points, n_draws)
        Class codes.
    estimator : {"biased", "unbiased"}
        As in `hsic`.

    Returns
    -------
    scores : int64 array of shape (n_points,)
        HSIC of each point with itself, in the units of `integer_hsic`.
    """
    m = labels.shape[1]
    agree = labels[:, :, None] == labels[:, None, :]  # (n_points, n_draws, n_draws)
    rows = agree.sum(axis=2)
    if estimator == "biased":
        total = rows.sum(axis=1)
        return m * m * total - 2 * m * (rows**2).sum(axis=1) + total**2
    rows = rows - 1
    total = rows.sum(axis=1)
    return (m - 1) * (m - 2) * total - 2 * (m - 1) * (rows**2).sum(axis=1) + total**2
