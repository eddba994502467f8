"""Draw weights of array functions: integer weights count as repeated draws, and 0 as no draw."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sklearn_ical import dependence
from sklearn_ical._array import to_host

Backend = Callable[[np.ndarray], Any]
N, M = 4, 5
COUNTS = ([8, 1, 1, 2, 3], [0, 3, 0, 5, 2])  # how often each draw counts
OF_PROBA: list[Callable[..., Any]] = [
    dependence.predictive_entropy,
    dependence.margin,
    dependence.least_confidence,
    dependence.bald,
    dependence.joint_entropy,
    lambda p, weights=None: dependence.epig(p, p[:2, ...], weights=weights),
]


def make_proba(counts: Any) -> np.ndarray:
    """Return probabilities, with a row on which all draws that count agree."""
    proba = np.random.default_rng(0).dirichlet(np.ones(3), size=(N, M))
    proba[1] = proba[1, :1]
    proba[:, np.equal(counts, 0)] = [0.0, 1.0, 0.0]
    return proba


def make_kernels(counts: Any) -> np.ndarray:
    """Return kernels (3, N, M, M), the last one constant over the draws that count."""
    y = np.random.default_rng(1).normal(size=(3, N, M, 2))
    kernels = dependence.rq_kernel(y)
    kernels[:, 3] = 1.0
    none = np.equal(counts, 0)
    kernels[..., none, :] = kernels[..., none] = 1e9
    return kernels


@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize("function", OF_PROBA)
def test_information_of_weighted_draws_is_that_of_repeated_ones(
    function: Callable[..., Any], counts: list[int], backend: Backend
) -> None:
    proba, weights = make_proba(counts), np.array(counts) / np.sum(counts)
    expected = function(proba.repeat(counts, axis=1))
    got = function(backend(proba), weights=weights)
    np.testing.assert_allclose(to_host(got), expected, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("counts", COUNTS)
def test_variance_of_weighted_draws_is_that_of_repeated_ones(
    counts: list[int], backend: Backend
) -> None:
    rng, weights = np.random.default_rng(2), np.array(counts) / np.sum(counts)
    y, noise = rng.normal(size=(N, M, 2)), rng.uniform(0.1, 1, size=(N, M))
    y[:, np.equal(counts, 0)] = noise[:, np.equal(counts, 0)] = 1e9
    for function in (dependence.predictive_variance, dependence.gaussian_bald):
        got = function(backend(y), weights=weights, noise_variance=noise)
        repeated = noise.repeat(counts, axis=1)
        expected = function(y.repeat(counts, axis=1), noise_variance=repeated)
        np.testing.assert_allclose(to_host(got), expected, rtol=1e-11)
    features = to_host(dependence.covariance_features(backend(y), weights=weights))
    expected = dependence.covariance_features(y.repeat(counts, axis=1))
    products = [np.einsum("ick,jck->ijc", each, each) for each in (features, expected)]
    np.testing.assert_allclose(products[0], products[1], rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("counts", COUNTS)
def test_hsic_of_weighted_draws_is_that_of_repeated_ones(
    counts: list[int], backend: Backend
) -> None:
    kernels, weights = make_kernels(counts), np.array(counts) / np.sum(counts)
    repeated = kernels.repeat(counts, axis=2).repeat(counts, axis=3)
    given = backend(kernels)
    pair = to_host(dependence.hsic(given[0, ...], given[1, ...], weights=weights))
    np.testing.assert_allclose(pair, dependence.hsic(repeated[0], repeated[1]), rtol=1e-11)
    assert pair[3] == 0  # exactly, as the kernel is constant
    joint = to_host(dependence.dhsic(given, weights=weights))
    np.testing.assert_allclose(joint, dependence.dhsic(repeated), rtol=1e-9, atol=1e-15)
    dual = to_host(dependence.hsic_dual(given, weights=weights))
    copies = np.repeat(np.eye(M), counts, axis=0)  # (n_copies, M)
    expected = copies.T @ dependence.hsic_dual(repeated) @ copies
    np.testing.assert_allclose(dual, expected, rtol=1e-11, atol=1e-15)
