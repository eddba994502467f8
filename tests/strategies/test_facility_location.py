"""Facility location: literal greedy, enumeration of all batches, ties, backends and refusals."""

import itertools
import math
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from sklearn_ical.exceptions import BatchClippedWarning, EqualUtilitiesWarning
from sklearn_ical.objectives._coverage import ConcaveCoverage, MatrixCoverage
from sklearn_ical.strategies import facility_location

Backend = Callable[[np.ndarray], Any]


def value(similarity: np.ndarray, batch: Any) -> float:
    """Evaluate the definition of f."""
    return math.fsum(max((row[s] for s in batch), default=0.0) for row in similarity.tolist())


def literal_greedy(similarity: np.ndarray, size: int) -> tuple[list[int], list[float]]:
    """Scan all candidates in each step; gains within 1e-9 of the best are ties."""
    batch: list[int] = []
    gains: list[float] = []
    for _ in range(size):
        now = value(similarity, batch)
        free = [s for s in range(similarity.shape[1]) if s not in batch]
        added = [value(similarity, [*batch, s]) - now for s in free]
        best = next(i for i, gain in enumerate(added) if gain >= max(added) - 1e-9)
        batch.append(free[best])
        gains.append(added[best])
    return batch, gains


def test_points_on_a_line_are_covered_as_computed_by_hand() -> None:
    x = np.array([0.0, 1.0, 2.0, 10.0])
    similarity = 100 - (x[:, None] - x) ** 2
    indices, gains = facility_location(similarity, 2)
    assert indices.dtype == np.intp
    assert gains.dtype == np.float64
    assert indices.tolist() == [2, 3]
    assert gains.tolist() == [331.0, 64.0]  # f = 395
    with pytest.warns(EqualUtilitiesWarning):  # of 0 and 1 at the third pick
        indices, gains = facility_location(similarity, 4)
    assert indices.tolist() == [2, 3, 0, 1]
    assert gains.tolist() == [331.0, 64.0, 4.0, 1.0]


@pytest.mark.filterwarnings("ignore::sklearn_ical.exceptions.EqualUtilitiesWarning")
@pytest.mark.parametrize("chunk", [None, 1, 7])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lazy_picks_equal_literal_greedy(dtype: str, chunk: int | None, backend: Backend) -> None:
    rng = np.random.default_rng(0)
    for n_reference, n_candidates in ((12, 30), (150, 90), (1, 10)):
        similarity = rng.gamma(0.5, size=(n_reference, n_candidates)).astype(dtype)
        expected, worth = literal_greedy(similarity.astype(float), 9)
        with patch(
            "sklearn_ical._array.chunk_rows",
            lambda row_bytes: chunk or max(1, 2**24 // row_bytes),
        ):
            indices, gains = facility_location(backend(similarity), 9)
        np.testing.assert_allclose(gains, worth, rtol=1e-10, atol=1e-9)
        positive = np.array(worth) > 1e-9
        np.testing.assert_array_equal(indices[positive], np.array(expected)[positive])
        assert len(set(indices.tolist())) == 9


def test_greedy_reaches_its_share_of_the_best_batch() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        similarity = rng.gamma(0.3, size=(10, 10))
        best = max(value(similarity, batch) for batch in itertools.combinations(range(10), 3))
        indices, gains = facility_location(similarity, 3)
        assert gains.sum() == pytest.approx(value(similarity, indices.tolist()), rel=1e-12)
        assert (1 - 1 / math.e) * best <= gains.sum() <= best * (1 + 1e-12)


def test_equal_columns_are_not_both_chosen_while_another_adds_something() -> None:
    rng = np.random.default_rng(2)
    few = rng.random((40, 6))
    of = rng.integers(0, 6, size=60)
    with pytest.warns(EqualUtilitiesWarning):
        indices, gains = facility_location(few[:, of], 10)
    first = [np.flatnonzero(of == k)[0] for k in of[indices[:6]]]
    assert sorted(of[indices[:6]].tolist()) == list(range(6))
    assert indices[:6].tolist() == first  # the lowest of the copies
    assert gains[6:].tolist() == [0.0] * 4
    left = np.setdiff1d(np.arange(60), indices[:6])
    assert indices[6:].tolist() == left[:4].tolist()


def test_sums_that_are_equal_in_another_order_tie_to_the_lowest_column(backend: Backend) -> None:
    rng = np.random.default_rng(3)
    column = rng.random(200)
    similarity = np.stack([rng.permutation(column) for _ in range(30)], axis=1)
    similarity[:, 0] = 0.0
    indices, _ = facility_location(backend(similarity))
    assert indices.tolist() == [1]


def test_columns_that_stand_for_each_other_tie_to_the_lowest() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        similarity = np.zeros((4, 4))
        own, other = 1 + rng.random(), rng.random()
        cover = rng.random(2) * other
        similarity[2:, 2:] = [[own, other], [other, own]]  # either adds own + other - cover
        similarity[:, 0] = [9.0, 9.0, *cover]
        assert facility_location(similarity, 2)[0].tolist() == [0, 2]


def test_integers_and_wide_ranges_are_taken() -> None:
    similarity = np.array([[3, 0, 200], [250, 1, 0]], dtype=np.uint8)
    indices, gains = facility_location(similarity, 3)
    assert indices.tolist() == [0, 2, 1]
    assert gains.tolist() == [253.0, 197.0, 0.0]
    indices, gains = facility_location(similarity.astype(float) * 1e300, 2)
    assert indices.tolist() == [0, 2]


def test_memory_order_decides_nothing() -> None:
    similarity = np.random.default_rng(6).random((50, 60))
    expected = facility_location(similarity, 10)
    wide = np.repeat(np.repeat(similarity, 2, axis=0), 2, axis=1)[::2, ::2]
    for other in (np.asfortranarray(similarity), wide):
        indices, gains = facility_location(other, 10)
        assert indices.tolist() == expected[0].tolist()
        assert gains.tolist() == expected[1].tolist()


@pytest.mark.filterwarnings("ignore::sklearn_ical.exceptions.EqualUtilitiesWarning")
def test_more_picks_than_candidates_are_clipped_and_input_is_left_alone() -> None:
    similarity = np.random.default_rng(4).random((5, 4))
    before = similarity.copy()
    similarity.flags.writeable = False
    with pytest.warns(BatchClippedWarning, match="facility_location"):
        indices, _ = facility_location(similarity, 9)
    assert sorted(indices.tolist()) == [0, 1, 2, 3]
    np.testing.assert_array_equal(similarity, before)


@pytest.mark.parametrize(
    ("similarity", "error", "message"),
    [
        ([[1.0]], TypeError, r"similarity must be an array .* Got list in facility_location"),
        (np.ones((2, 2), dtype=complex), TypeError, r"real numbers. Got dtype complex128"),
        (np.ones(3), ValueError, r"shape \(n_reference, n_candidates\).*Got shape \(3,\)"),
        (np.ones((0, 3)), ValueError, r"at least one of each. Got shape \(0, 3\)"),
        (np.array([[1.0, -0.5]]), ValueError, r"finite and >= 0. Got -0.5 in"),
        (np.array([[1, -2]]), ValueError, r"finite and >= 0. Got -2.0 in"),
        (np.array([[1.0, np.nan]]), ValueError, r"Got NaN or infinity in facility_location"),
        (np.array([[1.0, np.inf]]), ValueError, r"Got NaN or infinity in facility_location"),
    ],
)
def test_what_is_no_similarity_is_refused(similarity: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        facility_location(similarity)


@pytest.mark.parametrize("size", [0, -1, True, 2.0])
def test_batch_size_is_an_integer_of_at_least_one(size: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="batch_size must be an integer >= 1"):
        facility_location(np.ones((2, 2)), size)


def test_similarity_that_overflows_is_refused() -> None:
    with pytest.raises(ValueError, match=r"similarity must not overflow .*; divide it by"):
        facility_location(np.full((4, 3), 1e308), 2)


def test_sums_within_the_errors_of_their_entries_tie() -> None:
    columns, error = np.array([[1.0, 2.0], [1.0, 2.1], [1.0, 3.0]]), np.array([0.125, 0.125])
    sums = MatrixCoverage(columns, share=0.5, error=error).exact(np.arange(3))
    assert sums.tolist() == [1.55, 1.55, 2.0]


def test_errors_of_entries_that_are_zero_count_for_nothing() -> None:
    columns = np.array([[4.0, 0.0], [4.1, 0.0]])
    sure = ConcaveCoverage(columns, 0.5, error=np.array([0.0, 1.0])).exact(np.arange(2))
    assert sure == pytest.approx([2.0, math.sqrt(4.1)])
    unsure = ConcaveCoverage(columns, 0.5, error=np.array([1.0, 0.0])).exact(np.arange(2))
    assert unsure == pytest.approx([math.sqrt(4.1), math.sqrt(4.1)])
