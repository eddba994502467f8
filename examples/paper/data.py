"""The images of an experiment: read, checked to be enough, split and scaled; no model."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from experiments import Experiment
from float_images import as_float_images, repeat_images
from image_files import load_images
from images import ImageData


@dataclass(frozen=True)
class Split:
    """Float32 images (n, channels, height, width) and int64 labels (n,), the same for all seeds."""

    X_pool: np.ndarray
    y_pool: np.ndarray
    X_validation: np.ndarray
    y_validation: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def load_split(row: Experiment, data_home: Any = None) -> Split:
    """Return the images of an experiment from the files in a folder."""
    images = load_images(row.images, data_home)
    check_size(row, images)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(images.X_train))
    pool, validation = order[: row.n_pool], order[row.n_pool :][: row.n_validation]
    test = np.sort(rng.permutation(len(images.X_test))[: row.n_test])
    scale = moments(images.X_train[pool]) if row.standardized else {}
    X_pool = as_float_images(images.X_train[pool], **scale)
    X_validation = as_float_images(images.X_train[validation], **scale)
    y_pool, y_validation = images.y_train[pool], images.y_train[validation]
    if row.n_repeats > 1:  # after the split: no copy of an image is on both sides of it
        X_pool, y_pool = repeat_images(X_pool, y_pool, row.n_repeats, seed=0)
        X_validation, y_validation = repeat_images(
            X_validation, y_validation, row.n_repeats, seed=1
        )
    X_test = as_float_images(images.X_test[test], **scale)
    return Split(X_pool, y_pool, X_validation, y_validation, X_test, images.y_test[test])


def check_size(row: Experiment, images: ImageData) -> None:
    """Raise if the files are not the full ones, or too small even for the small scale."""
    found = len(images.X_train), len(images.X_test)
    if row.n_train_file is not None and found != (row.n_train_file, row.n_test_file):
        raise ValueError(
            f"{row.name} at full size needs the {row.n_train_file} training and "
            f"{row.n_test_file} test images of the full files. Got {found[0]} and {found[1]} in "
            f"{images.name!r}; pass --scale small for a run on fewer images."
        )
    needed = row.n_pool + row.n_validation, row.n_test
    if found[0] < needed[0] or found[1] < needed[1]:
        raise ValueError(
            f"{row.name} at this scale needs at least {needed[0]} training and {needed[1]} test "
            f"images. Got {found[0]} and {found[1]} in {images.name!r}."
        )
    largest = int(max(images.y_train.max(), images.y_test.max()))
    if largest >= row.n_classes:
        raise ValueError(
            f"{row.name} has labels from 0 to {row.n_classes - 1}. Got {largest} in "
            f"{images.name!r}."
        )


def moments(X: np.ndarray) -> dict[str, np.ndarray]:
    """Return mean and standard deviation of uint8 images over [0, 1], one number a channel."""
    counts = np.stack(
        [np.bincount(channel.ravel(), minlength=256) for channel in np.moveaxis(X, 3, 0)]
        if X.ndim == 4
        else [np.bincount(X.ravel(), minlength=256)]
    )  # (n_channels, 256)
    values = np.arange(256) / 255
    mean = counts @ values / counts.sum(axis=1)
    variance = counts @ values**2 / counts.sum(axis=1) - mean**2
    return {"mean": mean, "std": np.sqrt(variance)}
