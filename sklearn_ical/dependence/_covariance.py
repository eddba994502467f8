"""Covariance of predictions over the draws, as features of each point, and how to shrink it.

Which points are chosen by it is up to the strategies.
"""

import numpy as np

from sklearn_ical._array import (
    Array,
    largest,
    namespace,
    range_factor,
    to_host,
    weighted_mean,
)
from sklearn_ical._validation import check_weights
from sklearn_ical.dependence._entropy import _check_draw_weights, _check_samples, _deviations


def covariance_features(values: Array, *, weights: Array | None = None) -> Array:
    """Return features whose inner products are covariances of predictions over the draws.

    Feature k of output c is ``sqrt(w_k) * (f_kc - mean_c)``, so that for two points x and x'
    ``sum_k phi_ck(x) phi_ck(x')`` is the covariance of their outputs c [1]_. Cost
    O(n_points n_draws n_outputs).

    Parameters
    ----------
    values : array of shape (n_points, n_draws) or (n_points, n_draws, n_outputs)
        Predictions: class probabilities, one-hot votes or real targets. Not modified.
    weights : array of shape (n_draws,), default=None
        Draw weights, non-negative, sum 1; None for equal weights.

    Returns
    -------
    features : float64 array of shape (n_points, n_outputs, n_draws)
        Exactly 0 where all draws agree. Same namespace and device as `values`.

    Raises
    ------
    TypeError
        If `values` is not a real array.
    ValueError
        If the shape of `values` or the weights do not fit.

    See Also
    --------
    ledoit_wolf_shrinkage : How much to shrink the covariances of few draws.

    References
    ----------
    .. [1] Kirsch, "Black-box batch active learning for regression", TMLR, 2023, section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.dependence import covariance_features
    >>> features = covariance_features(np.array([[1.0, 3.0], [0.0, 4.0]]))[:, 0]
    >>> (features @ features.T).round(6)
    array([[1., 2.],
           [2., 4.]])
    """
    values = _check_samples(values, "values", (2, 3), "covariance_features")
    weights = _check_draw_weights(weights, values)
    xp = namespace(values)
    deviations = _deviations(values, weights)
    centered = deviations - weighted_mean(deviations, weights, 1)[:, None, :]
    by_output = xp.permute_dims(centered, (0, 2, 1))
    if weights is None:
        return by_output / values.shape[1] ** 0.5
    return by_output * xp.sqrt(weights)


def ledoit_wolf_shrinkage(
    gram: Array, n_points: int, *, weights: Array | None = None
) -> np.ndarray:
    """Compute how much to shrink covariances of many points over few draws towards their mean.

    The Ledoit-Wolf coefficient rho of ``(1 - rho) S + rho mean(diag S) I`` [1]_, of the covariance
    S of all points with the draws as sample. It needs inner products of the draws alone, never a
    matrix over the points, so they can be summed up in chunks of points. Cost
    O(n_outputs n_draws^2).

    Parameters
    ----------
    gram : array of shape (n_outputs, n_draws, n_draws)
        For each output the products of the draws' :func:`covariance_features`, summed over the
        points. Not modified.
    n_points : int
        Number of points in those sums.
    weights : array of shape (n_draws,), default=None
        Draw weights as in the features; they count as a sample of ``1 / sum(weights**2)`` draws.

    Returns
    -------
    shrinkage : float64 array of shape (n_outputs,)
        From 0 to 1, on the host; 0 where no draw differs from another.

    Raises
    ------
    ValueError
        If `gram` has another shape or the weights do not fit.

    See Also
    --------
    covariance_features : The features.

    References
    ----------
    .. [1] Ledoit and Wolf, "A well-conditioned estimator for large-dimensional covariance
       matrices", Journal of Multivariate Analysis, 2004, lemma 3.3.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.dependence import covariance_features, ledoit_wolf_shrinkage
    >>> values = np.random.default_rng(0).normal(size=(30, 10))
    >>> features = covariance_features(values)[:, 0]
    >>> ledoit_wolf_shrinkage((features.T @ features)[None], 30).round(3)
    array([0.79])
    """
    host = np.asarray(to_host(gram), dtype=np.float64)
    if host.ndim != 3 or host.shape[1] != host.shape[2] or 0 in host.shape:
        raise ValueError(
            "gram must have shape (n_outputs, n_draws, n_draws). Got shape "
            f"{host.shape} in ledoit_wolf_shrinkage."
        )
    host = host * range_factor(largest(host))  # the result has no unit
    n_draws = host.shape[1]
    w = np.full(n_draws, 1 / n_draws) if weights is None else check_weights(weights, n_draws)
    norms = np.diagonal(host, axis1=1, axis2=2)  # (n_outputs, n_draws), w_k |draw k|^2
    total = np.sum(host**2, axis=(1, 2))  # squared Frobenius norm of S
    fourth = np.sum(norms**2 / np.where(w > 0, w, 1.0), axis=1)
    spread = np.maximum(fourth - total, 0.0) * np.sum(w**2)
    distance = np.maximum(total - np.sum(norms, axis=1) ** 2 / n_points, 0.0)
    known = np.where(distance > 0, distance, 1.0)
    return np.where(spread > 0, np.minimum(spread, distance) / known, 0.0)
