"""Precomputed predictions as a sampler: arrays and PredictionSamples of exactly their rows."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sklearn_ical import PredictionSamples
from sklearn_ical._array import to_host
from sklearn_ical.samplers import Draws, get_sampler
from sklearn_ical.samplers._base import evaluate_in_chunks


def probabilities(n_points: int = 6, n_draws: int = 5, n_classes: int = 3) -> np.ndarray:
    weights = np.random.default_rng(0).uniform(size=(n_points, n_draws, n_classes))
    return weights / weights.sum(axis=2, keepdims=True)


def test_samples_come_back_for_their_rows() -> None:
    samples = PredictionSamples(probabilities(), classes=["a", "b", "c"], weights=np.full(5, 0.2))
    draws = get_sampler(samples).draw()
    assert draws(np.zeros((6, 2))) is samples
    assert isinstance(draws, Draws)
    assert (draws.n_draws, draws.kind, draws.joint) == (5, "proba", True)
    assert draws.classes.tolist() == ["a", "b", "c"]
    assert draws.weights.tolist() == [0.2] * 5


def test_arrays_are_probabilities_of_their_rows(
    backend: Callable[[np.ndarray], Any], same_place: Callable[[Any, Any], None]
) -> None:
    values = probabilities()
    array = backend(values)
    samples = get_sampler(array).sample(np.zeros((6, 2)))
    same_place(samples.values, array)
    np.testing.assert_array_equal(to_host(samples.values), values)
    assert samples.kind == "proba"


@pytest.mark.parametrize("n_rows", [5, 7, 0])
@pytest.mark.parametrize("wrap", [PredictionSamples, lambda values: values])
def test_other_numbers_of_rows_are_refused(wrap: Any, n_rows: int) -> None:
    draws = get_sampler(wrap(probabilities())).draw()
    message = f"precomputed predictions belong to 6 rows. Got {n_rows} rows".replace(".", r"\.")
    with pytest.raises(ValueError, match=message):
        draws(np.zeros((n_rows, 2)))


def test_rows_must_match_in_torch_too() -> None:
    torch = pytest.importorskip("torch")
    draws = get_sampler(torch.tensor(probabilities())).draw()
    assert draws(torch.zeros(6, 2)).n_points == 6
    with pytest.raises(ValueError, match=r"belong to 6 rows\. Got 4 rows"):
        draws(torch.zeros(4, 2))


def test_no_chunk_of_the_rows_is_answered() -> None:
    draws = get_sampler(probabilities()).draw()
    assert [part.n_points for part in evaluate_in_chunks(draws, np.zeros((6, 2)), 6)] == [6]
    with pytest.raises(ValueError, match=r"belong to 6 rows\. Got 4 rows"):
        list(evaluate_in_chunks(draws, np.zeros((6, 2)), 4))


@pytest.mark.parametrize("kind", ["label", "value"])
def test_samples_of_other_kinds_keep_their_kind(kind: str) -> None:
    values = np.random.default_rng(1).integers(0, 3, size=(6, 5))
    samples = PredictionSamples(values, kind)
    assert get_sampler(samples).sample(range(6)) is samples
    assert get_sampler(samples).draw().kind == kind


def test_fewer_draws_are_seeded_columns_in_order() -> None:
    values = probabilities()
    weights = np.array([0.1, 0.3, 0.2, 0.15, 0.25])
    sampler = get_sampler(PredictionSamples(values, weights=weights))
    seen = set()
    for seed in range(8):
        part = sampler.sample(range(6), n_draws=3, random_state=seed)
        found = [
            next(j for j in range(5) if (values[:, j] == part.values[:, k]).all()) for k in range(3)
        ]
        assert found == sorted(set(found))
        np.testing.assert_allclose(part.weights, weights[found] / weights[found].sum(), rtol=1e-15)
        again = sampler.sample(range(6), n_draws=3, random_state=seed)
        np.testing.assert_array_equal(again.values, part.values)
        seen.add(tuple(found))
    assert len(seen) > 2


@pytest.mark.parametrize(
    ("n_draws", "error", "message"),
    [
        (6, ValueError, r"n_draws must be at most the number of members, 5\. Got 6"),
        (0, ValueError, r"n_draws must be an integer >= 1\. Got 0 in SamplesSampler\.draw"),
        (True, TypeError, r"n_draws must be an integer >= 1\. Got True"),
        (2.0, TypeError, r"n_draws must be an integer >= 1\. Got 2\.0"),
    ],
)
def test_impossible_numbers_of_draws_are_refused(n_draws: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        get_sampler(probabilities()).draw(n_draws)


def test_draws_are_picklable() -> None:
    draws = get_sampler(probabilities()).draw(3, random_state=0)
    copy = pickle.loads(pickle.dumps(draws))
    np.testing.assert_array_equal(copy(range(6)).values, draws(range(6)).values)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.full((6, 3), 1 / 3), r"Got shape \(6, 3\)\. A single model's .* pass values\[:, None"),
        (np.full((6, 5, 3), 0.5), r"sum to 1 over the last axis"),
        (np.full((6, 5, 2), np.nan), r"must be finite"),
        (np.full((6, 5, 3, 2), 0.5), r"Got shape \(6, 5, 3, 2\)"),
    ],
)
def test_arrays_that_are_no_samples_are_refused(array: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        get_sampler(array)
