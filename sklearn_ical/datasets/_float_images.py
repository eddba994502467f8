"""The forms of images that nets and experiments take: scaled floats, and noisy repetitions."""

import math
import numbers
from typing import Any

import numpy as np

from sklearn_ical._random import IMAGES, root_seed, stream_generator
from sklearn_ical._typing import Integer, Numbers, Real, Seed
from sklearn_ical._validation import as_numbers, check_integer
from sklearn_ical.datasets._image_data import IMAGE_RULE, is_image_shape

NOISE_BYTES = 2**24  # of the noise at hand at a time


def as_float_images(
    X: Any, *, mean: Real | Numbers | None = None, std: Real | Numbers | None = None
) -> np.ndarray:
    """Return images as nets take them: float32, channels first, scaled to [0, 1].

    Parameters
    ----------
    X : array of shape (n_images, height, width) or (n_images, height, width, 3), uint8
        Images, gray or in color.
    mean : float or array-like of shape (n_channels,), default=None
        Subtracted from every channel after the scaling to [0, 1]; None subtracts nothing.
    std : float or array-like of shape (n_channels,), default=None
        What every channel is divided by after that, > 0; None does not divide.

    Returns
    -------
    X_float : ndarray of shape (n_images, n_channels, height, width), float32
        ``(X / 255 - mean) / std``, with one channel for gray images.

    Raises
    ------
    TypeError
        If the images are not uint8.
    ValueError
        If a shape, or a number in `mean` or `std`, does not fit.

    Examples
    --------
    The customary numbers of MNIST:

    >>> import numpy as np
    >>> from sklearn_ical.datasets import as_float_images
    >>> X = np.array([[[0, 255]]], dtype=np.uint8)
    >>> as_float_images(X, mean=0.1307, std=0.3081).round(4).tolist()
    [[[[-0.424..., 2.821...]]]]
    """
    X = np.asarray(X)
    if X.dtype != np.uint8 or not is_image_shape(X.shape):
        error = TypeError if X.dtype != np.uint8 else ValueError
        raise error(
            f"X must be {IMAGE_RULE}. Got dtype {X.dtype} and shape {X.shape} in as_float_images."
        )
    channels_first = X[:, None] if X.ndim == 3 else np.moveaxis(X, -1, 1)
    n_channels = channels_first.shape[1]
    shift = None if mean is None else _per_channel(mean, n_channels, "mean")
    scale = None if std is None else _per_channel(std, n_channels, "std")
    if scale is not None and not (scale > 0).all():
        raise ValueError(f"std must be > 0. Got {std!r} in as_float_images.")
    X_float = np.empty(channels_first.shape, dtype=np.float32)
    np.divide(channels_first, np.float32(255), out=X_float)
    if shift is not None:
        X_float -= shift
    if scale is not None:
        X_float /= scale
    return X_float


def repeat_images(
    X: Any, y: Any, n_repeats: Integer = 3, *, noise: Real = 0.1, random_state: Seed = None
) -> tuple[np.ndarray, np.ndarray]:
    """Repeat a pool with fresh Gaussian noise on every copy, as Repeated-MNIST does.

    A pool of near duplicates tells strategies that look at a batch as a whole from those that
    score rows alone.

    Parameters
    ----------
    X : array of shape (n_images, ...), float
        Images after scaling and standardizing, as `as_float_images` returns them. Not changed.
    y : array-like of shape (n_images, ...)
        Their labels, or whatever else belongs to them.
    n_repeats : int, default=3
        Number of copies of every image, >= 1.
    noise : float, default=0.1
        Standard deviation of the noise in each entry, >= 0, in the units of `X`. Every copy has
        its own, the first one too.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the noise.

    Returns
    -------
    X_repeated : ndarray of shape (n_repeats * n_images, ...), float32
        The whole pool once, then once more, and so on: row i is a copy of row ``i % n_images``.
        Beyond this array, memory for about 50 MB of noise is needed.
    y_repeated : ndarray of shape (n_repeats * n_images, ...)
        The labels in the same order.

    Raises
    ------
    TypeError
        If the images hold no floats, so that they have not been scaled.
    ValueError
        If `y` has another number of rows, or if a number is out of its range.

    Notes
    -----
    Repeated-MNIST [1]_ is the training set of MNIST three times over, with noise of standard
    deviation 0.1 added after standardizing. The noise of a row depends on the seed, the row's
    place and the shape of an image only.

    References
    ----------
    .. [1] A. Kirsch, J. van Amersfoort and Y. Gal, "BatchBALD: Efficient and Diverse Batch
       Acquisition for Deep Bayesian Active Learning", NeurIPS, 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.datasets import repeat_images
    >>> X, y = repeat_images(np.zeros((2, 1, 28, 28)), [5, 0], random_state=0)
    >>> X.shape, y.tolist()
    ((6, 1, 28, 28), [5, 0, 5, 0, 5, 0])
    """
    owner = "repeat_images"
    X, y = np.asarray(X), np.asarray(y)
    if X.dtype.kind != "f":
        raise TypeError(
            f"X must hold floats, as as_float_images returns them: scale images before noise is "
            f"added. Got dtype {X.dtype} in {owner}."
        )
    if X.ndim == 0 or y.shape[:1] != X.shape[:1]:
        raise ValueError(
            f"X and y must have equally many rows. Got shapes {X.shape} and {y.shape} in {owner}."
        )
    n_repeats = check_integer(n_repeats, "n_repeats", owner)
    if isinstance(noise, bool) or not isinstance(noise, numbers.Real):
        raise TypeError(f"noise must be a finite number >= 0. Got {noise!r} in {owner}.")
    if not 0 <= noise < math.inf:
        raise ValueError(f"noise must be a finite number >= 0. Got {noise!r} in {owner}.")
    generator = stream_generator(root_seed(random_state, owner), IMAGES)
    X_repeated = np.empty((n_repeats, *X.shape), dtype=np.float32)
    step = max(1, NOISE_BYTES // (8 * max(1, math.prod(X.shape[1:]))))
    for copy in X_repeated:
        for start in range(0, len(X), step):
            rows = X[start : start + step]
            # One stream, read in the order of the entries: chunks do not change the numbers.
            copy[start : start + step] = rows + noise * generator.standard_normal(rows.shape)
    return X_repeated.reshape(-1, *X.shape[1:]), np.concatenate([y] * n_repeats)


def _per_channel(value: Any, n_channels: int, name: str) -> np.ndarray:
    """Return a finite number for all channels or each, float32, (1 or n_channels, 1, 1)."""
    given = as_numbers(value, name, "as_float_images").astype(np.float32)
    if given.shape not in ((), (n_channels,)) or not np.isfinite(given).all():
        raise ValueError(
            f"{name} must be one finite number, or one for each of the {n_channels} channels. "
            f"Got {value!r} in as_float_images."
        )
    return given.reshape(-1, 1, 1)
