"""Kernels as features: products with folded duals equal HSIC; the order of the pairs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sklearn_ical._array import to_host
from sklearn_ical.dependence import (
    delta_kernel,
    hsic,
    hsic_dual,
    linear_kernel,
    radial_profile,
    rq_kernel,
)
from sklearn_ical.dependence._features import (
    label_features,
    output_features,
    pair_weights,
    unfold_pairs,
    upper_triangle,
)

Backend = Callable[[np.ndarray], Any]
SamePlace = Callable[[Any, Any], None]

OPTIONS = [{}, {"estimator": "unbiased"}, {"weights": np.array([0.1, 0.0, 0.4, 0.2, 0.3])}]


def test_upper_triangle_goes_row_by_row() -> None:
    left, right = upper_triangle(3, diagonal=False)
    assert list(zip(left, right, strict=True)) == [(0, 1), (0, 2), (1, 2)]
    left, right = upper_triangle(3, diagonal=True)
    assert list(zip(left, right, strict=True)) == [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]


@pytest.mark.parametrize("options", OPTIONS)
def test_label_features_times_weights_are_hsic(
    options: dict[str, Any], backend: Backend, same_place: SamePlace
) -> None:
    rng = np.random.default_rng(0)
    labels = backend(rng.integers(0, 3, size=(7, 5)))
    summaries = backend(rq_kernel(rng.normal(size=(4, 5, 2))))
    features = label_features(labels, summaries.dtype)
    same_place(features, labels)
    duals = hsic_dual(summaries, **options)
    weights = pair_weights(duals, diagonal=False)
    diagonal = np.trace(to_host(duals), axis1=1, axis2=2)
    found = to_host(weights @ features) + diagonal[:, None]  # (4, 7)
    kernels = to_host(delta_kernel(labels))
    for t, summary in enumerate(to_host(summaries)):
        each = hsic(kernels, np.broadcast_to(summary, kernels.shape), **options)
        np.testing.assert_allclose(found[t], each, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", ["linear", "rq", "distance", "rbf"])
@pytest.mark.parametrize("options", OPTIONS)
def test_output_features_times_weights_are_hsic(
    options: dict[str, Any], name: str, backend: Backend, same_place: SamePlace
) -> None:
    rng = np.random.default_rng(1)
    outputs = rng.normal(size=(6, 5, 2))
    summaries = rq_kernel(rng.normal(size=(3, 5, 2)))
    inner = name == "linear"
    profile = None if inner else radial_profile(name)
    on_device = backend(outputs)
    features = output_features(on_device, profile, diagonal=inner)
    same_place(features, on_device)
    duals = hsic_dual(backend(summaries), **options)
    weights = pair_weights(duals, diagonal=inner)
    found = to_host(features @ weights.T)  # (6, 3)
    if not inner:  # what the constant diagonal adds
        value = 0.0 if name == "distance" else 1.0
        found = found + value * np.trace(to_host(duals), axis1=1, axis2=2)
    for i, rows in enumerate(outputs):
        d2 = ((rows[:, None] - rows[None]) ** 2).sum(axis=2)
        kernel = rows @ rows.T if inner else profile(d2)
        each = [hsic(kernel, summary, **options) for summary in summaries]
        np.testing.assert_allclose(found[i], each, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("diagonal", [True, False])
def test_unfold_pairs_rebuilds_the_kernels(
    diagonal: bool, backend: Backend, same_place: SamePlace
) -> None:
    kernels = linear_kernel(np.random.default_rng(2).normal(size=(3, 4, 2)))
    if not diagonal:
        kernels[:, range(4), range(4)] = np.array([2.0, -1.0, 0.0])[:, None]
    left, right = upper_triangle(4, diagonal=diagonal)
    pairs = backend(kernels[:, left, right])
    ends = None if diagonal else backend(np.array([2.0, -1.0, 0.0]))
    result = unfold_pairs(pairs, ends, 4)
    same_place(result, pairs)
    np.testing.assert_array_equal(to_host(result), kernels)


def test_features_of_two_draws_are_one_pair(backend: Backend) -> None:
    labels = backend(np.array([[0, 0], [0, 1]], dtype=np.uint8))
    features = label_features(labels, backend(np.zeros(1, dtype=np.float32)).dtype)
    np.testing.assert_array_equal(to_host(features), [[1.0, 0.0]])
    matrices = unfold_pairs(backend(np.array([[5.0]])), backend(np.array([7.0])), 2)
    np.testing.assert_array_equal(to_host(matrices), [[[7.0, 5.0], [5.0, 7.0]]])


def test_pair_weights_count_pairs_of_two_draws_twice() -> None:
    z = np.array([[[1.0, 2.0, 3.0], [2.0, 4.0, 5.0], [3.0, 5.0, 6.0]]])
    np.testing.assert_array_equal(pair_weights(z, diagonal=True), [[1, 4, 6, 4, 10, 6]])
    np.testing.assert_array_equal(pair_weights(z, diagonal=False), [[4, 6, 10]])
