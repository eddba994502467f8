"""as_float_images and repeat_images: closed forms, noise statistics, chunks and refusals."""

import math
from typing import Any

import float_images
import numpy as np
import pytest
from float_images import as_float_images, repeat_images

GRAY, COLOR = (4, 5), (4, 5, 3)


def made_images(shape: tuple[int, ...]) -> np.ndarray:
    """Make seven images; height and width differ, so that a wrong order of axes shows."""
    return np.random.default_rng(0).integers(256, size=(7, *shape), dtype=np.uint8)


def test_as_float_images_scales_and_puts_channels_first() -> None:
    gray = made_images(GRAY)
    X = as_float_images(gray)
    assert (X.dtype, X.shape) == (np.float32, (7, 1, 4, 5))
    np.testing.assert_array_equal(X[:, 0], gray.astype(np.float32) / np.float32(255))
    color = made_images(COLOR)
    X = as_float_images(color)
    assert (X.dtype, X.shape) == (np.float32, (7, 3, 4, 5))
    for channel in range(3):
        expected = color[..., channel].astype(np.float32) / np.float32(255)
        np.testing.assert_array_equal(X[:, channel], expected)


def test_as_float_images_standardizes_each_channel() -> None:
    color = made_images(COLOR)
    mean, std = np.array([0.1, 0.2, 0.3]), [1, 2, 4]
    expected = np.moveaxis((color / 255 - mean) / std, 3, 1)
    np.testing.assert_allclose(as_float_images(color, mean=mean, std=std), expected, atol=1e-6)
    expected = np.moveaxis(color / 255 - 0.5, 3, 1)
    np.testing.assert_allclose(as_float_images(color, mean=0.5), expected, atol=1e-6)
    expected = np.moveaxis(color / 255 / 0.5, 3, 1)
    np.testing.assert_allclose(as_float_images(color, std=0.5), expected, atol=1e-6)
    gray = made_images(GRAY)
    expected = (gray[:, None] / 255 - 0.1307) / 0.3081
    X = as_float_images(gray, mean=[0.1307], std=[0.3081])
    np.testing.assert_allclose(X, expected, atol=1e-6)


def test_as_float_images_leaves_read_only_images_as_they_are() -> None:
    images = made_images(GRAY)
    before = images.copy()
    images.flags.writeable = False
    as_float_images(images, mean=0.1, std=0.2)[:] = 0
    np.testing.assert_array_equal(images, before)


@pytest.mark.parametrize("std", [0, np.array([1, -1, 1]), np.nan])
def test_as_float_images_refuses_a_deviation_that_is_not_positive(std: Any) -> None:
    with pytest.raises(ValueError, match=r"std must be > 0\. Got .* in as_float_images"):
        as_float_images(np.zeros((2, 4, 5, 3), np.uint8), std=std)


def test_repeat_images_adds_fresh_noise_of_that_deviation_to_every_copy() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 1, 28, 28)).astype(np.float32)
    y = np.arange(50)
    X_repeated, y_repeated = repeat_images(X, y, seed=0)
    assert (X_repeated.dtype, X_repeated.shape) == (np.float32, (150, 1, 28, 28))
    assert y_repeated.tolist() == [*range(50)] * 3
    noise = (X_repeated - np.concatenate([X] * 3)).reshape(3, -1).astype(np.float64)
    n = noise.shape[1]  # 39 200: five standard errors of each statistic
    assert (np.abs(noise.mean(axis=1)) < 5 * 0.1 / math.sqrt(n)).all()
    assert (np.abs(noise.std(axis=1) - 0.1) < 5 * 0.1 / math.sqrt(2 * n)).all()
    # Gaussian: 68.27 % lie within one standard deviation.
    within = (np.abs(noise) < 0.1).mean(axis=1)
    assert (np.abs(within - 0.6827) < 5 * math.sqrt(0.6827 * 0.3173 / n)).all()
    # Copies, and neighboring entries of one, are independent.
    correlations = [*np.corrcoef(noise)[np.triu_indices(3, 1)]]
    correlations += [np.corrcoef(copy[:-1], copy[1:])[0, 1] for copy in noise]
    assert np.abs(correlations).max() < 5 / math.sqrt(n)


@pytest.mark.parametrize("shape", [(9,), (9, 3), (9, 2, 4, 5), (0, 3)])
def test_repeat_images_takes_any_number_of_axes(shape: tuple[int, ...]) -> None:
    X, y = np.ones(shape), np.arange(2 * shape[0]).reshape(shape[0], 2)
    X_repeated, y_repeated = repeat_images(X, y, 2, noise=0, seed=0)
    np.testing.assert_array_equal(X_repeated, np.ones((2 * shape[0], *shape[1:])))
    np.testing.assert_array_equal(y_repeated, np.concatenate([y, y]))


@pytest.mark.parametrize("n_bytes", [1, 7 * 20 * 8 // 2, 2**10])
def test_repeat_images_does_not_depend_on_its_chunks(
    n_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = np.zeros((7, 1, 4, 5)), np.arange(7)
    whole = repeat_images(X, y, seed=3)[0]
    monkeypatch.setattr(float_images, "NOISE_BYTES", n_bytes)
    np.testing.assert_array_equal(repeat_images(X, y, seed=3)[0], whole)


def test_repeat_images_keeps_the_noise_of_the_first_copies() -> None:
    X, y = np.zeros((7, 4, 5)), np.arange(7)
    three = repeat_images(X, y, seed=3)[0]
    np.testing.assert_array_equal(repeat_images(X, y, 2, seed=3)[0], three[:14])
    np.testing.assert_allclose(repeat_images(X, y, noise=0.2, seed=3)[0], 2 * three, rtol=1e-6)
    assert not np.array_equal(repeat_images(X, y, seed=4)[0], three)
    # The noise of a seed is that of the runs whose results the guide shows.
    np.testing.assert_allclose(three[0, 0, :2], [-0.0080022356, -0.149133891])


def test_repeat_images_leaves_its_inputs_and_the_global_generator_alone() -> None:
    X, y = np.ones((7, 4, 5), np.float32), np.arange(7)
    X.flags.writeable = y.flags.writeable = False
    state = np.random.get_state()  # noqa: NPY002
    X_repeated, y_repeated = repeat_images(X, y, 1, seed=0)
    X_repeated[:], y_repeated[:] = 5, 5
    assert (X == 1).all()
    assert y.tolist() == [*range(7)]
    assert str(np.random.get_state()) == str(state)  # noqa: NPY002


def test_repeat_images_refuses_images_that_are_not_scaled() -> None:
    with pytest.raises(TypeError, match=r"X must hold floats.*scale images before.* dtype uint8"):
        repeat_images(np.zeros((3, 2), np.uint8), np.arange(3), seed=0)
