"""Images from OpenML: ``python examples/paper/openml_images.py mnist --data-home FOLDER``.

Downloads a data set once and writes ``FOLDER/mnist.npz``, which image_files.py reads. Reading the
download takes minutes, and several GB of memory for CIFAR.
"""

import argparse
import math
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from images import PARTS, ImageData, image_data
from sklearn.datasets import fetch_openml


class _OpenML(NamedTuple):
    """One data set on OpenML: flat rows, those of the training set first."""

    data_id: int
    shape: tuple[int, ...]  # of one row, as it is stored
    axes: tuple[int, ...]  # of the stored array, in the order of ImageData
    n_train: int
    test_counts: tuple[int, ...]  # rows of each label in the standard test set


MNIST_TEST_COUNTS = (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009)
OPENML = {
    "mnist": _OpenML(554, (28, 28), (0, 1, 2), 60_000, MNIST_TEST_COUNTS),
    "fashion_mnist": _OpenML(40996, (28, 28), (0, 1, 2), 60_000, (1000,) * 10),
    "emnist": _OpenML(41039, (28, 28), (0, 2, 1), 112_800, (400,) * 47),
    "cifar10": _OpenML(40927, (3, 32, 32), (0, 2, 3, 1), 50_000, (1000,) * 10),
    "cifar100": _OpenML(41983, (3, 32, 32), (0, 2, 3, 1), 50_000, (100,) * 100),
}


def fetch_images(name: str) -> ImageData:
    """Download a data set of images from OpenML, in its standard training and test parts.

    Parameters
    ----------
    name : {"mnist", "fashion_mnist", "emnist", "cifar10", "cifar100"}
        What to download; "emnist" is the balanced split of 47 classes.

    Returns
    -------
    data : ImageData
        The images, those of EMNIST upright. OpenML keeps no names of the labels.

    Raises
    ------
    ValueError
        If OpenML answers with something else than expected: the parts are told apart by the order
        of the rows, so the labels of the test rows are counted.
    """
    known_set = OPENML[name]
    # The other parser is far slower, but needs no pandas.
    parser = "pandas" if find_spec("pandas") else "liac-arff"
    bunch = fetch_openml(data_id=known_set.data_id, as_frame=False, parser=parser)
    origin = f"data set {known_set.data_id} of OpenML in fetch_images({name!r})"
    X, y = _openml_images(np.asarray(bunch.data), np.asarray(bunch.target), known_set, origin)
    n_train = known_set.n_train
    parts = dict(zip(PARTS, (X[:n_train], y[:n_train], X[n_train:], y[n_train:]), strict=True))
    return image_data(parts, f"{name} (OpenML {known_set.data_id})", origin)


def _openml_images(
    pixels: np.ndarray, target: np.ndarray, known: _OpenML, origin: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return flat rows as images, and their labels, once the rows are what they should be."""
    n_rows = known.n_train + sum(known.test_counts)
    if pixels.shape != (n_rows, math.prod(known.shape)):
        raise ValueError(
            f"Expected shape {(n_rows, math.prod(known.shape))}, got {pixels.shape} from {origin}."
        )
    with np.errstate(invalid="ignore"):
        images = pixels.astype(np.uint8)
    if not np.array_equal(images, pixels):
        raise ValueError(f"Expected whole numbers from 0 to 255 as pixels from {origin}.")
    try:
        labels = target.astype(np.float64).astype(np.int64)  # digits, some of them in strings
    except ValueError as err:
        raise ValueError(f"Expected whole numbers as labels from {origin}.") from err
    test_labels = labels[known.n_train :]
    counts = [int((test_labels == label).sum()) for label in range(len(known.test_counts))]
    if counts != list(known.test_counts):
        raise ValueError(
            f"The last {len(test_labels)} rows must be the standard test images. Got labels that "
            f"occur {counts} times instead of {list(known.test_counts)} from {origin}; load the "
            "original files with load_images instead."
        )
    images = images.reshape(-1, *known.shape).transpose(known.axes)
    return np.ascontiguousarray(images), labels


def main(arguments: list[str] | None = None) -> None:
    """Download the images that the command line names, and write them where runs look for them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=OPENML)
    parser.add_argument("--data-home", type=Path, required=True, help="folder that gets the file")
    args = parser.parse_args(arguments)
    data = fetch_images(args.name)
    arrays = (data.X_train, data.y_train, data.X_test, data.y_test)
    args.data_home.mkdir(parents=True, exist_ok=True)
    path = args.data_home / f"{args.name}.npz"
    np.savez_compressed(path, **dict(zip(PARTS, arrays, strict=True)))
    print(f"{data!r} written to {path}")


if __name__ == "__main__":
    main()
