"""Root seeds, named streams and position-keyed uniforms against the literal streams of numpy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sklearn_ical import _random

N_COLUMNS = 7


def literal_uniforms(seed: np.random.SeedSequence, positions: Any, n_columns: int) -> np.ndarray:
    """Read every number from a stream of its own, advanced to that number alone."""
    out = np.empty((len(positions), n_columns))
    for row, position in enumerate(positions):
        for column in range(n_columns):
            bits = np.random.PCG64(seed).advance(int(position) * n_columns + column)
            out[row, column] = np.random.Generator(bits).random()
    return out


def test_root_seed_of_an_integer_is_itself() -> None:
    assert _random.root_seed(0, "ICALQuery") == 0
    assert _random.root_seed(2**200, "ICALQuery") == 2**200
    root = _random.root_seed(np.uint8(200), "ICALQuery")
    assert root == 200
    assert type(root) is int


def test_root_seed_of_none_is_fresh() -> None:
    assert _random.root_seed(None, "ICALQuery") != _random.root_seed(None, "ICALQuery")


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_root_seed_of_a_generator_is_one_draw(make: Callable[[int], Any]) -> None:
    first, second = make(3), make(3)
    roots = [_random.root_seed(first, "ICALQuery") for _ in range(3)]
    assert len(set(roots)) == 3
    assert roots == [_random.root_seed(second, "ICALQuery") for _ in range(3)]
    assert all(type(root) is int and root >= 0 for root in roots)


def test_root_seed_takes_exactly_one_number_of_a_generator() -> None:
    used, reference = np.random.RandomState(5), np.random.RandomState(5)
    _random.root_seed(used, "ICALQuery")
    reference.randint(10)
    assert used.randint(2**31 - 1) == reference.randint(2**31 - 1)


@pytest.mark.parametrize("value", [-1, np.int64(-7)])
def test_root_seed_of_a_negative_integer_raises(value: Any) -> None:
    message = rf"'random_state' parameter of ICALQuery must be >= 0 .* Got .*{int(value)}"
    with pytest.raises(ValueError, match=message):
        _random.root_seed(value, "ICALQuery")


@pytest.mark.parametrize(
    "value", [True, False, np.True_, 1.0, np.float64(3), "0", [0], np.array(0), np.random]
)
def test_root_seed_of_another_type_raises(value: Any) -> None:
    with pytest.raises(TypeError, match=r"'random_state' parameter of BALDQuery must be None, an "):
        _random.root_seed(value, "BALDQuery")


def test_stream_keys_are_fixed() -> None:
    keys = (
        _random.DRAWS,
        _random.LABELS,
        _random.REFERENCE,
        _random.CONFIGURATIONS,
        _random.REFERENCE_LABELS,
        _random.STRATEGY,
    )
    assert keys == (0, 1, 2, 3, 4, 5)


def test_stream_is_the_named_child_of_the_root() -> None:
    expected = np.random.SeedSequence(11, spawn_key=(_random.LABELS,))
    got = _random.stream(11, _random.LABELS)
    np.testing.assert_array_equal(got.generate_state(8), expected.generate_state(8))
    numbers = np.random.Generator(np.random.PCG64(expected)).random(5)
    generator = _random.stream_generator(11, _random.LABELS)
    np.testing.assert_array_equal(generator.random(5), numbers)


def test_streams_differ_by_key_and_root() -> None:
    first = {
        (root, key): float(_random.stream_generator(root, key).random())
        for root in (0, 1, 2**100)
        for key in range(6)
    }
    assert len(set(first.values())) == 18


def test_stream_seed_fits_a_random_state() -> None:
    seeds = [_random.stream_seed(root, _random.DRAWS) for root in range(200)]
    assert all(type(seed) is int for seed in seeds)
    assert len({np.random.RandomState(seed).randint(2**31 - 1) for seed in seeds}) == 200
    assert seeds == [_random.stream_seed(root, _random.DRAWS) for root in range(200)]


@pytest.mark.parametrize(
    "positions",
    [
        range(20),
        [3],
        [4, 5, 6, 2, 3, 9],
        [9, 8, 7, 0],
        [5, 5, 6, 6, 5],
        [2**40, 2**40 + 1, 0],
        [],
    ],
    ids=str,
)
@pytest.mark.parametrize("n_columns", [1, N_COLUMNS])
def test_row_uniforms_equal_the_literal_stream(positions: Any, n_columns: int) -> None:
    seed = _random.stream(42, _random.LABELS)
    got = _random.row_uniforms(seed, np.array(positions, dtype=np.intp), n_columns)
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got, literal_uniforms(seed, positions, n_columns))


def test_row_uniforms_of_all_rows_are_the_stream_in_order() -> None:
    seed = _random.stream(42, _random.LABELS)
    got = _random.row_uniforms(seed, np.arange(50), N_COLUMNS)
    stream = np.random.Generator(np.random.PCG64(seed)).random(50 * N_COLUMNS)
    np.testing.assert_array_equal(got.ravel(), stream)
    assert got.min() >= 0
    assert got.max() < 1


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.uint64, np.intp])
def test_row_uniforms_of_any_subset_and_order_are_rows_of_the_whole(dtype: Any) -> None:
    seed = _random.stream(0, _random.LABELS)
    whole = _random.row_uniforms(seed, np.arange(100), N_COLUMNS)
    rng = np.random.default_rng(0)
    for size in (1, 7, 60, 100):
        positions = rng.choice(100, size, replace=False).astype(dtype)
        got = _random.row_uniforms(seed, positions, N_COLUMNS)
        np.testing.assert_array_equal(got, whole[positions])


@pytest.mark.parametrize("size", [1, 7, 100])
def test_row_uniforms_do_not_depend_on_chunks(size: int) -> None:
    seed = _random.stream(0, _random.LABELS)
    positions = np.arange(100)
    parts = [
        _random.row_uniforms(seed, positions[start : start + size], N_COLUMNS)
        for start in range(0, 100, size)
    ]
    whole = _random.row_uniforms(seed, positions, N_COLUMNS)
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_global_generator_is_untouched() -> None:
    before = np.random.get_state(legacy=False)  # noqa: NPY002
    root = _random.root_seed(None, "ICALQuery")
    _random.stream_generator(root, _random.STRATEGY).random()
    _random.row_uniforms(_random.stream(root, _random.LABELS), np.arange(5), 3)
    after = np.random.get_state(legacy=False)  # noqa: NPY002
    np.testing.assert_array_equal(after["state"]["key"], before["state"]["key"])
    assert after["state"]["pos"] == before["state"]["pos"]
