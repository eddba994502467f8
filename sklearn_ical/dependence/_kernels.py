"""Kernels between the posterior draws of one point; measures of dependence are in _hsic."""

import math
import numbers
import sys
from collections.abc import Callable, Sequence
from typing import Any, Literal

from sklearn_ical._array import (
    Array,
    as_float64,
    as_floating,
    is_array,
    largest,
    namespace,
    range_factor,
)
from sklearn_ical._typing import Real

ALPHAS = (0.2, 0.5, 1, 2, 5)  # shape exponents of the rational quadratic mixture


def rq_kernel(
    y: Array,
    *,
    alphas: Sequence[float] = ALPHAS,
    weights: Sequence[float] | None = None,
    length_scale: float = 1.0,
) -> Array:
    """Compute the mixture of rational quadratic kernels between the draws of each point.

    ``k(y, y') = sum_a w_a (1 + ||y - y'||^2 / (2 a l^2))^(-a)``, which is characteristic, 1 for
    equal draws and in (0, 1] everywhere. With one-hot labels it takes two values only, 1 and
    q = 0.5245 at the default parameters. Cost O(n_draws^2 (n_targets + n_alphas)) per point.

    Parameters
    ----------
    y : floating array of shape (..., n_draws, n_targets)
        Predictions of each draw: one-hot labels, probabilities or real values. Not modified.
    alphas : sequence of float, default=(0.2, 0.5, 1, 2, 5)
        Shape exponents a > 0 of the mixture (the paper calls them length scales).
    weights : sequence of float, default=None
        Mixture weights w_a, one per exponent, non-negative, sum 1; None for equal weights.
    length_scale : float, default=1.0
        Length scale l > 0, shared by all exponents.

    Returns
    -------
    kernel : array of shape (..., n_draws, n_draws)
        Same namespace, device and dtype (half precision becomes float32); float64 inside.

    Raises
    ------
    TypeError
        If `y` is not a floating array.
    ValueError
        If `y` has no draw or target axis, or a parameter is out of range.

    See Also
    --------
    delta_kernel : The kernel of label codes.
    radial_profile : The same kernel as a function of squared distances.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.dependence import rq_kernel
    >>> rq_kernel(np.eye(2)).round(8)
    array([[1.        , 0.52449988],
           [0.52449988, 1.        ]])
    """
    _check_draws(y, "rq_kernel")
    _check_mixture(alphas, weights)
    _check_length_scale(length_scale, "rq_kernel", "a number > 0")
    values, factor = _in_range(y)
    scale = _times(length_scale, factor)
    return _restore(_rq(_squared_distances(values), alphas, weights, scale), y)


def rbf_kernel(y: Array, *, length_scale: Real | Literal["median"] = 1.0) -> Array:
    """Compute the Gaussian kernel ``exp(-||y - y'||^2 / (2 l^2))`` between the draws of each point.

    Cost O(n_draws^2 n_targets) per point; "median" also sorts all the distances at once.

    Parameters
    ----------
    y : floating array of shape (..., n_draws, n_targets)
        Predictions of each draw. Not modified.
    length_scale : float or "median", default=1.0
        Length scale l > 0. "median" takes the median of the distances that are not zero, pooled
        over **all** points and pairs of draws of `y`, or 1 where every distance is zero: one
        scale for all points, because a scale per point would hide how much a point varies. It
        depends on `y` as a whole, so pass a number when kernels are computed in chunks.

    Returns
    -------
    kernel : array of shape (..., n_draws, n_draws)
        In [0, 1], 1 for equal draws. Same namespace, device and dtype (half precision becomes
        float32); float64 inside.

    Raises
    ------
    TypeError
        If `y` is not a floating array.
    ValueError
        If `y` has no draw or target axis, or `length_scale` is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.dependence import rbf_kernel
    >>> rbf_kernel(np.array([[0.0], [3.0]]), length_scale="median").round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """
    _check_draws(y, "rbf_kernel")
    if length_scale != "median":
        _check_length_scale(length_scale, "rbf_kernel", "a number > 0 or 'median'")
    values, factor = _in_range(y)
    d2 = _squared_distances(values)
    scale = _median_distance(d2) if length_scale == "median" else _times(length_scale, factor)
    return _restore(_rbf(d2, scale), y)


def linear_kernel(y: Array) -> Array:
    """Compute the inner products ``<y, y'>`` between the draws of each point.

    On class probabilities its HSIC is the squared Frobenius norm of the covariance of two points'
    probabilities over the draws. The diagonal is not constant. Cost O(n_draws^2 n_targets).

    Parameters
    ----------
    y : floating array of shape (..., n_draws, n_targets)
        Predictions of each draw. Not modified.

    Returns
    -------
    kernel : array of shape (..., n_draws, n_draws)
        Same namespace, device and dtype (half precision becomes float32); float64 inside.

    Raises
    ------
    TypeError
        If `y` is not a floating array.
    ValueError
        If `y` has no draw or target axis.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.dependence import linear_kernel
    >>> linear_kernel(np.array([[1.0, 0.0], [0.5, 0.5]]))
    array([[1. , 0.5],
           [0.5, 0.5]])
    """
    _check_draws(y, "linear_kernel")
    xp = namespace(y)
    values = as_float64(y)
    return _restore(xp.matmul(values, xp.matrix_transpose(values)), y)


def distance_kernel(y: Array) -> Array:
    """Compute ``-||y - y'|| / 2`` between the draws of each point.

    The kernel of distance covariance: its HSIC is a quarter of the squared distance covariance.
    It is positive definite only after centering, as HSIC does. Cost O(n_draws^2 n_targets).

    Parameters
    ----------
    y : floating array of shape (..., n_draws, n_targets)
        Predictions of each draw. Not modified.

    Returns
    -------
    kernel : array of shape (..., n_draws, n_draws)
        At most 0. Same namespace, device and dtype (half precision becomes float32); float64
        inside.

    Raises
    ------
    TypeError
        If `y` is not a floating array.
    ValueError
        If `y` has no draw or target axis.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.dependence import distance_kernel
    >>> distance_kernel(np.array([[0.0, 0.0], [3.0, 4.0]]))
    array([[ 0. , -2.5],
           [-2.5,  0. ]])
    """
    _check_draws(y, "distance_kernel")
    values, factor = _in_range(y)
    return _restore(_distance(_squared_distances(values)) / factor, y)


def delta_kernel(labels: Array) -> Array:
    """Compute the kernel of label codes: 1 where two draws give the same label, else 0.

    Parameters
    ----------
    labels : integer array of shape (..., n_draws)
        Label codes of each draw. Not modified.

    Returns
    -------
    kernel : float64 array of shape (..., n_draws, n_draws)
        Same namespace and device as `labels`; entries 0 and 1.

    Raises
    ------
    TypeError
        If `labels` is not an integer array.
    ValueError
        If `labels` has no draw axis.

    See Also
    --------
    linear_kernel : The same kernel from one-hot labels.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.dependence import delta_kernel
    >>> delta_kernel(np.array([0, 2, 0]))
    array([[1., 0., 1.],
           [0., 1., 0.],
           [1., 0., 1.]])
    """
    if not is_array(labels) or not namespace(labels).isdtype(labels.dtype, "integral"):
        raise TypeError(
            f"labels must be an integer array of shape (..., n_draws). Got {_describe(labels)} in "
            "delta_kernel; use another kernel for real predictions."
        )
    if labels.ndim < 1 or labels.shape[-1] < 1:
        raise ValueError(
            "labels must have shape (..., n_draws) with at least one draw. Got shape "
            f"{tuple(labels.shape)} in delta_kernel."
        )
    xp = namespace(labels)
    return xp.astype(labels[..., :, None] == labels[..., None, :], xp.float64)


def radial_profile(
    kernel: Literal["distance", "rbf", "rq"] | Callable[[Array], Array],
) -> Callable[[Array], Array]:
    """Return a kernel of squared distances, at its default parameters.

    Parameters
    ----------
    kernel : {"distance", "rbf", "rq"} or callable
        Name of a radial kernel of this module, or a function of squared distances, which is
        returned as it is.

    Returns
    -------
    profile : callable
        Takes an array of squared distances of any shape, gives the array of kernel values: same
        namespace, device, shape and dtype (integers and half precision are promoted).

    Raises
    ------
    ValueError
        If `kernel` is neither callable nor one of the names.

    See Also
    --------
    squared_distances : The argument of a profile.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.dependence import radial_profile
    >>> radial_profile("rq")(np.array([0.0, 2.0])).round(8)
    array([1.        , 0.52449988])
    """
    if callable(kernel):
        return kernel
    if not isinstance(kernel, str) or kernel not in _PROFILES:
        raise ValueError(
            "The 'kernel' parameter of radial_profile must be one of "
            f"{', '.join(map(repr, _PROFILES))} or a callable. Got {kernel!r} instead."
        )
    return _PROFILES[kernel]


def squared_distances(y: Array) -> Array:
    """Compute the squared Euclidean distances between the draws of each point.

    Squared differences are added target after target, not taken from inner products, which lose
    all digits for near-equal draws: the result is symmetric, never negative, and exactly 0 for
    equal draws. Cost O(n_draws^2 n_targets) time and O(n_draws^2) memory per point.

    Parameters
    ----------
    y : floating array of shape (..., n_draws, n_targets)
        Predictions of each draw. Not modified.

    Returns
    -------
    d2 : array of shape (..., n_draws, n_draws)
        Same namespace, device and dtype (half precision becomes float32); float64 inside.

    Raises
    ------
    TypeError
        If `y` is not a floating array.
    ValueError
        If `y` has no draw or target axis.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.dependence import squared_distances
    >>> squared_distances(np.array([[0.0, 0.0], [3.0, 4.0]]))
    array([[ 0., 25.],
           [25.,  0.]])
    """
    _check_draws(y, "squared_distances")
    return _restore(_squared_distances(y), y)


def result_dtype(x: Array) -> Any:
    """Return float32 for single and half precision, float64 for double precision and integers."""
    xp = namespace(x)
    single = xp.isdtype(x.dtype, "real floating") and x.dtype != xp.float64
    return xp.float32 if single else xp.float64


def _in_range(y: Array) -> tuple[Array, float]:
    """Return draws as float64, multiplied by a power of two if needed, and that factor."""
    factor = range_factor(largest(y))
    y = as_float64(y)
    return (y if factor == 1 else y * factor), factor


def _times(length_scale: Real, factor: float) -> float:
    """Return a length scale for draws that are multiplied by a factor; it stays above 0."""
    return max(float(length_scale) * factor, sys.float_info.min)


def _squared_distances(y: Array) -> Array:
    """Add float64 squared differences over the targets: (..., m, D) -> (..., m, m)."""
    y = as_float64(y)
    total = (y[..., :, None, 0] - y[..., None, :, 0]) ** 2
    for target in range(1, y.shape[-1]):
        total = total + (y[..., :, None, target] - y[..., None, :, target]) ** 2
    return total


def _rq(
    d2: Array,
    alphas: Sequence[float] = ALPHAS,
    weights: Sequence[float] | None = None,
    length_scale: float = 1.0,
) -> Array:
    xp = namespace(d2)
    d2 = as_floating(d2) / length_scale / length_scale
    shares = [1.0] * len(alphas) if weights is None else [float(w) for w in weights]
    total = xp.zeros_like(d2)
    for alpha, share in zip(alphas, shares, strict=True):
        total = total + share * xp.exp(-alpha * xp.log1p(d2 / (2 * alpha)))
    return total / math.fsum(shares)


def _rbf(d2: Array, length_scale: float = 1.0) -> Array:
    return namespace(d2).exp(as_floating(d2) / length_scale / length_scale / -2)


def _distance(d2: Array) -> Array:
    return 0.0 - namespace(d2).sqrt(as_floating(d2)) / 2


_PROFILES: dict[str, Callable[[Array], Array]] = {"distance": _distance, "rbf": _rbf, "rq": _rq}


def _median_distance(d2: Array) -> float:
    """Return the median of the distances that are not zero, 1 if all are."""
    xp = namespace(d2)
    d2 = xp.sort(xp.reshape(d2, (-1,)))
    zeros = int(xp.sum(xp.astype(d2 == 0, xp.int64)))
    count = d2.shape[0] - zeros
    if count == 0:
        return 1.0
    middle = zeros + (count - 1) // 2, zeros + count // 2
    return (math.sqrt(float(d2[middle[0]])) + math.sqrt(float(d2[middle[1]]))) / 2


def _restore(kernel: Array, y: Array) -> Array:
    """Convert a float64 result to the result dtype of `y`."""
    return namespace(y).astype(kernel, result_dtype(y), copy=False)


def _describe(x: Any) -> str:
    return f"dtype {x.dtype}" if is_array(x) else type(x).__name__


def _check_draws(y: Array, caller: str) -> None:
    if not is_array(y) or not namespace(y).isdtype(y.dtype, "real floating"):
        raise TypeError(
            f"y must be a floating array of shape (..., n_draws, n_targets). Got {_describe(y)} in "
            f"{caller}; use delta_kernel for label codes."
        )
    if y.ndim < 2 or 0 in y.shape[-2:]:
        raise ValueError(
            "y must have shape (..., n_draws, n_targets) with at least one draw and one target. "
            f"Got shape {tuple(y.shape)} in {caller}."
        )


def _check_length_scale(value: Any, caller: str, rule: str) -> None:
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not number or not 0 < value < math.inf:
        raise ValueError(
            f"The 'length_scale' parameter of {caller} must be {rule}. Got {value!r} instead."
        )


def _check_mixture(alphas: Sequence[float], weights: Sequence[float] | None) -> None:
    if len(alphas) == 0 or not all(0 < alpha < math.inf for alpha in alphas):
        raise ValueError(
            f"The 'alphas' parameter of rq_kernel must be numbers > 0. Got {alphas!r} instead."
        )
    if weights is None:
        return
    valid = len(weights) == len(alphas) and all(weight >= 0 for weight in weights)
    if not valid or abs(math.fsum(weights) - 1) > 1e-6:
        raise ValueError(
            f"The 'weights' parameter of rq_kernel must be {len(alphas)} numbers >= 0 that sum to "
            f"1, one per alpha. Got {weights!r} instead."
        )
