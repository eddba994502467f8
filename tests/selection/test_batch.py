"""Lazy greedy in a batch: `refresh_bounds` and `take` pick what an evaluation of all would."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sklearn_ical.pool import Pool
from sklearn_ical.selection import Batch
from sklearn_ical.selection._batch import per_cost

N_POINTS = 300


class Cover:
    """Facility location on random integers: gains never grow, and many of them tie."""

    def __init__(self, seed: int, n_candidates: int) -> None:
        rng = np.random.default_rng(seed)
        self.similarity = rng.integers(0, 12, size=(20, n_candidates)).astype(np.float64)
        self.cover = np.zeros((20, 1))
        self.asked: list[np.ndarray] = []

    def gains(self, slots: np.ndarray) -> np.ndarray:
        self.asked.append(slots)
        return np.maximum(self.similarity[:, slots] - self.cover, 0).sum(axis=0)

    def add(self, slot: int) -> None:
        self.cover = np.maximum(self.cover, self.similarity[:, [slot]])


def pool_of(candidates: np.ndarray, batch_size: int, **given: Any) -> Pool:
    """Return a call that allows these candidates."""
    return Pool(
        caller="MyQuery.select",
        n_points=N_POINTS,
        candidates=candidates,
        requested=batch_size,
        batch_size=batch_size,
        root=0,
        **given,
    )


def run_lazily(pool: Pool, cover: Cover) -> tuple[Batch, list[float]]:
    """Return the batch that lazy greedy makes, and the best gain of each step."""
    batch, bests = Batch(pool), []
    bounds = np.full(len(pool.candidates), np.inf)
    while not batch.full:
        bests.append(batch.refresh_bounds(bounds, cover.gains, errors=2.5e-10))
        batch.take(bounds, errors=2.5e-10)
        assert batch.slots[-1] == np.searchsorted(pool.candidates, batch.chosen[-1])
        cover.add(batch.slots[-1])
    return batch, bests


def greedy(pool: Pool, cover: Cover) -> tuple[list[int], list[float]]:
    """Pick with a loop that evaluates every candidate in every step."""
    chosen: list[int] = []
    bests: list[float] = []
    left = pool.budget
    costs = np.ones(len(pool.candidates)) if pool.costs is None else pool.costs
    while len(chosen) < pool.batch_size:
        gains = cover.gains(np.arange(len(pool.candidates)))
        open_ = ~np.isin(pool.candidates, chosen) & (costs <= left)
        if not open_.any():
            break
        per_price = np.where(open_, per_cost(gains, costs), -np.inf)
        slot = int(np.argmax(per_price))
        bests.append(float(gains[open_].max()))
        chosen.append(int(pool.candidates[slot]))
        left -= costs[slot]
        cover.add(slot)
    return chosen, bests


@pytest.fixture(params=[None, 7.0, np.inf], ids=["no costs", "a budget", "costs"])
def bill(request: Any) -> Callable[[int], dict[str, Any]]:
    """Make the costs of some candidates, and a budget."""

    def make(n: int) -> dict[str, Any]:
        if request.param is None:
            return {}
        return {"costs": np.random.default_rng(1).uniform(0.5, 3, n), "budget": request.param}

    return make


@pytest.mark.parametrize("seed", range(8))
def test_lazy_picks_equal_those_of_an_evaluation_of_every_candidate(
    seed: int, bill: Callable[[int], dict[str, Any]]
) -> None:
    candidates = np.sort(np.random.default_rng(seed).choice(N_POINTS, 250, replace=False))
    pool = pool_of(candidates, 12, **bill(len(candidates)))
    expected, bests = greedy(pool, Cover(seed, len(candidates)))
    lazy = Cover(seed, len(candidates))
    batch, found = run_lazily(pool, lazy)
    assert batch.chosen == expected
    if pool.costs is None:
        assert found == bests
    n_evaluated = sum(map(len, lazy.asked))
    assert len(candidates) <= n_evaluated < len(candidates) * len(expected)


def test_lazy_rows_of_utilities_hold_every_candidate(
    bill: Callable[[int], dict[str, Any]],
) -> None:
    candidates = np.arange(0, N_POINTS, 2)
    pool = pool_of(candidates, 5, want_utilities=True, **bill(len(candidates)))
    cover = Cover(0, len(candidates))
    selection = run_lazily(pool, cover)[0].selection()
    assert list(selection.positions) == greedy(pool, Cover(0, len(candidates)))[0]
    again = Cover(0, len(candidates))
    rows: Any = selection.rows
    costs = np.ones(len(candidates)) if pool.costs is None else pool.costs
    for row, pick in zip(rows, selection.positions, strict=True):
        shown = ~np.isnan(row[candidates])
        expected = per_cost(again.gains(np.arange(len(candidates))), costs)
        np.testing.assert_allclose(row[candidates][shown], expected[shown])
        assert np.nanargmax(row) == pick
        again.add(int(np.searchsorted(candidates, pick)))


def test_later_steps_evaluate_few_candidates() -> None:
    cover = Cover(3, N_POINTS)
    cover.similarity[:, :40] *= 10  # so that the others never come near the best
    run_lazily(pool_of(np.arange(N_POINTS), 2), cover)
    assert [len(slots) for slots in cover.asked] == [64, 128, 108, 64]


def test_bounds_within_their_errors_of_the_best_are_evaluated_too() -> None:
    gains = np.linspace(1, 0, 200)
    for errors, expected in ((0.0, 64), (0.125, 100)):
        batch = Batch(pool_of(np.arange(200), 1))
        bounds, asked = gains - 1e-3, []

        def exact(slots: np.ndarray, asked: list[int] = asked) -> np.ndarray:
            asked.extend(slots)
            return gains[slots]

        assert batch.refresh_bounds(bounds, exact, errors=errors) == 1.0
        assert len(asked) == expected


def test_the_best_gain_is_minus_infinity_where_nothing_fits() -> None:
    batch = Batch(pool_of(np.arange(4), 2, costs=np.full(4, 2.0), budget=2.0))
    batch.take(np.arange(4.0))
    assert batch.full
    assert batch.refresh_bounds(np.full(4, np.inf), lambda slots: np.ones(len(slots))) == -np.inf
