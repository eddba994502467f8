"""Covariance features against literal covariances, shrinkage against scikit-learn."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.covariance import ledoit_wolf_shrinkage as sklearn_shrinkage

from sklearn_ical.dependence import covariance_features, ledoit_wolf_shrinkage

Backend = Callable[[np.ndarray], Any]
Place = Callable[[Any, Any], None]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weights", [None, [0.1, 0.0, 0.6, 0.3]])
def test_inner_products_are_covariances(
    weights: Any, dtype: str, backend: Backend, same_place: Place
) -> None:
    values = np.random.default_rng(0).normal(5, 1, size=(6, 4, 3)).astype(dtype)
    given = backend(values)
    features = covariance_features(given, weights=weights)
    same_place(features, given)
    assert features.shape == (6, 3, 4)
    for output in range(3):
        part = features[:, output, :]
        kernel = part @ part.T
        expected = np.cov(
            values[:, :, output].astype(float), bias=True, aweights=weights or [0.25] * 4
        )
        for i in range(6):
            for j in range(6):
                assert float(kernel[i, j]) == pytest.approx(expected[i, j], abs=1e-12)


def test_agreeing_draws_have_features_of_exactly_zero() -> None:
    values = np.repeat(np.random.default_rng(1).random((40, 1)) / 3, 7, axis=1)
    assert not covariance_features(values).any()
    values[:, 2] += 1  # a draw that does not count
    weights = np.array([1, 2, 0, 1, 1, 1, 1]) / 7
    assert not covariance_features(values, weights=weights).any()


def test_weights_count_as_repeated_draws() -> None:
    values, counts = np.random.default_rng(2).normal(size=(5, 3)), np.array([2, 1, 3])
    weighted = covariance_features(values, weights=counts / 6)[:, 0]
    repeated = covariance_features(values.repeat(counts, axis=1))[:, 0]
    np.testing.assert_allclose(weighted @ weighted.T, repeated @ repeated.T, atol=1e-14)


@pytest.mark.parametrize(("n_points", "n_draws"), [(30, 10), (5, 40), (3, 2), (1, 6)])
@pytest.mark.parametrize("scale", [0.0, 1.0])
def test_shrinkage_equals_that_of_scikit_learn(n_points: int, n_draws: int, scale: float) -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=(n_points, n_draws)) + 3 * scale * rng.normal(size=n_draws)
    features = covariance_features(values)[:, 0]
    got = ledoit_wolf_shrinkage((features.T @ features)[None], n_points)
    assert got.shape == (1,)
    if n_points > 1:  # scikit-learn calls the shrinkage of a number 0
        assert got[0] == pytest.approx(sklearn_shrinkage(values.T), abs=1e-12)
    assert 0 <= got[0] <= 1


def test_shrinkage_of_each_output_and_of_sums_of_chunks_is_its_own(backend: Backend) -> None:
    values = np.random.default_rng(4).normal(size=(20, 8, 3)) * [1, 5, 0]
    features = covariance_features(values)
    gram = np.einsum("nck,ncl->ckl", features, features)
    expected = [sklearn_shrinkage(values[:, :, c].T) for c in range(2)] + [0.0]
    np.testing.assert_allclose(ledoit_wolf_shrinkage(backend(gram), 20), expected, atol=1e-12)


def test_equal_weights_shrink_as_none_and_weights_of_zero_as_fewer_draws() -> None:
    values = np.random.default_rng(5).normal([0, 1, 2, 0], size=(20, 4))
    for weights, like in (([0.25] * 4, values), ([0.5, 0.0, 0.25, 0.25], values[:, [0, 2, 3]])):
        features = covariance_features(values, weights=weights)[:, 0]
        got = ledoit_wolf_shrinkage((features.T @ features)[None], 20, weights=weights)
        w = np.array([x for x in weights if x > 0])
        draws = like - (like @ w)[:, None]
        covariance = (draws * w) @ draws.T
        mean = np.trace(covariance) / 20
        apart = [wk * np.sum((np.outer(d, d) - covariance) ** 2) for wk, d in zip(w, draws.T)]  # noqa: B905
        error = np.sum(w**2) * np.sum(apart)
        distance = np.sum((covariance - mean * np.eye(20)) ** 2)
        assert got[0] == pytest.approx(min(1, error / distance), rel=1e-10)


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match=r"values must be an array .* in covariance_features"):
        covariance_features([[1.0, 2.0]])
    with pytest.raises(ValueError, match=r"values must have shape .* Got shape \(3,\)"):
        covariance_features(np.zeros(3))
    with pytest.raises(ValueError, match=r"weights must have one entry per draw"):
        covariance_features(np.zeros((3, 2)), weights=[1.0])
    with pytest.raises(ValueError, match=r"gram must have shape .* Got shape \(3, 3\)"):
        ledoit_wolf_shrinkage(np.eye(3), 5)


def test_unit_of_the_predictions_changes_no_shrinkage() -> None:
    features = covariance_features(np.random.default_rng(0).normal(size=(30, 6)))[:, 0]
    gram = (features.T @ features)[None]
    for exponent in (-900, -600, 600, 900):
        np.testing.assert_array_equal(
            ledoit_wolf_shrinkage(gram * 2.0**exponent, 30), ledoit_wolf_shrinkage(gram, 30)
        )
