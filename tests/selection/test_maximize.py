"""maximize against a literal greedy loop, and Batch.take, for objectives of integers."""

import itertools
from typing import Any

import numpy as np
import pytest

from sklearn_ical.exceptions import EqualUtilitiesWarning
from sklearn_ical.pool import Pool
from sklearn_ical.selection import Batch, Objective, maximize
from sklearn_ical.selection._batch import per_cost

N_POINTS = 200


class Cover:
    """Facility location on random integers, over some positions: gains never grow."""

    submodular = True

    def __init__(self, seed: int, positions: np.ndarray, top: int = 12) -> None:
        similarity = np.random.default_rng(seed).integers(0, top, size=(60, N_POINTS))
        self.similarity = similarity[:, positions].astype(np.float64)
        self.cover = np.zeros((60, 1))
        self.evaluated: list[int] = []

    def gains(self, slots: np.ndarray) -> tuple[np.ndarray, Any]:
        assert (np.diff(slots) > 0).all()
        self.evaluated.append(len(slots))
        return np.maximum(self.similarity[:, slots] - self.cover, 0).sum(axis=0), 0.0

    def add(self, slot: int) -> None:
        self.cover = np.maximum(self.cover, self.similarity[:, [slot]])


class Pairs:
    """Sums over pairs of the batch: gains grow and fall, some are below 0."""

    submodular = False

    def __init__(self, seed: int, positions: np.ndarray) -> None:
        matrix = np.random.default_rng(seed).integers(-4, 6, size=(N_POINTS, N_POINTS))
        self.matrix = (matrix + matrix.T)[np.ix_(positions, positions)].astype(np.float64)
        self.total = np.diag(self.matrix).copy()

    def gains(self, slots: np.ndarray) -> tuple[np.ndarray, Any]:
        return self.total[slots], np.zeros(len(slots))

    def add(self, slot: int) -> None:
        self.total += self.matrix[slot]


class Farthest:
    """Squared distance to the nearest pick, and the norm before there is one, which is smaller."""

    def __init__(self, seed: int, positions: np.ndarray) -> None:
        X = np.random.default_rng(seed).integers(-9, 10, size=(N_POINTS, 3)).astype(np.float64)
        self.X = X[positions]
        self.nearest: Any = None

    @property
    def submodular(self) -> bool:
        return self.nearest is not None

    def gains(self, slots: np.ndarray) -> tuple[np.ndarray, Any]:
        numbers = (self.X**2).sum(axis=1) if self.nearest is None else self.nearest
        return numbers[slots], 0.0

    def add(self, slot: int) -> None:
        distance = ((self.X - self.X[slot]) ** 2).sum(axis=1)
        self.nearest = distance if self.nearest is None else np.minimum(self.nearest, distance)


OBJECTIVES = [Cover, Pairs, Farthest]
CANDIDATES = [np.arange(N_POINTS), np.arange(3, N_POINTS, 2)]


def pool_of(candidates: np.ndarray, batch_size: int, **options: Any) -> Pool:
    return Pool(
        caller="MyQuery.select",
        n_points=N_POINTS,
        candidates=candidates,
        requested=batch_size,
        batch_size=batch_size,
        root=0,
        **options,
    )


def limits_of(name: str, n: int) -> dict[str, Any]:
    """Return costs of candidates and a budget."""
    costs = np.random.default_rng(1).choice([0.5, 1.0, 2.0, 4.0], size=n)
    return {"none": {}, "costs": {"costs": costs}, "budget": {"costs": costs, "budget": 7.0}}[name]


def greedy(pool: Pool, objective: Any) -> tuple[list[int], list[float], np.ndarray]:
    """Evaluate every candidate in every step; return positions, utilities and rows."""
    n = len(pool.candidates)
    costs, left = (np.ones(n) if pool.costs is None else pool.costs), pool.budget
    free, slots, utilities, rows = np.ones(n, dtype=bool), [], [], []
    while len(slots) < pool.batch_size and (free & (costs <= left)).any():
        ratios = per_cost(objective.gains(np.arange(n))[0], costs)
        ratios = np.where(free & (costs <= left), ratios, np.nan)
        slot = int(np.nanargmax(ratios))
        row = np.full(pool.n_points, np.nan)
        row[pool.candidates] = ratios
        rows.append(row)
        slots.append(slot)
        utilities.append(float(ratios[slot]))
        free[slot] = False
        left -= costs[slot]
        objective.add(slot)
    return pool.candidates[slots].tolist(), utilities, np.array(rows)


@pytest.mark.parametrize("limits", ["none", "costs", "budget"])
@pytest.mark.parametrize("make", OBJECTIVES, ids=lambda make: make.__name__)
def test_picks_utilities_and_rows_equal_those_of_a_literal_loop(make: Any, limits: str) -> None:
    for seed, candidates in itertools.product(range(4), CANDIDATES):
        options = limits_of(limits, len(candidates))
        expected, utilities, rows = greedy(
            pool_of(candidates, 9, **options), make(seed, candidates)
        )
        lazy = maximize(pool_of(candidates, 9, **options), make(seed, candidates))
        assert lazy.positions.tolist() == expected
        assert lazy.positions.dtype == np.intp
        assert lazy.utilities.tolist() == utilities
        assert lazy.rows is None
        assert lazy.handles_costs
        shown = maximize(
            pool_of(candidates, 9, want_utilities=True, **options), make(seed, candidates)
        )
        assert shown.positions.tolist() == expected
        np.testing.assert_array_equal(shown.rows, rows)


def test_few_gains_of_a_submodular_objective_are_evaluated_again() -> None:
    cover = Cover(0, np.arange(N_POINTS))
    cover.similarity[:, 40:] /= 16  # never near the best
    assert len(maximize(pool_of(np.arange(N_POINTS), 4), cover).positions) == 4
    assert cover.evaluated == [64, 128, 8, 64, 64, 64]
    cover = Cover(0, np.arange(N_POINTS))
    maximize(pool_of(np.arange(N_POINTS), 4, want_utilities=True), cover)
    assert cover.evaluated == [200, 199, 198, 197]


def test_nothing_is_added_after_the_last_pick() -> None:
    added: list[int] = []

    class Counted(Cover):
        def add(self, slot: int) -> None:
            added.append(slot)
            super().add(slot)

    picks = maximize(pool_of(CANDIDATES[1], 5), Counted(0, CANDIDATES[1])).positions
    assert CANDIDATES[1][added].tolist() == picks[:-1].tolist()


class Sets(Cover):
    """Sets to cover, given as rows of 0 and 1; may be noisy, and start again."""

    def __init__(self, sets: Any, noise: float = 0.0) -> None:
        self.similarity = np.array(sets, dtype=np.float64).T
        self.cover = np.zeros((len(self.similarity), 1))
        self.noise = noise
        self.evaluated = []

    def gains(self, slots: np.ndarray) -> tuple[np.ndarray, Any]:
        values, _ = super().gains(slots)
        return values + self.noise * (-1.0) ** slots, self.noise


class Restarting(Sets):
    n_restarts = 0

    def restart(self) -> None:
        self.n_restarts += 1
        self.cover = np.zeros_like(self.cover)


def pick(sets: Objective, size: int, n: int = 5, **options: Any) -> Any:
    pool = Pool("c", n, np.arange(n), requested=size, batch_size=size, root=0, **options)
    return maximize(pool, sets)


SETS = [[1, 1, 0], [0, 0, 0], [1, 1, 0], [0, 0, 1], [0, 1, 1]]


def test_the_rest_without_gain_is_taken_in_one_step_by_position() -> None:
    sets = Sets(SETS)
    with pytest.warns(EqualUtilitiesWarning):
        selection = pick(sets, 5)
    assert selection.positions.tolist() == [0, 3, 1, 2, 4]
    assert selection.utilities.tolist() == [2.0, 1.0, 0.0, 0.0, 0.0]
    assert pick(Sets(SETS), 2).positions.tolist() == [0, 3]
    with pytest.warns(EqualUtilitiesWarning):
        assert pick(Sets(SETS[1:2] * 5), 2).positions.tolist() == [0, 1]


def test_an_objective_that_restarts_forgets_its_picks_where_nothing_gains() -> None:
    sets = Restarting(SETS)
    selection = pick(sets, 5, want_utilities=True)
    assert selection.positions.tolist() == [0, 3, 2, 4, 1]
    assert selection.utilities.tolist() == [2.0, 1.0, 2.0, 1.0, 0.0]
    assert sets.n_restarts == 2  # the second gives nothing either
    nan = np.nan
    np.testing.assert_array_equal(
        selection.rows,
        [[2, 0, 2, 1, 2], [nan, 0, 0, 1, 1], [nan, 0, 2, nan, 2], [nan, 0, nan, nan, 1],
         [nan, 0, nan, nan, nan]],
    )  # fmt: skip
    assert pick(Restarting(SETS), 5, costs=np.full(5, 2.0), budget=6.0).positions.tolist() == [
        0, 3, 2,
    ]  # fmt: skip


def test_gains_up_to_negligible_count_as_none() -> None:
    sets: Any = Restarting(SETS)
    sets.similarity[2] *= 0.125  # of column 2 an eighth is left to gain
    sets.negligible = 0.125
    assert pick(sets, 3).positions.tolist() == [0, 2, 4]
    assert sets.n_restarts == 2
    plain = Restarting(SETS)
    plain.similarity[2] *= 0.125
    assert pick(plain, 3).positions.tolist() == [0, 3, 2]


def test_gains_within_their_errors_are_equal_unless_exact_scores_decide() -> None:
    class Exact(Sets):
        def exact(self, slots: np.ndarray) -> np.ndarray:
            return np.maximum(self.similarity[:, slots] - self.cover, 0).sum(axis=0)

    values = [[4], [5], [5], [5], [3]]
    assert pick(Sets(values, noise=0.375), 1).positions.tolist() == [1]  # 4.375, 4.625, 5.375, ...
    assert pick(Sets(values, noise=0.75), 1).positions.tolist() == [0]  # all but the last are one
    assert pick(Exact(values, noise=0.75), 1).positions.tolist() == [1]
    assert pick(Exact(values, noise=0.75), 1).utilities.tolist() == [5.0]


def test_a_batch_takes_errors_that_differ_from_row_to_row() -> None:
    pool = Pool("c", 3, np.arange(3), requested=1, batch_size=1, root=0)
    values = np.array([1.0, 1.25, 0.5])
    for errors, expected in (
        (0.0, 1),
        (0.0625, 1),
        (0.125, 0),
        ([0.25, 0.0, 0.0], 0),
        ([0.0, 0.0, 2.0], 1),
        (None, 1),
    ):
        batch = Batch(pool)
        batch.take(values, errors=None if errors is None else np.asarray(errors))
        assert batch.chosen == [expected]
    batch = Batch(pool)
    batch.take(np.array([1.0, 1.0 + 1e-15, 0.5]))  # a few roundings are a tie
    assert batch.chosen == [0]


class Fixed:
    """Gains that no pick changes."""

    submodular = False

    def __init__(self, numbers: list[float]) -> None:
        self.numbers = np.array(numbers)

    def gains(self, slots: np.ndarray) -> tuple[np.ndarray, Any]:
        return self.numbers[slots], None

    def add(self, slot: int) -> None:
        """Nothing changes."""


def small_pool(batch_size: int) -> Pool:
    return Pool(
        caller="MyQuery.select",
        n_points=3,
        candidates=np.arange(3),
        requested=batch_size,
        batch_size=batch_size,
        root=0,
    )


def test_without_errors_a_few_roundings_of_the_largest_gain_are_a_tie() -> None:
    assert maximize(small_pool(1), Fixed([3.0, 3.0 + 2e-15, 1.0])).positions.tolist() == [0]
    assert maximize(small_pool(1), Fixed([3.0, 3.0 + 2e-13, 1.0])).positions.tolist() == [1]


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_gains_that_are_not_finite_raise(wrong: float) -> None:
    with pytest.raises(ValueError, match=r"gains must be finite\. .* Fixed in MyQuery\.select"):
        maximize(small_pool(2), Fixed([1.0, wrong, 0.0]))


@pytest.mark.parametrize("errors", [np.nan, np.inf, -1.0, np.zeros(2)])
def test_errors_that_are_no_bounds_raise(errors: Any) -> None:
    objective = Fixed([1.0, 2.0, 0.0])
    objective.gains = lambda slots: (objective.numbers[slots], errors)  # type: ignore[method-assign]
    with pytest.raises(ValueError, match=r"Fixed in MyQuery\.select"):
        maximize(small_pool(2), objective)
