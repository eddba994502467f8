"""Entropy, variance and information of one point's predictions, not of pairs of points."""

from typing import Any

import numpy as np

from sklearn_ical._array import (
    Array,
    as_float64,
    is_array,
    like,
    namespace,
    to_host,
    weighted_mean,
)
from sklearn_ical._validation import check_weights


def predictive_entropy(proba: Array, *, weights: Array | None = None) -> Array:
    """Compute the entropy of the mean class probabilities of each point.

    Total uncertainty: of the model's parameters and of the label given them. Cost
    O(n_points n_draws n_classes).

    Parameters
    ----------
    proba : array of shape (n_points, n_draws, n_classes)
        Class probabilities of each draw, rows sum to 1. Not modified.
    weights : array of shape (n_draws,), default=None
        Draw weights, non-negative, sum 1; None for equal weights.

    Returns
    -------
    entropy : float64 array of shape (n_points,)
        In nats, from 0 to log(n_classes). Same namespace and device as `proba`; 0 log 0 is 0.

    Raises
    ------
    TypeError
        If `proba` is not a real array.
    ValueError
        If the shape of `proba` or the weights do not fit.

    See Also
    --------
    bald : The part of it that labels could resolve.
    margin, least_confidence : Cheaper measures of the same uncertainty.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.dependence import predictive_entropy
    >>> predictive_entropy(np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]])).round(4)
    array([0.6931, 0.    ])
    """
    proba = _check_samples(proba, "proba", (3,), "predictive_entropy")
    weights = _check_draw_weights(weights, proba)
    return _entropy(weighted_mean(proba, weights, 1))


def margin(proba: Array, *, weights: Array | None = None) -> Array:
    """Compute how close the two largest mean class probabilities of each point are.

    A utility: 1 minus their difference, so that higher is less certain. Cost
    O(n_points n_draws n_classes).

    Parameters
    ----------
    proba : array of shape (n_points, n_draws, n_classes)
        Class probabilities of each draw, rows sum to 1. Not modified.
    weights : array of shape (n_draws,), default=None
        Draw weights, non-negative, sum 1; None for equal weights.

    Returns
    -------
    closeness : float64 array of shape (n_points,)
        From 0 to 1; 0 for a single class. Same namespace and device as `proba`.

    Raises
    ------
    TypeError
        If `proba` is not a real array.
    ValueError
        If the shape of `proba` or the weights do not fit.

    See Also
    --------
    least_confidence : The largest probability alone.

    References
    ----------
    .. [1] Scheffer, Decomain and Wrobel, "Active hidden Markov models for information
       extraction", IDA, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.dependence import margin
    >>> margin(np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.9, 0.1], [0.7, 0.3]]])).round(4)
    array([1. , 0.4])
    """
    proba = _check_samples(proba, "proba", (3,), "margin")
    mean = weighted_mean(proba, _check_draw_weights(weights, proba), 1)
    xp = namespace(mean)
    if mean.shape[1] == 1:
        return xp.zeros_like(mean[:, 0])
    ordered = xp.sort(mean, axis=1)
    return 1 - (ordered[:, -1] - ordered[:, -2])


def least_confidence(proba: Array, *, weights: Array | None = None) -> Array:
    """Compute 1 minus the largest mean class probability of each point.

    Cost O(n_points n_draws n_classes).

    Parameters
    ----------
    proba : array of shape (n_points, n_draws, n_classes)
        Class probabilities of each draw, rows sum to 1. Not modified.
    weights : array of shape (n_draws,), default=None
        Draw weights, non-negative, sum 1; None for equal weights.

    Returns
    -------
    uncertainty : float64 array of shape (n_points,)
        From 0 to 1 - 1/n_classes. Same namespace and device as `proba`.

    Raises
    ------
    TypeError
        If `proba` is not a real array.
    ValueError
        If the shape of `proba` or the weights do not fit.

    See Also
    --------
    margin : The two largest probabilities.

    References
    ----------
    .. [1] Culotta and McCallum, "Reducing labeling effort for structured prediction tasks",
       AAAI, 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.dependence import least_confidence
    >>> least_confidence(np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.9, 0.1], [0.7, 0.3]]])).round(4)
    array([0.5, 0.2])
    """
    proba = _check_samples(proba, "proba", (3,), "least_confidence")
    mean = weighted_mean(proba, _check_draw_weights(weights, proba), 1)
    return 1 - namespace(mean).max(mean, axis=1)


def bald(proba: Array, *, weights: Array | None = None) -> Array:
    """Compute the mutual information between each point's label and the posterior draw.

    Entropy of the mean prediction less the mean entropy of the draws' predictions. Cost
    O(n_points n_draws n_classes).

    Parameters
    ----------
    proba : array of shape (n_points, n_draws, n_classes)
        Class probabilities of each draw, rows sum to 1. Not modified.
    weights : array of shape (n_draws,), default=None
        Draw weights, non-negative, sum 1; None for equal weights.

    Returns
    -------
    information : float64 array of shape (n_points,)
        In nats, from 0 to min(log(n_classes), log(n_draws)). Exactly 0 where all draws agree;
        negative rounding is clipped to 0. Same namespace and device as `proba`.

    Raises
    ------
    TypeError
        If `proba` is not a real array.
    ValueError
        If the shape of `proba` or the weights do not fit.

    See Also
    --------
    gaussian_bald : The same for real predictions.

    References
    ----------
    .. [1] Houlsby et al., "Bayesian active learning for classification and preference learning",
       2011, equation 2.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.dependence import bald
    >>> bald(np.array([[[0.9, 0.1], [0.1, 0.9]], [[0.9, 0.1], [0.9, 0.1]]])).round(6)
    array([0.368064, 0.      ])
    """
    proba = _check_samples(proba, "proba", (3,), "bald")
    weights = _check_draw_weights(weights, proba)
    xp = namespace(proba)
    expected = weighted_mean(_entropy(proba), weights, 1)
    information = _clip(_entropy(weighted_mean(proba, weights, 1)) - expected)
    differs = _deviations(proba, weights) != 0
    return xp.where(xp.any(differs, axis=(1, 2)), information, xp.zeros_like(information))


def predictive_variance(
    values: Array, *, weights: Array | None = None, noise_variance: Array | None = None
) -> Array:
    """Compute the total predictive variance of each point, summed over the targets.

    Variance over the draws of their means, plus the mean over the draws of the observation
    noise; it orders points as the entropy of one Gaussian target does. Cost
    O(n_points n_draws n_targets).

    Parameters
    ----------
    values : array of shape (n_points, n_draws) or (n_points, n_draws, n_targets)
        Predicted mean of each draw. Not modified.
    weights : array of shape (n_draws,), default=None
        Draw weights, non-negative, sum 1; None for equal weights.
    noise_variance : float or array of shape (n_points,) or (n_points, n_draws), default=None
        Variance of the observation noise, >= 0, counted once per target; None for no noise.

    Returns
    -------
    variance : float64 array of shape (n_points,)
        In squared units of `values`, divided by n_draws (not n_draws - 1). Exactly 0 without
        noise where all draws agree. Same namespace and device as `values`.

    Raises
    ------
    TypeError
        If `values` is not a real array.
    ValueError
        If a shape or the weights do not fit, or the noise variance is negative.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.dependence import predictive_variance
    >>> predictive_variance(np.array([[1.0, 3.0], [2.0, 2.0]]), noise_variance=0.5)
    array([1.5, 0.5])
    """
    values = _check_samples(values, "values", (2, 3), "predictive_variance")
    weights = _check_draw_weights(weights, values)
    variance = namespace(values).sum(_epistemic_variance(values, weights), axis=-1)
    if noise_variance is None:
        return variance
    noise = _noise_variances(noise_variance, values, "predictive_variance")
    return variance + values.shape[2] * _noise_mean(noise, weights)


def gaussian_bald(values: Array, *, weights: Array | None = None, noise_variance: Any) -> Array:
    """Compute the information that each point's real target carries about the posterior draw.

    Half the log of the total variance less half the mean log of the noise variance, summed over
    the targets: the mixture over the draws is taken as one Gaussian of the same variance, so this
    bounds the mutual information from above. Squares of `values`, and their quotients with the
    noise, have to fit in float64. Cost O(n_points n_draws n_targets).

    Parameters
    ----------
    values : array of shape (n_points, n_draws) or (n_points, n_draws, n_targets)
        Predicted mean of each draw. Not modified.
    weights : array of shape (n_draws,), default=None
        Draw weights, non-negative, sum 1; None for equal weights.
    noise_variance : float or array of shape (n_points,) or (n_points, n_draws)
        Variance of the observation noise, > 0, the same for every target.

    Returns
    -------
    information : float64 array of shape (n_points,)
        In nats, >= 0; exactly 0 where all draws agree and share one noise variance. Same
        namespace and device as `values`.

    Raises
    ------
    TypeError
        If `values` is not a real array.
    ValueError
        If a shape or the weights do not fit, or the noise variance is not > 0.

    See Also
    --------
    bald : The same for class probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.dependence import gaussian_bald
    >>> gaussian_bald(np.array([[1.0, 3.0], [2.0, 2.0]]), noise_variance=0.5).round(4)
    array([0.5493, 0.    ])
    """
    values = _check_samples(values, "values", (2, 3), "gaussian_bald")
    weights = _check_draw_weights(weights, values)
    noise = _noise_variances(noise_variance, values, "gaussian_bald", positive=True)
    xp = namespace(values)
    mean = _noise_mean(noise, weights)
    # log(var + mean) - mean log in two parts that are each >= 0, and exactly 0 where they should
    # be.
    spread = xp.sum(xp.log1p(_epistemic_variance(values, weights) / mean[:, None]), axis=-1)
    unequal_noise = _clip(xp.log(mean) - _noise_mean(xp.log(noise), weights))
    return (spread + values.shape[2] * unequal_noise) / 2


def _entropy(proba: Array) -> Array:
    """Compute -sum p log p over the last axis, a class of probability 0 adding 0."""
    xp = namespace(proba)
    safe = xp.where(proba <= 0, xp.ones_like(proba), proba)
    return 0.0 - xp.sum(safe * xp.log(safe), axis=-1)


def _clip(x: Array) -> Array:
    """Raise negative values to 0 and keep NaN."""
    xp = namespace(x)
    return xp.where(x < 0, xp.zeros_like(x), x)


def _deviations(samples: Array, weights: Array | None) -> Array:
    """Subtract one draw of positive weight from all; draws of weight 0 deviate by 0."""
    xp = namespace(samples)
    if weights is None:
        return samples - samples[:, :1, :]
    heaviest = int(xp.argmax(weights))
    deviations = samples - samples[:, heaviest : heaviest + 1, :]
    return xp.where((weights == 0)[None, :, None], xp.zeros_like(deviations), deviations)


def _epistemic_variance(values: Array, weights: Array | None) -> Array:
    """Compute the variance over the draws, (n_points, n_targets), exactly 0 where they agree."""
    deviations = _deviations(values, weights)
    mean = weighted_mean(deviations, weights, 1)
    return weighted_mean((deviations - mean[:, None, :]) ** 2, weights, 1)


def _noise_mean(noise: Array, weights: Array | None) -> Array:
    """Average (n_points or 1, n_draws or 1) over the draws, unchanged where they share it."""
    return noise[:, 0] if noise.shape[1] == 1 else weighted_mean(noise, weights, 1)


def _check_samples(samples: Array, name: str, n_axes: tuple[int, ...], caller: str) -> Array:
    """Return the samples as float64 with three axes."""
    rule = (
        "(n_points, n_draws, n_classes)" if n_axes == (3,) else "(n_points, n_draws[, n_targets])"
    )
    if not is_array(samples):
        raise TypeError(
            f"{name} must be an array of shape {rule}. Got {type(samples).__name__} in {caller}."
        )
    if not namespace(samples).isdtype(samples.dtype, ("real floating", "integral", "bool")):
        raise TypeError(f"{name} must hold real numbers. Got dtype {samples.dtype} in {caller}.")
    if samples.ndim not in n_axes or 0 in samples.shape[1:]:
        raise ValueError(
            f"{name} must have shape {rule} with at least one entry on every axis after the "
            f"first. Got shape {tuple(samples.shape)} in {caller}."
        )
    samples = as_float64(samples)
    return samples if samples.ndim == 3 else samples[:, :, None]


def _check_draw_weights(weights: Array | None, samples: Array) -> Array | None:
    if weights is None:
        return None
    return like(check_weights(to_host(weights), samples.shape[1]), samples, samples.dtype)


def _noise_variances(noise: Any, values: Array, caller: str, *, positive: bool = False) -> Array:
    """Return the noise variance as float64 (n_points or 1, n_draws or 1) beside the values."""
    n_points, n_draws = values.shape[:2]
    host = np.asarray(to_host(noise), dtype=np.float64)
    if host.shape not in ((), (n_points,), (n_points, n_draws)):
        raise ValueError(
            f"noise_variance must be a number or of shape ({n_points},) or ({n_points}, "
            f"{n_draws}). Got shape {host.shape} in {caller}."
        )
    valid = host > 0 if positive else host >= 0
    if not (valid & np.isfinite(host)).all():
        raise ValueError(
            f"noise_variance must be finite and {'> 0' if positive else '>= 0'}. Got "
            f"{float(host[~(valid & np.isfinite(host))][0])!r} in {caller}."
        )
    host = host if host.ndim == 2 else host.reshape(-1, 1)
    return like(host, values, values.dtype)
