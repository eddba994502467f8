"""PredictionSamples in use: parts, joins, means and sampled labels on every backend."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sklearn_ical import _array
from sklearn_ical.objectives.hsic._make_dependence import sample_labels
from sklearn_ical.samples import PredictionSamples, concatenate

Backend = Callable[[np.ndarray], Any]
SamePlace = Callable[[Any, Any], None]


def probabilities(n_points: int = 4, n_draws: int = 3, n_classes: int = 5) -> np.ndarray:
    """Random class probabilities, (n_points, n_draws, n_classes), with zeros among them."""
    values = np.random.default_rng(0).random((n_points, n_draws, n_classes)) ** 3
    values[..., 1] = 0
    return values / values.sum(axis=-1, keepdims=True)


def labels() -> np.ndarray:
    return np.array([[0, 2, 2], [1, 1, 1], [0, 1, 2], [2, 2, 0]])


def weights() -> np.ndarray:
    return np.array([0.5, 0.25, 0.25])


def literal_labels(values: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """Walk through the classes of every point and draw until the running sum exceeds u."""
    out = np.empty(uniforms.shape, dtype=np.int64)
    for i, k in np.ndindex(*uniforms.shape):
        running = np.zeros(values.shape[2])
        total = 0.0
        for c in range(values.shape[2]):
            total += float(values[i, k, c])
            running[c] = total
        out[i, k] = next(c for c, r in enumerate(running) if r / total > uniforms[i, k])
    return out


# Parts


@pytest.mark.parametrize(
    ("rows", "positions"),
    [
        (slice(1, 3), [1, 2]),
        (slice(None, None, 2), [0, 2]),
        (slice(2, 2), []),
        ([3, 0, 3], [3, 0, 3]),
        ([], []),
        (np.array([1, 2], dtype=np.uint8), [1, 2]),
        ([True, False, False, True], [0, 3]),
        (np.zeros(4, dtype=bool), []),
    ],
    ids=repr,
)
def test_part_has_the_rows_of_everything(
    backend: Backend, same_place: SamePlace, rows: Any, positions: list[int]
) -> None:
    noise = np.arange(12.0).reshape(4, 3)
    values = np.random.default_rng(0).normal(size=(4, 3, 2))
    whole = PredictionSamples(
        backend(values), kind="value", weights=weights(), noise_variance=noise
    )
    part = whole[rows]
    assert len(part) == len(positions)
    same_place(part.values, whole.values)
    np.testing.assert_array_equal(_array.to_host(part.values), values[positions])
    np.testing.assert_array_equal(part.noise_variance, noise[positions])
    assert part.weights.tolist() == weights().tolist()
    assert len(whole) == 4


def test_part_keeps_noise_per_point_and_noise_of_all() -> None:
    per_point = PredictionSamples(np.ones((4, 3)), "value", noise_variance=np.arange(4.0))
    assert per_point[[3, 1]].noise_variance.tolist() == [3.0, 1.0]
    shared = PredictionSamples(np.ones((4, 3)), "value", noise_variance=0.5)
    assert shared[[3, 1]].noise_variance == 0.5


def test_part_keeps_the_number_of_classes() -> None:
    part = PredictionSamples(labels(), kind="label")[[1]]
    assert part.values.max() == 1
    assert part.n_classes == 3
    assert part.mean().tolist() == [[0.0, 1.0, 0.0]]


def test_part_by_an_array_of_the_backend(backend: Backend) -> None:
    samples = PredictionSamples(backend(probabilities()))
    part = samples[backend(np.array([2, 1]))]
    np.testing.assert_array_equal(_array.to_host(part.values), probabilities()[[2, 1]])


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (0, ValueError, r"boolean mask of length 4\. Got int64 of shape \(\)"),
        ([[0, 1]], ValueError, r"of shape \(1, 2\)"),
        ([True, False], ValueError, r"boolean mask of length 4\. Got bool of shape \(2,\)"),
        ([4], ValueError, r"The index must hold positions from 0 to 3 in the samples\. Got 4"),
        ([-1], ValueError, r"Got -1 in PredictionSamples"),
        ([0.0], TypeError, r"must hold integer positions"),
    ],
)
def test_part_by_a_wrong_index_raises(rows: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        PredictionSamples(probabilities())[rows]


def test_concatenate_rebuilds_what_was_cut(backend: Backend, same_place: SamePlace) -> None:
    values = np.random.default_rng(0).normal(size=(4, 3, 2))
    for noise in (None, 0.5, np.arange(4.0), np.arange(12.0).reshape(4, 3)):
        whole = PredictionSamples(backend(values), "value", weights=weights(), noise_variance=noise)
        joined = concatenate([whole[:1], whole[1:1], whole[1:]])
        same_place(joined.values, whole.values)
        np.testing.assert_array_equal(_array.to_host(joined.values), values)
        np.testing.assert_array_equal(joined.noise_variance, whole.noise_variance)
        assert joined.weights.tolist() == weights().tolist()
    assert concatenate([whole]) is whole


def test_concatenate_counts_the_classes_of_all_parts() -> None:
    parts = [PredictionSamples(labels()[[i]], kind="label") for i in range(4)]
    assert [part.n_classes for part in parts] == [3, 2, 3, 3]
    joined = concatenate(parts[1:])
    assert joined.n_classes == 3
    assert joined.mean()[1].tolist() == [1 / 3] * 3


def test_take_draws_takes_columns_and_rescales_weights(backend: Backend) -> None:
    values = np.random.default_rng(0).normal(size=(4, 3))
    noise = np.arange(12.0).reshape(4, 3)
    whole = PredictionSamples(backend(values), "value", weights=weights(), noise_variance=noise)
    part = whole.take_draws(np.array([0, 2]))
    np.testing.assert_array_equal(_array.to_host(part.values), values[:, [0, 2]])
    np.testing.assert_array_equal(part.noise_variance, noise[:, [0, 2]])
    np.testing.assert_allclose(part.weights, [2 / 3, 1 / 3], rtol=1e-15)
    assert whole.weights.tolist() == weights().tolist()
    per_point = PredictionSamples(values, "value", noise_variance=np.arange(4.0))
    assert per_point.take_draws(np.array([1])).noise_variance.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_take_draws_of_weight_zero_raises() -> None:
    samples = PredictionSamples(probabilities(), weights=[1.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="The 2 selected draws all have weight 0"):
        samples.take_draws(np.array([1, 2]))


def test_trusted_equals_the_checked_samples() -> None:
    for values, kind, classes in (
        (probabilities(), "proba", np.arange(5)),
        (labels(), "label", np.arange(3)),
        (np.ones((4, 3)), "value", None),
    ):
        checked = PredictionSamples(values, kind, classes=classes, weights=weights())
        trusted = PredictionSamples.trusted(values, kind, classes=classes, weights=weights())
        assert repr(trusted) == repr(checked)
        assert trusted.n_classes == checked.n_classes
        np.testing.assert_array_equal(trusted.mean(), checked.mean())
        assert not trusted.values.flags.writeable
        assert values.flags.writeable


# Means and labels


def test_mean_of_probabilities_is_the_literal_average(
    backend: Backend, same_place: SamePlace
) -> None:
    values = probabilities()
    for shares in (None, weights()):
        samples = PredictionSamples(backend(values), weights=shares)
        got = samples.mean()
        same_place(got, samples.values)
        expected = sum(
            w * values[:, k] for k, w in enumerate([1 / 3] * 3 if shares is None else shares)
        )
        np.testing.assert_allclose(_array.to_host(got), expected, rtol=1e-14)


def test_mean_is_float64_for_float32(backend: Backend) -> None:
    samples = PredictionSamples(backend(probabilities().astype(np.float32)))
    assert samples.mean().dtype == _array.namespace(samples.values).float64


def test_mean_of_labels_is_the_vote_fraction(backend: Backend, same_place: SamePlace) -> None:
    samples = PredictionSamples(backend(labels()), kind="label", classes=list("abcd"))
    got = samples.mean()
    same_place(got, samples.values)
    expected = np.array([[1, 0, 2, 0], [0, 3, 0, 0], [1, 1, 1, 0], [1, 0, 2, 0]]) / 3
    np.testing.assert_allclose(_array.to_host(got), expected, rtol=1e-14)
    weighted = PredictionSamples(backend(labels()), kind="label", weights=weights())
    expected = [[0.5, 0, 0.5], [0, 1, 0], [0.5, 0.25, 0.25], [0.25, 0, 0.75]]
    np.testing.assert_allclose(_array.to_host(weighted.mean()), expected, rtol=1e-14)


def test_mean_of_short_codes_does_not_wrap_around() -> None:
    codes = np.array([[0, 44, 255]], dtype=np.uint8)
    got = PredictionSamples(codes, kind="label", classes=np.arange(300)).mean()
    assert got.shape == (1, 300)
    assert np.flatnonzero(got).tolist() == [0, 44, 255]


@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 2)])
def test_mean_of_values_keeps_the_targets(backend: Backend, shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).normal(size=shape)
    plain = PredictionSamples(backend(values), kind="value")
    np.testing.assert_allclose(_array.to_host(plain.mean()), values.mean(axis=1), rtol=1e-13)
    weighted = PredictionSamples(backend(values), kind="value", weights=weights())
    expected = np.average(values, axis=1, weights=weights())
    np.testing.assert_allclose(_array.to_host(weighted.mean()), expected, rtol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sample_labels_equal_the_literal_walk(
    backend: Backend, same_place: SamePlace, dtype: Any
) -> None:
    values = probabilities(n_points=60).astype(dtype)
    uniforms = np.random.default_rng(1).random((60, 3))
    uniforms[0] = 0.0
    uniforms[1] = np.nextafter(1, 0)
    uniforms[2, 0] = float(values[2, 0, 0])
    uniforms.flags.writeable = False
    samples = PredictionSamples(backend(values))
    got = sample_labels(samples.values, uniforms)
    same_place(got, samples.values)
    assert got.dtype == _array.namespace(samples.values).int64
    np.testing.assert_array_equal(_array.to_host(got), literal_labels(values, uniforms))


def test_sample_labels_never_draw_a_class_of_probability_zero(backend: Backend) -> None:
    rng = np.random.default_rng(0)
    values = rng.random((50, 6, 5)) * (rng.random((50, 6, 5)) < 0.4)
    values[..., 3] += values.sum(axis=-1) == 0
    values /= values.sum(axis=-1, keepdims=True)
    edges = np.cumsum(values, axis=-1)
    samples = PredictionSamples(backend(values))
    host = _array.to_host(samples.values)
    for uniforms in (
        np.zeros((50, 6)),
        np.full((50, 6), np.nextafter(1, 0)),
        *np.moveaxis(np.minimum(edges, np.nextafter(1, 0)), -1, 0),
    ):
        drawn = _array.to_host(sample_labels(samples.values, uniforms))
        assert np.take_along_axis(host, drawn[..., None], axis=-1).min() > 0


def test_sample_labels_of_hard_probabilities_are_the_classes(backend: Backend) -> None:
    samples = PredictionSamples(backend(np.eye(4)[labels()]))
    for u in (0.0, 0.5, np.nextafter(1, 0)):
        drawn = sample_labels(samples.values, np.full((4, 3), u))
        np.testing.assert_array_equal(_array.to_host(drawn), labels())


def test_sample_labels_follow_the_probabilities() -> None:
    values = np.broadcast_to(np.array([0.2, 0.0, 0.5, 0.3]), (1, 10_000, 4))
    uniforms = ((np.arange(10_000) + 0.5) / 10_000)[None]
    counts = np.bincount(sample_labels(PredictionSamples(values).values, uniforms)[0], minlength=4)
    np.testing.assert_allclose(counts, [2000, 0, 5000, 3000], atol=1)


def test_means_and_labels_stay_on_the_device(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    proba = PredictionSamples(backend(probabilities()), weights=weights())
    codes = PredictionSamples(backend(labels()), kind="label", weights=weights())

    def refuse(x: Any) -> np.ndarray:
        raise AssertionError("values left their device")

    monkeypatch.setattr(_array, "to_host", refuse)
    for samples in (proba, codes, proba[1:]):
        assert samples.mean().shape == (len(samples), samples.n_classes)
    assert sample_labels(proba.values, np.zeros((4, 3))).shape == (4, 3)
