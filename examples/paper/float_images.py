"""The forms of images that the nets take: scaled floats, and noisy repetitions; no files."""

import math

import numpy as np

NOISE_BYTES = 2**24  # of the noise that is held at once
NOISE_STREAM = 6  # key of the random stream, so that a seed gives the noise of the documented runs


def as_float_images(
    X: np.ndarray, *, mean: float | np.ndarray = 0.0, std: float | np.ndarray = 1.0
) -> np.ndarray:
    """Return images as nets take them: float32, channels first, scaled to [0, 1].

    Parameters
    ----------
    X : array of shape (n_images, height, width) or (n_images, height, width, 3), uint8
        Images, gray or in color.
    mean, std : float or array of shape (n_channels,), default=0.0 and 1.0
        Subtracted from every channel after the scaling to [0, 1], and what every channel is
        divided by after that, > 0.

    Returns
    -------
    X_float : ndarray of shape (n_images, n_channels, height, width), float32
        ``(X / 255 - mean) / std``, with one channel for gray images.
    """
    shift, scale = (np.asarray(value, np.float32).reshape(-1, 1, 1) for value in (mean, std))
    if not (scale > 0).all():
        raise ValueError(f"std must be > 0. Got {std!r} in as_float_images.")
    channels_first = X[:, None] if X.ndim == 3 else np.moveaxis(X, -1, 1)
    X_float = np.empty(channels_first.shape, dtype=np.float32)
    np.divide(channels_first, np.float32(255), out=X_float)
    X_float -= shift
    X_float /= scale
    return X_float


def repeat_images(
    X: np.ndarray, y: np.ndarray, n_repeats: int = 3, *, noise: float = 0.1, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Repeat a pool with fresh Gaussian noise on every copy, as Repeated-MNIST does [1]_.

    Parameters
    ----------
    X : array of shape (n_images, ...), float
        Images after scaling and standardizing, as `as_float_images` returns them.
    y : array of shape (n_images, ...)
        Their labels.
    n_repeats : int, default=3
        Number of copies of every image, >= 1.
    noise : float, default=0.1
        Standard deviation of the noise in each entry, >= 0, in the units of `X`. Every copy has
        its own, the first one too.
    seed : int
        Seed of the noise, which depends on nothing else but the place of a row and the shape of
        an image.

    Returns
    -------
    X_repeated : ndarray of shape (n_repeats * n_images, ...), float32
        The whole pool once, then once more, and so on: row i is a copy of row ``i % n_images``.
    y_repeated : ndarray of shape (n_repeats * n_images, ...)
        The labels in the same order.

    References
    ----------
    .. [1] A. Kirsch, J. van Amersfoort and Y. Gal, "BatchBALD: Efficient and Diverse Batch
       Acquisition for Deep Bayesian Active Learning", NeurIPS, 2019.
    """
    if X.dtype.kind != "f":
        raise TypeError(
            f"X must hold floats, as as_float_images returns them: scale images before noise is "
            f"added. Got dtype {X.dtype} in repeat_images."
        )
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(NOISE_STREAM,)))
    X_repeated = np.empty((n_repeats, *X.shape), dtype=np.float32)
    step = max(1, NOISE_BYTES // (8 * max(1, math.prod(X.shape[1:]))))
    for copy in X_repeated:
        for start in range(0, len(X), step):
            rows = X[start : start + step]
            # One stream, read in the order of the entries: chunks do not change the numbers.
            copy[start : start + step] = rows + noise * generator.standard_normal(rows.shape)
    return X_repeated.reshape(-1, *X.shape[1:]), np.concatenate([y] * n_repeats)
