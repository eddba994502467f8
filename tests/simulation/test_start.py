"""Tests of the rows that are labeled from the start."""

import numpy as np
import pytest

from sklearn_ical.simulation import balanced_rows
from sklearn_ical.simulation._start import initial_rows


def test_balanced_rows_are_balanced_and_distinct():
    y = np.repeat([5, 6, 7], [100, 20, 40])
    for seed in range(20):
        rows = balanced_rows(y, 17, seed)
        assert len(set(rows)) == 17
        assert sorted(np.bincount(y[rows])[5:]) == [5, 6, 6]
    assert len({tuple(sorted(balanced_rows(y, 17, seed))) for seed in range(20)}) == 20
    # Every class is the one that gives less in some seed, so none is favored.
    short = {int(np.bincount(y[balanced_rows(y, 17, seed)])[5:].argmin()) for seed in range(20)}
    assert short == {0, 1, 2}


def test_balanced_rows_small_class_gives_all_it_has():
    y = np.array(["x"] * 50 + ["y"] * 2 + ["z"] * 50)
    rows = balanced_rows(y, 22, 0)
    assert {label: int((y[rows] == label).sum()) for label in "xyz"} == {"x": 10, "y": 2, "z": 10}
    assert sorted(balanced_rows(y, len(y), 1)) == list(range(len(y)))


def test_balanced_rows_reach_every_row():
    y = np.repeat([0, 1], 10)
    drawn = np.concatenate([balanced_rows(y, 4, seed) for seed in range(100)])
    assert set(drawn) == set(range(20))


def test_balanced_rows_of_one_class():
    assert len(set(balanced_rows(np.zeros(9), 4, 0))) == 4


def test_balanced_rows_take_turns_as_counted_by_hand():
    """The turn of a row is how many rows of its class come before it in the random order."""
    y = np.random.default_rng(0).integers(5, size=60)
    for n in (1, 7, 23, 60):
        counts = np.bincount(y[balanced_rows(y, n, 3)], minlength=5)
        available = np.bincount(y, minlength=5)
        # No class could give one more row in place of a class that gives two more than it.
        for less in range(5):
            for more in range(5):
                assert counts[more] - counts[less] <= 1 or counts[less] == available[less]


@pytest.mark.parametrize("initial", ["balanced", "random"])
def test_initial_rows_are_drawn_among_those_with_a_label(initial):
    y = np.where(np.arange(20) % 2, np.arange(20) % 3, np.nan)
    rows = initial_rows(initial, np.zeros((20, 1)), y, 9, seed=0)
    assert len(set(rows)) == 9
    assert (rows % 2 == 1).all()
    assert rows.tolist() != initial_rows(initial, np.zeros((20, 1)), y, 9, seed=1).tolist()


def test_initial_rows_are_any_where_no_label_is_known_and_positions_stay():
    X = np.zeros((20, 1))
    assert sorted(initial_rows("random", X, None, 20, seed=0)) == list(range(20))
    assert initial_rows(np.array([7, 3]), X, None, 2, seed=0).tolist() == [7, 3]
