"""ImageData, what a loader of images returns, and the checks of what it read; no files."""

from dataclasses import dataclass

import numpy as np

PARTS = ("x_train", "y_train", "x_test", "y_test")
IMAGE_RULE = "uint8 of shape (n_images, height, width) or (n_images, height, width, 3)"


@dataclass(frozen=True, eq=False, repr=False)
class ImageData:
    """Images and labels of a data set, in its training and its test part.

    Parameters
    ----------
    X_train : ndarray of shape (n_train, height, width) or (n_train, height, width, 3), uint8
        Images to train on and to query from, gray or in color.
    y_train : ndarray of shape (n_train,), int64
        Their labels.
    X_test : ndarray of shape (n_test, height, width) or (n_test, height, width, 3), uint8
        Images to test on.
    y_test : ndarray of shape (n_test,), int64
        Their labels.
    classes : ndarray of shape (n_classes,) or None
        Names of the labels: ``classes[y_train]`` are those of the training rows. None where the
        source names none.
    name : str
        The source: the name of the file or folder that was read, or of the data set on OpenML.
    """

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    classes: np.ndarray | None
    name: str

    def __repr__(self) -> str:
        return (
            f"ImageData(name={self.name!r}, n_train={len(self.X_train)}, "
            f"n_test={len(self.X_test)}, shape={self.X_train.shape[1:]})"
        )


def image_data(parts: dict[str, np.ndarray], name: str, origin: str) -> ImageData:
    """Return checked images; `origin` says where they come from and who reads them."""
    for part in ("train", "test"):
        images, labels = parts[f"x_{part}"], parts[f"y_{part}"]
        if images.dtype != np.uint8 or not is_image_shape(images.shape):
            raise ValueError(
                f"x_{part} must be {IMAGE_RULE}. Got dtype {images.dtype} and shape "
                f"{images.shape} from {origin}."
            )
        if labels.dtype.kind not in "iu" or labels.ndim != 1:
            raise ValueError(
                f"y_{part} must be integers of shape (n_images,). Got dtype {labels.dtype} and "
                f"shape {labels.shape} from {origin}."
            )
        if len(images) != len(labels):
            raise ValueError(
                f"x_{part} and y_{part} must be equally long. Got {len(images)} images and "
                f"{len(labels)} labels from {origin}."
            )
    shapes = [parts[key].shape[1:] for key in ("x_train", "x_test")]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"Images to train and to test on must have one shape. Got {shapes[0]} and {shapes[1]} "
            f"from {origin}."
        )
    y_train, y_test = (parts[key].astype(np.int64) for key in ("y_train", "y_test"))
    return ImageData(
        X_train=parts["x_train"],
        y_train=y_train,
        X_test=parts["x_test"],
        y_test=y_test,
        classes=_checked_classes(parts.get("classes"), np.concatenate([y_train, y_test]), origin),
        name=name,
    )


def _checked_classes(
    classes: np.ndarray | None, labels: np.ndarray, origin: str
) -> np.ndarray | None:
    """Return the names of the labels, of which every label must have one."""
    if classes is None:
        return None
    if classes.dtype.kind != "U" or classes.ndim != 1:
        raise ValueError(
            f"classes must be strings of shape (n_classes,). Got dtype {classes.dtype} and shape "
            f"{classes.shape} from {origin}."
        )
    unnamed = labels[(labels < 0) | (labels >= len(classes))]
    if len(unnamed):
        raise ValueError(
            f"classes must name every label from 0 on. Got {len(classes)} names and the label "
            f"{unnamed[0]} from {origin}."
        )
    return classes


def is_image_shape(shape: tuple[int, ...]) -> bool:
    """Return whether this is a shape of gray images, or of color images, channels last."""
    return len(shape) == 3 or (len(shape) == 4 and shape[3] == 3)
