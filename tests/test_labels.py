"""What a label is: the one place that decides it for samplers, learner, simulation and command."""

from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.naive_bayes import GaussianNB

from sklearn_ical import ActiveLearner
from sklearn_ical._labels import (
    check_one_type,
    is_missing,
    label_array,
    missing_labels,
    plain_label,
)
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers import BootstrapSampler
from sklearn_ical.simulation import simulate

DAY = datetime(2020, 1, 1)


@pytest.mark.parametrize("label", [0, False, "", "nan", 0.0, np.int64(0), [0, 1], DAY, ("a", 1)])
def test_labels_are_not_missing(label: Any) -> None:
    assert not is_missing(label)


@pytest.mark.parametrize(
    "label",
    [None, np.nan, np.float32("nan"), pd.NA, pd.NaT, np.datetime64("NaT"), Decimal("NaN"),
     [1, None], (np.nan, 1), np.array([1, np.nan])],
    ids=repr,
)  # fmt: skip
def test_labels_are_missing(label: Any) -> None:
    assert is_missing(label)


@pytest.mark.parametrize(
    ("labels", "missing"),
    [
        ([1, None, np.nan, "a", pd.NA], [1, 2, 4]),
        ([[1, 2], [None, 1], [3, np.nan]], [1, 2]),
        ([[1], [1, 2], [None]], [2]),
        (np.array([1.0, np.nan]), [1]),
        (np.array([[1.0, 2.0], [np.nan, 0.0]]), [1]),
        (np.array([1, 1j * np.nan]), [1]),
        (np.array(["NaT", "2020-01-01"], dtype="M8[D]"), [0]),
        (np.array(["a", "nan"]), []),
        (np.array([0, 1]), []),
        (np.zeros(0), []),
        (np.zeros((0, 2)), []),
        (pd.Series([1, None], dtype="Int64"), [1]),
        (pd.Series(["a", None], dtype="category"), [1]),
        (pd.DataFrame({"a": [1.0, 2.0], "b": [None, "b"]}), [0]),
        (sparse.csr_array(np.eye(2)), []),
    ],
    ids=lambda value: type(value).__name__,
)
def test_missing_labels_by_row(labels: Any, missing: list[int]) -> None:
    found = missing_labels(labels)
    assert found.dtype == bool
    assert np.flatnonzero(found).tolist() == missing


def test_missing_labels_of_tensors_and_polars() -> None:
    torch = pytest.importorskip("torch")
    polars = pytest.importorskip("polars")
    assert missing_labels(torch.tensor([1.0, np.nan])).tolist() == [False, True]
    assert missing_labels(polars.Series(["a", None])).tolist() == [False, True]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([1, "a"], np.array([1, "a"], dtype=object)),
        (["a", None], np.array(["a", None], dtype=object)),
        (["a", np.nan], np.array(["a", np.nan], dtype=object)),
        (["a", "b"], np.array(["a", "b"])),
        ([1, 2], np.array([1, 2])),
        ([1, 2.5], np.array([1.0, 2.5])),
        ([[1, 2], [3, 4]], np.array([[1, 2], [3, 4]])),
        (np.array([1, 2], dtype=object), np.array([1, 2])),
        (np.array([1, np.nan], dtype=object), np.array([1, np.nan], dtype=object)),
        (np.array(["a", "b"], dtype=object), np.array(["a", "b"], dtype=object)),
        (pd.Series([True, False]), np.array([True, False])),
    ],
    ids=str,
)
def test_label_array_changes_no_label(labels: Any, expected: np.ndarray) -> None:
    array = label_array(labels, "y", "fit")
    assert array.dtype == expected.dtype
    assert repr(array.tolist()) == repr(expected.tolist())  # NaN is not equal to itself


def test_label_array_of_ragged_rows_raises() -> None:
    with pytest.raises(ValueError, match=r"^y must be a rectangular array\. .* length in fit\.$"):
        label_array([[1], [1, 2]], "y", "fit")


def test_texts_among_numbers_raise() -> None:
    texts, numbers = np.array(["a", "b"]), np.array([1, 2])
    check_one_type([("one", texts), ("two", np.array(["c"], dtype=object))], "fit")
    message = r"^There must be one type of class label\. Got 'a' in one and 1 in two of fit\.$"
    with pytest.raises(UnsupportedModelError, match=message):
        check_one_type([("one", texts), ("two", numbers)], "fit")


@pytest.mark.parametrize(
    ("label", "plain"),
    [
        (np.int64(3), 3),
        (np.str_("a"), "a"),
        (np.float32(0.5), 0.5),
        ((1, "a"), [1, "a"]),
        (np.array([0.0, 2.0]), [0.0, 2.0]),
        (np.bool_(True), True),
        (None, None),
        ([1, None], None),
        (np.nan, None),
    ],
    ids=repr,
)
def test_plain_label_is_what_json_keeps(label: Any, plain: Any) -> None:
    found = plain_label(label, classes=False)
    assert found == plain
    assert type(found) is type(plain)


@pytest.mark.parametrize("label", [np.inf, 2**63, DAY, {}, [], [[1]]], ids=repr)
def test_other_labels_raise(label: Any) -> None:
    with pytest.raises(TypeError, match="A label must be text, a finite number of 64 bits, or a"):
        plain_label(label, classes=False)


def test_label_of_a_classifier_is_whole() -> None:
    assert plain_label(2.0, classes=True) == 2.0
    with pytest.raises(
        TypeError, match=r"whole number; return None or NaN to refuse\. Got 0\.5\.$"
    ):
        plain_label(0.5, classes=True)


X = np.arange(8.0)[:, None]


def test_missing_label_in_a_list_of_texts_is_missing_everywhere() -> None:
    labels = ["a", "b", np.nan, "a", "b", "a", None, "b"]
    result = simulate(
        GaussianNB(), X, labels, "random", initial=[0, 1], n_rounds=1, batch_size=6,
        X_test=X[:2], y_test=labels[:2], random_state=0,
    )  # fmt: skip
    assert sorted(result.refused) == [2, 6]
    learner = ActiveLearner(GaussianNB(), "random").fit(X[:2], labels[:2]).teach(X[2:], labels[2:])
    assert learner.y_labeled_ == ["a", "b", "a", "b", "a", "b"]
    with pytest.raises(
        ValueError, match=r"y_labeled must have no missing labels\. Got nan for row"
    ):
        BootstrapSampler(GaussianNB()).fit(X, labels)


def test_number_in_a_list_of_texts_is_no_text_anywhere() -> None:
    labels = ["a", "b", 1, "a", "b", "a", "b", "a"]
    with pytest.raises(TypeError, match=r"All labels must be text, all numbers, .* Got 1 for row"):
        simulate(
            GaussianNB(), X, labels, "random", initial=[0, 1], n_rounds=1, batch_size=6,
            X_test=X[:2], y_test=labels[:2],
        )  # fmt: skip
    with pytest.raises(TypeError, match=r"There must be one type of class label\. Got 'a' in y_"):
        BootstrapSampler(GaussianNB()).fit(X, labels)
