"""Hilbert-Schmidt independence criteria of two or more kernels; the kernels are in _kernels."""

import numpy as np

from sklearn_ical._array import (
    Array,
    as_float64,
    device,
    is_array,
    like,
    namespace,
    to_host,
    weighted_mean,
)
from sklearn_ical._typing import HSICEstimator
from sklearn_ical._validation import check_weights
from sklearn_ical.dependence._kernels import result_dtype

ESTIMATORS = ("biased", "unbiased")


def hsic(
    k: Array,
    l: Array,  # noqa: E741
    *,
    estimator: HSICEstimator = "biased",
    weights: Array | None = None,
) -> Array:
    """Estimate the Hilbert-Schmidt independence criterion of two variables.

    A squared distance between the joint distribution and the product of its marginals, as estimated
    from the draws: 0 where the variables are independent (up to the estimator's own bias). Cost
    O(n_draws^2).

    Parameters
    ----------
    k, l : arrays of shape (..., n_draws, n_draws)
        Symmetric, finite kernel matrices of the two variables on the same draws. Not modified.
    estimator : {"biased", "unbiased"}, default="biased"
        "biased" is the V-statistic ``tr(K H L H) / n_draws^2``, the exact value where the draws
        are the whole posterior, and never negative for positive definite kernels; for
        independent draws and kernels with ``k(y, y) = 1`` its mean is
        ``(1 - E k)(1 - E l)(n_draws - 1) / n_draws^2``. "unbiased" is the statistic of Song et
        al., which may be negative.
    weights : array of shape (n_draws,), default=None
        Draw weights, non-negative, sum 1; None for equal weights. Only for "biased".

    Returns
    -------
    value : array of shape (...)
        Dimensionless. Same namespace and device as the kernels and their dtype (float32 for half
        precision, float64 for integers); computed in float64. Exactly 0 where a kernel is constant;
        "unbiased" ignores the diagonal.

    Raises
    ------
    TypeError
        If `k` or `l` is not a real array.
    ValueError
        If the shapes do not fit, there are too few draws (2 for "biased", 4 for "unbiased"), or
        weights come with "unbiased".

    See Also
    --------
    dhsic : More than two variables.
    hsic_dual : One kernel against many.

    Notes
    -----
    The value is ``sum(k * hsic_dual(l))``: linear in each kernel. It is computed by centering,
    never in log space, whose terms cancel to the last digits.

    References
    ----------
    .. [1] Gretton et al., "Measuring statistical dependence with Hilbert-Schmidt norms", ALT
       2005, section 3 (there with a factor 1/(n_draws - 1)^2).
    .. [2] Song et al., "Feature selection via dependence maximization", JMLR 2012, section 2.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.dependence import delta_kernel, hsic
    >>> k = delta_kernel(np.array([0, 0, 1, 1]))
    >>> float(hsic(k, k)), float(hsic(k, delta_kernel(np.array([0, 1, 0, 1]))))
    (0.25, 0.0)
    """
    _check_kernel(k, "k", "hsic")
    _check_kernel(l, "l", "hsic")
    if tuple(k.shape) != tuple(l.shape):
        raise ValueError(
            "k and l must have the same shape (..., n_draws, n_draws). Got "
            f"{tuple(k.shape)} and {tuple(l.shape)} in hsic."
        )
    weights = _check_options(l, estimator, weights, "hsic")
    value = _hsic(as_float64(k), as_float64(l), estimator, weights)
    xp = namespace(k, l)
    return xp.astype(value, xp.result_type(result_dtype(k), result_dtype(l)), copy=False)


def hsic_dual(
    l: Array,  # noqa: E741
    *,
    estimator: HSICEstimator = "biased",
    weights: Array | None = None,
) -> Array:
    """Compute the matrix Z with ``hsic(k, l) = sum(k * Z)`` for every kernel k.

    HSIC is linear in each kernel, so one Z scores any number of kernels against `l` by products
    and sums, for example in one matrix product. Cost O(n_draws^2).

    Parameters
    ----------
    l : array of shape (..., n_draws, n_draws)
        Symmetric, finite kernel matrix. Not modified.
    estimator : {"biased", "unbiased"}, default="biased"
        As in `hsic`.
    weights : array of shape (n_draws,), default=None
        Draw weights, non-negative, sum 1; None for equal weights. Only for "biased".

    Returns
    -------
    z : array of shape (..., n_draws, n_draws)
        ``H L H / n_draws^2`` for "biased", with weights ``w_i w_j (H_w L H_w^T)_ij`` where
        ``H_w = I - 1 w^T``; for "unbiased" U-centered, with a zero diagonal. Its rows sum to 0 up
        to rounding. Exactly 0 where `l` is constant. Same namespace and device as `l`, same dtype
        (float32 for half precision, float64 for integers); computed in float64.

    Raises
    ------
    TypeError
        If `l` is not a real array.
    ValueError
        If `l` is not square, there are too few draws, or weights come with "unbiased".

    See Also
    --------
    hsic : The value itself.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.dependence import delta_kernel, hsic_dual
    >>> hsic_dual(delta_kernel(np.array([0, 1])))
    array([[ 0.125, -0.125],
           [-0.125,  0.125]])
    """
    _check_kernel(l, "l", "hsic_dual")
    weights = _check_options(l, estimator, weights, "hsic_dual")
    z = _dual(as_float64(l), estimator, weights)
    return namespace(l).astype(z, result_dtype(l), copy=False)


def dhsic(kernels: Array, *, weights: Array | None = None) -> Array:
    """Estimate the joint Hilbert-Schmidt independence criterion of d variables.

    The V-statistic of the squared distance between the joint distribution of all d variables and
    the product of their marginals; 0 where they are jointly independent, and linear in each
    kernel. It grows with dependence between *any* of the variables. Cost O(d n_draws^2).

    Parameters
    ----------
    kernels : array of shape (n_variables, ..., n_draws, n_draws)
        Symmetric, finite kernel matrices, at least two variables. Not modified.
    weights : array of shape (n_draws,), default=None
        Draw weights, non-negative, sum 1; None for equal weights.

    Returns
    -------
    value : array of shape (...)
        Dimensionless, >= 0 up to rounding for positive definite kernels. Same namespace and
        device as `kernels`, same dtype (float32 for half precision, float64 for integers);
        computed in float64.

    Raises
    ------
    TypeError
        If `kernels` is not a real array.
    ValueError
        If there are fewer than two variables or two draws, or a shape does not fit.

    See Also
    --------
    hsic : Two variables, also unbiased.

    Notes
    -----
    Two variables are computed by centering. For more, each kernel is divided by its largest
    absolute entry before the products over the variables, and the result multiplied back: no
    product overflows however many variables there are, and zeros need no logarithm.

    References
    ----------
    .. [1] Pfister et al., "Kernel-based tests for joint independence", JRSS-B 2018, section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.dependence import delta_kernel, dhsic
    >>> labels = np.array([[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]])  # the third is the XOR
    >>> float(dhsic(delta_kernel(labels)))
    0.125
    """
    _check_kernel(kernels, "kernels", "dhsic")
    if kernels.ndim < 3 or kernels.shape[0] < 2:
        raise ValueError(
            "kernels must have shape (n_variables, ..., n_draws, n_draws) with at least 2 "
            f"variables. Got shape {tuple(kernels.shape)} in dhsic."
        )
    weights = _check_options(kernels, "biased", weights, "dhsic")
    values = as_float64(kernels)
    if kernels.shape[0] == 2:
        value = _hsic(values[0, ...], values[1, ...], "biased", weights)
    else:
        value = _joint_dhsic(values, weights)
    return namespace(kernels).astype(value, result_dtype(kernels), copy=False)


def _hsic(k: Array, l: Array, estimator: str, weights: Array | None) -> Array:  # noqa: E741
    """Sum the anchored kernel against the dual: (..., m, m) twice -> (...)."""
    xp = namespace(k)
    product = _anchored(k, estimator, weights) * _dual(l, estimator, weights)
    return xp.sum(xp.reshape(product, (*product.shape[:-2], product.shape[-1] ** 2)), axis=-1)


def _anchored(kernel: Array, estimator: str, weights: Array | None) -> Array:
    """Subtract one entry that the estimator uses, so that constant kernels become exactly 0."""
    if weights is None:
        column = 0 if estimator == "biased" else 1
        return kernel - kernel[..., :1, column : column + 1]
    k = int(namespace(weights).argmax(weights))
    return _of_active(kernel - kernel[..., k : k + 1, k : k + 1], weights)


def _of_active(kernel: Array, weights: Array | None) -> Array:
    """Set entries of draws of weight 0 to 0."""
    if weights is None:
        return kernel
    xp = namespace(kernel)
    active = (weights > 0)[:, None] & (weights > 0)[None, :]
    return xp.where(active, kernel, xp.zeros_like(kernel))


def _dual(l: Array, estimator: str, weights: Array | None) -> Array:  # noqa: E741
    """Center a float64 kernel on both sides and scale it by the weight of each pair."""
    anchored = _anchored(l, estimator, weights)
    if estimator == "unbiased":
        return _unbiased_dual(anchored)
    rows = weighted_mean(anchored, weights, -1)  # (..., m)
    total = weighted_mean(rows, weights, -1)[..., None, None]
    centered = anchored - (rows[..., :, None] + rows[..., None, :]) + total
    if weights is None:
        return centered / l.shape[-1] ** 2
    return centered * (weights[:, None] * weights[None, :])


def _unbiased_dual(l: Array) -> Array:  # noqa: E741
    """U-center a float64 kernel and divide by m(m - 3)."""
    xp = namespace(l)
    m = l.shape[-1]
    off_diagonal = 1 - xp.eye(m, dtype=xp.float64, device=device(l))
    l = l * off_diagonal  # noqa: E741
    rows = xp.sum(l, axis=-1)  # (..., m)
    total = xp.sum(rows, axis=-1)[..., None, None]
    centered = l - (rows[..., :, None] + rows[..., None, :]) / (m - 2)
    return (centered + total / ((m - 1) * (m - 2))) * off_diagonal / (m * (m - 3))


def _joint_dhsic(kernels: Array, weights: Array | None) -> Array:
    """Evaluate t1 - t2 + t3 on kernels scaled to entries of at most 1: (d, ..., m, m) -> (...)."""
    xp, kernels = namespace(kernels), _of_active(kernels, weights)
    scale = xp.max(xp.abs(kernels), axis=(-2, -1))  # (d, ...)
    scale = xp.where(scale == 0, xp.ones_like(scale), scale)
    kernels = kernels / scale[..., None, None]
    rows = weighted_mean(kernels, weights, -1)  # (d, ..., m)
    joint = xp.prod(kernels, axis=0)
    t1 = weighted_mean(weighted_mean(joint, weights, -1), weights, -1)
    t2 = 2 * weighted_mean(xp.prod(rows, axis=0), weights, -1)
    t3 = xp.prod(weighted_mean(rows, weights, -1), axis=0)
    return (t1 - t2 + t3) * xp.prod(scale, axis=0)


def _check_kernel(kernel: Array, name: str, caller: str) -> None:
    """Check that `kernel` is a real array of square matrices over at least two draws."""
    if not is_array(kernel):
        raise TypeError(f"{name} must be an array. Got {type(kernel).__name__} in {caller}.")
    if not namespace(kernel).isdtype(kernel.dtype, ("real floating", "integral", "bool")):
        raise TypeError(f"{name} must hold real numbers. Got dtype {kernel.dtype} in {caller}.")
    if kernel.ndim < 2 or kernel.shape[-1] != kernel.shape[-2]:
        raise ValueError(
            f"{name} must hold square matrices, shape (..., n_draws, n_draws). Got shape "
            f"{tuple(kernel.shape)} in {caller}."
        )
    if kernel.shape[-1] < 2:
        raise ValueError(
            f"{name} has {kernel.shape[-1]} draw; {caller} needs at least 2. Increase n_draws."
        )


def _check_options(
    kernel: Array, estimator: str, weights: Array | None, caller: str
) -> Array | None:
    """Check the estimator against draws and weights; return the weights beside the kernel."""
    n_draws = kernel.shape[-1]
    if estimator not in ESTIMATORS:
        raise ValueError(
            f"The 'estimator' parameter of {caller} must be one of 'biased', 'unbiased'. Got "
            f"{estimator!r} instead."
        )
    if estimator == "unbiased" and n_draws < 4:
        raise ValueError(
            f"The unbiased estimator of {caller} needs at least 4 draws. Got {n_draws}; increase "
            "n_draws or pass estimator='biased'."
        )
    if weights is None:
        return None
    if estimator == "unbiased":
        raise ValueError(
            f"The unbiased estimator has no weighted form, so {caller} takes no weights with it. "
            "Pass estimator='biased' or weights=None."
        )
    return like(check_weights(to_host(weights), n_draws), kernel, namespace(kernel).float64)


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
