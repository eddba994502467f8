"""Checks at the public door: every accepted form and every message."""

import numbers
import re
import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator

from sklearn_ical import _validation
from sklearn_ical.exceptions import BatchClippedWarning, EqualUtilitiesWarning, QueryWarning

OWNER = "ICALQuery.query"


class Tuned(BaseEstimator):
    """An estimator of one constrained parameter."""

    _parameter_constraints = {  # noqa: RUF012
        "kernel": [_validation.StrOptions({"rq"}), callable],
        "size": [_validation.Interval(numbers.Integral, 1, None, closed="left")],
    }

    def __init__(self, kernel: Any = "rq", size: int = 1) -> None:
        self.kernel = kernel
        self.size = size


def test_check_parameters_passes_what_the_constraints_allow() -> None:
    _validation.check_parameters(Tuned())
    _validation.check_parameters(Tuned(kernel=len, size=3))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "rbg"}, "The 'kernel' parameter of Tuned must be .* Got 'rbg' instead."),
        ({"size": 0}, "The 'size' parameter of Tuned must be .* Got 0 instead."),
    ],
)
def test_check_parameters_names_parameter_and_owner(
    parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        _validation.check_parameters(Tuned(**parameters))


@pytest.mark.parametrize("value", [1, 7, np.int64(7), np.uint8(7)])
def test_check_integer_returns_a_python_int(value: Any) -> None:
    got = _validation.check_integer(value, "batch_size", OWNER)
    assert type(got) is int
    assert got == int(value)


@pytest.mark.parametrize("value", [True, np.True_, 1.0, np.float32(2), "3", None, [1], np.ones(1)])
def test_check_integer_of_another_type_raises(value: Any) -> None:
    message = f"batch_size must be an integer >= 1. Got {value!r} of type {type(value).__name__}"
    with pytest.raises(TypeError, match=re.escape(message)):
        _validation.check_integer(value, "batch_size", OWNER)


@pytest.mark.parametrize(("value", "minimum"), [(0, 1), (-3, 1), (np.int8(1), 2), (-1, 0)])
def test_check_integer_below_the_minimum_raises(value: Any, minimum: int) -> None:
    message = f"n_draws must be an integer >= {minimum}. Got {value!r} in {OWNER}."
    with pytest.raises(ValueError, match=re.escape(message)):
        _validation.check_integer(value, "n_draws", OWNER, minimum=minimum)


def pools() -> dict[str, Any]:
    """Three rows in every form that a model may accept."""
    dense = np.arange(6.0).reshape(3, 2)
    return {
        "array": dense,
        "images": np.zeros((3, 2, 2, 1)),
        "text": np.array(["a", "b", "c"]),
        "list": [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]],
        "tuple of text": ("a", "b", "c"),
        **{kind: sparse.coo_array(dense).asformat(kind) for kind in ("csr", "csc", "coo", "lil")},
        "matrix": sparse.csr_matrix(dense),
    }


@pytest.mark.parametrize("kind", pools())
def test_n_rows_counts_the_rows(kind: str) -> None:
    assert _validation.n_rows(pools()[kind]) == 3


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_n_rows_and_take_rows_of_a_frame_go_by_position(library: str) -> None:
    module = pytest.importorskip(library)
    frame = module.DataFrame({"a": [10, 11, 12], "b": ["x", "y", "z"]})
    if library == "pandas":
        frame.index = [2, 2, 0]
    assert _validation.n_rows(frame) == 3
    assert list(_validation.take_rows(frame, np.array([2, 0]))["a"]) == [12, 10]
    assert list(_validation.take_rows(frame, slice(1, 3))["b"]) == ["y", "z"]


def test_n_rows_of_a_tensor_counts_the_rows() -> None:
    torch = pytest.importorskip("torch")
    assert _validation.n_rows(torch.zeros(3, 2)) == 3


@pytest.mark.parametrize("value", [None, "abc", b"abc", {"a": [1, 2]}, 5, (i for i in range(3))])
def test_n_rows_of_no_collection_raises(value: Any) -> None:
    message = f"X_labeled must be a collection of rows .* Got {type(value).__name__} instead"
    with pytest.raises(TypeError, match=message):
        _validation.n_rows(value, "X_labeled")


def test_n_rows_of_a_scalar_array_raises() -> None:
    with pytest.raises(TypeError, match="scalar"):
        _validation.n_rows(np.array(3.0))


@pytest.mark.parametrize("kind", pools())
def test_take_rows_keeps_type_and_order(kind: str) -> None:
    X = _validation.sliceable(pools()[kind])
    for rows in (np.array([2, 0], dtype=np.intp), slice(1, 3)):
        part = _validation.take_rows(X, rows)
        expected = [[0, 1, 2][i] for i in (rows if isinstance(rows, np.ndarray) else (1, 2))]
        assert _validation.n_rows(part) == 2
        if sparse.issparse(X):
            assert part.format == "csr"
            part, whole = part.toarray(), X.toarray()
        else:
            whole = X
        for row, position in zip(part, expected, strict=True):
            np.testing.assert_array_equal(row, whole[position])


@pytest.mark.parametrize("kind", ["csc", "coo", "lil", "bsr", "dia", "dok"])
def test_sliceable_turns_sparse_formats_into_csr(kind: str) -> None:
    X = sparse.coo_array(np.diag([1.0, 2.0, 3.0])).asformat(kind)
    got = _validation.sliceable(X)
    assert got.format == "csr"
    np.testing.assert_array_equal(got.toarray(), X.toarray())
    assert X.format == kind


def test_sliceable_leaves_other_inputs_alone() -> None:
    for X in (sparse.csr_array(np.eye(2)), np.eye(2), [[1.0]], "text"):
        assert _validation.sliceable(X) is X


@pytest.mark.parametrize("form", [list, tuple, np.array, lambda x: np.array(x, dtype=np.uint8)])
def test_check_positions_keeps_order_and_multiplicity(form: Any) -> None:
    got = _validation.check_positions(form([4, 0, 4, 2]), 5, "reference", OWNER, "the pool")
    assert got.dtype == np.intp
    assert got.tolist() == [4, 0, 4, 2]


def test_check_positions_keeps_the_shape() -> None:
    got = _validation.check_positions([[1, 0], [2, 2]], 3, "reference", OWNER, "the pool")
    assert got.tolist() == [[1, 0], [2, 2]]


@pytest.mark.parametrize("wrong", [-1, 5, 2**63 - 1, -(2**62)])
def test_check_positions_out_of_range_raises(wrong: int) -> None:
    message = f"reference must hold positions from 0 to 4 in the pool. Got {wrong} in {OWNER}."
    with pytest.raises(ValueError, match=re.escape(message)):
        _validation.check_positions([0, wrong], 5, "reference", OWNER, "the pool")


def test_check_positions_beyond_int64_raises() -> None:
    with pytest.raises(ValueError, match=f"Got {2**64 - 1} in"):
        _validation.check_positions(np.array([2**64 - 1], np.uint64), 5, "r", OWNER, "the pool")


@pytest.mark.parametrize("positions", [[0.0, 1.0], ["0"], [None], [True], [0, 2**70]])
def test_check_positions_of_another_dtype_raises(positions: Any) -> None:
    message = r"reference must hold integer positions in the pool\. Got an array of dtype "
    with pytest.raises(TypeError, match=message):
        _validation.check_positions(positions, 5, "reference", OWNER, "the pool")


def test_check_candidates_of_none_is_the_whole_pool() -> None:
    got = _validation.check_candidates(None, 3, OWNER)
    assert got.dtype == np.intp
    assert got.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "candidates",
    [
        [4, 1, 2],
        (2, 4, 1),
        np.array([1, 4, 2], dtype=np.int32),
        np.array([4, 2, 1], dtype=np.uint64),
        [False, True, True, False, True],
        np.array([0, 1, 1, 0, 1], dtype=bool),
    ],
    ids=repr,
)
def test_check_candidates_returns_sorted_positions(candidates: Any) -> None:
    got = _validation.check_candidates(candidates, 5, OWNER)
    assert got.dtype == np.intp
    assert got.tolist() == [1, 2, 4]


def test_check_candidates_takes_a_range_and_a_series() -> None:
    assert _validation.check_candidates(range(3, 0, -1), 5, OWNER).tolist() == [1, 2, 3]
    pandas = pytest.importorskip("pandas")
    series = pandas.Series([True, False, True], index=[7, 7, 0])
    assert _validation.check_candidates(series, 3, OWNER).tolist() == [0, 2]
    assert _validation.check_candidates(pandas.Series([2, 0], index=[5, 6]), 3, OWNER).tolist() == [
        0,
        2,
    ]


def test_check_candidates_leaves_the_callers_array_alone() -> None:
    candidates = np.array([4, 1, 2])
    candidates.flags.writeable = False
    got = _validation.check_candidates(candidates, 5, OWNER)
    got[0] = 3
    assert candidates.tolist() == [4, 1, 2]


@pytest.mark.parametrize(
    ("candidates", "error", "message"),
    [
        ([], ValueError, "candidates allows no row"),
        (np.zeros(5, dtype=bool), ValueError, "candidates allows no row"),
        ([1, 2, 1], ValueError, r"candidates must not repeat a position\. Got 1 2 times"),
        ([0, 3, 3, 3, 0], ValueError, r"Got 3 3 times in ICALQuery\.query"),
        ([-1, 2], ValueError, r"candidates must hold positions from 0 to 4 in the pool\. Got -1"),
        ([5], ValueError, r"candidates must hold positions from 0 to 4 in the pool\. Got 5"),
        ([True] * 4, ValueError, r"mask must have one entry per pool row, 5\. Got 4"),
        ([True] * 6, ValueError, r"mask must have one entry per pool row, 5\. Got 6"),
        (np.zeros(0, dtype=bool), ValueError, r"one entry per pool row, 5\. Got 0"),
        ([[0, 1], [2, 3]], ValueError, r"must be one-dimensional.*shape \(2, 2\)"),
        (3, ValueError, r"must be one-dimensional.*shape \(\)"),
        ({1, 2}, ValueError, r"must be one-dimensional.*shape \(\)"),
        ([0.0, 1.0], TypeError, "candidates must hold integer positions in the pool"),
        (["a"], TypeError, "candidates must hold integer positions in the pool"),
    ],
    ids=repr,
)
def test_check_candidates_of_a_wrong_form_raises(
    candidates: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        _validation.check_candidates(candidates, 5, OWNER)


@pytest.mark.parametrize("candidates", [None, [], [0], np.zeros(0, dtype=bool)], ids=repr)
def test_check_candidates_of_an_empty_pool_raises(candidates: Any) -> None:
    with pytest.raises(ValueError, match="candidates is empty because X_pool has 0 rows"):
        _validation.check_candidates(candidates, 0, OWNER)


@pytest.mark.parametrize("batch_size", [1, 5, np.int64(5)])
def test_clip_batch_size_within_the_candidates_stays(batch_size: Any) -> None:
    got = _validation.clip_batch_size(batch_size, 5, OWNER)
    assert type(got) is int
    assert got == batch_size


def test_clip_batch_size_beyond_the_candidates_warns_at_the_caller() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert _validation.clip_batch_size(np.int64(9), 5, OWNER) == 5
    (warning,) = caught
    assert warning.category is BatchClippedWarning
    assert issubclass(warning.category, QueryWarning)
    assert "batch_size=9 is more than the 5 candidates of ICALQuery.query" in str(warning.message)
    assert warning.filename == __file__


@pytest.mark.parametrize(
    ("value", "error"), [(0, ValueError), (-1, ValueError), (True, TypeError), (2.0, TypeError)]
)
def test_clip_batch_size_of_a_wrong_value_raises(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="batch_size must be an integer >= 1"):
        _validation.clip_batch_size(value, 5, OWNER)


def test_warn_equal_utilities_warns_at_the_caller() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _validation.warn_equal_utilities(OWNER)
    (warning,) = caught
    assert warning.category is EqualUtilitiesWarning
    assert f"equal utilities in {OWNER}; the lowest positions" in str(warning.message)
    assert warning.filename == __file__


@pytest.mark.parametrize(
    "costs",
    [
        [1, 2, 3],
        (1.0, 2.0, 3.0),
        np.array([1, 2, 3], dtype=np.uint8),
        np.array([1, 2, 3], dtype=np.float16),
        np.array([1, 2.0, 3], dtype=object),
        [Fraction(1), Decimal(2), 3],
    ],
    ids=repr,
)
def test_check_costs_returns_float64(costs: Any) -> None:
    got = _validation.check_costs(costs, 3, OWNER)
    assert got.dtype == np.float64
    assert got.tolist() == [1.0, 2.0, 3.0]


def test_check_costs_takes_columns_of_frames() -> None:
    pandas = pytest.importorskip("pandas")
    series = pandas.Series([3, 1, 2], index=[2, 2, 0])
    assert _validation.check_costs(series, 3, OWNER).tolist() == [3.0, 1.0, 2.0]
    with pytest.raises(TypeError, match=r"costs must hold one finite number > 0"):
        _validation.check_costs(pandas.Series(["1", "2", "3"]), 3, OWNER)


@pytest.mark.parametrize(
    ("costs", "error", "message"),
    [
        ([1, np.nan, 3], ValueError, r"rows of the pool, from .* Got nan for row 1 in ICALQuery"),
        (
            [1, 2, np.inf],
            ValueError,
            r"Got inf for row 2 in ICALQuery\.query; leave out rows that must not",
        ),
        ([0, 2, 3], ValueError, r"one finite number > 0 for each of the 3 rows .*Got 0\.0 for row"),
        ([1, -2.5, 3], ValueError, r"Got -2\.5 for row 1 in ICALQuery\.query"),
        ([1, 2, 1e-101], ValueError, r"from 1e-100 to 1e100\. Got 1e-101 for row 2"),
        ([1, 2, 1e101], ValueError, r"from 1e-100 to 1e100\. Got 1e\+101 for row 2"),
        ([1, 2], ValueError, r"shape \(3,\), whichever of them may be picked\. Got shape"),
        ([[1, 2, 3]], ValueError, r"shape \(3,\), .* Got shape \(1, 3\) in ICALQuery\.query"),
        (2.0, ValueError, r"shape \(3,\), .* Got shape \(\) in ICALQuery\.query"),
        ([[1], [2, 3], [4]], ValueError, r"Got rows of unequal length in ICALQuery\.query"),
        (["1", "2", "3"], TypeError, r"number > 0 .*Got an array of dtype <U1 in .*\['1', '2'"),
        (np.array([1, "2", 3], dtype=object), TypeError, r"Got an array of dtype object in ICALQ"),
        ([True, False, True], TypeError, r"Got an array of dtype bool in ICALQuery\.query"),
        ([1j, 2, 3], TypeError, r"Got an array of dtype complex128 in ICALQuery\.query"),
        ([1, None, 3], ValueError, r"Got nan for row 1"),
        ([1, {}, 3], TypeError, r"costs must be numbers in an array or list\. Got "),
    ],
    ids=repr,
)
def test_check_costs_of_a_wrong_form_raises(
    costs: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        _validation.check_costs(costs, 3, OWNER)


def test_check_costs_leaves_the_callers_array_alone() -> None:
    costs = np.array([4.0, 1.0, 2.0])
    costs.flags.writeable = False
    assert _validation.check_costs(costs, 3, OWNER).tolist() == [4.0, 1.0, 2.0]


@pytest.mark.parametrize("budget", [3, 3.0, np.int64(3), np.float32(3), Fraction(3)])
def test_check_budget_returns_it_with_room_for_rounding(budget: Any) -> None:
    got = _validation.check_budget(budget, np.array([9.0, 3.0]), OWNER)
    assert type(got) is float
    assert 3.0 < got < 3.0 + 1e-8


def test_check_budget_of_none_is_no_limit() -> None:
    assert _validation.check_budget(None, np.array([9.0]), OWNER) == np.inf
    assert _validation.check_budget(None, None, OWNER) == np.inf


@pytest.mark.parametrize(
    ("budget", "error", "message"),
    [
        (
            0,
            ValueError,
            r"budget must be a finite number > 0, in the unit of costs\. Got 0 in ICAL",
        ),
        (
            -1.5,
            ValueError,
            r"finite number > 0, .* Got -1\.5 in ICALQuery\.query; pass None",
        ),
        (np.nan, ValueError, r"finite number > 0, .* Got nan in ICALQuery\.query"),
        (
            np.inf,
            ValueError,
            r"finite number > 0, .* Got inf in ICALQuery\.query; pass None",
        ),
        (True, TypeError, r"finite number > 0, .* Got True of type bool in ICALQuery\.query"),
        ("9", TypeError, r"finite number > 0, .* Got '9' of type str in ICALQuery\.query"),
        ([9], TypeError, r"finite number > 0, .* Got \[9\] of type list in ICALQuery\.query"),
        (1.9, ValueError, r"Got budget=1\.9 in ICALQuery\.query, where the cheapest .* costs 2\.0"),
    ],
    ids=repr,
)
def test_check_budget_of_a_wrong_value_raises(
    budget: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        _validation.check_budget(budget, np.array([3.0, 2.0]), OWNER)


def test_check_budget_without_costs_raises() -> None:
    message = (
        "budget must come with costs. Got budget=5 without costs in ICALQuery.query; "
        "pass costs, np.ones(n_pool) where every row costs 1."
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        _validation.check_budget(5, None, OWNER)
