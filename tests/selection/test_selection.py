"""best_k and best_per_cost: comparisons with plain sorts, exact scores, ties, backends."""

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sklearn_ical.selection._batch import best_k, best_per_cost, merge_ties, per_cost

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


def test_per_cost_ascends_in_utilities_and_falls_in_costs() -> None:
    utilities = np.array([-2.0, -1.0, -1e-9, 0.0, 1e-9, 0.5, 3.0])
    costs = np.array([0.25, 1.0, 3.0, 50.0])
    table = np.stack([per_cost(utilities, np.full(7, c)) for c in costs], axis=1)
    assert (np.diff(table, axis=0) > 0).all()
    assert (np.diff(table, axis=1) <= 0).all()
    np.testing.assert_array_equal(table[:, 1], utilities)
    np.testing.assert_array_equal(table[3], 0.0)
    np.testing.assert_array_equal(table[0], [-0.5, -2.0, -6.0, -100.0])
    np.testing.assert_array_equal(table[6], [12.0, 3.0, 1.0, 0.06])
    assert per_cost(np.array([-np.inf]), costs[:1]).tolist() == [-np.inf]


def walked(exact: list[Any], costs: list[float], allowed: Any, k: int, budget: float) -> list[int]:
    """Return the picks of a walk down all positions in the order of exact utilities per cost."""

    def worth(place: int) -> Fraction:
        utility, cost = Fraction(exact[place]), Fraction(costs[place])
        return utility / cost if utility > 0 else utility * cost

    picks: list[int] = []
    for place in sorted(np.flatnonzero(allowed).tolist(), key=lambda p: (-worth(p), p)):
        if len(picks) < k and costs[place] <= budget:
            picks.append(place)
            budget -= costs[place]
    return picks


@pytest.mark.parametrize("budget", [0.25, 1.0, 4.5, 20.0, np.inf])
def test_best_per_cost_equals_a_walk_down_the_exact_ratios(budget: float, backend: Backend) -> None:
    rng = np.random.default_rng(0)
    prices = [0.25, 0.5, 1.0, 2.0, 3.0, 7.0]
    for n, k, error in itertools.product((1, 7, 60), (1, 3, 40), (0.0, 0.3, 3.0)):
        exact = rng.integers(-6, 13, size=n)  # many ratios are equal
        noisy = exact + rng.uniform(-error, error, size=n)
        noisy[rng.random(n) < 0.2] = -np.inf
        noisy[0] = exact[0]
        costs = rng.choice(prices, size=n)
        costs[0] = 0.25
        for scores in (exact, exact.astype(float), exact * 2**59, exact.astype(object)):
            picks = best_per_cost(
                backend(noisy),
                k,
                costs,
                budget=budget,
                tolerance=2 * error,  # as little as can do: one bound for each of two compared
                exact=lambda where, scores=scores: scores[where],
            )
            expected = walked(exact.tolist(), costs.tolist(), noisy > -np.inf, k, budget)
            assert picks.positions.tolist() == expected
            assert picks.positions.dtype == np.intp
            paid = np.cumsum([0.0, *costs[expected]])[:-1]
            np.testing.assert_array_equal(picks.left, budget - paid)
            np.testing.assert_array_equal(picks.shortlist, np.unique(picks.shortlist))
            assert picks.scores.dtype == np.float64
            worth = per_cost(scores.astype(float), costs)
            np.testing.assert_allclose(picks.scores, worth[picks.shortlist], rtol=1e-15)


def test_best_per_cost_equals_a_walk_for_the_roughest_utilities() -> None:
    rng = np.random.default_rng(2)
    for _ in range(1500):
        n, k, error = int(rng.integers(2, 15)), int(rng.integers(1, 6)), float(rng.choice([1, 5]))
        exact = rng.integers(-3, 10, size=n)
        rough = exact + error * rng.choice([-1.0, 1.0], size=n)  # as wrong as they may be
        costs = rng.choice([0.125, 0.5, 1.0, 3.0, 8.0], size=n)
        budget = float(rng.choice([2.0, 8.0, 11.125, np.inf]))
        picks = best_per_cost(
            rough, k, costs, budget=budget, tolerance=2 * error, exact=exact.__getitem__
        )
        assert picks.positions.tolist() == walked(
            exact.tolist(), costs.tolist(), np.ones(n), k, budget
        )


def test_best_per_cost_of_one_price_equals_best_k(backend: Backend) -> None:
    rng = np.random.default_rng(1)
    for k, price in itertools.product((1, 5, 20), (1.0, 0.1, 3.0)):
        values = rng.integers(0, 9, size=20) / 8
        costs = np.full(20, price)
        expected = best_k(backend(values), k)
        picks = best_per_cost(backend(values), k, costs)
        assert picks.positions.tolist() == expected.positions.tolist()
        assert picks.all_equal == expected.all_equal


def test_best_per_cost_is_all_equal_only_if_every_allowed_ratio_is() -> None:
    utilities, costs = np.array([1.0, 2.0, -np.inf, 3.0]), np.array([1.0, 2.0, 5.0, 3.0])
    assert best_per_cost(utilities, 2, costs).all_equal
    assert not best_per_cost(utilities, 3, costs).all_equal  # nothing was left out
    assert not best_per_cost(utilities, 2, np.ones(4)).all_equal
    assert not best_per_cost(utilities, 1, costs, budget=2.5).all_equal  # one was not looked at
    assert best_per_cost(np.zeros(3), 1, costs[:3]).all_equal


def test_best_per_cost_picks_nothing_where_nothing_fits() -> None:
    for utilities, budget in ((np.ones(3), 0.5), (np.full(3, -np.inf), 10.0)):
        picks = best_per_cost(utilities, 2, np.ones(3), budget=budget, exact=utilities.take)
        assert picks.positions.tolist() == picks.left.tolist() == picks.scores.tolist() == []
        assert picks.positions.dtype == picks.shortlist.dtype == np.intp
        assert not picks.all_equal


def test_best_per_cost_leaves_its_inputs_alone() -> None:
    values, costs = np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 0.5])
    values.flags.writeable = costs.flags.writeable = False
    assert best_per_cost(values, 2, costs, budget=1.5).positions.tolist() == [2, 0]


def test_best_per_cost_compares_quotients_of_float64() -> None:
    merged = 2**60 + np.arange(5)  # equal as floats
    for scores in (merged, merged.astype(object)):
        picks = best_per_cost(
            np.full(5, 1.0), 5, np.full(5, 3.0), tolerance=1.0, exact=scores.__getitem__
        )
        assert picks.positions.tolist() == [0, 1, 2, 3, 4]
        assert len(set(picks.scores.tolist())) == 1
    for seed in range(20):  # equal ratios of integers that floats hold
        one = int(np.random.default_rng(seed).integers(2**40, 2**48))
        costs = np.array([5.0, 3.0, 1.0, 7.0])
        scores = np.array([5 * one, 3 * one, one, 7 * one])
        tolerance: Any = 2.0**12
        picks = best_per_cost(
            scores.astype(float), 4, costs, tolerance=tolerance, exact=scores.take
        )
        assert picks.positions.tolist() == [0, 1, 2, 3]
        assert len(set(picks.scores.tolist())) == 1
    losses = np.array([-3, -1, -2])
    picks = best_per_cost(losses.astype(float), 3, np.array([2.0, 6.0, 1.0]), exact=losses.take)
    assert picks.positions.tolist() == [2, 0, 1]


def merged_literally(values: list[float], errors: list[float]) -> list[float]:
    """Walk down the values; a run goes on with near neighbors that its largest value can reach."""
    merged = list(values)
    head, last = -1, -1
    for i in sorted(range(len(values)), key=lambda i: -values[i]):
        near = head >= 0 and values[last] - values[i] <= errors[last] + errors[i]
        if not near or values[head] - values[i] > 2 * max(errors):
            head = i
        merged[i], last = values[head], i
    return merged


def test_merge_ties_joins_neighbors_within_their_errors() -> None:
    values = np.array([1.0, 3.0, 1.0 + 2e-9, 1.0 + 4e-9, 2.0])
    values.flags.writeable = False
    merged = merge_ties(values, 2.5e-9)
    np.testing.assert_array_equal(merged, [values[3], 3.0, values[3], values[3], 2.0])
    errors = np.array([1.5e-9, 0.0, 1e-9, 0.5e-9, 0.0])  # 2 and 3 are apart, 0 and 2 are not
    np.testing.assert_array_equal(
        merge_ties(values, errors), [values[2], 3.0, values[2], values[3], 2.0]
    )
    np.testing.assert_array_equal(merge_ties(values, 0.0), values)
    assert merge_ties(np.empty(0), 1.0).shape == (0,)


@pytest.mark.parametrize(
    ("values", "errors", "expected"),
    [
        ([1.0, 0.9, 0.8, 0.7], 0.06, [1.0, 1.0, 0.8, 0.8]),  # no run is longer than two errors
        ([0.7, 0.8, 0.9, 1.0], 0.06, [0.8, 0.8, 1.0, 1.0]),
        ([1.0, 1.0, 1.0], 0.0, [1.0, 1.0, 1.0]),
        ([1.0, 0.875, 0.75], [0.125, 0.0, 0.125], [1.0, 1.0, 1.0]),
        ([1.0, 0.875, 0.75], [0.125, 0.0, 0.0], [1.0, 1.0, 0.75]),
        ([1.0, 0.5, 0.25], [0.0, 0.0, 1.0], [1.0, 0.5, 0.5]),  # one large error is no other's
    ],
)
def test_merge_ties_does_not_chain(values: Any, errors: Any, expected: Any) -> None:
    assert merge_ties(np.array(values), np.asarray(errors)).tolist() == expected


def test_merge_ties_equals_a_walk_down_the_values() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 30):
        for _ in range(100):
            values = rng.integers(0, 40, size=n) / 32
            errors = rng.integers(0, 3, size=n) / 32
            assert merge_ties(values, errors).tolist() == merged_literally(
                values.tolist(), errors.tolist()
            )


def test_quotients_that_differ_by_rounding_alone_tie() -> None:
    costs = np.array([1.0, 0.25, 1.0])
    below, above = np.nextafter(4 / 21, 0), np.nextafter(4 / 21, 1)
    for first in (below, above):
        utilities = np.array([first, 1 / 21, 0.1])
        picks = best_per_cost(utilities, 2, costs, tolerance=4e-15, errors=1e-15)
        assert picks.positions.tolist() == [0, 1]
        assert picks.scores[0] == picks.scores[1]
    assert best_per_cost(np.array([below, 1 / 21, 0.1]), 2, costs).positions.tolist() == [1, 0]
