"""Array helpers on every backend, against numpy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sklearn
from scipy import sparse

from sklearn_ical import _array

Backend = Callable[[np.ndarray], Any]
SamePlace = Callable[[Any, Any], None]


def test_is_array_knows_arrays(backend: Backend) -> None:
    assert _array.is_array(backend(np.zeros(2)))


@pytest.mark.parametrize("value", [[1.0], (1.0,), 1.0, None, "a", sparse.csr_array(np.eye(2))])
def test_is_array_refuses_other_things(value: Any) -> None:
    assert not _array.is_array(value)


def test_is_array_refuses_frames() -> None:
    pandas = pytest.importorskip("pandas")
    assert not _array.is_array(pandas.DataFrame({"a": [1]}))


def test_to_host_returns_the_values(backend: Backend) -> None:
    for dtype in (np.float64, np.float32, np.int64, np.uint8, bool):
        expected = np.array([[0, 1, 2], [3, 4, 5]]).astype(dtype)
        got = _array.to_host(backend(expected))
        assert type(got) is np.ndarray
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)


def test_to_host_takes_lists_and_numbers() -> None:
    assert _array.to_host([1, 2]).tolist() == [1, 2]
    assert _array.to_host(0.5).shape == ()


def test_to_host_takes_what_torch_alone_has() -> None:
    torch = pytest.importorskip("torch")
    bfloat16 = _array.to_host(torch.tensor([0.5, 3.0], dtype=torch.bfloat16))
    assert bfloat16.dtype == np.float32
    assert bfloat16.tolist() == [0.5, 3.0]
    assert _array.to_host(torch.ones(2, requires_grad=True)).tolist() == [1.0, 1.0]


def test_like_puts_values_beside_the_array(backend: Backend, same_place: SamePlace) -> None:
    x = backend(np.zeros(3, dtype=np.float32))
    values = np.array([1.5, 2.5])
    values.flags.writeable = False
    for given in (values, values.tolist()):
        got = _array.like(given, x)
        same_place(got, x)
        np.testing.assert_array_equal(_array.to_host(got), values)
    xp = _array.namespace(x)
    assert _array.like(np.array([1, 2]), x, dtype=xp.float32).dtype == xp.float32


def test_like_does_not_lend_read_only_memory_to_torch() -> None:
    torch = pytest.importorskip("torch")
    values = np.zeros(2)
    values.flags.writeable = False
    _array.like(values, torch.zeros(1)).add_(1)
    assert values.tolist() == [0.0, 0.0]


def test_plain_drops_the_autograd_history() -> None:
    torch = pytest.importorskip("torch")
    x = torch.ones(2, requires_grad=True)
    got = _array.plain(x)
    assert not got.requires_grad
    assert got.data_ptr() == x.data_ptr()
    assert x.requires_grad


def test_plain_drops_numpy_subclasses(tmp_path: Any) -> None:
    mapped = np.memmap(tmp_path / "x", dtype=np.float64, shape=(2,), mode="w+")
    got = _array.plain(mapped)
    assert type(got) is np.ndarray
    assert np.shares_memory(got, mapped)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (np.float16, np.float32),
        (np.float32, np.float32),
        (np.float64, np.float64),
        (np.longdouble, np.float64),
        (">f4", np.float32),
        (">f8", np.float64),
        (np.int8, np.float64),
        (np.uint64, np.float64),
        (bool, np.float64),
    ],
)
def test_as_floating_returns_float32_or_float64(given: Any, expected: Any) -> None:
    x = np.array([0, 1], dtype=given)
    got = _array.as_floating(x)
    assert got.dtype == np.dtype(expected)
    assert got.tolist() == [0.0, 1.0]


def test_as_floating_keeps_floating_arrays(backend: Backend, same_place: SamePlace) -> None:
    for dtype in (np.float32, np.float64):
        x = backend(np.zeros(2, dtype=dtype))
        assert _array.as_floating(x) is x
    x = backend(np.array([2, 3]))
    got = _array.as_floating(x)
    same_place(got, x)
    assert got.dtype == _array.namespace(x).float64


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_as_floating_raises_half_precision_of_torch_to_float32(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor([0.25, 3.0], dtype=getattr(torch, dtype))
    got = _array.as_floating(x)
    assert got.dtype == torch.float32
    assert got.tolist() == [0.25, 3.0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1,), (50,), (4, 3, 129), (0, 2, 3), (2, 2, 1)])
def test_running_sum_has_the_bits_of_numpy(
    backend: Backend, same_place: SamePlace, shape: tuple[int, ...], dtype: Any
) -> None:
    rng = np.random.default_rng(0)
    values = (rng.random(shape) ** 8).astype(dtype)
    x = backend(values)
    got = _array.running_sum(x)
    same_place(got, x)
    expected = np.empty(shape)
    total = np.zeros(shape[:-1])
    for c in range(shape[-1]):
        total = total + values[..., c].astype(np.float64)
        expected[..., c] = total
    host = _array.to_host(got)
    assert host.dtype == np.float64
    np.testing.assert_array_equal(host, expected)
    np.testing.assert_array_equal(host, np.cumsum(values, axis=-1, dtype=np.float64))


def test_running_sum_does_not_depend_on_the_memory_layout() -> None:
    x = np.random.default_rng(0).random((5, 7, 33))
    fortran = np.asfortranarray(x)
    np.testing.assert_array_equal(_array.running_sum(fortran), _array.running_sum(x))


def test_kth_largest_counts_repeated_values(backend: Backend) -> None:
    values = np.array([3.0, -1.0, 7.0, 7.0, -np.inf, 0.5])
    ordered = sorted(values, reverse=True)
    for k in range(1, 7):
        got = _array.kth_largest(backend(values), k)
        assert type(got) is float
        assert got == ordered[k - 1]


@pytest.mark.parametrize(
    "rows",
    [
        [[1, 2], [0, 1], [1, 2], [256, 0], [0, 1], [0, 256]],
        [[5, 5, 5]],
        [[0], [0], [0]],
        [[-1, 0], [0, -1], [-1, 0]],
        np.zeros((0, 3), dtype=int),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", [np.int16, np.int64])
def test_unique_rows_rebuild_the_array(backend: Backend, rows: Any, dtype: Any) -> None:
    values = np.array(rows, dtype=dtype)
    x = backend(values)
    distinct, inverse = _array.unique_rows(x)
    host = _array.to_host(distinct)
    np.testing.assert_array_equal(host[_array.to_host(inverse)], values)
    if not type(x).__module__.startswith("array_api_strict"):
        assert len(host) == len({tuple(row) for row in values.tolist()})


def test_unique_rows_stay_on_the_device(backend: Backend, same_place: SamePlace) -> None:
    x = backend(np.array([[1, 2], [1, 2]]))
    for got in _array.unique_rows(x):
        same_place(got, x)


def test_unique_rows_of_a_strided_array_are_its_rows() -> None:
    x = np.array([[0, 9, 1, 9], [0, 8, 1, 8], [2, 9, 1, 9]], dtype=np.uint8)[:, ::2]
    distinct, inverse = _array.unique_rows(x)
    assert sorted(distinct.tolist()) == [[0, 1], [2, 1]]
    np.testing.assert_array_equal(distinct[inverse], x)


@pytest.mark.parametrize("top", [0, 255, 256, 2**15 - 1, 2**15, 2**31 - 1])
def test_smallest_codes_keep_every_code(backend: Backend, same_place: SamePlace, top: int) -> None:
    x = backend(np.array([[0, top], [top // 2, 1]]))
    got = _array.smallest_codes(x)
    same_place(got, x)
    host = _array.to_host(got)
    assert host.dtype.itemsize == (1 if top < 256 else 2 if top < 2**15 else 4)
    assert host.tolist() == [[0, top], [top // 2, 1]]


def test_smallest_codes_of_no_rows_are_empty(backend: Backend) -> None:
    assert _array.smallest_codes(backend(np.zeros((0, 3), dtype=np.int64))).shape == (0, 3)


def test_chunk_rows_is_at_least_one() -> None:
    assert _array.chunk_rows(10**12) == 1
    assert _array.chunk_rows(_array.CHUNK_BYTES) == 1
    assert _array.chunk_rows(_array.CHUNK_BYTES + 1) == 1


def test_chunk_rows_stays_below_the_working_memory() -> None:
    row_bytes = 1000
    with sklearn.config_context(working_memory=1):
        assert _array.working_bytes() == 2**20
        assert _array.chunk_rows(row_bytes) == 2**20 // row_bytes
    with sklearn.config_context(working_memory=0.5):
        assert _array.chunk_rows(row_bytes) == 2**19 // row_bytes
    with sklearn.config_context(working_memory=2**20):
        assert _array.chunk_rows(row_bytes) == _array.CHUNK_BYTES // row_bytes


def test_chunk_rows_of_empty_rows_is_finite() -> None:
    assert 1 <= _array.chunk_rows(0) <= _array.CHUNK_BYTES


@pytest.mark.parametrize("n_rows", [0, 1, 6, 7, 8, 20])
def test_row_slices_cover_all_rows_once_within_the_working_chunk(n_rows: int) -> None:
    with sklearn.config_context(working_memory=7 * 100 / 2**20):
        slices = _array.row_slices(n_rows, 100)
    assert [row for part in slices for row in range(part.start, part.stop)] == list(range(n_rows))
    assert all(part.stop - part.start <= 7 for part in slices)
    assert len(slices) == -(-n_rows // 7)
