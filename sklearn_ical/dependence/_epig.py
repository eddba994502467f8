"""Expected predictive information gain: information between labels of different points."""

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array, like, namespace, to_host
from sklearn_ical._validation import check_weights
from sklearn_ical.dependence._entropy import _check_samples, _clip, _deviations

TINY = 1e-300  # makes 0 log 0 zero, and is negligible beside any probability that matters


def epig(proba: Array, proba_reference: Array, *, weights: Array | None = None) -> Array:
    """Compute the mean information between each point's label and that of a reference point.

    Expected predictive information gain [1]_: the mutual information between the labels of a
    point and of a reference point, which depend on each other through the posterior draw alone,
    averaged over the reference points. 0 where the draws agree on one of the two. Cost
    O(n_points n_reference n_draws n_classes^2).

    Parameters
    ----------
    proba : array of shape (n_points, n_draws, n_classes)
        Class probabilities of each draw, rows sum to 1. Not modified.
    proba_reference : array of shape (n_reference, n_draws, n_reference_classes)
        Class probabilities of the reference points, by the same draws. Not modified.
    weights : array of shape (n_draws,) or (n_reference, n_draws), default=None
        Draw weights, non-negative, sum 1; None for equal weights. With two axes, each reference
        point has weights of its own, for it and for the points compared with it.

    Returns
    -------
    information : float64 array of shape (n_points,)
        In nats, from 0 to the smallest of log(n_draws) and the logs of the numbers of classes.
        Exactly 0 where all draws agree; negative rounding is clipped to 0. Same namespace and
        device as `proba`.

    Raises
    ------
    TypeError
        If `proba` or `proba_reference` is not a real array.
    ValueError
        If there is no reference point, or a shape or the weights do not fit.

    See Also
    --------
    bald : Information about the draw itself.

    Notes
    -----
    The joint probabilities J of all pairs of points and of classes are one matrix product, formed
    in blocks of points and of reference points within the working chunk. The information is the
    sum of J log J and of both entropies.

    References
    ----------
    .. [1] Bickford Smith et al., "Prediction-oriented Bayesian active learning", AISTATS 2023,
       section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.dependence import epig
    >>> votes = np.eye(2)[[[0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0]]]
    >>> epig(votes, votes[:1]).round(4)
    array([0.6931, 0.    , 0.    ])
    """
    proba = _check_samples(proba, "proba", (3,), "epig")
    reference = _check_samples(proba_reference, "proba_reference", (3,), "epig")
    n_reference = reference.shape[0]
    if n_reference == 0 or reference.shape[1] != proba.shape[1]:
        raise ValueError(
            f"proba_reference must have at least one point and the {proba.shape[1]} draws of proba."
            f" Got shape {tuple(reference.shape)} in epig."
        )
    xp = namespace(proba, reference)
    weights = _check_reference_weights(weights, reference)
    heaviest = xp.max(weights, axis=0)
    reference = _normalized(reference)
    telling = xp.nonzero(_disagrees(reference, heaviest))[0]
    reference = xp.take(reference, telling, axis=0)
    own_weights = weights.shape[0] > 1
    weights = xp.take(weights, telling, axis=0) if own_weights else weights
    weighted = reference * weights[:, :, None]
    prior = -xp.sum(_x_log_x(xp.sum(weighted, axis=1)))  # entropies of the reference points
    columns = xp.reshape(xp.permute_dims(weighted, (1, 0, 2)), (reference.shape[1], -1))
    repeats = 1 if own_weights else reference.shape[0]
    n_pairs = _array.chunk_rows(8 * proba.shape[2] * reference.shape[2])
    width = n_pairs * reference.shape[2]
    size = max(1, n_pairs // max(1, reference.shape[0]))
    parts = [xp.zeros_like(proba[:0, 0, 0])]
    for points in _slices(proba.shape[0], size):
        block = _normalized(proba[points, ...])
        posterior = _sum_of_products(block, columns, width)
        gain = prior + posterior - repeats * _sum_of_products(block, weights.T, width)
        gain = xp.where(_disagrees(block, heaviest), gain, xp.zeros_like(gain))
        parts.append(_clip(gain) / n_reference)
    return xp.concat(parts)


def _normalized(proba: Array) -> Array:
    """Make rows sum to 1 in float64, as a deviation would count as information."""
    return proba / namespace(proba).sum(proba, axis=2, keepdims=True)


def _disagrees(proba: Array, weights: Array) -> Array:
    """Return for each point whether draws of positive weight differ: (n_points,)."""
    return namespace(proba).any(_deviations(proba, weights) != 0, axis=(1, 2))


def _sum_of_products(block: Array, columns: Array, width: int) -> Array:
    """Sum x log x over products x of each point's class columns with others: (n_points,)."""
    xp = namespace(block)
    n_points, n_draws, n_classes = block.shape
    rows = xp.reshape(xp.permute_dims(block, (0, 2, 1)), (n_points * n_classes, n_draws))
    total = xp.zeros_like(block[:, 0, 0])
    for others in _slices(columns.shape[1], width):
        products = rows @ columns[:, others]
        total = total + xp.sum(_x_log_x(xp.reshape(products, (n_points, -1))), axis=1)
    return total


def _slices(n: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def _x_log_x(x: Array) -> Array:
    return x * namespace(x).log(x + TINY)


def _check_reference_weights(weights: Array | None, reference: Array) -> Array:
    """Return the weights as (1 or n_reference, n_draws)."""
    n_reference, n_draws = reference.shape[:2]
    host = np.full(n_draws, 1 / n_draws) if weights is None else np.asarray(to_host(weights))
    if host.ndim == 2 and host.shape[0] != n_reference:
        raise ValueError(
            f"weights must have shape ({n_draws},) or ({n_reference}, {n_draws}), one row for each "
            f"reference point. Got shape {host.shape} in epig."
        )
    rows = host if host.ndim == 2 else [host]
    checked = np.stack([check_weights(row, n_draws) for row in rows])
    return like(checked, reference, reference.dtype)
