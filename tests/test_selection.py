"""best_k on its own: comparisons with a plain sort, exact scores, ties, backends."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sklearn_ical.selection import best_k

Backend = Callable[[np.ndarray], Any]


def sorted_best(exact: list[Any], allowed: np.ndarray, k: int) -> list[int]:
    """Return the k best allowed positions, ties to the lowest, by Python's sort."""
    places = np.flatnonzero(allowed).tolist()
    return sorted(places, key=lambda place: (-exact[place], place))[:k]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("levels", [1, 2, 5, 1000])
def test_best_k_equals_a_sort_on_every_backend(levels: int, dtype: str, backend: Backend) -> None:
    rng = np.random.default_rng(levels)
    for n in (1, 2, 7, 30):
        values = rng.integers(-levels, levels, size=n).astype(dtype) / 4
        values[rng.random(n) < 0.3] = -np.inf
        values[rng.integers(n)] = 0.25
        allowed = values > -np.inf
        for k in range(1, int(allowed.sum()) + 1):
            picks = best_k(backend(values), k)
            assert picks.positions.tolist() == sorted_best(values.tolist(), allowed, k)
            assert picks.positions.dtype == np.intp
            same = len(set(values[allowed].tolist())) == 1
            assert picks.all_equal == (same and allowed.sum() > k)


def test_best_k_lets_exact_scores_overrule_near_equal_utilities(backend: Backend) -> None:
    rng = np.random.default_rng(0)
    for n, k in [(5, 1), (40, 1), (40, 7), (200, 50)]:
        exact = rng.integers(0, 20, size=n)  # many ties
        error = 0.3
        noisy = exact + rng.uniform(-error, error, size=n)
        noisy[rng.random(n) < 0.2] = -np.inf
        called: list[np.ndarray] = []

        def score(where: np.ndarray, exact: Any = exact, called: Any = called) -> np.ndarray:
            called.append(where)
            return exact[where]

        picks = best_k(backend(noisy), k, tolerance=4 * error, exact=score)
        assert picks.positions.tolist() == sorted_best(exact.tolist(), noisy > -np.inf, k)
        (where,) = called
        assert isinstance(where, np.ndarray)
        threshold = np.sort(noisy)[-k] - 4 * error
        np.testing.assert_array_equal(where, np.flatnonzero(noisy >= threshold))
        np.testing.assert_array_equal(picks.shortlist, where)
        np.testing.assert_array_equal(picks.scores, exact[where])


def test_best_k_takes_a_numpy_scalar_as_tolerance(backend: Backend) -> None:
    tolerance: Any = 4 * np.finfo(np.float64).eps
    values = np.array([0.5, 2.0, 1.0])
    picks = best_k(backend(values), 2, tolerance=tolerance, exact=values.__getitem__)
    assert picks.positions.tolist() == [1, 2]


def test_best_k_reverses_the_order_of_near_equals() -> None:
    values = np.array([1.0, 1.0 + 1e-9, 1.0 + 2e-9, 0.0])
    exact = np.array([3, 2, 1, 100])
    picks = best_k(values, 2, tolerance=1e-8, exact=lambda where: exact[where])
    assert picks.positions.tolist() == [0, 1]
    assert best_k(values, 2).positions.tolist() == [2, 1]


def test_best_k_orders_fractions_and_large_integers() -> None:
    close = [Fraction(1, 3), Fraction(10**30, 3 * 10**30 - 1), Fraction(1, 3)]
    large = [2**70, 2**70 + 1, 2**70]
    for scores in (close, large):
        exact = np.array(scores, dtype=object)
        picks = best_k(np.ones(3), 3, tolerance=0.0, exact=lambda where, exact=exact: exact[where])
        assert picks.positions.tolist() == [1, 0, 2]
        assert not picks.all_equal


def test_best_k_is_all_equal_only_if_every_allowed_position_is() -> None:
    values = np.array([1.0, -np.inf, 1.0, 1.0])
    assert best_k(values, 1).all_equal
    assert best_k(values, 2).all_equal
    assert not best_k(values, 3).all_equal  # nothing was left out
    assert not best_k(np.array([1.0, 1.0, 0.0]), 1).all_equal  # equals at the top only
    tied = np.zeros(4, dtype=int)
    assert best_k(values + np.arange(4) / 10, 1, tolerance=2.0, exact=tied.__getitem__).all_equal
    unequal = np.array([0, 0, 0, 1])
    assert not best_k(values, 1, tolerance=2.0, exact=unequal.__getitem__).all_equal


def test_best_k_leaves_its_input_alone() -> None:
    values = np.array([3.0, 1.0, 2.0])
    values.flags.writeable = False
    assert best_k(values, 2).positions.tolist() == [0, 2]
    np.testing.assert_array_equal(values, [3.0, 1.0, 2.0])
